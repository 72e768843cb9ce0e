"""`handrail demo`: a scripted agent at real work in a fresh workspace. It fails where a step did not do its work."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

from handrail.agent.demo import TASK, Step, model, running_in, steps
from handrail.agent.loop import Agent, AgentEnded, AgentResult, AssistantSaid, ToolReturned
from handrail.cli.signals import Signalled, raising
from handrail.cli.stage import Stage
from handrail.cli.words import protection, status_lines
from handrail.gate.approvers import allow_all
from handrail.toolbox import Toolbox

PASSED = 0
DID_NOT_HOLD = 1


@click.command()
def demo() -> int:
    """Watch an agent write, run and mend a program.

    The model's words are a script; the commands are real processes in a workspace made for this and removed after
    it. Each step is checked: exits with 1 if one did not do what it should.
    """
    try:
        with raising(), tempfile.TemporaryDirectory(prefix="handrail-demo-") as directory:
            return _perform(Path(directory).resolve())
    except Signalled as signalled:
        return signalled.exit_code


@dataclass(slots=True)
class _Tally:
    """What the session came to, for the summary."""

    calls: int = 0
    checks: int = 0
    unmet: list[str] = field(default_factory=list[str])
    most_read: int = 0
    left_behind: int = 0

    def add(self, words: str, *, holds: bool) -> None:
        self.checks += 1
        if not holds:
            self.unmet.append(words)


def _perform(root: Path) -> int:
    stage, tally, started = Stage(), _Tally(), time.monotonic()
    stage.heading("handrail demo: an agent at work in a fresh workspace")
    stage.heading("Its words are a script; the processes are real.")
    stage.gap()
    stage.say("person", TASK, "bold")
    with Toolbox(root, approver=allow_all, sandbox="best", listener=stage.heard) as box:
        result = _converse(box, root, stage, tally)
        held = protection(**asdict(box.enforced))
    running = running_in(root)
    tally.add("the agent came to its end", holds=result.stopped == "finished")
    tally.add("every call was answered", holds=len(result.history) == 2 * tally.calls + 2)
    tally.add("nothing runs in the workspace any more", holds=not running)
    _summarize(stage, tally, root, held, time.monotonic() - started)
    rest = f"{len(running)} processes still run" if running else "nothing runs"
    stage.say("left", f"{tally.left_behind} process left behind by a command and ended; {rest} in the workspace now")
    stage.say("checks", f"{tally.checks - len(tally.unmet)} of {tally.checks} hold")
    for words in tally.unmet:
        stage.say("FAILED", words, "bold red", "bold red")
    return DID_NOT_HOLD if tally.unmet else PASSED


def _converse(box: Toolbox, root: Path, stage: Stage, tally: _Tally) -> AgentResult:
    script = steps()
    for event in Agent(model(script), box).stream(TASK):
        if isinstance(event, AssistantSaid):
            stage.gap()
            stage.say("model", event.message.text, "bold")
            for call in event.message.tool_calls:
                stage.say("$", str(call.arguments["command"]), "cyan")
        elif isinstance(event, ToolReturned):
            _judge(script[tally.calls], event, root, stage, tally)
        elif isinstance(event, AgentEnded):
            return event.result
    raise AssertionError("a stream ends with AgentEnded")


def _judge(step: Step, returned: ToolReturned, root: Path, stage: Stage, tally: _Tally) -> None:
    """Show what the model is told, and whether it is what the step was to bring."""
    result = returned.result
    for line in status_lines(result):
        stage.say("=", line)
    stage.say("", f"({returned.duration_s:.2f} s; the model reads {len(result.text):,} characters)", "dim")
    unmet = step.unmet(result, root)
    for expected in step.expects:
        if expected.words in unmet:
            stage.say("FAILED", expected.words, "bold red", "bold red")
        else:
            stage.say("ok", expected.words, "dim", "green")
        tally.add(f"call {tally.calls + 1}: {expected.words}", holds=expected.words not in unmet)
    tally.calls += 1
    tally.most_read = max(tally.most_read, len(result.text))
    tally.left_behind += len(result.data.get("left_behind", ()))


def _summarize(stage: Stage, tally: _Tally, root: Path, held: str, duration_s: float) -> None:
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    stage.gap()
    stage.heading("What came of it")
    stage.say("calls", f"{tally.calls} in {duration_s:.1f} s")
    stage.say("files", ", ".join(files) or "none")
    stage.say("bounds", f"the longest report had {tally.most_read:,} characters")
    stage.say("held by", held)
