"""Opens the file of a kept output, and finds lines in it. Light: the process that searches loads it too.

The file lies where commands of the same user can reach it. What they may have put in its place is not opened.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

_BLOCK = 1024 * 1024


def open_regular(path: str) -> BinaryIO:
    """A regular file and nothing else: a FIFO would never open, a link lead away. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(errno.ENOENT, "no regular file")
    return open(fd, "rb")


def open_kept(path: str, inode: int) -> BinaryIO:
    """The very file that was kept. Raises OSError where it is gone, or another is in its place."""
    file = open_regular(path)
    if os.fstat(file.fileno()).st_ino != inode:
        file.close()
        raise FileNotFoundError(errno.ENOENT, "another file is in its place")
    return file


def offset_of_line(file: BinaryIO, line: int) -> int:
    """Where a line begins, or the end of the file; block by block, since a spill may hold millions of lines."""
    wanted = line - 1
    offset = 0
    file.seek(0)
    while wanted > 0 and (block := file.read(_BLOCK)):
        ends_here = block.count(b"\n")
        if ends_here >= wanted:
            behind = 0
            for _ in range(wanted):
                behind = block.index(b"\n", behind) + 1
            return offset + behind
        wanted -= ends_here
        offset += len(block)
    return offset
