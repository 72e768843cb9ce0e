"""The seam between what is to be run and where it runs. A host starts processes; it decides nothing."""

from __future__ import annotations

from typing import Protocol

from handrail.process.cancel import Cancel
from handrail.process.supervise import OnOutput
from handrail.values.completed import Completed, Enforced
from handrail.values.invocation import Invocation


class Host(Protocol):
    """Runs invocations, each on the calling thread, any number at once."""

    @property
    def enforced(self) -> Enforced:
        """What holds for every command here."""
        ...

    def run(self, invocation: Invocation, *, cancel: Cancel, on_output: OnOutput | None = None) -> Completed:
        """Run to its end and return how that was; never raises for what the command did.

        On the main thread it is called within `process.interrupts.interruptible`: no signal handler raises in it.
        """
        ...

    def close(self) -> None:
        """Release what the host holds. Running calls are the caller's to cancel first. May be called twice."""
        ...
