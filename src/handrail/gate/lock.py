"""The workspace's lock: one changing operation at a time, across processes. Who comes second is told so at once.

A record lock (fcntl) on a file of its own: the kernel drops it when its process ends, however that ends, and a child
that the host forked does not hold it on. Such locks do not tell the threads of one process apart; that is done here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

from handrail.process.spawn import no_room
from handrail.state import lock_directory


class Busy(Exception):
    """Another operation holds the lock."""


class WorkspaceLock:
    """The lock of one workspace, known by its root's device and inode: another path to it is the same workspace."""

    def __init__(self, root: str) -> None:
        facts = os.stat(root)
        self._name = f"{facts.st_dev:x}-{facts.st_ino:x}.lock"
        self._path = os.path.join(lock_directory(), self._name)  # found once: it takes longer than the lock

    @contextmanager
    def held(self) -> Generator[None]:
        """Hold it while the block runs, or raise Busy without waiting. Raises NotStarted for want of a descriptor."""
        with _here.guard:
            if self._name in _here.names:
                raise Busy
            fd = self._open()
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as failure:
                os.close(fd)
                if failure.errno in (errno.EACCES, errno.EAGAIN):
                    raise Busy from failure
                raise no_room() from failure
            _here.names.add(self._name)
        try:
            yield
        finally:
            with _here.guard:
                _here.names.discard(self._name)
                os.close(fd)  # and with it the lock

    def _open(self) -> int:
        try:
            if not os.path.isdir(os.path.dirname(self._path)):
                lock_directory()  # somebody tidied up since
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as failure:
            raise no_room() from failure


class _Here:
    """The locks that this process holds."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.names: set[str] = set()


_here = _Here()
os.register_at_fork(after_in_child=_here.__init__)  # type: ignore[misc] # a forked child holds none of them
