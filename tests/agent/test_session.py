"""The loop with real hands: a scripted model, a real toolbox, real processes."""

from __future__ import annotations

from pathlib import Path

from handrail.agent.loop import Agent
from handrail.agent.messages import Assistant, Message, ToolMessage, User
from handrail.agent.scripted import ScriptedModel
from handrail.gate.approvers import allow_all
from handrail.toolbox import Toolbox
from handrail.values.tool import ToolCall


def shell(call_id: str, command: str) -> Assistant:
    return Assistant("", (ToolCall(call_id, "shell", {"command": command}),))


def test_an_error_a_success_and_last_words_with_the_directory_carried_over(tmp_path: Path) -> None:
    script = ScriptedModel(
        [
            shell("call1", "mkdir src && cd src && echo 'print(1 / 0)' > main.py && python3 main.py"),
            shell("call2", "echo 'print(6 * 7)' > main.py && python3 main.py && pwd -P"),
            Assistant("It prints 42 now."),
        ]
    )
    with Toolbox(tmp_path, approver=allow_all, sandbox="best") as box:
        result = Agent(script, box).run("Make it work.")
    asked, first, failed, second, worked, last = result.history
    assert (asked, last) == (User("Make it work."), Assistant("It prints 42 now."))
    assert (first, second) == (
        shell("call1", "mkdir src && cd src && echo 'print(1 / 0)' > main.py && python3 main.py"),
        shell("call2", "echo 'print(6 * 7)' > main.py && python3 main.py && pwd -P"),
    )
    assert isinstance(failed, ToolMessage)
    assert (failed.call_id, failed.name, failed.is_error) == ("call1", "shell", True)
    assert failed.content.startswith("Exit code: 1\ncwd: /src\n")
    assert "ZeroDivisionError" in failed.content
    root = tmp_path.resolve()
    assert worked == ToolMessage("call2", "shell", f"Exit code: 0\ncwd: /src\n42\n{root}/src")
    assert (result.text, result.stopped, result.turns) == ("It prints 42 now.", "finished", 3)


def test_whatever_a_model_gets_wrong_is_answered_and_the_session_goes_on(tmp_path: Path) -> None:
    wrong = (
        ToolCall("a", "no_such_tool", {}),
        ToolCall("b", "shell", {"comand": "true"}),
        ToolCall("c", "shell", "{not json"),  # type: ignore[arg-type]
        ToolCall("d", "shell", {"command": "echo still here"}),
    )
    with Toolbox(tmp_path, approver=allow_all, sandbox="best") as box:
        history = Agent(ScriptedModel([Assistant("", wrong), Assistant("ok")]), box).run("go").history
    answers = [message for message in history if isinstance(message, ToolMessage)]
    assert [answer.content.partition(":")[0] for answer in answers] == [
        "UNKNOWN_TOOL",
        "BAD_ARGUMENTS",
        "BAD_ARGUMENTS",
        "Exit code",
    ]
    assert [answer.is_error for answer in answers] == [True, True, True, False]
    assert answers[3].content.endswith("\nstill here")


def test_the_boxes_words_and_tools_reach_the_model(tmp_path: Path) -> None:
    seen: list[tuple[str, list[str]]] = []

    class Curious:
        def reply(self, system: str, _messages: object, tools: object, /) -> Assistant:
            assert isinstance(tools, tuple)
            seen.append((system, [tool.name for tool in tools]))
            return Assistant("ok")

    with Toolbox(tmp_path, approver=allow_all, sandbox="best") as box:
        Agent(Curious(), box).run("go")
        words = box.system_text
    assert seen == [(words, ["shell", "read_output"])]
    assert words


def test_a_reply_can_be_made_from_what_a_command_really_printed(tmp_path: Path) -> None:
    def repeat(messages: object) -> Assistant:
        assert isinstance(messages, tuple)
        last: Message = messages[-1]
        assert isinstance(last, ToolMessage)
        return Assistant(last.content.splitlines()[-1])

    with Toolbox(tmp_path, approver=allow_all, sandbox="best") as box:
        assert Agent(ScriptedModel([shell("a", "echo $((6 * 7))"), repeat]), box).run("go").text == "42"
