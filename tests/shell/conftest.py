"""Real bash in a real workspace, through the engine that runs every command."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest

from handrail.hosts.local import LocalHost
from handrail.process.environment import build
from handrail.shell.session import Session, ShellRun
from handrail.values.completed import Completed
from handrail.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The workspace: a directory with `sub/deep` in it."""
    path = tmp_path / "work"
    (path / "sub" / "deep").mkdir(parents=True)
    return path


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """The session's own directory."""
    path = tmp_path / "private"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The usual environment of a command, with an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    return build(variables, policy="allow", tmpdir=str(tmp_path)).variables


@pytest.fixture
def host() -> Generator[LocalHost]:
    """This machine, in the tier that it has."""
    with closing(LocalHost()) as host:
        yield host


@pytest.fixture
def session(root: Path, private: Path, environment: dict[str, str], host: LocalHost) -> Session:
    return Session(Workspace(root), host, str(private), environment)


@pytest.fixture
def sh(session: Session) -> Callable[[str], ShellRun]:
    """Run a command in the session; one that hangs is stopped after 20 s."""

    def run(command: str) -> ShellRun:
        return session.run(command, timeout_s=20)

    return run


def text(ran: ShellRun | Completed) -> str:
    """What a command wrote to standard output."""
    completed = ran.completed if isinstance(ran, ShellRun) else ran
    assert completed.stdout.dropped_bytes == 0
    return (completed.stdout.head + completed.stdout.tail).decode()
