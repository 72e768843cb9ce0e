"""A command in a slot, as the poll loop sees it: started, signalled and swept by a keeper, its output read here."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic

from handrail.process.answers import Answer
from handrail.process.cancel import Cancel
from handrail.process.capture import Capture
from handrail.process.child import NotStarted
from handrail.process.direct import not_run
from handrail.process.slot import Slot
from handrail.process.slots import Slots
from handrail.process.spawn import UMASK, Pipes, no_room, not_started
from handrail.process.supervise import OnOutput, supervise
from handrail.process.warden_process import NoWarden
from handrail.values.completed import Completed, LeftBehind
from handrail.values.invocation import Invocation

# For naming what a command left, which a keeper does at once; without an answer it is ended unnamed.
_NAMES_S = 2.0
_NO_SLOT = "What confines a command could not be made just now, so it was not started. `handrail doctor` tells more."


def run_in_slot(slots: Slots, invocation: Invocation, cancel: Cancel, on_output: OnOutput | None) -> Completed:
    """Run `invocation` in one of `slots`, on this thread, to its end. On the main thread, within `interruptible`."""
    started = monotonic()
    try:
        child = SlotChild(slots, invocation)
        completed = supervise(child, invocation, started, cancel, on_output)
        if child.refusal is None:
            return completed
        refusal = child.refusal
    except NotStarted as failure:
        refusal = failure
    except NoWarden as none:
        refusal = no_room() if not none.complaint else NotStarted(_NO_SLOT, 125)
    return replace(not_run(refusal), enforced=slots.enforced)


class SlotChild:
    """A `Child` (see child.py) in a slot of its own, which it gives back when it is closed."""

    def __init__(self, slots: Slots, invocation: Invocation) -> None:
        self.refusal: NotStarted | None = None
        self.captures: Mapping[str, Capture] = {}
        self._slots = slots
        self._invocation = invocation
        self._ended: Answer | None = None
        self._killed = False
        self._until_over = -1
        with Pipes(merge=invocation.merge) as pipes:
            self._slot = _started(slots, invocation, pipes)
            self.enforced = self._slot.enforced
            self.captures = {
                name: Capture(fd, invocation.output, invocation.spill_dir) for name, fd in pipes.hand_over().items()
            }
        self.exit_fd = self._slot.conversation.fileno()
        slots.refill(self._slot.confinement)

    def terminate(self) -> tuple[int, ...]:
        try:
            self._until_over, writing = os.pipe()
        except OSError:  # no descriptor is left to be told by: the grace period passes, and SIGKILL needs none
            return ()
        try:
            self._slot.ask({"do": "terminate"}, [writing])
        except OSError:  # the keeper has gone, and `exit_fd` tells it
            return ()
        finally:
            os.close(writing)
        return (self._until_over,)

    def sweep(self) -> tuple[LeftBehind, ...]:
        self._hear()
        if self._ended is None:
            self._killed = True
            self._slot.kill()
            return ()
        if self._ended.clean or self._ended.failed is not None:
            return ()
        return self._name_and_end()

    def status(self) -> int | None:
        self._hear()
        if self._ended is not None and self._ended.failed is not None:
            self.refusal = not_started(self._ended.failed, self._invocation)
        if self._ended is not None:
            return self._ended.status
        return -signal.SIGKILL if self._killed else None

    def close(self) -> None:
        for capture in self.captures.values():
            capture.close()
        if self._until_over >= 0:
            os.close(self._until_over)
        clean = self._ended is not None and self._ended.clean and not self._killed
        self._slots.release(self._slot, clean=clean)

    def _name_and_end(self) -> tuple[LeftBehind, ...]:
        """What the main process left may have ended by now, as helpers do; then the slot is as good as new."""
        said: Answer | None = None
        with contextlib.suppress(OSError):
            self._slot.ask({"do": "sweep"})
            said = self._slot.answer(_NAMES_S)
        if said is not None and said.clean and self._ended is not None:
            self._ended = replace(self._ended, clean=True)
            return ()
        self._killed = True
        self._slot.kill()
        return said.left or () if said is not None else ()

    def _hear(self) -> None:
        if self._ended is None and not self._killed:
            self._ended = self._slot.answer(0)


def _started(slots: Slots, invocation: Invocation, pipes: Pipes) -> Slot:
    request = {
        "do": "run",
        "argvs": [invocation.argv],
        "cwd": invocation.cwd,
        "env": dict(invocation.env),
        "umask": UMASK,
    }
    slot = slots.acquire()
    try:
        slot.ask(request, [pipes.stdout, pipes.stderr])
    except OSError:
        # It ended between the look at it and now. A second one in a row is no coincidence.
        slots.release(slot, clean=False)
        slot = slots.acquire()
        try:
            slot.ask(request, [pipes.stdout, pipes.stderr])
        except OSError as failure:
            slots.release(slot, clean=False)
            raise NoWarden("keepers end before they can be used") from failure
    return slot
