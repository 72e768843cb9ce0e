"""The filter of system calls: its verdicts as a program, and what it does to a process that has entered it."""

from __future__ import annotations

import platform
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.sandbox import seccomp
from handrail.sandbox.seccomp import Sockets
from tests.process.confined import attempt, need_filter, room
from tests.process.onlooker import USERS, User, ordinary_user

ALLOWED, EPERM, EAFNOSUPPORT = "allowed", 1, 97
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
I386, ARM = 0x40000003, 0x40000028

# From the kernel's tables: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h.
ALWAYS_DENIED = {
    "x86_64": [425, 426, 427, 321, 298, 323, 248, 249, 250, 246, 320, 175, 313, 176, 304],
    "aarch64": [425, 426, 427, 280, 241, 282, 217, 218, 219, 104, 294, 105, 273, 106, 265],
}
LOOKS_INTO_OTHERS = {"x86_64": [101, 310, 311, 312, 438], "aarch64": [117, 270, 271, 272, 438]}
# read, execve, clone, clone3, mount, umount2, unshare, setns, mount_setattr, seccomp, prctl, fchmodat2, openat2, and
# one that no kernel has yet.
NEEDED = {
    "x86_64": [0, 59, 56, 435, 165, 166, 272, 308, 442, 317, 157, 452, 437, 900],
    "aarch64": [63, 221, 220, 435, 40, 39, 97, 268, 442, 277, 167, 452, 437, 900],
}
CALLS = {"x86_64": {"ioctl": 16, "socket": 41, "socketpair": 53}, "aarch64": {"ioctl": 29, "socket": 198}}
CALLS["aarch64"]["socketpair"] = 199

MACHINES = pytest.mark.parametrize("machine", list(AUDIT))
BOTH = pytest.mark.parametrize("sockets", ["all", "unix"])
HIGH = 7 << 32  # what the kernel cuts off an int


