"""Finds the lines of an output that hold given words, at a bounded cost; it knows no program and no meaning of them."""

from __future__ import annotations

from collections.abc import Iterator

# A program that prints a failure prints it early or often; a text made of nothing but marks must not cost more.
_MOST = 20
# Characters of a line on either side of a mark.
_REACH = 500
_QUOTES = "\"'`"
_BEFORE_A_PATH = " \t\"'`\u2018\u201c([<=>"
_AFTER_A_PATH = " \t\"'`\u2019\u201d)]<>,;:"


def marked(text: str, *marks: str) -> Iterator[str]:
    """The lines that hold a mark, by mark, then in order; of a long line the part around it.

    A mark that a quote precedes is a string in source text (`assert "..." in err`), unless a number and a comma stand
    before that: `OSError(30, '...')` is how Python shows an error.
    """
    for mark in marks:
        at = text.find(mark)
        for _ in range(_MOST):
            if at < 0:
                break
            if not _is_quoted(text, at):
                yield _line(text, at)
            at = text.find(mark, at + len(mark))


def has(text: str, *marks: str) -> bool:
    """Whether a line holds one of the marks, as in `marked`."""
    return any(True for _ in marked(text, *marks))


def paths_in(line: str) -> Iterator[str]:
    """Absolute paths that stand as words, up to the first character that seldom is in one."""
    at = line.find("/")
    for _ in range(_MOST):
        if at < 0:
            return
        end = at
        while end < len(line) and line[end] not in _AFTER_A_PATH:
            end += 1
        if at == 0 or line[at - 1] in _BEFORE_A_PATH:
            yield line[at:end]
        at = line.find("/", end)


def _is_quoted(text: str, at: int) -> bool:
    before = text[max(0, at - 4) : at]
    return before[-1:] != "" and before[-1] in _QUOTES and not (before[1:3] == ", " and before[0].isdigit())


def _line(text: str, at: int) -> str:
    start = text.rfind("\n", max(0, at - _REACH), at)
    end = text.find("\n", at, at + _REACH)
    return text[max(0, at - _REACH) if start < 0 else start + 1 : at + _REACH if end < 0 else end]
