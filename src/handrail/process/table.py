"""Reads the kernel's process table (/proc) to find what a command left, where nothing better holds on to it.

Only tier T0 needs this, and only once something went wrong: a look costs milliseconds. Where there is no /proc it
finds nothing. Processes are named by pid *and* start time, since a pid alone may have a new owner.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """One row of the table. `started` is in clock ticks since boot (proc(5), field 22)."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int


def now_ticks() -> int:
    """The clock that `Process.started` is read from, rounded down."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return int(time.clock_gettime(clock) * _TICKS_PER_S)


def read(pid: int) -> Process | None:
    """One process, or None if it is gone. Zombies are rows too: state "Z"."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in brackets, may hold anything, brackets and blanks too: cut behind the last one.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    state, parent, group, session = fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3])
    return Process(pid, state, parent, group, session, int(fields[19]))


def read_all() -> dict[int, Process]:
    """Every process, by pid."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return {}  # another namespace's /proc: its numbers are strangers here
        names = os.listdir("/proc")
    except OSError:
        return {}
    rows = (read(int(name)) for name in names if name.isdigit())
    return {row.pid: row for row in rows if row is not None}


def of_command(table: dict[int, Process], leader: int, since: int, known: Iterable[Process] = ()) -> list[Process]:
    """Living rows that belong to the command whose session leader was `leader`, started not before tick `since`.

    Those are its session, its group, and all that descend from them or from `known` rows. A process that left the
    session *and* lost its parent is not found here: no link is left.
    """
    # By its start, since its parent, its group and its state may be others by now.
    belongs = {row.pid for row in known if row.pid in table and table[row.pid].started == row.started} | {leader}
    mine: dict[int, Process] = {}
    grown = True
    while grown:
        grown = False
        for row in table.values():
            is_ours = leader in (row.session, row.group) or row.pid in belongs or row.parent in belongs
            if is_ours and row.pid not in mine and row.started >= since:
                mine[row.pid] = row
                belongs.add(row.pid)
                grown = True
    return [row for row in mine.values() if row.state not in "ZX"]


def writers_of(table: dict[int, Process], pipe: str, since: int) -> list[Process]:
    """Living rows that can write to `pipe` ("pipe:[inode]", as /proc shows it), started not before tick `since`.

    Rows of our own session are passed over: a command leads a session of its own, so they are the host program's
    (a child that it forked while a pipe was open holds a copy), and not ours to end.
    """
    own_session = os.getsid(0)
    candidates = (row for row in table.values() if row.session != own_session and row.started >= since)
    return [row for row in candidates if row.state not in "ZX" and _writes_to(row.pid, pipe)]


def words(pid: int) -> str:
    """The command line of a process as one printable line of at most 80 characters, for a person."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            argv = file.read(4096).rstrip(b"\0").replace(b"\0", b" ")
    except OSError:
        argv = b""
    line = "".join(c if c.isprintable() else "?" for c in argv.decode("utf-8", "replace"))
    return line if len(line) <= 80 else line[:79] + "…"


def _writes_to(pid: int, pipe: str) -> bool:
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{fd}") == pipe and _access_mode(pid, fd) != os.O_RDONLY:
                return True
    except OSError:  # gone, or another user's: neither is ours
        pass
    return False


def _access_mode(pid: int, fd: str) -> int:
    with open(f"/proc/{pid}/fdinfo/{fd}") as file:
        flags = next(line for line in file if line.startswith("flags:"))
    return int(flags.split()[1], 8) & os.O_ACCMODE
