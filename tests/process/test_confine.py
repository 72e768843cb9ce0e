"""What a process can still do that has confined itself, as root and as a user; and when it refuses to go on."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.process import confine
from handrail.sandbox import landlock
from tests.process.confined import attempt, give, lowest_tier, need_abi, need_filter, outsider, room
from tests.process.onlooker import NOBODY, USERS, User

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(params=list(USERS))
def user(request: pytest.FixtureRequest) -> User:
    return USERS[request.param]()


@pytest.fixture
def place(user: User) -> Iterator[Path]:
    with room(user) as path:
        yield path


# ---------------------------------------------------------------- files

TOUCH = """
a, b = given + "/inside", given + "/outside"
tell("write inside", write, a + "/new")
tell("read outside", read, b + "/file")
tell("write outside", write, b + "/new")
tell("overwrite outside", write, b + "/file")
tell("truncate outside", os.truncate, b + "/file", 0)
tell("make a directory outside", os.mkdir, b + "/dir")
tell("unlink outside", os.unlink, b + "/file")
tell("rename out", os.rename, a + "/new", b + "/new")
tell("rename in", os.rename, b + "/file", a + "/file")
tell("exchange across", system, 316 if os.uname().machine == "x86_64" else 276, -100, (a + "/new").encode(),
     -100, (b + "/file").encode(), 2)
tell("link out", os.link, a + "/new", b + "/link")
tell("link in", os.link, b + "/file", a + "/link")
tell("write by a link", lambda: (os.symlink(b + "/file", a + "/symlink"), write(a + "/symlink")))
tell("a fifo outside", os.mkfifo, b + "/fifo")
tell("a socket outside", lambda: socket.socket(socket.AF_UNIX).bind(b + "/socket"))
os.makedirs(a + "/one"), os.makedirs(a + "/two")
tell("rename between inner directories", os.rename, a + "/new", a + "/two/new")
tell("write to /dev/null", write, "/dev/null")
tell("run a program", lambda: subprocess.run(["true"], check=True, stdin=subprocess.DEVNULL))
tell("chmod outside", os.chmod, b + "/file", 0o600)
tell("utime outside", os.utime, b + "/file", (0, 0))
"""


def test_nothing_outside_can_be_written(user: User, place: Path) -> None:
    file = place / "outside" / "file"
    file.write_text("as it was")
    give(file, user)
    found = attempt(user, place, lowest_tier(place), TOUCH, given=str(place))
    assert {name: found.pop(name) for name in list(found) if name.startswith(("chmod", "utime"))} == {
        # Landlock has no right for these: a gap of every slot without mounts of its own, and declared as such.
        "chmod outside": "ok",
        "utime outside": "ok",
    }
    good = ["write inside", "read outside", "rename between inner directories", "write to /dev/null", "run a program"]
    assert {name: found.pop(name) for name in good} == dict.fromkeys(good, "ok")
    assert [name for name, said in found.items() if said not in ("EACCES", "EXDEV", "EPERM")] == []
    assert len(found) == 13
    assert file.read_text() == "as it was"
    assert list((place / "outside").iterdir()) == [file]


def test_without_landlock_the_same_attempts_succeed(user: User, place: Path) -> None:
    (place / "outside" / "file").write_text("as it was")
    give(place / "outside" / "file", user)
    found = attempt(user, place, {"drop_capabilities": True}, TOUCH, given=str(place))
    assert (found["write outside"], found["truncate outside"], found["rename out"]) == ("ok", "ok", "ok")


def test_rights_of_directories_are_granted_to_no_file(user: User, place: Path) -> None:
    (place / "outside" / "file").write_text("")
    give(place / "outside" / "file", user)
    rules = landlock.ruleset(need_abi(1), writable=[str(place / "outside" / "file")], devices=["/dev/null"])
    code = "tell('file', write, given + '/outside/file'); tell('beside', write, given + '/outside/other')"
    found = attempt(user, place, {"landlock": rules.as_json()}, code, given=str(place))
    assert found == {"file": "ok", "beside": "EACCES"}


def test_a_path_that_is_not_there_is_granted_to_nobody(user: User, place: Path) -> None:
    rules = landlock.ruleset(need_abi(1), writable=[str(place / "inside" / "gone"), str(place / "inside")], devices=[])
    code = "tell('write', write, given + '/inside/gone')"
    assert attempt(user, place, {"landlock": rules.as_json()}, code, given=str(place)) == {"write": "ok"}


@pytest.mark.parametrize("path", ["inside/link", "inside/link/deeper"])
def test_a_grant_that_a_link_leads_elsewhere_is_refused(user: User, place: Path, path: str) -> None:
    (place / "outside" / "deeper").mkdir()
    (place / "inside" / "link").symlink_to(place / "outside")
    rules = landlock.ruleset(need_abi(1), writable=[str(place / path)], devices=[])
    found = attempt(user, place, {"landlock": rules.as_json()}, "", given=str(place))
    target = str(place / path).replace("inside/link", "outside")
    assert found == {"refused": f"cannot grant {place / path} by Landlock: it leads to {target}"}


# ---------------------------------------------------------------- other processes

REACH = """
import resource
tell("limit", resource.prlimit, given["pid"], resource.RLIMIT_NOFILE, (50, 50))
tell("connect", lambda: socket.socket(socket.AF_UNIX).connect("\\0" + given["name"]))
tell("signal", os.kill, given["pid"], 0)
tell("environ", read, "/proc/%d/environ" % given["pid"])
tell("mem", lambda: os.close(os.open("/proc/%d/mem" % given["pid"], os.O_RDWR)))
tell("own environ", lambda: subprocess.run([sys.executable, "-I", "-S", "-c",
     "open('/proc/self/environ').close()"], check=True, stdin=subprocess.DEVNULL))
