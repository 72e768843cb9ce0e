"""Pages of a raw output: each goes on where the one before ended, and together they are the whole."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.text.clean import Cleaner
from handrail.text.page import fit_page

TEXT = st.text(alphabet="ab \n\r\t\x1b[1mAKé漢e\u0301\U0001f600\x85", max_size=300)


@settings(deadline=None, database=None, max_examples=400)
@given(text=TEXT, max_chars=st.integers(20, 60))
def test_pages_one_after_the_other_are_the_whole(text: str, max_chars: int) -> None:
    data = text.encode()
    lines = data.split(b"\n")
    line, char, seen, turns = 1, 1, "", 0
    while True:
        rest = b"\n".join(lines[line - 1 :])
        page = fit_page(rest, line, char, max_chars)
        assert len(page.text) <= max_chars
        seen += page.text
        if page.next_line is None:
            break
        assert (page.next_line, page.next_char) > (line, char)
        seen += "" if page.next_char > 1 else "\n"
        line, char = page.next_line, page.next_char
        turns += 1
        assert turns < 1000
    cleaner = Cleaner(scrollback=0)
    whole = [row.text for row in cleaner.feed(data.decode()) + cleaner.finish()]
    assert seen == "\n".join(whole)


def test_nothing_is_a_page_of_no_lines() -> None:
    assert fit_page(b"", 7, 1, 100).lines == 0
