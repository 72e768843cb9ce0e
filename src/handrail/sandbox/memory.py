"""A control group for all commands of one session, with a limit of memory: where the system lets us make one.

It refuses to guess: a group that cannot be made, or does not take the limit, is an error with the reason.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic, sleep

# A group can be removed once the last process in it has been collected, which others do in their own time.
_EMPTY_S = 1.0


class NoMemoryGroup(Exception):
    """There can be no limit of memory here; the sentence says why."""


@dataclass(frozen=True, slots=True)
class _Version:
    """The names of files in a group. `kills` holds a line "oom_kill N": how many processes the limit has ended."""

    limit: str
    swap: str
    kills: str


_V1 = _Version("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control")
_V2 = _Version("memory.max", "memory.swap.max", "memory.events")


class MemoryGroup:
    """`path` is the group's directory; who writes "0" to `cgroup.procs` in it joins. Raises NoMemoryGroup."""

    def __init__(self, limit_bytes: int) -> None:
        reasons: list[str] = []
        for parent, version in _parents():
            path = os.path.join(parent, f"handrail-{os.getpid()}-{os.urandom(4).hex()}")
            try:
                os.mkdir(path)
            except OSError as failure:
                reasons.append(os.strerror(failure.errno or 0).lower())
                continue
            try:
                _write(path, version.limit, str(limit_bytes))
            except OSError as failure:
                reasons.append(os.strerror(failure.errno or 0).lower())
                os.rmdir(path)
                continue
            with contextlib.suppress(OSError):  # there may be no swap that is counted
                _write(path, version.swap, str(limit_bytes) if version is _V1 else "0")
            self.path = path
            self._kills = version.kills
            return
        why = f": {reasons[0]}" if reasons else " that counts memory"
        raise NoMemoryGroup(f"no control group is ours to divide{why}")

    def kills(self) -> int:
        """How many processes the kernel has ended at the limit so far."""
        with contextlib.suppress(OSError), open(os.path.join(self.path, self._kills)) as file:
            for line in file:
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        return 0

    def close(self) -> None:
        """Remove it. What is still in it when its time is over keeps it until the next start of the machine."""
        latest = monotonic() + _EMPTY_S
        while os.path.isdir(self.path):
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
                return
            if monotonic() > latest:
                return
            sleep(0.01)


def _write(group: str, name: str, text: str) -> None:
    with open(os.path.join(group, name), "w") as file:
        file.write(text)


def _parents() -> Iterator[tuple[str, _Version]]:
    """Groups in which one of ours could count memory: our own, and the one around it."""
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if "memory" in controllers.split(","):
                yield from ((found, _V1) for found in _existing("/sys/fs/cgroup/memory", path))
            elif not controllers:
                for found in _existing("/sys/fs/cgroup", path):
                    if "memory" in _read(found, "cgroup.subtree_control").split():
                        yield found, _V2


def _existing(mount: str, path: str) -> Iterator[str]:
    for candidate in (path, os.path.dirname(path)):
        found = os.path.normpath(mount + candidate)
        if os.path.isdir(found):
            yield found


def _read(group: str, name: str) -> str:
    try:
        with open(os.path.join(group, name)) as file:
            return file.read()
    except OSError:
        return ""
