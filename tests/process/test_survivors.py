"""Nothing outlives a call: every way to get away, every way to end, per tier, as this user and as an ordinary one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.process.kill_matrix import ENDS, ESCAPES, GRACE_S

MATRIX = Path(__file__).with_name("kill_matrix.py")
SOURCE = Path(__file__).parents[2] / "src"
NOBODY = 65534
OUTCOMES = {"timeout": [None, True, False], "cancel": [None, False, True], "exit": [0, False, False]}

# What tier T0 declares (see direct.py): who has left the session and lost its parent is found by a pipe that it holds,
# and these hold none.
T0_MISSES = {
    ("setsid", "exit"),
    *((escape, end) for escape in ("double_fork", "respawner") for end in ENDS),
}

Rows = dict[tuple[str, str], dict[str, Any]]


class Matrix:
    """Runs kill_matrix.py, once for each tier, and keeps what it said."""

    def __init__(self, folder: Path, program: list[str], source: Path, user: int | None) -> None:
        self._folder = folder
        self._program = program
        self._source = source
        self._user = user
        self._rows: dict[str, Rows] = {}

    def row(self, tier: str, escape: str, end: str) -> dict[str, Any]:
        """What came of one call. Skips where this machine has no such tier; no step down can hide behind that."""
        if tier == "T2" and not self._has_pid_namespaces():
            pytest.skip("this user can have no PID namespace here")
        if tier not in self._rows:
            self._rows[tier] = self._run(tier)
        row = self._rows[tier][escape, end]
        assert row["tier"] == tier
        return row

    def _has_pid_namespaces(self) -> bool:
        """Asked of a program that has nothing to do with ours."""
        probes = (["unshare"], ["unshare", "--user", "--map-current-user"])
        return any(
            as_user(self._user, [*probe, "--pid", "--fork", "true"], {"PATH": os.environ["PATH"]}).returncode == 0
            for probe in probes
        )

    def _run(self, tier: str) -> Rows:
        place = self._folder / tier
        place.mkdir()
        if self._user is not None:
            os.chown(place, self._user, self._user)
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self._source), "HANDRAIL_TIER": tier}
        told = as_user(self._user, [*self._program, str(place)], environment)
        assert told.returncode == 0, told.stderr
        return {(row["escape"], row["end"]): row for row in json.loads(told.stdout)}


def as_user(user: int | None, argv: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    ids: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    return subprocess.run(
        argv, env=environment, cwd="/", capture_output=True, text=True, check=False, timeout=50, **ids
    )


def readable_interpreter(user: int) -> str | None:
    """One that `user` can start, which a root's own often is not."""
    for program in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")):
        try:
            told = as_user(user, [program or "", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], {})
        except OSError:
            continue
        if told.returncode == 0:
            return program
    return None


@pytest.fixture(scope="module")
def open_folder() -> Generator[Path]:
    """A folder that everybody can read; pytest's own are its user's alone."""
    with tempfile.TemporaryDirectory(prefix="handrail-matrix-") as name:
        os.chmod(name, 0o755)  # noqa: S103 - that is the point
        yield Path(name)


@pytest.fixture(scope="module", params=["this user", "an ordinary user"])
def matrix(request: pytest.FixtureRequest, open_folder: Path) -> Matrix:
    if request.param == "this user":
        folder = open_folder / "own"
        folder.mkdir()
        return Matrix(folder, [sys.executable, str(MATRIX)], SOURCE, None)
    if os.getuid() != 0:
        pytest.skip("only root can become another user; this user is an ordinary one")
    program = readable_interpreter(NOBODY)
    if program is None:
        pytest.skip(f"user {NOBODY} can start no Python 3.11 or newer here")
    folder = open_folder / "ordinary"
    shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(MATRIX, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    return Matrix(folder, [program, str(folder / MATRIX.name)], folder / "src", NOBODY)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("tier", ["T2", "T1", "T0"])
def test_nothing_outlives_a_call_but_what_its_tier_declares(matrix: Matrix, tier: str, escape: str, end: str) -> None:
    row = matrix.row(tier, escape, end)
    assert row["ready"], "the machine was too slow for the command to get into place"
    assert row["ended"] == OUTCOMES[end]
    declared = tier == "T0" and (escape, end) in T0_MISSES
    assert bool(row["survivors"]) == declared
    if end == "exit" and not declared:
        assert any("sleep 40." in name or "python" in name for name in row["left_behind"])
        assert all(row["left_behind"])


@pytest.mark.parametrize("tier", ["T2", "T1", "T0"])
def test_what_ignores_sigterm_gets_its_grace_and_no_more(matrix: Matrix, tier: str) -> None:
    row = matrix.row(tier, "trap", "timeout")
    assert row["seconds"] >= row["limit_s"] + GRACE_S
    assert row["seconds"] < row["limit_s"] + GRACE_S + 5


@pytest.mark.parametrize("tier", ["T2", "T1", "T0"])
def test_a_main_process_that_has_ended_ends_the_call_whatever_it_left(matrix: Matrix, tier: str) -> None:
    for escape in ESCAPES:
        assert matrix.row(tier, escape, "exit")["seconds"] < 5
