from __future__ import annotations

import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.text.clean import Cleaner, Line
from handrail.text.decode import Decoder

# No deadline, since a busy machine proves nothing; no database, since the working directory need not be writable.
UNHURRIED = settings(deadline=None, database=None)

FRAGMENTS = [
    "a", "bc", "line of words", "1", "0", ";", " ", "\t", "m", "H", "\\", "[", "]", "?", ":", "\u3042",
    "\U0001f600", "e\u0301", "\u0301", "\u200d", "\ufe0f", "\xe9", "\u2028", "\u202e", "\x1b", "\x1b[",
    "\x9b", "\x1b]", "\x9d", "\x1bP", "\x90", "\x1b\\", "\x9c", "\x07", "\x18", "\x00", "\x7f", "\x85", "\r",
    "\r", "\n", "\n", "\r\n", "\x08", "\x08 \x08", "\x1b[31m", "\x1b[m", "\x1b[?25l", "\x1b(B", "\x1b[4:3m",
    "\x1b]0;title\x07", "\x1b]8;;http://a\x1b\\", "\x1b]0;open", "\x1bPq#0\x1b\\", "\x9dmojibake", "\x1b[A",
    "\x1b[2A", "\x1b[B", "\x1b[3C", "\x1b[999C", "\x1b[2D", "\x1b[E", "\x1b[F", "\x1b[4G", "\x1b[H",
    "\x1b[3;2H", "\x1b[d", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[@",
    "\x1b[2P", "\x1b[3X", "\x1b[L", "\x1b[M", "\x1b7", "\x1b8", "\x1b[s", "\x1b[u", "\x1bM", "\x1bE", "\x1bc",
    "\x1b[3\x18", "\x1b[!p", "\x1b[>c",
]  # fmt: skip
streams = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=40).map("".join)
plain_lines = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=12), max_size=20)


def lines(text: str, *, scrollback: int = 200, max_line: int | None = None) -> list[Line]:
    cleaner = Cleaner(scrollback, max_line)
    return cleaner.feed(text) + cleaner.finish()


