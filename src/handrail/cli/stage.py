"""Shows an agent at work as a person reads it: who says what, what is run, what it prints, what came of it.

Plain lines with a label in front, so that it reads the same in a narrow window, in a pipe, and without colours.
"""

from __future__ import annotations

from contextlib import suppress

from rich.console import Console
from rich.containers import Lines
from rich.text import Text

from handrail.values.event import Ended, Event
from handrail.values.event import Lines as Finished

_LABEL_WIDTH = 7
_LIVE_LINES = 8


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line how to end, where Rich would exit with 1."""
        raise BrokenPipeError


class Stage:
    """Writes to stdout. `heard` is the listener of a toolbox and runs on its thread while a call is under way."""

    def __init__(self) -> None:
        self._console = _Screen(highlight=False, emoji=False)
        self._lines = 0

    def say(self, label: str, text: str, style: str = "", label_style: str = "dim") -> None:
        """Print `text` beside `label`, wrapped to the window and indented."""
        for line in self._wrapped(text, style, max(self._console.width - _LABEL_WIDTH - 1, 10)):
            head = Text(f"{label:>{_LABEL_WIDTH}} ", label_style)
            self._console.print(head + line if line else Text(head.plain.rstrip(), label_style), soft_wrap=True)
            label = ""

    def gap(self) -> None:
        self._console.print()

    def heading(self, text: str) -> None:
        for line in self._wrapped(text, "bold", self._console.width):
            self._console.print(line, soft_wrap=True)

    def _wrapped(self, text: str, style: str, width: int) -> Lines:
        lines = Text(text, style, overflow="fold").wrap(self._console, width, tab_size=8)
        for line in lines:
            line.rstrip()
        return lines

    def heard(self, event: Event) -> None:
        """Show what a command prints while it prints it: the first lines, then how many more there were."""
        with suppress(BrokenPipeError):  # our thread is no place to end the demo from: its own next line meets the same
            self._show(event)

    def _show(self, event: Event) -> None:
        if isinstance(event, Finished):
            for line in event.lines[: max(_LIVE_LINES - self._lines, 0)]:
                self.say("|", line)
            self._lines += len(event.lines)
        elif isinstance(event, Ended):
            if self._lines > _LIVE_LINES:
                self.say("|", f"... and {self._lines - _LIVE_LINES:,} more lines")
            self._lines = 0
