"""The shell tool: what a model sees of it, and the words of its report. It starts nothing itself: the session does."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from handrail.errors import Code
from handrail.process.cancel import Cancel
from handrail.process.feed import Feed
from handrail.process.supervise import OnOutput
from handrail.shell.outputs import Outputs
from handrail.shell.session import Session, ShellRun
from handrail.text.cut import TextLimits
from handrail.tools.arguments import BadArguments, parse, schema_of, without_null
from handrail.tools.base import Tool, refusal
from handrail.tools.report import Ran, ReportStyle, report
from handrail.values.event import Started
from handrail.values.invocation import OutputLimits
from handrail.values.place import Resources
from handrail.values.tool import Effect, ToolResult

# How long the answer waits for a listener to have heard all: enough for one that works, unnoticed with one that sleeps.
_LISTENER_S = 0.25
# The text is kept in memory and, past the kernel's limit for one argument, in a file: a bound for both.
_MAX_COMMAND_CHARS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    """What a toolbox decides about its shell tool. Times in seconds."""

    timeout_s: float
    max_timeout_s: float
    grace_s: float
    merge: bool
    nonzero_is_error: bool
    text: TextLimits
    output: OutputLimits
    network: bool
    resources: Resources


_NETWORK = "Ask for network access for this call; without it a command reaches no other machine."


class ShellArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of `shell`."""

    command: Annotated[str, msgspec.Meta(description="A bash command line or script; it runs as `bash -c`.")]
    timeout_s: Annotated[float, msgspec.Meta(description="Seconds until the command is stopped.")] | None = None
    network: Annotated[bool, msgspec.Meta(description=_NETWORK)] | None = None
    description: (
        Annotated[str, msgspec.Meta(description="A few words on what this is for, shown to people.")] | None
    ) = None


@dataclass(frozen=True, slots=True)
class Command:
    """A checked call of `shell`."""

    command: str
    timeout_s: float
    network: bool
    description: str | None


class ShellTool:
    """Runs a model's command in a session and words the result."""

    def __init__(self, session: Session, outputs: Outputs, settings: ShellSettings, feed: Feed | None) -> None:
        self._session = session
        self._outputs = outputs
        self._settings = settings
        self._feed = feed
        self._lock = threading.Lock()
        self._calls = 0

    def tool(self) -> Tool:
        return Tool("shell", self._description(), self._schema(), Effect.CHANGE, self.parse, self.run)

    def parse(self, arguments: Mapping[str, Any]) -> Command:
        asked = parse(ShellArguments, arguments)
        _check_command(asked.command)
        network = self._settings.network or asked.network is True
        return Command(asked.command, self._timeout(asked.timeout_s), network, asked.description)

    def run(self, asked: Command, cancel: Cancel) -> ToolResult:
        ran, listener_notes = self._run(asked, cancel)
        if ran.completed.not_started is not None:
            return refusal(Code.COULD_NOT_START, ran.completed.not_started)
        style = ReportStyle(
            text=self._settings.text, merge=self._settings.merge, nonzero_is_error=self._settings.nonzero_is_error
        )
        done = Ran(
            command=asked.command,
            timeout_s=asked.timeout_s,
            run=ran,
            notes=listener_notes,
            network=asked.network,
            resources=self._settings.resources,
            root=self._session.root,
        )
        return report(done, self._outputs, style)

    def _run(self, asked: Command, cancel: Cancel) -> tuple[ShellRun, list[str]]:
        if self._feed is None:
            return self._in_session(asked, cancel, None), []
        with self._lock:
            self._calls += 1
            call = self._calls
        self._feed.start(Started(call, asked.command, asked.description))
        try:
            ran = self._in_session(asked, cancel, self._feed.output(call))
        finally:
            delivery = self._feed.end(call, _LISTENER_S)
        if delivery.failure is not None:
            return ran, [f"the listener failed ({delivery.failure}) and heard no more of this command"]
        return ran, [] if delivery.complete else ["the listener is slow and has not heard all of this command yet"]

    def _in_session(self, asked: Command, cancel: Cancel, on_output: OnOutput | None) -> ShellRun:
        settings = self._settings
        return self._session.run(
            asked.command,
            timeout_s=asked.timeout_s,
            grace_s=settings.grace_s,
            merge=settings.merge,
            network=asked.network,
            output=settings.output,
            cancel=cancel,
            on_output=on_output,
        )

    def _timeout(self, asked: float | None) -> float:
        if asked is None:
            return self._settings.timeout_s
        if not (math.isfinite(asked) and 0 < asked <= self._settings.max_timeout_s):
            raise BadArguments(f"'timeout_s' must be more than 0 and at most {self._settings.max_timeout_s:g}.")
        return asked

    def _description(self) -> str:
        settings = self._settings
        return (
            "Run a command in bash, in the workspace. The working directory persists from call to call (`cd` is kept); "
            "variables, functions and background processes do not: what still runs when the command ends is ended. "
            "No input is available and no terminal: use flags such as `-y`, `--yes`, `-m` or `--no-edit`, never an "
            f"editor, a pager or a prompt. A command is stopped after {settings.timeout_s:g} seconds unless timeout_s "
            f"says otherwise (at most {settings.max_timeout_s:g}). Long output is cut in the middle to "
            f"{settings.text.head_lines} + {settings.text.tail_lines} lines and {settings.text.max_chars} characters; "
            "the cut names the id with which read_output shows the rest. The first line of the result is the exit "
            "code; its `cwd:` counts from the root of the workspace, which it shows as `/`."
        )

    def _schema(self) -> dict[str, Any]:
        schema = without_null(schema_of(ShellArguments))
        timeout = {"exclusiveMinimum": 0, "maximum": self._settings.max_timeout_s}
        schema["properties"]["timeout_s"] |= timeout
        return schema


def _check_command(command: str) -> None:
    if not command.strip():
        raise BadArguments("'command' is blank; pass the command line to run.")
    if "\0" in command:
        raise BadArguments("'command' holds a NUL character, which no command line can; write it as \\0 for printf.")
    try:
        command.encode()
    except UnicodeEncodeError as bad:
        at = f"at character {bad.start + 1}"
        raise BadArguments(f"'command' holds half of a surrogate pair {at}; send the whole character.") from bad
    if len(command) > _MAX_COMMAND_CHARS:
        raise BadArguments(
            f"'command' is longer than {_MAX_COMMAND_CHARS} characters; write it to a file and run that."
        )