def clean(text: str, **options: int) -> str:
    return "\n".join(line.text for line in lines(text, **options))


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("abc", "abc", id="no newline at the end"),
        pytest.param("a\n\n b \n", "a\n\n b ", id="blank lines and spaces stay"),
        pytest.param("a\tb\n", "a\tb", id="a tab stays"),
        pytest.param("one\r\ntwo\r\n", "one\ntwo", id="carriage return and newline end a line"),
        pytest.param("one\r\r\ntwo", "one\ntwo", id="more than one return before a newline"),
        pytest.param("\rLoading 10%\rLoading 99%\nok\n", "Loading 99%\nok", id="a redrawn line shows its last state"),
        pytest.param("step 1\rstep 2\r", "step 2", id="a return at the end erases nothing"),
        pytest.param("downloading\rdone\n", "doneloading", id="a shorter redraw leaves the old rest"),
        pytest.param("downloading\r\x1b[Kdone\n", "done", id="erase to the end of the line"),
        pytest.param("abcdef\x1b[3D\x1b[1K\n", "    ef", id="erase to the beginning of the line"),
        pytest.param("abcdef\x1b[2K\rx\n", "x", id="erase the whole line"),
        pytest.param("secret\x1b[1K\rx\n", "x", id="erased columns leave no spaces at the end"),
        pytest.param("wait 1\n\x1b[1A\x1b[2Kwait 2\n\x1b[1A\x1b[2Kready\n", "ready", id="cursor up and erase"),
        pytest.param("a\nb\nc\n\x1b[3A\x1b[Jz\n", "z", id="erase below drops the lines"),
        pytest.param("a\nb\n\x1b[2A\x1b[2K\n\x1b[2K\n", "\n", id="finished lines that were erased stay as blank lines"),
        pytest.param("a\nb\nbar 1\n\x1b[A\x1b[2K", "a\nb", id="an erased progress bar leaves no line"),
        pytest.param("1\n2\n\x1b[2A\x1b[Cx\x1b[By\n", "1x\n2 y", id="cursor down keeps the column"),
        pytest.param("abc\x1b[1Gx\x1b[3Gz", "xbz", id="absolute columns"),
        pytest.param("\x1b[5Cx", "     x", id="a gap is spaces"),
        pytest.param("abc\x1b7\rX\x1b8d\x1b[s\rY\x1b[ue", "Ybcde", id="save and restore"),
        pytest.param("abcd\b\bX\n", "abXd", id="backspace moves and overwrites"),
        pytest.param("N\bNA\bAM\bME\bE\n", "NAME", id="overstruck bold of manual pages"),
        pytest.param("\b\b\ba", "a", id="backspace stops at the first column"),
        pytest.param("abcdef\x1b[4G\x1b[2@12\n", "abc12def", id="insert characters"),
        pytest.param("abcdef\x1b[2G\x1b[3Px\n", "axf", id="delete characters"),
        pytest.param("abcdef\x1b[2G\x1b[3X\n", "a   ef", id="erase characters"),
        pytest.param("a\nb\n\x1b[A\x1b[Lx\n", "a\nx\nb", id="insert a line"),
        pytest.param("a\nb\nc\n\x1b[2A\x1b[M", "a\nc", id="delete a line"),
        pytest.param(
            "\x1b[38;5;196mred\x1b[0m \x1b(Bplain\x1b[?25h\x1b[1;31;48:2::10:20:30mX\x1b[m\n",
            "red plainX",
            id="colours",
        ),
        pytest.param(
            "\x1b]8;;https://e.com/a\x1b\\link\x1b]8;;\x1b\\ \x1b]0;title\x07after\n",
            "link after",
            id="links and titles",
        ),
        pytest.param(
            "a\x1bPq#0~~\x07\x1b\\b\x1b^pm\x1b\\c\x1b_apc\x1b\\d\x1bXsos\x1b\\e", "abcde", id="device strings"
        ),
        pytest.param("a\x9b31mb\x9d0;t\x9cc\x90dcs\x9cd\x9b2Kx", "    x", id="eight-bit controls"),
        pytest.param(
            "\x1b]0;no end\nvisible\nlast\n", "\nvisible\nlast", id="a title without end takes its line at most"
        ),
        pytest.param("\x1bPno end\r\nvisible", "\nvisible", id="a device string without end takes its line at most"),
        pytest.param("\x1b[31\nvisible", "\nvisible", id="a sequence broken off by a newline"),
        pytest.param("a\x1b[31\x18b", "ab", id="a sequence cancelled"),
        pytest.param("a\x1b[31\u20acb", "a\u20acb", id="a sequence broken off by text"),
        pytest.param(
            "\u201cit\u2019s\u201d".encode().decode("latin-1") + " mojibake\n",
            "\xe2it\xe2s\xe2 mojibake",
            id="mojibake",
        ),
        pytest.param("a\x00b\x07c\x7fd\x0be\x0cf\x0eg\x1f", "abcdefg", id="other controls vanish"),
        pytest.param("a\x85b\x84c", "a\nbc", id="NEL begins a new line, other C1 controls vanish"),
        pytest.param(
            "a\u2028b\u2029c\u202ed\ufeff", "a\u2028b\u2029c\u202ed\ufeff", id="other characters of Unicode stay"
        ),
        pytest.param("\x1b[!p\x1b[>0q\x1b#8\x1b=\x1b>\x1b%Ga", "a", id="sequences without effect"),
        pytest.param("\x1bcout\x1b[31;", "out", id="an unfinished sequence at the end"),
        pytest.param("a\x1b", "a", id="an escape at the end"),
    ],
)
def test_the_last_state_is_shown_and_nothing_else(printed: str, shown: str) -> None:
    assert clean(printed) == shown


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        pytest.param("\u3042\u3044\rxy\n", "xy\u3044", id="two columns for a wide character"),
        pytest.param("\u3042\u3044\rx\n", "x \u3044", id="half of a wide character overwritten"),
        pytest.param("\u3042\u3044\x1b[2Gx\n", " x\u3044", id="the other half"),
        pytest.param("e\u0301a\rx\n", "xa", id="a mark goes with its character"),
        pytest.param("ab\b\u0301\n", "a\u0301b", id="a mark joins the character before the cursor"),
        pytest.param("\u0301a\n", "\u0301a", id="a mark without a character"),
        pytest.param("\U0001f469\u200d\U0001f4bb\rabcd\n", "abcd", id="emoji"),
        pytest.param("a\tb\rxx\n", "xx      b", id="the beginning of a tab overwritten"),
        pytest.param("a\tb\x1b[5Gx\n", "a   x   b", id="the middle of a tab overwritten"),
        pytest.param("abcdefghij\r\tX\n", "abcdefghXj", id="a tab over text only moves"),
    ],
)
def test_columns_are_what_a_terminal_counts(printed: str, shown: str) -> None:
    assert clean(printed) == shown


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        pytest.param("before\n\x1b[H\x1b[2Jframe 1\n", "before\nframe 1", id="what was printed before stays"),
        pytest.param(
            "x\n\x1b[2J\x1b[Hone\ntwo\n\x1b[H\x1b[2Jthree\n", "x\nthree", id="the next clearing empties the page"
        ),
        pytest.param("x\n\x1bcone\n\x1bctwo\n", "x\ntwo", id="a reset clears"),
        pytest.param("x\n\x1b[Habc\ndef\n\x1b[HABC\n", "x\nABC\ndef", id="home is the first row of the page"),
        pytest.param("x\n\x1b[3;5Hat\x1b[1;1Htop", "x\ntop\n\n    at", id="rows between are blank"),
        pytest.param("half\x1b[2Jnew", "half\nnew", id="a page begins on a row of its own"),
        pytest.param("x\n\x1b[2Ja\nb\n\x1b[9A\x1b[Jc\n", "x\nc", id="the cursor does not leave a page by moving up"),
        pytest.param("x\n\x1b[Ha\nb\nc\x1b[1Jd", "x\n\n\n d", id="erase above"),
    ],
)
def test_clearing_the_screen_begins_a_page(printed: str, shown: str) -> None:
    assert clean(printed) == shown


