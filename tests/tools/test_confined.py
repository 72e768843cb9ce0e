"""What confinement is said to have caused. The outputs are what these programs printed in the tier that is named."""

# ruff: noqa: RUF001 - curly quotes, as the programs print them

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.tools.confined import notes_on_confinement
from handrail.values.completed import Enforced
from handrail.values.place import Resources

ROOT = "/home/ann/shop"
NOTHING = Enforced("T2", "PID namespace", files="none", network="none")
LIMITS = Resources(cpu_s=5, file_bytes=4096, open_files=64, processes=20, memory_bytes=1000)


def tier(name: str) -> Enforced:
    return Enforced(name, "held", files="confined", network="confined")


def notes(
    output: str,
    exit_code: int | None = 1,
    *,
    signal: str | None = None,
    enforced: Enforced | None = None,
    resources: Resources | None = None,
    network: bool = False,
    root: str = ROOT,
    out_of_memory: bool = False,
) -> list[str]:
    return notes_on_confinement(
        output,
        exit_code,
        signal,
        enforced or tier("T3"),
        resources or Resources(),
        network=network,
        root=root,
        out_of_memory=out_of_memory,
    )


CUT_OFF = {
    "curl": "curl: (6) Could not resolve host: example.com",
    "curl to an address": ("curl: (7) Failed to connect to 192.0.2.1 port 80 after 0 ms: Couldn't connect to server"),
    "curl to an IPv6 address": (
        "curl: (7) Failed to connect to 2001:db8::1 port 80 after 0 ms: Couldn't connect to server"
    ),
    "wget": (
        "Resolving example.com (example.com)... failed: Temporary failure in name resolution.\n"
        "wget: unable to resolve host address ‘example.com’"
    ),
    "wget to an address": "Connecting to 192.0.2.1:80... failed: Network is unreachable.",
    "git over https": (
        "Cloning into 'b'...\nfatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com"
    ),
    "git over https to an address": (
        "fatal: unable to access 'https://192.0.2.1/x/': "
        "Failed to connect to 192.0.2.1 port 443 after 0 ms: Couldn't connect to server"
    ),
    "git over ssh": (
        "ssh: Could not resolve hostname github.com: Temporary failure in name resolution\n"
        "fatal: Could not read from remote repository.\n\n"
        "Please make sure you have the correct access rights\nand the repository exists."
    ),
    "git's own protocol": ("fatal: unable to look up github.com (port 9418) (Temporary failure in name resolution)"),
    "ssh": "ssh: connect to host 192.0.2.1 port 22: Network is unreachable",
    "pip": (
        "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection "
        "broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f3d175dcf50>: "
        "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/six/"
    ),
    "pip that does not retry": (
        "ERROR: Could not find a version that satisfies the requirement six (from versions: none)\n"
        "ERROR: No matching distribution found for six"
    ),
    "uv": (
        "error: Request failed after 3 retries in 5.8s\n"
        "  cause: Failed to fetch: https://pypi.org/simple/six/\n"
        "  cause: failed to lookup address information: Temporary failure in name resolution"
    ),
    "npm": (
        "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo\nnpm error errno EAI_AGAIN\n"
        "npm error request to https://registry.npmjs.org/left-pad failed, "
        "reason: getaddrinfo EAI_AGAIN registry.npmjs.org"
    ),
    "the beginning of npm's words": "npm error code EAI_AGAIN",
    "cargo": (
        "warning: spurious network error (3 tries remaining): "
        "[6] Could not resolve hostname (Could not resolve host: index.crates.io)"
    ),
    "go": (
        'go: rsc.io/quote@v1.5.2: Get "https://proxy.golang.org/rsc.io/quote/@v/v1.5.2.mod": '
        "dial tcp: lookup proxy.golang.org on 10.255.255.53:53: "
        "dial udp 10.255.255.53:53: connect: network is unreachable"
    ),
    "apt-get": (
        "E: Failed to fetch http://deb.debian.org/debian/pool/main/h/hello/hello_2.10-3_amd64.deb  "
        "Temporary failure resolving 'deb.debian.org'"
    ),
    "urllib": "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
    "urllib to an address": "urllib.error.URLError: <urlopen error [Errno 101] Network is unreachable>",
    "requests": (
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='example.com', port=443): Max retries exceeded "
        "with url: / (Caused by NameResolutionError(\"HTTPSConnection(host='example.com', port=443): "
        "Failed to resolve 'example.com' ([Errno -3] Temporary failure in name resolution)\"))"
    ),
    "httpx": "httpx.ConnectError: [Errno -3] Temporary failure in name resolution",
    "aiohttp": (
        "aiohttp.client_exceptions.ClientConnectorDNSError: "
        "Cannot connect to host example.com:443 ssl:default [Temporary failure in name resolution]"
    ),
    "a Python error as its repr": "gaierror(-3, 'Temporary failure in name resolution')",
    "node's fetch": (
        "TypeError: fetch failed\n    at node:internal/deps/undici/undici:14976:13\n"
        "  [cause]: Error: getaddrinfo EAI_AGAIN example.com"
    ),
    "the end of node's words": "  errno: -101,\n  code: 'ENETUNREACH',\n  syscall: 'connect',",
    "java": "java.net.UnknownHostException: example.com",
    "java to an address": "java.net.SocketException: Network is unreachable",
    "java's HTTP client": (
        "Caused by: java.net.ConnectException\nCaused by: java.nio.channels.UnresolvedAddressException"
    ),
    "maven": (
        "[ERROR] Could not transfer artifact com.nowhere:zz:pom:9 from/to central (https://repo.maven.apache.org/maven2):"
        " transfer failed for https://repo.maven.apache.org/maven2/com/nowhere/zz/9/zz-9.pom: "
        "Unknown host repo.maven.apache.org: Temporary failure in name resolution -> [Help 1]"
    ),
    "perl": "IO::Socket::INET: Bad hostname 'example.com:80' at -e line 1.",
    "openssl": "BIO_lookup_ex:system lib:../crypto/bio/bio_addr.c:746:Temporary failure in name resolution",
    "bash": "bash: connect: Network is unreachable\nbash: line 1: /dev/tcp/192.0.2.1/80: Network is unreachable",
    "psql": (
        'psql: error: could not translate host name "db.example.com" to address: Temporary failure in name resolution'
    ),
    "gpg": "gpg: keyserver receive failed: Network is unreachable",
}


