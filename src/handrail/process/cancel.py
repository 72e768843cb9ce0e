"""A request to stop one running command, made from any thread and seen at once by its poll loop.

It owns a wake-up descriptor. It kills nothing itself.
"""

from __future__ import annotations

import os
import threading
from enum import IntEnum


class Stop(IntEnum):
    """How a command is to end. KILL leaves no time for the command to tidy up."""

    NO = 0
    POLITELY = 1
    KILL = 2


class Cancel:
    """A latch that can only be turned further: NO, then POLITELY (SIGTERM, grace, SIGKILL), then KILL (at once).

    The descriptor is opened by whoever waits on it first; a request made before that is not lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: tuple[int, int] | None = None
        self._wanted = Stop.NO

    @property
    def wanted(self) -> Stop:
        return self._wanted

    def fileno(self) -> int:
        """Readable as soon as a stop was requested, and again each time a harder one is. Raises OSError."""
        with self._lock:
            if self._pipe is None:
                self._pipe = os.pipe()
                if self._wanted is not Stop.NO:
                    os.write(self._pipe[1], b"!")
            return self._pipe[0]

    def request(self, stop: Stop = Stop.POLITELY) -> None:
        with self._lock:
            if stop > self._wanted:
                self._wanted = stop
                if self._pipe is not None:
                    os.write(self._pipe[1], b"!")

    def acknowledge(self) -> Stop:
        """Take note of what is wanted now, and make the descriptor quiet until more is. Call it when readable."""
        with self._lock:
            if self._pipe is not None:
                os.read(self._pipe[0], 8)
            return self._wanted

    def close(self) -> None:
        with self._lock:
            if self._pipe is not None:
                reading, writing = self._pipe
                self._pipe = None
                os.close(reading)
                os.close(writing)
