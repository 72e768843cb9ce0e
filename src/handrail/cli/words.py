"""What several subcommands say of a result, for a person; the words themselves are the report's."""

from __future__ import annotations

from handrail.values.tool import ToolResult


def status_lines(result: ToolResult) -> list[str]:
    """A shell call's report without its output; all of a refusal's."""
    data = result.data
    if "output" in data:
        body = data["output"] or "(no output)"
    elif "stdout" in data:
        body = "\n".join(f"{name}:\n{data[name] or '(no output)'}" for name in ("stdout", "stderr"))
    else:
        body = ""
    return result.text.removesuffix(body).splitlines()


def protection(*, tier: str, processes: str, files: str, network: str) -> str:
    """What held while a command ran, in one line."""
    name = "no sandbox" if files == "none" else "sandbox"
    return f"{name}: tier {tier} (processes: {processes}; files: {files}; network: {network})"
