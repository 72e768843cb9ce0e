"""Starts one process with nothing inherited by accident: own session, default signals, fixed umask, no descriptors.

Never uses `preexec_fn`: it forces a full fork of the host, 30 times the price with 1 GiB of memory in use.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

from handrail.process.child import NotStarted
from handrail.values.invocation import Invocation

# Files that a command makes are readable by others and writable by their owner, whatever umask the host runs with.
UMASK = 0o022
# What a host may have set to "ignore". SIGPIPE and SIGXFSZ are left out, since `Popen` puts those back itself
# (restore_signals), and the real-time signals, since nobody ignores them and asking costs as much as for all others.
_IGNORABLE = tuple(
    number
    for number in sorted(signal.Signals)
    if number not in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGKILL, signal.SIGSTOP)
    and not number.name.startswith("SIGRT")
)
_CLEAN_START = os.path.join(os.path.dirname(__file__), "clean_start.py")


class Pipes:
    """The pipes of one command; whatever was not handed over is closed again."""

    def __init__(self, *, merge: bool) -> None:
        self._fds: list[int] = []
        self._reading: dict[str, int] = {}
        try:
            self.stdout = self._pipe("stdout")
            self.stderr = self.stdout if merge else self._pipe("stderr")
        except OSError as failure:
            self.__exit__()
            raise no_room() from failure

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._fds:
            os.close(fd)

    def hand_over(self) -> dict[str, int]:
        """The reading ends, now the caller's to close."""
        for fd in self._reading.values():
            self._fds.remove(fd)
        return self._reading

    def _pipe(self, name: str) -> int:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._fds += (reading, writing)
        self._reading[name] = reading
        return writing


def spawn(invocation: Invocation, pipes: Pipes) -> subprocess.Popen[bytes]:
    """Start `invocation` with its output into `pipes`. Raises NotStarted, in words for a model."""
    argv = list(invocation.argv)
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        raise NotStarted("The host program ignores SIGCHLD, so no exit code could be read; set it to its default.", 125)
    if _starts_unclean():
        # Ignored and blocked signals pass through exec, and only code in the child can undo that.
        import shutil

        program = shutil.which(argv[0], path=invocation.env.get("PATH", os.defpath))
        if program is None:
            raise NotStarted(f"{argv[0]}: not found", 127)
        argv = [sys.executable, "-I", "-S", _CLEAN_START, program, *argv]
    try:
        return subprocess.Popen(
            argv,
            cwd=invocation.cwd,
            env=invocation.env,
            stdin=subprocess.DEVNULL,
            stdout=pipes.stdout,
            stderr=pipes.stderr,
            start_new_session=True,
            umask=UMASK,
        )
    except OSError as failure:
        raise not_started(failure.errno or 0, invocation) from failure
    except ValueError as failure:  # a NUL in a word, in a name or a value of the environment
        raise not_started(0, invocation) from failure


def _starts_unclean() -> bool:
    """Whether this process ignores or blocks signals that a command would inherit."""
    if signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        return True
    return any(signal.getsignal(number) is signal.SIG_IGN for number in _IGNORABLE)


EXHAUSTED = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
"""Errors that say nothing of what can be had here, only that there is no room for it now."""


def not_started(number: int, invocation: Invocation) -> NotStarted:
    """Words for the error `number` (errno; 0 for a NUL in the command) of an attempt to start `invocation`."""
    program = os.path.basename(invocation.argv[0])
    if number == 0:
        return NotStarted("The command or its environment holds a NUL character.", 125)
    if not os.path.isdir(invocation.cwd):
        return NotStarted("The working directory does not exist.", 125)
    if number in EXHAUSTED:
        return no_room()
    sentence, exit_code = _WORDS.get(number, ("{}: the system refused to start it", 125))
    return NotStarted(sentence.format(program), exit_code)


_WORDS = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), ("{}: not found", 127)),
    **dict.fromkeys((errno.EACCES, errno.ENOEXEC, errno.EPERM, errno.EISDIR), ("{}: cannot be executed", 126)),
    errno.E2BIG: ("The command and its environment are together longer than the system allows.", 126),
}


def no_room() -> NotStarted:
    """Processes, memory or descriptors ran out."""
    return NotStarted("The system has no room for another process now; try again later.", 125)
