"""The grammar of control sequences (ECMA-48, xterm's strings) as regular expressions. It gives them no meaning.

All of them read text without newlines, and read it in linear time: parts are possessive and disjoint, and what has
no end in the grammar has a limit in length, past which it is text.
"""

from __future__ import annotations

import re

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""A character that never comes out as it is: all of C0 and C1 but tab and newline, and DEL."""

_CSI = r"(?:\x1b\[|\x9b)"
_PARAMETERS = r"[0-?]{0,256}+"
_INTERMEDIATES = r"[ -/]{0,8}+"

# What a string runs up to. An escape always ends one: with a backslash it is the proper end, otherwise it begins
# the next sequence. BEL ends a title or link only; in a device string it may be content.
_UNTIL = {"]": r"[^\x07\x18\x1a\x1b\x9c]*+(?P<end>[\x07\x18\x1a\x9c]?)", "P": r"[^\x18\x1a\x1b\x9c]*+(?P<end>[\x18\x1a\x9c]?)"}
STRING_REST = {kind: re.compile(until) for kind, until in _UNTIL.items()}
"""How a string that began earlier goes on, by kind: "]" (OSC) or "P" (DCS, SOS, PM, APC)."""

# An eight-bit introducer is more often mojibake than a sequence (the last byte of a curly quote is OSC's), so it takes
# only what is properly ended.
_SHORT = r"[^\x00-\x1f\x7f-\x9f]{0,4096}+"
_EIGHT_BIT_STRING = rf"\x9d{_SHORT}(?:\x07|\x9c|\x1b\\)|[\x90\x98\x9e\x9f]{_SHORT}(?:\x9c|\x1b\\)"

TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]++)"
    rf"|(?P<csi>{_CSI}(?P<parameters>{_PARAMETERS})(?P<middle>{_INTERMEDIATES})(?P<final>[@-~]?))"
    rf"|(?P<title>\x1b\]{_UNTIL[']'].replace('end', 'title_end')})"
    rf"|(?P<device>\x1b[PX^_]{_UNTIL['P'].replace('end', 'device_end')})"
    r"|(?P<charset>\x1b[ -/]{1,8}+[0-~]?)"
    r"|(?P<escape>\x1b[0-~]?)"
    rf"|(?P<eight_bit>{_EIGHT_BIT_STRING})"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
)
"""One piece of a line. `final` is empty for a sequence that something else broke off, `end` for a string's."""

INERT = re.compile(
    rf"{_CSI}(?:[0-;]{{0,256}}+[hlm]|[<-?][0-?]{{0,255}}+[@-~])"
    r"|\x1b\][^\x07\x18\x1a\x1b\x9c]*+(?:\x07|\x9c|\x1b\\)"
    r"|\x1b[ -/]{1,8}+[0-~]"
    r"|\x1b[=>]"
)
"""Complete sequences that move and erase nothing: colours, modes, titles, links, character sets."""

_LONGEST_OPEN = 4096 + 2
_OPEN = re.compile(rf"(?:\x1b(?:\[{_PARAMETERS}|){_INTERMEDIATES}|\x9b{_PARAMETERS}{_INTERMEDIATES}|[\x90\x98\x9d-\x9f]{_SHORT}\x1b?)\Z")


def start_of_open(text: str) -> int:
    """Where a sequence begins that `text` may have cut off, or its length. An ESC string's content never counts."""
    found = _OPEN.search(text, max(0, len(text) - _LONGEST_OPEN))
    return found.start() if found else len(text)