def verdict(program: bytes, call: tuple[int, int], *arguments: int) -> str | int:
    """Runs it as the kernel does: "allowed", or the error. `call` is the machine and the number."""
    words = [word & 0xFFFFFFFFFFFFFFFF for word in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<IIQ6Q", call[1], call[0], 0xDEADBEEF, *words)
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at, held = 0, 0
    while True:
        operation, yes, no, value = code[at]
        at += 1
        if operation == 0x20:  # load a word
            [held] = struct.unpack_from("<I", data, value)
        elif operation == 0x15:
            at += yes if held == value else no
        elif operation == 0x35:
            at += yes if held >= value else no
        else:
            assert operation == 0x06, "an instruction that this interpreter does not know"
            assert value & 0xFFFF0000 in (0x7FFF0000, 0x50000)
            return ALLOWED if value == 0x7FFF0000 else value & 0xFFFF


def made(machine: str, sockets: Sockets) -> bytes:
    program = seccomp.program(machine, sockets)
    assert program is not None
    return program


@pytest.mark.parametrize("machine", ["i686", "armv7l", "riscv64", "arm64", ""])
def test_there_is_no_program_for_other_machines(machine: str) -> None:
    assert seccomp.program(machine, "all") is None


@MACHINES
@BOTH
def test_what_reaches_the_kernel_or_past_the_filter_is_denied(machine: str, sockets: Sockets) -> None:
    program = made(machine, sockets)
    assert {n: verdict(program, (AUDIT[machine], n)) for n in ALWAYS_DENIED[machine]} == dict.fromkeys(
        ALWAYS_DENIED[machine], EPERM
    )


@MACHINES
@pytest.mark.parametrize(("sockets", "said"), [("all", ALLOWED), ("unix", EPERM)])
def test_a_look_into_other_processes_is_denied_where_no_namespace_hides_them(
    machine: str, sockets: Sockets, said: object
) -> None:
    program = made(machine, sockets)
    for number in LOOKS_INTO_OTHERS[machine]:
        assert verdict(program, (AUDIT[machine], number)) == said, number


@MACHINES
@BOTH
def test_exactly_the_named_calls_are_denied(machine: str, sockets: Sockets) -> None:
    program = made(machine, sockets)
    denied = {n for n in range(600) if verdict(program, (AUDIT[machine], n), 1) != ALLOWED}
    others = LOOKS_INTO_OTHERS[machine] if sockets == "unix" else []
    assert denied == {*ALWAYS_DENIED[machine], *others}
    assert denied.isdisjoint(NEEDED[machine])


@MACHINES
@BOTH
def test_calls_of_a_foreign_machine_are_denied(machine: str, sockets: Sockets) -> None:
    program = made(machine, sockets)
    for foreign in {I386, ARM, *AUDIT.values()} - {AUDIT[machine]}:
        assert {verdict(program, (foreign, n), 1) for n in range(600)} == {EPERM}


@BOTH
def test_calls_of_x32_are_denied(sockets: Sockets) -> None:
    program = made("x86_64", sockets)
    assert {verdict(program, (AUDIT["x86_64"], 0x40000000 + n), 1) for n in (0, 39, 41, 514, 0x3FFFFFFF)} == {EPERM}


@MACHINES
@BOTH
@pytest.mark.parametrize("above", [0, HIGH, -1 << 32])
def test_only_typing_into_the_terminal_is_denied_to_ioctl(machine: str, sockets: Sockets, above: int) -> None:
    program, call = made(machine, sockets), (AUDIT[machine], CALLS[machine]["ioctl"])
    requests = [0x5412, 0x541C, 0x5401, 0x5413, 0x540E, 0]  # TIOCSTI, TIOCLINUX, TCGETS, TIOCGWINSZ, TIOCSCTTY
    found = [verdict(program, call, 0, request | above) for request in requests]
    assert found == [EPERM, EPERM, ALLOWED, ALLOWED, ALLOWED, ALLOWED]


@MACHINES
@pytest.mark.parametrize("name", ["socket", "socketpair"])
@pytest.mark.parametrize("above", [0, HIGH, -1 << 32])
def test_sockets_are_those_that_a_slot_may_have(machine: str, name: str, above: int) -> None:
    call = (AUDIT[machine], CALLS[machine][name])
    for sockets, families, error in (("all", {1, 2, 10, 16}, EAFNOSUPPORT), ("unix", {1}, EPERM)):
        program = made(machine, "all" if sockets == "all" else "unix")
        found = {family: verdict(program, call, family | above, 1) for family in range(64)}
        assert found == {family: ALLOWED if family in families else error for family in range(64)}


@MACHINES
@BOTH
def test_every_path_through_the_program_ends_within_it(machine: str, sockets: Sockets) -> None:
    program = made(machine, sockets)
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    assert len(program) % 8 == 0
    for at, (operation, yes, no, _) in enumerate(code):
        ends = operation == 0x06
        assert ends or max(at + 1 + yes, at + 1 + no) < len(code)


# ---------------------------------------------------------------- by effect


@pytest.fixture(params=list(USERS))
def user(request: pytest.FixtureRequest) -> User:
    return USERS[request.param]()


@pytest.fixture
def place(user: User) -> Iterator[Path]:
    with room(user) as path:
        yield path


FAMILIES = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "packet": 17, "bluetooth": 31, "alg": 38, "vsock": 40}
OPEN_SOCKETS = """
for name, family in given["families"].items():
    tell(name, lambda: socket.socket(family, socket.SOCK_RAW if name in ("netlink", "packet") else
                                     socket.SOCK_SEQPACKET if name == "alg" else socket.SOCK_STREAM).close())
    tell(name + " with high bits", system, given["socket"], 7 << 32 | family, socket.SOCK_DGRAM, 0)
tell("pair", lambda: [one.close() for one in socket.socketpair()])
"""


def opened(user: User, place: Path, seccomp: str | None) -> dict[str, object]:
    given = {"families": FAMILIES, "socket": CALLS[platform.machine()]["socket"]}
    return attempt(user, place, {"seccomp": seccomp}, OPEN_SOCKETS, given=given)


def test_without_namespaces_there_are_unix_sockets_only(user: User, place: Path) -> None:
    found = opened(user, place, need_filter("unix"))
    assert (found.pop("unix"), found.pop("pair")) == ("ok", [None, None])
    assert found.pop("unix with high bits") == "ok"
    assert set(found.values()) == {"EPERM"}


