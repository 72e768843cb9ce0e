"""Makes a mount namespace that a slot's commands may be let loose in: all of it read-only, except what is asked for.

Part of the warden's program; standard library only. It is for a forked child that becomes a keeper. It follows no
symbolic link in any path, and creates mount points only in file systems of its own and in the session's /tmp: where a
path is not what the host saw, it refuses, and what it has done so far ends with its process.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat

TYPE_CHECKING = False  # as `typing` has it, without loading that
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000  # linux/sched.h

# The same numbers on every architecture: asm-generic/unistd.h. The youngest came with Linux 5.12.
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, OPENAT2, MOUNT_SETATTR = 428, 429, 430, 431, 432, 437, 442

# linux/mount.h, linux/fcntl.h
OPEN_TREE_CLONE, FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC = 1, 1, 1
FSCONFIG_SET_STRING, FSCONFIG_CMD_CREATE = 1, 6
FROM_EMPTY_PATH, TO_EMPTY_PATH = 0x4, 0x40
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
MS_PRIVATE = 1 << 18
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000

NO_CROSSING, NO_LINKS = 1, 4  # RESOLVE_*, linux/openat2.h

# A root without capabilities may still write to these: the kernel asks only who owns them. /proc/sys holds
# core_pattern, which names a program that the kernel runs as the real root.
READ_ONLY_IN_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "asound", "driver", "mtrr")

NODES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("core", "/proc/kcore"),
    ("ptmx", "pts/ptmx"),
)

SHARED = "/tmp"  # noqa: S108 - the only row whose source may be given new entries: it is the session's own

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """One sentence: the step, the path, and the system's word for why."""


class Built:
    """What came out. `own_proc` is whether /proc shows this PID namespace's processes; else it is the host's."""

    __slots__ = ("own_proc",)

    def __init__(self, *, own_proc: bool) -> None:
        self.own_proc = own_proc


def enter() -> None:
    """New mount, IPC, host name and, where the kernel has them, cgroup namespaces for this process; or Refused."""
    if libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) != 0:
        raise Refused(f"cannot make mount, IPC and UTS namespaces: {os.strerror(ctypes.get_errno())}")
    # It only hides where the slot's own cgroup lies: the file systems that control them are read-only here.
    libc.unshare(CLONE_NEWCGROUP)


def build(rows: Sequence[tuple[str, str | None, bool]]) -> Built:
    """Mount what `rows` say in this process's mount namespace, which must be its own, and nobody else's: see `enter`.

    A row is a path, what is to lie there, and whether that can be written: the tree or file of that name, as it was
    before anything was changed, or an empty directory for None. A row comes after those that it lies in. All paths
    are absolute and real. Raises Refused; the namespace is of no use then.
    """
    umask = os.umask(0o022)  # mount points must let through whoever the commands run as
    try:
        with contextlib.ExitStack() as held:
            return _Making(held).build(rows)
    finally:
        os.umask(umask)


