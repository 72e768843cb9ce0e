"""Where handrail keeps its own files: one private directory a session, outside the workspace, gone when it closes.

A lock beside each directory tells the living from those whose host died; the next session sweeps the dead away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import weakref
from collections.abc import Iterator

from handrail.errors import ConfigurationError


class SessionDirectory:
    """`path` is a directory of mode 0700 for one session's files, `place` handrail's directory around it.

    In it lie `tmp`, `io` and `outputs` (see `values/place.py`), and `empty`, a file that stands in for hidden ones.
    `cache` is a directory of this workspace's own, which stays.
    """

    def __init__(self, state_dir: str | os.PathLike[str] | None, workspace_root: str) -> None:
        sessions = _sessions_directory(state_dir, workspace_root)
        _sweep(sessions)
        self.place = os.path.dirname(sessions)
        self._lock_fd, self.path = _claim(sessions)
        for name in ("tmp", "io", "outputs"):
            os.mkdir(os.path.join(self.path, name), 0o700)
        os.close(os.open(os.path.join(self.path, "empty"), os.O_CREAT | os.O_CLOEXEC, 0o444))
        self.cache = os.path.join(self.place, "caches", _name_of(workspace_root))
        os.makedirs(self.cache, mode=0o700, exist_ok=True)
        self._remove = weakref.finalize(self, _remove, self._lock_fd, self.path, os.getpid())

    def close(self) -> None:
        """Remove the directory and all in it. In a forked child of the session's process it does nothing."""
        self._remove()


def directories() -> tuple[str, ...]:
    """All places where sessions of this user may have their files by default, those that are there."""
    return tuple(place for place in _default_places() if os.path.isdir(place))


def lock_directory() -> str:
    """Where the locks of workspaces lie: the same for all sessions of a user, whatever their `state_dir`."""
    for place in _default_places():
        locks = os.path.join(place, "locks")
        if _usable(locks):
            return locks
    raise ConfigurationError("There is no place for handrail's own files; make the home or /tmp writable.")


def _default_places() -> Iterator[str]:
    import platformdirs

    with contextlib.suppress(RuntimeError, KeyError):  # neither HOME nor an entry in the list of users
        place = platformdirs.user_state_dir("handrail")
        if os.path.isabs(place):
            yield os.path.realpath(place)
    import tempfile

    yield os.path.realpath(os.path.join(tempfile.gettempdir(), f"handrail-{os.getuid()}"))


def _name_of(workspace_root: str) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(workspace_root)).hexdigest()[:16]


def _sessions_directory(state_dir: str | os.PathLike[str] | None, root: str) -> str:
    if state_dir is not None:
        place: str = os.path.realpath(os.path.expanduser(os.fspath(state_dir)))
        if not _apart(place, root):
            raise ConfigurationError("state_dir must lie neither inside the workspace nor around it; pass another one.")
        sessions = os.path.join(place, "sessions")
        if not _usable(sessions):
            raise ConfigurationError("state_dir cannot be written; pass a directory that belongs to you.")
        return sessions
    for candidate in _default_places():
        sessions = os.path.join(candidate, "sessions")
        if _apart(candidate, root) and _usable(sessions):
            return sessions
    raise ConfigurationError(
        "There is no place for handrail's own files outside the workspace; pass state_dir= a writable directory there."
    )


def _apart(one: str, other: str) -> bool:
    return os.path.commonpath((one, other)) not in (one, other)


def _usable(directory: str) -> bool:
    """Make it, and see that it is ours alone: under a shared /tmp somebody else could have made it first."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        facts = os.lstat(directory)
    except OSError:
        return False
    return (
        stat.S_ISDIR(facts.st_mode)
        and facts.st_uid == os.getuid()
        and not facts.st_mode & 0o022
        and os.access(directory, os.W_OK | os.X_OK)
    )


def _claim(sessions: str) -> tuple[int, str]:
    """A new directory and the descriptor whose lock says that it is in use."""
    while True:
        path = os.path.join(sessions, os.urandom(8).hex())
        lock_fd = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _lock(lock_fd):  # a sweeping session came between the two lines above and will remove the file
            os.close(lock_fd)
            continue
        os.mkdir(path, 0o700)
        return lock_fd, path


def _sweep(sessions: str) -> None:
    for name in os.listdir(sessions):
        if not name.endswith(".lock"):
            continue
        path = os.path.join(sessions, name)
        try:
            lock_fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # another session swept it first
            continue
        if _lock(lock_fd):
            _remove(lock_fd, path.removesuffix(".lock"), os.getpid())
        else:
            os.close(lock_fd)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(lock_fd: int, path: str, owner_pid: int) -> None:
    if os.getpid() != owner_pid:
        return
    import shutil

    shutil.rmtree(path, ignore_errors=True)
    if os.path.isdir(path):  # a command took its own permissions away on what it left in TMPDIR
        _open_up(path)
        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):  # a disk gone read-only; the next sweep tries again
        is_ours = os.path.samestat(os.fstat(lock_fd), os.stat(path + ".lock"))
        os.unlink(path + ".lock")
        if is_ours:  # a host may have closed it, and have the number in use for something else
            os.close(lock_fd)


def _open_up(directory: str) -> None:
    with contextlib.suppress(OSError):
        os.chmod(directory, 0o700)
        for entry in os.scandir(directory):
            if entry.is_dir(follow_symlinks=False):
                _open_up(entry.path)
