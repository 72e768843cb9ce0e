"""What a command can see of the session's own work, or lose by it: no more than this, and each of it on purpose."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handrail.shell.session import Session, ShellRun
from tests.shell.conftest import text

Sh = Callable[[str], ShellRun]


def test_all_that_is_ours_is_named_so_but_for_trap(sh: Sh) -> None:
    assert text(sh("compgen -A function")).split() == ["__handrail_report"]
    functions = text(sh("compgen -A function # trap")).split()
    variables = text(sh("compgen -v")).split()
    assert [name for name in functions if not name.startswith("__handrail_")] == ["trap"]
    plain = text(sh("bash -c ':; compgen -v'")).split()
    assert [name for name in variables if not name.startswith("__handrail_") and name not in plain] == []


def test_under_posix_rules_trap_is_the_builtin_and_replaces_the_report(sh: Sh) -> None:
    ran = sh("set -o posix; trap 'echo bye' EXIT; cd sub")
    assert (text(ran), ran.cwd, ran.unreported) == ("bye\n", ".", True)


@pytest.mark.parametrize("word", ["builtin", "command"])
def test_who_asks_for_the_builtin_trap_gets_it(word: str, sh: Sh) -> None:
    ran = sh(f"{word} trap 'echo bye' EXIT; cd sub")
    assert (text(ran), ran.cwd, ran.unreported) == ("bye\n", ".", True)


def test_a_function_called_builtin_keeps_the_report_away(sh: Sh) -> None:
    ran = sh("builtin() { :; }; cd sub; echo fine")
    assert (text(ran), ran.cwd, ran.unreported) == ("fine\n", ".", True)


def test_a_trap_that_exits_is_reported_from_before_it(sh: Sh) -> None:
    assert sh("trap 'cd deep; exit 3' EXIT; cd sub").cwd == "sub"
    assert sh("trap 'cat <<E\n$(cd deep; pwd)\nE\ncd deep' EXIT").cwd == "sub"


def test_verbose_mode_shows_the_line_that_reports(session: Session) -> None:
    shown = session.run("set -v; cd sub", timeout_s=20, merge=False).completed.stderr.head.decode()
    assert len(shown.splitlines()) == 1
    assert "__handrail_report" in shown


def test_a_trace_to_a_descriptor_of_its_own_shows_the_steps_of_the_report(sh: Sh) -> None:
    shown = text(sh("exec 7>&1; BASH_XTRACEFD=7; set -x; cd sub")).splitlines()
    assert shown[0] == "+ cd sub"
    assert 0 < len(shown[1:]) < 8
    assert all("handrail" in line or line in {"+ builtin local -", "+ builtin set +x", "+ : sub"} for line in shown[1:])


def test_the_command_that_an_exit_trap_is_told_is_ours(sh: Sh) -> None:
    assert "handrail" in text(sh("trap 'echo \"$BASH_COMMAND\"' EXIT; exit 3"))


def test_with_functrace_a_debug_trap_sees_into_trap(sh: Sh) -> None:
    assert "handrail" in text(sh("set -T; trap 'echo \"$BASH_COMMAND\"' DEBUG; trap 'echo bye' EXIT"))


def test_a_single_command_is_a_child_of_bash_and_not_bash_itself(sh: Sh) -> None:
    assert text(sh("bash -c 'kill -9 $$'")).startswith("bash: line 1: ")
