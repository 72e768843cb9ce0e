"""Programs that fork, close what is not theirs, or have hardly any room left, and what becomes of their calls."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from tests.process.onlooker import ANYBODY, NOBODY, Hosts, ordinary_user, tell

TIERS = ["T2", "T1", "T0"]
REFUSED = "125 None  The session belongs to the process that this one was forked from."


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest, hosts: Hosts) -> str:
    """A tier that this machine has."""
    wanted: str = request.param
    if hosts.tier(ANYBODY) < wanted:
        pytest.skip("not here")
    return wanted


# ---------------------------------------------------------------- forks

IN_A_CHILD = """
def in_a_child(work, *arguments):
    import signal
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        work(*arguments)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
"""


def test_a_forked_child_is_refused_and_its_parent_goes_on(hosts: Hosts, tier: str) -> None:
    life = f"""{IN_A_CHILD}
told(call("echo before"))
in_a_child(lambda: told(call("echo child")))
in_a_child(host.close)
told(call("echo after"))
"""
    said = tell(hosts, ANYBODY, life, tier)
    assert said[::2] == [f"{tier} 0 None before None", f"{tier} 0 None after None"]
    assert said[1].endswith(REFUSED)


def test_a_toolbox_in_a_forked_child_is_closed_and_its_parent_goes_on(hosts: Hosts, tier: str) -> None:
    life = f"""{IN_A_CHILD}
import tempfile
from handrail import Toolbox, allow_all
with tempfile.TemporaryDirectory() as place, Toolbox(
    place + "/", approver=allow_all, sandbox="best", state_dir=place + "-state"
) as box:
    def use():
        result = box.call("shell", {{"command": "echo hello"}})
        say(result.data.get("code"), result.data.get("output"), result.text.count("."))
    use()
    in_a_child(use)
    in_a_child(lambda: say(box.enforced.tier))
    in_a_child(box.close)
    use()
import shutil
shutil.rmtree(place + "-state")
"""
    assert tell(hosts, ANYBODY, life, tier) == ["None hello 0", "CLOSED None 1", tier, "None hello 0"]


def test_a_fork_at_any_moment_of_another_threads_call_holds_nobody_up(hosts: Hosts, tier: str) -> None:
    life = f"""{IN_A_CHILD}
def calls():
    for _ in range(3):
        told(call("sleep 0.05; echo thread"))

def use():
    say("child", host.enforced.tier, call("echo child").not_started)

for delay in (0, 0.002, 0.01, 0.03, 0.06, 0.1):
    thread = threading.Thread(target=calls)
    thread.start()
    time.sleep(delay)
    in_a_child(use)
    thread.join()
    host.close()
    host = LocalHost()
"""
    said = tell(hosts, ANYBODY, life, tier)
    of_threads = [line for line in said if not line.startswith("child ")]
    of_children = [line.split(" ", 2)[2] for line in said if line.startswith("child ")]
    assert of_threads == [f"{tier} 0 None thread None"] * 18
    assert of_children == [REFUSED.rpartition("  ")[2]] * 6


def test_forked_children_may_have_hosts_of_their_own(hosts: Hosts, tier: str) -> None:
    life = """
import multiprocessing

def work(number):
    global host
    host = LocalHost()
    told(call(f"echo {number}"))

told(call("echo parent"))
children = [multiprocessing.get_context("fork").Process(target=work, args=[n]) for n in range(3)]
for child in children:
    child.start()
for child in children:
    child.join()
    assert child.exitcode == 0
told(call("echo parent"))
"""
    said = tell(hosts, ANYBODY, life, tier)
    assert sorted(said[1:-1]) == [f"{tier} 0 None {number} None" for number in range(3)]
    assert [said[0], said[-1]] == [f"{tier} 0 None parent None"] * 2


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize("held", ["T2", "T1"])
def test_a_warden_outlives_the_thread_that_started_it(hosts: Hosts, held: str) -> None:
    if hosts.tier(ANYBODY) < held:
        pytest.skip("not here")
    life = """
