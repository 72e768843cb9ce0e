"""The seam between the poll loop and the way a command's processes are started and ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from handrail.process.capture import Capture
from handrail.values.completed import Enforced, LeftBehind


class Child(Protocol):
    """A started command. Its methods never block for longer than the kernel takes."""

    enforced: Enforced
    captures: Mapping[str, Capture]
    """By stream: "stdout" and "stderr", or "stdout" alone where they are merged."""
    exit_fd: int
    """Readable once the main process has ended."""

    def terminate(self) -> tuple[int, ...]:
        """SIGTERM to everything the command started.

        Returns descriptors, owned by the child, that become readable as those processes (but the main one) end.
        """
        ...

    def sweep(self) -> tuple[LeftBehind, ...]:
        """SIGKILL whatever is left of the command and name it. Call it once the main process has ended or must now."""
        ...

    def status(self) -> int | None:
        """After `exit_fd` is readable: the exit code, -N for a death by signal N, None if it could not be read."""
        ...

    def close(self) -> None:
        """Give up every descriptor."""
        ...


class NotStarted(Exception):
    """No process ran. Travels only from a start to the engine that asked for it."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.exit_code = exit_code