def test_with_a_namespace_there_are_the_sockets_that_it_divides(user: User, place: Path) -> None:
    unfiltered, found = opened(user, place, None), opened(user, place, need_filter("all"))
    for name in ("unix", "inet", "inet6", "netlink", "pair"):
        assert found.pop(name) == unfiltered[name]
        assert name == "pair" or found.pop(f"{name} with high bits") == unfiltered[f"{name} with high bits"]
    assert set(found.values()) == {"EAFNOSUPPORT"}


CALL_THE_DENIED = """
import fcntl
page = ctypes.create_string_buffer(4096)
tell("io_uring_setup", system, 425, 1, page)
tell("keyctl", system, given["keyctl"], 0, -3, 0)
tell("TIOCSTI", fcntl.ioctl, os.open("/dev/null", os.O_RDWR), 0x5412, b"x")
tell("TIOCSTI with high bits", system, given["ioctl"], os.open("/dev/null", os.O_RDWR), 7 << 32 | 0x5412, page)
tell("TCGETS", fcntl.ioctl, os.open("/dev/null", os.O_RDWR), 0x5401, bytes(64))
tell("ptrace", system, given["ptrace"], 0, 0, 0, 0)  # PTRACE_TRACEME
"""


@BOTH
def test_a_process_under_the_filter_is_refused(user: User, place: Path, sockets: Sockets) -> None:
    if platform.machine() not in CALLS:
        pytest.skip("no numbers for this machine")
    machine = platform.machine()
    given = {"keyctl": ALWAYS_DENIED[machine][8], "ioctl": CALLS[machine]["ioctl"]}
    given["ptrace"] = LOOKS_INTO_OTHERS[machine][0]
    found = attempt(user, place, {"seccomp": need_filter(sockets)}, CALL_THE_DENIED, given=given)
    # /dev/null knows no ioctl: what comes from it is ENOTTY, so EPERM is the filter's.
    assert found == {
        "io_uring_setup": "EPERM",
        "keyctl": "EPERM",
        "TIOCSTI": "EPERM",
        "TIOCSTI with high bits": "EPERM",
        "TCGETS": "ENOTTY",
        "ptrace": "ok" if sockets == "all" else "EPERM",
    }


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x32 is of x86_64")
def test_a_call_by_the_numbers_of_x32_is_refused(user: User, place: Path) -> None:
    code = "tell('getpid', system, 0x40000000 | 39)"
    assert attempt(user, place, {"seccomp": need_filter("all")}, code) == {"getpid": "EPERM"}


@pytest.mark.parametrize(
    "argv",
    [
        ["strace", "-f", "-o", "/dev/null", "true"],
        ["gdb", "-nx", "-batch", "-return-child-result", "-ex", "run", "--args", "true"],
        ["node", "-e", "require('fs').promises.readFile('/etc/passwd').then(() => process.exit(0))"],
        ["java", "-version"],
        ["unshare", "--user", "--map-root-user", "--mount", "--net", "true"],
        ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true"],
        ["git", "--version"],
    ],
    ids=lambda argv: argv[0],
)
def test_ordinary_programs_work_under_the_filter_of_a_slot_with_namespaces(argv: list[str]) -> None:
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not here")
    user = ordinary_user()
    code = "tell('exit', lambda: subprocess.run(given, capture_output=True).returncode)"
    with room(user) as place:
        if attempt(user, place, {}, code, given=argv) != {"exit": 0}:
            pytest.skip(f"{argv[0]} does not work here without a filter either")
        assert attempt(user, place, {"seccomp": need_filter("all")}, code, given=argv) == {"exit": 0}


def test_loopback_works_under_the_filter_of_a_slot_with_namespaces(user: User, place: Path) -> None:
    code = """
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
tell("answer", lambda: (client.sendall(b"x"), server.accept()[0].recv(1).decode())[1])
"""
    assert attempt(user, place, {"seccomp": need_filter("all")}, code) == {"answer": "x"}
