"""Searches a kept output by regular expression, in a process of its own: Python's engine can backtrack for ever.

Imported, it builds that process's argv and reads its answer. Run as a program, it is that process.
Lines are matched cleaned, as `read_output` shows them, and counted raw.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

if __name__ == "__main__":  # run by its path, as a part of no package
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from handrail.shell.kept import offset_of_line, open_kept
from handrail.text.escapes import CONTROL
from handrail.text.page import raw_lines

_MAX_PATTERN_CHARS = 1000
_MAX_LINE_CHARS = 2000
_BEFORE_CHARS = 200
_BLOCK = 1024 * 1024
_LINE_BYTES = 16 * _BLOCK


@dataclass(frozen=True, slots=True)
class Match:
    """A matching line: its raw number, where in its cleaned text the match begins (from 1), and the text there."""

    line: int
    char: int
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """What matched, and the line to go on from (-1: the whole file was searched)."""

    matches: tuple[Match, ...]
    next_line: int


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a regular expression, in a sentence, or None."""
    if len(pattern) > _MAX_PATTERN_CHARS:
        return f"'pattern' is longer than {_MAX_PATTERN_CHARS} characters."
    if "\0" in pattern or not pattern:
        return "'pattern' is empty or holds a NUL character."
    try:
        pattern.encode()
        re.compile(pattern)
    except UnicodeEncodeError:
        return "'pattern' holds half of a surrogate pair."
    except re.error as bad:
        place = "" if bad.pos is None else f", from its character {bad.pos + 1} on"
        return f"'pattern' is no regular expression of Python's{place}; escape what is meant literally."
    except (OverflowError, RecursionError):
        return "'pattern' is too deeply nested or repeats too often."
    return None


def search_argv(
    path: str, inode: int, pattern: str, *, start_line: int, max_matches: int, max_chars: int, seconds: float
) -> tuple[str, ...]:
    """The process that searches the file `path`; it prints what `read_matches` reads.

    After `seconds` it stops between two blocks and says where; a pattern that backtracks has to be stopped from here.
    """
    numbers = (str(inode), str(start_line), str(max_matches), str(max_chars), str(seconds))
    return (sys.executable, "-I", os.path.abspath(__file__), path, pattern, *numbers)


def answer_bytes(max_matches: int, max_chars: int) -> int:
    """The most that the process prints: four bytes a character, six for a control that JSON escapes, and the frame."""
    return 6 * (max_chars + _MAX_LINE_CHARS) + 64 * (max_matches + 2)


def read_matches(answer: bytes) -> Found:
    """What the process printed."""
    fields = json.loads(answer)
    return Found(tuple(Match(*match) for match in fields["matches"]), int(fields["next_line"]))


def search(file: BinaryIO, pattern: str, *, start_line: int, max_matches: int, max_chars: int, seconds: float) -> Found:
    """What `search_argv`'s process does. Raises re.error."""
    wanted = re.compile(pattern)
    latest = time.monotonic() + seconds
    matches: list[Match] = []
    for lines in _blocks(file, start_line):
        for number, line in lines:
            found = wanted.search(line)
            if found is None:
                continue
            text = _around(line, found.start())
            max_chars -= len(text) + 1
            if len(matches) == max_matches or (max_chars < 0 and matches):
                return Found(tuple(matches), number)
            matches.append(Match(number, found.start() + 1, text))
        if lines and time.monotonic() > latest:
            return Found(tuple(matches), lines[-1][0] + 1)
    return Found(tuple(matches), -1)


def _around(text: str, at: int) -> str:
    """At most _MAX_LINE_CHARS of a line, with what begins at `at` in it."""
    begin = max(0, min(at - _BEFORE_CHARS, len(text) - _MAX_LINE_CHARS)) if len(text) > _MAX_LINE_CHARS else 0
    end = begin + _MAX_LINE_CHARS
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")


def _blocks(file: BinaryIO, start_line: int) -> Iterator[list[tuple[int, str]]]:
    """Whole lines with their numbers, cleaned, a block of them at a time."""
    file.seek(offset_of_line(file, start_line))
    number, rest = start_line, b""
    while block := file.read(_BLOCK):
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            yield _cleaned(whole + newline, number)
            number += whole.count(b"\n") + 1
        rest = rest[:_LINE_BYTES]  # of a line that is longer than any page, the beginning is searched
    yield _cleaned(rest, number)


def _cleaned(data: bytes, number: int) -> list[tuple[int, str]]:
    text = data.decode("utf-8", "replace")
    if CONTROL.search(text):
        return raw_lines(data, number)
    lines = text.split("\n")
    return list(enumerate(lines if lines[-1] else lines[:-1], number))


if __name__ == "__main__":
    with open_kept(sys.argv[1], int(sys.argv[3])) as kept:
        start, most, chars = map(int, sys.argv[4:7])
        result = search(
            kept, sys.argv[2], start_line=start, max_matches=most, max_chars=chars, seconds=float(sys.argv[7])
        )
    rows = [(match.line, match.char, match.text) for match in result.matches]
    answer = json.dumps({"matches": rows, "next_line": result.next_line}, ensure_ascii=False)
    sys.stdout.buffer.write(answer.encode())
