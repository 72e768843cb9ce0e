"""read_output: pages through, or searches, an output of which a report showed only the ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import msgspec

from handrail.errors import Code
from handrail.hosts.base import Host
from handrail.process.cancel import Cancel
from handrail.shell.outputs import Output, Outputs, read_page
from handrail.text.cut import TextLimits
from handrail.text.page import fit_page
from handrail.tools.arguments import parse, quoted, schema_of, without_null
from handrail.tools.base import Tool, refusal
from handrail.values.invocation import Invocation, OutputLimits
from handrail.values.tool import Effect, ToolResult

_LINES = 400
_MAX_LINES = 2000
_MOST = 2**53  # what JSON numbers hold exactly; no output has as many lines
# A regular expression can backtrack for ever: it runs as a process that ends here, whatever it does.
_SEARCH_S = 10.0


class ReadOutputArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of `read_output`."""

    id: Annotated[str, msgspec.Meta(description='The id that the cut names, such as "out1".')]
    start_line: Annotated[
        int, msgspec.Meta(description="The first line wanted; the output's first is 1.", le=_MOST)
    ] = 1
    start_char: Annotated[int, msgspec.Meta(description="Where in that line to begin, if it is long.", le=_MOST)] = 1
    max_lines: Annotated[int, msgspec.Meta(description="How many lines at most.", ge=1, le=_MAX_LINES)] = _LINES
    pattern: Annotated[str, msgspec.Meta(description="Show only lines that match this regular expression.")] | None = (
        None
    )


class ReadOutputTool:
    """Answers from the session's kept outputs."""

    def __init__(self, outputs: Outputs, host: Host, directory: str, text: TextLimits) -> None:
        self._outputs = outputs
        self._host = host
        self._directory = directory
        self._text = text

    def tool(self) -> Tool:
        return Tool("read_output", _DESCRIPTION, _schema(), Effect.READ, self.parse, self.run)

    def parse(self, arguments: Mapping[str, Any]) -> ReadOutputArguments:
        return parse(ReadOutputArguments, arguments)

    def run(self, asked: ReadOutputArguments, cancel: Cancel) -> ToolResult:
        output = self._outputs.find(asked.id)
        if output is None:
            there = ", ".join(self._outputs.ids()) or "none: nothing was cut so far"
            return refusal(Code.NO_SUCH_OUTPUT, f"there is no output {quoted(asked.id)}; kept are {there}.")
        try:
            if asked.pattern is not None:
                return self._search(output, asked, asked.pattern, cancel)
            return self._page(output, asked)
        except OSError:
            return refusal(Code.IO_ERROR, f"{output.id} could not be read; run the command again.")

    def _page(self, output: Output, asked: ReadOutputArguments) -> ToolResult:
        start, char = max(asked.start_line, 1), max(asked.start_char, 1)
        page = read_page(output, start, asked.max_lines, max_bytes=4 * self._text.max_chars)
        fitted = fit_page(page.data, start, char, self._text.max_chars)
        next_line, next_char = fitted.next_line, fitted.next_char
        if next_line is None:
            next_line = page.end_line + 1 if page.more else -1
        lines = [f"{output.id}: {_range(start, char, fitted.lines)}"]
        if fitted.lines:
            lines.append(fitted.text)
        if page.cut and fitted.next_line is None:
            lines.append(f"[... line {page.end_line} is longer than what can be shown of a line ...]")
        if next_char > 1:
            at = f"start_line={next_line}, start_char={next_char}"
            lines.append(f'[... line {next_line} goes on: read_output(id="{output.id}", {at}) ...]')
        elif next_line > 0:
            lines.append(
                f'[... more from line {next_line} on: read_output(id="{output.id}", start_line={next_line}) ...]'
            )
        else:
            lines += _missing_end(output)
        facts = {"id": output.id, "start_line": start, "next_line": next_line, "next_char": next_char}
        return ToolResult("\n".join(lines), data={**facts, "content": fitted.text, "truncated": next_line > 0})

    def _search(self, output: Output, asked: ReadOutputArguments, pattern: str, cancel: Cancel) -> ToolResult:
        from handrail.shell.search import answer_bytes, pattern_fault, read_matches, search_argv  # few calls search

        fault = pattern_fault(pattern)
        if fault is not None:
            return refusal(Code.BAD_PATTERN, fault)
        start = max(asked.start_line, 1)
        completed = self._host.run(
            Invocation(
                argv=search_argv(
                    self._host.seen(output.path),
                    output.inode,
                    pattern,
                    start_line=start,
                    max_matches=asked.max_lines,
                    max_chars=self._text.max_chars,
                    seconds=_SEARCH_S / 2,
                ),
                cwd=self._host.seen(self._directory),
                env={"PATH": "/usr/bin:/bin"},
                timeout_s=_SEARCH_S,
                grace_s=0,
                merge=False,
                access="read",
                output=OutputLimits(head_bytes=answer_bytes(asked.max_lines, self._text.max_chars)),
            ),
            cancel=cancel,
        )
        if completed.timed_out:
            narrower = "search for something simpler, or from a later start_line"
            return refusal(Code.TIMED_OUT, f"the search took longer than {_SEARCH_S:g} s; {narrower}.")
        if completed.cancelled:
            return refusal(Code.CANCELLED, "the search was cancelled.")
        if completed.exit_code != 0 or completed.stdout.dropped_bytes:
            return refusal(Code.IO_ERROR, f"{output.id} could not be searched; page through it instead.")
        found = read_matches(completed.stdout.head)
        lines = [f"{output.id}: {len(found.matches)} matching lines from line {start} on"]
        lines += [f"{match.line}:{match.text}" for match in found.matches]
        if found.next_line > 0:
            lines.append(
                f"[... searched up to line {found.next_line - 1}: go on with start_line={found.next_line} ...]"
            )
        else:
            lines += _missing_end(output)
        matches = [asdict(match) for match in found.matches]
        facts = {"id": output.id, "start_line": start, "next_line": found.next_line, "matches": matches}
        return ToolResult("\n".join(lines), data={**facts, "truncated": found.next_line > 0})


def _range(start: int, char: int, count: int) -> str:
    if not count:
        return f"no line {start}: the output ends before it"
    behind = f", from character {char}" if char > 1 else ""
    return f"line {start}{behind}" if count == 1 else f"lines {start}{behind} to {start + count - 1}"


def _missing_end(output: Output) -> list[str]:
    if output.kept_bytes >= output.total_bytes:
        return []
    return [f"[... only the first {output.kept_bytes} of {output.total_bytes} bytes were kept ...]"]


_DESCRIPTION = (
    "Show lines of a command's output that its report left out, by the id and line number that the cut names, "
    "or, with `pattern`, only the lines that match a regular expression, with their numbers."
)


def _schema() -> dict[str, Any]:
    return without_null(schema_of(ReadOutputArguments))
