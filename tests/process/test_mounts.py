"""What a command finds in a slot's mount namespace, and what it cannot do there: tried by real processes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from handrail.process import mounts
from tests.process.onlooker import BOUND_S, NOBODY, USERS, User

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has mount namespaces")

Row = tuple[str | os.PathLike[str], str | os.PathLike[str] | None, bool]

# What a warden does before it makes mounts; `before` has run in front of it, `code` runs as a slot's first process.
PROGRAM = """
import ctypes, errno, json, os, signal, stat, sys
sys.path.append(sys.argv[1])
import confine, mounts
sys.path.pop()

rows, given = json.loads(sys.argv[2]), json.loads(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
told = {}

def tell(name, act, *arguments, **options):
    try:
        value = act(*arguments, **options)
    except OSError as failure:
        told[name] = errno.errorcode[failure.errno]
    else:
        told[name] = value if isinstance(value, (bool, int, str, list)) else "ok"

def system(function, *arguments):
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "")

def write(path):
    with open(path, "w") as file:
        file.write("x")

def read(path):
    with open(path) as file:
        return file.read()

def is_read_only(path):
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)

def skip(reason):
    print(json.dumps({"skip": reason}), flush=True)
    os._exit(0)

def become(flags):
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(flags) != 0:
        skip("needs namespaces: " + os.strerror(ctypes.get_errno()))
    if flags & 0x10000000:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open("/proc/self/" + name, "w") as file:
                file.write(text)

def in_first_process(act):
    become(0x20000000 if os.getuid() == 0 and not given.get("nested") else 0x30000000)
    pid = os.fork()
    if pid:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    act()
    print(json.dumps(told), flush=True)
    os._exit(0)

def build():
    try:
        mounts.enter()
        told["own_proc"] = mounts.build(rows).own_proc
        confine.apply({"drop_capabilities": True})
    except mounts.Refused as refused:
        print(json.dumps({"refused": str(refused)}), flush=True)
        os._exit(0)
"""


class Room:
    """Directories of one user: a workspace, and what lies outside it."""

    def __init__(self, path: Path, user: User) -> None:
        self.path = path
        self.user = user
        path.chmod(0o755)
        for name in ("confine.py", "mounts.py"):
            (path / "programs").mkdir(exist_ok=True)
            shutil.copy(Path(str(mounts.__file__)).parent / name, path / "programs" / name)
        self.workspace = self.folder("workspace")
        self.outside = self.folder("outside")
        self.file("outside/file", "outside")
        self.tmp = self.folder("tmp")

    def folder(self, name: str) -> Path:
        path = self.path / name
        path.mkdir(parents=True)
        self._give(path)
        return path

    def file(self, name: str, text: str = "") -> Path:
        path = self.path / name
        path.write_text(text)
        self._give(path)
        return path

    def listing(self) -> list[str]:
        """All that is there, but in the session's own /tmp."""
        return sorted(str(p) for p in self.path.rglob("*") if not p.is_relative_to(self.tmp))

    def in_slot(self, rows: Sequence[Row], code: str, *, before: str = "", **given: object) -> dict[str, Any]:
        """What `code` tells in a slot that these rows made, or {"refused": sentence}."""
        lines = "".join(f"    {line}\n" for line in code.splitlines())
        return self.run(rows, f"{before}\ndef act():\n    build()\n{lines}\nin_first_process(act)\n", **given)

    def run(self, rows: Sequence[Row], code: str, **given: object) -> dict[str, Any]:
        """What a process of the user's tells that has these rows."""
        argv = [
            *self.user.prefix,
            self.user.python,
            "-I",
            "-S",
            "-B",
            "-c",
            PROGRAM + code,
            str(self.path / "programs"),
        ]
        argv += [json.dumps(rows, default=os.fspath), json.dumps(given, default=os.fspath)]
        done = subprocess.run(
            argv, cwd="/", capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=BOUND_S
        )
        assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
        told: dict[str, Any] = json.loads(done.stdout)
        if "skip" in told:
            pytest.skip(told["skip"])
        return told

    def _give(self, path: Path) -> None:
        if self.user.prefix:
            os.chown(path, NOBODY, NOBODY)


@pytest.fixture(params=list(USERS))
def room(request: pytest.FixtureRequest) -> Generator[Room]:
    user = USERS[request.param]()
    place = Path(tempfile.mkdtemp(prefix="handrail-", dir="/tmp")).resolve()  # pytest's own are closed to others
    try:
        yield Room(place, user)
    finally:
        shutil.rmtree(place)


