"""What a model is shown of an output: all of it, or its beginning and end with one gap that is told exactly.

Lines here are cleaned lines. Nothing is cut inside what is seen as one character, and at a line border where that
costs little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from handrail.text.characters import boundary_after, boundary_before
from handrail.text.clean import Cleaner, Line
from handrail.text.decode import Decoder, skip_partial, trim_partial
from handrail.text.escapes import end_of_remnant


@dataclass(frozen=True, slots=True)
class TextLimits:
    """How much is shown: lines of the beginning and of the end, and no more than `max_chars`, half from each."""

    head_lines: int = 200
    tail_lines: int = 800
    max_chars: int = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The text, in `before` alone, or its two ends where it was `truncated`.

    `omitted_lines` counts the lines of which nothing is shown; `omitted_chars` the characters that are not shown, line
    ends included. `unit` is what the gap is told in: "lines" where it begins and ends at line borders. `exact` is
    false where `omitted_chars` includes bytes that were dropped uncleaned; if their lines could not be counted,
    `omitted_lines` leaves them out. `start_line` is the raw line on which the gap begins, from 1. `invalid`: something
    in what was kept of the output is not UTF-8 and was replaced by U+FFFD.
    """

    before: str
    after: str = ""
    truncated: bool = False
    omitted_lines: int = 0
    omitted_chars: int = 0
    exact: bool = True
    unit: Literal["lines", "characters"] = "lines"
    start_line: int | None = None
    invalid: bool = False

    def join(self, marker: str) -> str:
        """The text, with `marker` on a line of its own in place of what is omitted."""
        if not self.truncated:
            return self.before
        return "\n".join(part for part in (self.before, marker, self.after) if part)


def marker(shown: Shown, output_id: str | None) -> str:
    """The line that stands for what is omitted: how much, and the call that shows it where there is an `output_id`."""
    count = shown.omitted_lines if shown.unit == "lines" else shown.omitted_chars
    about = "" if shown.unit == "lines" or shown.exact else "about "
    words = f"{about}{count} {shown.unit if count != 1 else shown.unit[:-1]} omitted"
    if output_id is None:
        return f"[... {words} ...]"
    call = f'read_output(id="{output_id}", start_line={shown.start_line})'
    return f"[... {words}; {call} shows {'them' if count != 1 else 'it'} ...]"


def present(head: bytes, tail: bytes, dropped_bytes: int, dropped_lines: int | None, limits: TextLimits) -> Shown:
    """Decode, clean and cut an output of which `head` and `tail` are there and `dropped_bytes` between them are not.

    `dropped_lines` counts the line ends among the dropped bytes; None where nobody could.
    """
    if dropped_bytes == 0:
        return _present_whole(head + tail, limits)
    return _present_ends(head, tail, dropped_bytes, dropped_lines, limits)


@dataclass(frozen=True, slots=True)
class _Part:
    """One end of what is shown: `lines` lines, of which the one at the gap may be cut (`inside`)."""

    text: str
    lines: int
    inside: bool = False


def _present_whole(output: bytes, limits: TextLimits) -> Shown:
    decoder = Decoder()
    rows = _clean(decoder.feed(output) + decoder.finish())
    texts = [row.text for row in rows]
    total = sum(map(len, texts)) + max(0, len(texts) - 1)
    if len(texts) > limits.head_lines + limits.tail_lines:
        front = _part(texts[: limits.head_lines])
        back = _part(texts[len(texts) - limits.tail_lines :])
    elif total > limits.max_chars:
        front = back = _part(texts)
    else:
        return Shown(before="\n".join(texts), invalid=decoder.invalid)
    front, back = _within(front, back, limits)
    omitted_lines = max(0, len(rows) - front.lines - back.lines)
    return Shown(
        before=front.text,
        after=back.text,
        truncated=True,
        omitted_lines=omitted_lines,
        omitted_chars=total - len(front.text) - len(back.text),
        unit=_unit(front, back, omitted_lines),
        start_line=_first_omitted(front, rows, len(rows)),
        invalid=decoder.invalid,
    )


