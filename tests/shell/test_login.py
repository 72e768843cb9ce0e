"""A login shell: the user's profile is read, and what it exports is held to the rule for every command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.hosts.local import LocalHost
from handrail.process.environment import ALWAYS, looks_secret, meant_for_host
from handrail.shell.session import Session
from handrail.workspace import Workspace
from tests.shell.conftest import text

WithProfile = Callable[[str], Session]

# Names that say themselves what they are, in every shape the rule knows, and others close to them.
NAMES = [
    "GITHUB_TOKEN", "github_token", "TOKEN", "TOKENS", "TOKENIZERS_PARALLELISM", "TOKENIZER", "TOKENIZED_TOKEN",
    "MY_TOKENIZER_TOKEN", "XTOKEN2", "CLIENT_SECRET", "SECRETS", "secret_santa", "DB_PASSWORD", "PGPASSWORD",
    "MYSQL_PWD", "PASSWD", "passwd_file", "SSH_PASSPHRASE", "API_KEY", "OPENAI_APIKEY", "api_key", "APIKEYS",
    "MY_ACCESS_KEY", "ACCESSKEY", "PRIVATE_KEY", "PRIVATEKEY_FILE", "KEY", "PUBLIC_KEY", "KEYBOARD", "CREDENTIAL",
    "CREDENTIALS_DIR", "CREDS", "MY_CREDS", "CREDIT", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "aws_profile",
    "MY_AWS_REGION", "AWSOME", "SSH_AUTH_SOCK", "MY_SSH_AUTH_SOCK", "SSH_AUTH_SOCK_2", "SSH_AGENT_PID",
    "JAVA_TOOL_OPTIONS", "MY_JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_HOME", "JAVA_OPTS",
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "pythonpath", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_", "OLD_LD_X",
    "ld_preload", "DYLD_LIBRARY_PATH", "BASH_ENV", "ENV", "ENVIRONMENT", "MY_ENV", "BASH_XTRACEFD", "PS4", "PS1",
    "CDPATH", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "NVM_DIR", "CARGO_HOME", "GOPATH", "EDITOR_X", "FOO",
    "foo_bar", "_X",
]  # fmt: skip


@pytest.fixture
def login(root: Path, private: Path, environment: dict[str, str], host: LocalHost) -> WithProfile:
    """A session of login shells with this profile."""

    def make(profile: str) -> Session:
        (Path(environment["HOME"]) / ".bash_profile").write_text(profile)
        return Session(Workspace(root), host, str(private), environment, login=True)

    return make


def out(session: Session, command: str) -> str:
    return text(session.run(command, timeout_s=20))


def test_without_login_no_profile_is_read(session: Session, environment: dict[str, str]) -> None:
    for name in (".bash_profile", ".bashrc", ".profile"):
        (Path(environment["HOME"]) / name).write_text("echo profile\n")
    assert out(session, "shopt -q login_shell || echo none") == "none\n"


def test_the_profile_is_read_in_the_commands_own_shell(login: WithProfile) -> None:
    session = login("x=1; f() { echo f; }; PATH=$HOME/bin:$PATH; export NVM_DIR=/nvm; set -u; shopt -s extglob")
    shown = out(session, 'f; echo $x "${PATH%%:*}" $NVM_DIR $-; shopt -q extglob login_shell && echo both')
    assert shown.splitlines()[0] == "f"
    assert shown.splitlines()[1].endswith("/home/bin /nvm huBc")
    assert shown.splitlines()[2] == "both"


@pytest.mark.parametrize(
    ("files", "read"),
    [
        ({".bash_profile", ".bash_login", ".profile"}, ".bash_profile"),
        ({".bash_login", ".profile"}, ".bash_login"),
        ({".profile"}, ".profile"),
        (set[str](), ""),
    ],
)
def test_the_first_of_the_three_profiles_is_read(
    files: set[str], read: str, login: WithProfile, environment: dict[str, str]
) -> None:
    session = login("")
    home = Path(environment["HOME"])
    (home / ".bash_profile").unlink()
    for name in files:
        (home / name).write_text(f"which={name}\n")
    assert out(session, 'echo "${which-}"') == f"{read}\n"


def test_a_profile_does_not_move_the_command(login: WithProfile) -> None:
    session = login("cd /usr; cd /tmp")
    assert session.run("cd sub", timeout_s=20).cwd == "sub"
    ran = session.run("pwd; echo ${OLDPWD-unset}", timeout_s=20)
    assert text(ran).endswith("/sub\nunset\n")
    assert (ran.cwd, ran.refused) == ("sub", False)


def test_what_looks_secret_or_steers_a_host_is_taken_out_of_the_shell(login: WithProfile) -> None:
    profile = "".join(f"export {name}=exported\n" for name in NAMES)
    ask = f'for n in {" ".join(NAMES)}; do [[ -v $n ]] && echo "$n"; done'
    left = text(login(profile).run(ask, timeout_s=20, merge=False)).split()
    assert left == [name for name in NAMES if not (looks_secret(name) or meant_for_host(name))]


def test_what_the_profile_does_not_export_is_its_own(login: WithProfile) -> None:
    assert out(login("MY_TOKEN=shown"), "echo $MY_TOKEN; env | grep -c TOKEN") == "shown\n0\n"


def test_a_readonly_secret_is_at_least_not_exported(login: WithProfile) -> None:
    session = login("export MY_TOKEN=x OTHER_TOKEN=y; readonly MY_TOKEN")
    ran = session.run("env | grep -c TOKEN; cd sub", timeout_s=20)
    assert (text(ran), ran.cwd) == ("0\n", "sub")


def test_what_the_settings_pass_stays(root: Path, private: Path, environment: dict[str, str], host: LocalHost) -> None:
    (Path(environment["HOME"]) / ".bash_profile").write_text("export GITHUB_TOKEN=new OTHER_TOKEN=x\n")
    passed = {**environment, "GITHUB_TOKEN": "old", "LD_PRELOAD_X": "kept"}
    session = Session(Workspace(root), host, str(private), passed, login=True)
    assert out(session, "env | grep -E 'TOKEN|LD_'|sort") == "GITHUB_TOKEN=new\nLD_PRELOAD_X=kept\n"


def test_exported_functions_stay_functions_but_are_not_exported(login: WithProfile) -> None:
    session = login("f() { echo f; }; export -f f")
    assert out(session, "f; bash -c f 2>/dev/null || echo gone") == "f\ngone\n"


def test_what_is_always_set_holds_whatever_the_profile_says(login: WithProfile) -> None:
    unset = "unset PAGER NO_COLOR TMPDIR\n"
    session = login("".join(f"export {name}=changed\n" for name in ALWAYS) + unset)
    shown = out(session, "env -0 | tr '\\0' '\\1'").split("\1")
    assert {f"{name}={value}" for name, value in ALWAYS.items()} <= set(shown)
    assert any(line.startswith("TMPDIR=/") for line in shown)


def test_a_bash_env_of_the_profile_takes_nobodys_place(login: WithProfile, root: Path) -> None:
    (root / "env.sh").write_text("echo no\n")
    session = login(f"export BASH_ENV={root}/env.sh SECRET_X=1")
    ran = session.run("cd sub; bash -c 'echo yes'; env | grep -c SECRET", timeout_s=20)
    assert (text(ran), ran.cwd) == ("yes\n0\n", "sub")


def test_what_the_profile_starts_knows_nothing_of_the_report(login: WithProfile) -> None:
    session = login("(cd /; bash -c 'env | grep -c -e handrail -e BASH_ENV >../$HOME/count; cd /usr')\ncd $HOME")
    ran = session.run("cat ~/count; cd sub", timeout_s=20)
    assert (text(ran), ran.cwd) == ("0\n", "sub")


@pytest.mark.parametrize(
    "profile",
    [
        "set -e",
        "set -eu",
        "set -f; IFS=:",
        "shopt -s nocasematch nullglob failglob extglob",
        "shopt -s expand_aliases; alias builtin='echo B' eval='echo E' unset='echo U' if='echo I'",
        "trap 'echo bye' EXIT",
        "trap 'echo E' ERR",
        "return 3",
        "false",
        "builtin trap 'echo bye' INT",
        "readonly IFS",
        "readonly PAGER=less",
        "unset HOME PATH PWD",
        "cd() { echo cd; }; unset() { echo unset; }; export() { echo export; }; compgen() { echo compgen; }",
    ],
)
def test_a_profile_may_do_as_it_likes(profile: str, login: WithProfile) -> None:
    session = login(f"export MY_TOKEN=secret\n{profile}")
    ran = session.run('\\builtin cd sub; \\builtin echo "[${MY_TOKEN-}]"', timeout_s=20)
    assert text(ran).replace("bye\n", "") == "[]\n"
    assert ran.cwd == "sub"
    assert ("bye" in text(ran)) == ("'echo bye' EXIT" in profile)


def test_a_traced_profile_shows_nothing_of_ours(login: WithProfile) -> None:
    ran = login("set -x").run("cd sub", timeout_s=20)
    assert (text(ran), ran.cwd) == ("+ cd sub\n", "sub")


def test_a_profile_that_ends_the_shell_ends_the_call(login: WithProfile) -> None:
    ran = login("cd /; exit 5").run("echo never", timeout_s=20)
    assert (ran.completed.exit_code, text(ran), ran.cwd, ran.refused) == (5, "", ".", True)
