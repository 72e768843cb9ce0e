"""Slots: reusable places for one running command each, kept by a keeper process that owns all the command starts.

A slot whose call left nothing behind is used again; any other is ended with all that is in it. One spare is made ahead,
while a command runs, so that the next call does not wait for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import cast

from handrail.process.warden_process import Mode, NoWarden, WardenProcess, identity, send, wait_readable, warden
from handrail.values.completed import Enforced, LeftBehind

# A keeper is a fork of a small process: 3 ms when measured. One that takes so long is lost.
_READY_S = 10.0
# Ending a namespace took 2 to 9 ms when measured, a tree without one 7 ms; a dead network disk can hold a process.
_KILL_S = 5.0
# A keeper that does not sweep in this time was stopped or killed; its warden does it then.
_SWEEP_S = 1.0
# A warden may end between the look at it and the request; so many in a row are no coincidence.
_WARDENS = 3
# More idle slots than this are left over from a burst; each holds a process of some 5 MB.
_IDLE = 4
_MESSAGE_BYTES = 128 * 1024


ENFORCED: Mapping[Mode, Enforced] = {
    "namespace": Enforced(tier="T2", processes="PID namespace", files="none", network="none"),
    "reaper": Enforced(tier="T1", processes="child subreaper", files="none", network="none"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a keeper said, as far as it makes sense: it may be in the hands of a hostile command.

    status  the call's end, from its last process: an exit code, or -N for a signal. None if this tells none.
    clean   nothing of the call is left.
    failed  the error (errno, or 0) for which nothing could be started.
    left    what a sweep found.
    """

    status: int | None = None
    clean: bool = False
    failed: int | None = None
    left: tuple[LeftBehind, ...] | None = None


