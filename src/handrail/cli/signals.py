"""Turns SIGTERM and SIGHUP into an exception on the main thread, so that a running command is stopped before we end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class Signalled(BaseException):
    """Like KeyboardInterrupt not an Exception, so that nothing on the way takes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        return 128 + self.number


@contextmanager
def raised() -> Generator[None]:
    """Raise `Signalled` for SIGTERM and SIGHUP; a SIGHUP that is ignored, as under nohup, stays ignored."""
    caught = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        caught.append(signal.SIGHUP)
    before = {number: signal.signal(number, _raise) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupt_main() -> None:
    """From any thread: wake the main thread out of whatever it waits in, as Ctrl-C would."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Signalled(number)
