"""Commands in slots, in both ways a keeper can own them: what they get, what it costs the slot, what ends with them."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handrail.process import tree
from handrail.process.answers import Answer, understood
from handrail.process.cancel import Cancel, Stop
from handrail.process.slot import UNCONFINED
from handrail.process.slot_child import run_in_slot
from handrail.process.slots import Slots
from handrail.process.supervise import OnOutput
from handrail.process.warden_process import NoWarden, warden
from handrail.values.completed import Completed
from handrail.values.confinement import Mode
from handrail.values.invocation import Invocation
from tests.process.kill_matrix import carrying

TIERS: dict[Mode, str] = {"namespace": "T2", "reaper": "T1"}
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}  # a host's own PATH may name closed directories
NUMBERS = count()


@pytest.fixture(params=list(TIERS))
def mode(request: pytest.FixtureRequest) -> Mode:
    wanted: Mode = request.param
    try:
        if warden(wanted).mode == wanted:
            return wanted
    except NoWarden:
        pass
    pytest.skip(f"no keeper of the kind {wanted!r} can be had here")


@pytest.fixture
def slots(mode: Mode) -> Generator[Slots]:
    with closing(Slots(lambda: UNCONFINED[mode])) as made:
        yield made


@pytest.fixture
def mark() -> str:
    """A number of seconds that nothing else on this machine sleeps for."""
    return f"71.{os.getpid()}{next(NUMBERS):04}"


def run(
    slots: Slots, *argv: str, cancel: Cancel | None = None, on_output: OnOutput | None = None, **options: Any
) -> Completed:
    options = {"cwd": "/", "env": ENV, "timeout_s": 30.0, **options}
    with closing(Cancel()) as never:
        return run_in_slot(slots, Invocation(argv=argv, **options), cancel or never, on_output)


def bash(slots: Slots, line: str, **options: Any) -> Completed:
    return run(slots, "bash", "-c", line, **options)


def said(slots: Slots, line: str, **options: Any) -> str:
    completed = bash(slots, line, **options)
    assert (completed.exit_code, completed.not_started) == (0, None), completed
    return completed.stdout.head.decode()


def keeper(slots: Slots, before: str = ":") -> str:
    """What tells one keeper from another, after `before` ran in its slot: its namespace, its pid, when it started."""
    return said(slots, f"{before}\nreadlink /proc/self/ns/pid; cut -d ' ' -f 1,22 /proc/$PPID/stat", merge=False)


def in_thread(call: Callable[[], Completed]) -> tuple[threading.Thread, list[Completed]]:
    results: list[Completed] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    return thread, results


def below() -> dict[int, str]:
    """All descendants of this process and their states."""
    found: dict[int, str] = {}
    for pid in tree.descendants():
        try:
            found[pid] = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            continue
    return found


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    latest = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > latest:
            return False
        time.sleep(0.01)
    return True


def host(tier: str, code: str, **environment: str) -> str:
    """What a host program of its own prints. `call(line, **options)` runs a line in bash there."""
    prelude = (
        "import os, signal, sys, threading, time\n"
        "from contextlib import closing\n"
        "from handrail.hosts.local import LocalHost\n"
        "from handrail.process.cancel import Cancel\n"
        "from handrail.values.invocation import Invocation\n"
        "def call(line, **options):\n"
        "    options = {'cwd': '/', 'env': {'PATH': os.environ['PATH']}, 'timeout_s': 30, **options}\n"
        "    with closing(Cancel()) as cancel:\n"
        "        ended = host.run(Invocation(argv=('bash', '-c', line), **options), cancel=cancel)\n"
        f"    assert ended.enforced.tier == {tier!r}, ended\n"
        "    return ended\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", f"{prelude}{code}"],
        env={**os.environ, "HANDRAIL_TIER": tier, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout


# ---------------------------------------------------------------- what a command gets


def test_a_command_has_three_descriptors_and_no_other(slots: Slots) -> None:
    line = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1], os.readlink('/proc/self/fd/0'))"
    for _ in range(3):
        ended = run(slots, sys.executable, "-c", line)
        assert ended.stdout.head == b"[0, 1, 2] /dev/null\n"


def test_a_command_leads_a_session_and_a_group_and_has_no_terminal(slots: Slots) -> None:
    code = "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0)); open('/dev/tty')"
    ended = run(slots, sys.executable, "-c", code, merge=False)
    assert ended.stdout.head == b"True\n"
    assert b"/dev/tty" in ended.stderr.head


def test_what_the_host_ignores_and_blocks_does_not_reach_a_command(mode: Mode) -> None:
    code = """
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGRTMIN):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
host = LocalHost()
ended = call("grep -E '^Sig(Blk|Ign):' /proc/self/status | tr -d '0\\t'; exit 7")
print(ended.exit_code, ended.stdout.head)
late = call("sleep 72.25", timeout_s=0.2, grace_s=20)
print(late.timed_out, late.signal, late.duration_s < 15)
"""
    assert host(TIERS[mode], code) == "7 b'SigBlk:\\nSigIgn:\\n'\nTrue SIGTERM True\n"


def test_the_umask_is_set_for_every_call(slots: Slots) -> None:
    before = os.umask(0o077)
    try:
        assert said(slots, "umask; umask 0") == "0022\n"
        assert said(slots, "umask") == "0022\n"
    finally:
        os.umask(before)


def test_a_namespace_has_a_process_table_of_its_own() -> None:
    probes = (["unshare"], ["unshare", "--user", "--map-current-user"])
    can = [
        subprocess.run([*probe, "-pf", "--mount-proc", "true"], check=False, stderr=subprocess.DEVNULL)
        for probe in probes
    ]
    if all(probe.returncode for probe in can):
        pytest.skip("no process table can be mounted here")
    with closing(Slots(lambda: UNCONFINED["namespace"])) as slots:
        assert said(slots, "cat /proc/$$/comm; echo $PPID") == "bash\n1\n"
        assert int(said(slots, "ls /proc | grep -c '^[0-9]'")) < 8


def test_nothing_of_the_hosts_environment_is_to_be_read_in_its_helpers(mode: Mode) -> None:
    code = """
