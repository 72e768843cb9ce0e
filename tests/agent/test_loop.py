from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from handrail.agent.loop import Agent, AgentEnded, AgentEvent, AssistantSaid, ToolCalled, ToolReturned, ToolSpec
from handrail.agent.messages import Assistant, Message, ToolMessage, User
from handrail.agent.scripted import Reply, ScriptedModel
from handrail.errors import ConfigurationError, ModelError
from handrail.values.tool import ToolCall, ToolResult


@dataclass(frozen=True)
class Named:
    name: str
    description: str = "does a thing"
    schema: Mapping[str, Any] = field(default_factory=dict)


class FakeBox:
    """Tools that are functions; it keeps what they were called with."""

    def __init__(self, **tools: Callable[[Mapping[str, Any]], ToolResult]) -> None:
        self._tools = tools
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return [Named(name) for name in self._tools]

    @property
    def system_text(self) -> str:
        return "Be careful."

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        self.calls.append((name, arguments))
        return self._tools[name](arguments)


class Recorder:
    """A model that keeps what it was asked, and replies from a script."""

    def __init__(self, *replies: Reply) -> None:
        self._script = ScriptedModel(replies)
        self.asked: list[tuple[str, Sequence[Message], Sequence[ToolSpec]]] = []

    def reply(self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Assistant:
        self.asked.append((system, messages, tools))
        return self._script.reply(system, messages, tools)


def echo(arguments: Mapping[str, Any]) -> ToolResult:
    return ToolResult(f"got {dict(arguments)}")


def fail(arguments: Mapping[str, Any]) -> ToolResult:
    raise OSError(f"/root/private is gone, {len(arguments)} arguments")


def interrupt(_: Mapping[str, Any]) -> ToolResult:
    raise KeyboardInterrupt


def calls(*called: tuple[str, str], cost_usd: float = 0.0) -> Assistant:
    return Assistant("", tuple(ToolCall(call_id, name, {"n": 1}) for call_id, name in called), cost_usd)


def unanswered(history: Sequence[Message]) -> list[str]:
    """Ids of calls that the very next messages do not answer, in order."""
    missing: list[str] = []
    for at, message in enumerate(history):
        if isinstance(message, Assistant):
            for offset, call in enumerate(message.tool_calls, start=1):
                answer = history[at + offset] if at + offset < len(history) else None
                if not isinstance(answer, ToolMessage) or answer.call_id != call.id:
                    missing.append(call.id)
    return missing


def test_a_run_asks_calls_tells_and_ends_with_the_last_words() -> None:
    model = Recorder(Assistant("Looking.", (ToolCall("c1", "echo", {"a": 1}),), 0.25), Assistant("Done.", (), 0.5))
    box = FakeBox(echo=echo)
    result = Agent(model, box).run("go")
    history = (
        User("go"),
        Assistant("Looking.", (ToolCall("c1", "echo", {"a": 1}),), 0.25),
        ToolMessage("c1", "echo", "got {'a': 1}"),
        Assistant("Done.", (), 0.5),
    )
    assert (result.text, result.history, result.stopped, result.turns, result.cost_usd) == (
        "Done.",
        history,
        "finished",
        2,
        0.75,
    )
    assert [messages for _, messages, _ in model.asked] == [history[:1], history[:3]]
    assert [system for system, _, _ in model.asked] == ["Be careful."] * 2
    assert [tool.name for tool in model.asked[0][2]] == ["echo"]


def test_given_words_replace_the_boxes_own() -> None:
    model = Recorder(Assistant("ok"))
    Agent(model, FakeBox(), "").run("go")
    assert model.asked[0][0] == ""


def test_a_second_run_goes_on_with_the_conversation() -> None:
    model = Recorder(Assistant("one"), Assistant("two"))
    agent = Agent(model, FakeBox())
    agent.run("first")
    assert agent.run("second").history == (User("first"), Assistant("one"), User("second"), Assistant("two"))
    assert model.asked[1][1] == (User("first"), Assistant("one"), User("second"))


def test_several_calls_of_one_reply_are_run_in_order_and_each_is_answered() -> None:
    box = FakeBox(echo=echo, other=echo)
    result = Agent(Recorder(calls(("a", "echo"), ("b", "other"), ("c", "echo")), Assistant("ok")), box).run("go")
    assert [name for name, _ in box.calls] == ["echo", "other", "echo"]
    assert unanswered(result.history) == []


def test_an_exception_in_a_tool_becomes_an_answer_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    events: list[AgentEvent] = []
    agent = Agent(Recorder(calls(("a", "fail"), ("b", "echo")), Assistant("ok")), FakeBox(fail=fail, echo=echo))
    with caplog.at_level(logging.ERROR):
        events = list(agent.stream("go"))
    answer = agent.history[2]
    assert isinstance(answer, ToolMessage)
    assert answer.is_error
    assert "OSError" in answer.content
    assert "private" not in answer.content
    assert agent.history[3] == ToolMessage("b", "echo", "got {'n': 1}")
    failed = events[2]
    assert isinstance(failed, ToolReturned)
    assert isinstance(failed.error, OSError)
    assert "private" in caplog.text


def test_an_unknown_tool_becomes_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    result = Agent(Recorder(calls(("a", "nope")), Assistant("ok")), FakeBox(echo=echo)).run("go")
    answer = result.history[2]
    assert isinstance(answer, ToolMessage)
    assert (answer.name, answer.is_error, result.stopped) == ("nope", True, "finished")
    assert "nope" in caplog.text


@pytest.mark.parametrize("given", ["{", "[1]", "3", "null", "not json", "[" * 100_000, None, 3, [1], {1, 2}])
def test_ill_formed_arguments_become_an_answer_and_no_tool_runs(given: object) -> None:
    box = FakeBox(echo=echo)
    reply = Assistant("", (ToolCall("a", "echo", given),))  # type: ignore[arg-type]
    result = Agent(Recorder(reply, Assistant("ok")), box).run("go")
    answer = result.history[2]
    assert isinstance(answer, ToolMessage)
    assert answer.is_error
    assert "JSON" in answer.content
    assert box.calls == []


@pytest.mark.parametrize(("given", "arguments"), [('{"a": [1, "x"]}', {"a": [1, "x"]}), ("", {}), ("  ", {})])
def test_arguments_as_json_text_are_read(given: str, arguments: dict[str, Any]) -> None:
    box = FakeBox(echo=echo)
    reply = Assistant("", (ToolCall("a", "echo", given),))  # type: ignore[arg-type]
    Agent(Recorder(reply, Assistant("ok")), box).run("go")
    assert box.calls == [("echo", arguments)]


def test_the_turn_limit_stops_a_model_that_never_ends() -> None:
    box = FakeBox(echo=echo)
    model = Recorder(*(calls((str(n), "echo")) for n in range(10)))
    agent = Agent(model, box, max_turns=3)
    result = agent.run("go")
    assert (result.stopped, result.turns, len(box.calls)) == ("max_turns", 3, 3)
    assert unanswered(result.history) == []
    assert agent.run("on").turns == 3
    assert unanswered(agent.history) == []


def test_a_last_reply_at_the_turn_limit_is_finished() -> None:
    assert Agent(Recorder(Assistant("ok")), FakeBox(), max_turns=1).run("go").stopped == "finished"


def test_the_cost_limit_stops_before_the_model_is_asked_again() -> None:
    model = Recorder(*(calls((str(n), "echo"), cost_usd=0.4) for n in range(10)))
    result = Agent(model, FakeBox(echo=echo), max_cost_usd=1.0).run("go")
    assert (result.stopped, result.turns, len(model.asked)) == ("max_cost", 3, 3)
    assert result.cost_usd == pytest.approx(1.2)
    assert unanswered(result.history) == []


@pytest.mark.parametrize("limits", [{"max_turns": 0}, {"max_turns": -1}, {"max_cost_usd": 0.0}, {"max_cost_usd": -1.0}])
def test_limits_that_allow_nothing_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Agent(Recorder(), FakeBox(), **limits)


def test_events_come_in_the_order_of_what_happens() -> None:
    heard: list[AgentEvent] = []
    call = ToolCall("a", "echo", {})
    first, last = Assistant("Looking.", (call,)), Assistant("Done.")
    result = Agent(Recorder(first, last), FakeBox(echo=echo), on_event=heard.append).run("go")
    assert [type(event) for event in heard] == [AssistantSaid, ToolCalled, ToolReturned, AssistantSaid, AgentEnded]
    assert heard[0] == AssistantSaid(first)
    assert heard[1] == ToolCalled(call)
    returned = heard[2]
    assert isinstance(returned, ToolReturned)
    assert (returned.call, returned.result, returned.error) == (call, ToolResult("got {}"), None)
    assert returned.duration_s >= 0
    assert heard[-1] == AgentEnded(result)


def test_a_stream_says_what_it_calls_before_it_runs() -> None:
    box = FakeBox(echo=echo)
    stream = Agent(Recorder(calls(("a", "echo")), Assistant("ok")), box).stream("go")
    assert isinstance(next(stream), AssistantSaid)
    assert isinstance(next(stream), ToolCalled)
    assert box.calls == []
    assert isinstance(next(stream), ToolReturned)
    assert len(box.calls) == 1


@pytest.mark.parametrize("interrupted_at", [0, 1, 2])
def test_ctrl_c_passes_through_and_leaves_every_call_answered(interrupted_at: int) -> None:
    names = ["echo"] * 3
    names[interrupted_at] = "interrupt"
    agent = Agent(
        Recorder(calls(*((str(n), name) for n, name in enumerate(names))), Assistant("ok")),
        FakeBox(echo=echo, interrupt=interrupt),
    )
    with pytest.raises(KeyboardInterrupt):
        agent.run("go")
    assert unanswered(agent.history) == []
    errors = [message.is_error for message in agent.history if isinstance(message, ToolMessage)]
    assert errors == [False] * interrupted_at + [True] * (3 - interrupted_at)
    assert agent.run("on").stopped == "finished"


def test_leaving_a_stream_early_leaves_every_call_answered_and_the_agent_usable() -> None:
    agent = Agent(Recorder(calls(("a", "echo"), ("b", "echo")), Assistant("ok")), FakeBox(echo=echo))
    stream = agent.stream("go")
    while not isinstance(next(stream), ToolReturned):
        pass
    stream.close()  # type: ignore[attr-defined]
    assert unanswered(agent.history) == []
    assert agent.run("on").text == "ok"


def test_an_exception_of_the_event_function_reaches_the_caller_and_leaves_every_call_answered() -> None:
    def refuse(event: AgentEvent) -> None:
        raise LookupError(type(event).__name__)

    agent = Agent(Recorder(calls(("a", "echo")), Assistant("ok")), FakeBox(echo=echo), on_event=refuse)
    with pytest.raises(LookupError, match="AssistantSaid"):
        agent.run("go")
    assert unanswered(agent.history) == []


def test_a_second_run_in_the_middle_of_one_is_refused() -> None:
    agent = Agent(Recorder(Assistant("ok")), FakeBox())
    stream = agent.stream("go")
    next(stream)
    with pytest.raises(ConfigurationError):
        agent.run("me too")
    assert isinstance(next(stream), AgentEnded)


def _raise(_: Sequence[Message]) -> Assistant:
    raise TimeoutError("no route")


def test_a_model_that_raises_is_a_model_error_with_its_cause() -> None:
    with pytest.raises(ModelError, match="TimeoutError: no route") as caught:
        Agent(Recorder(_raise), FakeBox()).run("go")
    assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.parametrize("reply", [None, "words", {"text": "words"}, User("me")])
def test_a_model_that_gives_something_else_is_a_model_error(reply: object) -> None:
    with pytest.raises(ModelError, match=type(reply).__name__):
        Agent(Recorder(lambda _: reply), FakeBox()).run("go")  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -0.01])
def test_a_cost_that_would_defeat_the_limit_is_a_model_error(cost: float) -> None:
    with pytest.raises(ModelError, match="cost"):
        Agent(Recorder(Assistant("ok", (), cost)), FakeBox()).run("go")


def test_after_a_model_error_the_conversation_goes_on() -> None:
    agent = Agent(Recorder(_raise, Assistant("ok")), FakeBox())
    with pytest.raises(ModelError):
        agent.run("go")
    assert agent.run("again").history == (User("go"), User("again"), Assistant("ok"))
