"""Holds back Ctrl-C and SIGTERM handlers while a step that must not be cut in two runs on the main thread.

Python runs signal handlers between bytecodes of the main thread, so a KeyboardInterrupt can land between the
fork and the line that remembers the child: the child would then be nobody's. Held signals are delivered right after.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held() -> Iterator[None]:
    """Postpone the host's Python-level SIGINT and SIGTERM handlers. Does nothing on other threads: none run there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    handlers = {number: handler for number in _HELD if callable(handler := signal.getsignal(number))}
    for each in handlers:
        signal.signal(each, lambda number, frame: arrived.append((number, frame)))
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        for number, frame in arrived:
            handlers[signal.Signals(number)](number, frame)
