"""One slot, as the host sees it: the conversation with its keeper, from the wish for one to the end of all it holds.

It trusts no answer and no descriptor: a hostile command may have the keeper in its hands, a host may close anything.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from time import monotonic

from handrail.process.answers import Answer, understood
from handrail.process.warden_process import NoWarden, WardenProcess, identity, send, wait_readable
from handrail.values.completed import Enforced
from handrail.values.confinement import Confinement, Mode

# A keeper is a fork of a small process: 3 ms when measured, within bubblewrap 40. One that takes so long is lost.
_READY_S = 10.0
# Ending a namespace took 2 to 9 ms when measured, a tree without one 7 ms; a dead network disk can hold a process.
_KILL_S = 5.0
# A keeper that does not sweep in this time was stopped or killed; its warden does it then.
_SWEEP_S = 1.0
_MESSAGE_BYTES = 128 * 1024
_COMPLAINT_BYTES = 4000

UNCONFINED: Mapping[Mode, Confinement] = {
    "namespace": Confinement("namespace", Enforced("T2", "PID namespace", files="none", network="none")),
    "reaper": Confinement("reaper", Enforced("T1", "child subreaper", files="none", network="none")),
}
"""Slots from which nothing escapes when they end, and in which commands may do whatever their user may."""


class Slot:
    """The conversation with one keeper. Used by one call at a time. Raises NoWarden where the warden has gone."""

    def __init__(self, owner: WardenProcess, confinement: Confinement) -> None:
        self.confinement = confinement
        """What was asked for; `enforced` is what there is."""
        self._held = held_by(owner, confinement)
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
        self._complaints: Complaints | None = None
        try:
            with theirs:
                self._complaints = Complaints()
                owner.keep(theirs, self._complaints.writing, self._held.outside)
                self._complaints.hand_over()
            # It waits in the socket until the keeper is there to hear it.
            send(self.conversation, {"do": "confine", "inside": dict(self._held.inside)}, [])
        except OSError as failure:
            self.close()
            raise NoWarden("no keeper could be asked for") from failure

    @property
    def enforced(self) -> Enforced:
        """What holds for a command here."""
        return self._held.enforced

    @property
    def _is_reaper(self) -> bool:
        return self._owner.mode == "reaper" and "program" not in self._held.outside

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
                self._forget_complaints()
                return
        complaint = self._complaints.read() if self._complaints is not None else ""
        self.close()
        raise NoWarden("no keeper could be started", complaint)

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
        if self._is_reaper:
            # Its keeper finds and ends what it holds. Where it does not answer, the warden inherits that, and ends it.
            with contextlib.suppress(OSError):
                self.ask({"do": "sweep"})
                said = self.answer(_SWEEP_S)
                while said is not None and said.left is None and monotonic() < latest:  # it told of an end first
                    said = self.answer(_SWEEP_S)
        if self._pidfd >= 0:
            self._signal_keeper(signal.SIGKILL)
            wait_readable(self._pidfd, latest - monotonic())
        if self._is_reaper:
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
        self._forget_complaints()
        if self._holds_pidfd():
            self._signal_keeper(signal.SIGKILL)
            os.close(self._pidfd)
        self._pidfd = -1

    def _forget_complaints(self) -> None:
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None


def held_by(owner: WardenProcess, confinement: Confinement) -> Confinement:
    """What a warden can do of what was asked. Raises NoWarden where it cannot confine as it should."""
    if owner.mode == confinement.mode or "program" in confinement.outside:
        return confinement
    if confinement.outside or confinement.inside:
        raise NoWarden("this system lets nobody make a PID namespace")
    return UNCONFINED[owner.mode]


class Complaints:
    """A pipe for the one line in which a slot that could not be made says why. Raises OSError."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._identity = identity(self._reading)

    def hand_over(self) -> None:
        """The writing end is somebody else's now."""
        os.close(self.writing)
        self.writing = -1

    def read(self) -> str:
        """What was said, on one line; "" if nothing was."""
        try:
            said = os.read(self._reading, _COMPLAINT_BYTES)
        except OSError:
            return ""
        text = said.decode(errors="replace").strip()
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())

    def close(self) -> None:
        if self.writing >= 0:
            self.hand_over()
        if identity(self._reading) == self._identity:  # a host may have closed it, and have the number in other use
            os.close(self._reading)
        self._identity = None
