"""What is to be run: one `Invocation`, complete, so that nothing about a command is inherited by accident."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Access = Literal["read", "change"]

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    """How much of each stream is kept, in bytes. The rest is counted, never buffered.

    `head_bytes` and `tail_bytes` bound memory; `spill_bytes` bounds the file that keeps the whole
    output once head and tail no longer do. The defaults hold 15,000 characters of four bytes at either end
    (half of the default `max_chars`) with room for escape sequences.
    """

    head_bytes: int = 64 * KIB
    tail_bytes: int = 256 * KIB
    spill_bytes: int = 256 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One process to run, and its bounds.

    `argv` is exact: no shell reads it. `cwd` is an absolute directory. `env` is the whole environment.
    `timeout_s` is seconds until SIGTERM (None: no limit), `grace_s` seconds from there to SIGKILL.
    `merge` sends both streams through one pipe, so that they keep their order. `spill_dir` is a
    directory for the spill file (None: what head and tail do not hold is only counted). `access` says whether it may
    change the workspace, `network` whether it is to have the host's; who confines nothing cannot keep to either.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    timeout_s: float | None = 120.0
    grace_s: float = 2.0
    merge: bool = True
    output: OutputLimits = field(default_factory=OutputLimits)
    spill_dir: str | None = None
    access: Access = "change"
    network: bool = False
