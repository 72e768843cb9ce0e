"""Finds, signals and ends all descendants of this process: for a keeper that is a subreaper, and for its warden.

Standard library only, single-threaded, like the programs that use it. It refuses to know who is whose: that is theirs.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import select
import signal

# After so many rounds of killing, processes are stopped before: what forks faster than we look cannot go on then.
ROUNDS_BEFORE_STOP = 3
ROUND_MS = 20


def wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends."""
    reading, writing = os.pipe()
    for fd in (reading, writing):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reading


def drain(fd: int) -> None:
    """Make a descriptor of ours quiet again."""
    with contextlib.suppress(BlockingIOError):
        os.read(fd, 4096)


def kill_tree(wake: int, spare: frozenset[int] = frozenset()) -> None:
    """SIGKILL every descendant, and collect it, until there is none but the children in `spare`.

    Each round catches what was forked during the one before. Only what the kernel holds (a dead network disk) can make
    it last; who asked has a deadline of its own. What has become another user's (sudo) cannot be ended, and stays.
    """
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    before: list[int] = []
    for round_ in itertools.count():
        left = [pid for pid in descendants(spare) if pid not in spare]
        all_ours = True
        for number in (signal.SIGSTOP, signal.SIGKILL) if round_ >= ROUNDS_BEFORE_STOP else (signal.SIGKILL,):
            for pid in left:
                all_ours &= signal_pid(pid, number)
        ended = collect(spare)
        if not ended and (not left or (left == before and not all_ours)):
            return
        before = left
        if not ended:
            poll.poll(ROUND_MS)
            drain(wake)


def collect(spare: frozenset[int]) -> bool:
    """Take the statuses of ended children that are not spared; whether there was any."""
    found = False
    for pid in children(os.getpid()):
        if pid not in spare:
            with contextlib.suppress(ChildProcessError):
                found |= os.waitpid(pid, os.WNOHANG)[0] != 0
    return found


def descendants(spare: frozenset[int] = frozenset()) -> list[int]:
    """Pids of all below this process, parents first, without what is below a spared one."""
    found: list[int] = []
    wanted = [os.getpid()]
    while wanted:
        below = [pid for parent in wanted for pid in children(parent) if pid not in spare]
        found += below
        wanted = below
    return found


def children(pid: int) -> list[int]:
    """The kernel's own list where it keeps one (CONFIG_PROC_CHILDREN), else a look at every process's parent."""
    name = "self" if pid == os.getpid() else str(pid)
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{name}/task"):
            with open(f"/proc/{name}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except FileNotFoundError:
        return [child for child, parent in parents().items() if parent == pid] if os.path.isdir(f"/proc/{pid}") else []
    except OSError as failure:
        must_be_gone(failure)
        return []
    return found


def parents() -> dict[int, int]:
    """Every process's parent."""
    found: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        except OSError as failure:
            must_be_gone(failure)
    return found


def must_be_gone(failure: OSError) -> None:
    """A process that ended while we looked is no fault. That we cannot look (a command may have set our limits) is one.

    It raises the failure then: who cannot look must end, so that what it holds falls to somebody who can.
    """
    if failure.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        raise failure


def words(pid: int) -> str:
    """A process's command line, for the host to show, else its name in brackets; at most 80 characters."""
    for name in ("cmdline", "comm"):  # a zombie has no command line
        with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            text = file.read(1000).strip(b"\0\n").replace(b"\0", b" ").decode("utf-8", "replace")[:78]
            if text:
                return text if name == "cmdline" else f"[{text}]"
    return ""


def signal_pid(pid: int, number: int) -> bool:
    """Send a signal to a descendant, which may have ended; False where it is another user's.

    No child's pid can pass to a stranger before we wait for it, and a grandchild's only where its parent just did.
    """
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True
