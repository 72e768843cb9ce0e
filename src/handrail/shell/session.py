"""A session of bash commands in one workspace: each call is a new bash, and only the directory passes to the next.

It decides which directory that is. It holds no running shell, so no command can damage what the next one starts with.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

from handrail.hosts.base import Host
from handrail.process.cancel import Cancel
from handrail.process.supervise import OnOutput
from handrail.shell.bash import Bash, NoRoom
from handrail.values.completed import Completed
from handrail.values.invocation import Invocation, OutputLimits
from handrail.workspace import Workspace

_DEFAULT_OUTPUT = OutputLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRun:
    """How one command ended, and where. Directories are relative to the workspace's root, which is ".".

    cwd         where the next command starts.
    cwd_before  where this one started.
    refused     bash ended outside the workspace; that directory was not kept.
    vanished    the session's directory was gone, or led outside by now, so this command started in the root.
    unreported  bash ended by itself and did not say where: the command replaced it (`exec`) or took the report away,
                or there was no room for one. The previous directory stands.
    """

    completed: Completed
    cwd: str
    cwd_before: str
    refused: bool = False
    vanished: bool = False
    unreported: bool = False


class Session:
    """Runs commands in bash. Calls may overlap on several threads; then the last one that changed the directory counts.

    `directory` is the session's own, absolute and outside the workspace; what commands may reach of it lies in `tmp`,
    `io` and `outputs` there. `environment` is every command's, but for what the host sets over it. With `login`, bash
    is a login shell: it reads the user's profile first, and what that exports is held to the environment's rule.
    """

    def __init__(
        self, workspace: Workspace, host: Host, directory: str, environment: Mapping[str, str], *, login: bool = False
    ) -> None:
        self._workspace = workspace
        self._host = host
        self._tmp, self._outputs = os.path.join(directory, "tmp"), os.path.join(directory, "outputs")
        io = os.path.join(directory, "io")
        self._bash = Bash(io, host.seen(io), dict(environment), login)
        self._cwd = "."
        self._numbers = itertools.count(1)

    @property
    def root(self) -> str:
        """The workspace's absolute path."""
        return self._workspace.root

    @property
    def cwd(self) -> str:
        """Where the next command starts, relative to the workspace's root."""
        return self._cwd

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        grace_s: float = 2.0,
        merge: bool = True,
        network: bool = False,
        output: OutputLimits = _DEFAULT_OUTPUT,
        cancel: Cancel | None = None,
        on_output: OnOutput | None = None,
    ) -> ShellRun:
        """Run `command` to its end on the calling thread. Times in seconds, see `Invocation`."""
        self._make_directories()
        before, vanished = self._start()
        path = self._workspace.absolute(before)
        try:
            with self._bash.call(command, str(next(self._numbers))) as bash, _given_or_own(cancel) as stop:
                invocation = Invocation(
                    argv=bash.argv,
                    cwd=path,
                    # Without PWD bash would look the directory up, and could not.
                    env={**bash.environment, **self._host.variables(network=network), "PWD": path},
                    timeout_s=timeout_s,
                    grace_s=grace_s,
                    merge=merge,
                    output=output,
                    spill_dir=self._outputs,
                    network=network,
                )
                completed = self._host.run(invocation, cancel=stop, on_output=on_output)
                reported = bash.directory()
        except NoRoom:
            completed = self._not_started(
                "The command is too long for one argument, and there is no room to keep it in a file."
            )
            reported = None
        return self._end(completed, reported, before, vanished=vanished)

    def _make_directories(self) -> None:
        """Each time: a command may have removed them, and the next would find no place for its temporary files."""
        for directory in (self._tmp, self._bash.directory, self._outputs):
            with suppress(OSError):  # it is there, or cannot be, which the command will say itself
                os.mkdir(directory, 0o700)

    def _start(self) -> tuple[str, bool]:
        """Where a command starts, and whether the session's directory is there no more; that is said once."""
        kept = self._cwd
        path = self._workspace.absolute(kept)
        # A link may have been put in its way since: then what counts is where it leads now.
        now = self._workspace.relative(path) if _can_be_entered(path) else None
        if now is not None or kept == ".":
            return now or ".", False
        self._cwd = "."
        return ".", True

    def _end(self, completed: Completed, reported: str | None, before: str, *, vanished: bool) -> ShellRun:
        stopped = completed.timed_out or completed.cancelled or completed.not_started is not None
        refused = False
        if reported and os.path.isabs(reported) and not stopped:
            after = self._workspace.relative(reported)
            refused = after is None
            if after is not None and after != before and os.path.isdir(reported):
                self._cwd = after
        return ShellRun(
            completed=completed,
            cwd=self._cwd,
            cwd_before=before,
            refused=refused,
            vanished=vanished,
            unreported=reported is None and not stopped and completed.signal is None,
        )

    def _not_started(self, sentence: str) -> Completed:
        return Completed(exit_code=125, duration_s=0.0, enforced=self._host.enforced, not_started=sentence)


@contextmanager
def _given_or_own(cancel: Cancel | None) -> Generator[Cancel]:
    if cancel is not None:
        yield cancel
        return
    with closing(Cancel()) as own:
        yield own


def _can_be_entered(path: str) -> bool:
    return os.path.isdir(path) and os.access(path, os.X_OK)
