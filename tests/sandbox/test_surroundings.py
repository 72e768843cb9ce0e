"""What is seen of a machine: real trees, and this very interpreter."""

from __future__ import annotations

import os
import pwd
import socket
import sys
import tempfile
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

import handrail
from handrail.sandbox.surroundings import Surroundings, fingerprint, look
from handrail.values.confinement import Identity
from handrail.values.place import Place


@pytest.fixture
def top() -> Generator[Path]:
    """A directory that others can enter, with a home, a workspace and handrail's own directory in it."""
    with tempfile.TemporaryDirectory(prefix="handrail-") as path:
        top = Path(path).resolve()
        top.chmod(0o755)
        for name in ("home", "work", "state/caches/1", "state/sessions/1"):
            (top / name).mkdir(parents=True)
        yield top


@pytest.fixture
def home(top: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(top / "home"))
    return top / "home"


@pytest.fixture
def place(top: Path, home: Path) -> Place:
    assert home.is_dir()
    return Place(
        workspace=f"{top}/work",
        session=f"{top}/state/sessions/1",
        cache=f"{top}/state/caches/1",
        state=(f"{top}/state",),
    )


def make(path: Path, text: str = "x") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def identity(path: str) -> Identity:
    facts = os.lstat(path)
    return Identity(path, facts.st_dev, facts.st_ino)


def test_secrets_of_every_home_are_found(place: Place, home: Path) -> None:
    (home / ".ssh").mkdir()
    netrc = make(home / ".netrc")
    found = look(place)
    assert found.homes[0] == str(home)
    if os.path.isdir(pwd.getpwuid(os.geteuid()).pw_dir):
        assert os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir) in found.homes
    assert {f"{home}/.ssh", netrc} <= {*found.secrets}
    assert f"{home}/.ssh" in found.directories
    assert netrc not in found.directories
    assert found.state == place.state


def test_shared_directories_are_named_unless_they_are_links(place: Place) -> None:
    found = look(place).shared
    assert "/tmp" in found
    assert not any(os.path.islink(path) for path in found)


def test_a_bound_socket_is_found(place: Place) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{place.workspace}/s")
        assert f"{place.workspace}/s" in look(place).sockets


def test_what_runs_programs_has_to_be_seen(place: Place, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top / "bin").mkdir()
    (top / "link").symlink_to("bin")
    monkeypatch.setenv("PATH", f"{top}/link:relative::{top}/none:/usr/bin")
    found = look(place).visible
    package = os.path.dirname(handrail.__file__)
    for path in (sys.prefix, sys.base_prefix, package, os.path.dirname(os.path.realpath(sys.executable)), "/usr/bin"):
        assert (path, os.path.realpath(path)) in found
    assert (f"{top}/link", f"{top}/bin") in found
    assert (f"{top}/bin", f"{top}/bin") in found
    assert not any("relative" in path or "none" in path for path, _ in found)


def test_paths_of_settings_count_from_the_workspace_and_are_there(place: Place, top: Path) -> None:
    make(top / "work/.git/config")
    data = make(top / "data")
    (top / "link").symlink_to("data")
    found = look(replace(place, read_paths=(f"{top}/link", f"{top}/none", "/"), write_paths=(".git/config",)))
    assert found.reads == (data,)
    assert found.writes == (f"{place.workspace}/.git/config",)


def test_the_projects_settings_are_found_unless_they_are_a_link(place: Place, top: Path) -> None:
    assert look(place).settings is None
    settings = make(top / "work/handrail.toml")
    found = look(place)
    assert found.settings == settings
    assert identity(settings) in found.identities
    os.unlink(settings)
    os.symlink("/etc/passwd", settings)
    assert look(place).settings is None


def test_what_holds_a_secret_in_the_workspace_is_pinned(place: Place, home: Path) -> None:
    make(home / ".config/gh/hosts.yml")
    make(home / "a/b/.env")
    make(home / "data/deep/x")
    around = look(
        replace(
            place,
            workspace=str(home),
            hide_denied=True,
            read_paths=("data/deep/x",),
            state=(f"{home}/none", *place.state),
        )
    )
    assert around.pins == tuple(f"{home}/{name}" for name in (".config", "a", "a/b", "data", "data/deep"))
    assert {identity(path) for path in (*around.pins, str(home), f"{home}/data/deep/x")} == {*around.identities}


def test_nothing_is_pinned_without_need(place: Place, home: Path) -> None:
    (home / ".ssh").mkdir()
    around = look(place)
    assert around.pins == ()
    assert around.identities == (identity(place.workspace),)


def test_a_directory_that_commands_can_write_leads_to_no_repository(place: Place, top: Path) -> None:
    evil = Path(place.cache) / "x.git"
    for name in ("objects", "refs", "worktrees/w"):
        (evil / name).mkdir(parents=True)
    make(evil / "HEAD")
    make(evil / "worktrees/w/gitdir", f"{place.workspace}/.git\n")
    make(evil / "worktrees/w/commondir", "../..\n")
    make(top / "work/.git", f"gitdir: {evil}/worktrees/w\n")
    assert look(place).repository.kind == "untrusted"


