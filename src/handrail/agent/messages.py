"""What passes between a person, a model and its tools. Plain values, tied to no provider's format."""

from __future__ import annotations

from dataclasses import dataclass

from handrail.values.tool import ToolCall


@dataclass(frozen=True, slots=True)
class User:
    """What the person asked."""

    text: str


@dataclass(frozen=True, slots=True)
class Assistant:
    """One reply of the model: words, calls, or both. `cost_usd` is what the reply cost, in US dollars."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The answer to the call whose id is `call_id`, as the model reads it."""

    call_id: str
    name: str
    content: str
    is_error: bool = False


Message = User | Assistant | ToolMessage
