"""How a workspace is a git repository: what of it has to be writable, and what git would obey or run outside.

A command can write a `.git` file and what it names. So one that leads out of the workspace is followed only to where
no command can write, and where git itself has noted that this workspace belongs there. It starts no program.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from handrail.sandbox.git_files import is_git_directory, kind_of, pointer, work_tree
from handrail.values.confinement import Identity

Kind = Literal["none", "directory", "bare", "worktree", "submodule", "untrusted"]

# In a git directory: what programs git runs, what names further ones, and what makes git look elsewhere for both.
_REDIRECTION = "commondir"
_OBEYED = ("hooks", "config", "config.worktree", _REDIRECTION)
_FAMILIES = ("modules", "worktrees")  # in which there are further git directories
_ENTRIES = 2000  # of these that are looked at

Signature = tuple[int, ...]
"""Of what lies at a path: device, inode, type, and when it was last changed (ns). Empty where nothing does."""
_MEMBER = -1  # begins the signature of a whole git directory; no device has this number


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """What of a repository a slot needs, by real paths. All of it was there, and none of it was a link.

    kind         "untrusted": there is a `.git` that is a link, or that leads to where this workspace is not known.
    writable     directories, to be mounted on themselves: what is mounted cannot be renamed or removed.
    read_only    files and directories that git obeys.
    identities   of all the above.
    directories  where git looks for what it obeys.
    """

    kind: Kind = "none"
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    identities: tuple[Identity, ...] = ()
    directories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Watch:
    """How things stood: `.git` itself, and by path what no mount protects."""

    git: Signature
    things: dict[str, Signature]
    directories: tuple[str, ...]


def look(workspace: str, writable: Sequence[str] = ()) -> Repository:
    """At a workspace's own repository; one around it is no command's business.

    `writable` are further directories that commands may write to: what a `.git` file names there is not trusted.
    """
    git = f"{workspace}/.git"
    kind = kind_of(git)
    if kind == stat.S_IFDIR:
        return _repository("directory", [git], directories=[git])
    if kind == stat.S_IFREG:
        return _pointed(workspace, git, (workspace, *writable))
    if kind is not None:
        return Repository(kind="untrusted")
    if is_git_directory(workspace):
        return _repository("bare", [], directories=[workspace])
    return Repository()


def lies_in(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or below it. Both absolute and real."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def identity_of(path: str) -> Identity:
    """Of what lies there now. Raises OSError if that is nothing."""
    facts = os.lstat(path)
    return Identity(path, facts.st_dev, facts.st_ino)


def _pointed(workspace: str, git: str, writable: Sequence[str]) -> Repository:
    named = pointer(git, "gitdir: ")
    target = os.path.realpath(named) if named is not None else ""
    if target and not any(lies_in(target, place) for place in writable):
        redirection = pointer(f"{target}/{_REDIRECTION}")
        if redirection is not None:
            common = os.path.realpath(redirection)
            if _is_worktree(workspace, target, common):
                # Three mounts, for a command could otherwise rename what holds the last.
                places = [common, f"{common}/worktrees", target]
                return _repository("worktree", places, [git], directories=[common, target])
        elif is_git_directory(target) and work_tree(target) == workspace:
            return _repository("submodule", [target], [git], directories=[target])
    return _repository("untrusted", [], [git], directories=[])


def _is_worktree(workspace: str, target: str, common: str) -> bool:
    """Whether `target` is what git keeps of this worktree in the repository `common`.

    It has to lie in there: who could write to a directory of his own would otherwise name another's repository in it.
    """
    back = pointer(f"{target}/gitdir")
    return (
        os.path.dirname(target) == f"{common}/worktrees"
        and is_git_directory(common)
        and back is not None
        and os.path.basename(back) == ".git"
        and os.path.realpath(os.path.dirname(back)) == workspace
    )


def _repository(kind: Kind, writable: list[str], files: Sequence[str] = (), *, directories: list[str]) -> Repository:
    obeyed = [f"{directory}/{name}" for directory in directories for name in _OBEYED]
    read_only = [*files, *(path for path in obeyed if kind_of(path) in (stat.S_IFREG, stat.S_IFDIR))]
    return Repository(
        kind=kind,
        writable=tuple(writable),
        read_only=tuple(read_only),
        identities=tuple(identity_of(path) for path in (*writable, *read_only)),
        directories=tuple(directories),
    )


def obeyed(workspace: str) -> tuple[str, ...]:
    """Paths of all that git obeys in a workspace's own repository, whether it is there or not. Costs a call or two."""
    directories = _directories(workspace, _signature(f"{workspace}/.git"))
    return tuple(f"{directory}/{name}" for directory in directories for name in _OBEYED)


