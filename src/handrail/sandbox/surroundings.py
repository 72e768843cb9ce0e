"""What there is on this machine that the profile of a place depends on, looked at once and handed on as a value.

It changes nothing, and it decides nothing: that is profile.py's.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from handrail.sandbox import repository, secrets, sockets
from handrail.sandbox.git_files import kind_of
from handrail.sandbox.repository import Repository, identity_of, lies_in
from handrail.text.denied import is_denied
from handrail.values.confinement import Identity
from handrail.values.place import Place

# What all users of a machine share, besides what is their own business: agents' sockets, other programs' files.
_SHARED = ("/run", "/tmp", "/var/run")  # noqa: S108 - to be hidden
_RESOLVER = "/etc/resolv.conf"
SETTINGS = "handrail.toml"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

_WALK_ENTRIES = 200_000  # of a workspace, in search of denied names: about a second
_WALK_FOUND = 1000  # masks: bubblewrap takes 9000 arguments
# Of what others published: certificates to be trusted, keys of test suites. A program fails without them.
_PUBLISHED = frozenset({"node_modules", "site-packages", "dist-packages"})

Owner = tuple[int, int, tuple[int, ...]]
"""User, group, further groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Real paths throughout, of what was there.

    homes          of the user that commands run as, and ours.
    shared         directories to be hidden whole: /run, /tmp and the like, without links.
    secrets        files and directories to be hidden. `state` likewise: handrail's own directories.
    denied         files and directories of the workspace with a denied name, if they are to be hidden.
    all_denied     whether the search for these came to its end; False: there may be more.
    directories    those of all the above that are directories.
    sockets        bound ones, to be covered.
    visible        what has to be seen although it may lie in what is hidden, as (path, real path).
    resolver       what /etc/resolv.conf is in the end; None: there is none.
    settings       the workspace's handrail.toml; None: there is none.
    reads, writes  the place's further paths that are there.
    pins           directories that commands may write to and that hold what is hidden or protected: mounted on
                   themselves, they cannot be renamed with it.
    identities     of what is mounted from where a command may write.
    owner          whom to run as, where we are root and the workspace is another's; None: as we are.
    can_write      whether that user may write in the workspace.
    """

    homes: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    all_denied: bool = True
    directories: frozenset[str] = frozenset()
    sockets: tuple[str, ...] = ()
    visible: tuple[tuple[str, str], ...] = ()
    resolver: str | None = None
    settings: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    repository: Repository = field(default_factory=Repository)
    pins: tuple[str, ...] = ()
    identities: tuple[Identity, ...] = ()
    owner: Owner | None = None
    can_write: bool = True


def look(place: Place) -> Surroundings:
    """At everything that a profile of `place` depends on. Raises OSError where there is no workspace any more."""
    workspace = os.stat(place.workspace)
    owner = _owner(workspace)
    homes = _homes(owner)
    reads, writes = _there(place, place.read_paths), _there(place, place.write_paths)
    found = secrets.present(homes)
    state = tuple(path for path in map(os.path.realpath, place.state) if os.path.isdir(path))
    denied, all_denied = _denied(place.workspace) if place.hide_denied else ((), True)
    settings = f"{place.workspace}/{SETTINGS}"
    has_settings = kind_of(settings) == stat.S_IFREG
    repo = repository.look(place.workspace, (place.cache, *writes))
    writable = (place.workspace, place.cache, *writes, *repo.writable)
    inner = [path for path in (*found, *state, *denied, *reads, *writes) if _lies_within(path, writable)]
    pins = _above(inner, writable)
    mounted = {*pins, *({*inner} & {*reads, *writes}), *([settings] if has_settings else ()), place.workspace}
    return Surroundings(
        homes=homes,
        shared=tuple(path for path in _SHARED if kind_of(path) == stat.S_IFDIR),
        secrets=found,
        state=state,
        denied=denied,
        all_denied=all_denied,
        directories=frozenset(path for path in (*found, *state, *denied) if os.path.isdir(path)),
        sockets=sockets.bound(),
        visible=tuple(_visible(homes)),
        resolver=os.path.realpath(_RESOLVER) if os.path.isfile(_RESOLVER) else None,
        settings=settings if has_settings else None,
        reads=reads,
        writes=writes,
        repository=repo,
        pins=pins,
        identities=(*repo.identities, *(identity_of(path) for path in sorted(mounted))),
        owner=owner,
        can_write=_can_write(place.workspace, workspace, owner),
    )


def fingerprint(place: Place) -> tuple[object, ...]:
    """Changes when what `look` sees may have changed: some twenty calls of stat(2), of what people and tools change.

    Files that are replaced matter as much as those that come: a mount stays with the old one, or goes away with it.
    Not seen are secrets deeper in the home, sockets, and denied names below the workspace's own directory.
    """
    home = os.path.expanduser("~")
    return (
        *(_changed(path) for path in (home, f"{home}/.config", *([place.workspace] if place.hide_denied else []))),
        *(_is(path) for path in (place.workspace, f"{place.workspace}/.git", *repository.obeyed(place.workspace))),
        *(_is(path) for path in (f"{place.workspace}/{SETTINGS}", *place.read_paths, *place.write_paths)),
        _is(_RESOLVER),
    )


def _is(path: str) -> tuple[int, ...]:
    """Which file it is, whose, and what may be done with it."""
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return ()
    return facts.st_dev, facts.st_ino, facts.st_mode, facts.st_uid


def _changed(path: str) -> tuple[int, ...]:
    """Also whether names came or went in it."""
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    return facts.st_dev, facts.st_ino, facts.st_mtime_ns


# ---------------------------------------------------------------- users


def _owner(workspace: os.stat_result) -> Owner | None:
    if os.geteuid() != 0 or workspace.st_uid == 0:
        return None
    try:
        entry = pwd.getpwuid(workspace.st_uid)
    except KeyError:
        return workspace.st_uid, workspace.st_gid, ()
    return workspace.st_uid, entry.pw_gid, tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))


def _homes(owner: Owner | None) -> tuple[str, ...]:
    homes = [os.path.expanduser("~")]
    for uid in (os.geteuid(), *((owner[0],) if owner is not None else ())):
        try:
            homes.append(pwd.getpwuid(uid).pw_dir)
        except KeyError:
            continue
    real = (os.path.realpath(home) for home in homes if os.path.isabs(home))
    return tuple(dict.fromkeys(home for home in real if home != "/" and os.path.isdir(home)))


def _can_write(path: str, facts: os.stat_result, owner: Owner | None) -> bool:
    """Without the rights of root's that a command does not get; a file system that is mounted read-only says so."""
    if os.geteuid() != 0:
        return os.access(path, os.W_OK | os.X_OK)
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return False
    uid, groups = (0, {os.getegid(), *os.getgroups()}) if owner is None else (owner[0], {owner[1], *owner[2]})
    shift = 6 if facts.st_uid == uid else 3 if facts.st_gid in groups else 0
    return facts.st_mode >> shift & 0o3 == 0o3


