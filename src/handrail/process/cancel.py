"""A request to stop one running command, made from any thread and seen at once by its poll loop.

It owns a wake-up descriptor. It kills nothing itself.
"""

from __future__ import annotations

import os
import threading
from enum import IntEnum
from io import FileIO


class Stop(IntEnum):
    """How a command is to end. KILL leaves no time for the command to tidy up."""

    NO = 0
    POLITELY = 1
    KILL = 2


class Cancel:
    """A latch that can only be turned further: NO, then POLITELY (SIGTERM, grace, SIGKILL), then KILL (at once).

    The descriptor is opened by whoever waits on it first; a request made before that is not lost. A request may come
    from a signal handler that interrupts another one: hence the lock that its own thread can take twice.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pipe: tuple[FileIO, FileIO] | None = None
        self._wanted = Stop.NO
        self._heard = b""

    @property
    def wanted(self) -> Stop:
        return self._wanted

    def fileno(self) -> int:
        """Readable as soon as a stop was requested, and again each time a harder one is. Raises OSError."""
        return self._open()[0].fileno()

    def wakeup_fd(self) -> int:
        """Whatever is written here makes the descriptor readable, and is told by `heard`. Raises OSError."""
        return self._open()[1].fileno()

    def request(self, stop: Stop = Stop.POLITELY) -> None:
        with self._lock:
            if stop > self._wanted:
                self._wanted = stop
                self._nudge()

    def acknowledge(self) -> Stop:
        """Take note of what is wanted now, and make the descriptor quiet until more is."""
        with self._lock:
            if self._pipe is not None:
                self._heard += self._pipe[0].read(4096) or b""
            return self._wanted

    def heard(self) -> bytes:
        """What others wrote to `wakeup_fd`."""
        self.acknowledge()
        return self._heard.replace(_NUDGE, b"")

    def close(self) -> None:
        with self._lock:
            if self._pipe is not None:
                reading, writing = self._pipe
                self._pipe = None
                reading.close()
                writing.close()

    def _open(self) -> tuple[FileIO, FileIO]:
        with self._lock:
            if self._pipe is None:
                # File objects, since those close themselves if an exception takes this from its owner. A `__del__` of
                # our own would not do: Python ignores what is raised in one, a Ctrl-C too.
                reading, writing = os.pipe()
                self._pipe = FileIO(reading, "rb"), FileIO(writing, "wb")
                for fd in (reading, writing):
                    os.set_blocking(fd, False)
                if self._wanted is not Stop.NO:
                    self._nudge()
            return self._pipe

    def _nudge(self) -> None:
        if self._pipe is not None:
            self._pipe[1].write(_NUDGE)  # where there is no room it is readable anyway


_NUDGE = b"\0"  # no signal has this number, so it cannot be taken for what `signal.set_wakeup_fd` writes
