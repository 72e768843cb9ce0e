from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.text.clean import Cleaner
from handrail.text.cut import Shown, TextLimits, marker, present

# No deadline, since a busy machine proves nothing; no database, since the working directory need not be writable.
UNHURRIED = settings(deadline=None, database=None)

NUMBERED = b"".join(b"%d\n" % i for i in range(1, 5002))
DEFAULT = TextLimits()
lines_of_text = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=15), max_size=30)
limits = st.builds(TextLimits, st.integers(0, 8), st.integers(0, 8), st.integers(0, 120))


def whole(output: bytes, text_limits: TextLimits = DEFAULT) -> Shown:
    return present(output, b"", 0, 0, text_limits)


def ends(output: bytes, head: int, tail: int, text_limits: TextLimits = DEFAULT) -> Shown:
    """As if only `head` and `tail` bytes of `output` had been kept."""
    dropped = output[head : len(output) - tail]
    return present(output[:head], output[len(output) - tail :], len(dropped), dropped.count(b"\n"), text_limits)


def joined(shown: Shown) -> str:
    return shown.join(marker(shown, "out3"))


def cleaned(text: str) -> str:
    cleaner = Cleaner()
    return "\n".join(line.text for line in cleaner.feed(text) + cleaner.finish())


@pytest.mark.parametrize("output", [b"", b"abc", b"abc\n", b"a\n\nb\n", b"seq\r\n\x1b[31mred\x1b[m"])
def test_short_output_is_shown_whole(output: bytes) -> None:
    shown = whole(output)
    assert joined(shown) == cleaned(output.decode())
    assert (shown.truncated, shown.omitted_lines, shown.omitted_chars, shown.start_line) == (False, 0, 0, None)


def test_head_and_tail_in_two_pieces_are_one_output() -> None:
    assert present(b"cost \xe2\x82", b"\xac5 \x1b[3", 0, 0, TextLimits()).before == "cost \u20ac5 "
    assert present(b"a\x1b[3", b"1mb", 0, 0, TextLimits()).before == "ab"


def test_too_many_lines_leave_the_first_and_the_last() -> None:
    shown = whole(NUMBERED, TextLimits(head_lines=3, tail_lines=3))
    assert joined(shown) == (
        '1\n2\n3\n[... 4995 lines omitted; read_output(id="out3", start_line=4) shows them ...]\n4999\n5000\n5001'
    )
    assert (shown.omitted_lines, shown.unit, shown.start_line, shown.exact) == (4995, "lines", 4, True)


def test_as_many_lines_as_allowed_are_all_shown() -> None:
    shown = whole(b"1\n2\n3\n4\n", TextLimits(head_lines=2, tail_lines=2))
    assert not shown.truncated
    assert shown.before == "1\n2\n3\n4"


def test_one_long_line_shows_both_ends() -> None:
    shown = whole(b"a" * 2500 + b"b" * 2500, TextLimits(max_chars=60))
    assert joined(shown) == "\n".join(
        ["a" * 30, '[... 4940 characters omitted; read_output(id="out3", start_line=1) shows them ...]', "b" * 30]
    )
    assert (shown.omitted_lines, shown.omitted_chars, shown.start_line) == (0, 4940, 1)


def test_without_an_id_the_marker_only_counts() -> None:
    assert marker(whole(NUMBERED, TextLimits(3, 3)), None) == "[... 4995 lines omitted ...]"


def test_one_line_and_one_character_are_told_in_the_singular() -> None:
    line = whole(b"1\n2\n3\n", TextLimits(head_lines=1, tail_lines=1))
    assert marker(line, "out1") == '[... 1 line omitted; read_output(id="out1", start_line=2) shows it ...]'
    character = whole(b"abcde", TextLimits(max_chars=4))
    assert marker(character, None) == "[... 1 character omitted ...]"


def test_a_cut_moves_to_a_line_border_where_that_costs_little() -> None:
    shown = whole(b"".join(b"line %03d\n" % i for i in range(100)), TextLimits(max_chars=60))
    assert shown.before == "line 000\nline 001\nline 002"
    assert shown.after == "line 097\nline 098\nline 099"
    assert (shown.omitted_lines, shown.unit, shown.start_line) == (94, "lines", 4)


