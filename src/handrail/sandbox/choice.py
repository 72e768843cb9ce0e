"""Which tier a place gets: the highest that can be had, found by making a slot. Of the others it says why not."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from handrail.process.slot import UNCONFINED
from handrail.process.slots import Slots
from handrail.process.spawn import EXHAUSTED
from handrail.process.warden_process import NoWarden
from handrail.sandbox.memory import MemoryGroup
from handrail.sandbox.tiers import TIERS, Unavailable
from handrail.sandbox.walls import Walls
from handrail.values.confinement import Mode
from handrail.values.invocation import Access
from handrail.values.place import Place

_MODES: dict[str, Mode | None] = {"T3": "namespace", "T2": "namespace", "T1": "reaper", "T0": None}


@dataclass(frozen=True, slots=True)
class Choice:
    """What commands run in.

    walls    what confines them; None: nothing.
    first    slots for the kind of call (`kind`: access, network) that was tried; None: direct children, T0.
    reasons  why there is no more: one for each tier that was wanted, higher ones first.
    """

    walls: Walls | None
    first: Slots | None
    kind: tuple[Access, bool] = ("change", False)
    reasons: tuple[str, ...] = ()

    def more(self, access: Access, network: bool) -> Slots:  # noqa: FBT001 - half of a key
        """Slots of another kind behind the same walls."""
        walls = self.walls
        if walls is None:
            raise ValueError("there is one kind of slot only where nothing confines")
        return Slots(lambda: walls.confinement(access, network=network), walls.look_again)


def choose(place: Place | None, highest: str) -> Choice:
    """For a place, no more than `highest` ("T3" to "T0"). Raises NoWarden where there was only no room to try.

    Raises NoMemoryGroup where a limit of memory is asked for and cannot be held to.
    """
    reasons: list[str] = []
    if place is not None and place.sandbox != "off":
        kind: tuple[Access, bool] = ("change", place.network)
        limit = place.resources.memory_bytes
        memory = MemoryGroup(limit) if limit is not None else None
        for tier in TIERS:
            if tier > highest:
                reasons.append(f"{tier}: HANDRAIL_TIER is {highest}")
                continue
            walls = Walls(tier, place, memory)
            slots, reason = try_walls(walls, kind)
            if slots is not None:
                return Choice(walls, slots, kind, tuple(reasons))
            reasons.append(f"{tier}: {reason}")
        if memory is not None:
            memory.close()
        if place.sandbox == "required":
            return Choice(None, None, reasons=tuple(reasons))
        if highest != "T0":  # then it was asked for
            _say_once("commands are not confined here: " + "; ".join(reasons))
    return Choice(None, _unconfined(highest), reasons=tuple(reasons))


def try_walls(walls: Walls, kind: tuple[Access, bool]) -> tuple[Slots | None, str]:
    """A slot made and kept as the first, or why there can be none. Raises NoWarden where there was no room to try."""
    access, network = kind
    slots = Slots(lambda: walls.confinement(access, network=network), walls.look_again)
    try:
        slots.release(slots.acquire(), clean=True)
    except Unavailable as unavailable:
        return None, str(unavailable)
    except NoWarden as none:
        slots.close()
        if isinstance(none.__cause__, OSError) and none.__cause__.errno in EXHAUSTED:
            raise
        return None, none.complaint or str(none)
    return slots, ""


def _unconfined(highest: str) -> Slots | None:
    mode = _MODES[highest]
    if mode is None:
        return None
    slots = Slots(lambda: UNCONFINED[mode])
    try:
        slots.release(slots.acquire(), clean=True)
    except NoWarden as none:
        slots.close()
        if isinstance(none.__cause__, OSError) and none.__cause__.errno in EXHAUSTED:
            raise
        return None
    return slots


def _say_once(words: str) -> None:
    if words not in _said:
        _said.add(words)
        logging.getLogger("handrail").warning(words)


_said: set[str] = set()
