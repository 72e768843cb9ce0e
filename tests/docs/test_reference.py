"""The reference is whole: what the code offers stands in it, and what stands in it the code offers."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, get_args

import click
import pytest

import handrail
from handrail import Code, HandrailError, Tool, Toolbox, allow_all
from handrail.cli.main import handrail as command_line
from tests.docs.pages import REFERENCE, rows, section


@pytest.fixture
def box(tmp_path: Path) -> Generator[Toolbox]:
    with Toolbox(tmp_path, approver=allow_all, sandbox="best") as box:
        yield box


# ---------------------------------------------------------------- tools.md


def test_every_tool_stands_in_the_reference_with_its_effect_and_arguments(box: Toolbox) -> None:
    assert {tool.name: _as_code(tool) for tool in box.tools} == {tool.name: _as_told(tool.name) for tool in box.tools}


def _as_code(tool: Tool) -> tuple[str, set[str]]:
    return f"Effect: `{tool.effect}`", set(tool.schema["properties"])


def _as_told(name: str) -> tuple[str, set[str]]:
    text = section(REFERENCE / "tools.md", name)
    effects = [line.split(".")[0] for line in text.splitlines() if line.startswith("Effect: ")]
    return " ".join(effects), set(rows(section(REFERENCE / "tools.md", f"Arguments of {name}")))


def test_the_facts_of_a_shell_call_stand_in_the_reference(box: Toolbox) -> None:
    told = set(rows(section(REFERENCE / "tools.md", "Facts of shell")))
    given = {*box.call("shell", {"command": "true"}).data, *box.call("shell", {"command": ""}).data}
    assert given | {"stdout", "stderr"} == told


def test_the_facts_of_a_page_and_of_a_search_stand_in_the_reference(box: Toolbox) -> None:
    cut = box.call("shell", {"command": "seq 5000"}).data["output_id"]
    asked: list[dict[str, Any]] = [{"id": cut}, {"id": cut, "pattern": "77$"}, {"id": "no such"}]
    given = {fact for arguments in asked for fact in box.call("read_output", arguments).data}
    assert given == set(rows(section(REFERENCE / "tools.md", "Facts of read_output")))


# ---------------------------------------------------------------- settings.md


def options() -> dict[str, Any]:
    """The options of a toolbox with their defaults as the page writes them."""
    parameters = inspect.signature(Toolbox).parameters.values()
    return {p.name: "" if p.default is p.empty else f"`{p.default!r}`" for p in parameters if p.name != "workspace"}


def test_every_option_of_a_toolbox_stands_in_the_reference_with_its_default() -> None:
    told = rows(section(REFERENCE / "settings.md", "Options of a Toolbox"))
    assert {name: cells[0].replace("_", "") for name, cells in told.items()} == {
        name: default.replace("_", "") for name, default in options().items()
    }


# ---------------------------------------------------------------- errors.md


def test_every_code_stands_in_the_reference() -> None:
    assert set(rows(section(REFERENCE / "errors.md", "Codes"))) == {str(code) for code in Code}


def test_every_exception_stands_in_the_reference() -> None:
    told = set(rows(section(REFERENCE / "errors.md", "Exceptions")))
    public = {
        name
        for name in handrail.__all__
        if inspect.isclass(value := getattr(handrail, name)) and issubclass(value, HandrailError)
    }
    assert told == public


# ---------------------------------------------------------------- python.md


def test_every_public_name_stands_in_the_reference() -> None:
    assert set(rows((REFERENCE / "python.md").read_text())) >= set(handrail.__all__)


def fields_told(heading: str) -> dict[str, set[str]]:
    """Each field of a section's table with the values that have it."""
    told = rows(section(REFERENCE / "python.md", heading))
    return {name: set(re.findall(r"`(\w+)`", cells[0])) for name, cells in told.items()}


def fields_of(kinds: Iterable[type]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind in kinds:
        for field in dataclasses.fields(kind):
            found.setdefault(field.name, set()).add(kind.__name__)
    return found


def test_every_field_of_an_event_stands_in_the_reference() -> None:
    events = get_args(handrail.Event)
    assert fields_told("Events") == {**fields_of(events), "call": set()}  # "each"
    assert all("call" in {field.name for field in dataclasses.fields(event)} for event in events)


def test_every_field_of_a_message_stands_in_the_reference() -> None:
    assert fields_told("Agent") == fields_of(get_args(handrail.Message))


def test_every_event_of_a_run_stands_in_the_reference_with_its_fields() -> None:
    text = " ".join(section(REFERENCE / "python.md", "Agent").split())
    for event in get_args(handrail.AgentEvent):
        [told] = re.findall(rf"`{event.__name__}` \(([^)]*)\)", text)
        names = [field.name for field in dataclasses.fields(event)]
        assert [word for word in re.findall(r"`(\w+)`", told) if word in names] == names


# ---------------------------------------------------------------- cli.md


def commands() -> dict[str, click.Command]:
    context = click.Context(command_line)
    found = {name: command_line.get_command(context, name) for name in command_line.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def test_every_command_stands_in_the_reference_with_its_options() -> None:
    offered = {name: {spelling for p in command.params for spelling in p.opts} for name, command in commands().items()}
    told = {name: set(rows(section(REFERENCE / "cli.md", f"handrail {name}"))) for name in offered}
    assert offered == told
    headings = [line for line in (REFERENCE / "cli.md").read_text().splitlines() if line.startswith("## `handrail ")]
    assert len(headings) == len(offered)
