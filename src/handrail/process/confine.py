"""Confines this very process and all that it will start; part of the keeper's program, and imported by the package too.

Standard library only, for a process with one thread. It enforces all that it is asked for, or raises: there is no less.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import resource
import stat
import struct
import sys

TYPE_CHECKING = False  # as `typing` has it, without loading that
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from typing import Any

PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_SET_DUMPABLE = 1, 2, 4  # linux/prctl.h, as all PR_ names
PR_SET_SECCOMP, PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 22, 23, 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION = 0x20080522  # linux/capability.h: version 3, in which a set takes two words
CAPABILITIES = 64  # that a set has room for; the kernel knows fewer
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446  # asm-generic/unistd.h
LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_RULE_PATH_BENEATH = 1, 1
# EXECUTE, WRITE_FILE, READ_FILE, TRUNCATE, IOCTL_DEV: the kernel takes no other right for what is no directory.
LANDLOCK_FILE = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15

KEYS = {"owner", "drop_capabilities", "landlock", "seccomp", "limits", "identities", "must_write"}

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """One sentence: what could not be enforced, and why in the system's words. For people, never for the model."""


class FilterProgram(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def landlock_abi() -> int:
    """The kernel's version of Landlock; 0 where there is none, or it is switched off."""
    if sys.platform != "linux":
        return 0
    version: int = libc.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION)
    return max(version, 0)


