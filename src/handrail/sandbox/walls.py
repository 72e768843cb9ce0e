"""The confinement of a session's slots as it has to be now: looked up again when what it was made from has changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from handrail.process.warden_process import forget_network
from handrail.sandbox import caches, repository
from handrail.sandbox.memory import MemoryGroup
from handrail.sandbox.surroundings import Surroundings, fingerprint, look
from handrail.sandbox.tiers import Tier, Unavailable, confinement, owner_variables, seen
from handrail.values.completed import Completed
from handrail.values.confinement import Confinement
from handrail.values.invocation import Access
from handrail.values.place import Place


class Walls:
    """One tier's, for one place. Safe to use from several threads."""

    def __init__(self, tier: Tier, place: Place, memory: MemoryGroup | None = None) -> None:
        self.tier: Tier = tier
        self.memory = memory
        """What all commands of the session are counted in, if their memory has a limit."""
        self.network_name = os.urandom(8).hex()
        """What the warden knows the session's network namespace by."""
        self._place = place
        self._lock = threading.Lock()
        self._seen: object = None
        self._around: Surroundings | None = None
        self._variables: dict[bool, Mapping[str, str]] = {}
        self._made: dict[tuple[Access, bool], Confinement] = {}

    def around(self) -> Surroundings:
        """What was found on this machine, as of now."""
        with self._lock:
            return self._looked()

    def confinement(self, access: Access, *, network: bool) -> Confinement:
        """The same object for as long as nothing has changed. Raises Unavailable."""
        with self._lock:
            around = self._looked()
            made = self._made.get((access, network))
            if made is None:
                made = confinement(
                    self.tier, self._place, around, access, network=network, session_network=self.network_name
                )
                if self.memory is not None:
                    made = replace(made, outside={**made.outside, "cgroup": self.memory.path})
                self._made[access, network] = made
            return made

    def seen(self, path: str) -> str:
        """Where a command finds what lies at `path` in the session's directory."""
        return seen(self._place, path) if self.tier != "T1" else path

    def variables(self, *, network: bool) -> Mapping[str, str]:
        """What a command's environment must hold in here: where caches go, and whether there is a network."""
        if network not in self._variables:
            home = os.path.expanduser("~")
            self._variables[network] = {
                **caches.variables(self._place, home, network=network),
                "HANDRAIL_NETWORK": "on" if network else "off",
                **(owner_variables(self._around, self.seen(self._place.tmp)) if self._around is not None else {}),
            }
        return self._variables[network]

    def run(self, run: Callable[[], Completed]) -> Completed:
        """Run a command that may change the workspace, and look for what it did that no wall stops."""
        before = repository.watch(self._place.workspace)
        kills = self.memory.kills() if self.memory is not None else 0
        completed = run()
        warnings = repository.unprotected(before, self._place.workspace)
        out_of_memory = self.memory is not None and self.memory.kills() > kills
        if not warnings and not out_of_memory:
            return completed
        return replace(completed, warnings=tuple(warnings), out_of_memory=out_of_memory)

    def close(self) -> None:
        """Let go of what outlives a slot."""
        forget_network(self.network_name)
        if self.memory is not None:
            self.memory.close()

    def look_again(self) -> None:
        """What was found may be there no more, although nothing shows it."""
        with self._lock:
            self._seen = None

    def _looked(self) -> Surroundings:
        # Taken before the look: what changes meanwhile is looked at again.
        now = fingerprint(self._place)
        if self._around is None or now != self._seen:
            try:
                self._around = look(self._place)
            except (FileNotFoundError, NotADirectoryError) as gone:
                raise Unavailable("The workspace does not exist any more.") from gone
            self._seen = now
            self._made.clear()
        return self._around
