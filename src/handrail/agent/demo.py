"""The demonstration's script: what a model says and does, and what has to come of each step.

The words are canned, what they meet is not: every command runs as a real process, and each expectation is checked on
the result it got. It prints nothing; a face shows it.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handrail.agent.messages import Assistant, Message, ToolMessage
from handrail.agent.scripted import ScriptedModel
from handrail.process import table
from handrail.values.tool import ToolCall, ToolResult

TASK = "Write a program that adds up an order. Run it, and see to it that it works."

FLOOD_LINES = 100_000

_PROGRAM = """\
import json

ORDER = '[{"item": "rope", "price": 12.5, "count": 3}, {"item": "helmet", "price": "40.00", "count": 1}]'


def total(order):
    return sum(line["price"] * line["count"] for line in order)


print(f"total: {total(json.loads(ORDER)):.2f}")
"""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What has to be true after a step, in words and as a check on its result and the workspace."""

    words: str
    holds: Callable[[ToolResult, Path], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model: what it says (perhaps of the last report), what it runs, what must come of it."""

    says: Callable[[str], str]
    command: str
    expects: tuple[Expectation, ...]
    timeout_s: float | None = None

    def arguments(self) -> dict[str, Any]:
        return {"command": self.command} | ({} if self.timeout_s is None else {"timeout_s": self.timeout_s})

    def unmet(self, result: ToolResult, root: Path) -> list[str]:
        """The words of every expectation that does not hold; of a command that never ran, none does."""
        ran = "exit_code" in result.data
        return [expected.words for expected in self.expects if not (ran and expected.holds(result, root))]


def steps() -> tuple[Step, ...]:
    """The whole session but the last words."""
    return (_write(), _run_with_a_bug(), _fix(), _run_again(), _flood(), _time_out(), _leave_behind())


def model(script: Sequence[Step]) -> ScriptedModel:
    """A model that goes through `script` and then tells what came of it."""
    return ScriptedModel([*(_reply(number, step) for number, step in enumerate(script, start=1)), _last_words])


def running_in(root: Path) -> list[int]:
    """Living processes whose working directory is in the workspace; none where the system has no /proc.

    Not by the pids that a result names: in a PID namespace those are other numbers than out here.
    """
    return [row.pid for row in table.read_all().values() if row.state not in "ZX" and _works_in(row.pid, root)]


def _works_in(pid: int, root: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(root)
    except OSError:  # gone, or another user's
        return False


def _reply(number: int, step: Step) -> Callable[[Sequence[Message]], Assistant]:
    def reply(messages: Sequence[Message]) -> Assistant:
        said = step.says(_last_report(messages))
        return Assistant(said, (ToolCall(f"call{number}", "shell", step.arguments()),))

    return reply


def _last_words(messages: Sequence[Message]) -> Assistant:
    reports = [message.content for message in messages if isinstance(message, ToolMessage)]
    totals = re.findall(r"^total: \S+$", "\n".join(reports), re.MULTILINE)
    return Assistant(f"shop/order.py works now; its last run printed {_quoted(totals[-1:])}. Nothing is left running.")


def _last_report(messages: Sequence[Message]) -> str:
    last = messages[-1]
    return last.content if isinstance(last, ToolMessage) else ""


def _quoted(lines: Sequence[str]) -> str:
    return f"`{lines[-1]}`" if lines else "nothing that I was looking for"


def _ends_with(code: int) -> Expectation:
    return Expectation(f"it ends with exit code {code}", lambda result, _: result.data["exit_code"] == code)


def _prints(text: str) -> Expectation:
    return Expectation(f"the model reads `{text}`", lambda result, _: text in result.text)


def _is_in(directory: str) -> Expectation:
    return Expectation(f"the session is in {directory}", lambda result, _: "/" + result.data["cwd"] == directory)


def _write() -> Step:
    return Step(
        says=lambda _: "I write the program first.",
        command=f"mkdir shop && cd shop && cat > order.py <<'EOF'\n{_PROGRAM}EOF",
        expects=(
            _ends_with(0),
            Expectation(
                "shop/order.py holds the program, to the byte",
                lambda _, root: _text_of(root / "shop/order.py") == _PROGRAM,
            ),
        ),
    )


def _run_with_a_bug() -> Step:
    return Step(
        says=lambda _: "Now I run it.",
        command=f"{_python()} order.py",
        expects=(
            _is_in("/shop"),
            _ends_with(1),
            _prints("TypeError"),
            Expectation("it is told to the model as an error", lambda result, _: result.is_error),
        ),
    )


def _fix() -> Step:
    def says(report: str) -> str:
        error = _quoted(re.findall(r"^\w+Error: .*$", report, re.MULTILINE))
        return f"The report ends with {error}: one price came as text. I make every price a number."

    return Step(
        says=says,
        command="""sed 's/line\\["price"\\]/float(line["price"])/' order.py > fixed.py && mv fixed.py order.py""",
        expects=(
            _ends_with(0),
            Expectation(
                "the program on disk is changed",
                lambda _, root: 'float(line["price"])' in _text_of(root / "shop/order.py"),
            ),
        ),
    )


def _run_again() -> Step:
    return Step(
        says=lambda _: "Once more.",
        command=f"{_python()} order.py",
        expects=(
            _ends_with(0),
            Expectation(
                "its output is `total: 77.50`", lambda result, _: result.data["output"].strip() == "total: 77.50"
            ),
        ),
    )


def _flood() -> Step:
    return Step(
        says=lambda _: f"How much can I read at once? I print {FLOOD_LINES:,} lines.",
        command=f"seq {FLOOD_LINES}",
        expects=(
            _ends_with(0),
            Expectation("the report stays below 31,000 characters", lambda result, _: len(result.text) < 31_000),
            Expectation(
                "it holds the first and the last line",
                lambda result, _: {"1", str(FLOOD_LINES)} <= {*result.text.splitlines()},
            ),
            Expectation(
                "it counts what it leaves out",
                lambda result, _: result.data["omitted_lines"] == FLOOD_LINES - _numbers_in(result.data["output"]) > 0,
            ),
        ),
    )


def _time_out() -> Step:
    return Step(
        says=lambda _: "Some commands never end. I give this one a second.",
        command='echo "asking the warehouse"; sleep 60; echo "it answered"',
        timeout_s=1.0,
        expects=(
            Expectation("it is stopped by the timeout", lambda result, _: result.data["timed_out"] is True),
            Expectation("no exit code is made up", lambda result, _: result.data["exit_code"] is None),
            Expectation(
                "what it had printed is kept, and no more",
                lambda result, _: result.data["output"].strip() == "asking the warehouse",
            ),
        ),
    )


def _leave_behind() -> Step:
    return Step(
        says=lambda _: "And some leave things running.",
        command='sleep 300 & echo "started in the background"',
        expects=(
            _ends_with(0),
            _prints("started in the background"),
            Expectation(
                "the process left behind is named",
                lambda result, _: ["sleep 300" in left["name"] for left in result.data["left_behind"]] == [True],
            ),
            Expectation("and it is gone", lambda _, root: not running_in(root)),
        ),
    )


def _python() -> str:
    return "python3" if shutil.which("python3") else shlex.quote(sys.executable)


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _numbers_in(output: str) -> int:
    return sum(line.isdigit() for line in output.splitlines())
