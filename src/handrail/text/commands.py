"""What control sequences do to a screen: cursor moves, erasing, inserting, deleting. All others do nothing.

The page: clearing the screen, or a move to an absolute row, begins a page below what was printed before, which stays
as in a terminal's scrollback. Clearing again empties that page, and its first row is row 1 from then on.
"""

from __future__ import annotations

from collections.abc import Callable

from handrail.text.cells import BLANK, Cells, split
from handrail.text.screen import Screen

LARGEST = 100_000
"""A parameter counts as no more than this; screens clamp what they do with it further."""

EDITED = 2000
"""In a row of more columns nothing is inserted, deleted or erased in the middle: each of these costs the row's
length, so that hostile output could make it the square."""

Parameters = tuple[int | None, ...]
"""What a sequence gave, None where it left a place empty."""


def run_csi(screen: Screen, final: str, parameters: str) -> None:
    """Do what `CSI parameters final` asks for. Private forms (`?25l`) change nothing that is kept."""
    command = _COMMANDS.get(final)
    if command is not None and not any(mark in parameters for mark in "<=>?"):
        command(screen, tuple(_parameter(part) for part in parameters.split(";", 2)[:2]))


def run_escape(screen: Screen, final: str) -> None:
    """Do what `ESC final` asks for."""
    if final == "7":
        _save(screen, ())
    elif final == "8":
        _restore(screen, ())
    elif final == "M":
        _up(screen, (1,))
    elif final == "E":
        screen.next_row()
    elif final == "c":
        _clear(screen)


def _parameter(part: str) -> int | None:
    digits = part.partition(":")[0]
    if not digits:
        return None
    # Python refuses to read thousands of digits, and nobody means them.
    return min(int(digits), LARGEST) if len(digits) < 10 else LARGEST


def _count(parameters: Parameters) -> int:
    """A count or a position, for which 0 and nothing mean 1."""
    return (parameters[0] or 1) if parameters else 1


def _up(screen: Screen, parameters: Parameters) -> None:
    top = screen.page if screen.page is not None and screen.y >= screen.page else 0
    screen.y = max(top, screen.y - _count(parameters))


def _down(screen: Screen, parameters: Parameters) -> None:
    screen.y = max(screen.y, min(screen.y + _count(parameters), len(screen.rows)))


def _right(screen: Screen, parameters: Parameters) -> None:
    _to_column(screen, screen.x + _count(parameters))


def _left(screen: Screen, parameters: Parameters) -> None:
    screen.x = max(0, screen.x - _count(parameters))


def _next_line(screen: Screen, parameters: Parameters) -> None:
    _down(screen, parameters)
    screen.x = 0


def _previous_line(screen: Screen, parameters: Parameters) -> None:
    _up(screen, parameters)
    screen.x = 0


def _column(screen: Screen, parameters: Parameters) -> None:
    _to_column(screen, _count(parameters) - 1)


def _row(screen: Screen, parameters: Parameters) -> None:
    screen.y = _page(screen) + min(_count(parameters), max(1, screen.scrollback)) - 1


def _position(screen: Screen, parameters: Parameters) -> None:
    _row(screen, parameters)
    _column(screen, parameters[1:])


def _save(screen: Screen, _: Parameters) -> None:
    screen.saved = (screen.x, screen.y)


def _restore(screen: Screen, _: Parameters) -> None:
    screen.x = screen.saved[0]
    screen.y = min(screen.saved[1], len(screen.rows))


def _erase_line(screen: Screen, parameters: Parameters) -> None:
    if screen.y >= len(screen.rows):
        return
    mode = parameters[0] or 0
    if mode == 2 or (mode == 0 and screen.x == 0):
        screen.rows[screen.y] = ""
    elif mode == 0:
        cells = screen.open()
        split(cells, screen.x)
        del cells[screen.x :]
    elif mode == 1:
        _erase_left(screen)


def _erase_left(screen: Screen) -> None:
    cells = screen.open()
    if screen.x + 1 >= len(cells):
        cells.clear()
    elif len(cells) <= EDITED:
        _blank(cells, 0, screen.x + 1)


def _erase_display(screen: Screen, parameters: Parameters) -> None:
    mode = parameters[0] or 0
    if mode == 0:
        _erase_line(screen, (0,))
        screen.drop_rows(screen.y + (0 if screen.x == 0 else 1))
    elif mode == 1:
        top = screen.y if screen.page is None else screen.page
        bottom = max(top, min(screen.y, len(screen.rows)))
        screen.rows[top:bottom] = [""] * (bottom - top)
        _erase_line(screen, (1,))
    elif mode in (2, 3):
        _clear(screen)


def _clear(screen: Screen) -> None:
    page = _page(screen)
    screen.drop_rows(page)
    screen.x, screen.y = 0, page


def _insert_characters(screen: Screen, parameters: Parameters) -> None:
    cells = screen.open()
    if screen.x < len(cells) <= EDITED:
        limit = max(len(cells), screen.reach)
        split(cells, screen.x)
        cells[screen.x : screen.x] = [BLANK] * min(_count(parameters), screen.reach)
        split(cells, limit)
        del cells[limit:]


def _delete_characters(screen: Screen, parameters: Parameters) -> None:
    cells = screen.open()
    if screen.x < len(cells) <= EDITED:
        end = screen.x + _count(parameters)
        split(cells, screen.x)
        split(cells, end)
        del cells[screen.x : end]


def _erase_characters(screen: Screen, parameters: Parameters) -> None:
    cells = screen.open()
    if screen.x < len(cells) <= EDITED:
        _blank(cells, screen.x, min(screen.x + _count(parameters), len(cells)))


def _insert_lines(screen: Screen, parameters: Parameters) -> None:
    """Rows pushed out of the window are lost, as they are off a screen's bottom."""
    if screen.y < len(screen.rows):
        limit = max(len(screen.rows), screen.scrollback)
        count = min(_count(parameters), limit)
        number = screen.numbers[screen.y]
        screen.rows[screen.y : screen.y] = [""] * count
        screen.numbers[screen.y : screen.y] = [number] * count
        screen.drop_rows(limit)
    screen.x = 0


def _delete_lines(screen: Screen, parameters: Parameters) -> None:
    if screen.y < len(screen.rows):
        screen.drop_rows(screen.y, screen.y + _count(parameters))
    screen.x = 0


def _to_column(screen: Screen, column: int) -> None:
    """Go to `column`, at most to the end of what the row holds or as far as a move reaches."""
    if column > screen.reach:
        held = len(screen.open()) if screen.y < len(screen.rows) else 0
        column = min(column, max(held, screen.reach))
    screen.x = column


def _page(screen: Screen) -> int:
    """The page's first row; a page begins here where none has yet."""
    if screen.page is None:
        screen.page = len(screen.rows)
    return screen.page


def _blank(cells: Cells, start: int, end: int) -> None:
    split(cells, start)
    split(cells, end)
    cells[start:end] = [BLANK] * (end - start)


_COMMANDS: dict[str, Callable[[Screen, Parameters], None]] = {
    "@": _insert_characters,
    "A": _up,
    "B": _down,
    "C": _right,
    "D": _left,
    "E": _next_line,
    "F": _previous_line,
    "G": _column,
    "H": _position,
    "J": _erase_display,
    "K": _erase_line,
    "L": _insert_lines,
    "M": _delete_lines,
    "P": _delete_characters,
    "X": _erase_characters,
    "`": _column,
    "a": _right,
    "d": _row,
    "e": _down,
    "f": _position,
    "s": _save,
    "u": _restore,
}
