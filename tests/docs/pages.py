"""The project's pages as the tests read them: their fenced blocks, sections, tables and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"

_FENCE = re.compile(r"^(`{3,})(.*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: `language` is the first word behind its fence, `marks` the others. `line` is the fence's own."""

    page: str
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    fence, start, info, lines = "", 0, "", list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        match = _FENCE.match(line)
        if match and not fence:
            fence, info, start, lines = match[1], match[2], number, []
        elif match and match[1] == fence and not match[2]:
            language, *marks = info.split() or [""]
            found.append(Block(str(page.relative_to(ROOT)), start, language, tuple(marks), "\n".join(lines)))
            fence = ""
        elif fence:
            lines.append(line)
    assert not fence, f"{page}:{start}: a block without an end"
    return found


def section(page: Path, heading: str) -> str:
    """The text below a heading (without its #s and backticks) up to the next heading of its level or above; or ''."""
    kept: list[str] = []
    level = 0
    for line in page.read_text(encoding="utf-8").splitlines():
        match = re.match(r"(#+) (.*)", line)
        if match and level and len(match[1]) <= level:
            break
        if level:
            kept.append(line)
        elif match and match[2].replace("`", "") == heading:
            level = len(match[1])
    return "\n".join(kept)


def rows(text: str) -> dict[str, list[str]]:
    """Table rows by the first word in backticks in their first cell, each as its other cells."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        match = re.match(r"\| *`([^`]+)`[^|]*\|(.*)\|$", line)
        if match:
            found[match[1]] = [cell.strip() for cell in re.split(r"(?<!\\)\|", match[2])]
    return found


def links(page: Path) -> list[str]:
    """Where the page's links lead, outside its fenced blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text)
