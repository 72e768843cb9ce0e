"""Profiles compared as values, for surroundings that were made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handrail.sandbox.profile import IO, OUTPUTS, TMP, profile
from handrail.sandbox.repository import Repository
from handrail.sandbox.surroundings import Surroundings
from handrail.values.confinement import Identity, Mount
from handrail.values.place import Place

PLACE = Place(
    workspace="/home/a/work",
    session="/home/a/.state/sessions/1",
    cache="/home/a/.state/caches/1",
    state=("/home/a/.state",),
)
EMPTY = f"{PLACE.session}/empty"
WORK, DOT = "/home/a/work", "/home/a/work/.git"

AROUND = Surroundings(
    homes=("/home/a",),
    shared=("/run", "/tmp", "/var/tmp"),
    secrets=("/home/a/.netrc", "/home/a/.ssh"),
    state=("/home/a/.state",),
    directories=frozenset({"/home/a/.ssh", "/home/a/.state"}),
    repository=Repository(kind="directory", writable=(DOT,), read_only=(f"{DOT}/hooks", f"{DOT}/config")),
    identities=(Identity(WORK, 1, 2), Identity(DOT, 1, 3), Identity(f"{DOT}/config", 1, 4)),
)


def mounts(around: Surroundings = AROUND, place: Place = PLACE, *, network: bool = False) -> dict[str, Mount]:
    found = profile(place, around, "change", network=network).mounts
    assert len({mount.path for mount in found}) == len(found)
    return {mount.path: mount for mount in found}


def on_itself(path: str, *, writable: bool) -> Mount:
    return Mount(path, path, writable)


def test_a_command_that_may_change_the_workspace() -> None:
    made = profile(PLACE, AROUND, "change", network=False)
    assert made.mounts == (
        Mount("/home/a/.netrc", EMPTY, writable=False),
        Mount("/home/a/.ssh", None, writable=False),
        Mount("/home/a/.state", None, writable=False),
        on_itself("/home/a/.state/caches/1", writable=True),
        on_itself(WORK, writable=True),
        on_itself(DOT, writable=True),
        on_itself(f"{DOT}/config", writable=False),
        on_itself(f"{DOT}/hooks", writable=False),
        Mount("/run", None, writable=True),
        Mount(IO, PLACE.io, writable=True),
        Mount(OUTPUTS, PLACE.outputs, writable=False),
        Mount(TMP, PLACE.tmp, writable=True),
        Mount("/var/tmp", None, writable=False),
    )
    assert made.identities == AROUND.identities
    assert (made.must_write, made.network, made.owner) == ((WORK,), "own", None)


def test_a_command_that_only_reads() -> None:
    made = profile(PLACE, AROUND, "read", network=False)
    writable = {mount.path for mount in made.mounts if mount.writable}
    assert writable == {"/run", IO, TMP}
    assert on_itself(WORK, writable=False) in made.mounts
    assert Mount("/home/a/.ssh", None, writable=False) in made.mounts
    assert DOT not in {mount.path for mount in made.mounts}
    assert (made.identities, made.must_write) == ((Identity(WORK, 1, 2),), ())


def test_the_hosts_network_brings_the_addresses_of_its_name_servers() -> None:
    around = replace(AROUND, resolver="/run/systemd/resolve/stub-resolv.conf")
    assert profile(PLACE, around, "change", network=True).network == "host"
    assert mounts(around, network=True)[around.resolver or ""] == on_itself(around.resolver or "", writable=False)
    assert around.resolver not in mounts(around)
    assert "/etc/resolv.conf" not in mounts(replace(AROUND, resolver="/etc/resolv.conf"), network=True)


def test_who_it_runs_as_and_whether_it_must_be_able_to_write() -> None:
    owner = (1000, 1000, (4, 24))
    made = profile(PLACE, replace(AROUND, owner=owner), "change", network=False)
    assert made.owner == owner
    assert PLACE.cache not in {mount.path for mount in made.mounts}
    assert profile(PLACE, replace(AROUND, can_write=False), "change", network=False).must_write == ()


# ---------------------------------------------------------------- places in each other


@pytest.mark.parametrize("workspace", ["/tmp/w", "/run/user/1/w", "/home/a/.ssh/w", "/var/tmp/a/b"])
def test_a_workspace_in_a_hidden_place_is_where_it_is(workspace: str) -> None:
    made = list(mounts(place=replace(PLACE, workspace=workspace)).values())
    assert on_itself(workspace, writable=True) in made
    above = next(mount for mount in made if workspace.startswith(f"{mount.path}/"))
    assert made.index(above) < made.index(on_itself(workspace, writable=True))


def test_a_workspace_that_is_the_shared_tmp_stays_what_it_is() -> None:
    assert mounts(place=replace(PLACE, workspace="/tmp"))["/tmp"] == on_itself("/tmp", writable=True)


def test_parents_come_first_where_the_order_of_text_is_another() -> None:
    around = replace(AROUND, secrets=("/home/a/.x", "/home/a/.x y", "/home/a/.x/z"))
    place = replace(PLACE, workspace="/home/a/.x/z/w", read_paths=("/home/a/.x/k",))
    order = [
        mount.path for mount in profile(place, replace(around, reads=place.read_paths), "read", network=False).mounts
    ]
    assert order.index("/home/a/.x") < order.index("/home/a/.x/k") < order.index("/home/a/.x y")


def test_what_lies_in_a_hidden_place_needs_no_cover() -> None:
    around = replace(
        AROUND,
        secrets=("/tmp/home/.ssh", "/home/a/.ssh", "/home/a/.ssh/id"),
        state=("/tmp/handrail", "/home/a/.state"),
        sockets=("/run/x.sock", "/tmp/s", "/home/a/.ssh/agent"),
        directories=frozenset({"/tmp/home/.ssh", "/home/a/.ssh", "/tmp/handrail"}),
    )
    found = mounts(around)
    assert found["/home/a/.ssh"] == Mount("/home/a/.ssh", None, writable=False)
    assert not {"/tmp/home/.ssh", "/home/a/.ssh/id", "/tmp/handrail", *around.sockets} & found.keys()


def test_secrets_in_the_workspace_are_hidden_and_held_in_place() -> None:
    around = replace(AROUND, secrets=("/home/a/.config/gh",), directories=frozenset({"/home/a/.config/gh"}))
    around = replace(around, pins=("/home/a/.config",), identities=(Identity("/home/a/.config", 1, 9),))
    place = replace(PLACE, workspace="/home/a")
    found = profile(place, around, "change", network=False)
    assert on_itself("/home/a/.config", writable=True) in found.mounts
    assert Mount("/home/a/.config/gh", None, writable=False) in found.mounts
    assert found.identities == around.identities
    assert on_itself("/home/a/.config", writable=True) not in profile(place, around, "read", network=False).mounts


def test_denied_names_of_the_workspace_are_hidden() -> None:
    around = replace(AROUND, denied=(f"{WORK}/.env", f"{WORK}/.ssh"), directories=AROUND.directories | {f"{WORK}/.ssh"})
    found = mounts(around)
    assert found[f"{WORK}/.env"] == Mount(f"{WORK}/.env", EMPTY, writable=False)
    assert found[f"{WORK}/.ssh"] == Mount(f"{WORK}/.ssh", None, writable=False)


def test_the_projects_own_settings_cannot_be_changed() -> None:
    settings = f"{WORK}/handrail.toml"
    around = replace(AROUND, settings=settings, writes=(settings,))
    assert mounts(around)[settings] == on_itself(settings, writable=False)


# ---------------------------------------------------------------- what settings add


def test_further_paths_are_seen_and_written() -> None:
    around = replace(AROUND, reads=("/tmp/data", "/home/a/.ssh"), writes=("/srv/out",))
    found = mounts(around)
    assert found["/tmp/data"] == on_itself("/tmp/data", writable=False)
    assert found["/home/a/.ssh"] == on_itself("/home/a/.ssh", writable=False)
    assert found["/srv/out"] == on_itself("/srv/out", writable=True)
    read = profile(PLACE, around, "read", network=False).mounts
    assert on_itself("/srv/out", writable=False) in read


def test_a_path_around_a_secret_does_not_show_it() -> None:
    found = mounts(replace(AROUND, reads=("/home/a",)))
    assert found["/home/a/.ssh"] == Mount("/home/a/.ssh", None, writable=False)


@pytest.mark.parametrize(
    ("written", "still"),
    [(f"{DOT}/config", {f"{DOT}/hooks"}), (f"{DOT}/hooks", {f"{DOT}/config"}), (DOT, set[str]())],
)
def test_a_path_that_may_be_written_loses_its_protection(written: str, still: set[str]) -> None:
    found = mounts(replace(AROUND, writes=(written,)))
    assert {path for path, mount in found.items() if path.startswith(f"{DOT}/") and not mount.writable} == still
    assert written not in found, "a mount would keep git from replacing it"


def test_one_hook_that_may_be_written_is_mounted_among_those_that_may_not() -> None:
    hook = f"{DOT}/hooks/pre-commit"
    found = mounts(replace(AROUND, writes=(hook,)))
    assert found[hook] == on_itself(hook, writable=True)
    assert found[f"{DOT}/hooks"] == on_itself(f"{DOT}/hooks", writable=False)


def test_the_session_keeps_its_own_places() -> None:
    assert mounts(replace(AROUND, reads=("/tmp", "/run"))) == mounts()


# ---------------------------------------------------------------- sockets and programs


def test_sockets_are_covered_where_they_are_seen() -> None:
    around = replace(
        AROUND,
        sockets=("/opt/daemon.sock", f"{WORK}/dev.sock", "/tmp/data/s", "/tmp/data/named", "/dev/log", "/dev/shm/s"),
        reads=("/tmp/data", "/tmp/data/named"),
    )
    found = mounts(around)
    assert found["/opt/daemon.sock"] == Mount("/opt/daemon.sock", EMPTY, writable=False)
    assert found["/tmp/data/s"] == Mount("/tmp/data/s", EMPTY, writable=False)
    assert found["/tmp/data/named"] == on_itself("/tmp/data/named", writable=False)
    assert not {f"{WORK}/dev.sock", "/dev/log", "/dev/shm/s"} & found.keys()
    assert on_itself(f"{WORK}/dev.sock", writable=False) not in profile(PLACE, around, "read", network=False).mounts


def test_programs_in_hidden_places_are_seen() -> None:
    around = replace(
        AROUND,
        visible=(
            ("/tmp/venv", "/tmp/venv"),
            ("/tmp/venv/bin", "/tmp/venv/bin"),
            ("/run/current/bin", "/nix/store/x/bin"),
            ("/usr/bin", "/usr/bin"),
            ("/home/a/.state/python", "/home/a/.state/python"),
            (f"{WORK}/.venv", f"{WORK}/.venv"),
            ("/tmp", "/tmp"),
            ("/tmp/home", "/home/a"),
        ),
    )
    added = {path: mount for path, mount in mounts(around).items() if path not in mounts()}
    assert added == {
        "/tmp/venv": on_itself("/tmp/venv", writable=False),
        "/run/current/bin": Mount("/run/current/bin", "/nix/store/x/bin", writable=False),
        "/home/a/.state/python": on_itself("/home/a/.state/python", writable=False),
    }


def test_the_repository_of_a_worktree_in_a_hidden_place_is_seen() -> None:
    common = "/tmp/main/.git"
    around = replace(AROUND, repository=Repository(kind="worktree", writable=(common,), read_only=(f"{WORK}/.git",)))
    assert mounts(around)[common] == on_itself(common, writable=True)
    assert on_itself(common, writable=False) in profile(PLACE, around, "read", network=False).mounts
