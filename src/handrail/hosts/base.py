"""The seam between what is to be run and where it runs. A host starts processes; it decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from handrail.process.cancel import Cancel
from handrail.process.supervise import OnOutput
from handrail.values.completed import Completed, Enforced
from handrail.values.invocation import Invocation
from handrail.values.place import Place


class Host(Protocol):
    """Runs invocations, each on the calling thread, any number at once."""

    @property
    def enforced(self) -> Enforced:
        """What holds for every command here that asks for nothing more."""
        ...

    def open(self, place: Place) -> None:
        """Get ready for one session, before anything is run. Raises SandboxUnavailable where that cannot be had."""
        ...

    def seen(self, path: str) -> str:
        """Where a command finds what the session has at `path`, one of the directories of its place or in one."""
        ...

    def variables(self, *, network: bool) -> Mapping[str, str]:
        """What a command's environment must hold here, over all else."""
        ...

    def run(self, invocation: Invocation, *, cancel: Cancel, on_output: OnOutput | None = None) -> Completed:
        """Run to its end and return how that was; never raises for what the command did.

        On the main thread it is called within `process.interrupts.interruptible`: no signal handler raises in it.
        """
        ...

    def close(self) -> None:
        """Release what the host holds. Running calls are the caller's to cancel first. May be called twice."""
        ...
