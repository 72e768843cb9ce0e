"""How one command is handed to bash unchanged, and how bash reports the directory it ended in.

It makes the files for that in the session's directory, and removes them. What a report is worth, the session says.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from handrail.process.environment import ALWAYS, looks_secret, meant_for_host

_PRELUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prelude.sh")
# Linux takes no longer argument, its final NUL included (MAX_ARG_STRLEN in execve(2)), however large ARG_MAX is.
_ARGUMENT_BYTES = 131_072
# What a pipe holds by default on Linux; a report is a path, so what lies beyond was not written by the prelude.
_REPORT_BYTES = 65_536
# bash reads these before anything else, and some of them would keep it from reading the prelude.
_ON_START = ("BASH_ENV", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT")

# Only such a text can call `trap` in its main shell: by name, or out of a file or a string. Reading trap.sh for all the
# others would add half of what it costs to start bash. What slips through replaces the report, no more.
_MAY_SET_TRAPS = re.compile(r"trap|source|eval|(?:^|[\s;&|({])\.\s")


class NoRoom(Exception):
    """The session's directory does not take the file that a long command needs."""


@dataclass(frozen=True, slots=True)
class Bash:
    """What all commands of a session have in common. `directory` is absolute and private (mode 0700).

    A command finds it at `seen_as`, which is another path in a slot with mounts of its own.
    Of `environment`, SHELLOPTS, BASHOPTS and BASH_ENV are left out: bash is to start as if by hand.
    """

    directory: str
    seen_as: str
    environment: Mapping[str, str]
    login: bool

    @contextmanager
    def call(self, command: str, name: str) -> Generator[BashCall]:
        """Have bash ready to run `command`, with the files it needs; `name` tells them from those of other calls.

        Raises NoRoom where a command is too long for an argument and cannot be kept in a file either.
        """
        variables = {key: value for key, value in self.environment.items() if key not in _ON_START}
        variables["BASH_ENV"] = _as_in_double_quotes(_PRELUDE)
        if "POSIXLY_CORRECT" in self.environment:
            variables["__handrail_env"] = _assignments(self.environment, ["POSIXLY_CORRECT"])
        if self.login:
            variables["__handrail_login"] = _assignments(self.environment, [*ALWAYS, "TMPDIR"])
            kept = (key for key in self.environment if looks_secret(key) or meant_for_host(key))
            variables["__handrail_keep"] = " ".join(kept)
        if self.login or _MAY_SET_TRAPS.search(command):
            variables["__handrail_traps"] = "1"
        options = ("--noprofile", "-lc") if self.login else ("-c",)
        fifo, seen_fifo = (os.path.join(place, f"cwd-{name}") for place in (self.directory, self.seen_as))
        text, seen_text = (os.path.join(place, f"command-{name}") for place in (self.directory, self.seen_as))
        report: int | None = None
        try:
            if len(command) * 4 >= _ARGUMENT_BYTES and len(os.fsencode(command)) >= _ARGUMENT_BYTES:
                _write_text(text, command)
                variables["__handrail_text"] = seen_text
                command = '\\builtin eval -- "$__handrail_text"'
            report = _open_report(fifo)
            if report is not None:
                variables["__handrail_fifo"] = seen_fifo
            yield BashCall(("bash", *options, "--", command), variables, report)
        finally:
            if report is not None:
                os.close(report)
            _remove(fifo)
            _remove(text)


@dataclass(frozen=True, slots=True)
class BashCall:
    """`argv` and `environment` of one bash. `_report` is the end of the FIFO that is read, None where there is none."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    _report: int | None

    def directory(self) -> str | None:
        """What bash reported once it has ended: "" where it had no directory any more, None where it said nothing.

        Anybody who runs as the same user can write here: it says where to look, not what is so.
        """
        if self._report is None:
            return None
        found = b""
        while len(found) < _REPORT_BYTES:
            try:
                more = os.read(self._report, _REPORT_BYTES - len(found))
            except BlockingIOError:  # somebody still holds the other end, and has nothing to say
                break
            if not more:
                break
            found += more
        records = found.split(b"\0")[:-1]
        return os.fsdecode(records[-1].removesuffix(b"\n")) if records else None


def _open_report(path: str) -> int | None:
    try:
        os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # a full or read-only disk must not cost the command; the session says that nothing was reported
        return None


def _write_text(path: str, command: str) -> None:
    """Write `command` and a NUL, which ends it for bash's `read`."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(os.fsencode(command) + b"\0")
    except OSError as failure:
        raise NoRoom from failure


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # never made, or the command itself meddled here; what is left goes with the session's directory
        return


def _assignments(variables: Mapping[str, str], names: list[str]) -> str:
    return " ".join(f"{name}={shlex.quote(variables[name])}" for name in names if name in variables)


def _as_in_double_quotes(path: str) -> str:
    """`path` so that bash, which expands the value of BASH_ENV, gets it back."""
    return "".join("\\" + character if character in '\\"$`' else character for character in path)