# ---------------------------------------------------------------- what can be written


def test_only_what_is_asked_for_can_be_written(room: Room) -> None:
    rows: list[Row] = [(room.workspace, room.workspace, True)]
    before = room.listing()
    told = room.in_slot(
        rows,
        """
w, o = given["workspace"], given["outside"]
tell("inside", write, w + "/new")
tell("create", write, o + "/new")
tell("write", write, o + "/file")
tell("chmod", os.chmod, o + "/file", 0o777)
tell("chown", os.chown, o + "/file", os.getuid(), os.getgid())
tell("times", os.utime, o + "/file")
tell("unlink", os.unlink, o + "/file")
tell("mkdir", os.mkdir, o + "/d")
tell("rename", os.rename, o + "/file", o + "/other")
tell("rename_out", os.rename, w + "/new", o + "/new")
tell("rename_in", os.rename, o + "/file", w + "/file")
tell("link_in", os.link, o + "/file", w + "/link")
tell("dots", write, w + "/../outside/new")
os.symlink(o, w + "/away")
tell("link", write, w + "/away/new")
tell("root", write, "/proc/self/root" + o + "/new")
tell("sys", is_read_only, "/sys")
os.unlink(w + "/away")
""",
        workspace=room.workspace,
        outside=room.outside,
    )
    outside = ("create", "write", "chmod", "chown", "times", "unlink", "mkdir", "rename", "dots", "link", "root")
    across = ("rename_out", "rename_in", "link_in")
    assert told == {
        "own_proc": True,
        "inside": "ok",
        "sys": True,
        **dict.fromkeys(outside, "EROFS"),
        **dict.fromkeys(across, "EXDEV"),
    }
    assert (room.workspace / "new").read_text() == "x"
    (room.workspace / "new").unlink()
    assert room.listing() == before


def test_a_read_only_row_in_a_writable_one_stays_where_it_is(room: Room) -> None:
    git = room.folder("workspace/.git")
    hooks, config = room.folder("workspace/.git/hooks"), room.file("workspace/.git/config", "as it was")
    rows: list[Row] = [
        (room.workspace, room.workspace, True),
        (git, git, True),
        (config, config, False),
        (hooks, hooks, False),
    ]
    told = room.in_slot(
        rows,
        """
g = given["git"]
tell("index", write, g + "/index")
tell("hook", write, g + "/hooks/post-commit")
tell("config", write, g + "/config")
tell("chmod", os.chmod, g + "/config", 0o777)
tell("replace", os.rename, g + "/index", g + "/config")
tell("unlink", os.unlink, g + "/config")
tell("rmdir", os.rmdir, g + "/hooks")
tell("move", os.rename, g, g + "-other")
""",
        git=git,
    )
    assert told == {
        "own_proc": True,
        "index": "ok",
        **dict.fromkeys(("hook", "config", "chmod"), "EROFS"),
        **dict.fromkeys(("replace", "unlink", "rmdir", "move"), "EBUSY"),
    }
    assert config.read_text() == "as it was"


def test_a_mask_is_empty_and_read_only_and_shows_what_a_row_in_it_names(room: Room) -> None:
    home, empty = room.folder("home"), room.file("empty")
    room.folder("home/project")
    room.folder("home/project/deep")
    for name in ("secret", "token", "project/file", "project/deep/key"):
        room.file(f"home/{name}", name)
    rows: list[Row] = [
        (home, None, False),
        (home / "project", home / "project", True),
        (home / "project/deep", None, False),
        (home / "token", home / "token", False),
        (room.outside, None, True),
        (room.outside / "a/b", room.workspace, False),
        (room.file("token", "secret"), empty, False),
    ]
    told = room.in_slot(
        rows,
        """
h, p = given["home"], given["home"] + "/project"
tell("home", lambda: sorted(os.listdir(h)))
tell("secret", read, h + "/secret")
tell("token", read, h + "/token")
tell("file", read, p + "/file")
tell("in_project", write, p + "/new")
tell("deep", os.listdir, p + "/deep")
tell("in_deep", write, p + "/deep/new")
tell("in_home", write, h + "/new")
tell("chmod", os.chmod, h, 0o700)
tell("modes", lambda: [oct(os.stat(path).st_mode) for path in (h, given["outside"])])
tell("in_empty", write, given["outside"] + "/new")
tell("made", lambda: sorted(os.listdir(given["outside"])))
tell("below_made", write, given["outside"] + "/a/b/new")
tell("masked_file", read, given["masked"])
tell("write_masked_file", write, given["masked"])
tell("unmask_file", os.unlink, given["masked"])
""",
        home=home,
        outside=room.outside,
        masked=room.path / "token",
    )
    assert told.pop("unmask_file") in ("EBUSY", "EROFS")
    assert told == {
        "own_proc": True,
        "home": ["project", "token"],
        "secret": "ENOENT",
        "token": "token",
        "file": "project/file",
        "in_project": "ok",
        "deep": [],
        **dict.fromkeys(("in_deep", "in_home", "chmod", "below_made", "write_masked_file"), "EROFS"),
        "modes": ["0o40755", "0o41777"],
        "in_empty": "ok",
        "made": ["a", "new"],
        "masked_file": "",
    }
    assert sorted(os.listdir(room.outside)) == ["file"]
    assert (room.path / "token").read_text() == "secret"


