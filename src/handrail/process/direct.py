"""Tier T0: starts a command as a plain child and ends it by its process group, its session and its descendants.

Gaps, declared: a process that left the session and lost its parent is only found while it holds one of our pipes, and
nothing ends anything once the host itself was killed by SIGKILL.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from time import monotonic

from handrail.process import table
from handrail.process.cancel import Cancel
from handrail.process.capture import Capture
from handrail.process.child import NotStarted
from handrail.process.spawn import Pipes, no_room, spawn
from handrail.process.supervise import OnOutput, supervise
from handrail.values.completed import Completed, Enforced, LeftBehind
from handrail.values.invocation import Invocation

ENFORCED = Enforced(tier="T0", processes="process group", files="none", network="none")

# Each round of a sweep catches what was forked during the one before; a tree that outruns this many has escaped.
_ROUNDS = 20
_ROUND_S = 1.0


def run_direct(invocation: Invocation, cancel: Cancel, on_output: OnOutput | None) -> Completed:
    """Run `invocation` on this thread, unconfined, to its end. On the main thread, within `interruptible`."""
    started = monotonic()
    try:
        return supervise(DirectChild(invocation), invocation, started, cancel, on_output)
    except NotStarted as refusal:
        return not_run(refusal)


def not_run(refusal: NotStarted) -> Completed:
    """What comes of a command that was not started."""
    return Completed(exit_code=refusal.exit_code, not_started=refusal.sentence, duration_s=0.0, enforced=ENFORCED)


class DirectChild:
    """A `Child` (see child.py) that is a direct child of this process and leads a session of its own."""

    enforced: Enforced = ENFORCED

    def __init__(self, invocation: Invocation) -> None:
        self._since = table.now_ticks()
        self._known: dict[int, table.Process] = {}
        self._watched: list[int] = []
        self._reaped = False
        self._status: int | None = None
        with Pipes(merge=invocation.merge) as pipes:
            self._popen = spawn(invocation, pipes)
            self._pid = self._popen.pid
            try:
                self.exit_fd = _exit_descriptor(self._popen)
            except OSError as failure:  # no descriptor is left to see its end by
                self._popen.kill()
                self._popen.wait()
                raise no_room() from failure
            self.captures: Mapping[str, Capture] = {
                name: Capture(fd, invocation.output, invocation.spill_dir) for name, fd in pipes.hand_over().items()
            }

    def terminate(self) -> tuple[int, ...]:
        others = [row for row in self._members() if row.pid != self._pid]
        held = [(row, fd) for row in others if (fd := _pidfd(row)) is not None]
        self._watched = [fd for _, fd in held]
        self._signal_group(signal.SIGTERM)
        for row, fd in held:
            if row.group != self._pid:
                _signal_pidfd(fd, signal.SIGTERM)
        # A stopped process keeps SIGTERM pending for ever; continued, it dies of it before its next instruction.
        self._signal_group(signal.SIGCONT)
        return tuple(self._watched)

    def sweep(self) -> tuple[LeftBehind, ...]:
        if self._has_ended():
            self.status()
            # Our pid cannot pass to a stranger while its group has members, and without members we stop here.
            at_end = all(capture.at_end for capture in self.captures.values())
            if not self._known and not self._group_exists() and at_end:
                return ()
        else:
            self._members()  # before their parent goes: whose session is another one is found by its parent alone
            self._signal_group(signal.SIGKILL)
        return self._kill_members()

    def status(self) -> int | None:
        if not self._reaped:
            self._reaped = True
            self._status = _collect(self._popen)
        return self._status

    def close(self) -> None:
        for capture in self.captures.values():
            capture.close()
        for fd in (*self._watched, self.exit_fd):
            os.close(fd)
        self._watched = []

    def _kill_members(self) -> tuple[LeftBehind, ...]:
        named: dict[tuple[int, int], LeftBehind] = {}
        for _ in range(_ROUNDS):
            rows = [row for row in self._members() if row.pid != self._pid]
            if not rows:
                break
            for row in rows:
                named.setdefault((row.pid, row.started), LeftBehind(row.pid, table.words(row.pid)))
            fds = [fd for row in rows if (fd := _pidfd(row)) is not None]
            for fd in fds:
                _signal_pidfd(fd, signal.SIGKILL)
            _await_all(fds)
            for row in rows:
                _reap_adopted(row.pid)
        return tuple(named.values())

    def _members(self) -> list[table.Process]:
        rows = table.read_all()
        mine = table.of_command(rows, self._pid, self._since, self._known.values())
        for capture in self.captures.values():
            if not capture.at_end:
                mine += table.writers_of(rows, os.readlink(f"/proc/self/fd/{capture.fd}"), self._since) if rows else []
        self._known.update((row.pid, row) for row in mine)
        return list({row.pid: row for row in mine if row.pid != os.getpid()}.values())

    def _has_ended(self) -> bool:
        poll = select.poll()
        poll.register(self.exit_fd, select.POLLIN)
        return bool(poll.poll(0))

    def _group_exists(self) -> bool:
        try:
            os.killpg(self._pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # members with another user id (setuid programs) are members too
            return True
        return True

    def _signal_group(self, number: signal.Signals) -> None:
        """Only while the main process is not reaped: then the group is certainly ours."""
        if self._reaped:
            return
        try:
            os.killpg(self._pid, number)
        except (ProcessLookupError, PermissionError):
            return


def _collect(popen: subprocess.Popen[bytes]) -> int | None:
    try:
        # Without this look, `wait` would report 0 for a child whose status somebody else collected.
        os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOWAIT)
    except (ChildProcessError, AttributeError) as lost:
        if isinstance(lost, ChildProcessError) and popen.returncode is None:
            popen.returncode = 0  # so that Popen never waits for this pid again: it may be somebody else's by now
            return None
    return popen.wait()


def _exit_descriptor(popen: subprocess.Popen[bytes]) -> int:
    """A descriptor that becomes readable when the process ends."""
    if hasattr(os, "pidfd_open"):
        try:
            return os.pidfd_open(popen.pid)
        except OSError:  # a kernel before 5.3, or a filter that forbids it
            pass
    return _waiter(popen.wait)


def _waiter(wait: Callable[[], object]) -> int:
    reading, writing = os.pipe()

    def until_the_end() -> None:
        wait()
        os.close(writing)

    threading.Thread(target=until_the_end, name="handrail-wait", daemon=True).start()
    return reading


def _pidfd(row: table.Process) -> int | None:
    """A descriptor for just that process; None if it is gone or its pid has a new owner."""
    try:
        fd = os.pidfd_open(row.pid)
    except (OSError, AttributeError):
        return None
    again = table.read(row.pid)
    if again is None or again.started != row.started:
        os.close(fd)
        return None
    return fd


def _signal_pidfd(fd: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        return


def _await_all(fds: Iterable[int]) -> None:
    """Until all are readable or a second has passed; closes them."""
    latest = monotonic() + _ROUND_S
    for fd in fds:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(max(0, (latest - monotonic()) * 1000))
        os.close(fd)


def _reap_adopted(pid: int) -> None:
    """Where the host is pid 1 or a subreaper, orphans become its children and their zombies ours to collect."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