host = LocalHost()
line = "p=$PPID; while [ $p -gt 0 ] && grep -aq 'warden[.]py' /proc/$p/cmdline; do echo helper; cat /proc/$p/environ; "
line += "p=$(awk '/^PPid/ {print $2}' /proc/$p/status); done"
print(call(line).stdout.head.decode())
"""
    told = host(TIERS[mode], code, HANDRAIL_HIDDEN="out of sight")
    assert "helper" in told
    assert "HANDRAIL_HIDDEN" not in told
    assert "PATH=" not in told


@pytest.mark.parametrize("size", [20_000, 70_000, 120_000])
def test_long_arguments_and_environments_arrive_whole(slots: Slots, size: int) -> None:
    env = {**ENV, **{f"V{n}": "ü" * (size // 2) for n in range(3)}}
    line = "echo ${#1} ${#2} $((${#V0} + ${#V1} + ${#V2}))"
    ended = run(slots, "bash", "-c", line, "bash", "a" * size, "b" * size, env=env)
    assert ended.stdout.head.decode().split() == [str(size), str(size), str(3 * (size // 2))]


def test_an_argument_too_long_for_the_system_is_refused_in_words(slots: Slots) -> None:
    ended = run(slots, "echo", "x" * (128 * 1024))
    assert (ended.exit_code, ended.stdout.total_bytes) == (126, 0)
    assert ended.not_started == "The command and its environment are together longer than the system allows."
    assert said(slots, "echo on") == "on\n"


@pytest.mark.parametrize(
    ("argv", "options", "code", "sentence"),
    [
        (("no-such-program-here",), {}, 127, "no-such-program-here: not found"),
        (("/etc/passwd",), {}, 126, "passwd: cannot be executed"),
        (("true", "nul\0"), {}, 125, "The command or its environment holds a NUL character."),
        (("true",), {"cwd": "/no/such"}, 125, "The working directory does not exist."),
    ],
)
def test_what_cannot_start_is_told_as_without_slots(
    slots: Slots, argv: tuple[str, ...], options: dict[str, Any], code: int, sentence: str
) -> None:
    ended = run(slots, *argv, **options)
    assert (ended.exit_code, ended.not_started) == (code, sentence)


def test_words_that_are_no_text_arrive_byte_for_byte(slots: Slots) -> None:
    word = os.fsdecode(b"\xff\xfe caf\xe9")
    ended = run(slots, "bash", "-c", 'printf %s "$1$V"', "bash", word, env={**ENV, "V": word})
    assert ended.stdout.head == b"\xff\xfe caf\xe9" * 2


def test_streams_stay_apart_where_asked(slots: Slots) -> None:
    ended = bash(slots, "echo one; echo two >&2; exit 3", merge=False)
    assert (ended.exit_code, ended.stdout.head, ended.stderr.head) == (3, b"one\n", b"two\n")


# ---------------------------------------------------------------- slots are used again


def test_a_slot_is_used_again_after_calls_that_left_nothing(slots: Slots, mode: Mode) -> None:
    first = keeper(slots)
    for line in ("true", "false || true", "(exit 3) & wait", "kill -9 $BASHPID & wait", "setsid sleep 0.01 & wait"):
        assert keeper(slots, line) == first
    assert bash(slots, "exit 3").enforced.tier == TIERS[mode]
    assert bash(slots, "kill -TERM $$").signal == "SIGTERM"
    assert keeper(slots) == first


def test_a_slot_is_not_used_again_after_something_was_left(slots: Slots, mark: str) -> None:
    first = keeper(slots)
    assert keeper(slots, f"setsid sleep {mark} >/dev/null 2>&1 &") == first
    assert carrying(mark) == []
    second = keeper(slots)
    assert second != first
    assert bash(slots, f"trap '' TERM; sleep {mark}", timeout_s=0.1, grace_s=0.1).timed_out
    assert carrying(mark) == []
    assert keeper(slots) not in {first, second}


def test_a_spare_is_made_while_a_command_runs(slots: Slots) -> None:
    idle: list[int] = []
    others: list[str] = []

    def look(_stream: str, _data: memoryview) -> None:
        idle.append(len(slots._idle))
        others.append(keeper(slots))

    assert bash(slots, "echo on; sleep 0.1", on_output=look).exit_code == 0
    assert idle == [1]
    assert [keeper(slots)] != others


def test_a_helper_that_outlives_the_shell_by_a_moment_does_not_cost_the_slot(slots: Slots) -> None:
    keepers = [keeper(slots, "exec > >(cat) 2>&1") for _ in range(10)]
    # Where the machine is so busy that the helper needs longer than the keeper's patience, its slot is not used again.
    assert len(set(keepers)) <= 3


def test_a_burst_leaves_few_slots(slots: Slots) -> None:
    with ThreadPoolExecutor(64) as threads:
        calls = [threads.submit(said, slots, f"sleep 0.2; echo {n}") for n in range(64)]
        assert [call.result() for call in calls] == [f"{n}\n" for n in range(64)]
    assert 1 <= len(slots._idle) <= 4


def test_many_calls_leave_processes_threads_and_descriptors_as_they_were(slots: Slots, mark: str) -> None:
    def held() -> tuple[int, int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count(), len(below())

    def call(n: int) -> None:
        line = f"sleep {mark} >/dev/null 2>&1 &" if n % 50 == 1 else "true"
        assert bash(slots, line, merge=bool(n % 2)).exit_code == 0
        if n % 100 == 2:
            assert bash(slots, f"sleep {mark}", timeout_s=0.05).timed_out

    for n in range(4):
        call(n)
    assert within(5, lambda: "Z" not in below().values())
    before = held()
    for n in range(500):
        call(n)
    assert within(5, lambda: held() == before), (before, held())
    assert "Z" not in below().values()
    assert carrying(mark) == []


# ---------------------------------------------------------------- what ends, and what does not


def test_ending_one_call_leaves_the_other_and_the_hosts_own_child(slots: Slots, mark: str) -> None:
    bystander = subprocess.Popen(["sleep", f"{mark}1"])
    try:
        with closing(Cancel()) as cancel:
            other, others = in_thread(lambda: bash(slots, "sleep 1; echo lived; exit 5"))
            one, ones = in_thread(lambda: bash(slots, f"setsid sleep {mark}2 & sleep {mark}2", cancel=cancel))
            assert within(10, lambda: len(carrying(f"{mark}2")) >= 2)
            cancel.request(Stop.KILL)
            one.join()
            assert ones[0].cancelled
            assert carrying(f"{mark}2") == []
        other.join()
        assert (others[0].exit_code, others[0].stdout.head) == (5, b"lived\n")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_closing_with_calls_in_flight_takes_less_than_a_second(mode: Mode, mark: str) -> None:
    slots = Slots(lambda: UNCONFINED[mode])
    cancels = [Cancel() for _ in range(6)]
    line = f"trap '' TERM; setsid sleep {mark} >/dev/null 2>&1 & sleep {mark}"
    running = [in_thread(lambda cancel=cancel: bash(slots, line, cancel=cancel)) for cancel in cancels]  # type: ignore[misc]
    assert within(20, lambda: len(carrying(mark)) >= 3 * len(cancels))
    began = time.monotonic()
    for cancel in cancels:
        cancel.request(Stop.KILL)
    slots.close()
    for thread, _ in running:
        thread.join()
    took = time.monotonic() - began
    assert carrying(mark) == []
    assert all(results[0].cancelled for _, results in running)
    assert slots._idle == []
    assert took < 1
    for cancel in cancels:
        cancel.close()


def test_a_host_that_ends_with_a_call_in_flight_takes_less_than_a_second(mode: Mode, mark: str) -> None:
    code = f"""
