"""One row of a terminal as a list of cells, one a column, changed in place. It knows no cursor.

A cell holds a character with the marks that join it; the further columns of a wide character or a tab hold "",
and a column that nothing was printed in, or that was erased, holds BLANK.
"""

from __future__ import annotations

from handrail.text.characters import width

Cells = list[str]

BLANK = "\0"
MOST_MARKS = 32
"""A cell takes no more characters than this; further marks take a cell of their own. Bounds what joining costs."""

TAB_STOP = 8


def render(cells: Cells) -> str:
    """The row as text: blanks are spaces, but not at its end."""
    return "".join(cells).rstrip(BLANK).replace(BLANK, " ")


def from_text(text: str) -> Cells:
    """The cells of a row in which `text` (without controls but tabs) was printed from its first column on."""
    if "\t" not in text:
        return from_printable(text)
    cells: Cells = []
    for index, piece in enumerate(text.split("\t")):
        if index:
            cells += tab_cells(len(cells))
        cells += from_printable(piece)
    return cells


def from_printable(text: str) -> Cells:
    """The cells that `text` without any control takes; marks at its very beginning get cells of their own."""
    if text.isascii():
        return list(text)
    cells: Cells = []
    owner = -1
    for character in text:
        columns = width(character)
        if columns == 0 and owner >= 0 and len(cells[owner]) < MOST_MARKS:
            cells[owner] += character
            continue
        owner = len(cells)
        cells.append(character)
        if columns == 2:
            cells.append("")
    return cells


def tab_cells(column: int) -> Cells:
    """The cells of a tab printed at `column`."""
    return ["\t", *[""] * (TAB_STOP - 1 - column % TAB_STOP)]


def leading_marks(text: str) -> int:
    """How many characters at the beginning of `text` join whatever stands before it."""
    if text[0] < "\u0300":
        return 0
    count = 0
    while count < len(text) and width(text[count]) == 0:
        count += 1
    return count


def join_marks(cells: Cells, column: int, marks: str) -> str:
    """Add `marks` to the character that ends before `column`; return those it has no room for."""
    owner = min(column, len(cells)) - 1
    while owner > 0 and not cells[owner]:
        owner -= 1
    if owner < 0 or column > len(cells) or cells[owner] in (BLANK, "\t"):
        return marks
    room = max(0, MOST_MARKS - len(cells[owner]))
    cells[owner] += marks[:room]
    return marks[room:]


def overwrite(cells: Cells, column: int, new: Cells) -> None:
    """Put `new` at `column`, over what is there; what is left of a wide character becomes blank."""
    end = column + len(new)
    if column > len(cells):
        cells.extend([BLANK] * (column - len(cells)))
    split(cells, column)
    split(cells, end)
    cells[column:end] = new


def split(cells: Cells, column: int) -> None:
    """Make `column` the beginning of a cell: a character that reaches across it becomes blanks."""
    if column >= len(cells) or cells[column]:
        return
    start = end = column
    while not cells[start]:
        start -= 1
    while end < len(cells) and not cells[end]:
        end += 1
    cells[start:end] = [BLANK] * (end - start)
