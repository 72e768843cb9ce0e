"""Network namespaces that the slots of one session share: nothing in them but the loopback interface, which is up.

Part of the warden's program; standard library only, single-threaded. The process that makes one does not enter it: a
user could not come back to the host's.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNET = 0x40000000  # linux/sched.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1  # linux/sockios.h, linux/if.h
IFREQ = struct.Struct("16sh22x")  # linux/if.h, struct ifreq: an interface's name, its flags
SENTENCE_BYTES = 500

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """One sentence: the step, and the system's word for why."""


def make() -> int:
    """A descriptor (close-on-exec) of a new network namespace; or Refused. Needs CAP_SYS_ADMIN in the user namespace.

    A forked child makes it and hands it over: the name that /proc here may have for that child is not known to us.
    """
    ours, childs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with childs:
            try:
                pid = os.fork()
            except OSError as failure:
                raise Refused(f"cannot start a process that makes a network namespace: {failure.strerror}") from failure
            if pid == 0:
                _make_and_hand_over(childs)
        try:
            return _receive(ours)
        finally:
            with contextlib.suppress(ChildProcessError):  # who waits for any child may have had this one
                os.waitpid(pid, 0)


def join(network_fd: int) -> None:
    """This process, and all that it will start, are in that namespace from now on; or Refused."""
    if libc.setns(network_fd, CLONE_NEWNET) != 0:
        raise Refused(f"cannot enter the session's network namespace: {os.strerror(ctypes.get_errno())}")


def _make_and_hand_over(parent: socket.socket) -> None:
    """In the forked child, which ends here whatever happens."""
    try:
        try:
            network_fd = _enter_new()
        except Refused as refused:
            parent.send(str(refused).encode()[:SENTENCE_BYTES])
        else:
            socket.send_fds(parent, [b"made"], [network_fd])
    finally:
        os._exit(0)


def _enter_new() -> int:
    if libc.unshare(CLONE_NEWNET) != 0:
        raise Refused(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            name, flags = IFREQ.unpack(fcntl.ioctl(any_socket, SIOCGIFFLAGS, IFREQ.pack(b"lo", 0)))
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, IFREQ.pack(name, flags | IFF_UP))
    except OSError as failure:
        raise Refused(f"cannot bring the loopback interface up: {failure.strerror}") from failure
    try:
        return os.open("/proc/self/ns/net", os.O_RDONLY)
    except OSError as failure:
        raise Refused(f"cannot open /proc/self/ns/net: {failure.strerror}") from failure


def _receive(child: socket.socket) -> int:
    # Not `recv_fds`, which forgets its flags: a command would inherit the descriptor.
    room = socket.CMSG_SPACE(struct.calcsize("i"))
    said, ancillary, _, _ = child.recvmsg(SENTENCE_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    if ancillary:
        [network_fd] = struct.unpack("i", ancillary[0][2])
        return int(network_fd)
    raise Refused(said.decode() or "the process that was to make a network namespace ended without a word")
