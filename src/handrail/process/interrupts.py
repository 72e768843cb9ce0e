"""Lets a signal handler that raises (Ctrl-C does) end a call in order: the command is stopped first, then it is raised.

Python runs handlers between any two bytecodes of the main thread, so a KeyboardInterrupt can land between a fork and
the line that remembers the child, or in the middle of the stop: the child would then be nobody's.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

from handrail.process.cancel import Cancel
from handrail.process.spawn import no_room

# Those whose handlers raise in practice: Ctrl-C, a service's SIGTERM and SIGHUP, a watchdog's alarm.
_DEFERRED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)

_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def deferred(cancel: Cancel) -> Generator[None]:
    """Within it, the host's handlers run as ever, but what they raise stops `cancel` and waits for the end.

    Only the first exception is raised. On other threads than the main one it does nothing: no handlers run there.
    Raises OSError where `cancel` can have no descriptor.
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
                cancel.request()

        return run_and_keep

    # A signal that comes after Python's last look and before the wait begins would not end that wait: Python runs
    # handlers only between bytecodes. What C writes into the descriptor, at the very moment, does.
    before = signal.set_wakeup_fd(cancel.wakeup_fd(), warn_on_full_buffer=False)
    handlers = {number: handler for number in _DEFERRED if callable(handler := signal.getsignal(number))}
    for number, handler in handlers.items():
        signal.signal(number, wrapped(handler))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        _hand_on(cancel.heard(), before)
        if raised:
            raise raised[0]


def _hand_on(numbers: bytes, fd: int) -> None:
    """An event loop that waits for signals in its own descriptor gets those that came to ours."""
    if fd >= 0 and numbers:
        with suppress(OSError):
            os.write(fd, numbers)


@contextmanager
def interruptible(cancel: Cancel) -> Generator[None]:
    """For the start and the end of one command: see `deferred`. Raises NotStarted for want of a descriptor."""
    try:
        cancel.fileno()  # before there is a child that could not be stopped
    except OSError as failure:
        raise no_room() from failure
    with deferred(cancel):
        yield
