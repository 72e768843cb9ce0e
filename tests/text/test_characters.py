from __future__ import annotations

import pytest

from handrail.text.characters import boundary_after, boundary_before, width


@pytest.mark.parametrize(
    ("character", "columns"),
    [
        ("a", 1), ("\u00e9", 1), ("\u03b1", 1), ("\u3042", 2), ("\uff21", 2),
        ("\U0001f600", 2), ("\u0301", 0), ("\u200d", 0), ("\ufe0f", 0), ("\u00ad", 1), ("\uac00",
        2), ("\u1161", 0), ("\u20dd", 0),
    ],
)  # fmt: skip
def test_a_character_takes_the_columns_of_its_kind(character: str, columns: int) -> None:
    assert width(character) == columns


@pytest.mark.parametrize(
    "pair",
    ["e\u0301", "\u0915\u0903", "a\u200d", "\u200d\U0001f4bb", "\U0001f44b\U0001f3fd", "\U0001f1e9\U0001f1ea",
     "\u1112\u1161", "\uac00\u11ab", "\uac01\u11ab", "\u0915\u094d", "\u094d\u0937",
     "\u0e19\u0e33", "\uff76\uff9e", "\u0600\u0661"],
)  # fmt: skip
def test_what_is_seen_as_one_character_has_no_boundary_inside(pair: str) -> None:
    assert boundary_before(f"x{pair}x", 2) < 2 < boundary_after(f"x{pair}x", 2)


@pytest.mark.parametrize(
    "pair", ["ab", "a\n", "\n\u0301", "\u3042\u3044", "\uac01\u1161", "\u200d\n", "\U0001f600\U0001f600"]
)
def test_characters_of_their_own_can_be_parted(pair: str) -> None:
    assert boundary_before(f"x{pair}x", 2) == boundary_after(f"x{pair}x", 2) == 2


def test_flags_are_parted_in_pairs() -> None:
    flags = "\U0001f1e6" * 6
    assert [boundary_before(flags, at) for at in range(7)] == [0, 0, 2, 2, 4, 4, 6]
    assert [boundary_after(flags, at) for at in range(7)] == [0, 2, 2, 4, 4, 6, 6]


def test_both_ends_of_a_text_are_boundaries() -> None:
    assert boundary_before("\u0301a", 0) == boundary_after("\u0301a", 0) == 0
    assert boundary_before("a\u0301", 2) == boundary_after("a\u0301", 2) == 2
