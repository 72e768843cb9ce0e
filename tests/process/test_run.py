"""The bare engine against real processes: how commands end, what is captured, what is inherited."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from handrail.process import OutputLimits, run
from handrail.values.completed import Completed


def bash(line: str, **options: object) -> Completed:
    return run(["bash", "-c", line], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "code", "name"),
    [
        ("true", 0, None),
        ("exit 3", 3, None),
        ("no-such-program-here", 127, None),
        ("/etc/passwd", 126, None),
        ("if then", 2, None),
        ("kill -TERM $$", 143, "SIGTERM"),
        ("kill -KILL $$", 137, "SIGKILL"),
        ("kill -RTMIN+1 $$", 128 + signal.SIGRTMIN + 1, f"SIG{signal.SIGRTMIN + 1}"),
        ("exit 143", 143, None),
    ],
)
def test_exit_codes_and_signals_are_the_shells_own(line: str, code: int, name: str | None) -> None:
    ended = bash(line)
    assert (ended.exit_code, ended.timed_out, ended.cancelled) == (code, False, False)
    assert ended.signal == name


def test_merged_streams_keep_the_order_written() -> None:
    ended = bash("echo one; echo two >&2; echo three; exit 3")
    assert (ended.stdout.head, ended.stderr.head, ended.exit_code) == (b"one\ntwo\nthree\n", b"", 3)


def test_separate_streams_stay_apart() -> None:
    ended = bash("echo one; echo two >&2; echo three; exit 3", merge=False)
    assert (ended.stdout.head, ended.stderr.head, ended.exit_code) == (b"one\nthree\n", b"two\n", 3)


@pytest.mark.parametrize("merge", [True, False])
def test_ten_megabytes_to_both_streams_at_once_neither_block_nor_get_lost(merge: bool) -> None:
    ended = bash("head -c 10000000 /dev/zero & head -c 10000000 /dev/zero >&2 & wait", merge=merge, timeout_s=50)
    assert ended.exit_code == 0
    assert (ended.stdout.total_bytes, ended.stderr.total_bytes) == ((20_000_000, 0) if merge else (10_000_000,) * 2)


def test_head_and_tail_are_exact_and_the_rest_is_counted() -> None:
    ended = bash("seq 1 200000", output=OutputLimits(head_bytes=1000, tail_bytes=777))
    whole = b"".join(b"%d\n" % n for n in range(1, 200_001))
    assert (ended.stdout.head, ended.stdout.tail) == (whole[:1000], whole[-777:])
    assert (ended.stdout.total_bytes, ended.stdout.dropped_bytes) == (len(whole), len(whole) - 1777)


def test_output_up_to_the_limits_is_kept_whole() -> None:
    for size in (0, 1, 999, 1000, 1001, 1776, 1777):
        ended = bash(f"head -c {size} /dev/zero", output=OutputLimits(head_bytes=1000, tail_bytes=777))
        assert len(ended.stdout.head + ended.stdout.tail) == size
        assert ended.stdout.dropped_bytes == 0


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["no-such-program-here"], 127, "no-such-program-here: not found"),
        (["/no/such/program"], 127, "program: not found"),
        (["/etc/passwd"], 126, "passwd: cannot be executed"),
        (["/"], 126, "cannot be executed"),
        (["true", "nul\0"], 125, "The command or its environment holds a NUL character."),
        (["true", "x" * 200_000], 126, "longer than the system allows"),
    ],
)
def test_what_cannot_start_is_a_value_with_a_sentence(argv: list[str], code: int, says: str) -> None:
    ended = run(argv)
    assert ended.exit_code == code
    assert ended.not_started is not None
    assert says in ended.not_started
    assert "/no/such" not in ended.not_started


def test_a_missing_directory_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "gone", tmp_path / "file"):
        ended = run(["true"], cwd=place)
        assert ended.not_started == "The working directory does not exist."


def test_an_empty_argv_is_the_host_programs_mistake() -> None:
    with pytest.raises(ValueError, match="argv"):
        run([])
    with pytest.raises(ValueError, match="argv"):
        run("true")


def test_standard_input_is_the_null_device_and_there_is_no_terminal() -> None:
    ended = bash("readlink /proc/self/fd/0; cat; : < /dev/tty")
    assert ended.exit_code == 1
    assert ended.stdout.head.startswith(b"/dev/null\n")
    assert b"/dev/tty" in ended.stdout.head


def test_the_command_leads_a_session_and_a_group_of_its_own() -> None:
    ended = bash("ps -o pid=,pgid=,sid= -p $$ | tr -s ' '")
    pid, group, session = ended.stdout.head.split()
    assert pid == group == session
    assert int(session) != os.getsid(0)


def test_no_descriptor_of_the_host_leaks_in(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        ended = run([sys.executable, "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"])
    assert ended.stdout.head == b"[0, 1, 2]\n"


def test_the_umask_is_set_not_inherited(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        ended = bash("umask", cwd=tmp_path)
    finally:
        os.umask(before)
    assert ended.stdout.head == b"0022\n"


def test_the_environment_is_exactly_the_one_given() -> None:
    ended = run(["/usr/bin/env"], env={"ONLY": "this", "ÜML": "ü"})
    assert sorted(ended.stdout.head.decode().split()) == ["ONLY=this", "ÜML=ü"]


STATUS_LINES = "grep -E '^Sig(Blk|Ign):' /proc/self/status | tr -d '0\\t'"
HOSTILE_HOST = f"""
import signal, sys
from handrail.process import run
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
ended = run(["bash", "-c", {STATUS_LINES!r} + "; exit 7"], timeout_s=30)
assert ended.exit_code == 7, ended
sys.stdout.buffer.write(ended.stdout.head)
late = run(["sleep", "60.25"], timeout_s=0.2, grace_s=20)
assert late.timed_out and late.signal == "SIGTERM" and late.duration_s < 15, late
assert run(["no-such-program-here"]).exit_code == 127
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(run(["true"]).not_started)
"""


def test_ignored_and_blocked_signals_of_the_host_do_not_reach_the_command() -> None:
    ended = run([sys.executable, "-c", HOSTILE_HOST])
    assert ended.exit_code == 0, ended.stdout.head
    assert ended.stdout.head.decode() == (
        "SigBlk:\nSigIgn:\nThe host program ignores SIGCHLD, so no exit code could be read; set it to its default.\n"
    )


THIEF = """
import os, signal
from handrail.process import run
signal.signal(signal.SIGCHLD, lambda *_: os.waitpid(-1, 0))
ended = run(["bash", "-c", "sleep 0.2; echo out; exit 3"])
print(ended.exit_code, ended.signal, ended.stdout.head)
"""


def test_a_status_that_somebody_else_collected_is_not_read_as_success() -> None:
    ended = run([sys.executable, "-c", THIEF])
    assert ended.stdout.head == b"None None b'out\\n'\n"


def test_what_was_printed_before_the_limit_is_kept_an_unfinished_line_too() -> None:
    ended = bash("echo step one; printf 'step two '; sleep 61.25", timeout_s=0.3)
    assert (ended.exit_code, ended.timed_out, ended.signal) == (None, True, "SIGTERM")
    assert ended.stdout.head == b"step one\nstep two "


def test_what_ignores_sigterm_is_killed_after_the_grace_period() -> None:
    ended = bash("trap '' TERM; echo armed; while :; do sleep 0.1; done", timeout_s=0.3, grace_s=0.5)
    assert (ended.exit_code, ended.timed_out, ended.signal) == (None, True, "SIGKILL")
    assert ended.stdout.head == b"armed\n"
    assert ended.duration_s >= 0.8


def test_a_handler_speaks_within_the_grace_period_and_its_exit_0_is_still_a_timeout() -> None:
    ended = bash("trap 'sleep 0.2; echo cleaned up; exit 0' TERM; echo on; sleep 62.25 & wait", timeout_s=0.3)
    assert (ended.exit_code, ended.timed_out) == (None, True)
    assert ended.stdout.head == b"on\ncleaned up\n"


def test_a_child_gets_its_grace_though_the_main_process_went_at_once() -> None:
    line = "(trap 'sleep 0.3; echo child cleaned up; exit 0' TERM; while :; do sleep 0.05; done) & sleep 63.25"
    ended = bash(line, timeout_s=0.3, grace_s=20)
    assert ended.timed_out
    assert b"child cleaned up" in ended.stdout.head
    assert ended.duration_s < 15


def test_a_stopped_process_is_ended_without_being_let_on() -> None:
    ended = bash("echo before; kill -STOP $$; echo after", timeout_s=0.3, grace_s=20)
    assert (ended.timed_out, ended.stdout.head) == (True, b"before\n")
    assert ended.duration_s < 15


def names(ended: Completed) -> list[str]:
    """A child that was forked and has not become its program yet still carries the words of its shell."""
    return [re.sub(r"^bash -c (?:setsid )?(sleep [\d.]+) .*", r"\1", left.name) for left in ended.left_behind]


def test_a_background_child_that_holds_the_pipe_is_named_and_ended() -> None:
    ended = bash("sleep 64.25 & echo done")
    assert (ended.exit_code, ended.stdout.head) == (0, b"done\n")
    assert names(ended) == ["sleep 64.25"]
    assert ended.duration_s < 10


def test_a_background_child_without_the_pipe_is_named_and_ended() -> None:
    ended = bash("sleep 65.25 >/dev/null 2>&1 & echo done; exit 4")
    assert ended.exit_code == 4
    assert names(ended) == ["sleep 65.25"]


def test_a_child_in_a_session_of_its_own_is_found_by_the_pipe_it_holds() -> None:
    ended = bash("setsid sleep 66.25 & echo done")
    assert names(ended) == ["sleep 66.25"]


def test_a_chatty_child_cannot_hold_the_call_up() -> None:
    ended = bash("while :; do echo tick; sleep 0.02; done & echo foreground")
    assert ended.exit_code == 0
    assert ended.stdout.head.startswith(b"foreground\n")
    assert ended.duration_s < 10
    assert ended.left_behind


def test_a_helper_that_outlives_the_shell_by_a_moment_is_heard() -> None:
    for _ in range(5):
        assert bash("exec > >(cat) 2>&1; echo through cat").stdout.head == b"through cat\n"


# Told apart from that of another run of this suite on the same machine.
MARK = f"67.{os.getpid()}"


@pytest.mark.parametrize(
    "line",
    [
        f"sleep {MARK} | cat",
        f"set -m; sleep {MARK} & wait",
        f"timeout 3000 sleep {MARK}",
        f"(setsid sleep {MARK} &); sleep {MARK}",
        f"{sys.executable} -c \"import pty; pty.spawn(['sleep','{MARK}'])\"",
        f"sleep {MARK} & kill -STOP $!; wait",
    ],
)
def test_a_time_limit_ends_the_whole_tree(line: str) -> None:
    ended = bash(line, timeout_s=0.5)
    assert ended.timed_out
    assert survivors(MARK.encode()) == []


def test_what_has_nothing_to_do_with_the_command_lives_on() -> None:
    import subprocess

    bystander = subprocess.Popen(["sleep", "68.25"])
    try:
        assert bash("sleep 69.25", timeout_s=0.2).timed_out
        assert bash("sleep 69.25 & true").left_behind
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_many_calls_leave_nothing_in_the_host() -> None:
    def held() -> tuple[int, int]:
        import threading

        return len(os.listdir("/proc/self/fd")), threading.active_count()

    bash("true")
    before = held()
    for n in range(150):
        bash("true" if n % 3 else "sleep 70.25 & true", merge=bool(n % 2), timeout_s=30)
    assert held() == before


def test_memory_stays_bounded_whatever_the_output() -> None:
    script = (
        "import resource; from handrail.process import run\n"
        "run(['true']); a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "r = run(['bash', '-c', 'head -c 300000000 /dev/zero'], timeout_s=50)\n"
        "print(r.stdout.total_bytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - a)"
    )
    total, grown_kib = map(int, run([sys.executable, "-c", script]).stdout.head.split())
    assert total == 300_000_000
    assert grown_kib < 8 * 1024


def test_a_host_without_a_free_descriptor_is_told_so() -> None:
    script = (
        "import resource, os; from handrail.process import run\n"
        "run(['true']); soft = len(os.listdir('/proc/self/fd')) - 1\n"
        "for room in range(7):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (soft + room, 4096))\n"
        "    r = run(['true']); print(r.exit_code, r.not_started)\n"
        "    assert len(os.listdir('/proc/self/fd')) - 1 == soft if room > 1 else True\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); assert run(['true']).exit_code == 0\n"
    )
    ended = run([sys.executable, "-c", script])
    assert ended.exit_code == 0, ended.stdout.head
    assert b"125 The system has no room for another process now; try again later." in ended.stdout.head


def survivors(mark: bytes) -> list[int]:
    """Processes that carry `mark` in their command line a moment after the call; a killed one needs that to go."""
    deadline = time.monotonic() + 2
    while True:
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if mark in _words(pid)]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() if _state(pid) not in "ZX" and pid != os.getpid() else b""
    except OSError:
        return b""


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
