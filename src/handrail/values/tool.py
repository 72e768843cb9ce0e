"""What a model asks for and what it gets back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Effect(StrEnum):
    """READ changes nothing; CHANGE passes the approver first."""

    READ = "read"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request: `arguments` as the JSON object it sent, not yet validated."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call: `text` is what the model reads, `data` the same as JSON-able facts.

    `is_error` is true for a refusal, a stop, and (unless the settings say otherwise) a command's non-zero exit;
    `data["code"]` then names the reason unless it was the command's own exit.
    """

    text: str
    is_error: bool = False
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
