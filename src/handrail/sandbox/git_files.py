"""Git's own small files, read without git: where a `.git` file leads, and what is a git directory.

Commands can write most of them. So nothing here follows a link at a path's end, waits for a file, or reads one that is
longer than git writes it; what is not as git writes it is read as nothing.
"""

from __future__ import annotations

import os
import re
import stat

_POINTER_BYTES = 8192  # a path and a word before it
_CONFIG_BYTES = 1 << 20
_SECTION = re.compile(r"^\s*\[\s*([^\]]*?)\s*\]")
_WORK_TREE = re.compile(r'^\s*worktree\s*=\s*("?)(.+?)\1\s*$', re.IGNORECASE)


def kind_of(path: str) -> int | None:
    """The type of what lies at a path (`stat.S_IFREG`, …), a link not followed; None if nothing does."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return None


def is_git_directory(directory: str) -> bool:
    """As git tells one: by a HEAD, objects and refs."""
    return (
        kind_of(f"{directory}/HEAD") == stat.S_IFREG
        and kind_of(f"{directory}/objects") == stat.S_IFDIR
        and kind_of(f"{directory}/refs") == stat.S_IFDIR
    )


def pointer(file: str, prefix: str = "") -> str | None:
    """The absolute path that a file holds behind `prefix`, links not resolved; it counts from where the file lies."""
    text = _text(file, _POINTER_BYTES)
    if text is None or not text.startswith(prefix):
        return None
    path = text[len(prefix) :].rstrip("\r\n")
    return os.path.join(os.path.dirname(file), path) if path and "\0" not in path else None


def work_tree(git_directory: str) -> str | None:
    """The real path that `core.worktree` names, in the form that git gives it in a submodule."""
    section, found = "", ""
    for line in (_text(f"{git_directory}/config", _CONFIG_BYTES) or "").split("\n"):
        if heading := _SECTION.match(line):
            section = heading[1].lower()
        elif section == "core" and (value := _WORK_TREE.match(line)):
            found = value[2].replace('\\"', '"').replace("\\\\", "\\")
    return os.path.realpath(os.path.join(git_directory, found)) if found and "\0" not in found else None


def _text(file: str, limit: int) -> str | None:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with os.fdopen(fd, "rb", closefd=True) as opened:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        content = opened.read(limit + 1)
    return os.fsdecode(content) if len(content) <= limit else None
