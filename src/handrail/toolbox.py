"""The way in: a `Toolbox` holds a session over one workspace, and every face calls its tools through it.

It checks options, builds the tools, and owns what must end with the session. What a call may do is the gate's to
say, what it does the tool's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from types import TracebackType
from typing import Any, Literal

from handrail.errors import Code
from handrail.gate.approvers import Approver
from handrail.gate.lock import Busy, WorkspaceLock
from handrail.hosts.base import Host
from handrail.hosts.local import LocalHost
from handrail.options import Options, check_approver, existing_paths, output_limits, tool_names
from handrail.process.cancel import Cancel, Stop
from handrail.process.child import NotStarted
from handrail.process.environment import build
from handrail.process.feed import Feed, Listener
from handrail.process.interrupts import deferred, interruptible
from handrail.process.spawn import EXHAUSTED, no_room
from handrail.shell.outputs import Outputs
from handrail.shell.session import Session
from handrail.state import SessionDirectory, directories
from handrail.text.cut import TextLimits
from handrail.tools.arguments import BadArguments, as_object, quoted
from handrail.tools.base import Tool, refusal
from handrail.tools.read_output import ReadOutputTool
from handrail.tools.shell import ShellSettings, ShellTool
from handrail.tools.words import system_text
from handrail.values.completed import Enforced
from handrail.values.invocation import MIB
from handrail.values.place import Place, Resources, Sandbox
from handrail.values.tool import Effect, ToolResult
from handrail.workspace import Workspace

# What a call in flight may take to end once the session closes; its processes get SIGKILL at once.
_CLOSE_S = 10.0
# What a listener gets at the end, to hear what is still queued for it.
_LISTENER_S = 0.5


class Toolbox:
    """Tools for one workspace, and the session they share.

    workspace       the directory the tools work in (`~` is expanded).
    approver        who approves changes; needed as soon as a tool changes something. So far: `handrail.allow_all`.
    tools           a preset ("shell": shell and read_output), or a list of tool names.
    sandbox         "required" (default): commands are confined, or SandboxUnavailable is raised; "best": as far as
                    this machine lets us; "off": not at all. Each result says what held in `data["enforced"]`.
    network         "off" (default) or "on": whether commands have this machine's network without asking for it.
    read_paths      what commands may read although it would be hidden: in /tmp, in /run, a secret of the home.
    write_paths     what they may write besides the workspace; a relative one counts from its root, and may name what is
                    protected there (".git/config").
    hide_denied     hide files of the workspace that look like secrets (.env, *.pem, …) from commands.
    resources       what a command may use at most, see `handrail.Resources`.
    errors          "nonzero" (default): a non-zero exit is an error result; "never": it is a normal one.
    login           run `bash -lc`, so that the user's profile is read first.
    env, env_names  "allow" (default) or "deny", and names of variables that are passed whatever they look like.
    timeout_s, max_timeout_s, grace_s    seconds: a command's default limit (120), the most a model may ask for (600),
                    and the time between SIGTERM and SIGKILL (2).
    merge           both streams in one, in the order written (default), or stdout and stderr apart.
    head_lines, tail_lines, max_chars    how much of an output a report shows (200, 800, 30,000).
    spill_max       bytes of one output kept for read_output (256 MiB).
    listener        a function that is told `Event`s as they happen, on a thread of its own.
    state_dir       where the session keeps its files (default: the platform's place for state).
    host            where commands run (default: this machine).

    Raises ConfigurationError, whose message says what to pass instead.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        *,
        approver: Approver | None = None,
        tools: Literal["shell"] | Sequence[str] = "shell",
        sandbox: Sandbox = "required",
        network: Literal["off", "on"] = "off",
        read_paths: Sequence[str | os.PathLike[str]] = (),
        write_paths: Sequence[str | os.PathLike[str]] = (),
        hide_denied: bool = False,
        resources: Resources | None = None,
        errors: Literal["nonzero", "never"] = "nonzero",
        login: bool = False,
        env: Literal["allow", "deny"] = "allow",
        env_names: Sequence[str] = (),
        timeout_s: float = 120.0,
        max_timeout_s: float = 600.0,
        grace_s: float = 2.0,
        merge: bool = True,
        head_lines: int = 200,
        tail_lines: int = 800,
        max_chars: int = 30_000,
        spill_max: int = 256 * MIB,
        listener: Listener | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        host: Host | None = None,
    ) -> None:
        names = tool_names(tools)
        Options(
            sandbox=sandbox,
            network=network,
            hide_denied=hide_denied,
            resources=resources,
            errors=errors,
            env=env,
            env_names=env_names,
            login=login,
            merge=merge,
            listener=listener,
            timeout_s=timeout_s,
            max_timeout_s=max_timeout_s,
            grace_s=grace_s,
            head_lines=head_lines,
            tail_lines=tail_lines,
            max_chars=max_chars,
            spill_max=spill_max,
        ).check()
        root = Workspace(workspace)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._running: set[Cancel] = set()
        self._idle = threading.Condition(self._lock)
        self._closed = False
        self._workspace_lock = WorkspaceLock(root.root)
        self._directory = SessionDirectory(state_dir, root.root)
        self._host: Host = host or LocalHost()
        place = Place(
            workspace=root.root,
            session=self._directory.path,
            cache=self._directory.cache,
            state=tuple({*directories(), self._directory.place}),
            sandbox=sandbox,
            network=network == "on",
            hide_denied=hide_denied,
            read_paths=existing_paths("read_paths", read_paths, root.root),
            write_paths=existing_paths("write_paths", write_paths, root.root),
            resources=resources or Resources(),
        )
        try:
            self._host.open(place)
        except BaseException:
            self._directory.close()
            raise
        self._feed = Feed(listener) if listener is not None else None
        environment = build(os.environ, policy=env, names=env_names, tmpdir=self._host.seen(place.tmp))
        session = Session(root, self._host, place.session, environment.variables, login=login)
        outputs = Outputs(place.outputs)
        text = TextLimits(head_lines=head_lines, tail_lines=tail_lines, max_chars=max_chars)
        settings = ShellSettings(
            timeout_s=timeout_s,
            max_timeout_s=max_timeout_s,
            grace_s=grace_s,
            merge=merge,
            nonzero_is_error=errors == "nonzero",
            text=text,
            output=output_limits(max_chars, spill_max),
            network=network == "on",
            resources=place.resources,
        )
        makers: dict[str, Callable[[], Tool]] = {
            "shell": ShellTool(session, outputs, settings, self._feed).tool,
            "read_output": ReadOutputTool(outputs, self._host, place.outputs, text).tool,
        }
        self._tools = {name: makers[name]() for name in names}
        try:
            check_approver(approver, self._tools.values())
        except BaseException:
            self.close()
            raise

    @property
    def tools(self) -> list[Tool]:
        """The tools, in a fixed order."""
        return list(self._tools.values())

    @property
    def system_text(self) -> str:
        """Words for an agent's instructions, about the tools that are there and no others."""
        return system_text(list(self._tools))

    @property
    def enforced(self) -> Enforced:
        """What confines commands here."""
        return self._host.enforced

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """Call a tool as a model would, with its arguments as an object or as the JSON text of one.

        Whatever the model got wrong comes back as a result, never as an exception.
        Runs on the calling thread; any number of threads may call at once. Ctrl-C stops the command, then is raised.
        """
        cancel = Cancel()
        try:
            return self._call(name, arguments, cancel)
        finally:
            cancel.close()

    async def acall(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """`call` for asyncio and trio, on a worker thread. Cancelling it stops the command first, then cancels."""
        from handrail.process.worker import in_worker_thread

        return await in_worker_thread(lambda cancel: self._call(name, arguments, cancel))

    def close(self) -> None:
        """End running commands at once (SIGKILL, no grace) and remove the session's files. May be called twice.

        In a forked child of the process that made the toolbox it does nothing: the session is the parent's.
        """
        if os.getpid() != self._pid:
            return
        with closing(Cancel()) as interrupted, deferred(interrupted):
            with self._idle:
                self._closed = True
                for cancel in self._running:
                    cancel.request(Stop.KILL)
                self._idle.wait_for(lambda: not self._running, _CLOSE_S)
            if self._feed is not None:
                self._feed.close(_LISTENER_S)
            self._host.close()
            self._directory.close()

    def __enter__(self) -> Toolbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Toolbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from handrail.process.worker import in_worker_thread

        await in_worker_thread(lambda _cancel: self.close())

    def _call(self, name: str, arguments: Mapping[str, Any] | str | None, cancel: Cancel) -> ToolResult:
        tool = next((tool for tool in self._tools.values() if tool.name == name), None)
        if tool is None:
            return refusal(Code.UNKNOWN_TOOL, f"there is no tool {quoted(name)}; there are {', '.join(self._tools)}.")
        try:
            parsed = tool.parse(as_object({} if arguments is None else arguments))
            # From before anything is held: a Ctrl-C between two lines would leave it held for ever.
            with interruptible(cancel):
                return self._run(tool, parsed, cancel)
        except BadArguments as bad:
            return refusal(Code.BAD_ARGUMENTS, bad.sentence)
        except NotStarted as failure:
            return refusal(Code.COULD_NOT_START, failure.sentence)
        except OSError as failure:
            if failure.errno not in EXHAUSTED:  # a bug, or a machine that falls apart: not for a model to hear of
                raise
            return refusal(Code.COULD_NOT_START, no_room().sentence)

    def _run(self, tool: Tool, parsed: Any, cancel: Cancel) -> ToolResult:
        if os.getpid() != self._pid:  # before the lock: another thread may have held it at the moment of the fork
            return refusal(Code.CLOSED, "the session belongs to the process that this one was forked from.")
        with self._idle:
            if self._closed:
                return refusal(Code.CLOSED, "the session is closed; nothing can be run in it any more.")
            self._running.add(cancel)
        try:
            with self._workspace_lock.held() if tool.effect is Effect.CHANGE else nullcontext():
                return tool.run(parsed, cancel)
        except Busy:
            return refusal(Code.BUSY, "another operation is running; retry later.")
        finally:
            with self._idle:
                self._running.discard(cancel)
                self._idle.notify_all()
