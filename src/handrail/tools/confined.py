"""Words for failures that confinement causes: what was refused, and the setting that changes it.

Judges by what programs print and how the command ended, so a sentence may be missing; it repeats nothing of the
output, no path least of all. Marks were taken from the programs' own messages, as they come in each tier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from handrail.tools.exceeded import notes_on_limits
from handrail.tools.marks import has, marked, paths_in
from handrail.values.completed import Enforced
from handrail.values.place import Resources

_SETTING = 'call again with network=true, or the setting network="on" gives it to every call'
_NO_NETWORK = f"no network: this call could reach no other machine; {_SETTING}"
_NO_NETWORK_IF_CURL = f"no network: if exit code 6 is curl's, the host's name could not be resolved; {_SETTING}"
_NO_SOCKETS = (
    "no network, and in tier T1 no localhost either: sockets other than Unix ones are refused; "
    f"{_SETTING}; `handrail doctor` says what a tier with a localhost of its own needs"
)
# Resolvers (glibc, Go, Java, Node), then the kernel's ENETUNREACH, then pip, which names no cause with --retries 0.
_CUT_OFF = (
    "could not resolve host",
    "could not resolve proxy",
    "temporary failure in name resolution",
    "temporary failure resolving '",
    "name or service not known",
    "unable to resolve host address",
    "could not translate host name",
    "getaddrinfo eai_again",
    "getaddrinfo enotfound",
    "code eai_again",
    "code: 'eai_again'",
    "dial tcp: lookup ",
    "unknownhostexception",
    "unresolvedaddressexception",
    "bad hostname '",
    "network is unreachable",
    "connect enetunreach",
    "code: 'enetunreach'",
    "(from versions: none)",
)
_CONNECT_FAILED = "failed to connect to "
# EPERM from socket(2), as a seccomp filter gives it: a mark, and what has to stand in its line too.
_SOCKET_REFUSED = (
    ("socket: operation not permitted", ""),
    ("failed: operation not permitted", "connecting to "),
    ("[errno 1] operation not permitted", "urlopen error"),
    ("[errno 1] operation not permitted", "connecterror"),
    ("[errno 1] operation not permitted", "establish a new connection"),
    ("[operation not permitted]", "cannot connect to host"),
    ("socketexception: operation not permitted", ""),
    ("bio_socket:operation not permitted", ""),
    ("listen eperm", ""),
    ("connect eperm", ""),
    ("couldn't connect to server", _CONNECT_FAILED),
    (_CONNECT_FAILED, "couldn't connect to server"),
)
_PYTHON_SOCKET = "_socket.socket.__init__(self, family, type, proto, fileno)\npermissionerror: [errno 1] "
_PYTHON_SOCKET_UNDERLINED = "^\npermissionerror: [errno 1] operation not permitted"

_READ_ONLY = ("read-only file system", "code: 'erofs'", "code erofs")
_WHERE = "write in the workspace or in $TMPDIR, or the setting write_paths adds a directory"
_OUTSIDE = f"outside the workspace everything is read-only to commands: {_WHERE}"
_SOMEWHERE = f"commands write only in the workspace and in $TMPDIR; what was refused is read-only to them: {_WHERE}"
_INSIDE = "a part of the workspace is read-only to commands; the setting write_paths makes it writable"
_SETTINGS_FILE = "handrail.toml is read-only to commands, so that none can loosen what confines it; a person edits it"
_DENIED_OUTSIDE = (
    "if what was denied was a write: tier {} refuses each outside the workspace and $TMPDIR in these words; {}"
)
# EACCES on reading is the file's own mode, in each tier; these programs, and these words, read.
_READERS = ("find: ", "ls: ", "cat: ", "grep: ", "rg: ", "du: ", "head: ", "tail: ", "stat: ", "wc: ", "diff: ")
_READING = ("cannot open directory", "cannot access", "for reading", ": cd: ")

_BUSY = "device or resource busy"
_CONFIG_NOT_WRITTEN = "could not write config file "
_CONFIG = (
    "git's configuration is read-only to commands, because it can name programs that git runs (git config, "
    'git remote add, git push -u and their kind store there); the setting write_paths=[".git/config"] allows it'
)
_REST_DONE = "; what else git was asked to do, it did"
_HOOKS = (
    "git's hooks are read-only to commands, because git runs them outside the sandbox too; "
    'the setting write_paths=[".git/hooks"] allows it'
)
_REPOSITORY = "the repository's .git is held in place: no command can move or remove it; a person can"

_FOREIGN_OWNER = ("detected dubious ownership in repository", "fatal: unsafe repository (")
_OWNER = (
    "git refuses a repository that another user owns, and in the sandbox other users' files belong to nobody: "
    "git -c safe.directory=DIR, with the directory that git names, trusts it for one command, and the git setting "
    "safe.directory in a person's own configuration for all"
)
_PRIVILEGES = (
    '"no new privileges" flag is set',
    "no new privileges' flag is set",
    "sudo: effective uid is not",
    "must be owned by uid 0 and have the setuid bit set",
    "su: authentication failure",
    "su: cannot set groups: operation not permitted",
    "setgroups 65534 failed",
    "seteuid 42 failed",
)
_NO_PRIVILEGES = (
    "nothing gains privileges in the sandbox: sudo, su and other setuid programs cannot work in it; do without them "
    '(for packages: a virtual environment), or a person runs it; only the setting sandbox="off" ends that'
)
_NO_CREDENTIALS = ("permission denied (publickey", "host key verification failed", "unable to locate credentials")
_HIDDEN = (
    "keys and other secrets of the home are hidden from commands, ssh's and cloud tools' too; "
    "the setting read_paths shows the ones it names"
)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that did not succeed. `text` and `root` in lower case."""

    text: str
    root: str
    exit_code: int | None
    tier: str
    network: bool