"""


def reach(user: User, place: Path, inside: dict[str, Any]) -> dict[str, Any]:
    name = f"handrail-{place.name}"
    with outsider(user, name) as pid:
        return attempt(user, place, inside, REACH, given={"name": name, "pid": pid})


def test_no_process_outside_can_be_reached(user: User, place: Path) -> None:
    need_abi(6)
    assert reach(user, place, lowest_tier(place)) == {
        "connect": "EPERM",
        "signal": "EPERM",
        "environ": "EACCES",
        "mem": "EACCES",
        "own environ": "ok",
        # The kernel asks for the same user only, and a keeper needs the call for its own: a gap where no PID namespace
        # hides the others.
        "limit": "ok",
    }


def test_without_landlock_a_process_outside_can_be_reached(user: User, place: Path) -> None:
    found = reach(user, place, {})
    assert (found["connect"], found["signal"], found["environ"]) == ("ok", "ok", "ok")


def test_scopes_alone_hide_abstract_sockets_and_nothing_of_the_files(user: User, place: Path) -> None:
    rules = landlock.scope_only(need_abi(6))
    assert rules is not None
    found = reach(user, place, {"landlock": rules.as_json()})
    assert (found["connect"], found["signal"]) == ("EPERM", "ok")
    touch = "tell('outside', write, given + '/outside/new')"
    assert attempt(user, place, {"landlock": rules.as_json()}, touch, given=str(place)) == {"outside": "ok"}


def test_a_nested_sandbox_can_mount_where_only_scopes_are_set(user: User, place: Path) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bwrap is not here")
    rules = landlock.scope_only(need_abi(6))
    assert rules is not None
    code = """
tell("exit", lambda: subprocess.run(["bwrap", "--unshare-user", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "true"],
                                    capture_output=True).returncode)
