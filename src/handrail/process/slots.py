"""Slots: reusable places for one running command each, kept by a keeper process that owns all the command starts.

A slot whose call left nothing behind is used again; any other is ended with all that is in it. One spare is made ahead,
while a command runs, so that the next call does not wait for it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

from handrail.process.slot import Slot
from handrail.process.warden_process import NoWarden, warden
from handrail.values.completed import Enforced
from handrail.values.confinement import Confinement

# A warden may end between the look at it and the request; so many in a row are no coincidence.
_WARDENS = 3
# A socket that is to be hidden, a file of a repository: what goes just then is not met again so often.
_LOOKS = 4
# More idle slots than this are left over from a burst; each holds a process of some 5 MB.
_IDLE = 4


class Slots:
    """A session's slots of one kind. Safe to use from several threads; in a forked child of the host it is of no use.

    `make` says how a slot is to be confined now; an idle one that was made otherwise is not used any more. `look_again`
    is called where a slot could not be made so, before it is tried anew: what it was to be made of may have gone.
    """

    def __init__(self, make: Callable[[], Confinement], look_again: Callable[[], None] = lambda: None) -> None:
        self._make = make
        self._look_again = look_again
        self._last: Enforced | None = None
        self._lock = threading.Lock()
        self._idle: list[Slot] = []
        self._asking = False
        self._closed = False
        self._pid = os.getpid()

    @property
    def enforced(self) -> Enforced:
        """What holds for commands here: what held for the last, or would for the first."""
        return self._last or self._make().enforced

    def acquire(self) -> Slot:
        """An idle slot, or a new one. Raises NoWarden."""
        if os.getpid() != self._pid:
            raise NoWarden("the session belongs to the process that this one was forked from")
        confinement = self._make()
        slot = self._idle_slot(confinement) or self._anew(confinement)
        self._last = slot.enforced
        return slot

    def _idle_slot(self, confinement: Confinement) -> Slot | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                slot = self._idle.pop()
            with contextlib.suppress(NoWarden):
                slot.wait_until_ready()
                if slot.confinement == confinement and slot.is_usable():
                    return slot
            slot.close()

    def _anew(self, confinement: Confinement) -> Slot:
        """Raises NoWarden."""
        for _ in range(_LOOKS):
            try:
                return self._new_slot(confinement)
            except NoWarden as none:
                if not none.complaint:
                    raise
            self._look_again()
            confinement = self._make()
        return self._new_slot(confinement)

    def _new_slot(self, confinement: Confinement, tries: int = _WARDENS) -> Slot:
        """Raises NoWarden."""
        owner = warden(confinement.mode)
        try:
            slot = Slot(owner, confinement)
            slot.wait_until_ready()
        except NoWarden:
            if tries == 1 or owner.is_usable():
                raise
            return self._new_slot(confinement, tries - 1)
        return slot

    def refill(self, confinement: Confinement) -> None:
        """Ask for a spare of that kind if there is none. It gets ready while the caller's command runs."""
        with self._lock:
            if self._idle or self._asking or self._closed:
                return
            self._asking = True
        try:
            owner = warden(confinement.mode)
            spare = Slot(owner, confinement)
            if not self._keep(spare, 0):
                spare.close()
        except (NoWarden, OSError):  # the next call asks again, and is told
            return
        finally:
            self._asking = False

    def release(self, slot: Slot, *, clean: bool) -> None:
        """Take a slot back after its call. Only a clean one is used again."""
        if not (clean and self._keep(slot, _IDLE)):
            slot.kill()
            slot.close()

    def _keep(self, slot: Slot, place: int) -> bool:
        """Put it among the idle ones, of which the last is used first, unless there are enough or all is over."""
        with self._lock:
            if self._closed or len(self._idle) >= _IDLE:
                return False
            self._idle.insert(place, slot)
            return True

    def close(self) -> None:
        """End all slots. Those with a call are their call's to give back, which finds this closed."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for slot in idle:
            slot.close()
