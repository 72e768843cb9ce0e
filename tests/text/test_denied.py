"""Names that are kept from the agent, and those that only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.text.denied import is_denied

DENIED = [
    ".git",
    ".env",
    ".ssh",
    "id_rsa",
    "id_ed25519",
    "credentials.json",
    ".env.local",
    ".env.production",
    "a.pem",
    "b.key",
]


@pytest.mark.parametrize("name", [*DENIED, ".env.d", ".env.example.bak", ".pem", ".key", "two words.pem"])
def test_a_denied_name(name: str) -> None:
    assert is_denied(name)


@pytest.mark.parametrize(
    "name",
    [
        ".env.example", ".env.sample", ".env.template", ".ENV.Example", ".gitignore", ".github", "git.md", "git", "env",
        "ssh", ".envrc", ".sshd", "id_rsa.pub", "credentials.yaml", "data.keys", "turkey", "pem", "a.pem.txt", "key",
        "my.credentials.json", "", ".", "..", "~1", "git~", "gitty~1", "report~1.txt",
    ],
)  # fmt: skip
def test_a_harmless_name(name: str) -> None:
    assert not is_denied(name)


@pytest.mark.parametrize(
    "name",
    [
        ".GiT", ".Env.LOCAL", "ID_RSA", "Server.PEM",  # case
        ".git.", ".git ", ".git. . ", "server.pem.", ".env ",  # what is dropped at the end
        ".g\u200cit", ".env.loc\u200bal", "\ufeff.ssh", ".e\u00adnv", "id\ufe0f_rsa", "a.p\u034fem",  # what is not seen
        "\uff0egit", ".\uff45\uff4e\uff56", "\u2024env", "\u212aey.\u212aey", ".\u017f\u017fh",  # alike
        ".git::$INDEX_ALLOCATION", "server.pem:x", ".env.:$DATA", "a:b.key",  # streams
        "GIT~1", "git~2", "ENV~1", "GI7EBA~1", "CREDEN~1.JSO", "SERVER~1.PEM", "ID_ED2~1", "SSH~1",  # short names
    ],
)  # fmt: skip
def test_another_spelling_of_a_denied_name(name: str) -> None:
    assert is_denied(name)


@given(
    st.sampled_from(DENIED),
    st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from("\u200b\u200d\u2060\ufe0f\u00ad\U000e0041\u115f")), max_size=4
    ),
    st.text(". ", max_size=3),
)
def test_what_no_one_sees_changes_nothing(name: str, unseen: list[tuple[int, str]], end: str) -> None:
    for place, character in unseen:
        name = name[:place] + character + name[place:]
    assert is_denied(name.swapcase() + end)


@given(st.text())
def test_any_text_has_an_answer(name: str) -> None:
    assert is_denied(name) in {True, False}
