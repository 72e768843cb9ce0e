from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.text.decode import Decoder, skip_partial, trim_partial

# No deadline, since a busy machine proves nothing; no database, since the working directory need not be writable.
UNHURRIED = settings(deadline=None, database=None)

text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)
mostly_utf8 = st.lists(st.one_of(text.map(str.encode), st.binary(max_size=4)), max_size=12).map(b"".join)


def decode_bytewise(data: bytes) -> tuple[str, bool]:
    decoder = Decoder()
    out = "".join(decoder.feed(data[i : i + 1]) for i in range(len(data)))
    return out + decoder.finish(), decoder.invalid


def test_a_character_split_across_two_feeds_is_one_character() -> None:
    decoder = Decoder()
    assert decoder.feed(b"cost \xe2\x82") == "cost "
    assert decoder.feed(memoryview(b"\xac5 ok")) == "\u20ac5 ok"
    assert decoder.finish() == ""
    assert not decoder.invalid


def test_invalid_bytes_become_replacement_characters_and_are_told() -> None:
    decoder = Decoder()
    assert decoder.feed(b"caf\xe9 au lait") == "caf\ufffd au lait"
    assert decoder.invalid


def test_a_replacement_character_that_was_printed_is_not_invalid() -> None:
    decoder = Decoder()
    assert decoder.feed("\ufffd".encode()) + decoder.finish() == "\ufffd"
    assert not decoder.invalid


def test_a_character_that_never_ends_is_invalid() -> None:
    decoder = Decoder()
    assert decoder.feed(b"ab\xe2\x82") == "ab"
    assert not decoder.invalid
    assert decoder.finish() == "\ufffd"
    assert decoder.invalid


@UNHURRIED
@given(mostly_utf8)
def test_feeding_byte_by_byte_equals_decoding_at_once(data: bytes) -> None:
    out, invalid = decode_bytewise(data)
    assert out == data.decode("utf-8", "replace")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        assert invalid
    else:
        assert not invalid


@UNHURRIED
@given(text, st.data())
def test_cuts_inside_characters_leave_neither_end_invalid(whole: str, data: st.DataObject) -> None:
    raw = whole.encode()
    at = data.draw(st.integers(0, len(raw)))
    head, tail = trim_partial(raw[:at]).decode("utf-8"), skip_partial(raw[at:]).decode("utf-8")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(whole) - len(head) - len(tail) in (0, 1)


def test_bytes_that_belong_to_no_character_are_kept_to_be_told() -> None:
    assert skip_partial(b"\x80\x80\x80\x80a") == b"\x80a"
    assert trim_partial(b"a\xff") == b"a\xff"
    assert trim_partial(b"a\xc3\xa9") == b"a\xc3\xa9"
    assert trim_partial(b"\xf0\x9f\x98") == b""
    assert trim_partial(b"") == skip_partial(b"") == b""
