"""What a listener is told while a command runs, in this order: one Started, any of the others, one Ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Started:
    """A command is about to run. `call` numbers a session's commands from 1."""

    call: int
    command: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Raw bytes as they arrived on `stream` ("stdout" or "stderr"; "stdout" for merged streams)."""

    call: int
    stream: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Lines:
    """Finished lines of `stream`, cleaned, without their line ends; the last unfinished one comes before Ended."""

    call: int
    stream: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """The listener was too slow: this many bytes of `stream` were not passed on to it (the result has them)."""

    call: int
    stream: str
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The command has ended."""

    call: int


Event = Started | Chunk | Lines | Skipped | Ended
