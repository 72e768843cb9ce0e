"""This machine as a host: commands as direct children (tier T0)."""

from __future__ import annotations

from handrail.process.cancel import Cancel
from handrail.process.direct import ENFORCED, run_direct
from handrail.process.supervise import OnOutput
from handrail.values.completed import Completed
from handrail.values.invocation import Invocation


class LocalHost:
    """A `Host` (see base.py) without state: each call stands alone."""

    enforced = ENFORCED

    def run(self, invocation: Invocation, *, cancel: Cancel, on_output: OnOutput | None = None) -> Completed:
        return run_direct(invocation, cancel, on_output)

    def close(self) -> None:
        """Nothing is held between calls."""
