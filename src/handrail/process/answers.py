"""What a keeper says, understood as far as it makes sense: it may be in the hands of a hostile command."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from handrail.values.completed import LeftBehind


@dataclass(frozen=True, slots=True)
class Answer:
    """What a keeper said, as far as it makes sense: it may be in the hands of a hostile command.

    status  the call's end, from its last process: an exit code, or -N for a signal. None if this tells none.
    clean   nothing of the call is left.
    failed  the error (errno, or 0) for which nothing could be started.
    left    what a sweep found.
    """

    status: int | None = None
    clean: bool = False
    failed: int | None = None
    left: tuple[LeftBehind, ...] | None = None


def understood(data: bytes) -> Answer:
    """The meaning of a keeper's message; of nonsense, none."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):  # the latter for brackets without end
        return Answer()
    if not isinstance(said, dict):
        return Answer()
    fields = cast("dict[str, object]", said)
    ended, failed, left = fields.get("ended"), fields.get("failed"), fields.get("left")
    statuses = cast("list[object]", ended) if isinstance(ended, list) else []
    return Answer(
        status=_number(statuses[-1], -64, 255) if statuses else None,
        clean=fields.get("clean") is True,
        failed=_number(failed, 0, 4095) or 0 if failed is not None else None,
        left=tuple(map(_named, cast("list[object]", left)[:100])) if isinstance(left, list) else None,
    )


def _number(value: object, least: int, most: int) -> int | None:
    return value if isinstance(value, int) and least <= value <= most else None


def _named(row: object) -> LeftBehind:
    fields = cast("list[object]", row) if isinstance(row, list) else []
    pid, words = fields if len(fields) == 2 else (0, "")
    name = words[:80] if isinstance(words, str) else ""
    return LeftBehind(_number(pid, 1, 2**22) or 0, "".join(c if c.isprintable() else "?" for c in name))
