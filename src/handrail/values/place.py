"""Where a session's commands run, and what they may reach: all that a host must know before it runs the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Sandbox = Literal["required", "best", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a command may use at most; None: no limit of ours.

    cpu_s         seconds of processor time, for each process.
    file_bytes    size of a file that a process writes.
    open_files    descriptors of a process.
    processes     processes at once, of this user in this slot; the kernel does not hold root to it.
    memory_bytes  memory of all commands of a session together; needs a cgroup that is ours to divide.
    """

    cpu_s: int | None = None
    file_bytes: int | None = None
    open_files: int | None = 1024
    processes: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Absolute real paths throughout.

    workspace    the tree that commands work in.
    session      the session's own directory. Commands may write `tmp` and `io` in it, and read `outputs`.
    state        handrail's own directories, which no command may see; `session` lies in one of them.
    cache        a directory of this workspace's own, for caches of compilers and package managers.
    network      whether commands have the host's network without asking.
    """

    workspace: str
    session: str
    cache: str
    state: tuple[str, ...] = ()
    sandbox: Sandbox = "off"
    network: bool = False
    hide_denied: bool = False
    read_paths: tuple[str, ...] = ()
    write_paths: tuple[str, ...] = ()
    resources: Resources = Resources()

    @property
    def tmp(self) -> str:
        """Where commands put temporary files."""
        return f"{self.session}/tmp"  # noqa: S108 - not the one that all users share

    @property
    def io(self) -> str:
        """What a command and the session tell each other by."""
        return f"{self.session}/io"

    @property
    def outputs(self) -> str:
        """What was kept of long outputs."""
        return f"{self.session}/outputs"
