"""The one directory tree an agent may touch: its root, and which paths lie inside.

Paths are compared by real path and by component, never by string prefix (`work-evil` is not inside `work`).
"""

from __future__ import annotations

import os

from handrail.errors import ConfigurationError


class Workspace:
    """A directory, by its real path. Raises ConfigurationError where there is no such directory."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        path: str = os.path.expanduser(os.fspath(root))
        if not path or "\0" in path:
            raise ConfigurationError("The workspace must be the path of a directory; this one is blank or holds NUL.")
        if not os.path.isdir(path):
            is_there = os.path.lexists(path)
            why = "is not a directory" if is_there else "does not exist"
            raise ConfigurationError(f"The workspace {path!r} {why}; pass an existing directory.")
        self.root: str = os.path.realpath(path)

    def relative(self, path: str) -> str | None:
        """`path` as seen from the root ("." for the root itself), links resolved; None where it lies outside.

        A path that does not exist is judged by what there is of it. A relative `path` starts at the root.
        """
        real = os.path.realpath(os.path.join(self.root, path))
        if real == self.root:
            return "."
        beneath = self.root if self.root.endswith(os.sep) else self.root + os.sep
        return real[len(beneath) :] if real.startswith(beneath) else None

    def absolute(self, relative: str) -> str:
        """The absolute path of what `relative` returned."""
        return self.root if relative == "." else os.path.join(self.root, relative)
