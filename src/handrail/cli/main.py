"""The `handrail` command: which subcommands there are, and how a failure becomes an exit code.

Each subcommand's module is loaded when it is used, so that `handrail --version` answers at once.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from importlib import import_module
from io import TextIOWrapper

import click
from click.shell_completion import shell_complete

from handrail.cli.exits import BROKEN_PIPE, FAILED, INTERRUPTED
from handrail.errors import HandrailError

_COMPLETE = "_HANDRAIL_COMPLETE"  # set by the shell's completion script

_OUTPUT_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_HOMES = {
    "demo": "handrail.cli.demo",
    "doctor": "handrail.cli.doctor",
    "env": "handrail.cli.env",
    "run": "handrail.cli.run",
}


class _Commands(click.Group):
    """Loads a subcommand from its home when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_HOMES})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _HOMES:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(_HOMES[cmd_name]), cmd_name)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="handrail", message="handrail %(version)s")
def handrail() -> None:
    """Hands for AI agents, with a rail along every edge.

    Exit codes: a command's own (128 + N for a death by signal N), 124 after a timeout, 125 for handrail's own
    failure or refusal, 130 after Ctrl-C.
    """


def main() -> None:
    """Run the command line of this process and exit."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what the terminal's encoding lacks is spelt out, and no failure
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run_main(sys.argv[1:]))


def _open_standard_streams() -> None:
    """Where one was closed (`>&-`), the next file that is opened would take its number, and get what is printed."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def run_main(arguments: list[str]) -> int:
    """The exit code of one command line."""
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except click.exceptions.Exit as asked:
        code = asked.exit_code
    except click.ClickException as refusal:
        refusal.show()
        code = FAILED
    except HandrailError as refusal:
        click.echo(f"handrail: {refusal}", err=True)
        code = FAILED
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        code = BROKEN_PIPE
    except Exception as failure:
        code = FAILED
        if isinstance(failure, OSError) and failure.errno in _OUTPUT_LOST:
            _forget_stdout()
            click.echo(f"handrail: the output could not be written: {failure.strerror}", err=True)
        else:  # a bug of ours: its traceback, and a code that is no command's own
            logging.getLogger("handrail").exception("handrail failed")
    return code


def _invoke(arguments: list[str]) -> int:
    """Not `handrail.main()`: that ends with 1 where nobody reads the output, which is a command's own code."""
    if asked := os.environ.get(_COMPLETE):
        return shell_complete(handrail, {}, "handrail", _COMPLETE, asked)
    with handrail.make_context("handrail", arguments) as context:
        code: object = handrail.invoke(context)
    return code if isinstance(code, int) else 0


def _forget_stdout() -> None:
    """Nobody reads it any more; without this the interpreter would complain once again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