@pytest.mark.parametrize("name", ["a b", "line\nbreak", "c:d,e=f", "back\\slash\\040", "\udcff\udcfe", "é", "-o", "%s"])
def test_names_are_taken_as_they_are(room: Room, name: str) -> None:
    odd, hidden = room.folder(f"workspace/{name}"), room.folder(f"workspace/{name}/{name}")
    room.file(f"workspace/{name}/{name}/secret")
    told = room.in_slot(
        [(odd, odd, True), (hidden, None, False), (hidden / name, room.outside, False)],
        """
tell("write", write, given["odd"] + "/new")
tell("masked", lambda: os.listdir(given["hidden"]) == given["names"])
tell("inner", os.listdir, given["inner"])
tell("beside", write, os.path.dirname(given["odd"]) + "/new")
""",
        odd=odd,
        hidden=hidden,
        inner=hidden / name,
        names=[name],
    )
    assert told == {"own_proc": True, "write": "ok", "masked": True, "inner": ["file"], "beside": "EROFS"}


# ---------------------------------------------------------------- what a slot has of its own


def test_proc_shows_this_namespace_and_its_settings_cannot_be_written(room: Room) -> None:
    told = room.in_slot(
        [],
        """
tell("processes", lambda: [name for name in os.listdir("/proc") if name.isdigit()])
tell("self", os.readlink, "/proc/self")
tell("kernel", os.open, "/proc/sys/kernel/core_pattern", os.O_WRONLY)
tell("own", os.system, "echo 999 > /proc/self/oom_score_adj")
protected = [name for name in mounts.READ_ONLY_IN_PROC if os.path.exists("/proc/" + name)]
tell("writable", lambda: [name for name in protected if not is_read_only("/proc/" + name)])
tell("sys", lambda: "sys" in protected)
""",
    )
    assert told.pop("kernel") in (("EROFS",) if room.user.name == "root" else ("EROFS", "EACCES"))
    assert told == {
        "own_proc": True,
        "processes": ["1"],
        "self": "1",
        "own": 0,
        "writable": [],
        "sys": True,
    }


def test_where_proc_cannot_be_mounted_the_hosts_stays_and_is_read_only(room: Room) -> None:
    # A container that hides a part of /proc: a user namespace in it may mount no /proc that would show this part.
    before = """
become(0x10020000)
system(libc.mount, b"none", b"/", None, 0x44000, None)
system(libc.mount, b"none", b"/proc/bus", b"tmpfs", 0, None)
"""
    told = room.in_slot(
        [(room.workspace, room.workspace, True)],
        """
tell("write", write, given["workspace"] + "/new")
tell("own", os.system, "{ echo 999 > /proc/self/oom_score_adj; } 2>/dev/null")
tell("more", lambda: len([name for name in os.listdir("/proc") if name.isdigit()]) > 1)
tell("read_only", is_read_only, "/proc")
tell("core_pattern", is_read_only, "/proc/sys/kernel")
""",
        before=before,
        workspace=room.workspace,
        nested=True,
    )
    assert told.pop("own") != 0
    assert told == {
        "own_proc": False,
        "write": "ok",
        "more": True,
        "read_only": True,
        "core_pattern": True,
    }


