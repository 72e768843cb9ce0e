"""What a model may get slightly wrong, and what it is told when it got it really wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handrail.tools.arguments import BadArguments, parse, schema_of, without_null
from handrail.tools.read_output import ReadOutputArguments
from handrail.tools.shell import ShellArguments


@pytest.mark.parametrize(
    ("sent", "timeout_s"),
    [
        ({"command": "true"}, None),
        ({"command": "true", "timeout_s": 5}, 5.0),
        ({"command": "true", "timeout_s": "5"}, 5.0),
        ({"command": "true", "timeout_s": "0.5"}, 0.5),
        ({"command": "true", "timeout_s": None, "description": None}, None),
    ],
)
def test_sloppy_arguments_are_understood(sent: Mapping[str, Any], timeout_s: float | None) -> None:
    assert parse(ShellArguments, sent) == ShellArguments("true", timeout_s)


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({}, "'command' is missing."),
        ({"command": None}, "'command' must be text, not null."),
        ({"command": 5}, "'command' must be text, not 5."),
        ({"command": ["ls"]}, "'command' must be text, not a list."),
        ({"command": {"cmd": "ls"}}, "'command' must be text, not an object."),
        ({"command": "ls", "timeout_s": "soon"}, "'timeout_s' must be a number, not 'soon'."),
        ({"command": "ls", "timeout_s": True}, "'timeout_s' must be a number, not True."),
        ({"command": "ls", "timeout": 5}, "'timeout' is no argument (did you mean 'timeout_s'?)."),
        ({"command": "ls", "xyz": 5}, "'xyz' is no argument (there are command, timeout_s, network, description)."),
        (
            {"cmd": "ls"},
            "'cmd' is no argument (did you mean 'command'?); 'command' is missing.",
        ),
    ],
)
def test_every_fault_is_named(sent: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(BadArguments) as bad:
        parse(ShellArguments, sent)
    assert bad.value.sentence == sentence


def test_bounds_are_part_of_the_sentence() -> None:
    with pytest.raises(BadArguments, match="'max_lines' must be a whole number, at least 1, at most 2000, not 0"):
        parse(ReadOutputArguments, {"id": "out1", "max_lines": 0})


def test_the_schema_is_plain_and_closed() -> None:
    schema = without_null(schema_of(ReadOutputArguments))
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["id"]
    assert schema["properties"]["pattern"]["type"] == "string"
    assert "anyOf" not in str(schema)
    assert "$ref" not in str(schema)
