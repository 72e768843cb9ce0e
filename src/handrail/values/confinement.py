"""What confines the commands of one slot, as plain values: pure functions make them, the slot's programs apply them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from handrail.values.completed import Enforced

Mode = Literal["namespace", "reaper"]
"""What holds a slot's processes together: a PID namespace, or a child subreaper."""


@dataclass(frozen=True, slots=True, order=True)
class Mount:
    """What a slot has at `path`: the tree or file `source`, or an empty directory where that is None."""

    path: str
    source: str | None
    writable: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """What has to lie at `path` in a finished slot: a mount of exactly this file, not what was put there meanwhile."""

    path: str
    device: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a slot's commands may read, write and reach. Everything that `mounts` does not name is read-only.

    mounts      a parent before what lies in it.
    identities  of mounts whose source a command could have exchanged.
    must_write  directories that have to be writable in the finished slot.
    network     "own": the session's network namespace, loopback only; "host": the host's.
    owner       run as (uid, gid, groups); None: as we are.
    """

    mounts: tuple[Mount, ...]
    identities: tuple[Identity, ...] = ()
    must_write: tuple[str, ...] = ()
    network: Literal["own", "host"] = "own"
    owner: tuple[int, int, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Confinement:
    """How slots are made. `outside` is done by the warden, `inside` by the keeper to itself; both are JSON objects.

    outside  `program` (an argv that a keeper's is appended to), or `mounts` (rows of path, source, writable);
             `network` (the name of a network namespace), `cgroup` (a directory).
    inside   `owner`, `capabilities`, `landlock`, `seccomp`, `limits`, `identities`, `must_write`: see confine.py.
    """

    mode: Mode
    enforced: Enforced
    outside: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inside: Mapping[str, Any] = field(default_factory=dict[str, Any])