"""
    if attempt(user, place, {"drop_capabilities": True}, code) != {"exit": 0}:
        pytest.skip("bwrap does not work here; for a root without capabilities it never does: user_namespaces(7)")
    inside = {"drop_capabilities": True, "landlock": rules.as_json(), "seccomp": need_filter("all")}
    assert attempt(user, place, inside, code) == {"exit": 0}


SOCKETS_WITHIN = """
server = socket.socket(socket.AF_UNIX); server.bind("\\0" + given); server.listen()
tell("connect", lambda: socket.socket(socket.AF_UNIX).connect("\\0" + given))
"""


def test_an_abstract_socket_of_the_slot_answers_within_it(user: User, place: Path) -> None:
    found = attempt(user, place, lowest_tier(place), SOCKETS_WITHIN, given=f"handrail-{place.name}")
    assert found == {"connect": "ok"}


# ---------------------------------------------------------------- rights

LOOK = """
def status(words):
    rows = dict(line.split(":", 1) for line in words.splitlines())
    return {name: rows[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")}
told["own"] = status(open("/proc/self/status").read())
told["child"] = status(subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout)
told["ids"] = [os.getresuid(), os.getresgid(), os.getgroups()]
at_end, dumpable = ctypes.c_int(), libc.prctl(3)
libc.prctl(2, ctypes.byref(at_end))
told["at end"], told["dumpable"] = at_end.value, dumpable
"""
NO_CAPABILITIES = dict.fromkeys(["CapInh", "CapPrm", "CapEff", "CapAmb"], "0" * 16) | {"NoNewPrivs": "1"}


def test_no_capability_is_left_to_the_process_or_to_what_it_starts(user: User, place: Path) -> None:
    found = attempt(user, place, {"drop_capabilities": True}, LOOK)
    for who in ("own", "child"):
        bounding = found[who].pop("CapBnd")
        assert found[who] == NO_CAPABILITIES
        assert bounding == "0" * 16 or user.name == "ordinary"  # who may not empty it cannot use it either
    assert found["dumpable"] == 0


def test_what_is_not_asked_for_is_left_alone(user: User, place: Path) -> None:
    before = "import resource; limits = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
    code = LOOK + "told['same'] = limits == resource.getrlimit(resource.RLIMIT_FSIZE)"
    found = attempt(user, place, {}, code, before=before)
    assert (found["own"]["NoNewPrivs"], found["at end"], found["same"]) == ("0", 0, True)


@needs_root
@pytest.mark.parametrize("at_end", [0, 9])
def test_another_owner_keeps_nothing_of_roots(at_end: int) -> None:
    user = USERS["root"]()
    before = f"libc.prctl(1, {at_end})\n"
    inside = {"owner": [NOBODY, NOBODY, [NOBODY, 1]], "drop_capabilities": True}
    with room(user) as place:
        found = attempt(user, place, inside, LOOK, before=before)
    assert found["own"] == NO_CAPABILITIES | {"CapBnd": "0" * 16}
    assert [sorted(ids) for ids in found["ids"]] == [[NOBODY] * 3, [NOBODY] * 3, [1, NOBODY]]
    assert found["at end"] == at_end, "a change of credentials takes it back"


def test_who_is_the_owner_already_needs_no_right_to_become_it(user: User, place: Path) -> None:
    uid, gid = (NOBODY, NOBODY) if user.prefix else (os.getuid(), os.getgid())
    groups = [] if user.prefix else os.getgroups()
    found = attempt(user, place, {"owner": [uid, gid, groups], "drop_capabilities": True}, LOOK)
    assert found["ids"] == [[uid] * 3, [gid] * 3, groups]


def test_an_ordinary_user_becomes_nobody_else() -> None:
    user = USERS["ordinary"]()
    with room(user) as place:
        found = attempt(user, place, {"owner": [0, 0, []]}, "")
    assert found == {"refused": "cannot become user 0: Operation not permitted"}


def test_a_setuid_program_gains_nothing(user: User, place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a setuid program of another user's")
    program = place / "id"
    shutil.copy(shutil.which("id") or "/usr/bin/id", program)
    other = 0 if user.prefix else NOBODY
    os.chown(program, other, other)
    program.chmod(0o6755)
    code = "tell('uid', lambda: subprocess.run([given, '-u'], capture_output=True, text=True).stdout.strip())"
    if attempt(user, place, {}, code, given=str(program)) != {"uid": str(other)}:
        pytest.skip("setuid programs have no effect here")
    own = str(NOBODY if user.prefix else 0)
    assert attempt(user, place, {"drop_capabilities": True}, code, given=str(program)) == {"uid": own}


WORK_ON = """
child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, start_new_session=True)
tell("children", lambda: open("/proc/self/task/%d/children" % os.getpid()).read().split() == [str(child.pid)])
tell("kill", os.kill, child.pid, signal.SIGKILL)
tell("ended", child.wait)
tell("descriptors", lambda: len(os.listdir("/proc/self/fd")) < 10)
tell("mounts", read, "/proc/self/mountinfo")
tell("name", lambda: os.close(os.pidfd_open(os.getpid())))
"""


def test_a_confined_keeper_can_do_its_work(user: User, place: Path) -> None:
    found = attempt(user, place, lowest_tier(place), WORK_ON)
    assert (found.pop("children"), found.pop("descriptors"), found.pop("ended")) == (True, True, -9)
    assert set(found.values()) == {"ok"}


def test_the_files_of_a_confined_keeper_are_closed_to_its_commands(user: User, place: Path) -> None:
    if user.name == "root":
        pytest.skip("root owns them")
    code = """
line = "import os; os.open('/proc/%d/mem' % os.getppid(), os.O_RDWR)"
ended = lambda: subprocess.run([sys.executable, "-I", "-S", "-c", line], capture_output=True, text=True).stderr
tell("mem", lambda: "PermissionError" in ended())
"""
    assert attempt(user, place, {}, code) == {"mem": True}


# ---------------------------------------------------------------- limits


def test_limits_are_soft_and_hard_and_never_above_what_was(user: User, place: Path) -> None:
    before = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (60, 80))\n"
    code = """
told["found"] = [resource.getrlimit(one) for one in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)]
"""
    for asked in (200, resource.RLIM_INFINITY):
        limits = [["RLIMIT_FSIZE", 1_000_000], ["RLIMIT_NOFILE", asked]]
        found = attempt(user, place, {"limits": limits, "drop_capabilities": True}, code, before=before)
        assert found == {"found": [[1_000_000, 1_000_000], [80, 80]]}


def test_an_unknown_limit_is_refused(user: User, place: Path) -> None:
    for name in ("RLIMIT_SPEED", "getrlimit"):
        found = attempt(user, place, {"limits": [[name, 1]]}, "")
        assert found == {"refused": f"there is no limit called {name}"}


# ---------------------------------------------------------------- what has to be there


def test_a_directory_that_must_be_writable_and_is_gets_no_new_name(user: User, place: Path) -> None:
    inside = {"must_write": [str(place / "inside")], "drop_capabilities": True}
    assert attempt(user, place, inside, "") == {}
    assert list((place / "inside").iterdir()) == []


@pytest.mark.parametrize("name", ["closed", "missing"])
def test_a_directory_that_cannot_be_written_is_refused(user: User, place: Path, name: str) -> None:
    """For root too, whose capabilities are gone by then."""
    (place / "closed").mkdir(mode=0o555)
    if user.name == "root":
        (place / "closed").chmod(0o755)
        os.chown(place / "closed", NOBODY, NOBODY)
    path = place / name
    why = "No such file or directory" if name == "missing" else "Permission denied"
    found = attempt(user, place, {"must_write": [str(path)], "drop_capabilities": True}, "")
    assert found == {"refused": f"cannot write in {path}: {why}"}


def test_writing_is_tried_by_the_rules_that_commands_are_under(user: User, place: Path) -> None:
    inside = lowest_tier(place) | {"must_write": [str(place / "outside")]}
    found = attempt(user, place, inside, "")
    assert found == {"refused": f"cannot write in {place / 'outside'}: Permission denied"}


@needs_root
def test_a_file_system_without_unnamed_files_is_asked_in_another_way() -> None:
    user = USERS["root"]()
    with room(user) as place:  # /proc is root's, but closed to whoever has no capability
        assert attempt(user, place, {"must_write": ["/proc"]}, "") == {}
        found = attempt(user, place, {"must_write": ["/proc"], "drop_capabilities": True}, "")
    assert found == {"refused": "cannot write in /proc: Permission denied"}


MOUNT = r"""
CLONE_NEWNS, CLONE_NEWUSER, MS_BIND = 0x20000, 0x10000000, 4096
uid, gid = os.getuid(), os.getgid()
if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
    skip("there are no user namespaces to be had here")
try:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
except PermissionError:
    skip("user namespaces have no rights here")

def bind(source, target):
    if libc.mount(os.fsencode(source), os.fsencode(target), None, MS_BIND, None) != 0:
        skip("mounting is forbidden here")

def meant(path, file):
    found = os.lstat(file)
    return [path, found.st_dev, found.st_ino]

a, b, at = (os.path.join(given, "inside", name) for name in ("a", "b", "at a \\ b\n\t#\udcff"))
for path in (a, b, at, b + "/x", a + "/x", at + "/x"):
    os.mkdir(path)
"""


@pytest.mark.parametrize(
    ("mounted", "why"),
    [
        ("bind(a, at); inside['identities'] = [meant(at, a)]", None),
        ("bind(b, at); bind(a, at); inside['identities'] = [meant(at, a)]", None),
        ("bind(a, at); bind(b, at); inside['identities'] = [meant(at, a)]", "is another file than was meant"),
        ("bind(b, at); inside['identities'] = [meant(at, a)]", "is another file than was meant"),
        ("bind(a, a); inside['identities'] = [meant(at, at)]", "nothing is mounted"),
        # The list of mounts still has at/x, which the second mount covers.
        ("bind(a, at + '/x'); bind(b, at); inside['identities'] = [meant(at + '/x', at + '/x')]", "nothing is mounted"),
        ("os.rmdir(at + '/x'), os.rmdir(at); inside['identities'] = [meant(at, a)]", "No such file or directory"),
        ("bind(a, a); os.rename(at, b + '/at'); os.symlink(a, at); inside['identities'] = [meant(at, a)]", "another"),
        (
            """bind(a + '/x', a + '/x'); os.rename(at, b + '/at'); os.symlink(a, at)
