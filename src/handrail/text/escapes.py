"""The grammar of control sequences (ECMA-48, xterm's strings) as regular expressions. It gives them no meaning.

They are for text without newlines unless they say otherwise, and read it in linear time: parts are possessive and
disjoint, and what has no end in the grammar has a limit in length, past which it is text.
"""

from __future__ import annotations

import re

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""A character that never comes out as it is: all of C0 and C1 but tab and newline, and DEL."""

_CSI = r"(?:\x1b\[|\x9b)"
_PARAMETERS = r"[0-?]{0,256}+"
_INTERMEDIATES = r"[ -/]{0,8}+"

# What a string runs up to, by kind: "]" (OSC) or "P" (DCS, SOS, PM, APC). An escape always ends one: with a backslash
# it is the proper end, otherwise it begins the next sequence. BEL ends a title or link only; else it may be content.
_CONTENT = {"]": r"[^\x07\x18\x1a\x1b\x9c]*+", "P": r"[^\x18\x1a\x1b\x9c]*+"}
_END = {"]": r"[\x07\x18\x1a\x9c]?", "P": r"[\x18\x1a\x9c]?"}

# An eight-bit introducer is more often mojibake than a sequence (the last byte of a curly quote is OSC's), so it takes
# only what is properly ended.
_SHORT = r"[^\x00-\x1f\x7f-\x9f]{0,4096}+"
_EIGHT_BIT_STRING = rf"\x9d{_SHORT}(?:\x07|\x9c|\x1b\\)|[\x90\x98\x9e\x9f]{_SHORT}(?:\x9c|\x1b\\)"

TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]++)"
    rf"|(?P<csi>{_CSI}(?P<parameters>{_PARAMETERS})(?P<middle>{_INTERMEDIATES})(?P<final>[@-~]?))"
    rf"|(?P<title>\x1b\]{_CONTENT[']']}(?P<title_end>{_END[']']}))"
    rf"|(?P<device>\x1b[PX^_]{_CONTENT['P']}(?P<device_end>{_END['P']}))"
    r"|(?P<charset>\x1b[ -/]{1,8}+[0-~]?)"
    r"|(?P<escape>\x1b[0-~]?)"
    rf"|(?P<eight_bit>{_EIGHT_BIT_STRING})"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
)
"""One piece of a line. `final` and the ends of strings are empty for a sequence that something else broke off."""

INERT = re.compile(
    rf"{_CSI}(?:[0-;]{{0,256}}+[hlm]|[<-?][0-?]{{0,255}}+[@-~])"
    r"|\x1b\][^\x07\n\x18\x1a\x1b\x9c]*+(?:\x07|\x9c|\x1b\\)"
    r"|\x1b[ -/]{1,8}+[0-~]"
    r"|\x1b[=>]"
)
"""Complete sequences that move and erase nothing: colours, modes, titles, links, character sets. Also for many lines.

Where a text holds no other controls, removing these is all that cleaning it takes: each begins with a control, so none
of them can be content of something longer. Where it holds others, only TOKEN tells."""

_LONGEST_OPEN = 4096 + 2
_OPEN = re.compile(
    rf"(?:(?:{_CSI}{_PARAMETERS}|\x1b){_INTERMEDIATES}"
    rf"|[\x90\x98\x9d-\x9f]{_SHORT}\x1b?)\Z"
)
_REMNANT = re.compile(
    rf"{_SHORT}(?:\x07|\x9c|\x1b\\)"  # the rest of a title or link
    r"|\[?[0-?]{0,256}+m|\[?[0-?]{1,256}+[A-Za-z]|\[[JK]"  # the rest of a CSI sequence
)
_STRING = {kind: re.compile(f"({_CONTENT[kind]})({_END[kind]})") for kind in _CONTENT}


def start_of_open(text: str) -> int:
    """Where a sequence begins that `text` may have cut off, or its length. An ESC string's content never counts."""
    found = _OPEN.search(text, max(0, len(text) - _LONGEST_OPEN))
    return found.start() if found else len(text)


def end_of_string(kind: str, text: str) -> tuple[int, bool]:
    """How far into `text` a string goes that was open before it, and whether it ends there."""
    found = _STRING[kind].match(text)
    if found is None:  # cannot be: both parts match nothing, too
        return 0, True
    return found.end(), found.end() < len(text) or bool(found[2])


def end_of_remnant(text: str) -> int:
    """How much of the beginning of `text`, which was cut off anywhere, looks like the rest of a sequence.

    Text can look so too, but at a cut a few characters more or less are no loss. What has no sequences has no rest.
    """
    if "\x1b" not in text and "\x9b" not in text:
        return 0
    found = _REMNANT.match(text)
    return found.end() if found else 0
