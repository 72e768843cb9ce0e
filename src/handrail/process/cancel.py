"""A request to stop one running command, made from any thread and seen at once by its poll loop.

It owns a wake-up descriptor. It kills nothing itself.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from enum import IntEnum


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
        self._pipe: tuple[int, int] | None = None
        self._wanted = Stop.NO
        self._heard = b""

    @property
    def wanted(self) -> Stop:
        return self._wanted

    def fileno(self) -> int:
        """Readable as soon as a stop was requested, and again each time a harder one is. Raises OSError."""
        return self._open()[0]

    def wakeup_fd(self) -> int:
        """Whatever is written here makes the descriptor readable, and is told by `heard`. Raises OSError."""
        return self._open()[1]

    def request(self, stop: Stop = Stop.POLITELY) -> None:
        with self._lock:
            if stop > self._wanted:
                self._wanted = stop
                self._nudge()

    def acknowledge(self) -> Stop:
        """Take note of what is wanted now, and make the descriptor quiet until more is."""
        with self._lock:
            if self._pipe is not None:
                with suppress(BlockingIOError):
                    self._heard += os.read(self._pipe[0], 4096)
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
                os.close(reading)
                os.close(writing)

    def __del__(self) -> None:
        """For one that an exception took from its owner before it was closed."""
        self.close()

    def _open(self) -> tuple[int, int]:
        with self._lock:
            if self._pipe is None:
                reading, writing = os.pipe()
                os.set_blocking(reading, False)
                os.set_blocking(writing, False)
                self._pipe = reading, writing
                if self._wanted is not Stop.NO:
                    self._nudge()
            return self._pipe

    def _nudge(self) -> None:
        if self._pipe is not None:
            with suppress(BlockingIOError):  # so full that it is readable anyway
                os.write(self._pipe[1], _NUDGE)


_NUDGE = b"\0"  # no signal has this number, so it cannot be taken for what `signal.set_wakeup_fd` writes
