"""What Landlock is to enforce on a slot's commands, as masks and rules for the kernel at hand: landlock(7).

It cannot refuse everything: chmod, chown, utime and setxattr pass it, and nothing below a granted directory can be
taken out again. Whoever uses a ruleset alone has to say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# linux/landlock.h. The thirteen rights of the first version, and those that a later one added.
EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
BASE = (1 << 13) - 1
ADDED = ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15))  # REFER, TRUNCATE, IOCTL_DEV
ABSTRACT_UNIX, SIGNAL = 1 << 0, 1 << 1
SCOPES_SINCE = 6

READ = EXECUTE | READ_FILE | READ_DIR


@dataclass(frozen=True, slots=True)
class Ruleset:
    """`fs`, `net` and `scoped`: all that is refused, as masks. `rules`: (path, what is granted there and below)."""

    fs: int
    net: int
    scoped: int
    rules: tuple[tuple[str, int], ...] = ()

    def as_json(self) -> dict[str, object]:
        """For the keeper, which cuts a rule for anything but a directory to what a file has."""
        return {"fs": self.fs, "net": self.net, "scoped": self.scoped, "rules": [list(rule) for rule in self.rules]}


def ruleset(abi: int, *, writable: Sequence[str], devices: Sequence[str], readable: Sequence[str] = ("/",)) -> Ruleset:
    """Read and execute below `readable`; everything below `writable`, and on `devices` (files, or directories of them).

    abi is the kernel's version of Landlock, at least 1. Paths are absolute and real, but that a device may be a link
    that lies in /dev itself; what is not there is left out when the rules are applied. The network is not Landlock's:
    it knows TCP only. From version 6, abstract Unix sockets and signals stay within the slot.
    """
    if abi < 1:
        raise ValueError("a ruleset needs a kernel that has Landlock")
    everything = BASE
    for since, right in ADDED:
        everything |= right if abi >= since else 0
    granted: dict[str, int] = dict.fromkeys(readable, READ)
    granted |= dict.fromkeys((*writable, *devices), everything)
    scoped = ABSTRACT_UNIX | SIGNAL if abi >= SCOPES_SINCE else 0
    return Ruleset(fs=everything, net=0, scoped=scoped, rules=tuple(granted.items()))


def scope_only(abi: int) -> Ruleset | None:
    """For a slot with mounts of its own on the host's network: no abstract socket of the host's; None below version 6.

    It refuses nothing about files: a domain that does also forbids to mount, and so every nested sandbox.
    """
    return Ruleset(fs=0, net=0, scoped=ABSTRACT_UNIX) if abi >= SCOPES_SINCE else None
