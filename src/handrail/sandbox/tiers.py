"""From a place to the confinement of its slots, one function a tier. It starts nothing; a slot made so is the proof.

T3: bubblewrap. T2: our own mounts in namespaces, with Landlock. T1: Landlock and a filter of system calls alone.
"""

from __future__ import annotations

import os
import platform
import pwd
from dataclasses import replace
from typing import Any, Literal

from handrail.process import confine
from handrail.sandbox import bubblewrap, landlock, seccomp
from handrail.sandbox.profile import IO, OUTPUTS, TMP, profile
from handrail.sandbox.sockets import reachable
from handrail.sandbox.surroundings import Surroundings
from handrail.values.completed import Enforced
from handrail.values.confinement import Confinement, Profile
from handrail.values.invocation import Access
from handrail.values.place import Place, Resources

Tier = Literal["T3", "T2", "T1"]
TIERS: tuple[Tier, ...] = ("T3", "T2", "T1")

# Where a program that walls others in may be taken from, besides PATH: a workspace's own directory is none.
_PROGRAM_DIRECTORIES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")

# What a process has to write to in /dev. Anything else there is a device of the machine's.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
_DEVICE_DIRECTORIES = ("/dev/pts", "/dev/shm")  # noqa: S108 - as above

_MASKS = "secrets of the home and handrail's own files hidden"
_T1_GAPS = "not covered: chmod and chown outside, secrets can be read, .git is not protected, /tmp is shared"


class Unavailable(Exception):
    """A tier that this machine, or this place, cannot have; one sentence says why."""


def confinement(
    tier: Tier, place: Place, around: Surroundings, access: Access, *, network: bool, session_network: str
) -> Confinement:
    """How slots of a tier are made. Raises Unavailable.

    `session_network` names the network namespace that all slots of the session without the host's network are in.
    """
    wanted = profile(place, around, access, network=network)
    make = {"T3": _in_bubblewrap, "T2": _in_namespaces, "T1": _under_landlock}[tier]
    return make(place, around, wanted, session_network)


def seen(place: Place, path: str) -> str:
    """Where a slot with mounts of its own (T3, T2) has what lies at `path` in the session's directory."""
    for outside, inside in ((place.tmp, TMP), (place.io, IO), (place.outputs, OUTPUTS)):
        if path == outside or path.startswith(outside + "/"):
            return inside + path[len(outside) :]
    return path


def owner_variables(around: Surroundings, tmp: str) -> dict[str, str]:
    """For commands that run as the workspace's owner, in place of our own name and home."""
    if around.owner is None:
        return {}
    try:
        entry = pwd.getpwuid(around.owner[0])
    except KeyError:
        return {"HOME": tmp}
    home = entry.pw_dir if os.path.isdir(entry.pw_dir) else tmp
    return {"HOME": home, "USER": entry.pw_name, "LOGNAME": entry.pw_name}


def find_bubblewrap(place: Place) -> str | None:
    """Its absolute path; never one in the workspace, where a command could have put it."""
    within = place.workspace.rstrip("/") + "/"
    for directory in (*os.environ.get("PATH", "").split(":"), *_PROGRAM_DIRECTORIES):
        path = os.path.realpath(os.path.join(directory, "bwrap"))
        if os.path.isabs(directory) and not path.startswith(within) and os.access(path, os.X_OK):
            return path
    return None


def _in_bubblewrap(place: Place, around: Surroundings, wanted: Profile, session_network: str) -> Confinement:
    del around
    program = find_bubblewrap(place)
    if program is None:
        raise Unavailable("bubblewrap is not installed")
    if wanted.owner is not None:
        raise Unavailable("the workspace belongs to another user, as whom bubblewrap could not be started")
    is_own = wanted.network == "own"
    scope = None if is_own else landlock.scope_only(confine.landlock_abi())
    return Confinement(
        "namespace",
        Enforced(
            "T3",
            "PID namespace",
            f"bubblewrap: {_what_is_writable(wanted)}, {_MASKS}",
            _network_words(wanted),
        ),
        outside={
            "program": bubblewrap.argv(wanted, program, network_is_shared=is_own),
            **({"network": session_network} if is_own else {}),
        },
        inside=_inside(place, wanted) | {"landlock": scope.as_json() if scope is not None else None},
    )


