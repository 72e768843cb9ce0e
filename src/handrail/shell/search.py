"""Searches a kept output by regular expression, in a process of its own: Python's engine can backtrack for ever.

Imported, it builds that process's argv and reads its answer. Run as a program, it is that process.
Lines are matched cleaned, as `read_output` shows them, and counted raw.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from handrail.text.clean import Line

_MAX_PATTERN_CHARS = 1000
_MAX_LINE_CHARS = 2000
_BEFORE_CHARS = 200
_BLOCK = 1024 * 1024


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


def search_argv(path: str, pattern: str, start_line: int, max_matches: int, max_chars: int) -> tuple[str, ...]:
    """The process that searches `path`; it prints what `read_matches` reads."""
    numbers = (str(start_line), str(max_matches), str(max_chars))
    return (sys.executable, "-I", os.path.abspath(__file__), path, pattern, *numbers)


def answer_bytes(max_matches: int, max_chars: int) -> int:
    """The most that the process prints: four bytes a character, six for a control that JSON escapes, and the frame."""
    return 6 * (max_chars + _MAX_LINE_CHARS) + 64 * (max_matches + 2)


def read_matches(answer: bytes) -> Found:
    """What the process printed."""
    fields = json.loads(answer)
    return Found(tuple(Match(*match) for match in fields["matches"]), int(fields["next_line"]))


def _search(path: str, pattern: str, start_line: int, max_matches: int, max_chars: int) -> Found:
    wanted = re.compile(pattern)
    matches: list[Match] = []
    with open(path, "rb") as file:
        for line in _lines(file):
            found = wanted.search(line.text) if line.number >= start_line else None
            if found is None:
                continue
            text = _around(line.text, found.start())
            max_chars -= len(text) + 1
            if len(matches) == max_matches or (max_chars < 0 and matches):
                return Found(tuple(matches), line.number)
            matches.append(Match(line.number, found.start() + 1, text))
    return Found(tuple(matches), -1)


def _around(text: str, at: int) -> str:
    """At most _MAX_LINE_CHARS of a line, with what begins at `at` in it."""
    begin = max(0, min(at - _BEFORE_CHARS, len(text) - _MAX_LINE_CHARS)) if len(text) > _MAX_LINE_CHARS else 0
    end = begin + _MAX_LINE_CHARS
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")


def _lines(file: BinaryIO) -> Iterator[Line]:
    from handrail.text.clean import Cleaner
    from handrail.text.decode import Decoder

    decoder, cleaner = Decoder(), Cleaner(scrollback=0, max_line=_BLOCK)
    while block := file.read(_BLOCK):
        yield from cleaner.feed(decoder.feed(block))
    yield from cleaner.feed(decoder.finish())
    yield from cleaner.finish()


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    found = _search(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
    rows = [(match.line, match.char, match.text) for match in found.matches]
    answer = json.dumps({"matches": rows, "next_line": found.next_line}, ensure_ascii=False)
    sys.stdout.buffer.write(answer.encode())