def notes_on_confinement(
    output: str,
    exit_code: int | None,
    signal: str | None,
    enforced: Enforced,
    resources: Resources,
    *,
    network: bool,
    root: str,
    out_of_memory: bool = False,
) -> list[str]:
    """Sentences for a model, at most one for each cause; none holds an absolute path.

    `output` is what the report shows, `signal` the name of the one that ended the command, `network` whether the call
    had the network, `root` the workspace's absolute path, `out_of_memory` whether the kernel ended a process at the
    slot's limit. A call with exit code 0 has notes on limits that a signal showed, and on git's configuration: git
    goes on, and succeeds, when it could not write there.
    """
    confines_files, confines_network = enforced.files != "none", enforced.network != "none"
    text = output.lower()
    is_confined = confines_files or confines_network
    notes = notes_on_limits(text, exit_code, signal, resources if is_confined else None, out_of_memory=out_of_memory)
    if exit_code == 0:
        return [*notes, *(_notes_on_success(text) if confines_files else ())]
    call = _Call(text, root.lower().rstrip("/"), exit_code, enforced.tier, network)
    if confines_network and not network:
        notes.extend(_notes_on_network(call))
    if confines_files:
        notes.extend(_notes_on_files(call))
    return list(dict.fromkeys(notes))


def _notes_on_success(text: str) -> Iterator[str]:
    if any(
        line.startswith("error: ") and ".git/config: " + _BUSY in line for line in marked(text, _CONFIG_NOT_WRITTEN)
    ):
        yield _CONFIG + _REST_DONE


def _notes_on_network(call: _Call) -> Iterator[str]:
    if call.tier == "T1" and (_is_cut_off(call.text) or _is_refused_a_socket(call.text)):
        yield _NO_SOCKETS
    elif _is_cut_off(call.text):
        yield _NO_NETWORK
    elif call.exit_code == 6 and not call.text.strip():
        yield _NO_NETWORK_IF_CURL  # `curl -s` says nothing at all


def _is_cut_off(text: str) -> bool:
    # sudo looks its own host's name up, and goes on when there is none.
    return any(not line.startswith("sudo: ") for line in marked(text, *_CUT_OFF)) or any(
        _is_elsewhere(line.partition(_CONNECT_FAILED)[2]) for line in marked(text, _CONNECT_FAILED)
    )


def _is_elsewhere(target: str) -> bool:
    """Whether `target` begins with another machine's address. A name that resolved without the network is local."""
    words = target.split(maxsplit=1)
    address = words[0].strip("[]") if words else ""
    if set(address) <= set("0123456789."):
        return address.count(".") == 3 and not address.startswith(("127.", "0."))
    return address.count(":") > 1 and set(address) <= set("0123456789abcdef:") and address not in {"::1", "::"}


def _is_refused_a_socket(text: str) -> bool:
    if _PYTHON_SOCKET in text or ("_socket.socket.__init__" in text and _PYTHON_SOCKET_UNDERLINED in text):
        return True
    return any(also in line for mark, also in _SOCKET_REFUSED for line in marked(text, mark))


def _notes_on_files(call: _Call) -> Iterator[str]:
    yield from (_note_on_read_only(call, line) for line in marked(call.text, *_READ_ONLY))
    yield from (note for line in marked(call.text, _BUSY) if (note := _note_on_busy(line)) is not None)
    if call.tier in {"T1", "T2"} and call.exit_code != 126 and _is_denied_outside(call):
        yield _DENIED_OUTSIDE.format(call.tier, _WHERE)
    if has(call.text, *_FOREIGN_OWNER):
        yield _OWNER
    if has(call.text, *_PRIVILEGES):
        yield _NO_PRIVILEGES
    if call.tier != "T1" and has(call.text, *_NO_CREDENTIALS):
        yield _HIDDEN  # a Landlock rule cannot hide what lies in a directory that may be read


def _note_on_read_only(call: _Call, line: str) -> str:
    if ".git/hooks" in line:
        return _HOOKS
    if ".git/config" in line:
        return _CONFIG
    if "handrail.toml" in line:
        return _SETTINGS_FILE
    if _names_outside(call, line):
        return _OUTSIDE
    return _INSIDE if call.root in line else _SOMEWHERE


def _note_on_busy(line: str) -> str | None:
    """What is mounted onto itself can be neither renamed nor replaced: EBUSY. `sed -i` renames within .git."""
    if ".git/hooks" in line:
        return _HOOKS
    if ".git/config" in line or "cannot rename .git/" in line:
        return _CONFIG
    return _REPOSITORY if "'.git'" in line or ".git: " in line or "/.git'" in line else None


def _is_denied_outside(call: _Call) -> bool:
    return any(
        not line.startswith(_READERS) and not has(line, *_READING) and _names_outside(call, line)
        for line in marked(call.text, "permission denied")
    )


def _names_outside(call: _Call, line: str) -> bool:
    # The workspace's own path may hold what ends a path elsewhere, a space say: it goes first, as one piece.
    return any(path != call.root for path in paths_in(line.replace(call.root + "/", "")))