def test_dev_holds_what_programs_need_and_nothing_else(room: Room) -> None:
    told = room.in_slot(
        [],
        """
tell("names", lambda: sorted(os.listdir("/dev")))
tell("shm", os.listdir, "/dev/shm")
tell("pts", os.listdir, "/dev/pts")
tell("zero", lambda: open("/dev/zero", "rb").read(4) == bytes(4))
tell("urandom", lambda: len(open("/dev/urandom", "rb").read(4)))
tell("null", write, "/dev/null")
tell("full", write, "/dev/full")
tell("fd", os.readlink, "/dev/fd")
tell("links", lambda: [os.readlink("/dev/" + n) for n in ("stdin", "stdout", "stderr", "core", "ptmx")])
tell("in_shm", write, "/dev/shm/new")
tell("shm_mode", lambda: oct(os.stat("/dev/shm").st_mode))
tell("new", write, "/dev/new")
tell("replace", os.unlink, "/dev/fd")
tell("chmod", os.chmod, "/dev/null", 0o666)
tell("node", os.mknod, "/dev/shm/node", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
leader, follower = os.openpty()
tell("pty", os.ttyname, follower)
os.write(leader, b"word\\n")
tell("line", lambda: os.read(follower, 10).decode())
tell("ptmx", lambda: oct(os.stat("/dev/ptmx").st_mode))
tell("pty_mode", lambda: oct(os.fstat(follower).st_mode))
""",
    )
    names = sorted(["null", "zero", "full", "random", "urandom", "tty", "pts", "shm", "ptmx", "fd", "core"])
    assert told == {
        "own_proc": True,
        "names": sorted([*names, "stdin", "stdout", "stderr"]),
        "shm": [],
        "pts": ["ptmx"],
        "zero": True,
        "urandom": 4,
        "null": "ok",
        "full": "ENOSPC",
        "fd": "/proc/self/fd",
        "links": ["/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "/proc/kcore", "pts/ptmx"],
        "in_shm": "ok",
        "shm_mode": "0o41777",
        **dict.fromkeys(("new", "replace", "chmod"), "EROFS"),
        "node": "EPERM",
        "pty": "/dev/pts/0",
        "line": "word\n",
        "ptmx": "0o20666",
        "pty_mode": "0o20620",
    }


def test_no_mount_is_shared_with_the_host_or_honours_setuid_and_devices(room: Room) -> None:
    told = room.in_slot(
        [(room.workspace, room.workspace, True), (room.outside, None, True)],
        """
seen = [line.split() for line in read("/proc/self/mountinfo").splitlines()]
tell("count", lambda: len(seen) > 10)
tell("shared", lambda: [words for words in seen if words[6] != "-"])
tell("suid", lambda: [words[4] for words in seen if "nosuid" not in words[5].split(",")])
tell("devices", lambda: sorted(words[4] for words in seen if "nodev" not in words[5].split(",")))
tell("writable", lambda: sorted(words[4] for words in seen if "ro" not in words[5].split(",")))
tell("descriptors", lambda: os.listdir("/proc/self/fd")[:3] == ["0", "1", "2"] and len(os.listdir("/proc/self/fd")))
tell("umask", os.umask, 0o022)
""",
        # A host whose mounts are shared, as systemd makes them.
        before="""
os.umask(0o027)
become(0x20000 if os.getuid() == 0 else 0x10020000)
system(libc.mount, b"none", b"/", None, 0x104000, None)
with open("/proc/self/mountinfo") as file:
    told["were_shared"] = all("shared:" in line for line in file)
""",
    )
    nodes = [f"/dev/{name}" for name in mounts.NODES]
    writable = ["/dev/pts", "/dev/shm", "/proc", str(room.outside), str(room.workspace)]
    assert told == {
        "own_proc": True,
        "were_shared": True,
        "count": True,
        "shared": [],
        "suid": [],
        "devices": sorted([*nodes, "/dev/pts"]),
        "writable": sorted(writable),
        "descriptors": 4,  # the fourth is the one that lists them
        "umask": 0o027,
    }


def test_no_queue_name_or_cgroup_is_shared_with_the_host(room: Room) -> None:
    told = room.in_slot(
        [],
        'tell("shared", lambda: [kind for kind in KINDS if os.readlink("/proc/self/ns/" + kind) == before[kind]])',
        before="""
KINDS = [kind for kind in ("mnt", "ipc", "uts", "cgroup", "pid") if os.path.exists("/proc/self/ns/" + kind)]
before = {kind: os.readlink("/proc/self/ns/" + kind) for kind in KINDS}
""",
    )
    assert told == {"own_proc": True, "shared": []}


# ---------------------------------------------------------------- what a command cannot undo


def test_a_command_can_neither_unmount_nor_remount(room: Room) -> None:
    attempts = """
libc.umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]
def tries(word):
    tell(word + "unmount", system, libc.umount2, os.fsencode(given["mask"]), 2)
    tell(word + "proc", system, libc.umount2, b"/proc/sys", 2)
    tell(word + "remount", system, libc.mount, None, b"/", None, 0x1020, None)
    tell(word + "remount_mask", system, libc.mount, None, os.fsencode(given["mask"]), None, 0x1020, None)
    tell(word + "write", write, given["outside"] + "/new")
"""
    told = room.in_slot(
        [(room.path / "tmp", None, False)],
        """
tries("")
tell("mount", system, libc.mount, b"none", b"/dev/shm", b"tmpfs", 0, None)
tell("namespace", system, libc.unshare, 0x20000)
tell("nested", system, libc.unshare, 0x10020000)
tries("nested_")
tell("nested_bind", system, libc.mount, os.fsencode(given["outside"]), b"/dev/shm", None, 0x1000, None)
tell("nested_write_bound", write, "/dev/shm/file")
""",
        before=attempts,
        mask=room.path / "tmp",
        outside=room.outside,
    )
    words = ("unmount", "proc", "remount", "remount_mask", "mount", "namespace")
    assert {name: told[name] for name in (*words, "write")} == {**dict.fromkeys(words, "EPERM"), "write": "EROFS"}
    if told["nested"] == "ok":  # with all capabilities, but in a namespace that may not undo what others mounted
        expected = {
            "unmount": "EINVAL",
            "proc": "EINVAL",
            "remount": "EPERM",
            "remount_mask": "EPERM",
            "write": "EROFS",
        }
        assert {name: told[f"nested_{name}"] for name in expected} == expected
        assert told["nested_write_bound"] in ("EROFS", "ENOENT"), told["nested_bind"]
    assert os.listdir(room.outside) == ["file"]


# ---------------------------------------------------------------- what is refused


def test_where_a_path_is_not_what_the_host_saw_there_is_no_slot(room: Room) -> None:
    w, o = room.workspace, room.outside
    (w / "link").symlink_to(o)
    (w / "file-link").symlink_to(o / "file")
    room.folder("outside/below")
    before = room.listing()
    link = "a symbolic link is on the way"
    across = os.strerror(errno.EXDEV)
    gone, wrong = os.strerror(errno.ENOENT), "either that or what is to lie there is no directory"
    nowhere = "does not exist, and nothing may be created there"
    refusals: list[tuple[list[Row], str]] = [
        ([(w, w / "link", True)], f"cannot open {str(w / 'link')!r}: {link}"),
        ([(o / "file", w / "file-link", False)], f"cannot open {str(w / 'file-link')!r}: {link}"),
        ([(w, w / "link/below", True)], f"cannot open {str(w / 'link/below')!r}: {link}"),
        ([(w, w / "gone", True)], f"cannot open {str(w / 'gone')!r}: {gone}"),
        ([(w / "link", w, True)], f"cannot open the mount point {str(w / 'link')!r}: {link}"),
        ([(w / "link", None, True)], f"cannot open the mount point {str(w / 'link')!r}: {link}"),
        ([(w / "link/below", w, True)], f"cannot open the mount point {str(w / 'link/below')!r}: {link}"),
        ([(w / "gone", None, False)], f"the mount point {str(w / 'gone')!r} {nowhere}"),
        ([(w, w, True), (w / "gone", w, True)], f"the mount point {str(w / 'gone')!r} {nowhere}"),
        (
            [(o, None, True), (f"{o}/x/../../gone", w, True)],
            f"cannot open the mount point '{o}/x/../../gone': {across}",
        ),
        ([(o / "file", None, False)], f"cannot mount {str(o / 'file')!r}: {wrong}"),
        ([(o, o / "file", False)], f"cannot mount {str(o)!r}: {wrong}"),
    ]
    for rows, sentence in refusals:
        assert room.in_slot(rows, "") == {"refused": sentence}
    assert room.listing() == before


def test_mount_points_are_made_in_the_sessions_tmp_and_nowhere_else(room: Room) -> None:
    room.file("workspace/file", "here")
    before, real = room.listing(), set(os.listdir("/tmp"))
    rows: list[Row] = [
        ("/tmp", room.tmp, True),
        (room.workspace, room.workspace, True),
        (room.outside / "file", room.outside / "file", False),
    ]
    code = """
tell("root", lambda: sorted(os.listdir("/tmp")))
tell("place", lambda: sorted(os.listdir(os.path.dirname(given["workspace"]))))
tell("file", read, given["workspace"] + "/file")
tell("outside", read, given["outside"] + "/file")
tell("read_only", write, given["outside"] + "/file")
tell("write", write, given["name"])
"""
    name = f"/tmp/{room.path.name}-made-inside"
    for _ in range(2):  # the second finds what the first has made
        told = room.in_slot(rows, code, workspace=room.workspace, outside=room.outside, name=name)
        assert told == {
            "own_proc": True,
            "root": sorted({room.path.name, *os.listdir(room.tmp)} - {Path(name).name}),
            "place": ["outside", "workspace"],
            "file": "here",
            "outside": "outside",
            "read_only": "EROFS",
            "write": "ok",
        }
        (room.tmp / Path(name).name).unlink()
    assert room.listing() == before
    assert Path(name).name not in set(os.listdir("/tmp")) - real


def test_no_mount_point_is_made_in_a_row_that_lies_in_the_sessions_tmp(room: Room) -> None:
    before = room.listing()
    shared: list[Row] = [("/tmp", room.tmp, True), (room.workspace, room.workspace, True)]
    told = room.in_slot([*shared, (room.workspace / "a/b", None, False)], "")
    assert told["refused"] == f"cannot open the mount point {str(room.workspace / 'a/b')!r}: {os.strerror(errno.EXDEV)}"
    # What a command of the session put into its /tmp leads to no other place either.
    (room.tmp / "planted").symlink_to(room.outside)
    told = room.in_slot([*shared, ("/tmp/planted/new", room.workspace, False)], "")
    assert told["refused"] == "cannot open the mount point '/tmp/planted/new': a symbolic link is on the way"
    told = room.in_slot([("/tmp", room.tmp, False), ("/tmp/new", room.workspace, False)], "")
    assert told["refused"] == "the mount point '/tmp/new' does not exist, and nothing may be created there"
    assert room.listing() == before
    assert not (room.tmp / "new").exists()


def test_without_the_right_to_mount_there_is_no_namespace(room: Room) -> None:
    told = room.run(
        [],
        """
confine.apply({"drop_capabilities": True})
build()
""",
    )
    assert told["refused"] == f"cannot make mount, IPC and UTS namespaces: {os.strerror(errno.EPERM)}"


RACE = """
swapper = os.fork()
if swapper == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    one, other = (os.fsencode(given["workspace"] + name) for name in ("/directory", "/link"))
    while True:
        libc.renameat2(-100, one, -100, other, 2)  # RENAME_EXCHANGE: no moment without either

def attempt():
    try:
        mounts.enter()
        mounts.build(rows)
    except mounts.Refused as refused:
        os._exit(1 if "symbolic link" in str(refused) else 3)
    for path in ("/new", "/file"):
        try:
            os.close(os.open(given["outside"] + path, os.O_WRONLY | os.O_CREAT))
        except OSError as failure:
            if failure.errno != errno.EROFS:
                os._exit(4)
        else:
            os._exit(2)
    os._exit(0)

def rounds():
    counts = told["ends"] = [0] * 5
    for _ in range(300):
        pid = os.fork()
        if pid == 0:
            attempt()
        counts[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])] += 1

try:
    in_first_process(rounds)
finally:
    os.kill(swapper, signal.SIGKILL)
    os.waitpid(swapper, 0)
"""


def test_a_source_that_is_exchanged_for_a_link_meanwhile_never_leads_out(room: Room) -> None:
    room.folder("workspace/directory")
    (room.workspace / "link").symlink_to(room.outside)
    path = room.workspace / "directory"
    told = room.run([(path, path, True)], RACE, workspace=room.workspace, outside=room.outside)
    built, refused, *wrong = told["ends"]
    assert wrong == [0, 0, 0]
    assert built + refused == 300
    assert built > 0
    assert refused > 0, "no round met the link: nothing was raced"
    assert os.listdir(room.outside) == ["file"]
