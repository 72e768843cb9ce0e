"""What docs/explanation/limits.md says is not stopped is not stopped, and what it says is, is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from handrail.process import run

SLEEP = [sys.executable, "-c", "import time; time.sleep(120)"]


class Marked:
    """Processes that carry a word of this test in their environment, to find them wherever they went."""

    def __init__(self, word: str) -> None:
        self.env = {**os.environ, "HANDRAIL_TEST_MARK": word}
        self._entry = f"HANDRAIL_TEST_MARK={word}".encode()

    def pids(self) -> list[int]:
        found: list[int] = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if pid != os.getpid() and self._entry in environ:
                found.append(pid)
        return found

    def wait_for(self, count: int) -> list[int]:
        deadline = time.monotonic() + 20
        while len(found := self.pids()) != count and time.monotonic() < deadline:
            time.sleep(0.05)
        return found


@pytest.fixture
def marked(tmp_path: Path) -> Generator[Marked]:
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to find what escaped")
    processes = Marked(str(tmp_path))
    yield processes
    for pid in processes.pids():
        os.kill(pid, signal.SIGKILL)
    assert processes.wait_for(0) == []


def command(tmp_path: Path, text: str) -> list[str]:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import time; time.sleep(120)"\n')
    sleeper.chmod(0o755)
    return ["bash", "-c", text.replace("SLEEPER", str(sleeper))]


def test_an_escapee_with_no_ties_stays(marked: Marked, tmp_path: Path) -> None:
    escape = "setsid sh -c 'touch away; exec SLEEPER' </dev/null >/dev/null 2>&1 &"
    argv = command(tmp_path, f"{escape} until [ -e away ]; do sleep 0.01; done; echo up")
    completed = run(argv, cwd=tmp_path, env=marked.env, timeout_s=20)
    assert completed.stdout.head == b"up\n"
    assert completed.left_behind == ()
    assert len(marked.wait_for(1)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SLEEPER </dev/null >/dev/null 2>&1 &",
        "(SLEEPER </dev/null >/dev/null 2>&1 &)",
        "nohup SLEEPER </dev/null >/dev/null 2>&1 & disown",
        "setsid SLEEPER & sleep 0.3",
        "(setsid SLEEPER &); sleep 0.3",
    ],
)
def test_what_kept_a_tie_is_ended(marked: Marked, tmp_path: Path, text: str) -> None:
    completed = run(command(tmp_path, text), env=marked.env, timeout_s=20)
    assert len(completed.left_behind) >= 1
    assert marked.wait_for(0) == []


def start_host(marked: Marked, handling: str = "") -> subprocess.Popen[bytes]:
    """A program that is in the middle of a command."""
    program = f"import signal, sys\nfrom handrail.process import run\n{handling}\nrun({SLEEP!r}, timeout_s=100)"
    host = subprocess.Popen([sys.executable, "-c", program], env=marked.env, stderr=subprocess.DEVNULL)
    assert len(marked.wait_for(2)) == 2
    return host


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_host_ended_by_a_signal_that_it_does_not_handle_leaves_an_orphan(
    marked: Marked, number: signal.Signals
) -> None:
    host = start_host(marked, "signal.signal(signal.SIGHUP, signal.SIG_DFL)")
    host.send_signal(number)
    host.wait(timeout=20)
    assert len(marked.wait_for(1)) == 1


@pytest.mark.parametrize(
    ("number", "handling"),
    [
        (signal.SIGINT, ""),
        (signal.SIGTERM, "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))"),
        (signal.SIGHUP, "signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))"),
    ],
)
def test_a_host_that_handles_its_end_leaves_nothing(marked: Marked, number: signal.Signals, handling: str) -> None:
    host = start_host(marked, handling)
    host.send_signal(number)
    host.wait(timeout=20)
    assert marked.wait_for(0) == []


def test_files_outside_are_within_reach(tmp_path: Path) -> None:
    (tmp_path / "beside").write_text("a secret")
    workspace = tmp_path / "shop"
    workspace.mkdir()
    assert run(["cat", "../beside"], cwd=workspace).stdout.head == b"a secret"
