"""Runs a blocking call for an async caller, so that cancelling the caller really stops what it started.

Works under asyncio and trio. Each call has a worker thread of its own: no shared pool can fill up underneath.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from handrail.process.cancel import Cancel

T = TypeVar("T")


async def in_worker_thread(call: Callable[[Cancel], T]) -> T:
    """`call(cancel)` on a thread. If this task is cancelled, stop the call and wait for its end before going on."""
    work = _Work(call)
    try:
        unlimited = anyio.CapacityLimiter(math.inf)
        return await anyio.to_thread.run_sync(work.run, abandon_on_cancel=True, limiter=unlimited)
    except anyio.get_cancelled_exc_class():
        if work.has_begun_when_dropped():
            work.cancel.request()
            await _until(work.ended)
        raise
    finally:
        work.cancel.close()


class _Work(Generic[T]):
    """One call. Either the thread begins it or the cancelled caller drops it, never both."""

    def __init__(self, call: Callable[[Cancel], T]) -> None:
        self.cancel = Cancel()
        self.ended = anyio.Event()
        self._call = call
        self._lock = threading.Lock()
        self._begun = False
        self._dropped = False

    def run(self) -> T:
        with self._lock:
            if self._dropped:
                raise RuntimeError("the caller has gone")
            self._begun = True
        try:
            return self._call(self.cancel)
        finally:
            anyio.from_thread.run_sync(self.ended.set)

    def has_begun_when_dropped(self) -> bool:
        with self._lock:
            self._dropped = True
            return self._begun


async def _until(ended: anyio.Event) -> None:
    """Shielded, since cancellation under anyio is level-triggered: every further `await` would be cancelled again."""
    with anyio.CancelScope(shield=True):
        while not ended.is_set():
            try:
                await ended.wait()
            except anyio.get_cancelled_exc_class():
                # A second `task.cancel()` of asyncio passes the shield. The first one is raised in the end anyway.
                continue
