"""The loop between a model and a box of tools: ask, run what it calls, tell it, until it calls nothing.

It owns the conversation, and keeps it whole: every call in it has its answer, however a run ends. It knows no
provider and no tool; what a tool may do is the box's to decide.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from handrail.agent.messages import Assistant, Message, ToolMessage, User
from handrail.errors import Code, ConfigurationError, ModelError
from handrail.tools.arguments import BadArguments, as_object
from handrail.tools.base import refusal
from handrail.values.tool import ToolCall, ToolResult

_logger = logging.getLogger(__name__)

_INTERRUPTED = "Interrupted: this call was stopped or never began. Look at the state of things before you repeat it."


class ToolSpec(Protocol):
    """What a model is told of one tool. `schema` is the JSON Schema of its arguments, an object."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]: ...


class Box(Protocol):
    """The tools, and what becomes of a call. A `Toolbox` is one."""

    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    @property
    def system_text(self) -> str: ...
    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult: ...


class Model(Protocol):
    """Whatever answers: a provider's client behind a few lines of translation, or a script."""

    def reply(self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], /) -> Assistant:
        """Answer the conversation. `messages` ends with what the model has not seen yet."""
        ...


Stopped = Literal["finished", "max_turns", "max_cost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """How a run ended. `text` is the model's last words; `turns` and `cost_usd` count its replies in this run.

    `history` is the whole conversation, with earlier runs'. `stopped` is "finished" where the model called no more
    tools, else the limit that was reached; the calls of the last reply were still run and answered.
    """

    text: str
    history: tuple[Message, ...]
    stopped: Stopped
    turns: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class AssistantSaid:
    """The model replied."""

    message: Assistant


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A call is about to be run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A call was answered after `duration_s` seconds. `error` is what the tool raised, if it did."""

    call: ToolCall
    result: ToolResult
    duration_s: float
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class AgentEnded:
    """The run is over; nothing follows."""

    result: AgentResult


AgentEvent = AssistantSaid | ToolCalled | ToolReturned | AgentEnded


class Agent:
    """A model with hands. Each `run` goes on with the conversation of the one before.

    `system` defaults to the box's own words. `max_turns` (replies) and `max_cost_usd` bound one run; both are looked
    at before the model is asked again, so a run can cost one reply more than `max_cost_usd`. `on_event` gets every
    event of `run`, on the calling thread.
    """

    def __init__(
        self,
        model: Model,
        box: Box,
        system: str | None = None,
        *,
        max_turns: int = 50,
        max_cost_usd: float | None = None,
        on_event: Callable[[AgentEvent], None] | None = None,
    ) -> None:
        if max_turns < 1:
            raise ConfigurationError(f"max_turns is {max_turns}; it has to be 1 or more")
        if max_cost_usd is not None and not max_cost_usd > 0:
            raise ConfigurationError(f"max_cost_usd is {max_cost_usd}; it has to be above 0, or None for no limit")
        self._model = model
        self._box = box
        self._system = box.system_text if system is None else system
        self._max_turns = max_turns
        self._max_cost_usd = max_cost_usd
        self._on_event = on_event
        self._history: list[Message] = []
        self._running = False

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return tuple(self._history)

    def run(self, text: str) -> AgentResult:
        """Say `text` to the model and see it through. Raises `ModelError` where the model gives no usable reply."""
        for event in self.stream(text):
            if self._on_event is not None:
                self._on_event(event)
            if isinstance(event, AgentEnded):
                return event.result
        raise AssertionError("a stream ends with AgentEnded")

    def stream(self, text: str) -> Iterator[AgentEvent]:
        """Like `run`, event by event; nothing happens between two of them. Leaving off early answers what is open."""
        if self._running:
            raise ConfigurationError("this agent is in the middle of a run; let that end first, or make another agent")
        self._running = True
        self._history.append(User(text))
        try:
            yield from self._turns()
        finally:
            self._answer_open_calls()
            self._running = False

    def _turns(self) -> Iterator[AgentEvent]:
        turns, cost_usd = 0, 0.0
        while True:
            message = self._ask()
            turns, cost_usd = turns + 1, cost_usd + message.cost_usd
            self._history.append(message)
            yield AssistantSaid(message)
            for call in message.tool_calls:
                yield ToolCalled(call)
                returned = self._call(call)
                self._history.append(_answer(call, returned.result))
                yield returned
            stopped = self._stop_reason(message, turns, cost_usd)
            if stopped is not None:
                break
        yield AgentEnded(
            AgentResult(text=message.text, history=self.history, stopped=stopped, turns=turns, cost_usd=cost_usd)
        )

    def _stop_reason(self, message: Assistant, turns: int, cost_usd: float) -> Stopped | None:
        if not message.tool_calls:
            return "finished"
        if turns >= self._max_turns:
            return "max_turns"
        if self._max_cost_usd is not None and cost_usd >= self._max_cost_usd:
            return "max_cost"
        return None

    def _ask(self) -> Assistant:
        try:
            # Typed as what the protocol promises, checked as what a client may give.
            reply = cast("object", self._model.reply(self._system, self.history, tuple(self._box.tools)))
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"the model raised {type(error).__name__}: {error}") from error
        if not isinstance(reply, Assistant):
            raise ModelError(f"the model gave {type(reply).__name__} where an Assistant is due")
        if not (math.isfinite(reply.cost_usd) and reply.cost_usd >= 0):
            raise ModelError(f"the model gave {reply.cost_usd} as the reply's cost in US dollars")
        return reply

    def _call(self, call: ToolCall) -> ToolReturned:
        started = time.monotonic()
        error: Exception | None = None
        try:
            result = self._box.call(call.name, as_object(call.arguments))
        except BadArguments as bad:
            result = refusal(Code.BAD_ARGUMENTS, bad.sentence)
        except Exception as raised:  # told to the model, the log and the listener; a bug must not end the talk
            _logger.exception("the tool %r raised", call.name)
            error, result = raised, _raised(call.name, raised)
        return ToolReturned(call, result, time.monotonic() - started, error)

    def _answer_open_calls(self) -> None:
        """Answer the calls that an interruption left open: providers refuse a conversation with unanswered ones."""
        last = max((i for i, message in enumerate(self._history) if isinstance(message, Assistant)), default=None)
        if last is None:
            return
        calls = cast("Assistant", self._history[last]).tool_calls
        answered = len(self._history) - last - 1 if calls else 0
        for call in calls[answered:]:
            self._history.append(ToolMessage(call.id, call.name, _INTERRUPTED, is_error=True))


def _answer(call: ToolCall, result: ToolResult) -> ToolMessage:
    return ToolMessage(call.id, call.name, result.text, result.is_error)


def _raised(name: str, error: Exception) -> ToolResult:
    return refusal(
        Code.IO_ERROR,
        f"The tool {name!r} failed by a fault of its own ({type(error).__name__}), not of your arguments. "
        "What it had begun may be half done: look, then go another way or tell the user.",
    )
