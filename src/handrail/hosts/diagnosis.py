"""What this machine enforces for one place, found by running commands that try to do what they must not.

It reads no version and no feature flag where the thing itself can be tried. It repairs nothing.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from handrail.hosts.local import LocalHost
from handrail.process.cancel import Cancel
from handrail.process.warden_process import NoWarden
from handrail.sandbox.choice import try_walls
from handrail.sandbox.profile import TMP
from handrail.sandbox.remedies import remedy
from handrail.sandbox.tiers import TIERS
from handrail.sandbox.walls import Walls
from handrail.values.completed import Completed, Enforced
from handrail.values.invocation import Invocation
from handrail.values.place import Place

_PROBE_S = 20.0
_BY_TIER = "a higher tier has it: see the tiers above"


@dataclass(frozen=True, slots=True)
class Finding:
    """One layer: whether it holds here, why (or what was seen), and what would change it ("" where nothing need)."""

    layer: str
    holds: bool
    why: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`enforced` is what a command gets; `tiers` could be had or not; `layers` were tried by commands run so."""

    enforced: Enforced
    tiers: tuple[Finding, ...]
    layers: tuple[Finding, ...]


def diagnose(place: Place) -> Diagnosis:
    """Raises SandboxUnavailable where the place cannot be had as it asks."""
    with closing(LocalHost()) as host, closing(Cancel()) as never:
        host.open(place)
        return Diagnosis(host.enforced, tuple(tiers(place)), tuple(_layers(_Runner(place, host, never))))


def tiers(place: Place) -> Iterator[Finding]:
    """Each tier, tried by making a slot of it."""
    for tier in TIERS:
        walls = Walls(tier, place)
        try:
            slots, reason = try_walls(walls, ("change", place.network))
        except NoWarden as none:
            slots, reason = None, str(none)
        if slots is not None:
            slots.close()
        walls.close()
        yield Finding(f"tier {tier}", slots is not None, reason or "a slot was made", remedy(reason))


class _Runner:
    def __init__(self, place: Place, host: LocalHost, cancel: Cancel) -> None:
        self.place = place
        self.host = host
        self._cancel = cancel

    def bash(self, line: str, *arguments: str) -> Completed:
        """Run a line with `$1` and so on as its arguments."""
        variables = self.host.variables(network=self.place.network)
        return self.host.run(
            Invocation(
                argv=("bash", "-c", line, "bash", *arguments),
                cwd=self.place.workspace,
                env={"PATH": os.environ.get("PATH", os.defpath), **variables},
                timeout_s=_PROBE_S,
                network=self.place.network,
            ),
            cancel=self._cancel,
        )

    def refused(self, layer: str, line: str, *arguments: str, when_not: str = _BY_TIER) -> Finding:
        """The line tries what must not work, and ends with 0 where it did."""
        holds = self.bash(line, *arguments).exit_code != 0
        return Finding(
            layer, holds, "tried, and refused" if holds else "tried, and it worked", "" if holds else when_not
        )

    def works(self, layer: str, line: str, *arguments: str, when_not: str = _BY_TIER) -> Finding:
        """The line tries what must work, and ends with 0 where it did."""
        holds = self.bash(line, *arguments).exit_code == 0
        return Finding(layer, holds, "tried, and it works" if holds else "tried, and failed", "" if holds else when_not)


def _layers(run: _Runner) -> Iterator[Finding]:
    enforced = run.host.enforced
    yield Finding(
        "processes end with their call",
        enforced.tier != "T0",
        enforced.processes,
        "" if enforced.tier != "T0" else _BY_TIER,
    )
    with tempfile.TemporaryDirectory(prefix="handrail-doctor-", dir=_outside(run.place)) as outside:
        yield run.refused("no writing outside the workspace", 'echo x > "$1/written"', outside)
        yield run.refused("no chmod outside the workspace", 'chmod 700 "$1"', outside)
        yield run.refused("handrail's own files hidden", 'ls "$1/sessions" | grep -q .', run.place.state[-1])
    with tempfile.NamedTemporaryFile(prefix="handrail-doctor-", dir=TMP) as file:
        yield run.refused(f"{TMP} is the session's own", '[ -e "$1" ]', file.name)
    if os.path.isdir(os.path.join(run.place.workspace, ".git", "hooks")):
        yield run.refused(".git cannot be moved", "mv .git .git-moved && mv .git-moved .git")
    yield from _network(run)
    yield run.refused("io_uring refused", _call(425, "1", "bytes(120)"), when_not="no filter of system calls here")
    yield _root()


def _network(run: _Runner) -> Iterator[Finding]:
    with _listening() as port:
        connect = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
        if run.place.network:
            yield Finding("no network", holds=False, why="the settings switch it on", remedy="network='off'")
        else:
            yield run.refused("no network", connect)
    serve = (
        "import socket as s;l=s.create_server(('127.0.0.1',0));"
        "s.create_connection(l.getsockname());l.accept();print('ok')"
    )
    yield run.works("loopback works", f'python3 -c "{serve}"')


def _call(number: int, *arguments: str) -> str:
    """A line that makes a system call and ends with 0 where it was not refused outright."""
    words = ",".join((str(number), *arguments))
    return (
        'python3 -c "import ctypes,sys;l=ctypes.CDLL(None,use_errno=True);'
        f'r=l.syscall({words});sys.exit(r<0 and ctypes.get_errno() in (1,38))"'
    )


@contextmanager
def _listening() -> Generator[int]:
    """A port of this machine's own loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        yield port


def _outside(place: Place) -> str:
    """A directory in which we can write and no command should: that of handrail's own files."""
    return place.state[-1]


def _root() -> Finding:
    if os.getuid() == 0:
        return Finding(
            "not running as root",
            holds=False,
            why="root: files outside the workspace can be read whoever's they are, and no limit of processes holds",
            remedy="run handrail as an ordinary user",
        )
    return Finding("not running as root", holds=True, why=f"user id {os.getuid()}")
