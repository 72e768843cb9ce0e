"""A model that replays what it was given: for tests, demonstrations, and recorded sessions. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from handrail.agent.messages import Assistant, Message
from handrail.errors import ModelError

Reply = Assistant | Callable[[Sequence[Message]], Assistant]
"""A canned reply, or a function that makes it from the conversation so far."""


class ScriptedModel:
    """Gives `replies` in order, one for each time it is asked; asked once more, it raises `ModelError`."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self._replies = tuple(replies)
        self._used = 0

    @property
    def used(self) -> int:
        """How many replies were given."""
        return self._used

    def reply(self, _system: str, messages: Sequence[Message], _tools: Sequence[object], /) -> Assistant:
        if self._used == len(self._replies):
            raise ModelError(f"the script has ended: all {self._used} replies were used, and one more was asked for")
        reply = self._replies[self._used]
        self._used += 1
        return reply if isinstance(reply, Assistant) else reply(messages)
