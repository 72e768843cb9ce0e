"""This machine as a host: commands in slots where there can be any, else as direct children.

It chooses the tier once, when the first command runs: PID namespaces (T2), a child subreaper (T1), or neither (T0).
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from handrail.errors import ConfigurationError
from handrail.process.cancel import Cancel
from handrail.process.child import NotStarted
from handrail.process.direct import ENFORCED as DIRECT
from handrail.process.direct import not_run, run_direct
from handrail.process.spawn import EXHAUSTED, no_room
from handrail.process.supervise import OnOutput
from handrail.values.completed import Completed, Enforced
from handrail.values.invocation import Invocation

# What makes slots is loaded with the first command: it is a tenth of what a toolbox takes to load.
if TYPE_CHECKING:
    from handrail.process.slots import Slots
    from handrail.process.warden_process import Mode

_MODES: dict[str, Mode | None] = {"T3": "namespace", "T2": "namespace", "T1": "reaper", "T0": None}


class LocalHost:
    """A `Host` (see base.py). `HANDRAIL_TIER` in the environment (T3, T2, T1, T0) can only lower what is chosen."""

    def __init__(self) -> None:
        asked = os.environ.get("HANDRAIL_TIER", "T3")
        if asked not in _MODES:
            raise ConfigurationError(f"HANDRAIL_TIER must be one of {', '.join(_MODES)}; it is {asked!r}.")
        self._mode: Mode | None = _MODES[asked]
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._chosen = self._mode is None
        self._slots: Slots | None = None

    @property
    def enforced(self) -> Enforced:
        slots = self._choose()
        return slots.enforced if slots is not None else DIRECT

    def run(self, invocation: Invocation, *, cancel: Cancel, on_output: OnOutput | None = None) -> Completed:
        if os.getpid() != self._pid:
            return _of_another_process()
        try:
            slots = self._choose()
        except NotStarted as refusal:
            return not_run(refusal)
        if slots is None:
            return run_direct(invocation, cancel, on_output)
        from handrail.process.slot_child import run_in_slot

        return run_in_slot(slots, invocation, cancel, on_output)

    def close(self) -> None:
        if self._slots is not None:
            self._slots.close()

    def _choose(self) -> Slots | None:
        """Slots if one could really be had when it was first tried, and from then on: no later failure steps down.

        Raises NotStarted where there was only no room to try.
        """
        if os.getpid() != self._pid:  # a thread that is not here may have held the lock at the moment of the fork
            return self._slots
        with self._lock:
            if not self._chosen and self._mode is not None:
                self._slots = _tried(self._mode)
                self._chosen = True
            return self._slots


def _tried(mode: Mode) -> Slots | None:
    try:
        # Both now, since later there may be no descriptor left to load the second by.
        import handrail.process.slot_child  # noqa: F401  # pyright: ignore[reportUnusedImport]
        from handrail.process.slots import Slots
        from handrail.process.warden_process import NoWarden
    except OSError as exhausted:
        raise no_room() from exhausted
    slots = Slots(mode)
    try:
        slots.release(slots.acquire(), clean=True)
    except NoWarden as none:
        slots.close()
        if isinstance(none.__cause__, OSError) and none.__cause__.errno in EXHAUSTED:
            raise no_room() from none
        return None
    return slots


def _of_another_process() -> Completed:
    return not_run(NotStarted("The session belongs to the process that this one was forked from.", 125))
