"""What the pages show runs: each python and bash block by itself, in a fresh workspace, as a reader would paste it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, links, pages

ALL = [block for page in pages() for block in blocks(page)]
LANGUAGES = {"python", "bash", "text", "output"}  # "output": what the block before it prints, to the letter
PRINTED = {a: b.text for a, b in pairwise(ALL) if b.language == "output" and a.page == b.page}
RUNNABLE = [b for b in ALL if b.language in {"python", "bash"} and "install" not in b.marks]
INSTALL = [b for b in ALL if "install" in b.marks]

INTERPRETER = {"python": [sys.executable, "-W", "error", "-c"], "bash": ["bash", "-eu", "-c"]}


@pytest.mark.parametrize("block", RUNNABLE, ids=str)
def test_a_block_runs_and_prints_what_the_page_says(block: Block, tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    workspace.mkdir()
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    argv = [*INTERPRETER[block.language], block.text]
    done = subprocess.run(argv, cwd=workspace, env=env, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, f"{block}:\n{done.stdout}{done.stderr}"
    if block in PRINTED:
        assert done.stdout.rstrip() == PRINTED[block].rstrip()


def test_every_block_says_what_it_is() -> None:
    assert [str(b) for b in ALL if b.language not in LANGUAGES] == []
    assert [str(b) for b in ALL if set(b.marks) - {"install"}] == []
    outputs = [b for b in ALL if b.language == "output"]
    assert len(PRINTED) == len(outputs), "an output block belongs behind the block that prints it"
    assert set(PRINTED) <= set(RUNNABLE)


def test_the_front_page_shows_the_two_commands_and_some_python() -> None:
    front = [b for b in ALL if b.page == "README.md"]
    assert {"make demo", "make test"} <= {line for b in front if b in INSTALL for line in commands(b)}
    assert any(b.language == "python" for b in front if b in RUNNABLE)


def commands(block: Block) -> list[str]:
    """The lines of a block without comments."""
    return [line for raw in block.text.splitlines() if (line := re.sub(r"\s*(^|\s)#.*", "", raw).strip())]


@pytest.mark.parametrize("block", INSTALL, ids=str)
def test_a_block_that_installs_only_runs_what_the_makefile_has(block: Block) -> None:
    assert block.language == "bash"
    for command in commands(block):
        make, target = command.split()
        assert make == "make"
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True, timeout=30)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    here = [
        link.partition("#")[0] for link in links(page) if "://" not in link and not link.startswith(("#", "mailto:"))
    ]
    assert [link for link in here if not (page.parent / link).exists()] == []
