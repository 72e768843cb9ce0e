"""Keeps whole outputs of which a report showed only the ends, under the ids that `read_output` takes.

What is kept is raw. Files live in the session's directory and go with it; the oldest make room for new ones.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from handrail.process.capture import new_spill
from handrail.shell.kept import offset_of_line, open_kept, open_regular
from handrail.values.completed import Captured
from handrail.values.invocation import MIB

# Four outputs at the largest size that one call may spill by default.
KEPT_BYTES = 1024 * MIB
_BLOCK = 1024 * 1024
LINE_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class Output:
    """A file with the first `kept_bytes` of `total_bytes` bytes of an output. `inode` tells it from any other."""

    id: str
    path: str
    inode: int
    kept_bytes: int
    total_bytes: int

    def open(self) -> BinaryIO:
        """Raises OSError where the file is gone, or another is in its place."""
        return open_kept(self.path, self.inode)


@dataclass(frozen=True, slots=True)
class Page:
    """Raw lines `start_line` to `end_line` (counted at the line feed, from 1), their line ends included.

    `more` says whether a line follows in the file; `cut` that the last line was longer than the page may be.
    """

    data: bytes
    start_line: int
    end_line: int
    more: bool
    cut: bool


class Outputs:
    """A session's kept outputs. Safe to use from several threads."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._kept: dict[str, Output] = {}
        self._count = 0

    def keep(self, captured: Captured) -> Output | None:
        """Give an output an id; None where no file could be kept."""
        path = captured.spill
        kept_bytes = captured.spill_bytes
        if path is None:
            if captured.dropped_bytes:
                return None
            try:
                path = self._write(captured.head + captured.tail)
            except OSError:
                return None
            kept_bytes = captured.total_bytes
        try:
            inode = os.lstat(path).st_ino
        except OSError:  # the command removed it, which it may: it lies in a directory of the same user
            return None
        with self._lock:
            self._count += 1
            output = Output(f"out{self._count}", path, inode, kept_bytes, captured.total_bytes)
            self._kept[output.id] = output
            self._make_room()
        return output

    def forget(self, captured: Captured) -> None:
        """Remove the file of an output that is shown whole: redrawn lines can make a long one short."""
        if captured.spill is not None:
            with suppress(OSError):
                os.unlink(captured.spill)

    def find(self, output_id: str) -> Output | None:
        return self._kept.get(output_id)

    def ids(self) -> list[str]:
        return list(self._kept)

    def _write(self, data: bytes) -> str:
        fd, path = new_spill(self._directory)
        try:
            with open(fd, "wb") as file:
                file.write(data)
        except OSError:
            os.unlink(path)
            raise
        return path

    def _make_room(self) -> None:
        while len(self._kept) > 1 and sum(output.kept_bytes for output in self._kept.values()) > KEPT_BYTES:
            oldest = self._kept.pop(next(iter(self._kept)))
            with suppress(OSError):
                os.unlink(oldest.path)


def count_lines(path: str, start: int) -> int:
    """How many line ends a file has from byte `start` on. Raises OSError."""
    with open_regular(path) as file:
        file.seek(start)
        return sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))


def read_page(output: Output, start_line: int, max_lines: int, max_bytes: int) -> Page:
    """From `start_line` on, at most `max_lines` lines, until they are `max_bytes` bytes. Raises OSError.

    A line is not cut at `max_bytes`, only at LINE_BYTES: a progress bar's megabytes show as one short line in the end.
    """
    with output.open() as file:
        file.seek(offset_of_line(file, start_line))
        taken = bytearray()
        lines = 0
        while lines < max_lines and len(taken) < max_bytes and (line := file.readline(LINE_BYTES)):
            taken += line
            lines += 1
        more = bool(file.read(1))
    return Page(bytes(taken), start_line, start_line + lines - 1, more, more and not taken.endswith(b"\n"))
