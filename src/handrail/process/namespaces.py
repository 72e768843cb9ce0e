"""PID, mount and user namespaces for the warden and its keepers. Part of the warden's program; standard library only.

A failure leaves the process as it was, or happens in a forked child: nobody goes on in half of a namespace.
"""

from __future__ import annotations

import ctypes
import os
import signal

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000  # linux/sched.h
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 2, 4, 8, 0x4000, 0x80000  # linux/mount.h
PR_SET_PDEATHSIG = 1  # linux/prctl.h

libc = ctypes.CDLL(None, use_errno=True)


def see_own_processes() -> None:
    """A /proc for this namespace, in a mount namespace of its own: without it /proc/$$ would be another process.

    Where that is forbidden (a container that masks parts of /proc) commands see the host's /proc instead.
    """
    if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None) == 0:
        libc.mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)


def can_make_namespaces() -> bool:
    """Make one, as a keeper's would be made, and come back."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    if libc.unshare(CLONE_NEWPID) != 0:
        os.close(own)
        return False
    try:
        pid = os.fork()
    except OSError:
        pid = -1
    if pid == 0:
        os._exit(0)
    worked = pid > 0 and os.waitpid(pid, 0)[1] == 0
    came_back = libc.setns(own, CLONE_NEWPID) == 0
    os.close(own)
    return worked and came_back


def enter_user_namespace(fds: list[int]) -> bool:
    """As an ordinary user: become pid 1 of a PID namespace that a user namespace of ours owns.

    A keeper's namespace can only be left again (setns) towards one that we own. In a forked child, as a failure on the
    way cannot be undone: this returns True there, and False in the process that called if it did not work. If it did,
    that process waits here for the end and never returns. It keeps none of `fds`: the host must see the warden's own
    end by them.
    """
    reading, writing = os.pipe()
    uid, gid = os.getuid(), os.getgid()
    pid = os.fork()
    if pid:
        os.close(writing)
        worked = os.read(reading, 1) == b"!"
        os.close(reading)
        close_all(fds if worked else [])
        os.waitpid(pid, 0)
        if worked:
            os._exit(0)
        return False
    os.close(reading)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0:
        os._exit(1)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError:
            os._exit(1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # only now: a change of credentials takes it back
    inner = os.fork()
    if inner:
        close_all([writing, *fds])
        os.waitpid(inner, 0)
        os._exit(0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if not can_make_namespaces():
        os._exit(1)
    os.write(writing, b"!")
    os.close(writing)
    return True


def close_all(fds: list[int]) -> None:
    """Close descriptors of ours."""
    for fd in fds:
        os.close(fd)