def _in_namespaces(place: Place, around: Surroundings, wanted: Profile, session_network: str) -> Confinement:
    del around
    abi = confine.landlock_abi()
    if abi < 1:
        raise Unavailable("this kernel has no Landlock, or it is switched off")
    filter_ = seccomp.program(platform.machine(), "all")
    if filter_ is None:
        raise Unavailable(f"handrail has no system-call filter for {platform.machine()}")
    writable = [mount.path for mount in wanted.mounts if mount.writable]
    return Confinement(
        "namespace",
        Enforced(
            "T2",
            "PID namespace",
            f"mount namespace and Landlock: {_what_is_writable(wanted)}, {_MASKS}",
            _network_words(wanted),
        ),
        outside={
            "mounts": [[mount.path, mount.source, mount.writable] for mount in wanted.mounts],
            **({"network": session_network} if wanted.network == "own" else {}),
        },
        inside=_inside(place, wanted)
        | {
            "owner": wanted.owner,
            "landlock": landlock.ruleset(abi, writable=[*writable, "/dev"], devices=[]).as_json(),
            "seccomp": filter_.hex(),
        },
    )


def _under_landlock(place: Place, around: Surroundings, wanted: Profile, session_network: str) -> Confinement:
    del around, session_network
    abi = confine.landlock_abi()
    if abi < 1:
        raise Unavailable("this kernel has no Landlock, or it is switched off")
    filter_ = seccomp.program(platform.machine(), "all" if wanted.network == "host" else "unix")
    if filter_ is None:
        raise Unavailable(f"handrail has no system-call filter for {platform.machine()}")
    if wanted.owner is not None:
        raise Unavailable("the workspace belongs to another user, and only a mount namespace could give it to them")
    if place.sandbox == "required" and (sockets := reachable()):
        raise Unavailable(f"{sockets[0].what} can be reached, and with it everything outside")
    writable = [mount.source for mount in wanted.mounts if mount.writable and mount.source is not None]
    ruleset = landlock.ruleset(abi, writable=[*writable, *_DEVICE_DIRECTORIES], devices=_DEVICES)
    return Confinement(
        "reaper",
        Enforced(
            "T1",
            "child subreaper",
            f"Landlock: {_what_is_writable(wanted)}; {_T1_GAPS}",
            "the host's" if wanted.network == "host" else "no sockets but Unix ones; no loopback",
        ),
        inside=_inside(place, replace(wanted, identities=()))
        | {"landlock": ruleset.as_json(), "seccomp": filter_.hex()},
    )


def _inside(place: Place, wanted: Profile) -> dict[str, Any]:
    filter_ = seccomp.program(platform.machine(), "all")
    return {
        "owner": None,
        "drop_capabilities": True,
        "landlock": None,
        "seccomp": filter_.hex() if filter_ is not None else None,
        "limits": limits(place.resources),
        "cpu_s": place.resources.cpu_s,
        "identities": [[identity.path, identity.device, identity.inode] for identity in wanted.identities],
        "must_write": list(wanted.must_write),
    }


def limits(resources: Resources) -> list[tuple[str, int]]:
    """What the kernel counts for each process. Of processor time the keeper itself has no limit: see keeper.py."""
    asked = (
        ("RLIMIT_FSIZE", resources.file_bytes),
        ("RLIMIT_NOFILE", resources.open_files),
        ("RLIMIT_NPROC", resources.processes),
    )
    return [(name, value) for name, value in asked if value is not None]


def _what_is_writable(wanted: Profile) -> str:
    if not wanted.must_write and not any(mount.writable and mount.path == mount.source for mount in wanted.mounts):
        return "everything read-only"
    return "all but the workspace read-only"


def _network_words(wanted: Profile) -> str:
    return "the host's" if wanted.network == "host" else "a namespace of the session's own, loopback only"
