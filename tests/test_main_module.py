"""`python -m handrail` is the command line, for where the `handrail` program is not on the PATH."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import handrail


def as_module(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "handrail", *arguments]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=50, check=False)


def test_the_module_runs_a_command_and_ends_with_its_code(tmp_path: Path) -> None:
    done = as_module(tmp_path, "run", "echo hello; exit 7")
    assert (done.returncode, done.stdout) == (7, "hello\n"), done.stderr


def test_the_module_calls_itself_as_the_program_does(tmp_path: Path) -> None:
    assert as_module(tmp_path, "--version").stdout == f"handrail {handrail.__version__}\n"
    assert as_module(tmp_path, "run", "--no-such-option").stderr.startswith("Usage: handrail run ")


def test_importing_the_module_runs_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import handrail.__main__; print('imported')"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "imported\n"
