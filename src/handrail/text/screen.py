"""Rows and a cursor, as a terminal has them, of unbounded width: what was printed, in its last state.

Rows that no cursor move can reach any more are handed out and forgotten. What sequences do to a screen is in
`commands`; here is what printing does, and the bounds that both keep.
"""

from __future__ import annotations

from dataclasses import dataclass

from handrail.text.cells import (
    TAB_STOP,
    Cells,
    from_printable,
    from_text,
    join_marks,
    leading_marks,
    overwrite,
    render,
    tab_cells,
)

REACH = 200
"""A move to the right goes to the end of what a row holds, or to this column: wider than terminals that programs
assume. So a sequence of a few bytes makes a row no longer than this."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row in its last state. `number` is the raw line on which it began: line ends printed before it, plus 1."""

    text: str
    number: int


class Screen:
    """At most `scrollback` finished rows stay in reach above the row being printed; `width` wraps rows, in columns.

    `x` and `y` are the cursor, from 0; `y` counts rows in reach and may lie below all of them, where a row begins only
    when something is printed. `page` is the row that absolute moves count from: a pipe is no screen, so a page begins
    below all that is there, with the first sequence that needs one.
    """

    def __init__(self, scrollback: int, width: int | None = None) -> None:
        self.number = 1
        self.scrollback = scrollback
        self.reach = REACH if width is None else min(REACH, width)
        self.x = 0
        self.y = 0
        self.saved: tuple[int, int] = (0, 0)
        self.page: int | None = None
        self.rows: list[str | Cells] = []
        self.numbers: list[int] = []
        self._width = width
        self._final: list[Line] = []

    @property
    def fresh(self) -> bool:
        """Whether the cursor is at the beginning of a row, below all that was printed."""
        return self.x == 0 and self.y == len(self.rows)

    def take(self) -> list[Line]:
        """The rows that became final since the last time."""
        final, self._final = self._final, []
        return final

    def finish(self) -> list[Line]:
        """All that is left, without empty rows from the cursor's down: those are where printing would have gone on."""
        while len(self.rows) > self.y and not _text(self.rows[-1]):
            self.rows.pop()
        self._scroll(len(self.rows))
        return self.take()

    def print_lines(self, lines: list[str]) -> None:
        """Print lines that hold no control but tabs, each with its line end, on a fresh screen."""
        if not self._fit(lines):
            for line in lines:
                self.print_text(line)
                self.end_line()
            return
        first, self.number = self.number, self.number + len(lines)
        self._scroll(max(0, min(len(self.rows), len(self.rows) + len(lines) - self.scrollback)))
        passing = max(0, len(lines) - self.scrollback)
        self._final.extend(map(Line, lines[:passing], range(first, first + passing)))
        self.rows.extend(lines[passing:])
        self.numbers.extend(range(first + passing, self.number))
        self.y = len(self.rows)

    def print_text(self, text: str) -> None:
        """Print `text`, which holds no control but tabs, at the cursor."""
        for index, piece in enumerate(text.split("\t")):
            if index:
                self.tab()
            if piece:
                self.put(piece)

    def put(self, text: str) -> None:
        """Print `text`, which holds no control, at the cursor, over what is there."""
        cells = self.open()
        marks = leading_marks(text)
        if marks:
            text = join_marks(cells, self.x, text[:marks]) + text[marks:]
        self._place(from_printable(text))

    def tab(self) -> None:
        """Print a tab after what the row holds; within it, only move to the next stop."""
        cells = self._room()
        new = tab_cells(self.x)
        if self._width is not None:
            del new[self._width - self.x :]
        if self.x < len(cells):
            self.x += len(new)
        else:
            self._place(new)

    def end_line(self) -> None:
        """Go to the beginning of the next row, because of a line end."""
        self.next_row()
        self.number += 1

    def next_row(self) -> None:
        """Go to the beginning of the next row; rows that are out of reach now become final."""
        self._ensure_row()
        self.y += 1
        self.x = 0
        self._scroll(max(0, min(self.y, len(self.rows) - self.scrollback)))

    def open(self) -> Cells:
        """The cells of the cursor's row, made if there is none. A row stays open, so that opening is paid for once."""
        self._ensure_row()
        row = self.rows[self.y]
        if isinstance(row, str):
            row = self.rows[self.y] = from_text(row)
        return row

    def drop_rows(self, first: int, last: int | None = None) -> None:
        """Remove rows from `first` on, up to `last`; those below move up."""
        del self.rows[first:last]
        del self.numbers[first:last]
        if self.page is not None:
            self.page = min(self.page, len(self.rows))

    def _ensure_row(self) -> None:
        missing = self.y + 1 - len(self.rows)
        if missing > 0:
            self.rows.extend([""] * missing)
            self.numbers.extend([self.number] * missing)

    def _room(self) -> Cells:
        """The cells of the row that the next character goes to. Wraps as a terminal does: only when there is one."""
        if self._width is not None and self.x >= self._width:
            self.next_row()
        cells = self.open()
        self.x = min(self.x, max(len(cells), self.reach))
        return cells

    def _place(self, new: Cells) -> None:
        start = 0
        while start < len(new):
            cells = self._room()
            end = len(new) if self._width is None else min(len(new), start + self._width - self.x)
            if end < len(new) and not new[end]:
                end -= 1  # a wide character does not fit
            if end == start:
                self.next_row()
                continue
            overwrite(cells, self.x, new[start:end])
            self.x += end - start
            start = end

    def _fit(self, lines: list[str]) -> bool:
        """Whether none of `lines` can need wrapping, whatever their characters' widths: a tab's is the largest."""
        if self._width is None or max(map(len, lines)) * TAB_STOP <= self._width:
            return True
        width = self._width
        return all(len(line) * (1 if line.isascii() and "\t" not in line else TAB_STOP) <= width for line in lines)

    def _scroll(self, count: int) -> None:
        """Hand out the first `count` rows."""
        if count == 0:
            return
        self._final.extend(map(Line, map(_text, self.rows[:count]), self.numbers[:count]))
        del self.rows[:count]
        del self.numbers[:count]
        self.y = max(0, self.y - count)
        self.saved = (self.saved[0], max(0, self.saved[1] - count))
        if self.page is not None:
            self.page = max(0, self.page - count)


def _text(row: str | Cells) -> str:
    return row if isinstance(row, str) else render(row)
