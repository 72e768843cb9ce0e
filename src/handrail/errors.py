"""What a host program did wrong (exceptions), and the closed set of codes that results carry.

Nothing a *model* does raises: its mistakes come back as results with a `Code`. Exceptions are for
the program that embeds handrail, and for bugs.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """Why a call did not do what was asked. Every error that is not a command's own exit has one."""

    BAD_ARGUMENTS = "BAD_ARGUMENTS"
    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    BUSY = "BUSY"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    COULD_NOT_START = "COULD_NOT_START"
    CLOSED = "CLOSED"
    NO_SUCH_OUTPUT = "NO_SUCH_OUTPUT"
    BAD_PATTERN = "BAD_PATTERN"
    SANDBOX_UNAVAILABLE = "SANDBOX_UNAVAILABLE"
    IO_ERROR = "IO_ERROR"


class HandrailError(Exception):
    """Base of everything handrail raises on purpose.

    HandrailError
    ├── ConfigurationError      an option or a combination of options that cannot be honoured
    │   └── SandboxUnavailable  what `sandbox` asks for cannot be had here
    └── ModelError              a model behind an `Agent` did not answer as a model should
    """


class ConfigurationError(HandrailError):
    """The host program asked for something that handrail cannot do; the message says what to pass instead."""


class SandboxUnavailable(ConfigurationError):
    """The sandbox that the settings ask for cannot be had. The first line names the setting that accepts less."""

    code = Code.SANDBOX_UNAVAILABLE


class ModelError(HandrailError):
    """The model behind an agent gave no usable answer."""
