"""Lets a signal handler that raises (Ctrl-C does) end a call in order: the command is stopped first, then it is raised.

Python runs handlers between any two bytecodes of the main thread, so a KeyboardInterrupt can land between a fork and
the line that remembers the child, or in the middle of the stop: the child would then be nobody's.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

# Those whose handlers raise in practice: Ctrl-C, a service's SIGTERM and SIGHUP, a watchdog's alarm.
_DEFERRED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)

_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def deferred(wake: Callable[[], None]) -> Generator[None]:
    """Within it, the host's handlers run as ever, but what they raise waits for the end; `wake` is called at once.

    Only the first exception is raised. On other threads than the main one it does nothing: no handlers run there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raised: list[BaseException] = []

    def wrapped(handler: _Handler) -> _Handler:
        def run_and_keep(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except BaseException as exception:  # noqa: BLE001 - kept, and raised below
                raised.append(exception)
                wake()

        return run_and_keep

    handlers = {number: handler for number in _DEFERRED if callable(handler := signal.getsignal(number))}
    for number, handler in handlers.items():
        signal.signal(number, wrapped(handler))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if raised:
            raise raised[0]
