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

    The descriptor stays readable from the first request on, so a request made before the loop starts is not lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if hasattr(os, "pipe2") else os.pipe()
        self._wanted = Stop.NO
        self._closed = False

    @property
    def wanted(self) -> Stop:
        return self._wanted

    def fileno(self) -> int:
        """Readable as soon as a stop was requested, and again each time a harder one is."""
        return self._read_fd

    def request(self, stop: Stop = Stop.POLITELY) -> None:
        with self._lock:
            if stop > self._wanted and not self._closed:
                self._wanted = stop
                os.write(self._write_fd, b"!")

    def acknowledge(self) -> Stop:
        """Take note of what is wanted now, and make the descriptor quiet until more is."""
        with self._lock:
            os.read(self._read_fd, 8)
            return self._wanted

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._read_fd)
                os.close(self._write_fd)