host = LocalHost()
call("true")
threading.Thread(target=call, args=("setsid sleep {mark} & sleep {mark}",), daemon=True).start()
time.sleep(0.3)
print(time.monotonic())
"""
    began = float(host(TIERS[mode], code))
    assert time.monotonic() - began < 1
    assert carrying(mark) == []


def test_of_much_that_was_left_some_is_named_and_all_is_ended(slots: Slots, mark: str) -> None:
    words = "ü" * 50
    ended = bash(slots, f"for n in {{1..150}}; do (exec -a {words} sleep {mark}) >/dev/null 2>&1 & done")
    assert (ended.exit_code, len(ended.left_behind)) == (0, 100)
    assert within(2, lambda: len(carrying(mark)) == 0)
    assert all(left.name for left in ended.left_behind)


PROTECTED = """
import os, signal, time
from handrail.process import tree

def child():
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        for fd in (1, 2):
            os.close(fd)
        signal.pause()
    return pid

wake = tree.wake_on_child()
roots = child()
os.setresuid(65534, 65534, 65534)
ours = child()
began = time.monotonic()
tree.kill_tree(wake)
print(roots, tree.children(os.getpid()) == [roots], time.monotonic() - began < 10)
"""


def test_what_has_become_another_users_does_not_hold_the_end_up() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become another user and leave a child behind that it cannot end")
    told = subprocess.run([sys.executable, "-c", PROTECTED], capture_output=True, text=True, check=True, timeout=30)
    pid, *facts = told.stdout.split()
    os.kill(int(pid), signal.SIGKILL)
    assert facts == ["True", "True"]


def test_a_call_goes_on_when_the_threads_of_others_end(mode: Mode) -> None:
    code = """
