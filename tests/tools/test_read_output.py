"""Paging through and searching what a report left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import handrail as hr
from handrail.values.tool import ToolResult


@pytest.fixture
def box(tmp_path: Path) -> Iterator[hr.Toolbox]:
    with hr.Toolbox(tmp_path, approver=hr.allow_all, sandbox="best", state_dir=tmp_path.parent / "state") as opened:
        yield opened


def sh(box: hr.Toolbox, command: str) -> ToolResult:
    return box.call("shell", {"command": command})


def read(box: hr.Toolbox, output_id: str = "out1", **more: Any) -> ToolResult:
    return box.call("read_output", {"id": output_id, **more})


def test_the_call_in_the_mark_shows_the_first_omitted_line(box: hr.Toolbox) -> None:
    cut = sh(box, "seq 1 5000").data
    assert cut["output_id"] == "out1"
    page = read(box, start_line=201, max_lines=2)
    assert page.text == (
        'out1: lines 201 to 202\n201\n202\n[... more from line 203 on: read_output(id="out1", start_line=203) ...]'
    )
    expected = {"id": "out1", "start_line": 201, "next_line": 203, "next_char": 1, "content": "201\n202"}
    assert page.data == {**expected, "truncated": True}


def test_pages_follow_one_another_to_the_very_end(box: hr.Toolbox) -> None:
    sh(box, "seq 1 100000; printf 'the end'")
    lines: list[str] = []
    at = 99_000
    while at > 0:
        page = read(box, start_line=at, max_lines=300).data
        lines += page["content"].split("\n")
        at = page["next_line"]
    assert lines == [*map(str, range(99_000, 100_001)), "the end"]


def test_a_page_holds_no_more_characters_than_a_report(tmp_path: Path) -> None:
    with hr.Toolbox(
        tmp_path, approver=hr.allow_all, sandbox="best", max_chars=100, state_dir=tmp_path.parent / "state"
    ) as small:
        sh(small, "for i in 1 2 3 4 5 6 7 8; do printf '%030d\\n' $i; done")
        first = read(small)
        assert [len(line) for line in first.data["content"].split("\n")] == [30, 30, 30]
        assert first.data["next_line"] == 4


def test_a_line_longer_than_a_page_is_paged_through_by_character(tmp_path: Path) -> None:
    with hr.Toolbox(
        tmp_path, approver=hr.allow_all, sandbox="best", max_chars=100, state_dir=tmp_path.parent / "state"
    ) as small:
        sh(small, "head -c 5000 /dev/zero | tr '\\0' x; echo; echo next")
        page = read(small)
        goes_on = '\n[... line 1 goes on: read_output(id="out1", start_line=1, start_char=101) ...]'
        assert page.text == "out1: line 1\n" + "x" * 100 + goes_on
        whole, pages = "", 0
        while page.data["next_line"] > 0 and pages < 100:
            whole += page.data["content"] if page.data["next_line"] == 1 else page.data["content"] + "\n"
            page = read(small, start_line=page.data["next_line"], start_char=page.data["next_char"])
            pages += 1
        assert whole + page.data["content"] == "x" * 5000 + "\nnext"


def test_a_progress_bar_of_megabytes_shows_its_last_state(box: hr.Toolbox) -> None:
    sh(box, r"seq 1 2000; for i in $(seq 1 60000); do printf '\rworking on it, %6d of 60000' $i; done; echo; echo end")
    page = read(box, start_line=2001)
    assert page.data["content"] == "working on it,  60000 of 60000"
    assert read(box, start_line=page.data["next_line"]).data["content"] == "end"


def test_controls_that_make_rows_do_not_make_lines(box: hr.Toolbox) -> None:
    sh(box, r"for i in $(seq 1 3000); do printf 'a\033Eb\302\205c %d\n' $i; done")
    seen: list[str] = []
    at = 1
    while at > 0:
        page = read(box, start_line=at, max_lines=700).data
        assert page["next_line"] > at or page["next_line"] == -1
        seen.append(page["content"])
        at = page["next_line"]
    assert "\n".join(seen).split("\n") == [row for n in range(1, 3001) for row in ("a", "b", f"c {n}")]


def test_a_match_far_into_a_long_line_is_shown_and_can_be_reached(box: hr.Toolbox) -> None:
    sh(box, "head -c 50000 /dev/zero | tr '\\0' x; printf 'needle'; head -c 50000 /dev/zero | tr '\\0' y; echo")
    match = read(box, pattern="needle").data["matches"][0]
    assert (match["line"], match["char"]) == (1, 50_001)
    assert "needle" in match["text"]
    assert read(box, start_char=match["char"]).data["content"].startswith("needleyyy")


@pytest.mark.parametrize("character", ["\U0001f600", "é", "\\", '"', "x"])
def test_a_search_can_return_as_much_as_a_page(box: hr.Toolbox, character: str) -> None:
    (Path(box.call("shell", {"command": "pwd"}).data["output"]) / "text").write_text((character * 300 + "\n") * 2000)
    sh(box, "cat text")
    found = read(box, pattern=re.escape(character), max_lines=2000)
    assert not found.is_error
    assert len(found.data["matches"]) >= 90


def test_lines_are_counted_raw_and_shown_clean(box: hr.Toolbox) -> None:
    sh(box, r"for i in $(seq 1 3000); do printf '\033[32mline\033[0m %d\rLINE\n' $i; done")
    assert read(box, start_line=2000, max_lines=1).data["content"] == "LINE 2000"


def test_a_search_gives_numbers_and_where_to_go_on(box: hr.Toolbox) -> None:
    sh(box, "seq 1 5000")
    found = read(box, pattern="^4[0-9]{2}0$", max_lines=2)
    assert found.text == (
        "out1: 2 matching lines from line 1 on\n4000:4000\n4010:4010\n"
        "[... searched up to line 4019: go on with start_line=4020 ...]"
    )
    assert read(box, pattern="^4[0-9]{2}0$", start_line=4985).data["matches"] == [
        {"line": 4990, "char": 1, "text": "4990"}
    ]


def test_a_search_sees_clean_lines(box: hr.Toolbox) -> None:
    sh(box, r"seq 1 2000; printf '\033[31merror\033[0m: here\n'; seq 1 2000")
    assert read(box, pattern="^error: here$").data["matches"] == [{"line": 2001, "char": 1, "text": "error: here"}]


def test_a_pattern_that_backtracks_for_ever_ends_at_its_limit(box: hr.Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.tools.read_output._SEARCH_S", 1.0)
    sh(box, "printf 'a%.0s' $(seq 1 40); echo b; seq 1 5000")
    refused = read(box, pattern="^(a+)+$")
    assert (refused.is_error, refused.data["code"]) == (True, "TIMED_OUT")
    assert sh(box, "echo on").data["exit_code"] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ({"id": "out7"}, "NO_SUCH_OUTPUT", "there is no output 'out7'; kept are out1."),
        ({"id": "out1", "pattern": "("}, "BAD_PATTERN", "is no regular expression"),
        ({"id": "out1", "pattern": ""}, "BAD_PATTERN", "empty"),
        ({"id": "out1", "pattern": "x" * 2000}, "BAD_PATTERN", "longer than"),
        ({"id": "out1", "pattern": "\ud800"}, "BAD_PATTERN", "surrogate"),
        ({"id": "out1", "pattern": "(" * 900 + ")" * 90}, "BAD_PATTERN", "'pattern' is"),
        ({"id": "out1", "start_line": 10**5000}, "BAD_ARGUMENTS", "not a number that large"),
        ({"id": "out1", "start_line": 10**30}, "BAD_ARGUMENTS", "not a number that large"),
        ({"id": "x" * 5000 + "\x1b[31m"}, "NO_SUCH_OUTPUT", "there is no output 'xxx"),
        ({"id": "../../etc/passwd"}, "NO_SUCH_OUTPUT", "there is no output"),
        ({"id": "out1", "max_lines": 0}, "BAD_ARGUMENTS", "max_lines"),
        ({}, "BAD_ARGUMENTS", "'id' is missing"),
    ],
)
def test_mistakes_are_told(box: hr.Toolbox, arguments: dict[str, Any], code: str, says: str) -> None:
    sh(box, "seq 1 5000")
    refused = box.call("read_output", arguments)
    assert (refused.is_error, refused.data["code"]) == (True, code)
    assert says in refused.text


@pytest.mark.parametrize(("start", "says"), [(0, "out1: lines 1 to 2"), (-5, "out1: lines 1 to 2")])
def test_a_start_before_the_first_line_is_the_first(box: hr.Toolbox, start: int, says: str) -> None:
    sh(box, "seq 1 5000")
    assert read(box, start_line=start, max_lines=2).text.startswith(says)


def test_a_start_behind_the_end_is_said(box: hr.Toolbox) -> None:
    sh(box, "seq 1 5000")
    beyond = read(box, start_line=6000)
    assert beyond.text == "out1: no line 6000: the output ends before it"
    assert (beyond.is_error, beyond.data["next_line"], beyond.data["content"]) == (False, -1, "")


def test_what_was_not_kept_is_said(tmp_path: Path) -> None:
    with hr.Toolbox(
        tmp_path, approver=hr.allow_all, sandbox="best", spill_max=200_000, state_dir=tmp_path.parent / "state"
    ) as small:
        cut = sh(small, "seq 1 400000")
        assert "note: out1 holds the first 200000 of 2688895 bytes" in cut.text
        assert cut.data["omitted_lines"] == 399_000
        last = read(small, start_line=38_000)
        assert last.text.endswith("[... only the first 200000 of 2688895 bytes were kept ...]")


def test_a_file_that_is_gone_is_an_error_in_words(box: hr.Toolbox, tmp_path: Path) -> None:
    sh(box, "seq 1 5000")
    for spill in (tmp_path.parent / "state").rglob("spill-*"):
        spill.unlink()
    refused = read(box)
    assert refused.text == "IO_ERROR: out1 could not be read; run the command again."
    assert read(box, pattern="x").data["code"] == "IO_ERROR"