first = threading.Thread(target=lambda: told(call("echo one")))
first.start()
first.join()
sys.stdin.readline()
told(call("echo two"))
sys.stdin.readline()
"""
    host = hosts.start(ANYBODY, life, held)
    assert host.line() == f"{held} 0 None one None"
    before = [process.pid for process in host.seen() if process.parent == host.pid]
    host.go_on()
    assert host.line() == f"{held} 0 None two None"
    assert [process.pid for process in host.seen() if process.parent == host.pid] == before
    host.go_on()
    host.end()
    assert host.survivors(5.0) == []


# ---------------------------------------------------------------- descriptors

FOREIGN = """
import socket, tempfile

def take_all():
    # Files and sockets on all the numbers that were closed.
    files = [tempfile.TemporaryFile() for _ in range(30)]
    pairs = [socket.socketpair() for _ in range(30)]
    return files, pairs

def check(files, pairs):
    for file in files:
        assert os.fstat(file.fileno()).st_size == 0
    for one, other in pairs:
        for end in (one, other):
            end.setblocking(False)
            try:
                end.recv(1)
            except BlockingIOError:
                continue
            raise AssertionError("somebody wrote into it, or closed its other end")

"""


def test_a_host_may_close_every_descriptor_and_use_the_numbers(hosts: Hosts, tier: str) -> None:
    life = f"""{FOREIGN}
def again():
    os.closerange(3, 4096)
    taken = take_all()
    told(call("(sleep 600 &); echo again"))
    check(*taken)
    return taken

told(call("echo before"))
first = again()
check(*first)
for thing in first[0] + [end for pair in first[1] for end in pair]:
    thing.detach() if hasattr(thing, "detach") else None
second = again()
pid = os.fork()
if pid == 0:
    check(*second)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
host.close()
check(*second)
"""
    assert tell(hosts, ANYBODY, life, tier) == [
        f"{tier} 0 None before None",
        f"{tier} 0 None again None",
        f"{tier} 0 None again None",
    ]


def test_a_host_may_close_some_descriptors_and_use_the_numbers(hosts: Hosts, tier: str) -> None:
    life = f"""{FOREIGN}
for first in range(3, 16):
    for last in range(first, 16, 3):
        host = LocalHost()
        call("true")
        os.closerange(first, last + 1)
        taken = take_all()
        ended = call("echo again")
        assert (ended.enforced.tier, ended.stdout.head) == ("{tier}", b"again\\n"), (first, last, ended)
        host.close()
        check(*taken)
        for thing in taken[0] + [end for pair in taken[1] for end in pair]:
            thing.close()
"""
    assert tell(hosts, ANYBODY, life, tier) == []


def test_a_toolbox_goes_on_after_that_too(hosts: Hosts, tier: str) -> None:
    life = f"""{FOREIGN}
from handrail import Toolbox, allow_all
place = tempfile.mkdtemp()
os.mkdir(place + "/work")
box = Toolbox(place + "/work", approver=allow_all, sandbox="best", state_dir=place + "/state")
def use():
    result = box.call("shell", {{"command": "echo hello"}})
    say(result.data.get("code"), result.data.get("output"))
use()
os.closerange(3, 4096)
taken = take_all()
use()
check(*taken)
box.close()
import shutil
shutil.rmtree(place)
"""
    assert tell(hosts, ANYBODY, life, tier) == ["None hello", "None hello"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_a_host_may_lack_its_standard_descriptors(hosts: Hosts, tier: str, closed: str) -> None:
    life = "say = lambda *words: os.write(9, (' '.join(map(str, words)) + '\\n').encode())\n"
    before = ("bash", "-c", f'exec 9>&1; exec "$@" {closed}', "bash")
    said = tell(hosts, ANYBODY, life + "told(call('echo one; echo two >&2')); told(call('exit 3'))", tier, before)
    assert said == [f"{tier} 0 None one", "two None", f"{tier} 3 None  None"]


# With k descriptors left, whatever k is, a call works or is refused; with room again, it works.
CRAMPED = """
import resource

def cramped(room):
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    full = []
    try:
        while True:
            full.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for fd in full[:room]:
        os.close(fd)
    told(call("echo cramped"))
    for fd in full[room:]:
        os.close(fd)

"""
NO_ROOM = "125 None  The system has no room for another process now; try again later."


def test_without_descriptors_a_call_is_refused_and_later_ones_work(hosts: Hosts, tier: str) -> None:
    life = f"""{CRAMPED}
