"""Nothing outlives a host, however it dies; and a host outlives its warden and its keepers.

With HANDRAIL_FULL=1 in the environment each way of dying is tried at 40 moments instead of 6.
"""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from tests.process.onlooker import BOUND_S, HIDING, TIMES, USERS, Host, Hosts, Seen, User, kill

# Measured on two cores kept busy by others: 0.13 s at most. What is still there after so long stays for ever.
GONE_S = 5.0
MODES = ["T2", "T1"]

STAYING = HIDING + "echo up; exec -a $T-main sleep 600"
STAY = 5


@pytest.fixture(params=list(USERS))
def user(request: pytest.FixtureRequest) -> User:
    return USERS[request.param]()


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, hosts: Hosts, user: User) -> str:
    """A tier that holds processes, where that user has it on this machine."""
    wanted: str = request.param
    if hosts.tier(user, wanted) != wanted:
        pytest.skip(f"{user.name} has no {wanted} here")
    return wanted


def code(line: str) -> str:
    return f"LINE = {line!r}.replace('{{tag}}', TAG)\n"


# ---------------------------------------------------------------- SIGKILL at any moment

FIRST_CALL = code(STAYING) + "say('go'); call(LINE)"
CALL_AFTER_CALL = (
    code(HIDING + "sleep 0.02")
    + """
say("go")
while True:
    call(LINE)
"""
)
# A child that neither C's nor Python's fork handlers could tell to let go of anything.
FORKED = (
    code(STAYING)
    + """
import ctypes

def fork_only():
    time.sleep(0.05)
    libc = ctypes.PyDLL(None)
    if libc.fork() == 0:
        while True:
            libc.pause()
    say("go")

call("true")
threading.Thread(target=fork_only).start()
call(LINE)
"""
)


@pytest.mark.parametrize("life", [FIRST_CALL, CALL_AFTER_CALL, FORKED], ids=["first call", "calls", "forked"])
def test_a_killed_host_leaves_nothing(hosts: Hosts, user: User, mode: str, life: str) -> None:
    for _ in range(TIMES):
        host = hosts.start(user, life, mode)
        assert host.line() == "go"
        moment = random.uniform(0, 0.3)
        time.sleep(moment)
        host.kill()
        forked = int(life == FORKED)
        assert host.survivors(GONE_S, forked) == [], f"killed after {moment:.3f} s"
        assert len(host.forked()) == forked
        host.clean()


# ---------------------------------------------------------------- ways to end

# A call on another thread, which nobody waits for.
IN_A_CALL = code(STAYING) + "threading.Thread(target=call, args=[LINE], daemon=True).start()\n"
ENDS = {
    "the program is through": "",
    "sys.exit": "sys.exit()",
    "os._exit": "os._exit(0)",
    # A process descriptor does not tell of an exec: the closed sockets must.
    "exec": "os.execvp('true', ['true'])",
}


@pytest.mark.parametrize("end", list(ENDS))
def test_a_host_that_ends_in_a_call_leaves_nothing(hosts: Hosts, user: User, mode: str, end: str) -> None:
    host = hosts.start(user, f"{IN_A_CALL}sys.stdin.readline()\n{ENDS[end]}", mode)
    host.wait_for_commands(STAY)
    host.go_on()
    host.end()
    assert host.survivors(GONE_S) == []


def test_a_host_that_becomes_another_program_ends_what_it_ran_before(hosts: Hosts, user: User, mode: str) -> None:
    host = hosts.start(user, f"{IN_A_CALL}sys.stdin.readline()\nos.execvp('sleep', ['sleep', '600'])", mode)
    host.wait_for_commands(STAY)
    host.go_on()
    assert host.survivors(GONE_S) == []
    assert host.popen.poll() is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_the_hosts_group_ends_the_host_and_all(
    hosts: Hosts, user: User, mode: str, number: signal.Signals
) -> None:
    host = hosts.start(user, code(STAYING) + "call(LINE, grace_s=0.5)", mode)
    host.wait_for_commands(STAY)
    os.killpg(host.pid, number)
    host.popen.wait(BOUND_S)
    assert host.survivors(GONE_S) == []


def test_ctrl_c_stops_the_call_and_not_the_warden(hosts: Hosts, user: User, mode: str) -> None:
    life = """
try:
    call(LINE, grace_s=0.5)
except KeyboardInterrupt:
    say("stopped")
told(call("echo again"))
sys.stdin.readline()
"""
    host = hosts.start(user, code(STAYING) + life, mode)
    host.wait_for_commands(STAY)
    wardens = host.wardens()[:-1]
    os.killpg(host.pid, signal.SIGINT)
    assert host.line() == "stopped"
    assert host.commands() == []
    assert host.line() == f"{mode} 0 None again None"
    assert {process.pid for process in wardens} <= {process.pid for process in host.seen()}
    host.go_on()
    host.end()
    assert host.survivors(GONE_S) == []


# ---------------------------------------------------------------- a warden or a keeper dies

TWO_CALLS = (
    code(STAYING)
    + """
told(call(LINE))
told(call("echo again"))
sys.stdin.readline()
"""
)


def kill_one(host: Host, which: int) -> Seen:
    host.wait_for_commands(STAY)
    return kill(host.wardens()[which])


@pytest.mark.parametrize("which", [0, 1, 2, -1], ids=["child", "second", "third", "keeper"])
def test_a_call_ends_with_its_warden_or_keeper_and_the_next_one_works(
    hosts: Hosts, user: User, mode: str, which: int
) -> None:
    if which > 0 and not (user.name == "ordinary" and mode == "T2"):
        pytest.skip("only an ordinary user's namespaces need more than one process")
    host = hosts.start(user, TWO_CALLS, mode)
    killed = kill_one(host, which)
    assert host.line() == f"{mode} 137 SIGKILL up None"
    assert host.commands() == []
    assert host.line() == f"{mode} 0 None again None"
    assert killed.pid not in {process.pid for process in host.seen()}
    host.go_on()
    host.end()
    assert host.survivors(GONE_S) == []


@pytest.mark.parametrize("which", ["warden", "keepers"])
def test_what_was_killed_between_calls_is_replaced(hosts: Hosts, user: User, mode: str, which: str) -> None:
    life = """
told(call("true"))
for _ in "123":
    sys.stdin.readline()
    told(call("echo again"))
"""
    host = hosts.start(user, life, mode)
    host.line()
    for _ in range(3):
        programs = host.seen()
        parents = {process.parent for process in programs}
        for process in programs:
            if process.parent == host.pid if which == "warden" else process.pid not in parents:
                kill(process)
        host.go_on()
        assert host.line() == f"{mode} 0 None again None"
    host.end()
    assert host.survivors(GONE_S) == []
