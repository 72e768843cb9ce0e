"""The search itself: lines of any kind by number, and a search that is out of time says where it stopped."""

from __future__ import annotations

import io
import time

import pytest

from handrail.shell import search as module
from handrail.shell.search import Found, Match, search


def find(data: bytes, pattern: str, **more: int) -> Found:
    options = {"start_line": 1, "max_matches": 100, "max_chars": 30_000, "seconds": 60} | more
    return search(io.BytesIO(data), pattern, **options)


@pytest.mark.parametrize("block", [1, 5, 64, 1024 * 1024])
@pytest.mark.parametrize("data", [b"one\n\ntwo x\nthree\n", b"\x1b[1mone\x1b[0m\n\n..\rtwo x\nthree"])
def test_lines_keep_their_numbers_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch, data: bytes, block: int) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    assert find(data, "^two x$").matches == (Match(3, 1, "two x"),)
    assert find(data, "^$").matches == (Match(2, 1, ""),)
    assert find(data, "e$", start_line=2).matches == (Match(4, 5, "three"),)
    assert find(data, "x", start_line=4) == Found((), -1)


def test_a_search_out_of_time_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 100)
    data = b"".join(b"line %d\n" % n for n in range(1, 201))
    seen: list[int] = []
    at, turns = 1, 0
    while at > 0 and turns < 100:
        found = find(data, "0$", start_line=at, seconds=0)
        seen += [match.line for match in found.matches]
        assert found.next_line > at or found.next_line == -1
        at, turns = found.next_line, turns + 1
    assert seen == list(range(10, 201, 10))
    assert turns > 5


def test_the_beginning_of_a_line_beyond_all_bounds_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 1000)
    monkeypatch.setattr(module, "_LINE_BYTES", 5000)
    found = find(b"start" + b"x" * 50_000 + b"\nafter\n", "^(start|after)")
    assert [(match.line, match.char) for match in found.matches] == [(1, 1), (2, 1)]


def test_a_large_output_is_searched_fast_enough() -> None:
    data = b"an ordinary line of output, with some eighty characters of text in it, number 7\n" * 500_000
    started = time.monotonic()
    assert find(data, "number 8") == Found((), -1)
    assert time.monotonic() - started < 10
