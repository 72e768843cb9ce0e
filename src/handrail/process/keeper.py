"""A program for one slot: starts the processes of one call after another, and owns all they start, until it is ended.

Standard library only, single-threaded, nothing of the host in memory or environment. It is pid 1 of a PID namespace, or
a child subreaper: whatever a command starts, however it hides, ends up as this process's child.

It speaks over one SEQPACKET socket with the host: a request is a JSON object with descriptors attached, an answer a
JSON object. The host trusts no answer: a hostile command of the same user may have killed or stopped this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import time

TYPE_CHECKING = False  # as `typing` has it, without loading that
if TYPE_CHECKING:
    from typing import Any

# A request brings at most two ends of pipes, a memory file, and a pipe that tells when nothing of the call is left.
DESCRIPTORS = 8
MESSAGE_BYTES = 128 * 1024
# After so many rounds of killing, processes are stopped before: what forks faster than we look cannot go on then.
ROUNDS_BEFORE_STOP = 3
ROUND_MS = 20
HELPERS_S = 0.01


class Keeper:
    """One slot's conversation. The kernel kills for an init; a subreaper (`is_init` false) must find and kill."""

    def __init__(self, host: socket.socket, life_fd: int, *, is_init: bool) -> None:
        self._host = host
        self._life_fd = life_fd
        self._is_init = is_init
        self._null = os.open(os.devnull, os.O_RDWR)
        self._wake = wake_on_child()
        self._running: dict[int, int] = {}  # processes of the call that have not ended: pid → place in the pipeline
        self._statuses: list[int] = []
        self._until_over = -1  # closed as soon as nothing of the call is left

    def serve(self) -> None:
        """Until the host closes its end or the warden is gone; then a subreaper ends what it has."""
        # Alive; and a name for this process that holds in every namespace and cannot pass to another.
        me = os.pidfd_open(os.getpid())
        socket.send_fds(self._host, [b"{}"], [me], socket.MSG_NOSIGNAL)
        os.close(me)
        poll = select.poll()
        for fd in (self._host.fileno(), self._life_fd, self._wake):
            poll.register(fd, select.POLLIN)
        going_on = True
        while going_on:
            for fd, _ in poll.poll():
                if fd == self._wake:
                    drain(self._wake)
                    self._reap()
                elif fd == self._life_fd:
                    going_on = False
                else:
                    going_on = self._answer() and going_on
        if not self._is_init:
            kill_tree(self._wake)

    # ---- what the host asks

    def _answer(self) -> bool:
        """Take one request; False when the conversation is over."""
        request, fds = receive(self._host)
        if request is None:
            return False
        action = request.get("do")
        if action == "run":
            self._run(request, fds)
        elif action == "terminate":
            self._until_over = fds.pop(0)
            self._signal_all(signal.SIGTERM)
            # A stopped process keeps SIGTERM pending for ever; continued, it dies of it before its next instruction.
            self._signal_all(signal.SIGCONT)
            self._reap()
        elif action == "sweep":
            self._sweep()
        for fd in fds:
            os.close(fd)
        return True

    def _run(self, request: dict[str, Any], fds: list[int]) -> None:
        """Start the processes of one call, wired by pipes. Either all of them start or none is left."""
        argvs = request["argvs"]
        self._statuses = [0] * len(argvs)
        stdin = self._null
        for place, argv in enumerate(argvs):
            is_last = place == len(argvs) - 1
            reading, stdout = (self._null, fds[0]) if is_last else os.pipe()
            try:
                self._running[start(argv, request, stdin, stdout, fds[1])] = place
            except (OSError, ValueError) as failure:
                self._running.clear()
                for fd in {reading} - {self._null}:
                    os.close(fd)
                self._say({"failed": getattr(failure, "errno", None) or 0, "place": place})
                return
            finally:
                for fd in {stdin, stdout} - {self._null, fds[0]}:
                    os.close(fd)
            stdin = reading
        self._reap()

    def _sweep(self) -> None:
        """Name what is left of the call. A subreaper ends it too; an init is ended by the host, and all with it."""
        self._running.clear()
        if not self._reap() or not self._wait_for_helpers():
            self._say({"left": []})
            return
        named = [[pid, words(pid)] for pid in descendants()]
        if not self._is_init:
            kill_tree(self._wake)
        self._say({"left": named})

    def _wait_for_helpers(self) -> bool:
        """Whether anything is still left a moment on: a helper that has closed its output is on its way out."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        latest = time.monotonic() + HELPERS_S
        while (rest := latest - time.monotonic()) > 0 and poll.poll(rest * 1000):
            drain(self._wake)
            if not self._reap():
                return False
        return True

    def _reap(self) -> bool:
        """Collect whatever has ended; tell the host when the call's own processes have. Returns whether any is left."""
        had_running = bool(self._running)
        any_left = True
        while any_left:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                any_left = False
                break
            if pid == 0:
                break
            place = self._running.pop(pid, None)
            if place is not None:
                self._statuses[place] = os.waitstatus_to_exitcode(status)
        if had_running and not self._running:
            self._say({"ended": self._statuses, "clean": not any_left})
        if not any_left and self._until_over >= 0:
            os.close(self._until_over)
            self._until_over = -1
        return any_left

    def _signal_all(self, number: int) -> None:
        if self._is_init:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(-1, number)  # all in this namespace but its init
            return
        for pid in descendants():
            signal_pid(pid, number)

    def _say(self, answer: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # the host has gone; `serve` is told by its socket or by the warden
            self._host.send(json.dumps(answer).encode(), socket.MSG_NOSIGNAL)


def receive(conversation: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """One request and its descriptors; (None, []) at the end. A long one lies in the last descriptor, a memory file.

    `socket.recv_fds` drops its flags, and the descriptors would be inherited by every command: hence recvmsg.
    """
    try:
        data, ancillary, _, _ = conversation.recvmsg(
            MESSAGE_BYTES, socket.CMSG_SPACE(DESCRIPTORS * 4), socket.MSG_CMSG_CLOEXEC
        )
    except OSError:
        return None, []
    fds: list[int] = []
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += memoryview(payload[: len(payload) - len(payload) % 4]).cast("i").tolist()
    if not data:
        return None, fds
    request = json.loads(data)
    if request.get("do") == "read":
        memory = fds.pop()
        with open(memory, "rb") as file:
            file.seek(0)
            request = json.loads(file.read())
    return request, fds


def start(argv: list[str], request: dict[str, Any], stdin: int, stdout: int, stderr: int) -> int:
    """One process, in a session of its own. This process ignores and blocks nothing, so neither does that one.

    Not `posix_spawn`: glibc leaves signals 32 and 33 ignored in its children, for all that they start.
    """
    child = subprocess.Popen(
        argv,
        cwd=request["cwd"],
        env=request["env"],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        umask=request["umask"],
    )
    child.returncode = 0  # Popen must not wait for it: `Keeper._reap` collects everything
    return child.pid


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
    it last; who asked has a deadline of its own.
    """
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    rounds = 0
    while True:
        left = [pid for pid in descendants(spare) if pid not in spare]
        for number in (signal.SIGSTOP, signal.SIGKILL) if rounds >= ROUNDS_BEFORE_STOP else (signal.SIGKILL,):
            for pid in left:
                signal_pid(pid, number)
        ended = collect(spare)
        if not left and not ended:
            return
        rounds += 1
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
    try:
        lists: list[str] = []
        for task in os.listdir(f"/proc/{name}/task"):
            with open(f"/proc/{name}/task/{task}/children") as file:
                lists += file.read().split()
        return [int(child) for child in lists]
    except FileNotFoundError:
        return [child for child, parent in parents().items() if parent == pid] if os.path.isdir(f"/proc/{pid}") else []
    except OSError:  # it ended while we looked
        return []


def parents() -> dict[int, int]:
    """Every process's parent."""
    found: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def words(pid: int) -> str:
    """A process's command line, for the host to show; at most 200 characters."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read(1000).rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")[:200]
    return ""


def signal_pid(pid: int, number: int) -> None:
    """Send a signal to a child of ours, or to a child of one: none of those pids can pass to another before we wait."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
