"""Where a command starts, what becomes of the directory it ends in, and what happens when nobody says."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from handrail.hosts.local import LocalHost
from handrail.process.cancel import Cancel, Stop
from handrail.shell.session import Session, ShellRun
from handrail.testing import FakeHost
from handrail.workspace import Workspace
from tests.shell.conftest import text

Sh = Callable[[str], ShellRun]

NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may enter and write everything")


def test_the_directory_passes_to_the_next_command(sh: Sh) -> None:
    first = sh("cd sub")
    second = sh("pwd; cd deep; exit 3")
    assert (first.cwd_before, first.cwd) == (".", "sub")
    assert text(second).endswith("/sub\n")
    assert (second.completed.exit_code, second.cwd_before, second.cwd) == (3, "sub", "sub/deep")
    assert (second.refused, second.vanished, second.unreported) == (False, False, False)


def test_variables_functions_and_options_do_not_pass(sh: Sh) -> None:
    sh("x=1; export y=2; f() { :; }; set -u; shopt -s extglob")
    assert text(sh('echo "[$x$y]"; declare -F f; shopt -q extglob || echo off')) == "[]\noff\n"


def test_a_link_is_kept_as_what_it_leads_to(sh: Sh, root: Path) -> None:
    (root / "link").symlink_to("sub")
    assert sh("cd link").cwd == "sub"


@pytest.mark.parametrize("way", ["cd /", "cd ..", 'cd "$PWD-evil"', "cd out", "cd sub/../.."])
def test_a_directory_outside_is_refused_and_the_old_one_stands(way: str, sh: Sh, root: Path) -> None:
    root.with_name(root.name + "-evil").mkdir()
    (root / "out").symlink_to("/")
    ran = sh(f"{way} && pwd -P && echo moved")
    assert ran.completed.exit_code == 0
    assert "moved" in text(ran)
    assert (ran.cwd, ran.refused, ran.unreported) == (".", True, False)
    assert not sh("true").refused


def test_a_directory_that_vanished_is_told_once_and_the_root_taken(sh: Sh, root: Path) -> None:
    sh("cd sub/deep")
    (root / "sub" / "deep").rmdir()
    ran = sh("pwd")
    assert (text(ran), ran.cwd_before, ran.cwd, ran.vanished) == (f"{root}\n", ".", ".", True)
    assert not sh("true").vanished


def test_a_directory_that_became_a_file_counts_as_vanished(sh: Sh, root: Path) -> None:
    sh("cd sub/deep")
    (root / "sub" / "deep").rmdir()
    (root / "sub" / "deep").touch()
    assert sh("true").vanished


def test_a_directory_that_leads_outside_by_now_counts_as_vanished(sh: Sh, root: Path, tmp_path: Path) -> None:
    sh("cd sub/deep")
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (root / "sub").rename(root / "old")
    (root / "sub").symlink_to(tmp_path / "elsewhere")
    ran = sh("pwd")
    assert (text(ran), ran.vanished) == (f"{root}\n", True)


def test_a_directory_that_leads_elsewhere_inside_by_now_is_followed(sh: Sh, root: Path) -> None:
    sh("cd sub/deep")
    (root / "sub").rename(root / "old")
    (root / "sub").symlink_to("old")
    ran = sh("pwd")
    assert (text(ran), ran.cwd_before, ran.vanished) == (f"{root}/old/deep\n", "old/deep", False)


def test_a_directory_removed_by_the_command_in_it_is_missed_by_the_next(sh: Sh) -> None:
    ran = sh("mkdir gone && cd gone && rmdir ../gone")
    assert (ran.completed.exit_code, ran.cwd, ran.unreported) == (0, ".", False)
    sh("cd sub/deep")
    assert not sh("rmdir ../deep").unreported
    assert sh("true").vanished


@NOT_ROOT
def test_a_directory_that_cannot_be_entered_counts_as_vanished(sh: Sh, root: Path) -> None:
    sh("cd sub; chmod 0 .")
    ran = sh("pwd")
    (root / "sub").chmod(0o700)
    assert (text(ran), ran.vanished) == (f"{root}\n", True)


@pytest.mark.parametrize("name", ['it\'s a "dir"\nline2', "ends in newline\n\n", "-rf", "$HOME `x` \\", "ü\t*"])
def test_a_directory_may_have_any_name(name: str, sh: Sh, root: Path) -> None:
    (root / name).mkdir()
    (root / "name").write_text(name)
    ran = sh("IFS= read -r -d '' n <name; cd -- \"$n\"")
    assert ran.cwd == name
    assert sh("pwd >../pwd").completed.exit_code == 0
    assert (root / "pwd").read_text() == f"{root}/{name}\n"


def test_a_name_may_hold_bytes_that_are_no_text(sh: Sh, root: Path) -> None:
    ran = sh("mkdir $'caf\\xe9' && cd $'caf\\xe9'")
    assert os.fsencode(ran.cwd) == b"caf\xe9"
    assert sh("touch here").completed.exit_code == 0
    assert os.path.exists(os.path.join(os.fsencode(root), b"caf\xe9", b"here"))


def test_a_timeout_keeps_the_previous_directory(session: Session) -> None:
    ran = session.run("cd sub; trap 'exit 0' TERM; sleep 30", timeout_s=0.3, grace_s=0.5)
    assert (ran.completed.timed_out, ran.cwd, ran.unreported) == (True, ".", False)


def test_a_cancelled_command_keeps_the_previous_directory(session: Session, root: Path) -> None:
    with closing(Cancel()) as cancel:

        def once_it_runs() -> None:
            while not (root / "runs").exists():
                time.sleep(0.01)
            cancel.request(Stop.KILL)

        thread = threading.Thread(target=once_it_runs)
        thread.start()
        ran = session.run("cd sub; touch ../runs; sleep 30", timeout_s=20, cancel=cancel)
        thread.join()
    assert (ran.completed.cancelled, ran.cwd, ran.unreported) == (True, ".", False)


@pytest.mark.parametrize(
    "command",
    [
        "cd sub; exec true",
        "cd sub; unset __handrail_fifo",
        "cd sub; builtin trap - EXIT",
        "cd sub; set -o posix; trap : EXIT",
        'cd sub; rm -- "$__handrail_fifo"',
    ],
)
def test_a_bash_that_does_not_say_where_it_ended_is_told(command: str, sh: Sh) -> None:
    ran = sh(command)
    assert (ran.completed.exit_code, ran.cwd, ran.unreported) == (0, ".", True)


def test_a_death_by_signal_needs_no_word_about_the_directory(sh: Sh) -> None:
    ran = sh("cd sub; kill -9 $$")
    assert (ran.completed.signal, ran.cwd, ran.unreported) == ("SIGKILL", ".", False)


@pytest.mark.parametrize(
    "lie",
    [
        "/",
        "/etc\\n",
        "",
        "\\n",
        "sub\\n",
        "../../etc",
        "$PWD/nothing",
        "$PWD/file",
        "$PWD/out",
        "$PWD-evil",
        "\\377\\376",
        "$PWD/sub\\0/etc",
    ],
)
def test_a_forged_report_leads_at_most_to_a_directory_inside(lie: str, sh: Sh, session: Session, root: Path) -> None:
    (root / "file").touch()
    (root / "out").symlink_to("/etc")
    root.with_name(root.name + "-evil").mkdir()
    sh(f'printf "{lie}\\0" >"$__handrail_fifo"; exec true')
    assert session.cwd in {".", "sub"}
    assert text(sh("pwd -P")).startswith(str(root))


def test_a_forged_report_of_a_directory_inside_is_taken(sh: Sh) -> None:
    assert sh('printf "%s\\n\\0" "$PWD/sub" >"$__handrail_fifo"; exec true').cwd == "sub"


def test_a_torn_report_is_none(sh: Sh) -> None:
    ran = sh('printf "%s\\n" "$PWD/sub" >"$__handrail_fifo"; exec true')
    assert (ran.cwd, ran.unreported) == (".", True)


def test_a_report_is_read_to_a_bound_while_others_go_on_writing(sh: Sh) -> None:
    flood = "(exec 1<>\"$__handrail_fifo\"; trap '' PIPE; exec yes) & sleep 0.2; exec true"
    ran = sh(flood)
    assert (ran.completed.exit_code, ran.cwd) == (0, ".")
    assert ran.completed.left_behind


def files_in(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if not path.is_dir()]


def test_nothing_of_a_call_is_left_in_the_session_directory_or_the_workspace(sh: Sh, root: Path, private: Path) -> None:
    sh("cd sub")
    sh("exec true")
    sh("# " + "x" * 200_000)
    sh('rm "$__handrail_fifo"; exec true')
    assert files_in(private) == []
    assert sorted(path.name for path in root.rglob("*")) == ["deep", "sub"]


def test_a_command_that_meddles_with_the_report_loses_only_that(sh: Sh, private: Path) -> None:
    ran = sh('rm "$__handrail_fifo"; mkdir "$__handrail_fifo"; cd sub; echo fine')
    assert (text(ran), ran.cwd, ran.unreported) == ("fine\n", ".", True)
    assert len(list((private / "io").iterdir())) == 1


def test_without_room_for_a_report_the_command_runs_all_the_same(
    root: Path, tmp_path: Path, environment: dict[str, str], host: LocalHost
) -> None:
    nowhere = Session(Workspace(root), host, str(tmp_path / "nowhere"), environment)
    ran = nowhere.run("cd sub; echo fine; exit 4", timeout_s=20)
    assert (text(ran), ran.completed.exit_code, ran.cwd, ran.unreported) == ("fine\n", 4, ".", True)


def test_without_room_for_a_long_command_it_is_not_started(
    root: Path, tmp_path: Path, environment: dict[str, str], host: LocalHost
) -> None:
    nowhere = Session(Workspace(root), host, str(tmp_path / "nowhere"), environment)
    ran = nowhere.run("# " + "x" * 200_000, timeout_s=20)
    assert ran.completed.exit_code == 125
    assert ran.completed.not_started == (
        "The command is too long for one argument, and there is no room to keep it in a file."
    )
    assert (ran.cwd, ran.unreported) == (".", False)


def test_without_bash_the_hosts_own_words_are_passed_on(
    root: Path, private: Path, tmp_path: Path, environment: dict[str, str], host: LocalHost
) -> None:
    session = Session(Workspace(root), host, str(private), {**environment, "PATH": str(tmp_path)})
    ran = session.run("true", timeout_s=20)
    assert (ran.completed.exit_code, ran.completed.not_started) == (127, "bash: not found")
    assert not ran.unreported


def test_an_environment_beyond_the_systems_limit_is_told(
    root: Path, private: Path, environment: dict[str, str], host: LocalHost
) -> None:
    session = Session(Workspace(root), host, str(private), {**environment, "BIG": "x" * 200_000})
    ran = session.run("true", timeout_s=20)
    assert ran.completed.not_started is not None
    assert ran.completed.exit_code == 126
    assert files_in(private) == []


def test_a_workspace_that_is_gone_is_told_and_does_not_count_as_vanished(sh: Sh, root: Path) -> None:
    (root / "sub" / "deep").rmdir()
    (root / "sub").rmdir()
    root.rmdir()
    ran = sh("true")
    assert ran.completed.not_started is not None
    assert not ran.vanished


def test_commands_at_once_end_in_the_directory_of_one_of_them(session: Session, root: Path) -> None:
    for name in ("a", "b"):
        (root / name).mkdir()
    runs: list[ShellRun] = []

    def go(name: str) -> None:
        runs.append(session.run(f"cd {root}/{name}; sleep 0.05; echo {name}", timeout_s=20))

    for _ in range(5):
        threads = [threading.Thread(target=go, args=(name,)) for name in "abab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.cwd in {"a", "b"}
    assert sorted(text(ran).strip() for ran in runs) == ["a"] * 10 + ["b"] * 10
    assert not any(ran.refused or ran.vanished or ran.unreported for ran in runs)


def test_a_command_that_stays_where_it_is_does_not_undo_anothers_move(session: Session, root: Path) -> None:
    waits = threading.Thread(
        target=lambda: session.run("touch waits; until [ -e go ]; do sleep 0.02; done", timeout_s=20)
    )
    waits.start()
    while not (root / "waits").exists():
        time.sleep(0.01)
    session.run("cd sub; touch ../go", timeout_s=20)
    waits.join()
    assert session.cwd == "sub"


def test_a_failing_host_leaves_no_file(root: Path, private: Path, environment: dict[str, str]) -> None:
    class Broken(FakeHost):
        def run(self, *_: object, **__: object) -> object:  # type: ignore[override]
            raise KeyboardInterrupt

    session = Session(Workspace(root), Broken(), str(private), environment)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        session.run("true", timeout_s=20)
    assert files_in(private) == []