def apply(inside: Mapping[str, Any]) -> None:
    """Enforce on this process, for good, what `inside` asks for; raises Refused if any of it cannot be.

    identities         rows of path, device, inode: a mount of exactly that file has to be seen at the path.
    limits             rows of a name of `resource` and a value: soft and hard, but never above the present hard one.
    owner              (uid, gid, groups) to become, or None.
    drop_capabilities  whether no capability, and no way to one, may remain.
    landlock           `fs`, `net`, `scoped` and `rules` as in landlock.py, or None.
    must_write         directories in which a file can be made, once all of the above holds.
    seccomp            a BPF program in hexadecimal, or None.

    A process that has begun to be confined and could not be is of no use: it has to end.
    """
    if unknown := inside.keys() - KEYS:
        raise Refused(f"nobody knows how to enforce {', '.join(sorted(unknown))}")
    for path, device, inode in inside.get("identities") or ():
        require_identity(path, device, inode)
    for name, value in inside.get("limits") or ():
        set_limit(name, value)
    drops, landlock, seccomp = inside.get("drop_capabilities"), inside.get("landlock"), inside.get("seccomp")
    lower(inside.get("owner"), drop_all=bool(drops))
    if drops or landlock is not None or seccomp is not None:
        with step("give up new privileges"):
            call(libc.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    with step("close this process to others of its user"):
        call(libc.prctl, PR_SET_DUMPABLE, 0, 0, 0, 0)
    if landlock is not None:
        restrict(landlock)
    for path in inside.get("must_write") or ():
        require_writable(path)  # as a command would find it: without our capabilities, by our rules
    if seccomp is not None:
        filter_calls(seccomp)


@contextlib.contextmanager
def step(words: str) -> Generator[None]:
    """What is being done, for the sentence if it fails."""
    try:
        yield
    except OSError as failure:
        raise Refused(f"cannot {words}: {os.strerror(failure.errno or 0)}") from failure


def call(function: Any, *arguments: int | bytes | ctypes.Array[Any] | ctypes.Structure) -> int:
    """A function of the C library; its failure as an OSError. Numbers go as longs, which prctl and syscall read."""
    words = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result: int = function(*words)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


# ---------------------------------------------------------------- what has to be there


def require_identity(path: str, device: int, inode: int) -> None:
    """By one descriptor: what lies there is that file, and the mount that it was reached through is at that path.

    A list of mounts alone would not do: it keeps those that a later mount on the path, or on one above it, covers.
    """
    with step(f"look at the mount on {path}"):
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            mounted = mount_points().get(mount_id(fd))
        finally:
            os.close(fd)
    if (found.st_dev, found.st_ino) != (device, inode):
        raise Refused(f"what is mounted on {path} is another file than was meant")
    if mounted != os.fsencode(path):
        raise Refused(f"nothing is mounted on {path}")


def mount_id(fd: int) -> int:
    """Of the mount that a descriptor was opened through: proc_pid_fdinfo(5)."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        for line in file:
            if line.startswith(b"mnt_id:"):
                return int(line.split()[1])
    raise OSError(errno.ENOSYS, "")  # what calls itself Linux and does not tell


def mount_points() -> dict[int, bytes]:
    """Where each of our mounts is, by its id: proc_pid_mountinfo(5)."""
    with open("/proc/self/mountinfo", "rb") as file:
        rows = [line.split(b" ", 5) for line in file]
    return {int(row[0]): unescaped(row[4]) for row in rows}


def unescaped(field: bytes) -> bytes:
    r"""The kernel writes spaces, newlines and the like as \040 in such a field."""
    return re.sub(rb"\\([0-3][0-7]{2})", lambda found: bytes([int(found[1], 8)]), field)


def require_writable(path: str) -> None:
    """By a file without a name, which leaves nothing behind; by access(2) on a file system that has none of those."""
    with step(f"write in {path}"):
        try:
            os.close(os.open(path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as failure:
            if failure.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
                raise
            if not os.access(path, os.W_OK | os.X_OK):
                raise OSError(errno.EACCES if os.path.isdir(path) else errno.ENOENT, "") from failure


# ---------------------------------------------------------------- who this process is, and what it may use


def set_limit(name: str, value: int) -> None:
    """Soft and hard, so that no command raises it."""
    limit = getattr(resource, name, None) if name.startswith("RLIMIT_") else None
    if limit is None:
        raise Refused(f"there is no limit called {name}")
    hard = resource.getrlimit(limit)[1]
    lowest = min(hard, value, key=lambda one: float("inf") if one == resource.RLIM_INFINITY else one)
    try:
        resource.setrlimit(limit, (lowest, lowest))
    except (OSError, ValueError) as failure:
        raise Refused(f"cannot set {name}: {failure}") from failure


def lower(owner: tuple[int, int, Sequence[int]] | None, *, drop_all: bool) -> None:
    """Become the owner, and keep no capability if `drop_all`."""
    if drop_all:
        empty_bounding_set()  # while we may: another owner has no right to
    if owner:
        become(*owner)
    if drop_all:
        drop_capabilities()


def become(uid: int, gid: int, groups: Sequence[int]) -> None:
    """Another user, for good. Who is that one already needs no right to it."""
    now = os.getresuid(), os.getresgid(), set(os.getgroups())
    if now == ((uid,) * 3, (gid,) * 3, set(groups)):
        return
    parent = os.getppid()
    signal_at_end = ctypes.c_int()
    with step(f"become user {uid}"):
        call(libc.prctl, PR_GET_PDEATHSIG, ctypes.addressof(signal_at_end), 0, 0, 0)
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        # A change of credentials takes back that we end with our parent. Where that was not set it must not be: a
        # subreaper has to outlive the warden long enough to end what it has.
        call(libc.prctl, PR_SET_PDEATHSIG, signal_at_end.value, 0, 0, 0)
    if signal_at_end.value and os.getppid() != parent:  # 0 both times where the parent's namespace is another
        raise Refused("the process that asked for this one has ended")


def empty_bounding_set() -> None:
    """No program that is started can then bring a capability along, whatever its file says."""
    for capability in range(CAPABILITIES):
        if libc.prctl(PR_CAPBSET_READ, ctypes.c_long(capability)) < 0:
            return  # the kernel knows no more of them
        try:
            call(libc.prctl, PR_CAPBSET_DROP, capability, 0, 0, 0)
        except OSError as failure:
            # Who has no capability may not drop one from the set either, and needs not: without new privileges it is
            # never looked at.
            if failure.errno == errno.EPERM and not any(held_capabilities()):
                return
            raise Refused(f"cannot drop capability {capability}: {os.strerror(failure.errno or 0)}") from failure


def drop_capabilities() -> None:
    """All that this process holds, and what it could hand on or take again."""
    with step("drop the capabilities of this process"):
        call(libc.prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        call(libc.capset, struct.pack("=Ii", CAPABILITY_VERSION, 0), bytes(24))
        if any(held_capabilities()):
            raise OSError(errno.EPERM, "")


def held_capabilities() -> bytes:
    """Effective, permitted and inheritable ones: two of `struct __user_cap_data_struct`."""
    sets = ctypes.create_string_buffer(24)
    with step("look at the capabilities of this process"):
        call(libc.capget, struct.pack("=Ii", CAPABILITY_VERSION, 0), sets)
    return sets.raw


# ---------------------------------------------------------------- what it may reach


def restrict(landlock: Mapping[str, Any]) -> None:
    """Landlock. What is asked for beyond the kernel's version is an error, not something to leave out."""
    fs, net, scoped = landlock["fs"], landlock["net"], landlock["scoped"]
    # As long as is needed: a kernel that does not know the rest of the structure takes it no longer.
    attributes = struct.pack("=QQQ", fs, net, scoped)[: 24 if scoped else 16 if net else 8]
    with step("make a Landlock ruleset"):
        ruleset = call(libc.syscall, LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path, access in landlock["rules"]:
            add_rule(ruleset, path, access)
        with step("enter a Landlock ruleset"):
            call(libc.syscall, LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def add_rule(ruleset: int, path: str, access: int) -> None:
    """Grant `access` at and below a path, if there is such a path.

    If a link leads from it to another place, then somebody put that there since the rules were made, and granting the
    other place is what he wants. In /dev itself links are the system's own: ptmx, shm.
    """
    with step(f"grant {path} by Landlock"):
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            place = os.readlink(f"/proc/self/fd/{fd}")
            if place != path and os.path.dirname(path) != "/dev":
                raise Refused(f"cannot grant {path} by Landlock: it leads to {place}")
            allowed = access if stat.S_ISDIR(os.fstat(fd).st_mode) else access & LANDLOCK_FILE
            rule = struct.pack("=Qi", allowed, fd)
            call(libc.syscall, LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(fd)


def filter_calls(program: str) -> None:
    """Seccomp, last of all: it may refuse what the other steps need."""
    with step("filter system calls"):
        try:
            code = bytes.fromhex(program)
        except ValueError:
            code = b""
        if not code or len(code) % 8:
            raise OSError(errno.EINVAL, "")
        holder = FilterProgram(len(code) // 8, code)
        call(libc.prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(holder), 0, 0)
