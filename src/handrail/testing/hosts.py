"""A host that starts nothing: it records what it was asked to run and answers as it was told to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from handrail.process.cancel import Cancel
from handrail.process.supervise import OnOutput
from handrail.values.completed import Captured, Completed, Enforced
from handrail.values.invocation import Invocation
from handrail.values.place import Place

_NOTHING = Enforced(tier="fake", processes="none", files="none", network="none")


def ended(exit_code: int = 0, stdout: bytes = b"", stderr: bytes = b"") -> Completed:
    """How a command ended that wrote little: `stdout` and `stderr` are its whole output."""
    return Completed(
        exit_code=exit_code,
        duration_s=0.0,
        stdout=Captured(head=stdout, total_bytes=len(stdout)),
        stderr=Captured(head=stderr, total_bytes=len(stderr)),
        enforced=_NOTHING,
    )


class FakeHost:
    """A `Host` for `Toolbox(host=…)`. `invocations` is what it was asked to run, in order; `place` where.

    `replies` are used up one a call: a `Completed`, or a function of the invocation that returns one. Once they are
    used up, every command ends with exit code 0 and no output. Output goes to the listener as well.
    """

    enforced: Enforced = _NOTHING

    def __init__(self, replies: Sequence[Completed | Callable[[Invocation], Completed]] = ()) -> None:
        self.invocations: list[Invocation] = []
        self.place: Place | None = None
        self.closed = False
        self._replies = list(replies)

    def open(self, place: Place) -> None:
        self.place = place

    def seen(self, path: str) -> str:
        return path

    def variables(self, *, network: bool) -> Mapping[str, str]:
        del network
        return {}

    def run(self, invocation: Invocation, *, cancel: Cancel, on_output: OnOutput | None = None) -> Completed:
        del cancel  # nothing runs that could be stopped
        self.invocations.append(invocation)
        reply = self._replies.pop(0) if self._replies else ended()
        completed = reply if isinstance(reply, Completed) else reply(invocation)
        if on_output is not None:
            for name, captured in (("stdout", completed.stdout), ("stderr", completed.stderr)):
                if captured.total_bytes:
                    on_output(name, memoryview(captured.head + captured.tail))
        return completed

    def close(self) -> None:
        self.closed = True
