"""Passes a command's raw output on to our own streams as it comes. It is a toolbox's listener, and runs on its thread.

Bytes go out as they came in: no decoding, no colours taken away. Where nobody reads us any more it has the command
stopped; where somebody reads too slowly it counts what was skipped, so that a gap is never passed off as the whole.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from handrail.values.event import Chunk, Ended, Event, Skipped

_FDS = {"stdout": 1, "stderr": 2}


class LiveOutput:
    """`stop` is called once, on the listener's thread, when a stream can no longer be written to."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.skipped_bytes = 0
        self.failure: OSError | None = None
        self.at_line_start = True
        self._stop = stop
        self._ended = threading.Event()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Chunk):
            self._pass_on(_FDS[event.stream], event.data)
        elif isinstance(event, Skipped):
            self.skipped_bytes += event.total_bytes
        elif isinstance(event, Ended):
            self._ended.set()

    def wait(self) -> None:
        """Until everything was passed on, however slowly it is read."""
        self._ended.wait()

    def _pass_on(self, fd: int, data: bytes) -> None:
        if self.failure is not None:
            return
        try:
            _write_all(fd, data)
        except OSError as failure:  # nobody reads, or the disk is full
            self.failure = failure
            self._stop()
        else:
            self.at_line_start = data.endswith(b"\n")


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:  # whoever shares the terminal made it non-blocking
            select.select([], [fd], [])