@pytest.mark.parametrize("output", CUT_OFF.values(), ids=CUT_OFF)
def test_a_program_that_needs_the_network_gets_its_settings_named(output: str) -> None:
    for name in ("T3", "T2"):
        (note,) = notes(output, enforced=tier(name))
        assert note.startswith("no network: ")
        assert 'network=true, or the setting network="on"' in note


@pytest.mark.parametrize("output", CUT_OFF.values(), ids=CUT_OFF)
def test_with_the_network_or_without_confinement_or_failure_nothing_is_said_of_it(output: str) -> None:
    assert notes(output, network=True) == []
    assert notes(output, 0) == []
    assert notes(output, enforced=NOTHING) == []
    assert notes(output, enforced=Enforced("T3", "held", files="confined", network="none")) == []


def test_a_call_that_was_stopped_counts_as_failed() -> None:
    assert len(notes(CUT_OFF["wget"], None, signal="SIGTERM")) == 1


def test_silence_with_curls_code_for_resolution_is_told_as_a_guess() -> None:
    (note,) = notes("\n", 6)
    assert note.startswith("no network: if exit code 6 is curl's")
    assert notes("6 tests failed\n", 6) == []
    assert notes("", 5) == []


LOCAL = {
    "curl": "curl: (7) Failed to connect to 127.0.0.1 port 8000 after 0 ms: Couldn't connect to server",
    "curl by name": "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect to server",
    "curl, IPv6": "curl: (7) Failed to connect to ::1 port 8000 after 0 ms: Couldn't connect to server",
    "curl to any": "curl: (7) Failed to connect to 0.0.0.0 port 8000 after 0 ms: Couldn't connect to server",
    "git": (
        "fatal: unable to access 'http://localhost:3000/a/': "
        "Failed to connect to localhost port 3000 after 0 ms: Couldn't connect to server"
    ),
    "wget": "Connecting to localhost (localhost)|127.0.0.1|:8000... failed: Connection refused.",
    "python": "    sock.connect(sa)\nConnectionRefusedError: [Errno 111] Connection refused",
    "node": "Error: connect ECONNREFUSED 127.0.0.1:3000",
    "bash": "bash: connect: Connection refused\nbash: line 1: /dev/tcp/127.0.0.1/80: Connection refused",
    "psql": 'psql: error: connection to server at "127.0.0.1", port 5432 failed: Connection refused',
    "ssh": "ssh: connect to host localhost port 22: Connection refused",
}