def understood(data: bytes) -> Answer:
    """The meaning of a keeper's message; of nonsense, none."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):  # the latter for brackets without end
        return Answer()
    if not isinstance(said, dict):
        return Answer()
    fields = cast("dict[str, object]", said)
    ended, failed, left = fields.get("ended"), fields.get("failed"), fields.get("left")
    statuses = cast("list[object]", ended) if isinstance(ended, list) else []
    return Answer(
        status=_number(statuses[-1], -64, 255) if statuses else None,
        clean=fields.get("clean") is True,
        failed=_number(failed, 0, 4095) or 0 if failed is not None else None,
        left=tuple(map(_named, cast("list[object]", left)[:100])) if isinstance(left, list) else None,
    )


def _number(value: object, least: int, most: int) -> int | None:
    return value if isinstance(value, int) and least <= value <= most else None


def _named(row: object) -> LeftBehind:
    fields = cast("list[object]", row) if isinstance(row, list) else []
    pid, words = fields if len(fields) == 2 else (0, "")
    name = words[:80] if isinstance(words, str) else ""
    return LeftBehind(_number(pid, 1, 2**22) or 0, "".join(c if c.isprintable() else "?" for c in name))


class Slot:
    """The conversation with one keeper. Used by one call at a time. Raises NoWarden where the warden has gone."""

    def __init__(self, owner: WardenProcess) -> None:
        self._owner = owner
        self._pid = os.getpid()
        self._pidfd = -1
        self._was_killed = False
        self._pidfd_identity: tuple[int, int] | None = None
        try:
            self.conversation, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as failure:
            raise NoWarden("no descriptor is left for a conversation with a keeper") from failure
        self._identity = identity(self.conversation.fileno())
        try:
            with theirs:
                owner.keep(theirs)
        except OSError as failure:
            self.conversation.close()
            raise NoWarden("no keeper could be asked for") from failure

    @property
    def mode(self) -> Mode:
        """What its keeper can do."""
        return self._owner.mode

    def is_usable(self) -> bool:
        """Whether a call can begin. A closed or foreign descriptor, or a word nobody asked for, says no.

        So does a warden's end: a keeper that lives on ends in a moment.
        """
        return (
            self._is_ours()
            and self._owner.is_usable()
            and self._pidfd >= 0
            and not wait_readable(self.conversation.fileno(), 0)
        )

    def wait_until_ready(self) -> None:
        """For a new slot: until its keeper speaks. Raises NoWarden, and the slot is closed then."""
        if self._pidfd >= 0:
            return
        if not self._is_ours():
            self.close()
            raise NoWarden("somebody closed the conversation with the keeper")
        if not wait_readable(self.conversation.fileno(), _READY_S):
            self._owner.stop()  # a command of the same user may have stopped it: the next one does better
        with contextlib.suppress(OSError):
            _, ancillary, _, _ = self.conversation.recvmsg(
                _MESSAGE_BYTES, socket.CMSG_SPACE(struct.calcsize("i")), socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
            )
            for _, _, fd in ancillary:
                (self._pidfd,) = struct.unpack("i", fd)
                self._pidfd_identity = identity(self._pidfd)
                return
        self.close()
        raise NoWarden("no keeper could be started")

    def ask(self, request: Mapping[str, object], fds: Sequence[int] = ()) -> None:
        """Raises OSError where the keeper has gone. One that a command has stopped is let on, so that it hears."""
        self._signal_keeper(signal.SIGCONT)
        send(self.conversation, request, list(fds))

    def answer(self, timeout_s: float) -> Answer | None:
        """The keeper's next word; None if there is none in time, or none ever: then the slot is of no use any more."""
        if not wait_readable(self.conversation.fileno(), timeout_s):
            return None
        try:
            data = self.conversation.recv(_MESSAGE_BYTES)
        except OSError:
            return None
        return understood(data) if data else None

    def kill(self) -> None:
        """End the slot with all that is in it, at once, and wait for that. There is no second time."""
        if self._was_killed:
            return
        self._was_killed = True
        latest = monotonic() + _KILL_S
        if self._owner.mode == "reaper":
            # Its keeper finds and ends what it holds. Where it does not answer, the warden inherits that, and ends it.
            with contextlib.suppress(OSError):
                self.ask({"do": "sweep"})
                said = self.answer(_SWEEP_S)
                while said is not None and said.left is None and monotonic() < latest:  # it told of an end first
                    said = self.answer(_SWEEP_S)
        if self._pidfd >= 0:
            self._signal_keeper(signal.SIGKILL)
            wait_readable(self._pidfd, latest - monotonic())
        if self._owner.mode == "reaper":
            with contextlib.suppress(OSError):  # the warden has gone, and ended all before
                self._owner.settle(latest - monotonic())

    def _signal_keeper(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):  # it has gone: its command may have killed it
            signal.pidfd_send_signal(self._pidfd, number)

    def _is_ours(self) -> bool:
        return os.getpid() == self._pid and self._holds_conversation() and (self._pidfd < 0 or self._holds_pidfd())

    def _holds_conversation(self) -> bool:
        return identity(self.conversation.fileno()) == self._identity

    def _holds_pidfd(self) -> bool:
        return self._pidfd >= 0 and identity(self._pidfd) == self._pidfd_identity

    def close(self) -> None:
        """Give the descriptors up, those that are still ours, and end the keeper, which has no call any more.

        The closed socket alone would not end it if a child that the host forked holds a copy.
        """
        if self._holds_conversation():
            self.conversation.close()
        else:
            self.conversation.detach()
        if self._holds_pidfd():
            self._signal_keeper(signal.SIGKILL)
            os.close(self._pidfd)
        self._pidfd = -1


class Slots:
    """A session's slots. Safe to use from several threads; in a forked child of the host it is of no use."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode
        """What the keepers here can do: of the last that was made, or what is wanted until there is one."""
        self._wanted: Mode = mode
        self._lock = threading.Lock()
        self._idle: list[Slot] = []
        self._asking = False
        self._closed = False
        self._pid = os.getpid()

    @property
    def enforced(self) -> Enforced:
        """What holds for commands here. Raises NoWarden."""
        return ENFORCED[self.mode]

    def acquire(self) -> Slot:
        """An idle slot, or a new one. Raises NoWarden."""
        if os.getpid() != self._pid:
            raise NoWarden("the session belongs to the process that this one was forked from")
        slot = self._idle_slot() or self._new_slot()
        self.mode = slot.mode
        return slot

    def _idle_slot(self) -> Slot | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                slot = self._idle.pop()
            with contextlib.suppress(NoWarden):
                slot.wait_until_ready()
                if slot.is_usable():
                    return slot
            slot.close()

    def _new_slot(self, tries: int = _WARDENS) -> Slot:
        """Raises NoWarden."""
        owner = warden(self._wanted)
        try:
            slot = Slot(owner)
            slot.wait_until_ready()
        except NoWarden:
            if tries == 1 or owner.is_usable():
                raise
            return self._new_slot(tries - 1)
        return slot

    def refill(self) -> None:
        """Ask for a spare if there is none. It gets ready while the caller's command runs."""
        with self._lock:
            if self._idle or self._asking or self._closed:
                return
            self._asking = True
        try:
            spare = Slot(warden(self._wanted))
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
