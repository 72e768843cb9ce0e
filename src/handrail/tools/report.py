"""Words a shell call's outcome: status first, then where it stands, notes, a hint, and the bounded output.

Every sentence about a command that a model reads is made here; it holds no absolute path and nothing of the host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from handrail.errors import Code
from handrail.shell.outputs import Output, Outputs, count_lines
from handrail.shell.session import ShellRun
from handrail.text.cut import Shown, TextLimits, marker, present
from handrail.tools.confined import notes_on_confinement
from handrail.tools.hints import hint_for
from handrail.values.completed import Captured, Completed
from handrail.values.place import Resources
from handrail.values.tool import ToolResult

_MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A call as its report needs it. `notes` are for the host program: they stand in the data, not in the text.

    `network` and `resources` are what the call had, `root` the workspace's absolute path, which no report may show.
    """

    command: str
    timeout_s: float
    run: ShellRun
    notes: Sequence[str]
    network: bool
    resources: Resources
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStyle:
    """How a report is to be: its limits, one text or two, and whether a non-zero exit is an error."""

    text: TextLimits
    merge: bool
    nonzero_is_error: bool


def report(ran: Ran, outputs: Outputs, style: ReportStyle) -> ToolResult:
    """The result of one shell call. What is cut goes to `outputs`."""
    completed = ran.run.completed
    streams = {"output": completed.stdout}
    if not style.merge:
        streams = {"stdout": completed.stdout, "stderr": completed.stderr}
    texts = {name: _text(captured, outputs, style.text) for name, captured in streams.items()}
    notes = [
        *_notes(ran.run),
        *_notes_on_directory(ran),
        *completed.warnings,
        *_notes_on_walls(ran, texts),
        *_notes_on_text(streams, texts),
    ]
    hint = hint_for(ran.command, completed.exit_code)
    status = [
        _status(completed, ran.timeout_s),
        f"cwd: {_shown_path(ran.run.cwd)}",
        *(f"note: {note}" for note in notes),
    ]
    if hint is not None:
        status.append(f"hint: {hint}")
    return ToolResult(
        text="\n".join([*status, *_body(texts)]),
        is_error=completed.exit_code is None or (completed.exit_code != 0 and style.nonzero_is_error),
        data=_data(ran.run, texts, [*notes, *ran.notes]),
    )


def _text(captured: Captured, outputs: Outputs, limits: TextLimits) -> _Text:
    shown = present(captured.head, captured.tail, captured.dropped_bytes, _dropped_lines(captured), limits)
    if not shown.truncated:
        outputs.forget(captured)
        return _Text(shown, None, shown.before)
    output = outputs.keep(captured)
    return _Text(shown, output, shown.join(marker(shown, output.id if output else None)))


@dataclass(frozen=True, slots=True)
class _Text:
    shown: Shown
    output: Output | None
    joined: str


def _status(completed: Completed, timeout_s: float) -> str:
    if completed.timed_out:
        return f"Timed out after {timeout_s:g} s; stopped."
    if completed.cancelled:
        return "Cancelled; stopped."
    if completed.exit_code is None:
        return "Exit code unknown: another part of the host program collected it."
    return f"Exit code: {completed.exit_code}"


def _notes(ran: ShellRun) -> list[str]:
    completed = ran.completed
    notes: list[str] = []
    if completed.signal is not None and completed.exit_code is not None:
        notes.append(f"the command was ended by {completed.signal}")
    if ran.vanished:
        notes.append("the previous working directory is gone; this command started in /")
    if ran.refused:
        notes.append(f"the command ended outside the workspace; the next one starts in {_shown_path(ran.cwd)}")
    if completed.left_behind:
        named = ", ".join(f"{left.name or 'a process'} (pid {left.pid})" for left in completed.left_behind[:5])
        more = len(completed.left_behind) - 5
        notes.append(f"still running at the end, and ended: {named}" + (f" and {more} more" if more > 0 else ""))
    return notes