def _present_ends(head: bytes, tail: bytes, dropped: int, dropped_lines: int | None, limits: TextLimits) -> Shown:
    rows, rest, invalid = _clean_ends(head, tail)
    next_line = head.count(b"\n") + 1
    is_open = bool(rows) and rows[-1].number == next_line
    total_lines = None if dropped_lines is None else len(rows) - is_open + dropped_lines + len(rest)
    front_texts, back_texts = [row.text for row in rows], [row.text for row in rest]
    most = limits.head_lines + limits.tail_lines
    if total_lines is None or max(total_lines, len(rows) + len(rest)) > most:
        front_texts = front_texts[: limits.head_lines]
        back_texts = back_texts[max(0, len(rest) - limits.tail_lines) :]
    front = _without_partial(front_texts, -1, limits, partial=is_open and len(front_texts) == len(rows))
    back = _without_partial(back_texts, 0, limits, partial=len(back_texts) == len(rest))
    front, back = _within(front, back, limits)
    known_lines = len(rows) + len(rest) if total_lines is None else total_lines
    omitted_lines = max(0, known_lines - front.lines - back.lines)
    line_ends = len(rows) - is_open + max(0, len(rest) - 1)
    known_chars = sum(len(row.text) for row in (*rows, *rest)) + line_ends
    return Shown(
        before=front.text,
        after=back.text,
        truncated=True,
        omitted_lines=omitted_lines,
        omitted_chars=dropped + known_chars - len(front.text) - len(back.text),
        exact=False,
        unit="characters" if total_lines is None else _unit(front, back, omitted_lines),
        start_line=_first_omitted(front, rows, next_line),
        invalid=invalid,
    )


def _clean_ends(head: bytes, tail: bytes) -> tuple[list[Line], list[Line], bool]:
    """The lines of both ends, and whether there was invalid UTF-8, without what the gap left of a character."""
    front, back = Decoder(), Decoder()
    head_text = front.feed(trim_partial(head))
    tail_text = back.feed(skip_partial(tail)) + back.finish()
    rows, rest = _clean(head_text), _clean(tail_text[end_of_remnant(tail_text) :])
    return rows, rest, front.invalid or back.invalid


def _clean(text: str) -> list[Line]:
    cleaner = Cleaner()
    return cleaner.feed(text) + cleaner.finish()


def _part(texts: list[str], *, inside: bool = False) -> _Part:
    return _Part("\n".join(texts), len(texts), inside and bool(texts))


def _without_partial(texts: list[str], at: int, limits: TextLimits, *, partial: bool) -> _Part:
    """One end, without the line `at` if dropped bytes took a part of it (`partial`) and leaving it out costs little."""
    if partial and len(texts) > 1 and _cheap(len(texts[at]) + 1, limits.max_chars // 2):
        del texts[at]
        partial = False
    return _part(texts, inside=partial)


def _within(front: _Part, back: _Part, limits: TextLimits) -> tuple[_Part, _Part]:
    """Both parts, cut to half of the characters each if together they have too many."""
    if len(front.text) + len(back.text) <= limits.max_chars:
        return front, back
    half = limits.max_chars // 2
    return _keep_front(front, half), _keep_back(back, half)


def _keep_front(part: _Part, budget: int) -> _Part:
    text = part.text
    if len(text) <= budget:
        return part
    end = boundary_before(text, budget)
    if end == 0:
        return _Part("", 0)
    border = end if text[end] == "\n" else text.rfind("\n", 0, end)
    inside = border < 0 or not (border == end - 1 or _cheap(budget - border, budget))
    kept = text[:end] if inside else text[:border]
    return _Part(kept, kept.count("\n") + 1, inside)


def _keep_back(part: _Part, budget: int) -> _Part:
    text = part.text
    if len(text) <= budget:
        return part
    start = boundary_after(text, len(text) - budget)
    if start == len(text):
        return _Part("", 0)
    border = start - 1 if text[start - 1] == "\n" else text.find("\n", start)
    inside = border < 0 or not (border == start or _cheap(border + 1 - (len(text) - budget), budget))
    kept = text[start:] if inside else text[border + 1 :]
    return _Part(kept, kept.count("\n") + 1, inside)


def _cheap(lost: int, budget: int) -> bool:
    """Whether a cut at a line border is worth `lost` characters out of `budget`."""
    return 2 * lost < budget


def _unit(front: _Part, back: _Part, omitted_lines: int) -> Literal["lines", "characters"]:
    return "lines" if omitted_lines and not front.inside and not back.inside else "characters"


def _first_omitted(front: _Part, rows: list[Line], beyond: int) -> int:
    """The raw line on which the gap after `front` begins; `beyond` is the one after `rows`."""
    index = front.lines - 1 if front.inside else front.lines
    return rows[index].number if index < len(rows) else beyond