host = LocalHost()
def on_a_thread(line):
    thread = threading.Thread(target=lambda: ended.append(call(line)))
    thread.start()
    return thread
ended = []
on_a_thread("exit 1").join()  # it starts the helpers, and ends
longest = on_a_thread("sleep 0.5; exit 3")
on_a_thread("exit 2").join()
longest.join()
print([each.exit_code for each in ended], call("exit 4").exit_code)
"""
    assert host(TIERS[mode], code) == "[1, 2, 3] 4\n"


def test_a_command_that_kills_its_keeper_ends_with_it(mark: str) -> None:
    with closing(Slots(lambda: UNCONFINED["reaper"])) as slots:
        line = f"(trap '' TERM; setsid sleep {mark} >/dev/null 2>&1 &) ; sleep 0.1; kill -9 $PPID; sleep {mark}"
        ended = bash(slots, line)
        assert (ended.exit_code, ended.signal, ended.timed_out) == (128 + signal.SIGKILL, "SIGKILL", False)
        assert ended.duration_s < 10
        assert carrying(mark) == []
        assert said(slots, "echo on") == "on\n"


def test_a_command_that_stops_its_keeper_is_ended_at_its_limit(mark: str) -> None:
    with closing(Slots(lambda: UNCONFINED["reaper"])) as slots:
        for last in (f"sleep {mark}", "exit 0"):
            line = f"setsid sleep {mark} & trap 'echo polite; exit' TERM; kill -STOP $PPID; {last}"
            ended = bash(slots, line, timeout_s=0.5, grace_s=5, merge=False)
            assert ended.timed_out
            assert ended.stdout.head == (b"" if last == "exit 0" else b"polite\n")
            assert ended.duration_s < 5
            assert carrying(mark) == []
            assert said(slots, "echo on") == "on\n"


@pytest.mark.parametrize("name", ["KILL", "STOP", "TERM"])
def test_a_command_in_a_namespace_can_do_nothing_to_its_keeper(name: str) -> None:
    with closing(Slots(lambda: UNCONFINED["namespace"])) as slots:
        first = keeper(slots)
        if "\n1 " not in first:
            pytest.skip("no PID namespace can be had here")
        assert keeper(slots, f"kill -{name} $PPID; sleep 77.25 & kill -{name} -1") == first


HOSTILE = """
import ctypes, os, socket, sys
keeper = os.pidfd_open(os.getppid())
for number in range(64):
    fd = ctypes.CDLL(None).syscall(438, keeper, number, 0)  # pidfd_getfd
    if fd >= 0:
        try:
            conversation = socket.socket(fileno=fd)
            for nonsense in (b"[" * 100_000, b'{"ended": [1e999], "clean": 7}', b'{"left": [[[]]]}', b"\\xff", b"0"):
                conversation.send(nonsense)
            print("sent", flush=True)
        except OSError:
            pass