@pytest.mark.parametrize("output", LOCAL.values(), ids=LOCAL)
def test_nothing_listening_on_localhost_is_no_lack_of_network(output: str) -> None:
    assert notes(output) == []


REFUSED_SOCKETS = {
    "curl to localhost": "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect to server",
    "wget": "Connecting to localhost (localhost)|127.0.0.1|:8000... failed: Operation not permitted.",
    "ssh": "socket: Operation not permitted\nssh: connect to host localhost port 22: failure",
    "bash": "bash: socket: Operation not permitted\nbash: line 1: /dev/tcp/127.0.0.1/80: Operation not permitted",
    "python": (
        "    _socket.socket.__init__(self, family, type, proto, fileno)\n"
        "PermissionError: [Errno 1] Operation not permitted"
    ),
    "python with underlines": (
        "    _socket.socket.__init__(self, family, type, proto, fileno)\n    ~~~~~~^^^^^^\n"
        "PermissionError: [Errno 1] Operation not permitted"
    ),
    "urllib": "urllib.error.URLError: <urlopen error [Errno 1] Operation not permitted>",
    "requests": (
        "(Caused by NewConnectionError(\"HTTPConnection(host='127.0.0.1', port=1): "
        'Failed to establish a new connection: [Errno 1] Operation not permitted"))'
    ),
    "httpx": "httpx.ConnectError: [Errno 1] Operation not permitted",
    "aiohttp": (
        "aiohttp.client_exceptions.ClientConnectorError: "
        "Cannot connect to host 127.0.0.1:1 ssl:default [Operation not permitted]"
    ),
    "node's server": "Error: listen EPERM: operation not permitted 0.0.0.0:8000",
    "node's client": "Error: connect EPERM 127.0.0.1:3000 - Local (undefined:undefined)",
    "java": 'Exception in thread "main" java.net.SocketException: Operation not permitted',
    "go's server": "listen tcp 127.0.0.1:0: socket: operation not permitted",
    "psql": (
        'psql: error: connection to server at "127.0.0.1", port 5432 failed: '
        "could not create socket: Operation not permitted"
    ),
    "openssl": "system library:BIO_socket:Operation not permitted:../crypto/bio/bio_sock2.c:50:calling socket()",
    "ip": "Cannot open netlink socket: Operation not permitted",
}


@pytest.mark.parametrize("output", [*REFUSED_SOCKETS.values(), *CUT_OFF.values()], ids=[*REFUSED_SOCKETS, *CUT_OFF])
def test_in_t1_localhost_is_said_to_be_missing_too(output: str) -> None:
    (note,) = notes(output, enforced=tier("T1"))
    assert note.startswith("no network, and in tier T1 no localhost either")
    assert 'network=true, or the setting network="on"' in note
    assert notes(output, 0, enforced=tier("T1")) == []
    assert notes(output, enforced=tier("T1"), network=True) == []