inside['identities'] = [meant(at + '/x', a + '/x')]""",
            "nothing is mounted",
        ),
    ],
)
def test_a_mount_has_to_be_of_the_file_that_was_meant(user: User, place: Path, mounted: str, why: str | None) -> None:
    inside = {"drop_capabilities": True}
    found = attempt(user, place, inside, "told['went on'] = True", before=MOUNT + mounted + "\n", given=str(place))
    if why is None:
        assert found == {"went on": True}
    else:
        assert why in found["refused"]
        assert "inside/at a" in found["refused"]


def test_fields_of_the_mount_list_are_decoded() -> None:
    assert confine.unescaped(rb"/a\040b\011c\012d\134e\043f\\040g") == b"/a b\tc\nd\\e#f\\ g"
    assert os.fsencode("/") in confine.mount_points().values()


# ---------------------------------------------------------------- what is asked for is done, or refused


def test_a_wish_that_nobody_knows_is_refused(user: User, place: Path) -> None:
    found = attempt(user, place, {"drop_capabilities": True, "capabilities": True}, "")
    assert found == {"refused": "nobody knows how to enforce capabilities"}


def test_what_the_kernels_landlock_does_not_know_is_refused(user: User, place: Path) -> None:
    need_abi(1)
    for rules in (
        {"fs": 1 << 60, "net": 0, "scoped": 0, "rules": []},
        {"fs": 1, "net": 0, "scoped": 1 << 60, "rules": []},
        {"fs": 1, "net": 1 << 60, "scoped": 0, "rules": []},
    ):
        found = attempt(user, place, {"landlock": rules}, "")
        assert found["refused"].startswith("cannot make a Landlock ruleset: ")
    found = attempt(user, place, {"landlock": {"fs": 1, "net": 0, "scoped": 0, "rules": [["/", 2]]}}, "")
    assert found == {"refused": "cannot grant / by Landlock: Invalid argument"}


@pytest.mark.parametrize(
    "program",
    ["", "no", "0600", "2000000001000000", "1500ffff00000000", "0600000000000000" * 5000],
    ids=["nothing", "no digits", "half an instruction", "no end", "a jump out of it", "too long"],
)
def test_a_filter_that_is_none_is_refused(user: User, place: Path, program: str) -> None:
    found = attempt(user, place, {"seccomp": program}, "")
    assert found == {"refused": "cannot filter system calls: Invalid argument"}


def test_without_landlock_in_the_kernel_its_rules_are_refused(user: User, place: Path) -> None:
    """As it is where a container's own filter refuses the calls."""
    # One filter more, made for this: landlock_create_ruleset gives ENOSYS.
    before = """
import struct
code = b"".join(struct.pack("<HBBI", *row) for row in
                [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7FFF0000)])
libc.prctl(38, 1, 0, 0, 0)
confine.filter_calls(code.hex())
told["abi"] = confine.landlock_abi()
if inside["landlock"] is None:
    print(json.dumps(told))
    sys.exit()
"""
    need_filter("all")
    assert attempt(user, place, {"landlock": None}, "", before=before) == {"abi": 0}
    rules = landlock.ruleset(7, writable=[], devices=[]).as_json()
    found = attempt(user, place, {"landlock": rules}, "", before=before)
    assert found == {"refused": "cannot make a Landlock ruleset: Function not implemented"}
