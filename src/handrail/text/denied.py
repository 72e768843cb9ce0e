"""Which names of files an agent is not to read or write: a pure predicate over one component of a path.

It looks at the name alone, and at what some system takes for the same name; links, and where a path leads, are for
whoever opens files.
"""

from __future__ import annotations

import re
import unicodedata

_NAMES = frozenset({".git", ".env", ".ssh", "id_rsa", "id_ed25519", "credentials.json"})
_BEGINNINGS = (".env.",)
_ENDINGS = (".pem", ".key")
_EXCEPTIONS = frozenset({".env.example", ".env.sample", ".env.template"})

# Short names, as FAT and NTFS make them of the above: the first six letters that such a name may have, a number, and
# three letters of the ending. Where the first four such names are taken, NTFS keeps two letters and adds a hash: one
# that names .git is known, those of the others depend on names beside them.
_SHORT = re.compile(r"(?:git|env|ssh|id_ed2|gi7eba)~\d+|creden~\d+\.jso|.{1,6}~\d+\.(?:pem|key)")

# Default_Ignorable_Code_Point of the Unicode database, besides the format characters (Cf): Python does not know it.
_IGNORABLE = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2065, 0x2065),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)


def is_denied(name: str) -> bool:
    """Whether a file or directory of this name is kept from the agent. `name` is one component, without a slash.

    What stands before a colon is judged too: there it names a stream of the file in front of it.
    """
    return any(_is_denied(_folded(part)) for part in {name, name.split(":", 1)[0]})


def _is_denied(name: str) -> bool:
    if name in _EXCEPTIONS:
        return False
    return (
        name in _NAMES or name.startswith(_BEGINNINGS) or name.endswith(_ENDINGS) or _SHORT.fullmatch(name) is not None
    )


def _folded(name: str) -> str:
    """What systems that are lax about names would take it for.

    Folded twice: a compatible form can hold ignorable code points and capitals again.
    """
    for _ in range(2):
        name = unicodedata.normalize("NFKC", "".join(c for c in name if not _is_ignorable(c))).casefold()
    return name.rstrip(". ")


def _is_ignorable(character: str) -> bool:
    if character.isascii():
        return False
    code = ord(character)
    return unicodedata.category(character) == "Cf" or any(first <= code <= last for first, last in _IGNORABLE)