@pytest.mark.parametrize("output", REFUSED_SOCKETS.values(), ids=REFUSED_SOCKETS)
def test_where_loopback_is_there_a_refused_socket_is_not_put_down_to_the_network(output: str) -> None:
    assert notes(output, enforced=tier("T3")) == []


OUTSIDE = {
    "bash": "bash: line 1: /opt/x: Read-only file system",
    "touch": "touch: cannot touch '/opt/x': Read-only file system",
    "mkdir": "mkdir: cannot create directory ‘/opt/d’: Read-only file system",
    "mv": "mv: inter-device move failed: 'Net.java' to '/opt/x'; unable to remove target: Read-only file system",
    "sed": "sed: couldn't open temporary file /etc/sedC0Bvrh: Read-only file system",
    "python": "OSError: [Errno 30] Read-only file system: '/opt/x'",
    "a Python error as its repr": "OSError(30, 'Read-only file system') for '/opt/x'",
    "venv": "Error: [Errno 30] Read-only file system: '/opt/v'",
    "npm": (
        "npm error rofs EROFS: read-only file system, symlink '../../../home/ann/shop/p' -> '/usr/lib/node_modules/p'"
    ),
    "dpkg": "dpkg: error: unable to access the dpkg database directory /var/lib/dpkg: Read-only file system",
    "git clone": "fatal: could not create work tree dir '/opt/r': Read-only file system",
    "git config --system": "error: could not lock config file /etc/gitconfig: Read-only file system",
    "git config --global": "error: could not lock config file /home/ann/.gitconfig: Read-only file system",
    "beside the workspace": "touch: cannot touch '/home/ann/shop2/x': Read-only file system",
    "above the workspace": "touch: cannot touch '/home/ann': Read-only file system",
}
SOMEWHERE = {
    "tar": "tar: run.sh: Cannot open: Read-only file system\ntar: Exiting with failure status due to previous errors",
    "git worktree": "fatal: could not create leading directories of '../wt/.git': Read-only file system",
    "perl": "Read-only file system at -e line 1.",
    "node": "  errno: -30,\n  code: 'EROFS',\n  syscall: 'open',\n  path: '/opt/x'",
}


@pytest.mark.parametrize("output", [*OUTSIDE.values(), *SOMEWHERE.values()], ids=[*OUTSIDE, *SOMEWHERE])
def test_a_write_outside_gets_the_setting_for_paths_named(output: str) -> None:
    (note,) = notes(output)
    assert "write in the workspace or in $TMPDIR, or the setting write_paths adds a directory" in note
    assert note.startswith("outside the workspace") == (output in OUTSIDE.values())
    assert notes(output, 0) == []
    assert notes(output, enforced=NOTHING) == []


@pytest.mark.parametrize("root", [ROOT, "/w/my shop", "/w/it's, here:", "/"])
def test_a_read_only_part_of_the_workspace_is_told_from_what_lies_outside(root: str) -> None:
    path = f"{root.rstrip('/')}/src/x"
    (note,) = notes(f"OSError: [Errno 30] Read-only file system: '{path}'", root=root)
    assert note.startswith("a part of the workspace is read-only")
    assert "write_paths" in note


@pytest.mark.parametrize(
    "output",
    [
        "error: could not write config file .git/config: Device or resource busy",
        (
            "error: could not write config file .git/config: Device or resource busy\n"
            "fatal: could not set 'remote.o.url' to 'https://x.y/z'"
        ),
        (
            "error: could not write config file .git/config: Device or resource busy\n"
            "error: Could not rename config section 'remote.origin' to 'remote.up'"
        ),
        f"error: could not write config file {ROOT}/.git/config: Device or resource busy",
        "error: could not write config file /home/ann/main/.git/config: Device or resource busy",
        "error: could not lock config file .git/config: Read-only file system",
        "bash: line 1: .git/config: Read-only file system",
        "sed: cannot rename .git/sedZmjJw2: Device or resource busy",
    ],
)
def test_gits_protected_configuration_has_its_setting_named(output: str) -> None:
    (note,) = notes(output, 128)
    assert 'the setting write_paths=[".git/config"]' in note


