"""A page of a raw output, cleaned: as many whole lines as fit, or a piece of a line that is longer than a page.

Lines are counted raw, at the line feed, so that a page begins where the one before it ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from handrail.text.characters import boundary_before
from handrail.text.clean import Cleaner
from handrail.text.decode import Decoder


@dataclass(frozen=True, slots=True)
class FittedPage:
    """`text` is the page; `lines` how many raw lines it shows, a piece counting as one.

    `next_line` and `next_char` say where it goes on, both from 1; `next_line` is None where all of the data is shown.
    """

    text: str
    lines: int
    next_line: int | None
    next_char: int


def fit_page(data: bytes, start_line: int, start_char: int, max_chars: int) -> FittedPage:
    """The page of `data`, raw lines of which the first is `start_line`, from that line's cleaned `start_char` on."""
    shown: list[str] = []
    room = max_chars
    for number, text in raw_lines(data, start_line):
        at = start_char - 1 if number == start_line else 0
        rest = text[at:]
        if len(rest) > room:
            if shown:
                return FittedPage("\n".join(shown), len(shown), number, 1)
            end = boundary_before(rest, room) or room
            return FittedPage(rest[:end], 1, number, at + end + 1)
        shown.append(rest)
        room -= len(rest) + 1
    return FittedPage("\n".join(shown), len(shown), None, 1)


def raw_lines(data: bytes, start_line: int) -> list[tuple[int, str]]:
    """Each raw line's number and cleaned text; a control in it may have made several rows of it."""
    decoder, cleaner = Decoder(), Cleaner(scrollback=0)
    rows = cleaner.feed(decoder.feed(data) + decoder.finish()) + cleaner.finish()
    groups = groupby(rows, key=lambda row: row.number)
    return [(start_line + number - 1, "\n".join(row.text for row in group)) for number, group in groups]