@UNHURRIED
@given(streams, st.lists(st.integers(0, 400), max_size=8), st.sampled_from([0, 1, 3, 200]))
def test_chunks_do_not_change_the_lines(text: str, cuts: list[int], scrollback: int) -> None:
    whole = lines(text, scrollback=scrollback)
    cleaner = Cleaner(scrollback)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [line for a, b in pairwise(edges) for line in cleaner.feed(text[a:b])]
    assert pieces + cleaner.finish() == whole


@UNHURRIED
@given(streams, st.sampled_from([(0, None), (3, None), (200, None), (0, 2), (0, 5), (0, 40)]))
def test_bytes_one_at_a_time_give_the_same_lines(text: str, limits: tuple[int, int | None]) -> None:
    scrollback, max_line = limits
    data = text.encode("utf-8", "surrogatepass")
    at_once, bytewise = Decoder(), Decoder()
    whole = lines(at_once.feed(data) + at_once.finish(), scrollback=scrollback, max_line=max_line)
    cleaner = Cleaner(scrollback, max_line)
    pieces = [line for i in range(len(data)) for line in cleaner.feed(bytewise.feed(data[i : i + 1]))]
    assert pieces + cleaner.feed(bytewise.finish()) + cleaner.finish() == whole


def test_a_cleaner_does_not_wrap_lines_and_wait_for_the_cursor_at_once() -> None:
    with pytest.raises(ValueError, match="max_line"):
        Cleaner(scrollback=3, max_line=5)


@UNHURRIED
@given(streams)
def test_no_control_but_tab_comes_out(text: str) -> None:
    for line in lines(text):
        assert all(unicodedata.category(c) != "Cc" or c == "\t" for c in line.text)


@UNHURRIED
@given(plain_lines, st.sampled_from([0, 3, 200]))
def test_text_without_controls_comes_out_as_it_is(printed: list[str], scrollback: int) -> None:
    text = "".join(f"{line}\n" for line in printed)
    assert lines(text, scrollback=scrollback) == [Line(line, number) for number, line in enumerate(printed, 1)]


@UNHURRIED
@given(plain_lines)
def test_printing_cell_by_cell_equals_the_quick_way(printed: list[str]) -> None:
    slow = "".join(f"\x1b[D{line}\n" for line in printed)
    assert lines(slow) == [Line(line, number) for number, line in enumerate(printed, 1)]


@UNHURRIED
@given(streams)
def test_numbers_never_fall_and_never_pass_the_raw_lines(text: str) -> None:
    numbers = [line.number for line in lines(text)]
    assert numbers == sorted(numbers)
    assert all(1 <= number <= text.count("\n") + 1 for number in numbers)


def test_a_line_has_the_number_of_the_raw_line_on_which_it_began() -> None:
    assert lines("one\nwait\n\x1b[A\x1b[2Kready\nlast") == [Line("one", 1), Line("ready", 2), Line("last", 4)]


def test_a_line_is_final_once_the_cursor_cannot_come_back() -> None:
    cleaner = Cleaner(scrollback=2)
    assert cleaner.feed("a\nb\n") == []
    assert cleaner.feed("c\n") == [Line("a", 1)]
    assert cleaner.feed("\x1b[9A\x1b[2KB\n") == []
    assert cleaner.finish() == [Line("B", 2), Line("c", 3)]


def test_without_scrollback_each_line_is_final_at_its_end() -> None:
    cleaner = Cleaner(scrollback=0)
    assert cleaner.feed("a\nb") == [Line("a", 1)]
    assert cleaner.feed("c\n") == [Line("bc", 2)]
    assert cleaner.feed("\x1b[Ax\n") == [Line("x", 3)]
    assert cleaner.finish() == []