os.execvp("sleep", ["sleep", sys.argv[1]])
"""


def test_a_command_that_speaks_for_its_keeper_gains_nothing(slots: Slots, mark: str) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can take a descriptor out of a keeper")
    ended = run(slots, sys.executable, "-c", HOSTILE, mark, timeout_s=10)
    if b"sent" not in ended.stdout.head:
        pytest.skip("descriptors cannot be taken from other processes here")
    assert ended.exit_code is None
    assert not ended.timed_out
    assert carrying(mark) == []
    assert said(slots, "echo on") == "on\n"


# ---------------------------------------------------------------- several processes in one request


def ask(slots: Slots, *argvs: list[str]) -> tuple[dict[str, Any], bytes]:
    """A request's answer as the keeper gave it, and the output; the slot is given back."""
    slot = slots.acquire()
    reading, writing = os.pipe()
    request = {"do": "run", "argvs": argvs, "cwd": "/", "env": ENV, "umask": 0o022}
    with os.fdopen(reading, "rb") as output:
        slot.ask(request, [writing, writing])
        os.close(writing)
        answer = json.loads(slot.conversation.recv(100_000))
        slots.release(slot, clean=answer.get("clean") is True)
        return answer, output.read()


def test_processes_of_one_request_are_wired_by_pipes_and_all_told(slots: Slots) -> None:
    answer, output = ask(
        slots,
        ["bash", "-c", "readlink /proc/self/fd/0; seq 200000; exit 3"],
        ["bash", "-c", "cat; echo between; kill -TERM $$"],
        ["grep", "-e", "/dev/null", "-e", "^200000$", "-e", "between"],
    )
    assert answer["ended"] == [3, -signal.SIGTERM, 0]
    assert output == b"/dev/null\n200000\nbetween\n"


def test_the_first_of_a_pipeline_ends_when_its_reader_does(slots: Slots) -> None:
    answer, output = ask(slots, ["yes"], ["cat"], ["head", "-n", "1"])
    assert answer == {"ended": [-signal.SIGPIPE, -signal.SIGPIPE, 0], "clean": True}
    assert output == b"y\n"


def test_no_process_of_a_pipeline_holds_another_ones_pipe(slots: Slots) -> None:
    listing = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
    through = f"import sys; sys.stdout.write(sys.stdin.read()); sys.stdout.flush(); {listing}"
    python = [sys.executable, "-c"]
    _, output = ask(slots, [*python, listing], [*python, through], [*python, through])
    assert output == b"[0, 1, 2]\n" * 3


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_pipeline_of_which_one_cannot_start_leaves_nothing(slots: Slots, place: int, mark: str) -> None:
    argvs = [["sleep", mark] for _ in range(3)]
    argvs[place] = ["no-such-program-here"]
    answer, output = ask(slots, *argvs)
    assert answer["failed"] == errno.ENOENT
    assert output == b""
    assert carrying(mark) == []
    assert ask(slots, ["echo", "on"])[1] == b"on\n"


# ---------------------------------------------------------------- what a keeper says is not trusted

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
ANSWERS = st.dictionaries(st.sampled_from(["ended", "clean", "failed", "left", "place"]), ANYTHING)


@settings(deadline=None, database=None)
@given(st.binary() | ANSWERS.map(lambda answer: json.dumps(answer).encode()))
@example(b"[" * 100_000)
@example(b'{"ended": [' + b"9" * 4000 + b"]}")
@example(b'{"left": [' + b'[1, "\\ud800\\u001b[2J"],' * 5000 + b"[]]}")
def test_any_answer_is_understood_or_ignored(data: bytes) -> None:
    answer = understood(data)
    assert answer.status is None or -64 <= answer.status <= 255
    assert answer.failed is None or 0 <= answer.failed < 4096
    assert answer.left is None or len(answer.left) <= 100
    assert all(len(each.name) <= 80 and each.name.isprintable() and each.pid >= 0 for each in answer.left or ())


@pytest.mark.parametrize(
    ("data", "status", "clean"),
    [
        (b'{"ended": [0, 3], "clean": true}', 3, True),
        (b'{"ended": [-15], "clean": false}', -15, False),
        (b'{"ended": ["0"]}', None, False),
        (b'{"ended": []}', None, False),
        (b'{"clean": 1}', None, False),
        (b"", None, False),
    ],
)
def test_an_answer_that_tells_no_end_is_no_success(data: bytes, status: int | None, clean: bool) -> None:
    assert understood(data) == Answer(status=status, clean=clean)
