"""Terminal output to plain lines, a chunk at a time: redrawn lines in their last state, no control of a terminal.

Tab is the only control that comes out. Marks, direction overrides and line separators of Unicode are text and stay.
"""

from __future__ import annotations

from handrail.text.commands import run_csi, run_escape
from handrail.text.escapes import CONTROL, INERT, TOKEN, end_of_string, start_of_open
from handrail.text.screen import Line, Screen

__all__ = ["Cleaner", "Line"]

_HELD = 64 * 1024
"""Up to this many characters of an unfinished line are held back, so that most lines are seen whole: the quick way."""


class Cleaner:
    """Cleans one stream of text. However it is cut into chunks, the same lines come out.

    A line is final once `scrollback` more have begun, since until then the cursor can come back to it: with 0 each is
    final at its line end, and sequences that move up find nothing above. `max_line` wraps lines at that many columns
    (at least 2; only with `scrollback` 0), so that a line without end needs no endless memory; a wrapped piece counts
    as a line, with the number of the raw line it is part of. Raises ValueError for both at once. A control sequence
    that never ends hides at most the rest of its raw line.
    """

    def __init__(self, scrollback: int = 200, max_line: int | None = None) -> None:
        if max_line is not None and scrollback:
            # Pieces of one raw line could pass out of the cursor's reach in the middle of a chunk, or only behind it.
            raise ValueError("max_line goes with scrollback=0 only")
        width = None if max_line is None else max(2, max_line)
        self._screen = Screen(scrollback, width)
        self._most_held = _HELD if width is None else min(width, _HELD)
        self._print_above = self._most_held
        self._held: list[str] = []
        self._held_length = 0
        self._inside = ""  # the kind of the string ("]", "P") that the text so far has left open

    def feed(self, text: str) -> list[Line]:
        """Take more text and return the lines that became final."""
        self._hold(text)
        if "\n" in text:
            body, _, rest = "".join(self._held).rpartition("\n")
            self._print_body(body)
            self._release()
            self._hold(rest)
        if self._held_length > self._print_above:
            self._print_held()
        return self._screen.take()

    def finish(self) -> list[Line]:
        """Return all lines that are left, the unfinished last one too unless it is empty. Nothing may be fed after."""
        rest = "".join(self._held)
        self._release()
        plain = self._plain(rest)
        if plain is None:
            self._run(rest)
        elif plain:
            self._screen.print_lines([plain])
        return self._screen.finish()

    def _hold(self, text: str) -> None:
        self._held.append(text)
        self._held_length += len(text)

    def _release(self) -> None:
        self._held.clear()
        self._held_length = 0
        self._print_above = self._most_held

    def _print_held(self) -> None:
        """Print what is held of the unfinished line, except the beginning of a sequence that may go on."""
        text = "".join(self._held)
        self._release()
        end = start_of_open(text)
        self._run(text[:end])
        self._hold(text[end:])
        # What stays is looked at again next time; waiting for as much again keeps that linear.
        self._print_above = self._most_held + 2 * self._held_length

    def _quick(self) -> bool:
        """Whether text without controls can be printed as it is."""
        return self._screen.fresh and not self._inside

    def _print_body(self, body: str) -> None:
        """Print lines, all of them finished; `body` is without the last line end."""
        if "\r" in body:
            body = f"{body}\n".replace("\r\n", "\n")[:-1]
        if "\x1b" in body and not self._inside:
            plain = INERT.sub("", body)
            body = body if CONTROL.search(plain) else plain
        start = 0
        while start <= len(body):
            if self._quick():
                start = self._print_plain(body, start)
            if start <= len(body):
                end = body.find("\n", start)
                end = len(body) if end < 0 else end
                self._print_line(body[start:end])
                start = end + 1

    def _print_plain(self, body: str, start: int) -> int:
        """Print the lines from `start` on that hold no control. Return where the first that does begins."""
        found = CONTROL.search(body, start)
        end = len(body) + 1 if found is None else body.rfind("\n", start, found.start()) + 1 or start
        if end > start:
            self._screen.print_lines(body[start : end - 1].split("\n"))
        return end

    def _print_line(self, line: str) -> None:
        plain = self._plain(line)
        if plain is not None:
            self._screen.print_lines([plain])
            return
        self._run(line)
        self._inside = ""
        self._screen.end_line()

    def _plain(self, line: str) -> str | None:
        """What a line shows that moves nothing, or None where that must be worked out. At its end a return is idle."""
        if not self._quick():
            return None
        plain = INERT.sub("", line).rstrip("\r")
        return None if CONTROL.search(plain) else plain

    def _run(self, text: str) -> None:
        """Print a part of one line, doing what its sequences say."""
        screen = self._screen
        for token in TOKEN.finditer(text, self._skip_string(text)):
            piece = token.group()
            match token.lastgroup:
                case "text":
                    screen.put(piece)
                case "csi" if not token["middle"]:
                    run_csi(screen, token["final"], token["parameters"])
                case "escape":
                    run_escape(screen, piece[1:])
                case "control":
                    self._control(piece)
                case "title" if not token["title_end"] and token.end() == len(text):
                    self._inside = "]"
                case "device" if not token["device_end"] and token.end() == len(text):
                    self._inside = "P"
                case _:
                    pass

    def _control(self, control: str) -> None:
        screen = self._screen
        if control == "\r":
            screen.x = 0
        elif control == "\b":
            screen.x = max(0, screen.x - 1)
        elif control == "\t":
            screen.tab()
        elif control == "\x85":
            screen.next_row()

    def _skip_string(self, text: str) -> int:
        """Where the string ends that earlier text left open; all of `text` may be inside it."""
        if not self._inside:
            return 0
        end, ended = end_of_string(self._inside, text)
        if ended:
            self._inside = ""
        return end
