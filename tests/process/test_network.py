"""Processes that share a network namespace reach each other in it, and nothing else: tried with real sockets."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from handrail.process import network
from tests.process.onlooker import BOUND_S, USERS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has network namespaces")

# The warden's part: it may make namespaces, is told by a signal when a child ends, and waits for any child then.
PROGRAM = """
import ctypes, errno, json, os, select, signal, socket, sys
sys.path.append(sys.argv[1])
import network
sys.path.pop()

libc = ctypes.CDLL(None, use_errno=True)
told = {}

def tell(name, act, *arguments):
    try:
        value = act(*arguments)
    except OSError as failure:
        told[name] = errno.errorcode[failure.errno]
    else:
        told[name] = value if isinstance(value, (bool, int, str, list)) else "ok"

def finish():
    print(json.dumps(told), flush=True)
    os._exit(0)

def may_make_namespaces():
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        return
    if libc.unshare(0x10000000) != 0:
        told["skip"] = "needs user namespaces: " + os.strerror(ctypes.get_errno())
        finish()
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open("/proc/self/" + name, "w") as file:
            file.write(text)

def make():
    try:
        return network.make()
    except network.Refused as refused:
        told["refused"] = str(refused)
        finish()

def descriptors():
    return sorted(os.listdir("/proc/self/fd"))

def in_child(act):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return pid

def connect(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(5)
        one.connect(address)
        if kind == socket.SOCK_STREAM:
            return one.recv(100).decode()
"""


@pytest.fixture
def programs() -> Generator[Path]:
    """What every user can read; pytest's own directories are closed to others."""
    place = Path(tempfile.mkdtemp(prefix="handrail-"))
    try:
        place.chmod(0o755)
        shutil.copy(str(network.__file__), place)
        yield place
    finally:
        shutil.rmtree(place)


Run = Callable[[str], dict[str, Any]]


@pytest.fixture(params=list(USERS))
def run(request: pytest.FixtureRequest, programs: Path) -> Run:
    """Runs code after PROGRAM as a user, and returns what it told."""
    user = USERS[request.param]()

    def run(code: str) -> dict[str, Any]:
        argv = [*user.prefix, user.python, "-I", "-S", "-B", "-c", PROGRAM + code + "\nfinish()\n", str(programs)]
        done = subprocess.run(
            argv, cwd="/", capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=BOUND_S
        )
        assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
        told: dict[str, Any] = json.loads(done.stdout)
        if "skip" in told:
            pytest.skip(told["skip"])
        return told

    return run


def test_a_server_of_one_process_answers_a_client_in_another(run: Run) -> None:
    told = run("""
may_make_namespaces()
shared, other = make(), make()
port, ready = os.pipe()

def serve():
    network.join(shared)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("::1", 0), family=socket.AF_INET6) as six:
        os.write(ready, f"{one.getsockname()[1]} {six.getsockname()[1]}".encode())
        for server in (one, six):
            with server.accept()[0] as client:
                client.send(b"answer")

server = in_child(serve)
four, six = map(int, os.read(port, 100).split())

def ask(network_fd, answer):
    if network_fd is not None:
        network.join(network_fd)
    tell("four", connect, socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", four))
    if told["four"] == "answer":
        tell("six", connect, socket.AF_INET6, socket.SOCK_STREAM, ("::1", six))
    os.write(answer, json.dumps(told).encode())

answers = {}
for name, network_fd in (("other", other), ("host", None), ("shared", shared)):
    reading, writing = os.pipe()
    os.waitpid(in_child(lambda: ask(network_fd, writing)), 0)
    answers[name] = json.loads(os.read(reading, 1000))
os.waitpid(server, 0)
told.update(answers)
""")
    nothing = {"four": "ECONNREFUSED"}
    assert told == {"shared": {"four": "answer", "six": "answer"}, "other": nothing, "host": nothing}


def test_nothing_outside_is_reached(run: Run) -> None:
    told = run("""
with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
    port = server.getsockname()[1]
    abstract.bind(f"\\0handrail-{os.getpid()}")
    abstract.listen()
    name = abstract.getsockname()
    tell("before", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port)))
    may_make_namespaces()
    network.join(make())
    tell("host", connect, socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port))
    tell("abstract", connect, socket.AF_UNIX, socket.SOCK_STREAM, name)
    tell("tcp", connect, socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80))
    tell("udp", connect, socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53))
    tell("tcp6", connect, socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80))
    tell("interfaces", lambda: [name for _, name in socket.if_nameindex() if name == "lo"])
    tell("routes", lambda: open("/proc/self/net/route").read().count("\\n"))
""")
    away = dict.fromkeys(("tcp", "udp", "tcp6"), "ENETUNREACH")
    assert told == {
        "before": "ok",
        "host": "ECONNREFUSED",
        "abstract": "ECONNREFUSED",
        **away,
        "interfaces": ["lo"],
        "routes": 1,  # the line that names the columns
    }


def test_the_process_that_makes_one_stays_where_it_is_and_leaves_nothing_open(run: Run) -> None:
    told = run("""
may_make_namespaces()
here, before = os.readlink("/proc/self/ns/net"), descriptors()
made = [make() for _ in range(20)]
tell("stays", lambda: os.readlink("/proc/self/ns/net") == here)
tell("different", lambda: len({os.fstat(fd).st_ino for fd in made}))
tell("inherited", lambda: [fd for fd in made if os.get_inheritable(fd)])
for fd in made:
    os.close(fd)
tell("left", lambda: descriptors() == before)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    told["children"] = "none"
""")
    assert told == {"stays": True, "different": 20, "inherited": [], "left": True, "children": "none"}


@pytest.mark.parametrize("way", ["wakeup", "ignored"])
def test_whoever_else_waits_for_children_does_no_harm(run: Run, way: str) -> None:
    told = run(
        f"way = {way!r}"
        """
may_make_namespaces()
if way == "ignored":  # the kernel collects children then, and there is none to wait for
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
else:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: os.waitpid(-1, os.WNOHANG))
    signal.siginterrupt(signal.SIGCHLD, True)
for _ in range(20):
    made = make()
    os.close(made)
told["made"] = 20
"""
    )
    assert told == {"made": 20}


def test_a_namespace_that_cannot_be_had_is_refused_in_one_sentence(run: Run) -> None:
    told = run("""
capabilities = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()  # none
assert libc.capset(*capabilities) == 0
before = descriptors()
try:
    network.make()
except network.Refused as refused:
    told["make"] = str(refused)
with open("/proc/self/ns/net") as own:
    try:
        network.join(own.fileno())
    except network.Refused as refused:
        told["join"] = str(refused)
tell("left", lambda: descriptors() == before)
""")
    assert told == {
        "make": "cannot make a network namespace: Operation not permitted",
        "join": "cannot enter the session's network namespace: Operation not permitted",
        "left": True,
    }


def test_a_child_that_ends_before_its_time_is_a_refusal(run: Run) -> None:
    told = run("""
network._enter_new = lambda: os._exit(7)
before = descriptors()
try:
    network.make()
except network.Refused as refused:
    told["make"] = str(refused)
tell("left", lambda: descriptors() == before)
""")
    assert told == {"make": "the process that was to make a network namespace ended without a word", "left": True}
