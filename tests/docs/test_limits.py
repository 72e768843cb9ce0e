"""What docs/explanation/limits.md says is not stopped is not stopped, and what it says is, is."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from handrail import Toolbox, allow_all
from handrail.process import run

SLEEP = [sys.executable, "-c", "import time; time.sleep(120)"]
MARK = "HANDRAIL_TEST_MARK"


class Marked:
    """Sleepers that carry a word of this test in their environment, to find them wherever they went."""

    def __init__(self, word: str) -> None:
        self.word = word
        self._entry = f"{MARK}={word}".encode()

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, MARK: self.word}

    def pids(self) -> list[int]:
        found: list[int] = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if self._entry in environ and SLEEP[2].encode() in argv:
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
    """A call of bash in which SLEEPER is a program that sleeps."""
    sleeper = tmp_path / "sleeper"
    sleeper.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{SLEEP[2]}"\n')
    sleeper.chmod(0o755)
    return ["bash", "-c", text.replace("SLEEPER", str(sleeper))]


ESCAPE = (
    "setsid sh -c 'touch away; exec SLEEPER' </dev/null >/dev/null 2>&1 &"  # ends no sooner than it has got away:
    " until [ -e away ]; do sleep 0.01; done; echo up"
)


def test_an_escapee_with_no_ties_stays(marked: Marked, tmp_path: Path) -> None:
    completed = run(command(tmp_path, ESCAPE), cwd=tmp_path, env=marked.env, timeout_s=20)
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


def start_host(marked: Marked, program: str) -> subprocess.Popen[bytes]:
    """A program that is in the middle of a command."""
    host = subprocess.Popen([sys.executable, "-c", program], env=marked.env, stderr=subprocess.DEVNULL)
    assert len(marked.wait_for(1)) == 1
    return host


def engine_host(handling: str) -> str:
    return f"import signal, sys\nfrom handrail.process import run\n{handling}\nrun({SLEEP!r}, timeout_s=100)"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_host_ended_by_a_signal_that_it_does_not_handle_leaves_an_orphan(
    marked: Marked, number: signal.Signals
) -> None:
    host = start_host(marked, engine_host("signal.signal(signal.SIGHUP, signal.SIG_DFL)"))
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
    host = start_host(marked, engine_host(handling))
    host.send_signal(number)
    host.wait(timeout=20)
    assert marked.wait_for(0) == []


# ---------------------------------------------------------------- in a slot


@pytest.fixture(params=["T2", "T1"])
def tier(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tier that holds processes, where this machine has it; what is asked for in this process and those it starts."""
    wanted: str = request.param
    monkeypatch.setenv("HANDRAIL_TIER", wanted)
    with Toolbox(tmp_path, approver=allow_all, sandbox="best") as box:
        if box.enforced.tier != wanted:
            pytest.skip(f"this machine has {box.enforced.tier}")
    return wanted


@pytest.mark.usefixtures("tier")
def test_a_slot_ends_an_escapee(marked: Marked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, marked.word)
    with Toolbox(tmp_path, approver=allow_all, sandbox="best", env_names=[MARK]) as box:
        data = box.call("shell", {"command": command(tmp_path, ESCAPE)[2], "timeout_s": 20}).data
        assert data["output"] == "up"
        assert len(data["left_behind"]) == 1
        assert marked.wait_for(0) == []


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_slot_ends_with_its_host(marked: Marked, tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "from handrail import Toolbox, allow_all\n"
        f"box = Toolbox({str(tmp_path)!r}, approver=allow_all, sandbox='best', env_names=[{MARK!r}])\n"
        f"box.call('shell', {{'command': {shlex.join(SLEEP)!r}}})"
    )
    host = start_host(marked, program)
    host.send_signal(number)
    host.wait(timeout=20)
    assert marked.wait_for(0) == []


# ---------------------------------------------------------------- in any tier


def test_files_outside_are_within_reach_without_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "beside").write_text("a secret")
    workspace = tmp_path / "shop"
    workspace.mkdir()
    with Toolbox(workspace, approver=allow_all, sandbox="off") as box:
        assert box.call("shell", {"command": "cat ../beside"}).data["output"] == "a secret"


def test_the_network_is_within_reach_without_a_sandbox(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with Toolbox(tmp_path, approver=allow_all, sandbox="off") as box:
            told = box.call("shell", {"command": f"echo hello > /dev/tcp/127.0.0.1/{port}", "timeout_s": 20})
        assert not told.is_error
        connection, _ = server.accept()
        with connection:
            assert connection.recv(100) == b"hello\n"


def test_text_that_hides_or_reorders_reaches_a_model_unchanged(tmp_path: Path) -> None:
    hidden = "a\u202eb\u200bc\U000e0041d"
    with Toolbox(tmp_path, approver=allow_all, sandbox="best") as box:
        told = box.call("shell", {"command": f"printf %s {shlex.quote(hidden)}"})
    assert told.data["output"] == hidden
    assert told.text.endswith(hidden)
