"""This machine as a host: commands in slots, as confined as the place asks for and the machine lets us, or directly.

The tier is chosen once, by making a slot of the very kind that commands then run in. No later failure steps down.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from handrail.errors import ConfigurationError, SandboxUnavailable
from handrail.process.cancel import Cancel
from handrail.process.child import NotStarted
from handrail.process.direct import ENFORCED as DIRECT
from handrail.process.direct import not_run, run_direct
from handrail.process.spawn import EXHAUSTED, no_room
from handrail.process.supervise import OnOutput
from handrail.values.completed import Completed, Enforced
from handrail.values.invocation import Access, Invocation
from handrail.values.place import Place

# What makes slots is loaded with the first command: it is a tenth of what a toolbox takes to load.
if TYPE_CHECKING:
    from handrail.process.slots import Slots
    from handrail.sandbox.choice import Choice
    from handrail.sandbox.walls import Walls

TIERS = ("T3", "T2", "T1", "T0")


class LocalHost:
    """A `Host` (see base.py). `HANDRAIL_TIER` in the environment (T3, T2, T1, T0) can only lower what is chosen."""

    def __init__(self) -> None:
        self._highest = os.environ.get("HANDRAIL_TIER", "T3")
        if self._highest not in TIERS:
            raise ConfigurationError(f"HANDRAIL_TIER must be one of {', '.join(TIERS)}; it is {self._highest!r}.")
        self._place: Place | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._choice: Choice | None = None
        self._slots: dict[tuple[Access, bool], Slots] = {}
        self._closed = False

    @property
    def enforced(self) -> Enforced:
        slots = self._slots_for("change", network=self._place is not None and self._place.network)
        return slots.enforced if slots is not None else DIRECT

    def open(self, place: Place) -> None:
        self._place = place
        if place.sandbox == "off":  # nothing that could be missing: chosen with the first command
            return
        from handrail.sandbox.memory import NoMemoryGroup

        try:
            choice = self._chosen()
        except NotStarted:  # no room just now: the first call tries again
            return
        except NoMemoryGroup as none:
            raise ConfigurationError(
                f"resources.memory_bytes cannot be held to here: {none}. Leave it out, or start this program where "
                "control groups are delegated (systemd-run --user --scope -p Delegate=yes)."
            ) from none
        if choice.walls is None and place.sandbox == "required":
            raise SandboxUnavailable(
                'sandbox="best" accepts what this machine has.\n'
                f'sandbox="required" cannot be had: {"; ".join(choice.reasons)}. `handrail doctor` tells more.'
            )

    def seen(self, path: str) -> str:
        walls = self._walls()
        return walls.seen(path) if walls is not None else path

    def variables(self, *, network: bool) -> Mapping[str, str]:
        walls = self._walls()
        return walls.variables(network=network) if walls is not None else {}

    def run(self, invocation: Invocation, *, cancel: Cancel, on_output: OnOutput | None = None) -> Completed:
        if self._is_forked():
            return _of_another_process()
        try:
            slots = self._slots_for(invocation.access, network=invocation.network)
        except NotStarted as refusal:
            return not_run(refusal)
        if slots is None:
            return run_direct(invocation, cancel, on_output)
        return self._run_in(slots, invocation, cancel, on_output)

    def _run_in(self, slots: Slots, invocation: Invocation, cancel: Cancel, on_output: OnOutput | None) -> Completed:
        from handrail.process.slot_child import run_in_slot

        walls = self._walls()
        if walls is None:
            return run_in_slot(slots, invocation, cancel, on_output)
        from handrail.sandbox.tiers import Unavailable

        try:
            if invocation.access == "read":
                return run_in_slot(slots, invocation, cancel, on_output)
            return walls.run(lambda: run_in_slot(slots, invocation, cancel, on_output))
        except Unavailable as unavailable:
            return not_run(NotStarted(str(unavailable), 125))

    def close(self) -> None:
        if self._is_forked():
            return
        with self._lock:
            self._closed = True
        for slots in self._slots.values():
            slots.close()
        if self._choice is not None and self._choice.walls is not None:
            self._choice.walls.close()

    def _walls(self) -> Walls | None:
        if self._place is None or self._place.sandbox == "off":
            return None
        if self._is_forked():
            return self._choice.walls if self._choice is not None else None
        return self._chosen().walls

    def _is_forked(self) -> bool:
        """In a child of the session's process nothing is chosen or loaded any more.

        A thread that is not here may have held a lock, or been in the middle of an import, at the moment of the fork.
        """
        return os.getpid() != self._pid

    def _chosen(self) -> Choice:
        """What there really is, tried when it is first needed. Raises NotStarted where there was no room to try."""
        with self._lock:
            if self._choice is None:
                self._choice = _choose(self._place, self._highest)
                if self._choice.first is not None:
                    self._slots[self._choice.kind] = self._choice.first
            return self._choice

    def _slots_for(self, access: Access, *, network: bool) -> Slots | None:
        """None for direct children. Raises NotStarted."""
        if self._is_forked():
            return self._slots.get((access, network))
        choice = self._chosen()
        walls = self._walls()
        if choice.first is None:
            if self._place is not None and self._place.sandbox == "required":
                raise NotStarted("The sandbox that the settings ask for cannot be had here.", 125)
            return None
        kind = (access, network) if walls is not None else choice.kind
        with self._lock:
            if kind not in self._slots and walls is not None and not self._closed:
                self._slots[kind] = choice.more(*kind)
            if kind not in self._slots:
                raise NotStarted("The session is closed.", 125)
            return self._slots[kind]


def _choose(place: Place | None, highest: str) -> Choice:
    try:
        # All of it now, since later there may be no descriptor left to load the rest by.
        import handrail.process.slot_child  # noqa: F401  # pyright: ignore[reportUnusedImport]
        from handrail.process.warden_process import NoWarden
        from handrail.sandbox.choice import choose
    except OSError as exhausted:
        raise no_room() from exhausted
    try:
        return choose(place, highest)
    except NoWarden as none:
        if isinstance(none.__cause__, OSError) and none.__cause__.errno in EXHAUSTED:
            raise no_room() from none
        raise


def _of_another_process() -> Completed:
    return not_run(NotStarted("The session belongs to the process that this one was forked from.", 125))
