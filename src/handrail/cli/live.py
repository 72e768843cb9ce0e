"""Passes a command's raw output on to our own streams as it comes: no decoding, no colours taken away, nothing lost.

A listener would not do: it never holds a command up, and so may miss something. Here a slow reader slows the command
down, as in any pipeline, but not past its time limit and not once it is to be stopped.
"""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from time import monotonic

from handrail.hosts.base import Host
from handrail.process.cancel import Cancel, Stop
from handrail.process.supervise import OnOutput, milliseconds_until
from handrail.values.completed import Completed, Enforced
from handrail.values.invocation import Invocation
from handrail.values.place import Place

_FDS = {"stdout": 1, "stderr": 2}
_NEWLINE = ord("\n")
_PIECE = 4096  # PIPE_BUF: a pipe that is ready takes this much without waiting


class PassingHost:
    """A `Host` that runs commands on another one and writes what they print to our stdout and stderr.

    `failure` is why that could not go on (then the command was stopped), `missing_bytes` what was left out after the
    command's time was over, `at_line_start` whether the last byte written ended a line.
    """

    def __init__(self, host: Host) -> None:
        self.failure: OSError | None = None
        self.missing_bytes = 0
        self.at_line_start = True
        self._host = host

    @property
    def enforced(self) -> Enforced:
        return self._host.enforced

    def open(self, place: Place) -> None:
        self._host.open(place)

    def seen(self, path: str) -> str:
        return self._host.seen(path)

    def variables(self, *, network: bool) -> Mapping[str, str]:
        return self._host.variables(network=network)

    def run(self, invocation: Invocation, *, cancel: Cancel, on_output: OnOutput | None = None) -> Completed:
        patience = _Patience(invocation.timeout_s, cancel)

        def pass_on(stream: str, data: memoryview) -> None:
            if on_output is not None:
                on_output(stream, data)
            if self.failure is None:
                self._write(_FDS[stream], data, patience, cancel)

        return self._host.run(invocation, cancel=cancel, on_output=pass_on)

    def close(self) -> None:
        self._host.close()

    def _write(self, fd: int, data: memoryview, patience: _Patience, cancel: Cancel) -> None:
        rest = data
        try:
            while rest and patience.until_ready(fd):
                rest = rest[_write_some(fd, rest[:_PIECE]) :]
        except OSError as failure:  # nobody reads any more, or the disk is full
            self.failure = failure
            cancel.request()
        else:
            self.missing_bytes += len(rest)
            self.at_line_start = data[-1] == _NEWLINE


class _Patience:
    """How long one command may be held up by whoever reads its output."""

    def __init__(self, timeout_s: float | None, cancel: Cancel) -> None:
        self._deadline = None if timeout_s is None else monotonic() + timeout_s
        self._cancel = cancel
        self._polls: dict[int, select.poll] = {}

    def until_ready(self, fd: int) -> bool:
        """Whether `fd` takes more, once it does, or the command's time is over, or it is to be stopped."""
        left_ms = milliseconds_until(self._deadline)
        if left_ms == 0 or self._cancel.wanted is not Stop.NO:
            return bool(_poll_for(fd).poll(0))
        events = self._watching(fd).poll(left_ms)
        return any(ready == fd for ready, _ in events)

    def _watching(self, fd: int) -> select.poll:
        if fd not in self._polls:
            self._polls[fd] = _poll_for(fd)
            self._polls[fd].register(self._cancel.fileno(), select.POLLIN)
        return self._polls[fd]


def _poll_for(fd: int) -> select.poll:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return poll


def _write_some(fd: int, data: memoryview) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:  # whoever shares the terminal made it non-blocking, and was quicker
        return 0
