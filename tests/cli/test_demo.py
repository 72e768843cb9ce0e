from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.agent.demo import steps

Handrail = Callable[..., subprocess.CompletedProcess[str]]
Started = Callable[..., subprocess.Popen[bytes]]


def test_every_step_does_what_it_should(handrail: Handrail, tmp_path: Path) -> None:
    begun = time.monotonic()
    done = handrail("demo", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - begun < 30, "a person waits for it"
    promised = [expected.words for step in steps() for expected in step.expects]
    assert re.findall(r"^     ok (.*)$", done.stdout, re.MULTILINE) == promised
    assert "FAILED" not in done.stdout
    assert f"checks {len(promised) + 3} of {len(promised) + 3} hold" in done.stdout
    assert list(tmp_path.iterdir()) == [], "the workspace is gone"


def test_it_shows_what_really_happened(handrail: Handrail) -> None:
    shown = handrail("demo").stdout
    for line in (
        "      | TypeError: unsupported operand type(s) for +: 'float' and 'str'",
        "      | total: 77.50",
        "      | asking the warehouse",
        "      | ... and 99,992 more lines",
        "      = Timed out after 1 s; stopped.",
        "  files shop/order.py",
    ):
        assert line in shown.splitlines(), line
    assert re.search(r"held by (no )?sandbox: tier T[0-3] \(processes: ", shown)


@pytest.mark.parametrize("width", [20, 37, 200])
def test_it_fits_the_window(handrail: Handrail, width: int) -> None:
    done = handrail("demo", COLUMNS=str(width))
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= width
    assert not [line for line in done.stdout.splitlines() if line.endswith(" ")]


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"TERM": None, "LANG": None, "LC_ALL": None},
    ],
)
def test_it_needs_no_particular_locale(handrail: Handrail, env: dict[str, str | None]) -> None:
    done = handrail("demo", **env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


def in_a_terminal(env: dict[str, str | None]) -> str:
    """What the demo writes where stdout is a terminal."""
    ours, theirs = pty.openpty()
    given = {name: value for name, value in {**os.environ, **env}.items() if value is not None}
    with subprocess.Popen(
        [sys.executable, "-c", "from handrail.cli.main import main; main()", "demo"], stdout=theirs, env=given
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 65536):
                written += piece
        except OSError:  # Linux says so where the last writer is gone
            pass
    os.close(ours)
    assert process.returncode == 0
    return written.decode()


def test_a_terminal_gets_colours_and_a_dumb_one_or_a_wish_for_none_gets_no_escapes() -> None:
    assert "\x1b[" in in_a_terminal({"TERM": "xterm-256color", "NO_COLOR": None})
    assert "\x1b" not in in_a_terminal({"TERM": "dumb", "NO_COLOR": None})
    assert not re.search(r"\x1b\[3\d", in_a_terminal({"TERM": "xterm-256color", "NO_COLOR": "1"}))


@pytest.mark.parametrize("last", [b"handrail demo", b" person ", b"      | 3\n", b"     ok it is stopped"])
def test_a_reader_that_goes_away_ends_it_quietly(started: Started, tmp_path: Path, last: bytes) -> None:
    with started("demo", TMPDIR=str(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while not process.stdout.readline().startswith(last):
            pass
        process.stdout.close()
        assert process.wait(timeout=50) == 141
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_leaves_nothing(
    started: Started, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with started("demo", TMPDIR=str(tmp_path)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while b"asking the warehouse\n" not in process.stdout.readline().removeprefix(b"      | "):
            pass
        process.send_signal(number)
        process.stdout.read()
        assert process.wait(timeout=50) == code
        assert b"Traceback" not in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_it_fails_loudly_where_a_step_does_not_do_its_work(handrail: Handrail, tmp_path: Path) -> None:
    """A `sed` that changes nothing: the bug stays, and so must the failure."""
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "sed").write_text("#!/bin/sh\ncat order.py\n")
    (broken / "sed").chmod(0o755)
    done = handrail("demo", PATH=f"{broken}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert " FAILED the program on disk is changed" in done.stdout.splitlines()
    assert " FAILED call 4: it ends with exit code 0" in done.stdout.splitlines()