PUSHED = (
    "To https://example.com/a.git\n * [new branch]      HEAD -> zz\n"
    "error: could not write config file .git/config: Device or resource busy\n"
    "error: could not write config file .git/config: Device or resource busy\n"
    "branch 'master' set up to track 'origin/zz'."
)


def test_a_push_that_could_not_store_its_upstream_is_told_although_git_succeeds() -> None:
    (note,) = notes(PUSHED, 0)
    assert 'write_paths=[".git/config"]' in note
    assert note.endswith("what else git was asked to do, it did")
    assert notes(PUSHED, 0, enforced=NOTHING) == []


@pytest.mark.parametrize(
    "output",
    [
        "notes.md:3:error: could not write config file .git/config: Device or resource busy",
        'print("error: could not write config file .git/config: Device or resource busy")',
        "error: could not write config file .git/config: No space left on device",
        "error: could not lock config file .git/config: File exists",
    ],
)
def test_other_words_on_gits_configuration_in_a_success_are_not_put_down_to_the_sandbox(output: str) -> None:
    assert notes(output, 0) == []


def test_a_lock_that_another_git_left_is_not_put_down_to_the_sandbox() -> None:
    assert notes("error: could not lock config file .git/config: File exists", 255) == []


@pytest.mark.parametrize(
    "output",
    [
        "bash: line 1: .git/hooks/pre-commit: Read-only file system",
        "cp: cannot create regular file '.git/hooks/pre-commit': Read-only file system",
        "rm: cannot remove '.git/hooks/update.sample': Read-only file system\n" * 30,
        f"OSError: [Errno 30] Read-only file system: '{ROOT}/.git/hooks/pre-commit'",
        "rm: cannot remove '.git/hooks': Device or resource busy",
    ],
)
def test_gits_hooks_have_their_setting_named_once(output: str) -> None:
    (note,) = notes(output)
    assert 'the setting write_paths=[".git/hooks"]' in note


def test_moving_the_repository_away_is_told_as_what_it_is() -> None:
    (note,) = notes("mv: cannot move '.git' to 'gone': Device or resource busy")
    assert "no command can move or remove it" in note
    assert notes("umount: target is busy.\nrm: cannot remove 'mnt': Device or resource busy") == []


def test_the_settings_file_is_said_to_be_a_persons() -> None:
    (note,) = notes("bash: line 1: handrail.toml: Read-only file system")
    assert note.startswith("handrail.toml is read-only to commands")


def test_a_repository_of_another_user_is_told_with_gits_setting() -> None:
    output = (
        "fatal: detected dubious ownership in repository at '/home/ann/lib'\n"
        "To add an exception for this directory, call:\n\n"
        "\tgit config --global --add safe.directory /home/ann/lib"
    )
    (note,) = notes(output, 128)
    assert "another user owns" in note
    assert "safe.directory" in note
    assert notes(output, 128, enforced=NOTHING) == []


@pytest.mark.parametrize(
    "output",
    [
        'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
        "sudo: effective uid is not 0, is sudo installed setuid root?",
        "sudo: /usr/bin/sudo must be owned by uid 0 and have the setuid bit set",
        "Password: su: Authentication failure",
        "su: cannot set groups: Operation not permitted",
        "E: setgroups 65534 failed - setgroups (1: Operation not permitted)",
    ],
)
def test_sudo_and_its_like_are_told_not_to_work(output: str) -> None:
    (note,) = notes(output)
    assert note.startswith("nothing gains privileges in the sandbox")
    assert 'sandbox="off"' in note


