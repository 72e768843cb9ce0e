"""How a command's text and its environment reach bash."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.hosts.local import LocalHost
from handrail.shell import bash
from handrail.shell.session import Session, ShellRun
from handrail.testing import FakeHost
from handrail.workspace import Workspace
from tests.shell.conftest import text

Sh = Callable[[str], ShellRun]

LIMIT = 131_072  # bytes of one argument, its NUL included


def test_a_short_command_is_an_argument_unchanged(root: Path, private: Path, environment: dict[str, str]) -> None:
    host = FakeHost()
    Session(Workspace(root), host, str(private), environment).run("  --version # x\\", timeout_s=7, grace_s=3)
    (asked,) = host.invocations
    assert asked.argv == ("bash", "-c", "--", "  --version # x\\")
    assert (asked.cwd, asked.timeout_s, asked.grace_s, asked.merge, asked.spill_dir) == (
        str(root),
        7,
        3,
        True,
        str(private / "outputs"),
    )
    own = {name: value for name, value in asked.env.items() if environment.get(name) != value}
    assert own.keys() == {"BASH_ENV", "PWD", "__handrail_fifo"}


def test_a_command_that_looks_like_an_option_is_a_command(sh: Sh) -> None:
    ran = sh("--version")
    assert (ran.completed.exit_code, text(ran)) == (127, "bash: line 1: --version: command not found\n")


@pytest.mark.parametrize("beyond", [-2, -1, 0, 1, 1_000_000])
def test_a_command_may_be_longer_than_an_argument(beyond: int, sh: Sh) -> None:
    head, tail = "v='", "'; cd sub; echo ${#v} $LINENO; exit 3"
    filling = LIMIT + beyond - len(head) - len(tail)
    ran = sh(head + "x" * filling + tail)
    assert (ran.completed.exit_code, text(ran), ran.cwd) == (3, f"{filling} 1\n", "sub")


def test_the_limit_is_counted_in_bytes(sh: Sh) -> None:
    ran = sh("v='" + "é" * (LIMIT // 2) + "'; echo ${#v}")
    assert text(ran) == f"{LIMIT // 2}\n"


def test_a_long_command_keeps_every_byte(sh: Sh, root: Path) -> None:
    odd = '\x01\x7f\x08\t é€😀\udce9\\ "$HOME" `x` %'
    ran = sh("cat >out <<'E'\n" + f"{odd}\n" * 8_000 + "E\ncat <<'E'\nend\nE\n\n\n")
    assert (ran.completed.exit_code, text(ran)) == (0, "end\n")
    assert (root / "out").read_bytes() == os.fsencode(f"{odd}\n" * 8_000)


def test_errors_of_a_long_command_name_line_1_and_its_status_is_bashs(sh: Sh) -> None:
    padding = " " * LIMIT
    assert text(sh("nosuch" + padding)) == "bash: line 1: nosuch: command not found\n"
    wrong = sh(f"echo ({padding}")
    assert wrong.completed.exit_code == 2
    assert "line 1: syntax error" in text(wrong)
    assert text(sh(f"set -x; echo a {padding} # c")) == "++ echo a\na\n"


def test_the_file_of_a_long_command_is_private(sh: Sh, private: Path) -> None:
    ran = sh(f"stat -c '%a %F %n' {private}/io/*" + " " * LIMIT)
    assert text(ran) == f"600 regular file {private}/io/command-1\n600 fifo {private}/io/cwd-1\n"


@pytest.mark.parametrize("name", ["plain", "it's", "a $HOME `id` $(id)", 'quote " and \\', "line\nend", "~", "ü"])
def test_the_package_may_lie_anywhere(
    name: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / name
    place.mkdir()
    for script in Path(bash._PRELUDE).parent.glob("*.sh"):
        shutil.copy(script, place)
    monkeypatch.setattr(bash, "_PRELUDE", str(place / "prelude.sh"))
    ran = session.run("cd sub; trap x FOO", timeout_s=20)
    assert (text(ran), ran.cwd) == ("bash: line 1: trap: FOO: invalid signal specification\n", "sub")


@pytest.mark.parametrize("name", ["plain", "it's", "a $HOME `id` *", 'quote " and \\', "line\nend"])
def test_the_session_directory_may_lie_anywhere(
    name: str, root: Path, tmp_path: Path, environment: dict[str, str], host: LocalHost
) -> None:
    place = tmp_path / name
    place.mkdir()
    session = Session(Workspace(root), host, str(place), environment)
    ran = session.run("cd sub; echo hi" + " " * LIMIT, timeout_s=20)
    assert (text(ran), ran.cwd) == ("hi\n", "sub")


def test_what_changes_how_bash_starts_does_not_keep_the_report_away(
    root: Path, private: Path, tmp_path: Path, environment: dict[str, str], host: LocalHost
) -> None:
    theirs = tmp_path / "theirs.sh"
    theirs.write_text("echo read")
    odd = {"POSIXLY_CORRECT": "it's", "SHELLOPTS": "posix:xtrace", "BASHOPTS": "extdebug", "BASH_ENV": str(theirs)}
    session = Session(Workspace(root), host, str(private), {**environment, **odd})
    ran = session.run("cd sub; env | grep -E '^(POSIXLY_CORRECT|SHELLOPTS|BASHOPTS|BASH_ENV|__)'", timeout_s=20)
    assert (text(ran), ran.cwd) == ("POSIXLY_CORRECT=it's\n", "sub")
    assert text(session.run("[[ $SHELLOPTS == *posix* ]] && echo posix", timeout_s=20)) == "posix\n"


def test_nothing_of_ours_reaches_what_the_command_starts(sh: Sh) -> None:
    assert text(sh("env | grep -c handrail; bash -c 'declare -F; compgen -v __handrail'; echo $?")) == "0\n1\n"


def test_a_script_in_a_bash_of_its_own_reports_nothing(sh: Sh, root: Path) -> None:
    (root / "script.sh").write_text("cd sub; declare -F; trap 'echo bye' EXIT\n")
    ran = sh("bash script.sh; BASH_ENV=script.sh bash -c 'cd deep'")
    assert (text(ran), ran.cwd) == ("bye\nbye\n", ".")
