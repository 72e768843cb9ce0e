"""What one character does to its neighbours: how many columns it takes, and where a text must not be cut.

Both rules read the character database that comes with Python; nothing here knows about lines or limits.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_JOINER = "\u200d"
_VIRAMA_CLASS = 9
_MARKS_IN_OTHER_CATEGORIES = "\u0e33\u0eb3\uff9e\uff9f"  # Thai and Lao am, halfwidth voiced marks
_PREPENDED = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"


@lru_cache(maxsize=8192)
def width(character: str) -> int:
    """Columns on a terminal: 0 for what joins the character before it, 2 for wide East Asian ones and emoji."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 1 if character == "\u00ad" else 0
    if "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def boundary_before(text: str, at: int) -> int:
    """The last place up to `at` where `text` can be cut without splitting what is seen as one character."""
    while 0 < at < len(text) and _joined(text, at):
        at -= 1
    return at


def boundary_after(text: str, at: int) -> int:
    """The first place from `at` on where `text` can be cut without splitting what is seen as one character."""
    while 0 < at < len(text) and _joined(text, at):
        at += 1
    return at


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of `at` belong together."""
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return False
    if before == "\n" or after == "\n":
        return False
    if _extends(after) or before == _JOINER or before in _PREPENDED:
        return True
    if _is_regional(before) and _is_regional(after):
        return _run_of_regionals(text, at) % 2 == 1
    if unicodedata.combining(before) == _VIRAMA_CLASS and unicodedata.category(after) == "Lo":
        return True
    return _same_syllable(before, after)


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character in ("\u200c", _JOINER)
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
        or character in _MARKS_IN_OTHER_CATEGORIES
    )


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _run_of_regionals(text: str, end: int) -> int:
    """How many regional indicators stand before `end`: two of them are one flag, so only pairs may be parted."""
    start = end
    while start > 0 and _is_regional(text[start - 1]):
        start -= 1
    return end - start


def _same_syllable(before: str, after: str) -> bool:
    """Whether two Hangul letters or syllables make one: a leading consonant, a vowel, a trailing consonant."""
    first, second = _jamo(before), _jamo(after)
    if first == "L":
        return second in ("L", "V", "LV", "LVT")
    if first in ("LV", "V"):
        return second in ("V", "T")
    return first in ("LVT", "T") and second == "T"


def _jamo(character: str) -> str:
    if "\uac00" <= character <= "\ud7a3":
        return "LV" if (ord(character) - 0xAC00) % 28 == 0 else "LVT"
    if "\u1100" <= character <= "\u115f" or "\ua960" <= character <= "\ua97c":
        return "L"
    if "\u1160" <= character <= "\u11a7" or "\ud7b0" <= character <= "\ud7c6":
        return "V"
    return "T" if "\u11a8" <= character <= "\u11ff" or "\ud7cb" <= character <= "\ud7fb" else ""
