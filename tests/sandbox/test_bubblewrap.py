"""The command line for bubblewrap, compared as a value, and what it comes to for commands that run behind it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from handrail.sandbox.bubblewrap import argv
from handrail.values.confinement import Mount, Profile
from tests.process.onlooker import BOUND_S, NOBODY, SOURCE, USERS, User

PROFILE = Profile(
    mounts=(
        Mount("/home/a/.ssh", None, writable=False),
        Mount("/home/a/.ssh/work", "/home/a/.ssh/work", writable=True),
        Mount("/home/a/b c", "/s/empty", writable=False),
        Mount("/run", None, writable=True),
    )
)


def test_a_profile_in_words() -> None:
    optional = ("sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "asound", "driver", "mtrr")
    assert argv(PROFILE, "/usr/bin/bwrap", network_is_shared=True) == [
        "/usr/bin/bwrap",
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--new-session", "--die-with-parent", "--as-pid-1", "--clearenv", "--cap-drop", "ALL"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"),
        *(word for name in optional for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")),
        *("--tmpfs", "/home/a/.ssh", "--bind", "/home/a/.ssh/work", "/home/a/.ssh/work"),
        *("--ro-bind", "/s/empty", "/home/a/b c", "--tmpfs", "/run"),
        *("--remount-ro", "/home/a/.ssh", "--chdir", "/"),
    ]


@pytest.mark.parametrize(
    ("network", "shared", "unshared"), [("own", False, True), ("own", True, False), ("host", False, False)]
)
def test_a_network_namespace_of_its_own_only_where_there_is_no_other(
    network: Any, shared: bool, unshared: bool
) -> None:
    words = argv(Profile(mounts=(), network=network), "bwrap", network_is_shared=shared)
    assert ("--unshare-net" in words) is unshared


# ---------------------------------------------------------------- for real

# Looks as the user that commands run as, and becomes bubblewrap.
PROGRAM = """
import json, os, sys
from dataclasses import replace
from handrail.sandbox import bubblewrap
from handrail.sandbox.profile import profile
from handrail.sandbox.surroundings import look
from handrail.values.place import Place

