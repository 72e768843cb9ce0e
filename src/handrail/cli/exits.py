"""Exit codes that are handrail's own. All others are the command's (128 + N for a death by signal N)."""

from __future__ import annotations

TIMED_OUT = 124
FAILED = 125  # handrail's own failure or refusal, a misspelt option too: kept apart from what commands end with
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE, what a shell reports of `yes | head`
