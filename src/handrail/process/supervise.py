"""The one poll loop of a running command: its pipes, its end, its deadline, and a request to stop.

A command ends when its main process does, never when its pipe does: a background child may hold the pipe for hours.
There are no threads, no fixed sleeps and no polling intervals here; each wait ends with an event or a deadline.
"""

from __future__ import annotations

import select
import signal
from collections.abc import Callable, Iterable
from math import ceil
from time import monotonic

from handrail.process.cancel import Cancel, Stop
from handrail.process.child import Child
from handrail.values.completed import Captured, Completed, LeftBehind
from handrail.values.invocation import Invocation

OnOutput = Callable[[str, memoryview], None]
"""Called with the stream's name ("stdout", "stderr") and bytes valid only during the call; must not block or raise."""

# After the main process has ended, a helper such as `exec > >(cat)` may still have output to hand over. Under load
# 8 ms of silence lost it in 74 of 200 runs, 50 ms in none; 250 ms bounds a child that never falls silent.
SILENCE_S = 0.05
DRAIN_S = 0.25
# After SIGKILL a process is gone at once, unless the kernel holds it (a dead network disk): then we answer without it.
KILLED_S = 5.0
# poll(2) takes an int: a deadline of more than 24 days is waited for in pieces.
_MOST_MS = 2**31 - 1
# What a pipe can hold at most (/proc/sys/fs/pipe-max-size): more than that after the end is a writer that escaped.
REST_BYTES = 1024 * 1024


def supervise(
    child: Child, invocation: Invocation, started: float, cancel: Cancel, on_output: OnOutput | None
) -> Completed:
    """See `child` to its end and return how that was. `started` is when its start began, by the monotonic clock.

    Must run where signal handlers do not raise (`interrupts.deferred`): an exception here is a bug, and kills at once.
    """
    pump = _Pump(child, cancel, on_output)
    try:
        try:
            timed_out, cancelled = _until_over(pump, started, invocation.timeout_s)
            if timed_out or cancelled:
                _stop(child, pump, invocation.grace_s)
            else:
                _drain(pump)
        finally:
            left_behind = _finish(child, pump)
        status = child.status() if pump.exited else None
        captured = {name: capture.captured() for name, capture in child.captures.items()}
    finally:
        child.close()
    stopped = timed_out or cancelled
    return Completed(
        exit_code=None if stopped or status is None else status if status >= 0 else 128 - status,
        signal=_signal_name(-status) if status is not None and status < 0 else "SIGTERM" if stopped else None,
        timed_out=timed_out,
        cancelled=cancelled,
        duration_s=monotonic() - started,
        stdout=captured["stdout"],
        stderr=captured.get("stderr", Captured()),
        left_behind=() if stopped else left_behind,
        enforced=child.enforced,
    )


def _until_over(pump: _Pump, started: float, timeout_s: float | None) -> tuple[bool, bool]:
    """Until the main process ends. Returns (timed out, cancelled), at most one of them true."""
    deadline = None if timeout_s is None else started + timeout_s
    while not pump.exited:
        if pump.stop is not Stop.NO:
            return False, True
        if not pump.turn(deadline) and deadline is not None and monotonic() >= deadline:
            return True, False
    return False, False


def _drain(pump: _Pump) -> None:
    """The main process has ended: take what its helpers still write, for a bounded time."""
    latest = monotonic() + DRAIN_S
    while pump.open_pipes:
        now = monotonic()
        if now >= latest or not pump.turn(min(now + SILENCE_S, latest)):
            return


def _stop(child: Child, pump: _Pump, grace_s: float) -> None:
    """SIGTERM, then the grace period with output still read. SIGKILL is `_finish`'s."""
    if pump.stop == Stop.KILL:
        return
    pump.watch(child.terminate())
    latest = monotonic() + grace_s
    while (not pump.exited or pump.watched) and pump.stop < Stop.KILL and monotonic() < latest:
        pump.turn(latest)


def _finish(child: Child, pump: _Pump) -> tuple[LeftBehind, ...]:
    left_behind = child.sweep()
    latest = monotonic() + KILLED_S
    while not pump.exited and monotonic() < latest:
        pump.turn(latest)
    pump.read_rest()
    return left_behind


def milliseconds_until(moment: float | None) -> int | None:
    """What poll(2) is to be given to wait until `moment` (monotonic; None: for ever), or for a part of that time."""
    return None if moment is None else min(max(0, ceil((moment - monotonic()) * 1000)), _MOST_MS)


class _Pump:
    """Turns events into state: what has been read, whether the command ended, whether it is to stop."""

    def __init__(self, child: Child, cancel: Cancel, on_output: OnOutput | None) -> None:
        self.exited = False
        self.stop: Stop = Stop.NO
        self.watched: set[int] = set()
        self.open_pipes = {capture.fd: (name, capture) for name, capture in child.captures.items()}
        self._exit_fd = child.exit_fd
        self._cancel = cancel
        self._on_output = on_output
        self._poll = select.poll()
        for fd in (*self.open_pipes, self._exit_fd, cancel.fileno()):
            self._poll.register(fd, select.POLLIN)

    def turn(self, until: float | None) -> bool:
        """Wait for events until `until` (monotonic) and take them in; False if none came."""
        events = self._poll.poll(milliseconds_until(until))
        for fd, _ in events:
            if fd in self.open_pipes:
                self._read(fd)
            elif fd == self._exit_fd:
                self.exited = True
                self._poll.unregister(fd)
            elif fd in self.watched:
                self.watched.discard(fd)
                self._poll.unregister(fd)
            else:
                self.stop = self._cancel.acknowledge()
        return bool(events)

    def watch(self, fds: Iterable[int]) -> None:
        for fd in fds:
            self.watched.add(fd)
            self._poll.register(fd, select.POLLIN)

    def read_rest(self) -> None:
        """What is in the pipes now, without waiting for more."""
        for fd in list(self.open_pipes):
            room = REST_BYTES
            while room > 0 and (count := self._read(fd)):
                room -= count

    def _read(self, fd: int) -> int:
        name, capture = self.open_pipes[fd]
        arrived = capture.read()
        if arrived is None:
            return 0
        if not arrived:
            self._poll.unregister(fd)
            del self.open_pipes[fd]
        elif self._on_output is not None:
            self._on_output(name, arrived)
        return len(arrived)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # the real-time signals have no names of their own
        return f"SIG{number}"