def test_sudo_that_only_cannot_look_itself_up_is_no_lack_of_network() -> None:
    assert notes("sudo: unable to resolve host box: Name or service not known\nmake: *** [all] Error 1", 2) == []


@pytest.mark.parametrize(
    "output",
    [
        "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
        "Host key verification failed.\nfatal: Could not read from remote repository.",
        'Unable to locate credentials. You can configure credentials by running "aws configure".',
    ],
)
def test_a_secret_that_a_program_missed_is_told_to_be_hidden(output: str) -> None:
    (note,) = notes(output, 128, network=True)
    assert "the setting read_paths" in note
    assert notes(output, 128, network=True, enforced=tier("T1")) == []  # hides none


DENIED = {
    "bash": "bash: line 1: /opt/x: Permission denied",
    "mkdir": "mkdir: cannot create directory ‘/opt/d’: Permission denied",
    "cp": "cp: cannot create regular file '/opt/x': Permission denied",
    "ln": "ln: failed to create hard link '/opt/x' => 'Net.java': Permission denied",
    "python": "PermissionError: [Errno 13] Permission denied: '/opt/x'",
    "node": "Error: EACCES: permission denied, open '/opt/x'",
    "git": "error: could not lock config file /etc/gitconfig: Permission denied",
    "dd": "dd: failed to open '/opt/x': Permission denied",
}


@pytest.mark.parametrize("output", DENIED.values(), ids=DENIED)
def test_a_denied_path_outside_is_told_where_landlock_denies_it(output: str) -> None:
    for name in ("T1", "T2"):
        (note,) = notes(output, enforced=tier(name))
        assert f"tier {name} refuses each outside the workspace" in note
        assert "write_paths" in note
    assert notes(output, enforced=tier("T3")) == []  # mounts answer in other words
    assert notes(output, enforced=NOTHING) == []
    assert notes(output, 0, enforced=tier("T1")) == []


@pytest.mark.parametrize(
    ("output", "exit_code"),
    [
        ("cat: /etc/shadow: Permission denied", 1),
        ("find: ‘/proc/1/fd’: Permission denied", 1),
        ("ls: cannot open directory '/root': Permission denied", 2),
        ("bash: line 1: cd: /root: Permission denied", 1),
        ("bash: line 1: ./run.sh: Permission denied", 126),
        ("bash: line 1: /usr/lib/os-release: Permission denied", 126),
        (f"bash: line 1: {ROOT}/locked: Permission denied", 1),
        ("bash: line 1: locked: Permission denied", 1),
        ("docker: permission denied while trying to connect to the socket at unix:///var/run/docker.sock", 1),
        ("git@github.com: Permission denied (publickey).", 128),
    ],
)
def test_what_modes_deny_is_not_put_down_to_landlock(output: str, exit_code: int) -> None:
    assert notes(output, exit_code, enforced=tier("T1")) == []


