"""What came of a command: its end, its captured output, what it left behind, what confined it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One stream. `head + tail` is the whole of it where `dropped_bytes` is 0, else its two ends.

    `spill` is the path of a file with the stream's first `spill_bytes` bytes, or None where memory held everything
    or no file could be kept; then `spill_error` says why in a few words (no path). `unspilled_lines` counts the line
    ends after the spill's end, where there is a spill or one was asked for: the spill's own can be counted in it.
    """

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    dropped_bytes: int = 0
    spill: str | None = None
    spill_bytes: int = 0
    spill_error: str | None = None
    unspilled_lines: int = 0


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A process that was still there when the command's main process had ended, and was killed."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class Enforced:
    """What really held while a command ran, in words for a result; never what was merely asked for.

    `tier` is T0 to T3; `processes` how far killing reaches; `files` and `network` what confines them.
    """

    tier: str
    processes: str
    files: str
    network: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a command ended.

    `exit_code` is the program's own, 128 + N for a death by signal N (then `signal` is its name, "SIGKILL"),
    and None where it was stopped (`timed_out`, `cancelled`; `signal` is then the one that ended it) or where the
    status could not be read. `not_started` is a sentence where no process ever ran; the exit code is then the
    shell's for it (127 not found, 126 not executable, 125 otherwise). With merged streams everything is in `stdout`.
    `warnings` say in words what the command made that its sandbox could not stop; `out_of_memory` that the kernel
    ended a process at the session's limit of memory. `duration_s` is wall clock from before the start to after the end,
    in seconds.
    """

    exit_code: int | None
    signal: str | None = None
    timed_out: bool = False
    cancelled: bool = False
    duration_s: float
    stdout: Captured = Captured()
    stderr: Captured = Captured()
    left_behind: tuple[LeftBehind, ...] = ()
    warnings: tuple[str, ...] = ()
    out_of_memory: bool = False
    enforced: Enforced
    not_started: str | None = None
