"""Hands a command's output to the host program's listener as it comes, on a thread of its own.

The poll loop only appends to a bounded queue, so a listener that sleeps or fails cannot hold up or break a command:
what it was too slow for is skipped and said, and after an exception it hears nothing more of that command.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import thread_time

from handrail.text.clean import Cleaner
from handrail.text.decode import Decoder
from handrail.values.event import Chunk, Ended, Event, Lines, Skipped, Started

Listener = Callable[[Event], None]

# A terminal takes some 10 MB/s; this is half a second's delay for it, and little for a host program's memory.
_PENDING_BYTES = 4 * 1024 * 1024
# This thread and the poll loop need Python's one lock. While the command runs this one rests for three times as long as
# it worked (by its processor's clock: who waits for a terminal holds no lock), or a flood makes the loop late for its
# deadline: 12 s for a limit of 5 s when measured. What it then misses is skipped, and said.
_REST = 3
# A line longer than this is passed on in pieces, so that output without line ends cannot pile up.
_LINE_CHARS = 64 * 1024


class Feed:
    """One listener's queue and thread, started with the first command; for any number of commands at once."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._queue: deque[Started | Chunk | Skipped | Ended] = deque()
        self._pending = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._calls: dict[int, _Call] = {}
        self._closing = False

    def start(self, event: Started) -> None:
        with self._changed:
            self._calls[event.call] = _Call()
            if self._thread is None:
                self._thread = threading.Thread(target=self._deliver, name="handrail-listener", daemon=True)
                self._thread.start()
            self._append(event)

    def output(self, call: int) -> Callable[[str, memoryview], None]:
        """What the engine calls with each piece of output; it never waits."""
        skipped: dict[str, int] = {}

        def put(stream: str, data: memoryview) -> None:
            with self._changed:
                if self._pending + len(data) > _PENDING_BYTES:
                    skipped[stream] = skipped.get(stream, 0) + len(data)
                    return
                if stream in skipped:
                    self._append(Skipped(call, stream, skipped.pop(stream)))
                self._pending += len(data)
                self._append(Chunk(call, stream, bytes(data)))

        self._calls[call].skipped = skipped
        return put

    def end(self, call: int, wait_s: float) -> Delivery:
        """The command is over: wait at most `wait_s` seconds for the listener to have heard all of it."""
        with self._changed:
            state = self._calls[call]
            state.is_over = True
            for stream, total in state.skipped.items():
                self._append(Skipped(call, stream, total))
            self._append(Ended(call))
            self._changed.wait_for(lambda: state.heard_all, wait_s)
            return Delivery(complete=state.heard_all, failure=state.failure)

    def close(self, wait_s: float) -> None:
        """Let the thread end once it has delivered what is queued; wait at most `wait_s` seconds for that."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(wait_s)

    def _append(self, event: Started | Chunk | Skipped | Ended) -> None:
        self._queue.append(event)
        self._changed.notify_all()

    def _deliver(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                event = self._queue.popleft()
                if isinstance(event, Chunk):
                    self._pending -= len(event.data)
                state = self._calls[event.call]
            before = thread_time()
            for each in state.with_lines(event):
                self._tell(state, each)
            with self._changed:
                self._changed.wait_for(state.has_ended, _REST * (thread_time() - before))
            if isinstance(event, Ended):
                with self._changed:
                    state.heard_all = True
                    del self._calls[event.call]
                    self._changed.notify_all()

    def _tell(self, state: _Call, event: Event) -> None:
        if state.failure is not None:
            return
        try:
            self._listener(event)
        except BaseException as failure:
            state.failure = type(failure).__name__
            import logging

            logging.getLogger("handrail").exception("A listener failed and hears no more of this command.")


@dataclass(frozen=True, slots=True)
class Delivery:
    """Whether the listener heard everything in time, and the type of the exception it raised, if it did."""

    complete: bool
    failure: str | None


@dataclass(slots=True)
class _Call:
    """One command as the delivering thread sees it."""

    skipped: dict[str, int] = field(default_factory=dict[str, int])
    streams: dict[str, tuple[Decoder, Cleaner]] = field(default_factory=dict[str, tuple[Decoder, Cleaner]])
    failure: str | None = None
    is_over: bool = False
    heard_all: bool = False

    def has_ended(self) -> bool:
        return self.is_over

    def with_lines(self, event: Started | Chunk | Skipped | Ended) -> list[Event]:
        """The event, and the lines that it finishes."""
        if isinstance(event, Chunk):
            if event.stream not in self.streams:
                # Nothing told can be taken back, so no scrollback: a line is final once its end was seen.
                self.streams[event.stream] = (Decoder(), Cleaner(scrollback=0, max_line=_LINE_CHARS))
            decoder, cleaner = self.streams[event.stream]
            lines = tuple(line.text for line in cleaner.feed(decoder.feed(event.data)))
            return [event, Lines(event.call, event.stream, lines)] if lines else [event]
        if isinstance(event, Ended):
            return [*self._unfinished(event.call), event]
        return [event]

    def _unfinished(self, call: int) -> list[Event]:
        told: list[Event] = []
        for stream, (decoder, cleaner) in self.streams.items():
            lines = tuple(line.text for line in [*cleaner.feed(decoder.finish()), *cleaner.finish()])
            if lines:
                told.append(Lines(call, stream, lines))
        return told
