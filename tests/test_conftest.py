"""The guards of tests/conftest.py, each against a test that breaks its rule, in a run of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]


def outcome(folder: Path, test: str) -> str:
    """What pytest says of one test under a copy of our guards."""
    guards = (Path(__file__).parent / "conftest.py").read_text()
    (folder / "conftest.py").write_text(guards.replace("SETTLE_S = 2.0", "SETTLE_S = 0.1"))
    (folder / "test_one.py").write_text(f"import os, subprocess, sys\n\n{test}")
    (folder / "pytest.ini").touch()
    return subprocess.run([*PYTEST, "."], cwd=folder, capture_output=True, text=True, check=False, timeout=40).stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("global p; p = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)", "process"),
        ("if os.fork() == 0: os._exit(0)", "state Z"),
        ("os.open(os.devnull, os.O_RDONLY)", "/dev/null"),
        ("os.pipe()", "pipe:"),
    ],
)
def test_what_a_test_leaves_is_an_error(tmp_path: Path, body: str, said: str) -> None:
    told = outcome(tmp_path, f"def test_it():\n    {body}\n")
    assert "the test left" in told
    assert said in told
    assert "1 error" in told


def test_a_tidy_test_passes(tmp_path: Path) -> None:
    body = "with open(os.devnull): subprocess.run([sys.executable, '-c', ''], check=True)"
    assert "1 passed" in outcome(tmp_path, f"def test_it():\n    {body}\n")


def test_the_state_directory_is_not_the_users(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert Path(os.environ["XDG_STATE_HOME"]).is_relative_to(tmp_path_factory.getbasetemp())
