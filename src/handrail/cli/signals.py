"""Turns SIGTERM and SIGHUP into an exception on the main thread, so that a running command is stopped before we end."""

from __future__ import annotations

import signal
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
def raising() -> Generator[None]:
    """Within it, on the main thread, the first SIGTERM or SIGHUP raises; later ones have nothing to add.

    A SIGHUP that is ignored, as under nohup, stays ignored.
    """
    raised: list[int] = []

    def handler(number: int, _frame: FrameType | None) -> None:
        if not raised:
            raised.append(number)
            raise Signalled(number)

    caught = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in caught}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