CPU = "a process was ended after 5 s of processor time; resources.cpu_s changes this limit"
SIZE = "a file was to grow past 4096 bytes; resources.file_bytes changes this limit"
FILES = "a process may have 64 files open, and had; resources.open_files changes this limit"
PROCESSES = "no more processes or threads could be started, 20 may run at once; resources.processes changes this limit"
LIMITED = [
    ("", 152, "SIGXCPU", CPU),
    ("", 152, None, CPU),
    ("bash: line 1: 20697 CPU time limit exceeded node -e 'for(;;);'", 0, None, CPU),
    ("make: *** [Makefile:2: all] CPU time limit exceeded", 2, None, CPU),
    ("", 153, "SIGXFSZ", SIZE),
    ("tar: Removing leading `/' from member names", 153, None, SIZE),
    ("bash: line 1: 20775 File size limit exceededcp big f", 0, None, SIZE),
    ("collect2: fatal error: ld terminated with signal 25 [File size limit exceeded]", 1, None, SIZE),
    ("OSError: [Errno 27] File too large", 1, None, SIZE),
    ("OSError(27, 'File too large')", 1, None, SIZE),
    ("File too large at -e line 1.", 27, None, SIZE),
    ("cp: error writing 'f': File too large", 1, None, SIZE),
    ("  errno: -27,\n  syscall: 'write',\n  code: 'EFBIG'", 1, None, SIZE),
    ("OSError: [Errno 24] Too many open files: '/dev/null'", 1, None, FILES),
    ("  errno: -24,\n  code: 'EMFILE',\n  syscall: 'open',", 1, None, FILES),
    ("warning: unable to access '.git/info/exclude': Too many open files", 128, None, FILES),
    (
        "ls: error while loading shared libraries: libselinux.so.1: cannot open shared object file: Error 24",
        127,
        None,
        FILES,
    ),
    ("bash: fork: retry: Resource temporarily unavailable", 254, None, PROCESSES),
    ("bash: fork: Resource temporarily unavailable", 254, None, PROCESSES),
    ("make: ls: Resource temporarily unavailable\nmake: *** [Makefile:2: all] Error 127", 2, None, PROCESSES),
    (
        "gcc: fatal error: cannot execute ‘/usr/lib/gcc/cc1’: vfork: Resource temporarily unavailable",
        1,
        None,
        PROCESSES,
    ),
    ("xargs: cannot fork: Resource temporarily unavailable", 1, None, PROCESSES),
    ("error: cannot fork() for pack-refs: Resource temporarily unavailable", 128, None, PROCESSES),
    (
        "    self.pid = _fork_exec(\n               ^^^\nBlockingIOError: [Errno 11] Resource temporarily unavailable",
        1,
        None,
        PROCESSES,
    ),
    ("RuntimeError: can't start new thread", 1, None, PROCESSES),
    (
        '[0.004s][warning][os,thread] Failed to start thread "GC Thread#0" - pthread_create failed (EAGAIN)',
        1,
        None,
        PROCESSES,
    ),
]


@pytest.mark.parametrize(("output", "exit_code", "signal", "note"), LIMITED)
def test_a_limit_that_was_reached_is_named_with_its_number_and_field(
    output: str, exit_code: int, signal: str | None, note: str
) -> None:
    assert notes(output, exit_code, signal=signal, resources=LIMITS) == [note]
    assert notes(output, exit_code, signal=signal, resources=Resources(open_files=None)) == []
    assert notes(output, exit_code, signal=signal, resources=LIMITS, enforced=NOTHING) == []


@pytest.mark.parametrize(
    ("output", "exit_code"),
    [
        ("OSError: [Errno 24] Too many open files", 0),
        ("OSError: [Errno 27] File too large", 0),
        ("log.txt: CPU time limit exceeded", 0),
        ("bash: fork: Resource temporarily unavailable", 0),
        ("accept: Too many open files in system", 1),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", 1),
        ("flock: 9: Resource temporarily unavailable", 1),
        ("E: Could not get lock here - open (11: Resource temporarily unavailable)", 100),
        ("upload.png: File too large (5 MB at most)", 1),
        ("Killed", 137),
    ],
)
def test_what_only_sounds_like_a_limit_is_not_told_as_one(output: str, exit_code: int) -> None:
    assert notes(output, exit_code, resources=LIMITS) == []


def test_memory_is_told_whatever_the_status() -> None:
    for code in (0, 137, None):
        (note,) = notes("Killed", code, resources=LIMITS, out_of_memory=True)
        assert "more than 1000 bytes of memory; resources.memory_bytes changes" in note
    (note,) = notes("Killed", 137, out_of_memory=True)
    assert note.endswith("a limit that is not handrail's own")


