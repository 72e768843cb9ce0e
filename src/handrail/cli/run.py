"""`handrail run`: one command for a person at a terminal or a script, by the same way that a model's commands take.

The person who types is the approver. Output passes through raw as it comes; how it ended is said on stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import click

from handrail.cli import options
from handrail.cli.exits import BROKEN_PIPE, FAILED, INTERRUPTED, TIMED_OUT
from handrail.cli.live import PassingHost
from handrail.cli.signals import Signalled, raising
from handrail.cli.words import protection, status_lines
from handrail.gate.approvers import allow_all
from handrail.hosts.local import LocalHost
from handrail.process.environment import Policy
from handrail.toolbox import Toolbox
from handrail.values.place import Sandbox
from handrail.values.tool import ToolResult

# What a toolbox allows at most by itself; a person may ask for more.
_MAX_TIMEOUT_S = 600.0


@click.command(context_settings={"allow_interspersed_args": False})
@options.workspace
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop the command after this long.",
)
@options.as_json
@click.option("--login", is_flag=True, help="Read the profile first, as `bash -l` does.")
@options.env_policy
@click.option(
    "--sandbox",
    type=click.Choice(["required", "best", "off"]),
    default="required",
    show_default=True,
    help="Confine the command, or refuse; as far as this machine lets us; or not at all.",
)
@click.option("--network", is_flag=True, help="Let the command reach the network.")
@click.option(
    "--write",
    "write_paths",
    multiple=True,
    metavar="PATH",
    help="Let it write here too; a relative path counts from the workspace. May be given several times.",
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    *,
    workspace: str,
    timeout_s: float,
    as_json: bool,
    login: bool,
    policy: Policy,
    sandbox: Sandbox,
    network: bool,
    write_paths: tuple[str, ...],
    words: tuple[str, ...],
) -> int:
    """Run a command in the workspace.

    One word is a bash command line; several are a program and its arguments, exactly as they are:

    \b
        handrail run 'pytest -q | tail -3'
        handrail run -- grep -rn "it's" src

    Ends with the command's own exit code (128 + N for a death by signal N); with 124 after a timeout, 125 where
    handrail itself failed or refused, 130 after Ctrl-C.
    """
    host = PassingHost(LocalHost())
    try:
        with (
            raising(),
            Toolbox(
                workspace,
                approver=allow_all,
                tools=["shell"],
                sandbox=sandbox,
                network="on" if network else "off",
                write_paths=write_paths,
                env=policy,
                login=login,
                merge=as_json or _same_file(1, 2),
                timeout_s=timeout_s,
                max_timeout_s=max(timeout_s, _MAX_TIMEOUT_S),
                host=None if as_json else host,
            ) as box,
        ):
            result = box.call("shell", {"command": _command(words)})
    except KeyboardInterrupt:
        _say(["stopped by Ctrl-C"], host)
        return INTERRUPTED
    except Signalled as signalled:
        return signalled.exit_code
    if host.failure is not None:
        return _after_failed_output(host.failure)
    if as_json:
        _print_json(result)
    else:
        _say(_ending(result, host), host)
    return exit_code(result.data)


def exit_code(data: Mapping[str, Any]) -> int:
    """What the command line ends with, from the facts of a shell call."""
    code: object = data.get("code")
    return int(data["exit_code"]) if code is None else {"TIMED_OUT": TIMED_OUT}.get(str(code), FAILED)


def _command(words: Sequence[str]) -> str:
    """A line for bash. Behind `exec --` a quoted word is neither builtin, keyword, alias, option nor pattern."""
    if len(words) == 1:
        return words[0]
    return "exec -- " + " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A word of bash that stands for exactly these bytes, whatever they are."""
    if word.isprintable():
        return "'" + word.replace("'", "'\"'\"'") + "'"
    return "$'" + "".join(f"\\x{byte:02x}" for byte in os.fsencode(word)) + "'"


def _same_file(one: int, other: int) -> bool:
    """Whether two descriptors lead to the same place, so that only one merged stream keeps the order of writing."""
    try:
        first, second = os.fstat(one), os.fstat(other)
    except OSError:  # closed
        return False
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def _ending(result: ToolResult, host: PassingHost) -> Iterable[str]:
    yield from status_lines(result)
    if "enforced" in result.data:
        yield protection(**result.data["enforced"])
    if host.missing_bytes:
        yield f"{host.missing_bytes} bytes of output were not read in time and are missing above"


def _say(lines: Iterable[str], host: PassingHost) -> None:
    gap = "" if host.at_line_start else "\n"
    text = gap + "".join(f"handrail: {line}\n" for line in lines)
    with suppress(OSError):  # nobody reads our stderr: then nobody misses it
        sys.stderr.write(text)
        sys.stderr.flush()


def _print_json(result: ToolResult) -> None:
    if "exit_code" not in result.data:
        click.echo(f"handrail: {result.text}", err=True)
    click.echo(json.dumps(dict(result.data)))


def _after_failed_output(failure: OSError) -> int:
    if isinstance(failure, BrokenPipeError):
        return BROKEN_PIPE
    click.echo(f"handrail: the output could not be passed on: {failure.strerror}; the command was stopped", err=True)
    return FAILED
