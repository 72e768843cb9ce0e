"""On a machine or in a program that gives less, a lower tier or a refusal in one sentence; never a hang."""

from __future__ import annotations

import os
import platform
import subprocess

import pytest

from handrail.errors import ConfigurationError
from handrail.hosts.local import LocalHost
from handrail.process import tree
from tests.process.onlooker import ANYBODY, USERS, Hosts, User, tell

TWO_CALLS = "told(call('echo one')); told(call('echo two'))"
# What leaves the group and the session; only a tier that owns its processes finds it.
LEAVING = "told(call(f\"(env -i setsid bash -c '(exec -a {TAG}-left sleep 600) >/dev/null 2>&1 & sleep 0.1')\"))"


@pytest.fixture(params=list(USERS))
def user(request: pytest.FixtureRequest) -> User:
    return USERS[request.param]()


def in_tier(tier: str) -> list[str]:
    return [f"{tier} 0 None one None", f"{tier} 0 None two None"]


# ---------------------------------------------------------------- which tier


@pytest.mark.parametrize("word", ["", "T4", "t2", " T1", "T", "0", "none"])
def test_a_tier_that_does_not_exist_is_a_configuration_error(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_TIER", word)
    with pytest.raises(ConfigurationError, match="T3, T2, T1, T0"):
        LocalHost()


def test_the_environment_can_only_lower_the_tier(hosts: Hosts, user: User) -> None:
    there_is = hosts.tier(user)
    for wanted in ("T3", "T2", "T1", "T0"):
        assert tell(hosts, user, TWO_CALLS, wanted) == in_tier(min(wanted, there_is))


# ---------------------------------------------------------------- what a machine may lack


def without(limit: str, rights: str) -> tuple[str, ...]:
    """In a user namespace of its own, whose limits bind nobody outside it."""
    words = ("unshare", "--user", "--map-root-user")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs a user namespace, to forbid others in it")
    return (*words, "sh", "-c", f'echo 0 > /proc/sys/user/{limit} && exec setpriv {rights} "$@"', "sh")


@pytest.mark.parametrize(
    ("limit", "rights"),
    [
        ("max_user_namespaces", "--bounding-set=-all --inh-caps=-all"),
        ("max_pid_namespaces", "--inh-caps=-all"),
    ],
)
def test_without_namespaces_a_subreaper_holds_the_processes(hosts: Hosts, limit: str, rights: str) -> None:
    before = without(limit, rights)
    namespace = "--pid" if "pid" in limit else "--user"
    assert subprocess.run([*before, "unshare", namespace, "true"], capture_output=True, check=False).returncode
    said = tell(hosts, ANYBODY, TWO_CALLS + ";" + LEAVING, before=before)
    assert said == [*in_tier("T1"), "T1 0 None  None"]


# A filter for system calls that answers those in `numbers` with an error, for this process and all it starts.
FORBID = """
import ctypes, struct

def forbid(numbers, error):
    step = lambda *fields: struct.pack("HBBI", *fields)
    program = step(0x20, 0, 0, 0)  # load the number of the call
    for number in numbers:
        program += step(0x15, 0, 1, number) + step(0x06, 0, 0, 0x00050000 | error)  # if it is that: an error
    program += step(0x06, 0, 0, 0x7FFF0000)  # else: go on
    text = ctypes.create_string_buffer(program)
    filter = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0, ctypes.get_errno()

"""
UNSHARE = {"x86_64": 272, "aarch64": 97}.get(platform.machine())
PIDFD_OPEN, PIDFD_SEND_SIGNAL = 434, 424
EPERM, ENOSYS = 1, 38


@pytest.mark.skipif(UNSHARE is None, reason="the number of that system call is not known here")
def test_where_a_filter_forbids_namespaces_a_subreaper_holds_the_processes(hosts: Hosts, user: User) -> None:
    said = tell(hosts, user, f"{FORBID}forbid([{UNSHARE}], {EPERM}); {TWO_CALLS}; {LEAVING}")
    assert said == [*in_tier("T1"), "T1 0 None  None"]


@pytest.mark.parametrize(
    "lack",
    [
        "del os.pidfd_open",
        f"{FORBID}forbid([{PIDFD_OPEN}], {ENOSYS})",
        f"{FORBID}forbid([{PIDFD_OPEN}, {PIDFD_SEND_SIGNAL}], {EPERM})",
    ],
)
def test_without_process_descriptors_commands_run_directly(hosts: Hosts, user: User, lack: str) -> None:
    assert tell(hosts, user, f"{lack}\n{TWO_CALLS}") == in_tier("T0")


def test_without_a_process_table_commands_run_directly(hosts: Hosts) -> None:
    before = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to hide /proc")
    assert tell(hosts, ANYBODY, TWO_CALLS, before=before) == in_tier("T0")


def test_without_the_kernels_lists_of_children_the_parents_are_asked(hosts: Hosts) -> None:
    elsewhere = hosts.with_source_changed("tree.py", "/children", "/no-such-list")
    said = tell(elsewhere, ANYBODY, f"{TWO_CALLS};{LEAVING};{LEAVING}", "T1")
    assert said == [*in_tier("T1"), *["T1 0 None  None"] * 2]


def test_the_parents_tell_the_same_children_as_the_kernel() -> None:
    with subprocess.Popen(["bash", "-c", "sleep 600 & sleep 600 & echo up; wait"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            below = tree.children(process.pid)
            assert len(below) == 2
            assert sorted(pid for pid, parent in tree.parents().items() if parent == process.pid) == sorted(below)
        finally:
            for pid in (*tree.children(process.pid), process.pid):
                os.kill(pid, 9)


# ---------------------------------------------------------------- which process the host is

ZOMBIES = """
def zombies():
    found = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[:2]
        except FileNotFoundError:
            continue
        found += state == "Z" and int(parent) == os.getpid()
    return found

for _ in range(5):
    told(call("(sleep 600 &) ; setsid sleep 600 & (sleep 0.01; exec sleep 0.01) & exit 3"))
say("zombies", zombies())
"""


def in_a_namespace(*options: str) -> tuple[str, ...]:
    words = ("unshare", "--pid", "--fork", "--kill-child", *options)
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a namespace")
    return words


@pytest.mark.parametrize("tier", ["T2", "T1"])
def test_a_host_may_be_pid_1(hosts: Hosts, tier: str) -> None:
    said = tell(hosts, ANYBODY, "assert os.getpid() == 1\n" + ZOMBIES, tier, in_a_namespace("--mount-proc"))
    assert said == [f"{tier} 3 None  None"] * 5 + ["zombies 0"]


@pytest.mark.parametrize(("wanted", "tier"), [("T2", "T2"), ("T1", "T0")])
def test_a_subreaper_needs_the_process_table_of_its_own_namespace(hosts: Hosts, wanted: str, tier: str) -> None:
    assert tell(hosts, ANYBODY, TWO_CALLS, wanted, in_a_namespace()) == in_tier(tier)


@pytest.mark.parametrize("tier", ["T2", "T1"])
def test_a_host_may_be_a_subreaper(hosts: Hosts, user: User, tier: str) -> None:
    code = "import ctypes\nassert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0\n" + ZOMBIES
    expected = min(tier, hosts.tier(user))
    assert tell(hosts, user, code, tier) == [f"{expected} 3 None  None"] * 5 + ["zombies 0"]


# ---------------------------------------------------------------- which interpreter the host has


@pytest.mark.parametrize(
    "path", ["''", "None", "'/no/such/python'", "'/'", "'/bin/false'", "'/bin/true'", "'/bin/cat'"]
)
def test_without_an_interpreter_commands_run_directly(hosts: Hosts, user: User, path: str) -> None:
    assert tell(hosts, user, f"sys.executable = {path}\n{TWO_CALLS}") == in_tier("T0")


def test_a_frozen_program_is_not_taken_for_an_interpreter(hosts: Hosts) -> None:
    code = f"sys.frozen = True\n{TWO_CALLS}"
    assert tell(hosts, ANYBODY, code) == in_tier("T0")


def test_an_interpreter_that_never_answers_is_ended(hosts: Hosts, user: User) -> None:
    code = f"""
from handrail.process import warden_process
warden_process._START_S = warden_process._END_S = 0.2
import tempfile
with tempfile.NamedTemporaryFile("w", delete=False) as file:
    file.write("#!/bin/bash\\nexec -a " + TAG + "-python sleep 600")
os.chmod(file.name, 0o755)
sys.executable = file.name
{TWO_CALLS}
os.unlink(file.name)
"""
    assert tell(hosts, user, code) == in_tier("T0")
