"""Hosts as processes of their own, and a look from outside at what they leave.

Whatever belongs to one host carries its tag in its command line: the host and the commands as an argument, the warden
and the keepers in the path of their program.
"""

from __future__ import annotations

import compileall
import contextlib
import itertools
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import handrail

SOURCE = Path(handrail.__file__).parent
BOUND_S = 20.0  # for whatever must come to be on a loaded machine; what must not last is measured, not awaited
NOBODY = 65534
# How many random moments are tried.
TIMES = 40 if os.environ.get("HANDRAIL_FULL") else 6

# What every host begins with: `call` runs a line of bash and prints nothing, `say` tells the test something.
HOST = """
import os, sys, threading, time
from handrail.hosts.local import LocalHost
from handrail.process import Cancel, Invocation
from handrail.process.child import NotStarted
from handrail.process.direct import not_run
from handrail.process.interrupts import interruptible

TAG = sys.argv[1]
host = LocalHost()

def call(line, cancel=None, **options):
    stop = cancel or Cancel()
    command = Invocation(argv=("bash", "-c", line), cwd="/", env={"PATH": os.environ["PATH"]}, **options)
    try:
        with interruptible(stop):
            return host.run(command, cancel=stop)
    except NotStarted as refusal:
        return not_run(refusal)
    finally:
        stop.close()

def say(*words):
    print(*words, flush=True)

def told(ended):
    say(ended.enforced.tier, ended.exit_code, ended.signal, ended.stdout.head.decode().strip(), ended.not_started)
"""


# All ways out of a process's reach at once. `exec -a` gives each its tag, whatever it does to its environment.
HIDING = """
T={tag}; trap '' TERM HUP
(exec -a $T sleep 600) &
setsid bash -c "exec -a $T-setsid sleep 600" &
( ( env -i setsid bash -c "(exec -a $T-twice sleep 600) >/dev/null 2>&1 &" ) & )
nohup bash -c "exec -a $T-nohup sleep 600" >/dev/null 2>&1 & disown
"""


@dataclass(frozen=True)
class User:
    """Who a host is: the words before its interpreter that make it so, and the interpreter."""

    name: str
    prefix: tuple[str, ...]
    python: str


