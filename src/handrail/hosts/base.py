"""The seam between what is to be run and where it runs. A host starts processes; it decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from handrail.process.cancel import Cancel
from handrail.values.completed import Completed
from handrail.values.invocation import Invocation

OnOutput = Callable[[str, memoryview], None]
"""Called with the stream's name ("stdout", "stderr") and bytes valid only during the call; must not block or raise."""


class Host(Protocol):
    """Runs invocations, each on the calling thread, any number at once."""

    def run(self, invocation: Invocation, *, cancel: Cancel | None = None, on_output: OnOutput | None = None) -> Completed:
        """Run to its end and return how that was; never raises for what the command did."""
        ...

    def close(self) -> None:
        """Release what the host holds. Running calls are the caller's to cancel first. May be called twice."""
        ...
