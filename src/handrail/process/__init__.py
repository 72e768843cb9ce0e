"""The bare engine: runs one command, bounded and answerable, unguarded. Everything above adds rails to this.

`run` asks nobody and confines nothing; a model reaches it only through a `Toolbox`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext

from handrail.process.cancel import Cancel, Stop
from handrail.process.child import NotStarted
from handrail.process.direct import not_run, run_direct
from handrail.process.interrupts import interruptible
from handrail.process.supervise import OnOutput
from handrail.values.completed import Completed
from handrail.values.invocation import Invocation, OutputLimits

__all__ = ["Cancel", "Completed", "Invocation", "OutputLimits", "Stop", "run"]


def run(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = 120.0,
    grace_s: float = 2.0,
    merge: bool = True,
    output: OutputLimits | None = None,
    spill_dir: str | None = None,
    cancel: Cancel | None = None,
    on_output: OnOutput | None = None,
) -> Completed:
    """Run an exact argv to its end on the calling thread.

    `cwd` and `env` are the host's own where not given. `timeout_s` (None: no limit) and `grace_s` are seconds. See
    `Invocation` and `Completed` for the rest. Raises ValueError for an empty argv or a timeout that is none; never for
    what the command did.
    """
    if not argv or isinstance(argv, str):
        raise ValueError("argv must be a list of words and hold at least the program")
    if timeout_s is not None and not timeout_s > 0:
        raise ValueError("timeout_s must be more than 0, or None for no limit")
    invocation = Invocation(
        argv=tuple(argv),
        cwd=os.path.abspath(cwd) if cwd is not None else os.getcwd(),
        env=os.environ if env is None else env,
        timeout_s=timeout_s,
        grace_s=grace_s,
        merge=merge,
        output=output or OutputLimits(),
        spill_dir=spill_dir,
    )
    with nullcontext(cancel) if cancel is not None else closing(Cancel()) as stop:
        try:
            with interruptible(stop):
                return run_direct(invocation, stop, on_output)
        except NotStarted as refusal:
            return not_run(refusal)
