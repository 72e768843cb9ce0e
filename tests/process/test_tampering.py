"""A command that lays hands on its keeper: what it can do to itself, and what the next call must not find."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import handrail as hr

pytestmark = pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit (util-linux) is not here")


@pytest.fixture(params=["T2", "T1"])
def box(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[hr.Toolbox]:
    monkeypatch.setenv("HANDRAIL_TIER", request.param)
    (tmp_path / "work").mkdir()
    with hr.Toolbox(tmp_path / "work", approver=hr.allow_all, sandbox="best") as box:
        if box.enforced.tier != request.param:
            pytest.skip(f"{request.param} cannot be had here")
        yield box


def survivors(tag: str) -> str:
    """What still carries `tag` in its words, a moment after the call."""
    latest = time.monotonic() + 2
    while True:
        found = subprocess.run(["pgrep", "-af", tag], capture_output=True, text=True, check=False).stdout
        if not found or time.monotonic() > latest:
            return found
        time.sleep(0.02)


LIMITS = ["--nofile=7:7", "--nofile=3:3", "--nofile=0:0", "--nproc=1:1", "--fsize=0:0", "--cpu=1:1", "--as=1000000"]


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_that_a_command_sets_on_its_keeper_let_nothing_survive(box: hr.Toolbox, limit: str) -> None:
    tag = f"sleep 61{os.getpid()}"
    line = f"prlimit --pid $PPID {limit}; setsid {tag} >/dev/null 2>&1 & sleep 0.1; exit 3"
    ended = box.call("shell", {"command": line})
    assert survivors(tag) == ""
    assert ended.data["exit_code"] in (3, 137), ended.text  # 137: a keeper that could not go on took its command along


@pytest.mark.parametrize("limit", LIMITS)
def test_the_next_command_finds_its_keeper_as_made(box: hr.Toolbox, limit: str) -> None:
    look = {"command": "ulimit -a | grep -v pending; nice"}
    before = box.call("shell", look).data["output"]
    box.call("shell", {"command": f"prlimit --pid $PPID {limit}; renice -n 5 -p $PPID"})
    after = box.call("shell", look)
    assert (after.data.get("exit_code"), after.data.get("output")) == (0, before), after.text
