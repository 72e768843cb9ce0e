"""Words for limits on resources that a command ran into, each with its number and the setting that changes it."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.tools.marks import has, marked
from handrail.values.place import Resources

_TOO_LARGE = ("[errno 27] file too large", "(27, 'file too large", "efbig: file too large", "code: 'efbig'")
_TOO_MANY_FILES = ("too many open files", "code: 'emfile'", "shared object file: error 24")
# EAGAIN is also what a lock and a socket answer: it counts where a fork or a thread is named with it.
_NO_FORK = (
    "fork: retry: resource temporarily unavailable",
    "fork: resource temporarily unavailable",
    "can't start new thread",
    "pthread_create failed (eagain)",
    "failed to start thread",
)
_EAGAIN = "resource temporarily unavailable"
_FORKING = ("fork", "posix_spawn", "make: ", "make[")


def notes_on_limits(
    text: str, exit_code: int | None, signal: str | None, resources: Resources | None, *, out_of_memory: bool
) -> list[str]:
    """Sentences on limits that were reached; `text` is the output in lower case, `resources` what was set.

    With exit code 0 only what a signal did counts: bash reports it of a part that did not decide the line's status.
    """
    notes = _on_memory(resources) if out_of_memory else []
    if resources is None:
        return notes
    failed = exit_code != 0
    by_cpu = signal == "SIGXCPU" or exit_code == 152 or _is_reported(text, "cpu time limit exceeded", failed=failed)
    if resources.cpu_s is not None and by_cpu:
        notes.append(
            f"a process was ended after {resources.cpu_s} s of processor time; resources.cpu_s changes this limit"
        )
    by_size = signal == "SIGXFSZ" or exit_code == 153 or _is_reported(text, "file size limit exceeded", failed=failed)
    if resources.file_bytes is not None and (by_size or (failed and _is_too_large(text))):
        notes.append(f"a file was to grow past {resources.file_bytes} bytes; resources.file_bytes changes this limit")
    return [*notes, *(_on_counts(text, resources) if failed else ())]


def _on_memory(resources: Resources | None) -> list[str]:
    if resources is None or resources.memory_bytes is None:
        return ["the kernel ended a process for want of memory, at a limit that is not handrail's own"]
    limit = resources.memory_bytes
    words = f"the kernel ended a process when the command used more than {limit} bytes of memory"
    return [f"{words}; resources.memory_bytes changes this limit"]


def _on_counts(text: str, resources: Resources) -> Iterator[str]:
    if resources.open_files is not None and any(
        "too many open files in system" not in line for line in marked(text, *_TOO_MANY_FILES)
    ):
        yield f"a process may have {resources.open_files} files open, and had; resources.open_files changes this limit"
    if resources.processes is not None and _is_kept_from_forking(text):
        yield (
            f"no more processes or threads could be started, {resources.processes} may run at once; "
            "resources.processes changes this limit"
        )


def _is_reported(text: str, words: str, *, failed: bool) -> bool:
    """Whether bash says so, whatever the status, or, where the call failed, any program (make, gcc)."""
    return any(failed or line.startswith("bash: line ") for line in marked(text, words))


def _is_too_large(text: str) -> bool:
    # A program's own "file too large" has a reason of its own after it; the system's ends the line, or Perl adds where.
    return has(text, *_TOO_LARGE) or any(
        line.endswith(": file too large") or line.startswith("file too large at ")
        for line in marked(text, "file too large")
    )


def _is_kept_from_forking(text: str) -> bool:
    if has(text, *_NO_FORK):
        return True
    if any(any(mark in line for mark in _FORKING) for line in marked(text, _EAGAIN)):
        return True
    # Python names the call in the traceback above the error.
    at = text.find(f"blockingioerror: [errno 11] {_EAGAIN}")
    return at >= 0 and "fork" in text[max(0, at - 500) : at]
