"""Recorded sessions of the shell tool, to the letter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import handrail as hr
from handrail.values.event import Chunk, Event, Lines
from handrail.values.tool import ToolResult


class Sessions:
    """Opens toolboxes over one directory and closes them at the end of the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._open: list[hr.Toolbox] = []

    def __call__(self, **options: Any) -> hr.Toolbox:
        box = hr.Toolbox(self.root, approver=hr.allow_all, sandbox="best", **options)
        self._open.append(box)
        return box

    def close(self) -> None:
        for box in self._open:
            box.close()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Sessions]:
    (tmp_path / "work").mkdir()
    sessions = Sessions(tmp_path / "work")
    yield sessions
    sessions.close()


def sh(box: hr.Toolbox, command: str, **more: Any) -> ToolResult:
    return box.call("shell", {"command": command, **more})


def test_merged_streams_in_the_order_written(session: Sessions) -> None:
    result = sh(session(), "echo one; echo two >&2; echo three; exit 3")
    assert result.text == "Exit code: 3\ncwd: /\none\ntwo\nthree"
    assert (result.is_error, result.data["output"], result.data["exit_code"]) == (True, "one\ntwo\nthree", 3)


def test_separate_streams(session: Sessions) -> None:
    result = sh(session(merge=False), "echo one; echo two >&2; echo three; exit 3")
    assert result.text == "Exit code: 3\ncwd: /\nstdout:\none\nthree\nstderr:\ntwo"
    assert (result.data["stdout"], result.data["stderr"]) == ("one\nthree", "two")
    assert "output" not in result.data


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("true", 0, ""),
        ("false", 1, ""),
        (r"printf 'a\nb\n' | grep -c z", 1, "0"),
        ("no-such-program-here", 127, "bash: line 1: no-such-program-here: command not found"),
        ("if then", 2, "bash: -c: line 1: syntax error near unexpected token `then'"),
        ("kill -TERM $$", 143, ""),
    ],
)
def test_codes(session: Sessions, command: str, code: int, says: str) -> None:
    result = sh(session(), command)
    assert result.data["exit_code"] == code
    assert result.text.startswith(f"Exit code: {code}\ncwd: /\n")
    assert result.data["output"].startswith(says)
    assert result.is_error == (code != 0)
    assert "code" not in result.data


@pytest.mark.parametrize(("trap", "name"), [("", "SIGTERM"), ("trap '' TERM; ", "SIGKILL")])
def test_a_stopped_sleep_says_which_signal_ended_it(session: Sessions, trap: str, name: str) -> None:
    result = sh(session(grace_s=0.3), f"{trap}sleep 30", timeout_s=0.3)
    assert result.text == "Timed out after 0.3 s; stopped.\ncwd: /\n(no output)"
    assert (result.data["exit_code"], result.data["signal"], result.data["timed_out"]) == (None, name, True)
    assert (result.is_error, result.data["code"]) == (True, "TIMED_OUT")


def test_lines_are_cut_to_head_and_tail(session: Sessions) -> None:
    result = sh(session(head_lines=3, tail_lines=3), "seq 1 5001")
    cut = '1\n2\n3\n[... 4995 lines omitted; read_output(id="out1", start_line=4) shows them ...]\n4999\n5000\n5001'
    assert result.text == f"Exit code: 0\ncwd: /\n{cut}"
    data = result.data
    assert (data["output"], data["truncated"], data["omitted_lines"], data["output_id"]) == (cut, True, 4995, "out1")


def test_one_long_line_is_cut_to_its_ends(session: Sessions) -> None:
    result = sh(session(max_chars=60), "head -c 5000 /dev/zero | tr '\\0' x; echo")
    mark = '[... 4940 characters omitted; read_output(id="out1", start_line=1) shows them ...]'
    assert result.data["output"] == f"{'x' * 30}\n{mark}\n{'x' * 30}"
    assert (result.data["truncated"], result.data["omitted_chars"]) == (True, 4940)


def test_the_directory_is_carried_over(session: Sessions) -> None:
    (session.root / "src/main/java").mkdir(parents=True)
    box = session()
    seen = [
        (result.data["exit_code"], result.data["cwd"], result.data["output"])
        for result in (
            sh(box, command)
            for command in (
                "cd src",
                "ls",
                "cd main/java && pwd",
                "cd ../..; exit 4",
                "cd /tmp",
                "cd no-such-dir",
            )
        )
    ]
    assert seen == [
        (0, "src", ""),
        (0, "src", "main"),
        (0, "src/main/java", f"{session.root}/src/main/java"),
        (4, "src", ""),
        (0, "src", ""),
        (1, "src", "bash: line 1: cd: no-such-dir: No such file or directory"),
    ]


def test_a_directory_outside_is_refused_in_words(session: Sessions) -> None:
    (session.root / "src").mkdir()
    box = session()
    sh(box, "cd src")
    note = "note: the command ended outside the workspace; the next one starts in /src"
    assert sh(box, "cd /tmp").text == f"Exit code: 0\ncwd: /src\n{note}\n(no output)"


def test_a_vanished_directory_is_told_once(session: Sessions) -> None:
    box = session()
    sh(box, "mkdir gone && cd gone")
    sh(box, "rmdir ../gone")
    first, second = sh(box, "echo on"), sh(box, "echo on")
    note = "note: the previous working directory is gone; this command started in /"
    assert first.text == f"Exit code: 0\ncwd: /\n{note}\non"
    assert second.text == "Exit code: 0\ncwd: /\non"


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("read -p 'Password: ' x; echo \"rc=$?\"", 0, "rc=1"),
        ("cat; echo done", 0, "done"),
        (": < /dev/tty", 1, "bash: line 1: /dev/tty: No such device or address"),
    ],
)
def test_nobody_answers_and_nothing_waits(session: Sessions, command: str, code: int, says: str) -> None:
    result = sh(session(), command, timeout_s=20)
    assert (result.data["exit_code"], result.data["output"]) == (code, says)


PROGRESS = r"for i in 1 50 100; do printf '\rDownloading %3d%%' $i; done; printf '\rDownloaded 100%%  \n'"
COLOURS = r"printf '\033[32mPASS\033[0m test_one\n\033[1;31mFAIL\033[0m test_two\n'"


@pytest.mark.parametrize(
    ("command", "cleaned", "raw"),
    [
        (PROGRESS, "Downloaded 100%  ", b"\rDownloading  50%\rDownloading 100%"),
        (COLOURS, "PASS test_one\nFAIL test_two", b"\x1b[32mPASS\x1b[0m test_one\n\x1b[1;31mFAIL"),
    ],
)
def test_the_report_is_clean_and_the_listener_saw_it_raw(
    session: Sessions, command: str, cleaned: str, raw: bytes
) -> None:
    events: list[Event] = []
    result = sh(session(listener=events.append), command)
    assert result.data["output"] == cleaned
    assert raw in b"".join(event.data for event in events if isinstance(event, Chunk))
    lines = [line for event in events if isinstance(event, Lines) for line in event.lines]
    assert lines == cleaned.split("\n")


def test_report_of_success_without_output(session: Sessions) -> None:
    assert sh(session(), "true").text == "Exit code: 0\ncwd: /\n(no output)"


def test_report_of_a_compiler_error(session: Sessions) -> None:
    (session.root / "app.py").write_text("def main(:\n    pass\n")
    result = sh(session(), "python3 app.py")
    assert result.text.startswith('Exit code: 1\ncwd: /\n  File "')
    assert result.text.endswith("SyntaxError: invalid syntax")


def test_report_of_grep_without_a_match(session: Sessions) -> None:
    (session.root / "notes.txt").write_text("nothing here\n")
    hint = "hint: grep exits with 1 when nothing matched; that is no failure"
    assert sh(session(), "grep needle notes.txt").text == f"Exit code: 1\ncwd: /\n{hint}\n(no output)"


def test_report_of_a_timeout_with_partial_output(session: Sessions) -> None:
    result = sh(session(), "echo step one; printf 'step two '; sleep 30", timeout_s=0.4)
    assert result.text == "Timed out after 0.4 s; stopped.\ncwd: /\nstep one\nstep two "


@pytest.mark.parametrize(
    ("command", "noted"),
    [("cd src; exec true", True), ("cd src; builtin trap - EXIT", True), ("exec true", False), ("exec echo on", False)],
)
def test_a_directory_that_was_not_told_is_noted_where_there_was_one_to_tell(
    session: Sessions, command: str, noted: bool
) -> None:
    (session.root / "src").mkdir()
    note = "note: the command did not tell in which directory it ended; the next one starts in /"
    assert (note in sh(session(), command).text.splitlines()) == noted
