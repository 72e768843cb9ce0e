"""Turns SIGTERM and SIGHUP into an exception on the main thread, so that a running command is stopped before we end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

_AGAIN_S = 0.05


class Signalled(BaseException):
    """Like KeyboardInterrupt not an Exception, so that nothing on the way takes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        return 128 + self.number


class Signals:
    """Raises `Signalled` once; what comes while we are already ending has nothing to add."""

    def __init__(self) -> None:
        self._raised = threading.Event()
        self._sending = threading.Lock()

    @contextmanager
    def raising(self) -> Generator[None]:
        """Within it, on the main thread. A SIGHUP that is ignored, as under nohup, stays ignored."""
        caught = [signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            caught.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._raise) for number in caught}
        try:
            yield
        finally:
            with self._sending:  # from here on a signal of ours would end the process
                self._raised.set()
            for number, handler in before.items():
                signal.signal(number, handler)

    def interrupt_main(self) -> None:
        """From any other thread: have `Signalled` raised on the main thread, whatever it waits in."""
        while not self._raised.is_set():
            with self._sending:
                if not self._raised.is_set():
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            # Between its last look for signals and a system call that waits, the main thread is deaf to a single one.
            self._raised.wait(_AGAIN_S)

    def _raise(self, number: int, _frame: FrameType | None) -> None:
        if not self._raised.is_set():
            self._raised.set()
            raise Signalled(number)