# ---------------------------------------------------------------- what no mount protects


def watch(workspace: str) -> Watch:
    """Look before a command, so that `unprotected` can tell what it made. A few calls of lstat(2)."""
    git = _signature(f"{workspace}/.git")
    directories = _directories(workspace, git)
    return Watch(git, _things(workspace, git, directories), directories)


def unprotected(before: Watch, workspace: str) -> list[str]:
    """What has come to be since then that git would obey or run outside, each in words for the model."""
    git = _signature(f"{workspace}/.git")
    if git and not _is_same(before.git, git):
        return [f".git was {_how(before.git)}: the hooks and configuration in it are not protected from this command"]
    found: list[str] = []
    for path, now in _things(workspace, git, before.directories).items():
        then = before.things.get(path, ())
        if now and now != then and _is_told(path, then):
            found.append(f"{_shown(path, before.directories)} was {_how(then)}: git obeys it, and it is not protected")
    return found


def _how(then: Signature) -> str:
    return "replaced" if then else "made"


def _is_same(then: Signature, now: Signature) -> bool:
    """A directory changes with every lock that git takes in it."""
    return then[:3] == now[:3] if now[2] == stat.S_IFDIR else then == now


def _is_told(path: str, then: Signature) -> bool:
    """Of what was there and could be mounted, a change came from outside, or is one that a setting allows."""
    return not then or then[0] == _MEMBER or then[2] == stat.S_IFLNK or path.endswith(f"/{_REDIRECTION}")


def _shown(path: str, directories: Sequence[str]) -> str:
    for directory in sorted(directories, key=len, reverse=True):
        if lies_in(path, directory):
            return f".git/{path[len(directory) + 1 :]}"
    return "a git directory in place of the workspace"


def _things(workspace: str, git: Signature, directories: Sequence[str]) -> dict[str, Signature]:
    if not git:
        return {workspace: _signature(f"{workspace}/HEAD")} if is_git_directory(workspace) else {}
    things = {path: _signature(path) for place in directories for path in (f"{place}/{name}" for name in _OBEYED)}
    for family in (f"{place}/{name}" for place in directories for name in _FAMILIES):
        for member in _members(family):
            parts = [_signature(f"{member}/{name}") for name in _OBEYED]
            things[member] = (_MEMBER, *(number for part in parts for number in (len(part), *part)))
    return things


def _members(family: str) -> list[str]:
    """The git directories in one of `_FAMILIES`. The name of a submodule can have slashes.

    Where there are too many, the family itself comes last, for all that was not looked at.
    """
    found: list[str] = []
    places = [family]
    left = _ENTRIES
    while places:
        place = places.pop()
        try:
            names = os.listdir(place)
        except OSError:
            continue
        left -= len(names)
        if left < 0:
            return [*found, family]
        for path in (f"{place}/{name}" for name in names):
            if kind_of(f"{path}/HEAD") is not None:
                found.append(path)
                places.append(f"{path}/modules")
            elif kind_of(path) == stat.S_IFDIR:
                places.append(path)
    return found


def _signature(path: str) -> Signature:
    try:
        facts = os.lstat(path)
    except OSError:
        return ()
    return facts.st_dev, facts.st_ino, stat.S_IFMT(facts.st_mode), facts.st_mtime_ns


def _directories(workspace: str, git: Signature) -> tuple[str, ...]:
    if git and git[2] == stat.S_IFDIR:
        return (f"{workspace}/.git",)
    return _pointed_directories(workspace, git) if git and git[2] == stat.S_IFREG else ()


@lru_cache(maxsize=64)
def _pointed_directories(workspace: str, git: Signature) -> tuple[str, ...]:
    """Where a `.git` file leads, not read again for as long as it is the same."""
    del git  # it only tells one file from the next
    return look(workspace).directories