def test_a_cut_stays_in_a_line_where_a_border_is_far() -> None:
    shown = whole(b"one\n" + b"x" * 200 + b"\nlast\n", TextLimits(max_chars=60))
    assert shown.before == "one\n" + "x" * 26
    assert shown.after == "x" * 25 + "\nlast"
    assert (shown.unit, shown.omitted_lines, shown.omitted_chars, shown.start_line) == ("characters", 0, 149, 2)
    assert joined(shown).splitlines()[2].startswith("[... 149 characters omitted; ")


def test_a_short_side_is_kept_whole() -> None:
    lines = [b"a", b"b", *[b"x" * 50] * 10]
    shown = whole(b"\n".join(lines), TextLimits(head_lines=2, tail_lines=3, max_chars=120))
    assert shown.before == "a\nb"
    assert shown.after == "x" * 50


@pytest.mark.parametrize(
    "character",
    [
        pytest.param("e\u0301\u0323", id="combining marks"),
        pytest.param("\u2764\ufe0f", id="variation selector"),
        pytest.param("\U0001f469\u200d\U0001f4bb", id="joined emoji"),
        pytest.param("\U0001f44b\U0001f3fd", id="skin tone"),
        pytest.param("\U0001f1e9\U0001f1ea", id="flag"),
        pytest.param("\u1112\u1161\u11ab", id="Hangul jamo"),
        pytest.param("\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", id="tag sequence"),
        pytest.param("\u0915\u094d\u0937", id="conjunct"),
    ],
)
@pytest.mark.parametrize("max_chars", range(20, 36, 2))
def test_a_cut_never_splits_what_is_seen_as_one_character(character: str, max_chars: int) -> None:
    shown = whole((character * 100).encode(), TextLimits(max_chars=max_chars))
    assert shown.before == character * (max_chars // 2 // len(character))
    assert shown.after == shown.before


def test_dropped_lines_are_counted_with_those_that_are_cut() -> None:
    shown = ends(NUMBERED, 1000, 1000, TextLimits(head_lines=3, tail_lines=3))
    assert shown.before == "1\n2\n3"
    assert shown.after == "4999\n5000\n5001"
    assert (shown.omitted_lines, shown.unit, shown.start_line, shown.exact) == (4995, "lines", 4, False)


@UNHURRIED
@given(st.integers(30, 200), st.integers(30, 200))
def test_wherever_bytes_are_dropped_whole_lines_are_shown_and_counted(head: int, tail: int) -> None:
    output = b"".join(b"line %04d\n" % i for i in range(1, 1001))
    shown = ends(output, head, tail)
    lines = output.decode().splitlines()
    first, last = shown.before.splitlines(), shown.after.splitlines()
    assert first == lines[: len(first)]
    assert last == lines[len(lines) - len(last) :]
    assert (shown.unit, shown.omitted_lines) == ("lines", 1000 - len(first) - len(last))
    assert shown.start_line == len(first) + 1


def test_dropped_bytes_make_the_count_of_characters_approximate() -> None:
    shown = ends(b"HEAD" + b"x" * 5_000_000 + b"TAIL\n", 65536, 262144)
    assert shown.before == "HEAD" + "x" * 14_996
    assert shown.after == "x" * 14_996 + "TAIL"
    words = '[... about 4970008 characters omitted; read_output(id="out3", start_line=1) shows them ...]'
    assert marker(shown, "out3") == words


def test_lines_that_nobody_could_count_are_told_in_characters() -> None:
    shown = present(b"a\nb\n", b"c\nd\n", 100, None, TextLimits())
    assert (shown.before, shown.after) == ("a\nb", "d")
    assert (shown.unit, shown.exact, shown.start_line) == ("characters", False, 3)
    assert marker(shown, None).startswith("[... about 10")


def test_a_long_last_line_is_kept_though_its_beginning_was_dropped() -> None:
    shown = ends(b"start\n" + b"y" * 500_000 + b"\ndone\n", 1000, 100_000)
    assert shown.after.endswith("yyy\ndone")
    assert len(shown.after) == 15_000
    assert shown.unit == "characters"


def test_few_long_lines_are_not_cut_by_the_limit_on_lines() -> None:
    output = b"".join(b"%d\n" % i for i in range(6)) + b"z" * 10_000 + b"\n"
    shown = ends(output, 1000, 1000, TextLimits(head_lines=2, tail_lines=8))
    assert shown.before == "0\n1\n2\n3\n4\n5"


def test_characters_at_a_gap_are_neither_broken_nor_told_as_invalid() -> None:
    text = "\u3042" * 1000
    for head in range(30, 34):
        for tail in range(30, 34):
            shown = ends(text.encode(), head, tail)
            assert set(shown.before + shown.after) == {"\u3042"}
            assert not shown.invalid


def test_invalid_bytes_are_told() -> None:
    assert whole(b"caf\xe9 au lait\n").invalid
    assert ends(b"ok\n" + b"." * 100 + b"\n\xff end", 3, 6).invalid
    assert not whole("caf\u00e9 \ufffd".encode()).invalid


@pytest.mark.parametrize(
    "rest",
    [b"1mred\x1b[0m", b"[31mred\x1b[0m", b"8;5;196mred\x1b[0m", b"mred\x1b[0m", b"title\x07red\x1b[m", b"a/b\x1b\\red"],
)
def test_the_rest_of_a_sequence_that_the_gap_cut_is_not_shown(rest: bytes) -> None:
    assert present(b"start\n", rest, 10, 0, TextLimits()).after == "red"


def test_the_beginning_of_a_sequence_that_the_gap_cut_is_not_shown() -> None:
    assert present(b"start \x1b[38;5", b"\nend", 10, 0, TextLimits()).before == "start "


def test_a_redrawn_line_is_one_line_however_often_it_was_drawn() -> None:
    output = b"".join(b"\rframe %d" % i for i in range(20_000)) + b"\ndone\n"
    assert joined(whole(output)) == "frame 19999\ndone"


@UNHURRIED
@given(lines_of_text, limits)
def test_what_is_shown_keeps_to_the_limits(lines: list[str], text_limits: TextLimits) -> None:
    shown = whole("\n".join(lines).encode(), text_limits)
    text = cleaned("\n".join(lines))
    total_lines = text.count("\n") + 1
    if not shown.truncated:
        assert shown.before == text
        assert len(text) <= text_limits.max_chars
        return
    assert len(shown.before) + len(shown.after) <= text_limits.max_chars
    parts = [part for part in (shown.before, shown.after) if part]
    if total_lines > text_limits.head_lines + text_limits.tail_lines:
        assert sum(part.count("\n") + 1 for part in parts) <= text_limits.head_lines + text_limits.tail_lines
    assert shown.omitted_chars + len(shown.before) + len(shown.after) == len(text)
    assert text.startswith(shown.before)
    assert text.endswith(shown.after)
    assert shown.omitted_lines <= total_lines
    assert shown.exact


@UNHURRIED
@given(st.binary(max_size=300), st.integers(0, 300), st.integers(0, 300), limits)
def test_no_bytes_break_the_limits_or_raise(output: bytes, head: int, tail: int, text_limits: TextLimits) -> None:
    head = min(head, len(output))
    shown = ends(output, head, min(tail, len(output) - head), text_limits)
    assert shown.truncated or len(shown.before) <= text_limits.max_chars
    assert len(shown.before) + len(shown.after) <= text_limits.max_chars
    assert shown.omitted_chars >= 0
    assert shown.truncated == (shown.start_line is not None)


@pytest.mark.parametrize(
    "unit",
    ["x", "\u0301", "\U0001f1e6", "\u200d", "\n", "\x1b[A\x1b[2K", "\u0915\u094d"],
    ids=["one line", "marks", "flags", "joiners", "newlines", "redraws", "conjuncts"],
)
def test_cutting_hostile_output_costs_no_more_than_its_length(unit: str) -> None:
    data = unit.encode()
    begin = time.process_time()
    shown = present(data * (65536 // len(data)), data * (262144 // len(data)), 10**9, 10**6, TextLimits())
    assert time.process_time() - begin < 5  # measured well under one second; quadratic cost would be minutes
    assert len(shown.before) + len(shown.after) <= 30_000