def ordinary_user() -> User:
    """Without any right of root's. Skips where the tests cannot become one, or where there is no Python for it."""
    if os.getuid() != 0:
        return User("ordinary", (), sys.executable)
    prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env")
    for python in (sys.executable, "/usr/bin/python3"):
        # Behind `env`, for `setpriv` itself still has root's rights when it looks for the program.
        newer = [*prefix, python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        with contextlib.suppress(OSError):
            if subprocess.run(newer, capture_output=True, check=False).returncode == 0:
                return User("ordinary", prefix, python)
    pytest.skip("no Python 3.11 that an ordinary user could run")


def root() -> User:
    if os.getuid() != 0:
        pytest.skip("needs root")
    return User("root", (), sys.executable)


ANYBODY = User("anybody", (), sys.executable)
"""Who runs the tests."""

USERS: Mapping[str, Callable[[], User]] = {"root": root, "ordinary": ordinary_user}


@dataclass(frozen=True)
class Seen:
    pid: int
    parent: int
    words: str


class Host:
    """One host process, started with a tag of its own."""

    def __init__(self, place: Path, tag: str, argv: Sequence[str], tier: str) -> None:
        self.tag = tag
        (place / tag).symlink_to(place / "source")  # so that the paths of the programs that it starts name it
        path = os.pathsep.join([str(place / tag), *filter(None, [os.environ.get("PYTHONPATH")])])
        kept = {name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME") if name in os.environ}
        env = {**kept, "PYTHONPATH": path, "HANDRAIL_TIER": tier}
        pipe = subprocess.PIPE
        self.popen: subprocess.Popen[bytes] = subprocess.Popen(
            argv, env=env, cwd="/", start_new_session=True, stdin=pipe, stdout=pipe, stderr=pipe
        )
        self._unread = b""

    @property
    def pid(self) -> int:
        return self.popen.pid

    def line(self) -> str:
        """The next line that it says."""
        assert self.popen.stdout is not None
        latest = time.monotonic() + BOUND_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.popen.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                assert selector.select(max(0, latest - time.monotonic())), "the host says nothing"
                data = os.read(self.popen.stdout.fileno(), 65536)
                assert data, f"the host ended: {self._errors()}"
                self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return line.decode()

    def go_on(self) -> None:
        """Let it read a line."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(b"\n")
        self.popen.stdin.flush()

    def end(self) -> str:
        """Its last words; it must end by itself, and well."""
        out, errors = self.popen.communicate(timeout=BOUND_S)
        assert (self.popen.returncode, errors) == (0, b""), (out, errors)
        return (self._unread + out).decode()

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()

    def seen(self) -> list[Seen]:
        """All that carries the tag, but the host and what was merely forked from it."""
        return [process for process in tagged(self.tag) if HOST[:40] not in process.words]

    def forked(self) -> list[Seen]:
        """What was forked from it and is nothing else since."""
        return [process for process in tagged(self.tag) if HOST[:40] in process.words and process.pid != self.pid]

    def commands(self) -> list[Seen]:
        """What calls itself by the tag."""
        return [process for process in self.seen() if process.words.startswith(self.tag)]

    def wait_for_commands(self, count: int) -> list[Seen]:
        latest = time.monotonic() + BOUND_S
        while len(found := self.commands()) != count:
            assert time.monotonic() < latest, f"{count} expected, there is {found}"
            time.sleep(0.01)
        return found

    def wardens(self) -> list[Seen]:
        """The processes from its own child down to the one that makes keepers, and then the keeper that has a command.

        An ordinary user's warden needs two others in front of it.
        """
        programs = {process.pid: process for process in self.seen() if "warden.py" in process.words}
        keepers = {process.parent for process in self.commands() if process.parent in programs}
        assert len(keepers) == 1, keepers
        line = [programs[keepers.pop()]]
        while line[0].parent != self.pid:
            line.insert(0, programs[line[0].parent])
        return line

    def survivors(self, within_s: float, forked: int = 0) -> list[Seen]:
        """What is still there after that time at the latest, where so many forked children are to live on.

        One more may be on its way to become a warden, and has no words while the kernel changes its program: hence
        three looks in a row must find nothing.
        """
        latest = time.monotonic() + within_s
        looks = 0
        while True:
            children = self.forked()
            found = [*self.seen(), *children[forked:]]
            looks = 0 if found or len(children) < forked else looks + 1
            if looks == 3 or time.monotonic() > latest:
                return found
            time.sleep(0.01)

    def clean(self) -> None:
        """Whatever a failed test left."""
        self.kill()
        for process in tagged(self.tag):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            assert stream is not None
            stream.close()

    def _errors(self) -> str:
        assert self.popen.stderr is not None
        return self.popen.stderr.read().decode()


class Hosts:
    """Starts hosts from a copy of the package that every user can read: the checkout may lie in somebody's home."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._started: list[Host] = []
        self._others: list[Hosts] = []
        self._tiers: dict[tuple[User, str], str] = {}
        self._numbers = itertools.count()
        shutil.copytree(SOURCE, place / "source" / "handrail", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(place, quiet=1)
        place.chmod(0o755)

    def start(self, user: User, code: str, tier: str = "T3", before: Sequence[str] = ()) -> Host:
        """A host that runs HOST and then `code`, behind the words `before`."""
        tag = f"tag-{os.getpid()}-{next(self._numbers)}-"
        argv = [*before, *user.prefix, user.python, "-B", "-c", HOST + code, tag]
        self._started.append(Host(self._place, tag, argv, tier))
        return self._started[-1]

    def with_source_changed(self, name: str, before: str, after: str) -> Hosts:
        """Hosts from a copy in which each `before` in the module process/NAME is an `after`."""
        changed = Hosts(self._place / f"changed-{next(self._numbers)}")
        self._others.append(changed)
        module = changed._place / "source" / "handrail" / "process" / name
        text = module.read_text()
        assert before in text
        module.write_text(text.replace(before, after))
        return changed

    def tier(self, user: User, asked: str = "T3") -> str:
        """What a user who asks for this tier has on this machine."""
        if (user, asked) not in self._tiers:
            self._tiers[user, asked] = tell(self, user, "told(call('true'))", asked)[0].split()[0]
        return self._tiers[user, asked]

    def clean(self) -> None:
        """End what a failed test left."""
        for others in self._others:
            others.clean()
        for host in self._started:
            host.clean()
        self._started.clear()


def tell(hosts: Hosts, user: User, code: str, tier: str = "T3", before: Sequence[str] = ()) -> list[str]:
    """The lines of a host that ended by itself and left nothing."""
    host = hosts.start(user, code, tier, before)
    said = host.end().splitlines()
    assert host.survivors(5.0) == []
    return said


def kill(process: Seen) -> Seen:
    """End it by SIGKILL, and wait until it is gone, or dead but for its parent's notice."""
    os.kill(process.pid, signal.SIGKILL)
    latest = time.monotonic() + BOUND_S
    with contextlib.suppress(OSError):
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < latest
            time.sleep(0.001)
    return process


def tagged(tag: str) -> list[Seen]:
    found: list[Seen] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            if tag in words:
                parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
                found.append(Seen(int(pid), int(parent), words.replace("\0", " ")))
    return found
