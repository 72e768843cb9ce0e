"""Runs the real command line as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import pytest

PROGRAM = (sys.executable, "-c", "from handrail.cli.main import main; main()")

Handrail = Callable[..., subprocess.CompletedProcess[str]]
Started = Callable[..., subprocess.Popen[bytes]]


def environment(changed: Mapping[str, str | None]) -> dict[str, str]:
    """Ours with `changed` over it; None takes a name out."""
    return {name: value for name, value in {**os.environ, **changed}.items() if value is not None}


@pytest.fixture
def handrail(tmp_path: Path) -> Handrail:
    """Run `handrail ...` in an empty directory to its end."""

    def call(
        *arguments: str | bytes,
        cwd: Path = tmp_path,
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        **env: str | None,
    ) -> subprocess.CompletedProcess[str]:
        command = [*PROGRAM, *arguments]
        return subprocess.run(
            command, cwd=cwd, env=environment(env), stdout=stdout, stderr=stderr, text=True, timeout=50, check=False
        )

    return call


@pytest.fixture
def started(tmp_path: Path) -> Started:
    """Start `handrail ...` in an empty directory, with pipes."""

    def start(*arguments: str, stdin: int | None = None, **env: str | None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=tmp_path,
            env=environment(env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start