given = json.loads(sys.argv[1])
place = Place(**{name: tuple(value) if isinstance(value, list) else value for name, value in given["place"].items()})
around = look(place)
# Sockets of others on this machine come and go, and what is gone cannot be covered.
around = replace(around, sockets=tuple(path for path in around.sockets if path.startswith(given["top"])))
made = profile(place, around, given["access"], network=False)
words = bubblewrap.argv(made, "bwrap", network_is_shared=False)
os.execvp("bwrap", [*words, "--", "/bin/bash", "-c", sys.argv[2], "bash", place.workspace, os.environ["HOME"]])
"""
SCRIPT = """
cd -- "$1"; WS=$1; export HOME=$2 PATH=/usr/local/bin:/usr/bin:/bin TMPDIR=/tmp LC_ALL=C
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_SYSTEM=/dev/null
"""


class Room:
    """A home, a workspace and handrail's own directory, in a directory that is all this user's."""

    def __init__(self, top: Path, user: User) -> None:
        self.top = top
        self.user = user
        self.home = top / "home"
        self.work = top / "home/work"
        self.session = top / "state/sessions/1"
        self.run("mkdir -p home/work state/caches/1 state/sessions/1/{tmp,io,outputs}; : > state/sessions/1/empty")

    def run(self, script: str) -> str:
        """Outside, as this user, in the top directory."""
        words = [*self.user.prefix, "bash", "-ec", script]
        home = {"HOME": str(self.home), "PATH": os.environ["PATH"], "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(
            words, cwd=self.top, env=home, check=False, capture_output=True, text=True, timeout=BOUND_S
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def start(self, script: str, *, access: str = "change", **options: Any) -> subprocess.Popen[str]:
        place = {
            "workspace": str(self.work),
            "session": str(self.session),
            "cache": f"{self.top}/state/caches/1",
            "state": [f"{self.top}/state"],
            **options,
        }
        words = [*self.user.prefix, self.user.python, "-B", "-c", PROGRAM]
        words += [json.dumps({"place": place, "access": access, "top": f"{self.top}/"}), SCRIPT + script]
        environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{self.top}/source",
            "SECRET": "s",
        }
        return subprocess.Popen(
            words,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def inside(self, script: str, **options: Any) -> str:
        """What a script says behind the walls, in the workspace."""
        with self.start(script, **options) as process:
            said, _ = process.communicate(timeout=BOUND_S)
        return said

    def repository(self, name: str) -> None:
        identity = "-c user.name=a -c user.email=a@b"
        self.run(
            f"git init -q --template= {name}; cd {name}; mkdir .git/hooks; echo text > file; "
            f"git add file; git {identity} commit -qm first"
        )

    def listing(self) -> list[tuple[str, int, int]]:
        """Every name in the home with its type and its inode, but for what git changes."""
        found: list[tuple[str, int, int]] = []
        for directory, directories, files in os.walk(self.home):
            for name in (*directories, *files):
                path = os.path.join(directory, name)
                facts = os.lstat(path)
                found.append((path, stat.S_IFMT(facts.st_mode), facts.st_ino))
        return sorted(found)


@pytest.fixture(params=USERS)
def room(request: pytest.FixtureRequest) -> Generator[Room]:
    user = USERS[request.param]()
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    plainest = [
        *user.prefix,
        "bwrap",
        "--unshare-user",
        "--unshare-net",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "true",
    ]
    tried = subprocess.run(plainest, cwd="/", check=False, capture_output=True, text=True, timeout=BOUND_S)
    if tried.returncode != 0:
        pytest.skip(f"bubblewrap does not work here: {tried.stderr.strip()}")
    top = Path(tempfile.mkdtemp(prefix="handrail-")).resolve()  # pytest's own directories are closed to other users
    try:
        shutil.copytree(SOURCE, top / "source/handrail", ignore=shutil.ignore_patterns("__pycache__"))
        top.chmod(0o755)
        if user.prefix:
            os.chown(top, NOBODY, NOBODY)
        yield Room(top, user)
    finally:
        shutil.rmtree(top)


def test_secrets_of_the_home_are_empty(room: Room) -> None:
    room.run("cd home; mkdir .ssh .config; echo SECRET > .ssh/id_rsa; echo SECRET > .netrc; echo fine > .profile")
    said = room.inside(
        "ls -A ~/.ssh; cat ~/.netrc; cat ~/.profile; touch ~/.ssh/x; echo x >> ~/.netrc; rm -rf ~/.ssh ~/.netrc"
    )
    assert "SECRET" not in said
    assert said.startswith("fine\n")
    assert said.count("Read-only file system") >= 2
    assert room.run("cat home/.ssh/id_rsa home/.netrc; ls -A home/.ssh") == "SECRET\nSECRET\nid_rsa\n"


def test_handrails_own_files_are_out_of_sight(room: Room) -> None:
    room.run("echo KEY > state/key; echo KEPT > state/sessions/1/outputs/out1")
    said = room.inside("""
        ls -A ~/../state ~/../state/sessions; cat ~/../state/key; cat /run/handrail-outputs/out1
        echo x > ~/../state/caches/1/x; echo x > /run/handrail/x; echo x > /run/handrail-outputs/x; touch ~/../state/y
    """)
    assert "KEY" not in said.replace("KEPT", "")
    assert "KEPT" in said
    assert room.run("cat state/caches/1/x state/sessions/1/io/x; ls -A state state/sessions/1/outputs") == (
        "x\nx\nstate:\ncaches\nkey\nsessions\n\nstate/sessions/1/outputs:\nout1\n"
    )


def test_a_repository_takes_commits_and_keeps_what_git_obeys(room: Room) -> None:
    room.repository("home/work")
    said = room.inside("""
        for act in "mv .git x" "rm -rf .git/config" "mv .git/hooks x" "touch .git/hooks/pre-commit" "git config a.b c" \
            "rmdir .git/hooks" "ln -sf x .git/config" "cp file .git/config"
        do $act 2>/dev/null && echo "WORKED: $act"; done
        git remote add origin /x 2>&1 | grep -c 'could not write config'
        echo more > file; git commit -qam second; git log --format=%s; git status --short; git stash list; git gc -q
        git checkout -q -b topic; git branch --show-current
    """)
    assert said == "1\nsecond\nfirst\ntopic\n"
    assert room.run("git -C home/work log --format=%s; ls -A home/work/.git/hooks") == "second\nfirst\n"


def test_a_worktree_takes_commits_and_keeps_what_git_obeys(room: Room) -> None:
    room.repository("home/main")
    room.run("rmdir home/work; git -C home/main worktree add -q ../work")
    common = f"{room.home}/main/.git"
    said = room.inside(f"""
        for act in "touch {common}/hooks/pre-commit" "git config a.b c" "mv {common} {common}x" "cp file .git" \
            "rm .git" "cp file {common}/worktrees/work/commondir" "mv {common}/worktrees {common}/x" \
            "mv {common}/worktrees/work {common}/worktrees/x" "cp .git ../main/file"
        do $act 2>/dev/null && echo "WORKED: $act"; done
        echo more > file; git commit -qam second; git log --format=%s; git status --short
    """)
    assert said == "second\nfirst\n"
    assert room.run("git -C home/work log --format=%s; git -C home/main log --format=%s") == "second\nfirst\nfirst\n"


def test_a_submodule_takes_commits_and_leaves_what_is_around_it(room: Room) -> None:
    room.repository("home/other")
    room.repository("home/main")
    room.run("git -C home/main -c protocol.file.allow=always submodule --quiet add ../other lib")
    room.work = room.home / "main/lib"
    said = room.inside("""
        for act in "git config a.b c" "touch ../file" "touch ../.git/config" "touch ../.git/x" "rm .git"
        do $act 2>/dev/null && echo "WORKED: $act"; done
        echo more > file; git commit -qam second; git log --format=%s
    """)
    assert said == "second\nfirst\n"


def test_a_git_file_that_leads_to_anothers_repository_gives_no_way_to_it(room: Room) -> None:
    room.repository("home/main")
    room.run("git -C home/main worktree add -q ../tree; cp home/tree/.git home/work/.git")
    said = room.inside("echo x > ../main/.git/worktrees/tree/x; git update-ref refs/heads/evil HEAD; echo x > .git")
    assert said.count("Read-only file system") >= 3
    assert "evil" not in room.run("git -C home/main branch --list --all")


def test_a_setting_lifts_the_protection_of_the_configuration(room: Room) -> None:
    room.repository("home/work")
    assert room.inside("git config a.b c; git config a.b", write_paths=[".git/config"]) == "c\n"
    assert "c\n" in room.run("git -C home/work config a.b")


def test_tmp_is_the_sessions_own(room: Room) -> None:
    said = room.inside("ls -A /tmp; echo one > /tmp/one; echo x > /var/tmp/x; ls -A /var/tmp")
    assert "one" not in said
    assert "Read-only file system" in said
    assert room.inside("cat /tmp/one") == "one\n"
    assert (room.session / "tmp/one").read_text() == "one\n"
    assert not os.path.exists("/tmp/one")


@pytest.mark.parametrize("name", ["two words", "a:b,c=d", "new\nline", "-dash", "ünï \udcff", "q'\"$`\\*"])
def test_a_workspace_of_any_name(room: Room, name: str) -> None:
    room.work = room.home / name
    room.work.mkdir()
    if room.user.prefix:
        os.chown(room.work, NOBODY, NOBODY)
    said = room.inside('echo in > file; pwd -P | tail -c 3 >/dev/null; touch "$HOME/file"; git init -q; ls -A')
    assert "Read-only file system" in said
    assert (room.work / "file").read_text() == "in\n"
    said = room.inside("mv .git x; touch .git/config .git/hooks; cat file")
    assert said.count("Read-only file system") == 2
    assert "Device or resource busy" in said


def test_a_command_that_only_reads_changes_nothing(room: Room) -> None:
    room.repository("home/work")
    before = room.listing()
    said = room.inside(
        "cat file; echo x > file; echo x > .git/x; rm file; echo x > ~/../state/caches/1/x; echo tmp | tee /tmp/t",
        access="read",
    )
    assert said.startswith("text\n")
    assert said.endswith("tmp\n")
    assert said.count("Read-only file system") == 4
    assert room.listing() == before


def test_nothing_of_ours_appears_in_the_home(room: Room) -> None:
    room.repository("home/work")
    room.run("cd home; mkdir .ssh .aws; : > .netrc; : > work/handrail.toml; echo x > work/.env")
    before = room.listing()
    assert room.inside("echo x >> handrail.toml; cat .env; ls", hide_denied=True).count("\n") == 3
    assert room.listing() == before
    for moment in (0.0, 0.02, 0.05, 0.1, 0.2):
        with room.start("echo on; exec sleep 600", hide_denied=True) as process:
            if moment == 0.2:  # sure to be in there
                assert process.stdout is not None
                assert process.stdout.readline() == "on\n"
            time.sleep(moment)
            os.kill(process.pid, signal.SIGKILL)
    assert room.listing() == before


def test_denied_names_are_empty_and_stay_where_they_are(room: Room) -> None:
    room.run("cd home/work; mkdir -p a/b; echo SECRET > a/b/.env; echo SECRET > k.pem; echo fine > a/b/c")
    said = room.inside(
        "cat a/b/.env k.pem a/b/c; mv a x; mv a/b x; rm -rf a; mv k.pem x; cat x a/b/.env", hide_denied=True
    )
    assert "SECRET" not in said
    assert said.startswith("fine\n")
    assert room.run("cat home/work/a/b/.env home/work/k.pem") == "SECRET\nSECRET\n"


def test_secrets_of_a_home_that_is_the_workspace_stay_where_they_are(room: Room) -> None:
    room.run("cd home; mkdir -p .config/gh; echo SECRET > .config/gh/hosts.yml; echo SECRET > .netrc")
    room.work = room.home
    said = room.inside(
        "mv .config x; mv .config/gh x; mv .netrc x; cat .netrc .config/gh/* x/gh/*; echo new > .config/new"
    )
    assert "SECRET" not in said
    assert said.count("Device or resource busy") == 3
    assert room.run("cat home/.config/gh/hosts.yml home/.netrc home/.config/new") == "SECRET\nSECRET\nnew\n"


def test_a_socket_outside_is_not_to_be_reached(room: Room) -> None:
    paths = [room.home / "agent.sock", room.top / "x.sock"]
    connect = (
        "import socket, sys\nfor path in sys.argv[1:]:\n    try:\n        socket.socket(socket.AF_UNIX).connect(path)\n"
        "        print('CONNECTED')\n    except OSError as failure:\n        print('refused')\n"
    )
    with contextlib.ExitStack() as stack:
        for path in paths:
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(str(path))
            listening.listen()
            path.chmod(0o777)
        words = " ".join(map(str, paths))
        assert room.inside(f'/usr/bin/env python3 -c "{connect}" {words}') == "refused\nrefused\n"


def test_the_machine_is_out_of_reach(room: Room) -> None:
    said = room.inside("""
        for path in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /etc/x /x; do
            (exec 3> $path) 2>/dev/null && echo "OPENED $path"; done
        for act in "mount -o remount,rw,bind /usr" "mount -t tmpfs none /mnt" "umount ~/../state" "mknod /tmp/n b 8 0"
        do $act 2>/dev/null && echo "WORKED $act"; done
        tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; tr '\\0' '\\n' < /proc/1/environ | grep -c SECRET
        grep -E 'Cap(Eff|Prm|Bnd|Amb)' /proc/self/status | grep -cv 0000000000000000; echo $PPID
    """)
    assert said == "lo\n0\n0\n0\n"
