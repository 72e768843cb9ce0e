"""Processes that confine themselves as a keeper does, and then try what they should not be able to do."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.process import confine
from handrail.sandbox import landlock, seccomp
from tests.process.onlooker import BOUND_S, NOBODY, User

# A child's program: `tell` what an attempt came to, and skip where the machine cannot make what a test needs.
PROGRAM = """
import ctypes, errno, json, os, signal, socket, subprocess, sys
sys.path.append(os.path.dirname(sys.argv[0]))
import confine
sys.path.pop()

inside, given = json.loads(sys.argv[1]), json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
told = {}

def tell(name, act, *arguments, **options):
    try:
        value = act(*arguments, **options)
    except OSError as failure:
        told[name] = errno.errorcode[failure.errno]
    else:
        told[name] = value if isinstance(value, (bool, int, str, list)) else "ok"

def system(number, *words):
    if libc.syscall(ctypes.c_long(number), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words)) < 0:
        raise OSError(ctypes.get_errno(), "")

def skip(reason):
    print(json.dumps({"skip": reason}))
    sys.exit()

def write(path):
    with open(path, "w") as file:
        file.write("x")

def read(path):
    with open(path, "rb") as file:
        file.read(1)
"""
APPLY = """
try:
    confine.apply(inside)
except confine.Refused as refusal:
    print(json.dumps({"refused": str(refusal)}))
    sys.exit()
"""
END = """
print(json.dumps(told))
"""

OUTSIDER = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind("\\0" + sys.argv[1])
listening.listen(8)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def room(user: User) -> Generator[Path]:
    """A directory that every user can enter, with `inside` and `outside` in it, which are this user's."""
    place = Path(tempfile.mkdtemp(prefix="handrail-"))  # pytest's own directories are closed to other users
    try:
        place.chmod(0o755)
        shutil.copy(str(confine.__file__), place / "confine.py")
        for name in ("inside", "outside"):
            (place / name).mkdir()
            give(place / name, user)
        yield place
    finally:
        shutil.rmtree(place)


def give(path: Path, user: User) -> Path:
    """Make a file or directory this user's."""
    if user.prefix:
        os.chown(path, NOBODY, NOBODY)
    return path


def attempt(
    user: User, place: Path, inside: Mapping[str, Any], code: str, *, before: str = "", given: object = None
) -> dict[str, Any]:
    """What a process tells that runs `before`, confines itself, and runs `code`; or {"refused": sentence}."""
    program = place / "program.py"
    program.write_text(PROGRAM + before + APPLY + code + END)
    argv = [*user.prefix, user.python, "-I", "-S", "-B", str(program), json.dumps(inside), json.dumps(given)]
    done = subprocess.run(
        argv, cwd="/", capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=BOUND_S
    )
    assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "skip" in told:
        pytest.skip(told["skip"])
    return told


@contextlib.contextmanager
def outsider(user: User, name: str) -> Generator[int]:
    """The pid of a process of this user that is not confined, and listens on an abstract socket of this name."""
    argv = [*user.prefix, user.python, "-I", "-S", "-c", OUTSIDER, name]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())  # leaving closes its stdin, and it ends


def need_abi(version: int) -> int:
    """The kernel's version of Landlock, which has to be at least this one."""
    abi = confine.landlock_abi()
    if abi < version:
        pytest.skip(f"needs version {version} of Landlock; this kernel has {abi or 'none'}")
    return abi


def need_filter(sockets: seccomp.Sockets) -> str:
    """The filter of system calls for this machine, as a keeper gets it."""
    program = seccomp.program(platform.machine(), sockets)
    if program is None or sys.platform != "linux":
        pytest.skip(f"there is no filter for {platform.machine()}")
    return program.hex()


def lowest_tier(place: Path) -> dict[str, Any]:
    """What confines a slot that has no namespaces; `inside` is what it may write in."""
    devices = ["/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"]
    rules = landlock.ruleset(need_abi(1), writable=[str(place / "inside")], devices=devices)
    return {
        "drop_capabilities": True,
        "landlock": rules.as_json(),
        "seccomp": need_filter("unix"),
        "must_write": [str(place / "inside")],
    }