class _Making:
    """Holds the descriptors of mounts until all are where they belong, so that no path is looked up twice."""

    def __init__(self, held: contextlib.ExitStack) -> None:
        self._held = held
        self._growing: dict[str, int] = {}  # path of a mount that may be given mount points → its root
        self._to_seal: list[tuple[str, int]] = []

    def build(self, rows: Sequence[tuple[str, str | None, bool]]) -> Built:
        with refusing("make all mounts private below", "/"):
            root = self._keep(open_path(AT_FDCWD, "/", NO_LINKS))
            # Not slaves: a disk that is put in later would then appear here, and not read-only.
            set_attributes(root, AT_RECURSIVE, 0, propagation=MS_PRIVATE)
        # Before the rest becomes read-only, and before anything is hidden, also from a later row.
        nodes = [self._copy(f"/dev/{name}", READ_ONLY | NO_SUID) for name in NODES]
        sources = [self._source(source, writable=writable) for _, source, writable in rows]
        with refusing("make everything read-only below", "/"):
            set_attributes(root, AT_RECURSIVE, READ_ONLY | NO_SUID | NO_DEVICES)
        own_proc = self._mount_proc()
        self._mount_dev(nodes)
        for (path, source, writable), mount in zip(rows, sources, strict=True):
            self._put(mount, path)
            self._growing.pop(path, None)
            if source is None or (writable and path == SHARED):
                self._growing[path] = mount
            if source is None and not writable:
                self._to_seal.append((path, mount))
        for path, mount in self._to_seal:
            with refusing("make read-only", path):
                set_attributes(mount, 0, READ_ONLY)
        return Built(own_proc=own_proc)

    # ---- where mounts come from; each returns a descriptor of one that lies nowhere yet

    def _source(self, source: str | None, *, writable: bool) -> int:
        if source is None:
            # Commands may run as somebody else than who makes this.
            return self._fresh("tmpfs", NO_SUID | NO_DEVICES, mode="1777" if writable else "0755")
        return self._copy(source, NO_SUID | NO_DEVICES | (0 if writable else READ_ONLY))

    def _copy(self, path: str, attributes: int) -> int:
        """Of the tree or file at `path`, with all that is mounted in it."""
        with refusing("open", path):
            found = self._keep(open_path(AT_FDCWD, path, NO_LINKS))
        return self._clone(found, path, attributes)

    def _clone(self, found: int, path: str, attributes: int) -> int:
        with refusing("copy the mount of", path):
            flags = OPEN_TREE_CLONE | os.O_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE
            mount = self._keep(system_call(OPEN_TREE, found, b"", flags))
            set_attributes(mount, AT_RECURSIVE, attributes)
        return mount

    def _fresh(self, kind: str, attributes: int, **options: str) -> int:
        """An empty file system of our own."""
        with refusing("make a file system of kind", kind):
            context = self._keep(system_call(FSOPEN, kind.encode(), FSOPEN_CLOEXEC))
            for name, value in {"source": kind, **options}.items():
                system_call(FSCONFIG, context, FSCONFIG_SET_STRING, name.encode(), value.encode(), 0)
            system_call(FSCONFIG, context, FSCONFIG_CMD_CREATE, None, None, 0)
            return self._keep(system_call(FSMOUNT, context, FSMOUNT_CLOEXEC, attributes))

    # ---- where they go

    def _mount_proc(self) -> bool:
        try:
            proc = self._fresh("proc", NO_SUID | NO_DEVICES | NO_EXEC)
        except Refused as refused:
            # A user's namespace may show no more of /proc than it saw before, and containers hide parts of theirs.
            if isinstance(refused.__cause__, PermissionError):
                return False
            raise
        self._put(proc, "/proc")
        for name in READ_ONLY_IN_PROC:
            path = f"/proc/{name}"
            with refusing("open", path):
                try:
                    found = self._keep(open_path(proc, name, NO_LINKS))
                except FileNotFoundError:  # not in this kernel
                    continue
            self._move(self._clone(found, path, READ_ONLY), found, path)
        return True

    def _mount_dev(self, nodes: list[int]) -> None:
        dev = self._fresh("tmpfs", NO_SUID | NO_DEVICES | NO_EXEC, mode="0755")
        self._put(dev, "/dev")
        with refusing("fill", "/dev"):
            for name, target in LINKS:
                os.symlink(target, name, dir_fd=dev)
        self._growing["/dev"] = dev
        for name, node in zip(NODES, nodes, strict=True):
            self._put(node, f"/dev/{name}")
        self._put(self._fresh("devpts", NO_SUID | NO_EXEC, mode="0620", ptmxmode="0666"), "/dev/pts")
        self._put(self._fresh("tmpfs", NO_SUID | NO_DEVICES, mode="1777"), "/dev/shm")  # noqa: S108 - not the host's
        self._to_seal.append(("/dev", dev))

    def _put(self, mount: int, path: str) -> None:
        is_directory = is_a_directory(mount)
        with refusing("open the mount point", path):
            try:
                point = self._keep(open_path(AT_FDCWD, path, NO_LINKS))
            except FileNotFoundError:
                point = self._make_point(path, is_directory=is_directory)
        if is_a_directory(point) != is_directory:  # of which the kernel says "Invalid argument"
            raise Refused(f"cannot mount {path!r}: either that or what is to lie there is no directory")
        self._move(mount, point, path)

    def _make_point(self, path: str, *, is_directory: bool) -> int:
        """Only within one mount that may grow: neither into another that lies in it, nor behind a link."""
        above = max((above for above in self._growing if path.startswith(f"{above}/")), key=len, default=None)
        if above is None:
            raise Refused(f"the mount point {path!r} does not exist, and nothing may be created there")
        *parents, name = path[len(above) + 1 :].split("/")
        where = self._growing[above]
        for parent in parents:
            where = self._make_entry(where, parent, is_directory=True)
        return self._make_entry(where, name, is_directory=is_directory)

    def _make_entry(self, where: int, name: str, *, is_directory: bool) -> int:
        with contextlib.suppress(FileExistsError):  # in the session's /tmp another slot may have been here before
            if is_directory:
                os.mkdir(name, 0o755, dir_fd=where)
            else:
                os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=where))
        return self._keep(open_path(where, name, NO_LINKS | NO_CROSSING))

    def _move(self, mount: int, point: int, path: str) -> None:
        with refusing("mount", path):
            system_call(MOVE_MOUNT, mount, b"", point, b"", FROM_EMPTY_PATH | TO_EMPTY_PATH)

    def _keep(self, fd: int) -> int:
        self._held.callback(os.close, fd)
        return fd


# ---------------------------------------------------------------- system calls


@contextlib.contextmanager
def refusing(step: str, path: str) -> Generator[None]:
    """Turn the system's error into a sentence."""
    try:
        yield
    except OSError as failure:
        why = "a symbolic link is on the way" if failure.errno == errno.ELOOP else os.strerror(failure.errno or 0)
        raise Refused(f"cannot {step} {path!r}: {why}") from failure


def system_call(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_uint64] | None) -> int:
    """Its result, or OSError. The C library of older systems has no names for these."""
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = libc.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed))
    return result


def open_path(where: int, path: str, resolve: int) -> int:
    """A descriptor that only says which file it is. ELOOP where a symbolic link is on the way or at the end."""
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, resolve)
    return system_call(OPENAT2, where, os.fsencode(path), how, ctypes.sizeof(how))


def is_a_directory(fd: int) -> bool:
    """Whether it leads to one."""
    return stat.S_ISDIR(os.fstat(fd).st_mode)


def set_attributes(mount: int, flags: int, attributes: int, *, propagation: int = 0) -> None:
    """Add to the attributes of a mount and, with AT_RECURSIVE in `flags`, of those below it."""
    given = (ctypes.c_uint64 * 4)(attributes, 0, propagation, 0)
    system_call(MOUNT_SETATTR, mount, b"", flags | AT_EMPTY_PATH, given, ctypes.sizeof(given))
