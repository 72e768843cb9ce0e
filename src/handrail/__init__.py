"""handrail: hands for AI agents, with a rail along every edge.

The public names, each loaded from its home when it is first used, so that `import handrail` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

# Type checkers take this name for true wherever it comes from; importing `typing` would cost more than all the rest.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from handrail.agent.loop import (
        Agent,
        AgentEnded,
        AgentEvent,
        AgentResult,
        AssistantSaid,
        Model,
        ToolCalled,
        ToolReturned,
        ToolSpec,
    )
    from handrail.agent.messages import Assistant, Message, ToolMessage, User
    from handrail.agent.scripted import ScriptedModel
    from handrail.errors import Code, ConfigurationError, HandrailError, ModelError, SandboxUnavailable
    from handrail.gate.approvers import allow_all
    from handrail.process.feed import Listener
    from handrail.toolbox import Toolbox
    from handrail.tools.base import Tool
    from handrail.values.completed import Enforced
    from handrail.values.event import Chunk, Ended, Event, Lines, Skipped, Started
    from handrail.values.place import Resources
    from handrail.values.tool import Effect, ToolCall, ToolResult

    __version__: str

# The same homes as above, for run time.
_HOMES = {
    "handrail.agent.loop": (
        "Agent",
        "AgentEnded",
        "AgentEvent",
        "AgentResult",
        "AssistantSaid",
        "Model",
        "ToolCalled",
        "ToolReturned",
        "ToolSpec",
    ),
    "handrail.agent.messages": ("Assistant", "Message", "ToolMessage", "User"),
    "handrail.agent.scripted": ("ScriptedModel",),
    "handrail.errors": ("Code", "ConfigurationError", "HandrailError", "ModelError", "SandboxUnavailable"),
    "handrail.gate.approvers": ("allow_all",),
    "handrail.process.feed": ("Listener",),
    "handrail.toolbox": ("Toolbox",),
    "handrail.tools.base": ("Tool",),
    "handrail.values.completed": ("Enforced",),
    "handrail.values.event": ("Chunk", "Ended", "Event", "Lines", "Skipped", "Started"),
    "handrail.values.place": ("Resources",),
    "handrail.values.tool": ("Effect", "ToolCall", "ToolResult"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "AgentEnded",
    "AgentEvent",
    "AgentResult",
    "Assistant",
    "AssistantSaid",
    "Chunk",
    "Code",
    "ConfigurationError",
    "Effect",
    "Ended",
    "Enforced",
    "Event",
    "HandrailError",
    "Lines",
    "Listener",
    "Message",
    "Model",
    "ModelError",
    "Resources",
    "SandboxUnavailable",
    "ScriptedModel",
    "Skipped",
    "Started",
    "Tool",
    "ToolCall",
    "ToolCalled",
    "ToolMessage",
    "ToolResult",
    "ToolReturned",
    "ToolSpec",
    "Toolbox",
    "User",
    "__version__",
    "allow_all",
]


def _load(name: str) -> object:
    value: object
    if name == "__version__":
        from importlib.metadata import version

        value = version("handrail")
    elif home := _HOME_OF.get(name):
        value = getattr(import_module(home), name)
    else:
        raise AttributeError(f"module 'handrail' has no attribute {name!r}")
    globals()[name] = value
    return value


# A type checker that saw a module's __getattr__ would take every misspelt name for a good one.
if not TYPE_CHECKING:
    __getattr__ = _load


def __dir__() -> list[str]:
    return list(__all__)