def _notes_on_directory(ran: Ran) -> list[str]:
    """A command that replaced bash, or took its report away, need not have gone anywhere: only if it speaks of it."""
    if not ran.run.unreported or not _MAY_MOVE.search(ran.command):
        return []
    return [f"the command did not tell in which directory it ended; the next one starts in {_shown_path(ran.run.cwd)}"]


def _notes_on_walls(ran: Ran, texts: Mapping[str, _Text]) -> list[str]:
    completed = ran.run.completed
    return notes_on_confinement(
        "\n".join(text.joined for text in texts.values()),
        completed.exit_code,
        completed.signal,
        completed.enforced,
        ran.resources,
        network=ran.network,
        root=ran.root,
        out_of_memory=completed.out_of_memory,
    )


def _notes_on_text(streams: Mapping[str, Captured], texts: Mapping[str, _Text]) -> list[str]:
    notes: list[str] = []
    for name, text in texts.items():
        captured = streams[name]
        if text.shown.invalid:
            notes.append(f"{name} held bytes that are not UTF-8; each is shown as U+FFFD")
        if text.shown.truncated and text.output is None:
            why = captured.spill_error or "the disk refused it"
            notes.append(f"the omitted part of {name} was not kept: {why}")
        elif text.output is not None and text.output.kept_bytes < text.output.total_bytes:
            why = f": {captured.spill_error}" if captured.spill_error else ""
            notes.append(
                f"{text.output.id} holds the first {text.output.kept_bytes} of {captured.total_bytes} bytes{why}"
            )
    return notes


def _body(texts: Mapping[str, _Text]) -> list[str]:
    if "output" in texts:
        return [texts["output"].joined or "(no output)"]
    return [line for name, text in texts.items() for line in (f"{name}:", text.joined or "(no output)")]


def _data(ran: ShellRun, texts: Mapping[str, _Text], notes: list[str]) -> dict[str, Any]:
    completed = ran.completed
    ids = {name: text.output.id if text.output else None for name, text in texts.items()}
    data: dict[str, Any] = {
        "exit_code": completed.exit_code,
        "signal": completed.signal,
        "timed_out": completed.timed_out,
        "cancelled": completed.cancelled,
        "cwd": ran.cwd,
        "duration_s": round(completed.duration_s, 4),
        **{name: text.joined for name, text in texts.items()},
        "truncated": any(text.shown.truncated for text in texts.values()),
        "omitted_lines": sum(text.shown.omitted_lines for text in texts.values()),
        "omitted_chars": sum(text.shown.omitted_chars for text in texts.values()),
        "output_id": ids.get("output", ids),
        "left_behind": [asdict(left) for left in completed.left_behind],
        "notes": notes,
        "enforced": asdict(completed.enforced),
    }
    if completed.timed_out:
        data["code"] = str(Code.TIMED_OUT)
    elif completed.cancelled:
        data["code"] = str(Code.CANCELLED)
    elif completed.exit_code is None:
        data["code"] = str(Code.IO_ERROR)
    return data


def _dropped_lines(captured: Captured) -> int | None:
    """Line ends between head and tail, or None where they cannot be known. Counted only now that a report needs it."""
    if not captured.dropped_bytes:
        return 0
    if captured.spill is None and captured.spill_error is None:
        return None
    try:
        spilled = count_lines(captured.spill, len(captured.head)) if captured.spill is not None else 0
    except OSError:
        return None
    # The file may have failed within the head: what it lacks of the head is shown, not dropped.
    unspilled = captured.unspilled_lines - captured.head[captured.spill_bytes :].count(b"\n")
    return spilled + unspilled - captured.tail.count(b"\n")


def _shown_path(relative: str) -> str:
    """A directory of the workspace on one printable line; the root is "/"."""
    path = "/" if relative == "." else "/" + relative
    return path if path.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in path)
