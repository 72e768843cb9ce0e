"""What a tool is: a name, words for a model, a schema of its arguments, an effect, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from handrail.errors import Code
from handrail.process.cancel import Cancel
from handrail.values.tool import Effect, ToolResult


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a `Toolbox`. `schema` is a JSON Schema of the arguments, an object that allows no other keys."""

    name: str
    description: str
    schema: Mapping[str, Any]
    effect: Effect
    parse: Callable[[Mapping[str, Any]], Any] = field(repr=False, compare=False)
    """The arguments as `run` takes them; raises BadArguments."""
    run: Callable[[Any, Cancel], ToolResult] = field(repr=False, compare=False)
    """Called by the toolbox alone: `Toolbox.call` is the way in, past every check."""


def refusal(code: Code, sentence: str, **facts: Any) -> ToolResult:
    """An error result: nothing was done."""
    return ToolResult(text=f"{code}: {sentence}", is_error=True, data={"code": str(code), **facts})
