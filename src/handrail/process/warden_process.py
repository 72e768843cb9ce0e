"""The host's side of the warden (warden.py): starts one for each mode and process, and asks it for keepers.

A forked child of the host forgets its parent's wardens: it must neither use their sockets nor keep them alive.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any

from handrail.values.confinement import Mode

# Python's start, once a process: 30 to 75 ms when measured. A machine that takes longer than this has other troubles.
_START_S = 20.0
_END_S = 2.0
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "warden.py")


class NoWarden(Exception):
    """There can be no keepers here; the sentence says why. Travels to whoever chooses the tier.

    `complaint` is what the slot's own programs said of it, for people; paths of this machine may stand in it.
    """

    def __init__(self, sentence: str, complaint: str = "") -> None:
        super().__init__(sentence)
        self.complaint = complaint


class WardenProcess:
    """A running warden. `mode` is what it could do, which may be less than was asked."""

    def __init__(self, mode: Mode) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        self._identity = identity(ours.fileno())
        try:
            with theirs:
                self._popen = _start(mode, theirs.fileno())
            self.mode: Mode = _wait_until_ready(ours)
        except BaseException:
            self.stop()
            raise

    def is_usable(self) -> bool:
        """Whether it lives, and its socket is still ours: a host may close all descriptors, and reuse the numbers."""
        fd = self._control.fileno()
        if self._popen.poll() is not None or identity(fd) != self._identity:
            return False
        # It has spoken its only word before, so all that can be read is its end. An ordinary user's `_popen` only
        # waits for the warden proper, and ends a little later than that.
        return not wait_readable(fd, 0)

    def keep(self, conversation: socket.socket, complaints_fd: int, outside: Mapping[str, Any]) -> None:
        """Have a keeper made that talks over `conversation`; it is closed where none can be. Raises OSError.

        See `Confinement` for `outside`. Why there is none is written to `complaints_fd`.
        """
        send(self._control, {"do": "keep", "outside": dict(outside)}, [conversation.fileno(), complaints_fd])

    def forget_network(self, name: str) -> None:
        """Let a session's network namespace go; it ends with the last slot in it. Raises OSError."""
        send(self._control, {"do": "forget", "network": name}, [])

    def settle(self, timeout_s: float) -> None:
        """Wait until nothing is left of keepers that were killed. Raises OSError."""
        reading, writing = os.pipe()
        try:
            send(self._control, {"do": "settle"}, [writing])
        finally:
            os.close(writing)
            wait_readable(reading, timeout_s)
            os.close(reading)

    def forget(self) -> None:
        """In a forked child: closing its copy of the socket changes nothing for the parent, whose child this is."""
        self._let_go()
        self._popen.returncode = 0

    def stop(self) -> None:
        """End it and all keepers, and collect it."""
        self._let_go()
        if hasattr(self, "_popen"):
            # A command of the same user may have stopped it. Let on, it sees that it is over, and ends what it holds.
            self._popen.send_signal(signal.SIGCONT)
            try:
                self._popen.wait(_END_S)
            except subprocess.TimeoutExpired:  # somebody stopped it, or it is no warden at all
                self._popen.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._popen.wait(_END_S)

    def _let_go(self) -> None:
        if identity(self._control.fileno()) == self._identity:
            self._control.close()
        else:
            self._control.detach()


def warden(mode: Mode) -> WardenProcess:
    """This process's warden for `mode`, started if there is none. Raises NoWarden."""
    with _wardens.lock:
        running = _wardens.by_mode.get(mode)
        if running is not None and running.is_usable():
            return running
        if running is not None:
            running.stop()
        try:
            _wardens.by_mode[mode] = started = WardenProcess(mode)
        except OSError as failure:
            raise NoWarden("its helper process could not be started") from failure
        return started


def stop_all() -> None:
    """End this process's wardens, and with them everything that runs in their slots."""
    with _wardens.lock:
        for running in _wardens.by_mode.values():
            running.stop()
        _wardens.by_mode.clear()


def forget_network(name: str) -> None:
    """Let a session's network namespace go, in whichever warden has it."""
    with _wardens.lock:
        for running in _wardens.by_mode.values():
            with contextlib.suppress(OSError):  # a warden that has ended holds none
                running.forget_network(name)


def send(conversation: socket.socket, request: object, fds: list[int]) -> None:
    """One request. What is long goes through a memory file: a message is bounded, a file is not. Raises OSError."""
    data = json.dumps(request).encode()
    if len(data) <= _MESSAGE_BYTES:
        _send(conversation, data, fds)
        return
    memory = os.memfd_create("handrail-request")
    try:
        with open(memory, "wb", closefd=False) as file:
            file.write(data)
        _send(conversation, b'{"do": "read"}', [*fds, memory])
    finally:
        os.close(memory)


def identity(fd: int) -> tuple[int, int] | None:
    """What a descriptor's number stands for now."""
    try:
        facts = os.fstat(fd)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def wait_readable(fd: int, timeout_s: float) -> bool:
    """Whether it became readable, or its other end closed, in time."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0, timeout_s) * 1000))


_MESSAGE_BYTES = 64 * 1024


def _send(conversation: socket.socket, data: bytes, fds: list[int]) -> None:
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    conversation.sendmsg([data], ancillary, socket.MSG_NOSIGNAL)


def _start(mode: Mode, control_fd: int) -> subprocess.Popen[bytes]:
    if not sys.executable or getattr(sys, "frozen", False):  # frozen: it is the host program itself, started again
        raise NoWarden("the path of the Python interpreter is not known")
    # The host's end is noticed by this descriptor, not by a closed socket: a child that the host forked may hold that.
    try:
        me = os.pidfd_open(os.getpid())
    except (AttributeError, OSError) as failure:
        raise NoWarden("this system has no process descriptors (Linux 5.3)") from failure
    passed: list[int] = []
    try:
        # The lowest three become the warden's standard ones, and a host may have had those closed.
        passed += (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (control_fd, me))
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", _PROGRAM, *map(str, passed), mode],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=passed,
            start_new_session=True,
        )
    finally:
        for fd in (me, *passed):
            os.close(fd)


def _wait_until_ready(control: socket.socket) -> Mode:
    latest = monotonic() + _START_S
    data = control.recv(_MESSAGE_BYTES) if wait_readable(control.fileno(), latest - monotonic()) else b""
    if not data:
        raise NoWarden("its helper process ended before it was ready")
    return "namespace" if json.loads(data)["ready"] == "namespace" else "reaper"


class _Wardens:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_mode: dict[Mode, WardenProcess] = {}


_wardens = _Wardens()


def _forget_in_child() -> None:
    """After a fork: the lock may have been held by a thread that is not here, and the wardens are the parent's."""
    for running in _wardens.by_mode.values():
        running.forget()
    _wardens.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget_in_child)
atexit.register(stop_all)