told(call("echo before"))
for room in range(24):
    cramped(room)
    told(call("echo after"))
"""
    said = tell(hosts, ANYBODY, life, tier)
    assert said.pop(0) == f"{tier} 0 None before None"
    assert set(said[1::2]) == {f"{tier} 0 None after None"}
    assert {line.split(" ", 1)[1] for line in said[::2]} == {NO_ROOM, "0 None cramped None"}


@pytest.mark.parametrize("room", [0, 2, 4, 6, 8, 10, 12, 16])
def test_without_descriptors_for_a_warden_there_is_a_lower_tier_or_a_refusal(hosts: Hosts, room: int) -> None:
    said = tell(hosts, ANYBODY, f"{CRAMPED}cramped({room})\ntold(call('echo after'))")
    assert said[0].split(" ", 1)[1] in (NO_ROOM, "0 None cramped None")
    assert said[1].split(" ", 1)[1] == "0 None after None"


@pytest.mark.parametrize("room", range(8))
def test_without_processes_for_a_warden_there_is_a_lower_tier_or_a_refusal(hosts: Hosts, room: int) -> None:
    user = ordinary_user()
    # A user with no other processes than these, where the tests can be one.
    user = replace(user, prefix=tuple(word.replace(str(NOBODY), "61234") for word in user.prefix))
    life = f"""
import resource
threads = 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{{pid}}/status") as file:
            facts = dict(line.split(":", 1) for line in file)
    except OSError:
        continue
    if int(facts["Uid"].split()[0]) == os.getuid():
        threads += int(facts["Threads"])
hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
resource.setrlimit(resource.RLIMIT_NPROC, (threads + {room}, hard))
told(call("echo cramped"))
resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
told(call("echo after"))
"""
    said = tell(hosts, user, life)
    assert said[0].split(" ", 1)[1] in (NO_ROOM, "0 None cramped None")
    assert said[1].split(" ", 1)[1] in (NO_ROOM, "0 None after None")


# ---------------------------------------------------------------- signals

COLLECTING = """
def collect(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""


@pytest.mark.parametrize("handling", ["signal.SIG_IGN", "collect"])
@pytest.mark.parametrize("held", ["T2", "T1"])
def test_a_host_may_collect_every_child_itself(hosts: Hosts, held: str, handling: str) -> None:
    life = f"""{COLLECTING}
import signal
signal.signal(signal.SIGCHLD, {handling})
told(call("(sleep 600 &); echo one; exit 3"))
sys.stdin.readline()
told(call("(sleep 600 &); echo two; exit 3"))
"""
    if hosts.tier(ANYBODY) < held:
        pytest.skip("not here")
    host = hosts.start(ANYBODY, life, held)
    assert host.line() == f"{held} 3 None one None"
    for process in host.seen():
        if process.parent == host.pid:
            os.kill(process.pid, signal.SIGKILL)
    assert host.survivors(5.0) == []
    host.go_on()
    assert host.end() == f"{held} 3 None two None\n"
    assert host.survivors(5.0) == []


SHORT = """
from handrail.process import slot, warden_process
slot._READY_S = slot._KILL_S = slot._SWEEP_S = warden_process._END_S = 0.3
for number in "1234":
    told(call(f"(sleep 600 &); echo {number}", timeout_s=1, grace_s=0.1))
    sys.stdin.readline()
"""


@pytest.mark.parametrize("which", ["warden", "keepers"])
@pytest.mark.parametrize("held", ["T2", "T1"])
def test_a_stopped_warden_is_replaced_and_a_stopped_keeper_let_on(hosts: Hosts, held: str, which: str) -> None:
    if hosts.tier(ANYBODY) < held:
        pytest.skip("not here")
    host = hosts.start(ANYBODY, SHORT, held)
    assert host.line() == f"{held} 0 None 1 None"
    for process in host.seen():
        if (process.parent == host.pid) == (which == "warden"):
            os.kill(process.pid, signal.SIGSTOP)
    said: list[str] = []
    for _ in range(3):
        host.go_on()
        said.append(host.line())
    host.go_on()
    host.end()
    assert host.survivors(5.0) == []
    assert said == [f"{held} 0 None {number} None" for number in "234"]
