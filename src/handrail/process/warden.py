"""A program, one for each host process: makes keepers, and sees that neither they nor what they hold outlive the host.

Usage: python -I -S warden.py CONTROL_FD HOST_PIDFD MODE, with MODE "namespace" or "reaper". Standard library only,
single-threaded, started with an empty environment. On the control socket the host sends one end of a socket for each
keeper that it wants, and how its slot is to be made; the warden answers once, when it is ready. It knows nothing of
calls: those are the keepers'.

In mode "namespace" each keeper is pid 1 of a PID namespace, and the kernel ends all in it when it ends. An ordinary
user needs a user namespace for that, and the real warden is then pid 1 of a PID namespace itself. A keeper within a
sandbox program (bubblewrap) is pid 1 there in either mode.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import sys

TYPE_CHECKING = False  # as `typing` has it, without loading that
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from handrail.process import conversation, keeper, mounts, namespaces, network, tree
else:  # with -I the folder that this file lies in is not searched; it is put last, so that it can hide nothing
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import conversation
    import keeper
    import mounts
    import namespaces
    import network
    import tree

    sys.path.pop()

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

# A request for a keeper brings an end of its conversation, and of the pipe that it complains to.
KEEP_DESCRIPTORS = 2
COMPLAINT_BYTES = 2000

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
        self._networks: dict[str, int] = {}  # a session's network namespace, by the session's name for it
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
        request, fds = conversation.receive(self._control)
        if request is None:
            return False
        action = request.get("do")
        if action == "keep" and len(fds) == KEEP_DESCRIPTORS:
            self._make_keeper(fds[0], fds[1], request["outside"])
        elif action == "settle":
            self._reap()  # what a killed keeper held is ours by now; when it is ended, the closing below tells
        elif action == "forget" and (network_fd := self._networks.pop(request["network"], -1)) >= 0:
            os.close(network_fd)
        for fd in fds:
            os.close(fd)
        return True

    def _make_keeper(self, conversation_fd: int, complaints_fd: int, outside: dict[str, Any]) -> None:
        """On failure the host sees the socket closed before any word from a keeper, and reads why from its pipe."""
        if (name := outside.get("network")) is not None and name not in self._networks:
            try:
                self._networks[name] = network.make()
            except (network.Refused, OSError) as refused:
                complain(complaints_fd, refused)
                return
        needs_namespace = self._in_namespaces and "program" not in outside
        if needs_namespace and libc.unshare(namespaces.CLONE_NEWPID) != 0:
            return
        try:
            pid = os.fork()
        except OSError:  # no room for a process
            pid = -1
        if pid == 0:
            with exit_at_end(complaints_fd):
                self._become_keeper(conversation_fd, outside)
        if pid > 0:
            self._keepers.add(pid)
        if needs_namespace:
            # Without this the next fork would land in that namespace, and fail for ever once its init has ended.
            libc.setns(self._own_namespace, namespaces.CLONE_NEWPID)

    def _become_keeper(self, conversation_fd: int, outside: dict[str, Any]) -> None:
        conversation_fd = os.dup(conversation_fd)
        self._enter_surroundings(outside)
        for fd in (self._life_write, self._host_pidfd, self._wake, self._own_namespace, *self._networks.values()):
            if fd >= 0:
                os.close(fd)
        self._control.close()
        if "program" in outside:
            become_program(outside["program"], conversation_fd, self._life_read)
        if not self._in_namespaces:
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        elif "mounts" in outside:
            mounts.enter()
            mounts.build(outside["mounts"])
        else:
            namespaces.see_own_processes()
        host = socket.socket(fileno=conversation_fd)
        keeper.Keeper(host, self._life_read, is_init=self._in_namespaces).serve()

    def _enter_surroundings(self, outside: dict[str, Any]) -> None:
        """What a slot shares with others of its session or has from outside, whatever it is made of."""
        if self._in_namespaces or "program" in outside:
            # "When the parent's thread ends": the warden has one thread only, so this is its own end.
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if "cgroup" in outside:
            with open(os.path.join(outside["cgroup"], "cgroup.procs"), "w") as file:
                file.write("0")  # whoever writes
        if "network" in outside:
            network.join(self._networks[outside["network"]])

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
        # An init has ended only when all in its namespace has. What ran bubblewrap ends before the init within, which
        # falls to us then, and dies by its parent's death.
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)


def become_program(program: list[str], conversation_fd: int, life_fd: int) -> None:
    """Start the keeper anew inside a sandbox program, with no environment and these two descriptors."""
    # First out of the way: either of them may have the other's number.
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (conversation_fd, life_fd)]
    for place, fd in enumerate(moved, 3):
        os.dup2(fd, place)
    argv = [*program, "--", sys.executable, "-I", "-S", "-B", keeper.__file__, "3", "4"]
    os.execve(program[0], argv, {})  # noqa: S606 - no shell is wanted


@contextlib.contextmanager
def exit_at_end(complaints_fd: int) -> Generator[None]:
    """For a forked child: whatever happens, it never returns into its parent's code, and tells what it was."""
    try:
        os.dup2(complaints_fd, 2)
        yield
    except BaseException as failure:  # noqa: BLE001 - there is nobody in this process to tell, but the host
        complain(2, failure)
        os._exit(1)
    os._exit(0)


def complain(fd: int, failure: BaseException) -> None:
    """Say in one line why there is no slot."""
    words = str(failure) if type(failure).__name__ == "Refused" else f"{type(failure).__name__}: {failure}"
    with contextlib.suppress(OSError):  # the host has gone
        os.write(fd, words.encode(errors="backslashreplace")[:COMPLAINT_BYTES] + b"\n")


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
    in_namespaces = mode == "namespace" and (namespaces.can_make_namespaces() or namespaces.enter_user_namespace(fds))
    if not in_namespaces and not os.path.samefile("/proc/self", f"/proc/{os.getpid()}"):
        return  # the /proc of another PID namespace: its numbers are those of strangers here
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Commands of the same user can then neither trace this process and its keepers nor look into them.
    libc.prctl(PR_SET_DUMPABLE, 0)
    control = socket.socket(fileno=control_fd)
    control.send(b'{"ready": "namespace"}' if in_namespaces else b'{"ready": "reaper"}', socket.MSG_NOSIGNAL)
    Warden(control, host_pidfd, in_namespaces=in_namespaces).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
