"""What a host program may pass to a `Toolbox`: every option is checked before anything is made.

Each fault is a ConfigurationError that names the option and says what it must be. Nothing is taken and then ignored.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import cast

from handrail.errors import ConfigurationError
from handrail.gate.approvers import KNOWN
from handrail.tools.base import Tool
from handrail.values.invocation import MIB, OutputLimits
from handrail.values.place import Resources
from handrail.values.tool import Effect

# With less than this not even bash starts.
LEAST = {"cpu_s": 1, "file_bytes": 4096, "open_files": 16, "processes": 4, "memory_bytes": 16 * MIB}

PRESETS = {"shell": ("shell", "read_output")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a toolbox, as they came: nothing here is certain to have the type that it should."""

    sandbox: object
    network: object
    hide_denied: object
    resources: object
    errors: object
    env: object
    env_names: object
    login: object
    merge: object
    listener: object
    timeout_s: float
    max_timeout_s: float
    grace_s: float
    head_lines: int
    tail_lines: int
    max_chars: int
    spill_max: int

    def check(self) -> None:
        """Raises ConfigurationError for the first that cannot be honoured."""
        check_choice("sandbox", self.sandbox, ("required", "best", "off"))
        check_choice("network", self.network, ("off", "on"))
        check_choice("errors", self.errors, ("nonzero", "never"))
        check_choice("env", self.env, ("allow", "deny"))
        self._check_types()
        self._check_times()
        self._check_text()

    def _check_types(self) -> None:
        for option in ("timeout_s", "max_timeout_s", "grace_s"):
            check_type(option, getattr(self, option), (int, float), "a number")
        for option in ("head_lines", "tail_lines", "max_chars", "spill_max"):
            check_type(option, getattr(self, option), (int,), "a whole number")
        for option in ("login", "merge", "hide_denied"):
            check_type(option, getattr(self, option), (bool,), "True or False")
        if not is_list_of_text(self.env_names):
            raise ConfigurationError('env_names must be a list of names, such as ["GITHUB_TOKEN"].')
        self._check_resources()
        if self.listener is not None and not callable(self.listener):
            raise ConfigurationError("listener must be a function of one event.")

    def _check_resources(self) -> None:
        if self.resources is None:
            return
        if not isinstance(self.resources, Resources):
            raise ConfigurationError("resources must be a handrail.Resources, such as handrail.Resources(cpu_s=60).")
        for field in fields(Resources):
            value: object = getattr(self.resources, field.name)
            if value is not None:
                check_type(f"resources.{field.name}", value, (int,), "a whole number or None")
                if getattr(self.resources, field.name) < LEAST[field.name]:
                    raise ConfigurationError(f"resources.{field.name} must be at least {LEAST[field.name]}.")

    def _check_times(self) -> None:
        if not 0 < self.timeout_s <= self.max_timeout_s < float("inf"):
            raise ConfigurationError("timeout_s must be more than 0 and at most max_timeout_s, and that finite.")
        if not 0 <= self.grace_s < float("inf"):
            raise ConfigurationError("grace_s must be 0 or more, and finite.")

    def _check_text(self) -> None:
        if min(self.head_lines, self.tail_lines, self.spill_max) < 0 or self.head_lines + self.tail_lines < 1:
            raise ConfigurationError("head_lines, tail_lines and spill_max must be 0 or more, and one line be shown.")
        if self.max_chars < 20:
            raise ConfigurationError("max_chars must be at least 20.")


def tool_names(tools: object) -> tuple[str, ...]:
    """The tools that a preset or a list of names means, each once."""
    known = ", ".join(PRESETS["shell"])
    if isinstance(tools, str) and tools in PRESETS:
        return PRESETS[tools]
    if not is_list_of_text(tools):
        raise ConfigurationError(f'tools must be "shell" or a list of names out of {known}; got {tools!r}.')
    names = tuple(dict.fromkeys(cast("Sequence[str]", tools)))
    unknown = [name for name in names if name not in PRESETS["shell"]]
    if unknown or not names:
        raise ConfigurationError(f"tools must name at least one of {known}; got {', '.join(unknown) or 'none'}.")
    return names


def check_approver(approver: object, tools: Iterable[Tool]) -> None:
    """A tool that changes something needs somebody who approves, and somebody who is really asked."""
    changing = [tool.name for tool in tools if tool.effect is Effect.CHANGE]
    if approver is None and changing:
        raise ConfigurationError(
            f"approver is missing: {', '.join(changing)} can change things, so somebody must approve. "
            "Pass approver=handrail.allow_all to approve every call."
        )
    if approver is not None and approver not in KNOWN:
        raise ConfigurationError(
            "approver must be handrail.allow_all in this version: no other approver is asked yet, "
            "and one that is never asked would promise what does not happen."
        )


def existing_paths(option: str, paths: object, root: str) -> tuple[str, ...]:
    """Real paths of what is there, each once. A relative one counts from `root`.

    What a slot is made of has to be there when it is made; a place for it is never made in what is not ours.
    """
    if isinstance(paths, str) or not isinstance(paths, Sequence):
        raise ConfigurationError(f'{option} must be a list of paths, such as ["~/.cache/models"].')
    found: list[str] = []
    for path in cast("Sequence[object]", paths):
        if not isinstance(path, str | os.PathLike):
            raise ConfigurationError(f"{option} must hold paths only; got {path!r}.")
        given = os.fspath(cast("str | os.PathLike[str]", path))
        real = os.path.realpath(os.path.join(root, os.path.expanduser(given)))
        if not given or "\0" in given or not os.path.exists(real):
            raise ConfigurationError(f"{option} names {given!r}, which is not there; make it first, or leave it out.")
        if real == "/":
            raise ConfigurationError(f"{option} must not name the root of the file system; name what is needed.")
        found.append(real)
    return tuple(dict.fromkeys(found))


def check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in choices:
        allowed = ", ".join(f'"{choice}"' for choice in choices)
        raise ConfigurationError(f"{option} must be one of {allowed}; got {value!r}.")


def check_type(option: str, value: object, kinds: tuple[type, ...], words: str) -> None:
    """A bool is a number to Python, and not to us."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ConfigurationError(f"{option} must be {words}; got {value!r}.")


def is_list_of_text(value: object) -> bool:
    """Text alone is none, although Python goes through it letter by letter."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(each, str) for each in cast("Sequence[object]", value))


def output_limits(max_chars: int, spill_max: int) -> OutputLimits:
    """What the engine keeps so that a report can show what it promises.

    Half of `max_chars` must be found in the head, half in the tail; a character has at most four bytes.
    """
    default = OutputLimits()
    return OutputLimits(
        head_bytes=max(default.head_bytes, 4 * max_chars),
        tail_bytes=max(default.tail_bytes, 8 * max_chars),
        spill_bytes=spill_max,
    )
