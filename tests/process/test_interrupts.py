"""What a signal handler raises comes at the end of a call; what it does, at once."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from handrail.process.interrupts import deferred


def test_ctrl_c_wakes_at_once_and_is_raised_at_the_end() -> None:
    order: list[str] = []

    def work() -> None:
        with deferred(lambda: order.append("woken")):
            os.kill(os.getpid(), signal.SIGINT)
            order.append("reached")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert order == ["woken", "reached"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_does_not_raise_runs_at_once_and_wakes_nobody() -> None:
    calls: list[str] = []
    def note(_number: int, _frame: object) -> None:
        calls.append("handled")

    before = signal.signal(signal.SIGTERM, note)
    try:
        with deferred(lambda: calls.append("woken")):
            os.kill(os.getpid(), signal.SIGTERM)
            assert calls == ["handled"]
        assert calls == ["handled"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_only_the_first_exception_is_raised_and_handlers_are_put_back() -> None:
    def fail(number: int, _frame: object) -> None:
        raise LookupError(number)

    def work() -> None:
        with deferred(lambda: None):
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGTERM, fail)
    try:
        with pytest.raises(LookupError):
            work()
        assert signal.getsignal(signal.SIGTERM) is fail
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("disposition", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_without_a_python_handler_are_left_alone(disposition: signal.Handlers) -> None:
    before = signal.signal(signal.SIGTERM, disposition)
    try:
        with deferred(lambda: None):
            assert signal.getsignal(signal.SIGTERM) is disposition
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_change_no_handler() -> None:
    seen: list[object] = []

    def work() -> None:
        with deferred(lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
