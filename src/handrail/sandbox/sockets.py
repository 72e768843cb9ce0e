"""Sockets by which a command could have others act for it. It only looks; a socket that is there is no fault yet.

A read-only mount does not keep anybody from connecting: a socket has to be covered, or not to be there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_CONTAINERS = (
    ("docker.sock", "Docker's socket"),
    ("podman/podman.sock", "Podman's socket"),
    ("containerd/containerd.sock", "containerd's socket"),
    ("crio/crio.sock", "CRI-O's socket"),
    ("buildkit/buildkitd.sock", "BuildKit's socket"),
    ("k3s/containerd/containerd.sock", "containerd's socket"),
    ("cri-dockerd.sock", "Docker's socket"),
    ("libvirt/libvirt-sock", "libvirt's socket"),
    ("libvirt/virtqemud-sock", "libvirt's socket"),
)
_OF_THE_MACHINE = (
    ("/var/lib/lxd/unix.socket", "LXD's socket"),
    ("/var/snap/lxd/common/lxd/unix.socket", "LXD's socket"),
    ("/var/lib/incus/unix.socket", "Incus's socket"),
)
# Of a user's own runtime directory, where $XDG_RUNTIME_DIR is.
_OF_THE_USER = (
    ("bus", "the session's D-Bus"),
    ("systemd/private", "the user's systemd"),
    ("gnupg/S.gpg-agent", "the GnuPG agent"),
    ("gnupg/S.gpg-agent.ssh", "the GnuPG agent"),
    ("ssh-agent.socket", "the SSH agent"),
    ("openssh_agent", "the SSH agent"),
    ("gcr/ssh", "the SSH agent"),
    ("keyring/ssh", "the SSH agent"),
    ("keyring/control", "the keyring"),
)
_OF_A_HOME = (
    (".docker/run/docker.sock", "Docker's socket"),
    (".docker/desktop/docker.sock", "Docker's socket"),
    (".gnupg/S.gpg-agent", "the GnuPG agent"),
    (".1password/agent.sock", "the SSH agent"),
)
# Anybody may write to these, and they do only what their daemons let the sender do: for root, all.
_FOR_ROOT = (
    ("dbus/system_bus_socket", "the system's D-Bus"),
    ("systemd/private", "the system's systemd"),
    ("snapd.socket", "snapd's socket"),
)
# Variables that say where such a socket is, in the ways of their programs.
_NAMED_BY = (
    ("DOCKER_HOST", "Docker's socket"),
    ("CONTAINER_HOST", "Podman's socket"),
    ("BUILDKIT_HOST", "BuildKit's socket"),
    ("SSH_AUTH_SOCK", "the SSH agent"),
    ("DBUS_SESSION_BUS_ADDRESS", "the session's D-Bus"),
    ("TMUX", "the tmux server"),
)

_LISTED = "/proc/net/unix"


@dataclass(frozen=True, slots=True)
class Socket:
    """A socket by its path, and what answers there, in words."""

    path: str
    what: str


def reachable(variables: Mapping[str, str] = os.environ) -> tuple[Socket, ...]:
    """Sockets of containers, agents and the like that we may write to, each once, those of containers first.

    Who can talk to one of them can do more than the sandbox of a command lets it do, as this user or as root.
    """
    found: dict[str, Socket] = {}
    for path, what in _known(variables):
        real = os.path.realpath(path)
        if real not in found and _may_write(real):
            found[real] = Socket(real, what)
    return tuple(found.values())


def bound() -> tuple[str, ...]:
    """Paths of all sockets that are bound to one, are still there, and that we may write to, sorted.

    Of our network namespace alone: the kernel lists no others. One that was bound by a relative path is not found,
    for what it is relative to is not listed; nor is one whose name has a newline, for the list is one line each.
    """
    try:
        with open(_LISTED, "rb") as file:
            rows = [line.rstrip(b"\n").split(maxsplit=7) for line in file]
    except OSError:  # a /proc of which less is shown
        return ()
    paths = {os.fsdecode(row[7]) for row in rows if len(row) == 8 and row[7].startswith(b"/")}
    return tuple(sorted(path for path in map(os.path.realpath, paths) if _may_write(path)))


def _known(variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    runtime = variables.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    for variable, what in _NAMED_BY:
        for path in _paths_in(variables.get(variable, "")):
            yield path, what
    for directory in ("/run", "/var/run", runtime):
        for name, what in _CONTAINERS:
            yield f"{directory}/{name}", what
    yield from _OF_THE_MACHINE
    for name, what in _OF_THE_USER:
        yield f"{runtime}/{name}", what
    for name, what in _OF_A_HOME:
        yield os.path.expanduser(f"~/{name}"), what
    if os.geteuid() == 0:
        for name, what in _FOR_ROOT:
            yield f"/run/{name}", what
    yield f"/tmp/tmux-{os.geteuid()}/default", "the tmux server"  # noqa: S108 - only looked at


def _paths_in(value: str) -> Iterator[str]:
    """`unix:///path`, `unix:path=/path,guid=…;unix:…`, `/path,pid,session`, or a path alone."""
    for address in value.split(";"):
        path = address.split(",", 1)[0].removeprefix("unix:").removeprefix("path=")
        if path.startswith("/"):
            yield "/" + path.lstrip("/")


def _may_write(path: str) -> bool:
    try:
        is_socket = stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
    return is_socket and os.access(path, os.W_OK)
