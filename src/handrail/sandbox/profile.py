"""What a slot's commands may read, write and reach, from a place and what is around it. Pure: it looks at nothing.

Of two decisions about one path the later counts; a mount covers what lies below it until the next one there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from handrail.sandbox.surroundings import Surroundings
from handrail.values.confinement import Identity, Mount, Profile
from handrail.values.invocation import Access
from handrail.values.place import Place

# Where a slot has what is the session's own.
TMP = "/tmp"  # noqa: S108 - the session's, not the one of all users
IO = "/run/handrail"
OUTPUTS = "/run/handrail-outputs"

# A slot has its own, whatever the host has there.
_OWN = ("/dev/", "/proc/")
_RUN = ("/run", "/var/run")  # where programs write as a matter of course; elsewhere they had better fail at once


def profile(place: Place, around: Surroundings, access: Access, *, network: bool) -> Profile:
    """For commands that only read, or that may change the workspace; with the host's network or the session's own."""
    making = _Making(place, around, changes=access == "change")
    making.hide_what_is_shared()
    making.hide_secrets()
    making.show_the_workspace()
    making.protect()
    making.show_more()
    making.place_the_session()
    making.show_programs(around.resolver if network else None)
    making.cover_sockets()
    mounts = making.mounts()
    return Profile(
        mounts=mounts,
        identities=_identities(around, mounts),
        must_write=(place.workspace,) if access == "change" and around.can_write else (),
        network="host" if network else "own",
        owner=around.owner,
    )


class _Making:
    """The decisions so far, by path, in the order in which `profile` takes them."""

    def __init__(self, place: Place, around: Surroundings, *, changes: bool) -> None:
        self._place = place
        self._around = around
        self._changes = changes
        self._decided: dict[str, Mount] = {}
        self._empty = f"{place.session}/empty"

    def mounts(self) -> tuple[Mount, ...]:
        """A parent before what lies in it, which no order of the bare text gives. No cover where there is nothing."""
        needed = (mount for mount in self._decided.values() if not self._is_cover(mount) or self._is_seen(mount.path))
        return tuple(sorted(needed, key=lambda mount: mount.path.split("/")))

    # ---- in the order of profile()

    def hide_what_is_shared(self) -> None:
        for path in self._around.shared:
            self._decide(path, None, writable=path in _RUN)

    def hide_secrets(self) -> None:
        for path in (*self._around.state, *self._around.secrets):
            self._hide(path)

    def show_the_workspace(self) -> None:
        self._show(self._place.workspace, writable=self._changes)
        if self._around.owner is None:  # it lies in our home, which may be closed to another user
            self._show(self._place.cache, writable=self._changes)
        for path in self._around.denied:
            self._hide(path)

    def protect(self) -> None:
        """Mounted on itself, a directory cannot be renamed or replaced, and so neither can what is mounted in it."""
        repository = self._around.repository
        if not self._changes:
            for path in repository.writable:
                self._show_if_hidden(path, path)
            return
        for path in (*self._around.pins, *repository.writable):
            self._show(path, writable=True)
        for path in repository.read_only:
            if not any(_lies_in(path, written) for written in self._around.writes):
                self._show(path, writable=False)

    def show_more(self) -> None:
        for path in self._around.reads:
            self._show(path, writable=False)
        for path in self._around.writes:
            self._decided.pop(path, None)
            # A mount of its own is in the way of programs that replace a file by a new one, as git does.
            if not self._changes or not self._is_writable(path):
                self._show(path, writable=self._changes)
        # After those: settings that bind the agent are not lifted by naming what they lie in.
        settings = self._around.settings
        if settings is not None and self._changes:
            self._show(settings, writable=False)

    def place_the_session(self) -> None:
        workspace = self._place.workspace
        if workspace != "/run":
            self._decide("/run", None, writable=True)
        if workspace != TMP:  # who works there has his temporary files there, too
            self._decide(TMP, self._place.tmp, writable=True)
        self._decide(IO, self._place.io, writable=True)
        self._decide(OUTPUTS, self._place.outputs, writable=False)

    def show_programs(self, resolver: str | None) -> None:
        hidden = (*self._around.state, *self._around.secrets)
        # Shorter ones first: with an environment its `bin` is there.
        for path, real in sorted(self._around.visible):
            # By another name what is hidden in it would be seen.
            if path not in self._around.shared and (path == real or not any(_lies_in(each, real) for each in hidden)):
                self._show_if_hidden(path, real)
        if resolver is not None:
            self._show_if_hidden(resolver, resolver)

    def cover_sockets(self) -> None:
        """Where they can be seen, and are not the work of commands, or asked for by name."""
        asked = {*self._around.reads, *self._around.writes}
        for path in self._around.sockets:
            is_theirs = self._is_writable(path) or _lies_in(path, self._place.workspace)
            if path not in asked and self._is_seen(path) and not is_theirs:
                self._decide(path, self._empty, writable=False)

    # ---- single decisions

    def _decide(self, path: str, source: str | None, *, writable: bool) -> None:
        self._decided[path] = Mount(path, source, writable)

    def _show(self, path: str, *, writable: bool) -> None:
        self._decide(path, path, writable=writable)

    def _hide(self, path: str) -> None:
        """Covered by nothing, of the same type. An empty file reads as one; a device would give an error."""
        self._decide(path, None if path in self._around.directories else self._empty, writable=False)

    def _show_if_hidden(self, path: str, real: str) -> None:
        above = self._above(path, itself=True)
        if above is not None and above.source != above.path:
            self._decide(path, real, writable=False)

    def _is_cover(self, mount: Mount) -> bool:
        return mount.source == self._empty or (mount.source is None and mount.path not in self._around.shared)

    def _is_seen(self, path: str) -> bool:
        """Whether what the host has there would be seen but for a mount on that very path."""
        above = self._above(path, itself=False)
        return above.source == above.path if above is not None else not path.startswith(_OWN)

    def _is_writable(self, path: str) -> bool:
        above = self._above(path, itself=False)
        return above is not None and above.source == above.path and above.writable

    def _above(self, path: str, *, itself: bool) -> Mount | None:
        """The mount that a path is reached through."""
        return _nearest(self._decided, path if itself else path.rpartition("/")[0])


def _nearest(decided: Mapping[str, Mount], path: str) -> Mount | None:
    while path:
        if path in decided:
            return decided[path]
        path = path.rpartition("/")[0]
    return None


def _identities(around: Surroundings, mounts: Iterable[Mount]) -> tuple[Identity, ...]:
    mounted = {mount.path for mount in mounts if mount.source == mount.path}
    return tuple(identity for identity in around.identities if identity.path in mounted)


def _lies_in(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")
