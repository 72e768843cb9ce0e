"""Lets a signal handler that raises (Ctrl-C does) end a call in order: the command is stopped first, then it is raised.

Python runs handlers between any two bytecodes of the main thread, so a KeyboardInterrupt can land between a fork and
the line that remembers the child, or in the middle of the stop: the child would then be nobody's.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping
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

    handlers = {number: handler for number in _DEFERRED if callable(handler := signal.getsignal(number))}
    try:
        for number, handler in handlers.items():
            signal.signal(number, wrapped(handler))
        # From here on nothing is raised by a handler, until the last one is put back.
        with _woken_by_signals(cancel):
            yield
    finally:
        _put_back(handlers, raised)
        if raised:
            raise raised[0]


def _put_back(handlers: Mapping[signal.Signals, _Handler], raised: list[BaseException]) -> None:
    """All of them, even if the first that is back raises before the next one is."""
    for number, handler in handlers.items():
        try:
            signal.signal(number, handler)
        except BaseException as exception:  # noqa: BLE001 - raised by `deferred`, once all are back
            raised.append(exception)
            signal.signal(number, handler)


@contextmanager
def _woken_by_signals(cancel: Cancel) -> Generator[None]:
    """A signal that comes after Python's last look and before a wait begins would not end that wait.

    Python runs handlers only between bytecodes. What C writes into the descriptor, at the very moment, ends it.
    """
    try:
        fd = cancel.wakeup_fd()
    except OSError:  # no descriptor is left; then a signal is heard at the end of a wait, and waits are bounded
        yield
        return
    before = signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before, warn_on_full_buffer=False)
        _hand_on(cancel.heard(), before)


def _hand_on(numbers: bytes, fd: int) -> None:
    """An event loop that waits for signals in its own descriptor gets those that came to ours."""
    if fd >= 0 and numbers:
        with suppress(OSError):
            os.write(fd, numbers)


@contextmanager
def interruptible(cancel: Cancel) -> Generator[None]:
    """For a whole call, from before it holds anything to after: see `deferred`.

    Raises NotStarted where there is no descriptor by which the call could be stopped.
    """
    with deferred(cancel):
        try:
            cancel.fileno()  # before there is a child that could not be stopped
        except OSError as failure:
            raise no_room() from failure
        yield
