"""What each source file looks like: what it is called, that it says what it owns, how long it is."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

LINES = 300
LONGER: Mapping[str, str] = {}  # file below src/ -> why it may be longer

# A name that says nothing draws everything in.
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc", "shared", "stuff"}


def files(source: Path) -> list[Path]:
    return sorted(source.rglob("*.py"))


def silent(source: Path) -> list[str]:
    """Files that do not begin by saying what they own and what they refuse."""
    wrong: list[str] = []
    for path in files(source):
        words = ast.get_docstring(ast.parse(path.read_bytes(), str(path))) or ""
        if len(words.split()) < 3 or "TODO" in words:
            wrong.append(str(path.relative_to(source)))
    return wrong


def empty_names(source: Path) -> list[str]:
    paths = (p.relative_to(source) for p in files(source))
    return [str(p) for p in paths if EMPTY_NAMES & {part.strip("_") for part in p.with_suffix("").parts}]


def too_long(source: Path, longer: Mapping[str, str] = LONGER) -> list[str]:
    """Files beyond the budget without a reason, and reasons that are no longer needed."""
    lengths = {str(p.relative_to(source)): len(p.read_bytes().splitlines()) for p in files(source)}
    over = [f"{name}: {n} lines" for name, n in lengths.items() if n > LINES and not longer.get(name)]
    stale = [f"{name}: needs no exception" for name in longer if lengths.get(name, 0) <= LINES]
    return over + stale


CHECKS: list[Callable[[Path], list[str]]] = [silent, empty_names, too_long]


@pytest.mark.parametrize("check", CHECKS)
def test_every_file_keeps_the_house_rules(check: Callable[[Path], list[str]]) -> None:
    assert len(files(SOURCE)) > 10
    assert check(SOURCE) == []


@pytest.mark.parametrize("text", ["", "import os", '"""TODO"""', '"""Things."""', "# A comment is no docstring at all"])
def test_a_file_that_says_nothing_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.py").write_text('"""It owns this and refuses that."""\n')
    assert silent(tmp_path) == ["a.py"]


@pytest.mark.parametrize("name", ["utils.py", "text/helpers.py", "common/line.py", "_manager.py"])
def test_a_name_that_says_nothing_is_found(tmp_path: Path, name: str) -> None:
    for path in (tmp_path / name, tmp_path / "manage.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert empty_names(tmp_path) == [name]


def test_a_long_file_needs_a_reason_and_a_reason_a_long_file(tmp_path: Path) -> None:
    (tmp_path / "fits.py").write_text("x\n" * LINES)
    (tmp_path / "long.py").write_text("x\n" * (LINES + 1))
    assert too_long(tmp_path) == ["long.py: 301 lines"]
    assert too_long(tmp_path, {"long.py": "a table"}) == []
    assert too_long(tmp_path, {"long.py": ""}) == ["long.py: 301 lines"]
    assert too_long(tmp_path, {"long.py": "a table", "fits.py": "a table", "gone.py": "a table"}) == [
        "fits.py: needs no exception",
        "gone.py: needs no exception",
    ]
