"""The filter of system calls that a slot's commands run under, as a BPF program: seccomp(2).

It refuses what namespaces and Landlock do not divide. What ordinary programs need it leaves alone: debuggers, nested
sandboxes and language runtimes work under it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

# linux/bpf_common.h: load a word of struct seccomp_data; jump if equal, if at least; return.
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
# linux/seccomp.h: offsets in struct seccomp_data. Of an argument only the low half is loaded (both machines are little
# endian): the kernel cuts an ioctl's request and a socket's domain to 32 bits as well, and ignores the rest.
NUMBER, MACHINE, FIRST_LOW, SECOND_LOW = 0, 4, 16, 24
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, EAFNOSUPPORT = 1, 97  # Linux's own: this module is pure, and may run elsewhere
TIOCSTI, TIOCLINUX = 0x5412, 0x541C  # asm-generic/ioctls.h: type into, and paste into, the terminal that is ours
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16  # linux/socket.h

Sockets = Literal["all", "unix"]


@dataclass(frozen=True, slots=True)
class _Machine:
    """`audit` is its AUDIT_ARCH of linux/audit.h; `calls` the numbers of asm/unistd.h; `foreign_from` x32's bit."""

    audit: int
    calls: Mapping[str, int]
    foreign_from: int | None


_SAME = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "pidfd_getfd": 438}
_MACHINES = {
    "x86_64": _Machine(
        audit=0xC000003E,
        calls=_SAME
        | {"socket": 41, "socketpair": 53, "ioctl": 16, "ptrace": 101, "process_vm_readv": 310}
        | {"process_vm_writev": 311, "kcmp": 312, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323}
        | {"add_key": 248, "request_key": 249, "keyctl": 250, "kexec_load": 246, "kexec_file_load": 320}
        | {"init_module": 175, "finit_module": 313, "delete_module": 176, "open_by_handle_at": 304},
        foreign_from=0x40000000,
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        calls=_SAME
        | {"socket": 198, "socketpair": 199, "ioctl": 29, "ptrace": 117, "process_vm_readv": 270}
        | {"process_vm_writev": 271, "kcmp": 272, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282}
        | {"add_key": 217, "request_key": 218, "keyctl": 219, "kexec_load": 104, "kexec_file_load": 294}
        | {"init_module": 105, "finit_module": 273, "delete_module": 106, "open_by_handle_at": 265},
        foreign_from=None,
    ),
}

# io_uring makes sockets and opens files past this filter; keys are the user's, and no namespace divides them by slot;
# the others reach the kernel itself, or a file past every path.
DENIED = (
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "perf_event_open", "userfaultfd"),
    *("add_key", "request_key", "keyctl", "kexec_load", "kexec_file_load"),
    *("init_module", "finit_module", "delete_module", "open_by_handle_at"),
)
# What reaches into another process of the same user, where no PID namespace hides that one.
DENIED_UNDIVIDED = ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd")


def program(machine: str, sockets: Sockets) -> bytes | None:
    """The program (struct sock_filter, 8 bytes each) for a machine as uname(2) calls it; None where we know of none.

    "all" is for a slot with namespaces: sockets of the families that a network namespace holds, EAFNOSUPPORT for the
    rest (AF_VSOCK and AF_ALG reach past it, and a program that has a second way takes it on this error). "unix" is for
    a slot without: AF_UNIX sockets only, and no look into other processes. All else that is refused gives EPERM.
    """
    known = _MACHINES.get(machine)
    if known is None:
        return None
    whole = sockets == "all"
    denied = DENIED if whole else DENIED + DENIED_UNDIVIDED
    code = _Code()
    code.load(MACHINE)
    code.jump(EQUAL, known.audit, otherwise="denied")
    code.load(NUMBER)
    if known.foreign_from is not None:
        code.jump(AT_LEAST, known.foreign_from, "denied")
    for name in denied:
        code.jump(EQUAL, known.calls[name], "denied")
    code.jump(EQUAL, known.calls["ioctl"], "ioctl")
    code.jump(EQUAL, known.calls["socket"], "family")
    code.jump(EQUAL, known.calls["socketpair"], "family")
    code.give("allowed", ALLOW)
    code.check("ioctl", SECOND_LOW, (TIOCSTI, TIOCLINUX), "denied")
    code.give("harmless", ALLOW)
    code.check("family", FIRST_LOW, (UNIX, INET, INET6, NETLINK) if whole else (UNIX,), "usual")
    code.give("unusual", ERRNO | (EAFNOSUPPORT if whole else EPERM))
    code.give("usual", ALLOW)
    code.give("denied", ERRNO | EPERM)
    return code.assembled()


class _Code:
    """Instructions whose jumps name labels; a label without a name is the next instruction. Jumps go forward only."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, int, str, str]] = []
        self._labels: dict[str, int] = {}

    def load(self, offset: int) -> None:
        self._lines.append((LOAD, offset, "", ""))

    def jump(self, test: int, value: int, to: str = "", otherwise: str = "") -> None:
        self._lines.append((test, value, to, otherwise))

    def give(self, label: str, verdict: int) -> None:
        self._labels[label] = len(self._lines)
        self._lines.append((RETURN, verdict, "", ""))

    def check(self, label: str, offset: int, values: Sequence[int], to: str) -> None:
        self._labels[label] = len(self._lines)
        self.load(offset)
        for value in values:
            self.jump(EQUAL, value, to)

    def assembled(self) -> bytes:
        def distance(label: str, at: int) -> int:
            return self._labels[label] - at - 1 if label else 0

        return b"".join(
            struct.pack("<HBBI", code, distance(to, at), distance(otherwise, at), value)
            for at, (code, value, to, otherwise) in enumerate(self._lines)
        )
