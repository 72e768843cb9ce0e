"""What a signal handler raises comes at the end of a call; what it does, at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from handrail.process import Cancel, Stop, run
from handrail.process.interrupts import deferred


@pytest.fixture
def cancel() -> Iterator[Cancel]:
    latch = Cancel()
    yield latch
    latch.close()


def test_ctrl_c_wakes_at_once_and_is_raised_at_the_end(cancel: Cancel) -> None:
    order: list[Stop] = []

    def work() -> None:
        with deferred(cancel):
            os.kill(os.getpid(), signal.SIGINT)
            order.append(cancel.wanted)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert order == [Stop.POLITELY]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_does_not_raise_runs_at_once_and_wakes_nobody(cancel: Cancel) -> None:
    calls: list[str] = []

    def note(_number: int, _frame: object) -> None:
        calls.append("handled")

    before = signal.signal(signal.SIGTERM, note)
    try:
        with deferred(cancel):
            os.kill(os.getpid(), signal.SIGTERM)
            assert calls == ["handled"]
        assert (calls, cancel.wanted) == (["handled"], Stop.NO)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_only_the_first_exception_is_raised_and_handlers_are_put_back(cancel: Cancel) -> None:
    def fail(number: int, _frame: object) -> None:
        raise LookupError(number)

    def work() -> None:
        with deferred(cancel):
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
def test_signals_without_a_python_handler_are_left_alone(cancel: Cancel, disposition: signal.Handlers) -> None:
    before = signal.signal(signal.SIGTERM, disposition)
    try:
        with deferred(cancel):
            assert signal.getsignal(signal.SIGTERM) is disposition
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_change_no_handler(cancel: Cancel) -> None:
    seen: list[object] = []

    def work() -> None:
        with deferred(cancel):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_an_event_loops_signals_reach_it_though_they_came_during_a_call() -> None:
    import asyncio

    async def main() -> list[str]:
        told: list[str] = []
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: told.append("usr1"))
        run(["bash", "-c", f"kill -USR1 {os.getpid()}; sleep 0.1"])
        await asyncio.sleep(0.05)
        return told

    assert asyncio.run(main()) == ["usr1"]


def test_two_interrupts_close_together_do_not_lock_each_other_out(cancel: Cancel) -> None:
    with cancel._lock:
        cancel.request()
    assert cancel.wanted is Stop.POLITELY


PESTERED = """
import os, signal, sys
from handrail.process import run
signal.signal(signal.SIGALRM, signal.default_int_handler)
for n in range(300):
    signal.setitimer(signal.ITIMER_REAL, 0.0005 + n * 0.00001)
    try:
        run(["sleep", "50"], grace_s=0)
    except KeyboardInterrupt:
        continue
    sys.exit("a signal was lost")
print("none lost")
"""


def test_a_signal_at_any_moment_of_a_call_ends_it() -> None:
    ended = subprocess.run([sys.executable, "-c", PESTERED], capture_output=True, text=True, timeout=50, check=False)
    assert (ended.stdout, ended.returncode) == ("none lost\n", 0), ended.stderr
