"""Guards around every test: it leaves no process and no descriptor, and keeps away from the user's own state."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from handrail.process.warden_process import NoWarden, warden
from handrail.values.confinement import Mode

SETTLE_S = 2.0  # for what a test ended on another thread and did not wait for
CAN_LOOK = Path("/proc/self/fd").is_dir()


def children() -> dict[str, str]:
    """What each direct child of this process is called and does, zombies included, by pid and start time."""
    found: dict[str, str] = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        state, parent, *more = rest.split()
        if parent == str(os.getpid()):
            found[f"{pid} {more[17]}"] = f"process {pid} ({name}, state {state})"
    return found


def descriptors() -> dict[str, str]:
    """The open descriptors of this process, by number and what each leads to."""
    found: dict[str, str] = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the one that listed the directory
            continue
        found[f"{number} {target}"] = f"descriptor {number} ({target})"
    return found


def left(before: dict[str, str], look: Callable[[], dict[str, str]]) -> list[str]:
    """What `look` finds that was not there before, once garbage is collected and SETTLE_S had their chance."""
    deadline = time.monotonic() + SETTLE_S
    while new := [what for key, what in look().items() if key not in before]:
        if time.monotonic() > deadline:
            return new
        gc.collect()
        time.sleep(0.02)
    return []


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Generator[None]:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    """Fail a test that leaves a child process, a zombie or an open descriptor; without /proc there is no telling."""
    if not CAN_LOOK:
        yield
        return
    processes, files = children(), descriptors()
    yield
    if found := left(processes, children) + left(files, descriptors):
        pytest.fail("the test left " + ", ".join(found))


@pytest.fixture(autouse=True, scope="session")
def _usual_signals() -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    """Undo what the starter of the tests ignores, which all that they start would ignore too.

    A shell starts its background jobs with SIGINT and SIGQUIT ignored. GNU make starts its recipes by posix_spawn, and
    glibc then leaves the two signals that it keeps for itself ignored; only the bare system call can touch those.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    rt_sigaction = {"x86_64": 13, "aarch64": 134}.get(platform.machine())
    if CAN_LOOK and rt_sigaction is not None:
        ignored = next(
            line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("SigIgn:")
        )
        default = ctypes.create_string_buffer(64)  # a struct of zeros: SIG_DFL, no flags, no mask
        for number in (32, 33):
            if int(ignored.split()[1], 16) >> (number - 1) & 1:
                ctypes.CDLL(None).syscall(rt_sigaction, number, default, None, 8)


@pytest.fixture(autouse=True, scope="session")
def _wardens_run() -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    """A process keeps its wardens until it ends: start them before anything is counted."""
    modes: tuple[Mode, Mode] = ("namespace", "reaper")
    for mode in modes:
        with contextlib.suppress(NoWarden):
            warden(mode)


@pytest.fixture(autouse=True, scope="session")
def _own_state(  # pyright: ignore[reportUnusedFunction] - pytest uses it
    tmp_path_factory: pytest.TempPathFactory,
) -> Generator[None]:
    """Sessions keep their files below XDG_STATE_HOME: let them not be the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield
