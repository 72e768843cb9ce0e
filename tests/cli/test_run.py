from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.agent.demo import running_in

Handrail = Callable[..., subprocess.CompletedProcess[str]]
Started = Callable[..., subprocess.Popen[bytes]]

# Words that bash would make something else of, if it read them.
HARD_WORDS = [
    "a b",
    "it's",
    '"',
    "$HOME",
    "`id`",
    "*",
    "~",
    "{a,b}",
    "",
    "-n",
    "\\",
    "a\nb",
    "\t",
    "!!",
    "#",
    "ü",
    "x=1",
    "\x1b",
]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def nothing_runs_in(place: Path) -> bool:
    """Not by pid: what a command knows as its own may be the number of another process out here."""
    return not running_in(place.resolve())


def test_one_word_is_a_bash_line(handrail: Handrail) -> None:
    done = handrail("run", "for i in 1 2; do echo $i; done | tac")
    assert (done.returncode, done.stdout) == (0, "2\n1\n")


def test_several_words_are_an_exact_argv(handrail: Handrail) -> None:
    show = "import sys, json; print(json.dumps(sys.argv[1:]))"
    done = handrail("run", "--", sys.executable, "-c", show, *HARD_WORDS)
    assert (done.returncode, json.loads(done.stdout)) == (0, HARD_WORDS)


def test_bytes_that_are_no_text_reach_the_program(handrail: Handrail, tmp_path: Path) -> None:
    done = handrail("run", "--", "touch", b"caf\xe9 's", b"\x01\xff")
    assert done.returncode == 0
    assert sorted(os.listdir(os.fsencode(tmp_path))) == [b"\x01\xff", b"caf\xe9 's"]


@pytest.mark.parametrize("word", ["if", "cd", "ulimit", "[[", "A=1", "declare"])
def test_the_first_of_several_words_is_a_program_and_nothing_of_the_shells(handrail: Handrail, word: str) -> None:
    assert handrail("run", "--", word, "x", PATH="/usr/bin:/bin").returncode == 127


def test_options_behind_the_first_word_are_the_commands(handrail: Handrail) -> None:
    assert handrail("run", "printf", "%s ", "--json", "--help", "-x").stdout == "--json --help -x "


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 124", 124),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
        ("no-such-program-here", 127),
        (". /", 1),
        ("(", 2),
    ],
)
def test_the_exit_code_is_the_commands_own(handrail: Handrail, line: str, code: int) -> None:
    done = handrail("run", line)
    assert done.returncode == code
    assert f"handrail: Exit code: {code}\n" in done.stderr


def test_a_program_that_is_not_there_is_127_and_one_that_is_none_126(handrail: Handrail, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    assert handrail("run", "--", "no-such-program-here", "x").returncode == 127
    assert handrail("run", "--", "./data", "x").returncode == 126


def test_a_timeout_is_124_and_what_was_printed_is_there(handrail: Handrail) -> None:
    done = handrail("run", "--timeout", "0.5", "printf begun; sleep 60")
    assert (done.returncode, done.stdout) == (124, "begun")
    assert "handrail: Timed out after 0.5 s; stopped.\n" in done.stderr


def test_a_timeout_beyond_what_a_model_may_ask_for_is_the_persons_to_choose(handrail: Handrail) -> None:
    assert handrail("run", "--timeout", "86400", "true").returncode == 0


def test_the_ending_says_what_enforced_it_and_does_not_repeat_the_output(handrail: Handrail) -> None:
    done = handrail("run", "echo one; sleep 300 & echo two")
    assert done.stdout == "one\ntwo\n"
    status, cwd, note, held = done.stderr.splitlines()
    assert (status, cwd) == ("handrail: Exit code: 0", "handrail: cwd: /")
    assert note.startswith("handrail: note: still running at the end, and ended: sleep 300 (pid ")
    assert re.match(r"handrail: sandbox: tier T[123] \(processes: ", held)


def test_the_ending_of_an_exact_argv_has_no_notes_of_our_own_making(handrail: Handrail) -> None:
    assert "note" not in handrail("run", "--", "echo", "x").stderr


def test_two_streams_stay_apart(handrail: Handrail) -> None:
    done = handrail("run", "echo out; echo err >&2")
    assert done.stdout == "out\n"
    assert done.stderr.startswith("err\nhandrail: Exit code: 0\n")


def test_streams_that_go_to_one_place_keep_their_order(handrail: Handrail) -> None:
    done = handrail("run", "for i in 1 2 3; do echo o$i; echo e$i >&2; done", stderr=subprocess.STDOUT)
    assert done.stdout.startswith("o1\ne1\no2\ne2\no3\ne3\nhandrail: Exit code: 0\n")


def test_the_ending_begins_a_line_of_its_own(handrail: Handrail) -> None:
    assert handrail("run", "printf x", stderr=subprocess.STDOUT).stdout.startswith("x\nhandrail: Exit code: 0\n")


def test_bytes_pass_unchanged(started: Started) -> None:
    with started("run", r"printf '\377\0\033[31m\r\n\201'; head -c 3000000 /dev/zero") as process:
        out, _ = process.communicate(timeout=50)
    assert out == b"\xff\0\x1b[31m\r\n\x81" + bytes(3_000_000)


def test_output_comes_while_the_command_runs(started: Started, tmp_path: Path) -> None:
    with started("run", "echo first; until [ -e go ]; do sleep 0.02; done; echo second") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        (tmp_path / "go").touch()
        out, _ = process.communicate(timeout=50)
    assert (out, process.returncode) == (b"second\n", 0)


def test_a_reader_that_goes_away_ends_the_command_quietly(started: Started, tmp_path: Path) -> None:
    with started("run", "echo $$ > pid; while :; do echo x; sleep 0.01; done") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"x\n"
        process.stdout.close()
        assert process.wait(timeout=50) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert nothing_runs_in(tmp_path)


def test_a_full_disk_under_the_output_is_handrails_failure(handrail: Handrail, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = handrail("run", "echo $$ > pid; echo x; sleep 60", stdout=full)
    assert done.returncode == 125
    assert (
        done.stderr == "handrail: the output could not be passed on: No space left on device; the command was stopped\n"
    )
    assert nothing_runs_in(tmp_path)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_stops_the_command_first(started: Started, tmp_path: Path, number: signal.Signals, code: int) -> None:
    line = "trap 'echo tidied; exit 3' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.02; done"
    with started("run", line) as process:
        wait_until((tmp_path / "pid").exists)
        process.send_signal(number)
        out, err = process.communicate(timeout=50)
    assert (process.returncode, out) == (code, b"tidied\n")
    assert b"Traceback" not in err
    assert nothing_runs_in(tmp_path)


def test_json_is_one_object_of_the_facts_and_nothing_else(handrail: Handrail) -> None:
    done = handrail("run", "--json", "echo 'o\033[1mne'; echo two >&2; exit 3")
    facts = json.loads(done.stdout)
    assert (done.returncode, done.stderr, facts["exit_code"]) == (3, "", 3)
    assert facts["output"].splitlines() == ["one", "two"]
    assert facts["enforced"]["tier"] in ("T1", "T2", "T3")


def test_json_tells_a_timeout(handrail: Handrail) -> None:
    done = handrail("run", "--json", "--timeout", "0.3", "sleep 60")
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["code"], facts["exit_code"]) == (124, "TIMED_OUT", None)


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_refusal_is_125_and_says_why(handrail: Handrail, flags: list[str]) -> None:
    done = handrail("run", *flags, " ")
    assert done.returncode == 125
    assert "handrail: BAD_ARGUMENTS: " in done.stderr
    assert done.stdout == ("" if not flags else '{"code": "BAD_ARGUMENTS"}\n')


def test_the_workspace_is_named_by_option_or_variable(handrail: Handrail, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert handrail("run", "basename $PWD", HANDRAIL_WORKSPACE="one").stdout == "one\n"
    assert handrail("run", "--workspace", "two", "basename $PWD", HANDRAIL_WORKSPACE="one").stdout == "two\n"
    assert handrail("run", "basename $PWD", cwd=tmp_path / "one").stdout == "one\n"


def test_the_environment_follows_the_policy(handrail: Handrail) -> None:
    line = "echo ${APP_MODE-unset} ${GITHUB_TOKEN-unset} $TERM"
    host = {"APP_MODE": "x", "GITHUB_TOKEN": "y"}
    assert handrail("run", line, **host).stdout == "unset unset dumb\n"
    assert handrail("run", "--env", "deny", line, **host).stdout == "x unset dumb\n"


def test_login_reads_the_profile(handrail: Handrail, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bash_profile").write_text("FROM_PROFILE=yes\n")
    line = "echo ${FROM_PROFILE-no}"
    assert handrail("run", line, HOME=str(home)).stdout == "no\n"
    assert handrail("run", "--login", line, HOME=str(home)).stdout == "yes\n"


def test_no_input_reaches_the_command(started: Started) -> None:
    with started("run", "wc -c", stdin=subprocess.PIPE) as process:
        out, _ = process.communicate(b"secret", timeout=50)
    assert out == b"0\n"


def test_a_slow_reader_holds_the_command_up_and_misses_nothing(started: Started, tmp_path: Path) -> None:
    with started("run", "seq 1000000; touch done") as process:
        time.sleep(0.5)
        assert not (tmp_path / "done").exists(), "far more than a pipe holds is still to be read"
        out, _ = process.communicate(timeout=50)
    assert out == "".join(f"{n}\n" for n in range(1, 1_000_001)).encode()
    assert process.returncode == 0


def test_a_reader_that_never_reads_does_not_outlast_the_time_limit(started: Started) -> None:
    with started("run", "--timeout", "0.5", "yes") as process:
        assert process.wait(timeout=20) == 124
        out, err = process.communicate(timeout=50)
    assert out.startswith(b"y\ny\n")
    assert b"handrail: Timed out after 0.5 s; stopped.\n" in err
    assert b" bytes of output were not read in time and are missing above\n" in err


def test_a_reader_that_never_reads_does_not_hold_off_ctrl_c(started: Started, tmp_path: Path) -> None:
    with started("run", "echo $$ > pid; exec yes") as process:
        wait_until((tmp_path / "pid").exists)
        time.sleep(0.5)  # until it is held up
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        process.communicate(timeout=50)
    assert nothing_runs_in(tmp_path)


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_swallows_its_output_and_nothing_else(tmp_path: Path, closed: str) -> None:
    program = f"{sys.executable} -c 'from handrail.cli.main import main; main()'"
    line = f"{program} run 'echo out; echo err >&2; exit 3' {closed}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 3
    assert done.stdout == ("out\n" if closed == "2>&-" else "")
    assert done.stderr.splitlines()[:2] == ([] if "2>&-" in closed else ["err", "handrail: Exit code: 3"])


def test_a_limit_of_months_is_no_trouble(handrail: Handrail) -> None:
    done = handrail("run", "--timeout", "1e7", "echo on")
    assert (done.returncode, done.stdout) == (0, "on\n")
