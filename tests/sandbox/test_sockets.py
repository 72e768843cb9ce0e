"""Real sockets, found where programs put them and where variables say."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from handrail.sandbox.sockets import Socket, bound, reachable


class Room:
    """A directory with a short name, for the path of a socket may have 107 bytes."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self._stack = stack

    def listen(self, name: str) -> str:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        listening = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(path))
        listening.listen()
        return str(path)


@pytest.fixture
def room() -> Generator[Room]:
    with tempfile.TemporaryDirectory(prefix="hr-") as path, ExitStack() as stack:
        yield Room(Path(path).resolve(), stack)


def known(room: Room, **variables: str) -> set[Socket]:
    return {each for each in reachable(variables) if each.path.startswith(str(room.path))}


def test_sockets_of_a_runtime_directory_are_told_by_what_answers_there(room: Room) -> None:
    docker, podman, bus = room.listen("docker.sock"), room.listen("podman/podman.sock"), room.listen("bus")
    agent = room.listen("gnupg/S.gpg-agent")
    room.listen("wayland-0")
    found = reachable({"XDG_RUNTIME_DIR": str(room.path)})
    assert [each for each in found if each.path.startswith(str(room.path))] == [
        Socket(docker, "Docker's socket"),
        Socket(podman, "Podman's socket"),
        Socket(bus, "the session's D-Bus"),
        Socket(agent, "the GnuPG agent"),
    ]


@pytest.mark.parametrize(
    ("variable", "form", "what"),
    [
        ("DOCKER_HOST", "unix://{}", "Docker's socket"),
        ("SSH_AUTH_SOCK", "{}", "the SSH agent"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path={},guid=0af", "the session's D-Bus"),
        ("DBUS_SESSION_BUS_ADDRESS", "tcp:host=h;unix:path={}", "the session's D-Bus"),
        ("TMUX", "{},123,0", "the tmux server"),
    ],
)
def test_a_variable_names_a_socket(room: Room, variable: str, form: str, what: str) -> None:
    path = room.listen("x y/s")
    assert known(room, **{variable: form.format(path)}) == {Socket(path, what)}


@pytest.mark.parametrize("address", ["tcp://h:2375", "ssh://h", "", "unix:abstract=/tmp/x", "unix:///none", "\0/x"])
def test_other_addresses_name_none(room: Room, address: str) -> None:
    room.listen("s")
    assert known(room, DOCKER_HOST=address) == set()


def test_a_file_is_no_socket(room: Room) -> None:
    (room.path / "docker.sock").touch()
    assert known(room, XDG_RUNTIME_DIR=str(room.path)) == set()


def test_one_socket_by_two_names_is_told_once(room: Room) -> None:
    path = room.listen("s")
    (room.path / "docker.sock").symlink_to(path)
    assert known(room, XDG_RUNTIME_DIR=str(room.path), DOCKER_HOST=f"unix://{path}") == {
        Socket(path, "Docker's socket")
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any socket")
def test_a_socket_that_we_may_not_write_to_is_none(room: Room) -> None:
    path = room.listen("docker.sock")
    os.chmod(path, 0o400)
    assert known(room, XDG_RUNTIME_DIR=str(room.path)) == set()
    assert path not in bound()


def test_bound_sockets_are_all_there_are(room: Room) -> None:
    path, odd = room.listen("any"), room.listen(" a b\u00e9")
    gone = room.listen("gone")
    os.unlink(gone)
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        abstract.bind("\0" + path + "-abstract")
        datagrams.bind(f"{room.path}/log")
        found = bound()
    assert [each for each in found if each.startswith(str(room.path))] == [odd, path, f"{room.path}/log"]