# ---------------------------------------------------------------- denied names


def test_denied_names_are_found_where_a_project_has_its_own(place: Place, top: Path) -> None:
    work = top / "work"
    wanted = [make(work / name) for name in (".env", "a/b/server.pem", "c/.env.local")]
    make(work / ".env.example")
    make(work / ".git/x.key")
    make(work / "node_modules/p/test.pem")
    make(work / ".venv/lib/site-packages/certifi/cacert.pem")
    make(work / ".ssh/x.pem")
    (work / "link.pem").symlink_to(wanted[0])
    (work / "loop").symlink_to(".")
    around = look(replace(place, hide_denied=True))
    assert {*around.denied} == {*wanted, f"{work}/.ssh"}
    assert f"{work}/.ssh" in around.directories
    assert around.all_denied
    assert look(place).denied == ()


def test_a_search_that_found_too_much_says_that_there_may_be_more(place: Place, top: Path) -> None:
    for number in range(1001):
        (top / f"work/{number}.key").touch()
    around = look(replace(place, hide_denied=True))
    assert (len(around.denied), around.all_denied) == (1000, False)


# ---------------------------------------------------------------- who runs it


def test_our_own_workspace_is_ours(place: Place) -> None:
    around = look(place)
    assert (around.owner, around.can_write) == (None, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("uid", [65534, 54321])
def test_root_runs_commands_as_the_owner_of_the_workspace(place: Place, uid: int) -> None:
    os.chown(place.workspace, uid, 77)
    around = look(place)
    try:
        group = pwd.getpwuid(uid).pw_gid
    except KeyError:
        group = 77
    assert around.owner is not None
    assert around.owner[:2] == (uid, group)
    assert around.can_write


@pytest.mark.parametrize(("mode", "can"), [(0o700, True), (0o500, False), (0o077, False), (0o000, False)])
def test_rights_are_those_of_a_command(place: Place, mode: int, can: bool) -> None:
    os.chmod(place.workspace, mode)
    assert look(place).can_write is can
    os.chmod(place.workspace, 0o700)


# ---------------------------------------------------------------- the fingerprint

CHANGES: dict[str, Callable[[Path], object]] = {
    "a new secret in the home": lambda top: (top / "home/.ssh").mkdir(),
    "a new one in its .config": lambda top: (top / "home/.config/gh").mkdir(),
    "a repository": lambda top: (top / "work/.git").rename(top / "work/git"),
    "another configuration of git's": lambda top: os.replace(make(top / "work/.git/new"), top / "work/.git/config"),
    "hooks": lambda top: (top / "work/.git/hooks").mkdir(),
    "settings": lambda top: make(top / "work/handrail.toml"),
    "another owner's rights": lambda top: (top / "work").chmod(0o555),
    "a path of the settings is another": lambda top: os.replace(make(top / "new"), top / "data"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_matters_changes_the_fingerprint(place: Place, top: Path, home: Path, change: str) -> None:
    make(top / "work/.git/config")
    (home / ".config").mkdir()
    place = replace(place, read_paths=(make(top / "data"),))
    for path in (home, home / ".config"):
        os.utime(path, ns=(0, 0))  # the clock of a file system ticks every few milliseconds
    before = fingerprint(place)
    assert fingerprint(place) == before
    CHANGES[change](top)
    assert fingerprint(place) != before


def test_what_a_worktree_obeys_elsewhere_changes_the_fingerprint(place: Place, top: Path) -> None:
    common = top / "main/.git"
    for name in ("objects", "refs", "worktrees/w"):
        (common / name).mkdir(parents=True)
    for name, text in {"HEAD": "x", "config": "x", "worktrees/w/commondir": "../..\n"}.items():
        make(common / name, text)
    make(common / "worktrees/w/gitdir", f"{place.workspace}/.git\n")
    make(top / "work/.git", f"gitdir: {common}/worktrees/w\n")
    assert look(place).repository.kind == "worktree"
    before = fingerprint(place)
    os.replace(make(common / "new"), common / "config")
    assert fingerprint(place) != before


def test_work_in_the_workspace_does_not_change_the_fingerprint(place: Place, top: Path) -> None:
    make(top / "work/.git/config")
    before = fingerprint(place)
    make(top / "work/new")
    make(top / "work/.git/index.lock")
    make(top / "state/sessions/1/tmp/x")
    assert fingerprint(place) == before


def test_two_looks_at_the_same_are_equal(place: Place) -> None:
    around, again = look(place), look(place)
    assert isinstance(around, Surroundings)
    assert replace(again, sockets=around.sockets) == around  # sockets of others come and go


def test_a_home_has_to_be_seen_where_it_lies_in_a_hidden_place(place: Place, home: Path) -> None:
    assert (str(home), str(home)) in look(place).visible
