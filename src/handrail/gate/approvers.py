"""Who answers when a call would change something.

So far there is one answer: `allow_all`, which a host program passes to say that it approves every change itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Approver = Callable[[object], bool]


def allow_all(_request: object) -> bool:
    """Approve every change without asking anybody."""
    return True


KNOWN: Final = (allow_all,)
"""The approvers that a toolbox accepts."""