def test_a_return_and_a_newline_in_two_feeds_are_one_line_end() -> None:
    cleaner = Cleaner(scrollback=0)
    assert cleaner.feed("three\r") == []
    assert cleaner.feed("\nfour\n") == [Line("three", 1), Line("four", 2)]


def test_a_line_longer_than_allowed_is_passed_on_in_pieces() -> None:
    cleaner = Cleaner(scrollback=0, max_line=10)
    assert cleaner.feed("x" * 25) == [Line("x" * 10, 1), Line("x" * 10, 1)]
    assert cleaner.feed("\nnext\n") == [Line("x" * 5, 1), Line("next", 2)]


def test_a_line_of_exactly_the_allowed_length_is_one_line() -> None:
    assert lines("x" * 10 + "\n" + "y" * 10 + "\n", scrollback=0, max_line=10) == [Line("x" * 10, 1), Line("y" * 10, 2)]


def test_a_progress_bar_without_end_is_no_long_line() -> None:
    cleaner = Cleaner(scrollback=0, max_line=80)
    assert [line for i in range(1000) for line in cleaner.feed(f"\rframe {i} ====")] == []
    assert cleaner.finish() == [Line("frame 999 ====", 1)]


def test_what_a_listener_must_keep_is_bounded() -> None:
    cleaner = Cleaner(scrollback=0, max_line=100)
    total = sum(len(line.text) for _ in range(200) for line in cleaner.feed("z" * 5000))
    rest = sum(len(line.text) for line in cleaner.finish())
    assert total + rest == 1_000_000
    assert rest <= 100


def test_an_endless_string_sequence_is_forgotten_as_it_comes() -> None:
    cleaner = Cleaner(scrollback=0, max_line=100)
    assert [line for _ in range(100) for line in cleaner.feed("\x1b]0;x" if _ == 0 else "y" * 10_000)] == []
    assert cleaner.feed("\nseen\n") == [Line("", 1), Line("seen", 2)]


SIZE = 256 * 1024
HOSTILE = {
    "up and erase": "\x1b[A\x1b[2K",
    "backspaces": "\b",
    "introducers": "\x1b[",
    "titles without end": "\x1b]",
    "escapes": "\x1b",
    "eight-bit titles": "\x9d",
    "eight-bit strings with some text": "\x90" + "x" * 300,
    "marks": "\u0301",
    "marks and controls": "\u0301\x00",
    "far right": "\x1b[999999999C",
    "far right and a character": "\x1b[999999999Cx",
    "far right, one line each": "\x1b[999999999Cx\n",
    "far down": "\x1b[999999999B\x1b[999999999;999999999Hx",
    "the page emptied again and again": "\x1b[999Hx\x1b[2J",
    "digits without end": "\x1b[" + "9" * 5000,
    "inserted columns": "\x1b[999@\rx",
    "inserted lines": "\x1b[L",
    "erase above": "\x1b[1J",
    "returns": "x\r",
    "tabs": "\tx\r",
    "NEL": "\x85",
    "wide characters half overwritten": "\u3042\b",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "before", ["", "x" * 20_000 + "\r\x1b[5C", "y\n" * 5000], ids=["alone", "on a long row", "after lines"]
)
def test_hostile_output_costs_no_more_than_its_length(unit: str, before: str) -> None:
    text = before + unit * (SIZE // len(unit))
    begin = time.process_time()
    shown = sum(len(line.text) for line in lines(text))
    assert time.process_time() - begin < 5  # measured well under one second; quadratic cost would be minutes
    assert shown <= 100 * len(text)


@pytest.mark.parametrize("edit", ["\x1b[@", "\x1b[P", "\x1b[X", "\x1b[1K", "\x1b[K", "\x1b[2K", "\rx", "\x1b[A\x1b[B"])
def test_edits_of_a_very_long_row_are_bounded(edit: str) -> None:
    text = "x" * SIZE + "\x1b[2D\r\x1b[1000C" + edit * (SIZE // len(edit))
    begin = time.process_time()
    lines(text)
    assert time.process_time() - begin < 5


def test_a_flood_of_ordinary_lines_is_cleaned_at_the_speed_of_a_scan() -> None:
    text = "".join(f"{'word ' * (5 + 7 * number % 16)}\n" for number in range(30_000))
    begin = time.process_time()
    assert len(lines(text)) == 30_000
    assert len(text) / (time.process_time() - begin) > 5e6  # bytes a second; measured over 100e6, a tenth is alarming
