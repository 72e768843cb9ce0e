"""Which exit code 1 is an answer."""

from __future__ import annotations

import pytest

from handrail.tools.hints import hint_for


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("grep x file", "grep"),
        ("cd src && rg -n foo", "rg"),
        ("cat a | LC_ALL=C grep -c x", "grep"),
        ("ls; diff a b", "diff"),
        ("! cmp a b", "cmp"),
        ("test -f x", "test"),
        ("[ -f x ]", "["),
        ("/usr/bin/grep x y", "grep"),
        ('false && "\x1b[31m/etc/x\x07/grep" x', "grep"),
        ("git grep x", "grep"),
        ("git diff --exit-code", "diff"),
        ("echo 'a; b'\ngrep x y\n", "grep"),
        ("(cd x; grep y z)", "grep"),
    ],
)
def test_the_last_program_of_the_line_is_hinted_at(command: str, program: str) -> None:
    hint = hint_for(command, 1)
    assert hint is not None
    assert hint.startswith(f"{program} exits with 1 when ")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("grep x y", 2),
        ("grep x y", 0),
        ("grep x y", None),
        ("python3 app.py", 1),
        ("grep x y && make", 1),
        ("echo 'grep", 1),
        ("git push", 1),
        ("", 1),
    ],
)
def test_nothing_else_is_hinted_at(command: str, code: int | None) -> None:
    assert hint_for(command, code) is None