# ---------------------------------------------------------------- paths


def _there(place: Place, paths: Iterable[str]) -> tuple[str, ...]:
    """A relative path counts from the workspace."""
    real = (os.path.realpath(os.path.join(place.workspace, path)) for path in paths)
    return tuple(dict.fromkeys(path for path in real if path != "/" and os.path.exists(path)))


def _visible(homes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What programs are run from, and read: our own interpreter and package, the directories of PATH, the homes."""
    package = _PACKAGE
    executable = os.path.realpath(sys.executable)
    ours = (sys.prefix, sys.base_prefix, os.path.dirname(sys.executable), os.path.dirname(executable), package)
    paths = [path for path in (*ours, *os.environ.get("PATH", "").split(":"), *homes) if os.path.isabs(path)]
    for path in dict.fromkeys(map(os.path.normpath, paths)):
        real = os.path.realpath(path)
        if os.path.isdir(real):
            yield path, real
            if path != real:
                yield real, real


def _lies_within(path: str, directories: Iterable[str]) -> bool:
    return any(path != directory and lies_in(path, directory) for directory in directories)


def _above(paths: Iterable[str], writable: Iterable[str]) -> tuple[str, ...]:
    """The directories between a writable one and what lies in it."""
    tops = {*writable}
    found: set[str] = set()
    for path in paths:
        above = os.path.dirname(path)
        while above not in tops and above not in found and _lies_within(above, tops):
            found.add(above)
            above = os.path.dirname(above)
    return tuple(sorted(found))


def _denied(workspace: str) -> tuple[tuple[str, ...], bool]:
    """Files and directories with a denied name, no link followed, and whether all were found."""
    found: list[str] = []
    places = [workspace]
    entries = 0
    while places:
        try:
            with os.scandir(places.pop()) as listing:
                for entry in listing:
                    entries += 1
                    if entries > _WALK_ENTRIES or len(found) == _WALK_FOUND:
                        return tuple(sorted(found)), False
                    is_directory = entry.is_dir(follow_symlinks=False)
                    if entry.name == ".git" or entry.is_symlink():
                        continue
                    if is_denied(entry.name):
                        found.append(entry.path)
                    elif is_directory and entry.name not in _PUBLISHED:
                        places.append(entry.path)
        except OSError:  # gone meanwhile, or closed to us, as it will be to commands
            continue
    return tuple(sorted(found)), True
