"""A program for one slot: starts the processes of one call after another, and owns all they start, until it is ended.

Standard library only, single-threaded, nothing of the host in memory or environment. It is pid 1 of a PID namespace, or
a child subreaper: whatever a command starts, however it hides, ends up as this process's child. The warden forks it, or
a sandbox program starts it: python -I -S keeper.py CONVERSATION_FD LIFE_FD. What it first hears is how to confine
itself, and with that all it will start; where it cannot, it says why on its standard error, and ends.

It speaks over one SEQPACKET socket with the host: a request is a JSON object with descriptors attached, an answer a
JSON object. The host trusts no answer: a hostile command of the same user may have killed or stopped this process.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time

TYPE_CHECKING = False  # as `typing` has it, without loading that
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from handrail.process import confine, conversation, tree
else:  # this is part of no package; the folder that it lies in is put last, so that it can hide nothing
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import confine
    import conversation
    import tree

    sys.path.pop()

NAMED = 100  # of what is left; more would not fit into a message
LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
HELPERS_S = 0.01  # for what has closed its output and is on its way out


class Keeper:
    """One slot's conversation. The kernel kills for an init; a subreaper (`is_init` false) must find and kill."""

    def __init__(self, host: socket.socket, life_fd: int, *, is_init: bool) -> None:
        self._host = host
        self._life_fd = life_fd
        self._is_init = is_init
        self._wake = tree.wake_on_child()
        self._cpu_s = confine_as_asked(host)
        self._null = os.open(os.devnull, os.O_RDWR)
        self._mounts = changed_mounts()
        self._has_other_mounts = False
        self._made = circumstances()
        self._running: dict[int, int] = {}  # processes of the call that have not ended: pid → place in the pipeline
        self._statuses: list[int] = []
        self._ended_at = 0.0
        self._until_over = -1  # closed as soon as nothing of the call is left

    def serve(self) -> None:
        """Until the host closes its end or the warden is gone; then a subreaper ends what it has."""
        # Alive; and a name for this process that holds in every namespace and cannot pass to another.
        me = os.pidfd_open(os.getpid())
        socket.send_fds(self._host, [b"{}"], [me], socket.MSG_NOSIGNAL)
        os.close(me)
        os.dup2(self._null, 2)
        poll = select.poll()
        for fd in (self._host.fileno(), self._life_fd, self._wake):
            poll.register(fd, select.POLLIN)
        going_on = True
        while going_on:
            for fd, _ in poll.poll():
                if fd == self._wake:
                    tree.drain(self._wake)
                    self._reap()
                elif fd == self._life_fd:
                    going_on = False
                else:
                    going_on = self._answer() and going_on
        if not self._is_init:
            tree.kill_tree(self._wake)

    # ---- what the host asks

    def _answer(self) -> bool:
        """Take one request; False when the conversation is over."""
        request, fds = conversation.receive(self._host)
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
        if not self._is_as_made():
            self._say({"failed": errno.EAGAIN})
            return
        self._statuses = [0] * len(argvs)
        stdin = self._null
        for place, argv in enumerate(argvs):
            is_last = place == len(argvs) - 1
            reading, stdout = (self._null, fds[0]) if is_last else os.pipe()
            try:
                with limited_time(self._cpu_s) as set_for:
                    pid = start(argv, request, stdin, stdout, fds[1])
                    set_for(pid)
                self._running[pid] = place
            except (OSError, ValueError) as failure:
                self._running.clear()
                for fd in {reading} - {self._null}:
                    os.close(fd)
                self._say({"failed": getattr(failure, "errno", None) or 0})
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
            self._say({"left": [], "clean": self._is_as_made()})
            return
        named = [[pid, tree.words(pid)] for pid in tree.descendants()[:NAMED]]
        if not self._is_init:
            tree.kill_tree(self._wake)
        self._say({"left": named})

    def _wait_for_helpers(self) -> bool:
        """Whether anything is left a moment after the end: a helper that has closed its output is on its way out."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        latest = self._ended_at + HELPERS_S
        while (rest := latest - time.monotonic()) > 0 and poll.poll(rest * 1000):
            tree.drain(self._wake)
            if not self._reap():
                return False
        return True

    def _reap(self) -> bool:
        """Collect whatever has ended; tell the host when the call's own processes have. Returns whether any is left."""
        had_running = bool(self._running)
        any_left = False
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitpid(-1, os.WNOHANG):
                pid, status = ended
                if any_left := pid == 0:
                    break
                if pid in self._running:
                    self._statuses[self._running.pop(pid)] = os.waitstatus_to_exitcode(status)
        if had_running and not self._running:
            self._ended_at = time.monotonic()
            self._say({"ended": self._statuses, "clean": not any_left and self._is_as_made()})
        if not any_left and self._until_over >= 0:
            os.close(self._until_over)
            self._until_over = -1
        return any_left

    def _is_as_made(self) -> bool:
        """Whether the next command would find here what the first did.

        A command of the same user can set this process's limits and priority (prlimit, renice), a root's can mount.
        """
        self._has_other_mounts |= bool(self._mounts.poll(0))  # which tells a change once
        return not self._has_other_mounts and circumstances() == self._made

    def _signal_all(self, number: int) -> None:
        if self._is_init:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(-1, number)  # all in this namespace but its init
            return
        for pid in tree.descendants():
            tree.signal_pid(pid, number)

    def _say(self, answer: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # the host has gone; `serve` is told
            self._host.send(json.dumps(answer).encode(), socket.MSG_NOSIGNAL)


def confine_as_asked(host: socket.socket) -> int | None:
    """The first request. Returns the seconds of processor time that a process may use. Raises confine.Refused."""
    request, _ = conversation.receive(host)
    if request is None:
        raise confine.Refused("the host asked for no confinement")
    inside: dict[str, Any] = request["inside"]
    seconds: int | None = inside.pop("cpu_s", None)
    confine.apply(inside)
    return seconds


@contextlib.contextmanager
def limited_time(cpu_s: int | None) -> Generator[Callable[[int], None]]:
    """Around the start of a process that may use so many seconds of processor time (SIGXCPU, a second later SIGKILL).

    A limit of this process's own would end it one day: so only its soft one, which a child is born with, is lowered for
    that moment, and the hard one set for the child, which could otherwise raise the other.
    """
    if cpu_s is None:
        yield lambda _pid: None
        return
    before = resource.getrlimit(resource.RLIMIT_CPU)
    used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (max(cpu_s, used + 1), before[1]))

    def set_for(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))

    try:
        yield set_for
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)


def circumstances() -> tuple[object, ...]:
    """What a command inherits from this process and others could have changed."""
    limits = [resource.getrlimit(limit) for limit in LIMITS]
    return limits, os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0)


def changed_mounts() -> select.poll:
    """Tells, when polled, that this process's mounts have changed since it was last polled: proc(5), mounts."""
    poll = select.poll()
    with contextlib.suppress(OSError):  # no /proc, and then nothing of it to change
        poll.register(os.open("/proc/self/mounts", os.O_RDONLY), select.POLLPRI | select.POLLERR)
    return poll


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


def main(conversation_fd: int, life_fd: int) -> None:
    """What a sandbox program starts: pid 1 of its PID namespace."""
    for fd in (conversation_fd, life_fd):
        os.set_inheritable(fd, False)  # noqa: FBT003 - takes no name
    try:
        slot = Keeper(socket.socket(fileno=conversation_fd), life_fd, is_init=True)
    except (confine.Refused, OSError) as refused:
        sys.exit(str(refused))  # which it prints on standard error
    slot.serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
