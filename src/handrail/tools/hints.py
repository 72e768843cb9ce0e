"""Words for exit codes that mean less than they seem: 1 from `grep` is "nothing matched", not a failure."""

from __future__ import annotations

_OF_EXIT_1 = {
    **dict.fromkeys(
        ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"),
        "{} exits with 1 when nothing matched; that is no failure",
    ),
    **dict.fromkeys(("diff", "cmp", "comm", "colordiff"), "{} exits with 1 when its inputs differ; that is no failure"),
    **dict.fromkeys(("test", "[", "[["), "{} exits with 1 when the condition is false; that is no failure"),
    **dict.fromkeys(("pgrep", "pidof"), "{} exits with 1 when no process matched; that is no failure"),
    **dict.fromkeys(("which", "command"), "{} exits with 1 when there is no such program"),
    **dict.fromkeys(("fd", "fdfind"), "{} exits with 1 when nothing was found; that is no failure"),
    "find": "{} exits with 1 when some places could not be read; the rest of what it found is above",
}
_BEFORE_THE_PROGRAM = {"!", "command", "time", "env", "exec", "builtin", "sudo", "nice", "nohup"}


def hint_for(command: str, exit_code: int | None) -> str | None:
    """A sentence for exit code 1 of a program whose 1 is an answer, judged by the last command of the line.

    A guess from the words, worded as a fact about the program: where the line cannot be read there is no hint.
    """
    if exit_code != 1:
        return None
    program = _last_program(command).rpartition("/")[2]
    words = _OF_EXIT_1.get(program)
    return words.format(program) if words is not None else None


def _last_program(command: str) -> str:
    import shlex  # only an exit code of 1 needs it

    try:
        lexer = shlex.shlex(command.rstrip().replace("\n", " ; "), posix=True, punctuation_chars=True)
        words = list(lexer)
    except ValueError:
        return ""
    last: list[str] = []
    begins = False
    for word in words:
        if set(word) <= set("|&;()"):
            begins = True
        else:
            last = [word] if begins else [*last, word]
            begins = False
    for position, word in enumerate(last):
        is_assignment = word.partition("=")[0].isidentifier() and "=" in word
        if not is_assignment and word not in _BEFORE_THE_PROGRAM:
            return _with_subcommand(word, last[position + 1 :])
    return ""


def _with_subcommand(program: str, rest: list[str]) -> str:
    """`git grep` and `git diff` answer as their namesakes do."""
    if program == "git" and rest and rest[0] in ("grep", "diff"):
        return rest[0]
    return program
