"""Keeps a bounded part of one stream: the head, the tail, and a capped file with the whole.

Bytes are read straight into their place, so nothing is copied: first into the head, then round and round a ring that
holds the tail. Memory stays the same at any size of output (512 MiB cost no more than 320 KiB).
"""

from __future__ import annotations

import errno
import os

from handrail.values.completed import Captured
from handrail.values.invocation import OutputLimits

# One default pipe (16 pages): a larger read never finds more, a smaller one costs another system call.
_BLOCK = 64 * 1024


class Capture:
    """Reads a non-blocking descriptor, which it owns and closes."""

    def __init__(self, fd: int, limits: OutputLimits, spill_dir: str | None) -> None:
        self.fd = fd
        self._limits = limits
        self._head = memoryview(bytearray(limits.head_bytes))
        self._ring: memoryview | None = None  # made once the head is full: most commands never need it
        self._at = 0  # where in the ring the next byte goes
        self._total = 0
        self.at_end = False
        self._spill = Spill(spill_dir, limits.spill_bytes) if spill_dir is not None else None

    def read(self) -> memoryview | None:
        """The bytes of one read, valid until the next; empty at the end of the stream; None if nothing is there yet."""
        place = self._place()
        try:
            count = os.readv(self.fd, (place,))
        except BlockingIOError:
            return None
        arrived = place[:count]
        if self._ring is not None and count:
            self._at = (self._at + count) % len(self._ring)
            if self._spill is not None:
                self._spill.write(arrived)
        self._total += count
        self.at_end = not count
        return arrived

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self._spill is not None:
            self._spill.close()

    def captured(self) -> Captured:
        head = bytes(self._head[: self._total])
        tail = self._tail()
        spill = self._spill
        return Captured(
            head=head,
            tail=tail,
            total_bytes=self._total,
            dropped_bytes=self._total - len(head) - len(tail),
            spill=spill.path if spill else None,
            spill_bytes=spill.kept_bytes if spill else 0,
            spill_error=spill.error if spill else None,
            unspilled_lines=spill.lines_beyond if spill else 0,
        )

    def _place(self) -> memoryview:
        if self._total < len(self._head):
            return self._head[self._total : self._total + _BLOCK]
        if self._ring is None:
            self._ring = memoryview(bytearray(max(self._limits.tail_bytes, 1)))
            if self._spill is not None:
                self._spill.open(self._head)
        return self._ring[self._at : self._at + _BLOCK]

    def _tail(self) -> bytes:
        if self._ring is None:
            return b""
        beyond_head = self._total - len(self._head)
        if beyond_head < len(self._ring):
            return bytes(self._ring[:beyond_head])
        return bytes(self._ring[self._at :]) + bytes(self._ring[: self._at])


class Spill:
    """A file of mode 0600 with a stream's first `limit` bytes. A failing disk ends the file, never the command."""

    def __init__(self, directory: str, limit: int) -> None:
        self.path: str | None = None
        self.kept_bytes = 0
        self.error: str | None = None
        self.lines_beyond = 0
        self._directory = directory
        self._limit = limit
        self._fd = -1

    def open(self, head: memoryview) -> None:
        try:
            self._fd, self.path = new_spill(self._directory)
        except OSError as failure:
            self._give_up(failure)
        self.write(head)

    def write(self, data: memoryview) -> None:
        room = self._limit - self.kept_bytes
        if self._fd < 0 or room <= 0:
            self._count(data)
            return
        rest = data[:room]
        try:
            while rest:
                written = os.write(self._fd, rest)
                self.kept_bytes += written
                rest = rest[written:]
        except OSError as failure:
            self._give_up(failure)
            self._count(rest)
        self._count(data[room:])

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _count(self, data: memoryview) -> None:
        self.lines_beyond += bytes(data).count(b"\n")

    def _give_up(self, failure: OSError) -> None:
        self.close()
        self.error = _WORDS.get(failure.errno or 0, "the disk refused it")


def new_spill(directory: str) -> tuple[int, str]:
    """A new file of mode 0600, open for writing, and its path. Raises OSError."""
    path = os.path.join(directory, f"spill-{os.urandom(8).hex()}")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), path


_WORDS = {
    errno.ENOSPC: "no space is left",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "its directory is read-only",
    errno.EACCES: "its directory may not be written",
    errno.EPERM: "its directory may not be written",
    errno.ENOENT: "its directory is gone",
    errno.EFBIG: "files may not grow that large here",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
}