@pytest.mark.parametrize(
    "output",
    [
        "src/errors.c:12: Read-only file system\nsrc/net.c:9: Temporary failure in name resolution",
        "docs/faq.md:fatal: detected dubious ownership in repository at '/x'",
        'README:sudo: The "no new privileges" flag is set',
        "Host key verification failed.",
    ],
)
def test_a_success_that_prints_such_words_gets_no_note(output: str) -> None:
    assert notes(output, 0, resources=LIMITS) == []
    assert notes(output, 0, resources=LIMITS, enforced=tier("T1")) == []


@pytest.mark.parametrize(
    "output",
    [
        '    assert "Read-only file system" in str(error)\nE   AssertionError',
        "    assert 'Temporary failure in name resolution' in err\nE   AssertionError",
        "E   AssertionError: expected `network is unreachable`",
        "3 failed, 10 passed in 0.51s",
        "",
    ],
)
def test_words_that_a_failing_test_quotes_get_no_note(output: str) -> None:
    assert notes(output) == []


def test_several_causes_are_told_each_once() -> None:
    output = "\n".join([CUT_OFF["curl"], OUTSIDE["bash"], CUT_OFF["npm"], OUTSIDE["mkdir"], PUSHED])
    assert [note[:20] for note in notes(output)] == [
        "no network: this cal",
        "outside the workspac",
        "git's configuration ",
    ]


EVERY_OUTPUT = [
    *CUT_OFF.values(),
    *LOCAL.values(),
    *REFUSED_SOCKETS.values(),
    *OUTSIDE.values(),
    *SOMEWHERE.values(),
    *DENIED.values(),
    *(row[0] for row in LIMITED),
    PUSHED,
]
PIECES = st.one_of(
    st.sampled_from(EVERY_OUTPUT),
    st.sampled_from(EVERY_OUTPUT).flatmap(lambda text: st.integers(0, len(text)).map(lambda cut: text[:cut])),
    st.sampled_from(["\n", " ", "/", "'", '"', ": ", ROOT, ".git/config", ".git/hooks", "failed to connect to "]),
    st.text(max_size=20),
)
ENDINGS = st.one_of(st.none(), st.sampled_from([0, 1, 6, 126, 128, 137, 152, 153, -1]))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PIECES, max_size=30).map("".join),
    ENDINGS,
    st.sampled_from([None, "SIGXCPU", "SIGXFSZ", "SIGKILL", "odd"]),
    st.sampled_from([NOTHING, tier("T0"), tier("T1"), tier("T2"), tier("T3"), tier("")]),
    st.sampled_from([LIMITS, Resources()]),
    st.booleans(),
    st.sampled_from([ROOT, "/", "", "/w/a b\nc", "/İstanbul"]),
    st.booleans(),
)
def test_any_output_gives_distinct_sentences_on_one_line_without_a_path(
    output: str,
    exit_code: int | None,
    signal: str | None,
    enforced: Enforced,
    resources: Resources,
    network: bool,
    root: str,
    out_of_memory: bool,
) -> None:
    found = notes_on_confinement(
        output, exit_code, signal, enforced, resources, network=network, root=root, out_of_memory=out_of_memory
    )
    assert len(set(found)) == len(found)
    for note in found:
        assert note.isprintable()
        assert len(note) < 400
        assert re.search(r"(?<![\w.])/\w", note) is None


@pytest.mark.parametrize(
    "output",
    [
        "x" * 30_000,
        "Read-only file system\n" * 1_400,
        "permission denied, open '/opt/x'\n" * 900,
        "/" * 30_000 + "Permission denied",
        "failed to connect to " * 1_400,
        "'" * 30_000,
        "temporary failure in name resolutio" * 850,
        "blockingioerror: [errno 11] " * 1_000,
    ],
)
def test_a_long_output_costs_next_to_nothing(output: str) -> None:
    def seconds() -> float:
        start = time.perf_counter()
        notes(output, enforced=tier("T1"), resources=LIMITS)
        return time.perf_counter() - start

    # About a millisecond; the best of many, far above it, so that only a cost that grows with the square fails.
    assert min(seconds() for _ in range(20)) < 0.02
