"""A program, one for each host process: makes keepers, and sees that neither they nor what they hold outlive the host.

Usage: python -I -S warden.py CONTROL_FD HOST_PIDFD MODE, with MODE "namespace" or "reaper". Standard library only,
single-threaded, started with an empty environment. On the control socket the host sends one end of a socket for each
keeper that it wants; the warden answers once, when it is ready. It knows nothing of calls: those are the keepers'.

In mode "namespace" each keeper is pid 1 of a PID namespace, and the kernel ends all in it when it ends. An ordinary
user needs a user namespace for that, and the real warden is then pid 1 of a PID namespace itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import socket
import sys

TYPE_CHECKING = False  # as `typing` has it, without loading that
if TYPE_CHECKING:
    from collections.abc import Generator

    from handrail.process import keeper, tree
else:  # with -I the folder that this file lies in is not searched; it is put last, so that it can hide nothing
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import keeper
    import tree

    sys.path.pop()

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000  # linux/sched.h
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 2, 4, 8, 0x4000, 0x80000  # linux/mount.h
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36  # linux/prctl.h

# What a command may use, as far as hard limits go: what a login gives, whatever the host has set for itself. No core
# files: they would lie about in the workspace. 1,024 descriptors, since more break programs that wait with select(2).
LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_NOFILE, 1024),
    (resource.RLIMIT_STACK, 8 * 1024 * 1024),
    (resource.RLIMIT_CPU, resource.RLIM_INFINITY),
    (resource.RLIMIT_FSIZE, resource.RLIM_INFINITY),
    (resource.RLIMIT_DATA, resource.RLIM_INFINITY),
    (resource.RLIMIT_AS, resource.RLIM_INFINITY),
    (resource.RLIMIT_NPROC, resource.RLIM_INFINITY),
)

libc = ctypes.CDLL(None, use_errno=True)


class Warden:
    """Waits for three things: a request, the end of the host, the end of a child."""

    def __init__(self, control: socket.socket, host_pidfd: int, *, in_namespaces: bool) -> None:
        self._control = control
        self._host_pidfd = host_pidfd
        self._in_namespaces = in_namespaces
        self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY) if in_namespaces else -1
        self._wake = tree.wake_on_child()
        self._keepers: set[int] = set()
        # Its writing end is the warden's alone: a keeper that finds its own end closed has lost the warden.
        self._life_read, self._life_write = os.pipe()

    def serve(self) -> None:
        """Until the host is gone; then end everything, and wait until it is gone too."""
        poll = select.poll()
        for fd in (self._control.fileno(), self._host_pidfd, self._wake):
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._wake:
                    tree.drain(self._wake)
                    self._reap()
                elif fd == self._host_pidfd or not self._answer():
                    self._end_all()
                    return

    def _answer(self) -> bool:
        """Do what the host asks; False when it has closed the socket."""
        request, fds = keeper.receive(self._control)
        if request is None:
            return False
        for fd in fds:
            if request.get("do") == "keep":
                self._make_keeper(fd)
            elif request.get("do") == "settle":
                self._reap()  # what a killed keeper held is ours by now; when it is ended, the closing below tells
            os.close(fd)
        return True

    def _make_keeper(self, conversation_fd: int) -> None:
        """On failure the host sees the socket closed before any word from a keeper."""
        if self._in_namespaces and libc.unshare(CLONE_NEWPID) != 0:
            return
        try:
            pid = os.fork()
        except OSError:  # no room for a process
            pid = -1
        if pid == 0:
            with exit_at_end():
                self._become_keeper(conversation_fd)
        if pid > 0:
            self._keepers.add(pid)
        if self._in_namespaces:
            # Without this the next fork would land in that namespace, and fail for ever once its init has ended.
            libc.setns(self._own_namespace, CLONE_NEWPID)

    def _become_keeper(self, conversation_fd: int) -> None:
        conversation = socket.socket(fileno=os.dup(conversation_fd))
        for fd in (conversation_fd, self._life_write, self._host_pidfd, self._wake, self._own_namespace):
            if fd >= 0:
                os.close(fd)
        self._control.close()
        if self._in_namespaces:
            # "When the parent's thread ends": the warden has one thread only, so this is its own end.
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            see_own_processes()
        else:
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        keeper.Keeper(conversation, self._life_read, is_init=self._in_namespaces).serve()

    def _reap(self) -> None:
        """Collect ended keepers. What a killed subreaper held has fallen to us, the next subreaper: end it."""
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitpid(-1, os.WNOHANG)[0]:
                self._keepers.discard(ended)
        if not self._in_namespaces and set(tree.children(os.getpid())) - self._keepers:
            tree.kill_tree(self._wake, frozenset(self._keepers))

    def _end_all(self) -> None:
        if not self._in_namespaces:
            tree.kill_tree(self._wake)
            return
        for pid in self._keepers:
            tree.signal_pid(pid, signal.SIGKILL)
        for pid in self._keepers:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)  # an init has ended only when all in its namespace has


def see_own_processes() -> None:
    """A /proc for this namespace, in a mount namespace of its own: without it /proc/$$ would be another process.

    Where that is forbidden (a container that masks parts of /proc) commands see the host's /proc instead.
    """
    if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None) == 0:
        libc.mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)


@contextlib.contextmanager
def exit_at_end() -> Generator[None]:
    """For a forked child: whatever happens, it never returns into its parent's code."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - there is nobody in this process to tell
        os._exit(1)
    os._exit(0)


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


def start_clean(fds: list[int]) -> None:
    """Nothing of how the host treats signals, limits or descriptors reaches a command."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):  # the C library keeps a few for itself
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for limit, wanted in LIMITS:
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (wanted if is_within(wanted, hard) else hard, hard))
    for fd in fds:
        os.set_inheritable(fd, False)  # noqa: FBT003 - takes no name
    os.chdir("/")


def is_within(limit: int, other: int) -> bool:
    """Whether a resource limit is no higher than another; no limit is a number of its own, below all others."""
    return other == resource.RLIM_INFINITY or (limit != resource.RLIM_INFINITY and limit <= other)


def main(control_fd: int, host_pidfd: int, mode: str) -> None:
    """Become what `mode` asks for, or less, say which, and serve. Where there can be neither, just end."""
    fds = [control_fd, host_pidfd]
    start_clean(fds)
    in_namespaces = mode == "namespace" and (can_make_namespaces() or enter_user_namespace(fds))
    if not in_namespaces:
        if not os.path.samefile("/proc/self", f"/proc/{os.getpid()}"):
            return  # the /proc of another PID namespace: its numbers are those of strangers here
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Commands of the same user can then neither trace this process and its keepers nor look into them.
    libc.prctl(PR_SET_DUMPABLE, 0)
    control = socket.socket(fileno=control_fd)
    control.send(b'{"ready": "namespace"}' if in_namespaces else b'{"ready": "reaper"}', socket.MSG_NOSIGNAL)
    Warden(control, host_pidfd, in_namespaces=in_namespaces).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
