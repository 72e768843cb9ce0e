from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handrail.process.environment import ALWAYS, DEFAULT_PATH, build, looks_secret, meant_for_host

TMP = "/tmp/session"

COPIED = """
    PATH HOME LANG LC_ALL LC_CTYPE LC_MESSAGES USER LOGNAME SHELL TZ
    JAVA_HOME GOPATH GOROOT GOCACHE GOMODCACHE CARGO_HOME RUSTUP_HOME NVM_DIR PYENV_ROOT RBENV_ROOT SDKMAN_DIR
    VOLTA_HOME DENO_DIR BUN_INSTALL DOTNET_ROOT ANDROID_HOME MAVEN_HOME M2_HOME GRADLE_USER_HOME JULIA_DEPOT_PATH
    GHCUP_INSTALL_BASE_PREFIX
    HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy ftp_proxy all_proxy no_proxy
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO
"""

WITHHELD = """
    TOKEN GITHUB_TOKEN gh_token NPM_TOKEN_READ SECRET CLIENT_SECRET DB_PASSWORD PGPASSWORD MYSQL_PASSWD API_KEY
    ANTHROPIC_API_KEY OPENAI_APIKEY S3_ACCESS_KEY ACCESS_KEY_ID PRIVATE_KEY SSH_PRIVATE_KEY_PATH
    GOOGLE_APPLICATION_CREDENTIALS CREDENTIAL SVC_CREDS AWS_PROFILE AWS_SECRET_ACCESS_KEY aws_session SSH_AUTH_SOCK
    GPG_PASSPHRASE
"""

FOR_THE_HOST = """
    JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS PYTHONPATH PYTHONHOME LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT
    DYLD_INSERT_LIBRARIES BASH_ENV ENV BASH_FUNC_ls%% BASH_FUNC_which() SHELLOPTS BASHOPTS BASH_XTRACEFD PS4 CDPATH
    PWD OLDPWD SHLVL _ GIT_ASKPASS SSH_ASKPASS
"""

PLAIN = "FOO DATABASE_HOST MONKEY KEYBOARD TOKENIZERS_PARALLELISM XDG_CONFIG_HOME VIRTUAL_ENV ENVIRONMENT OLD_LD"


def variables(host: dict[str, str], policy: str = "allow", **rest: object) -> dict[str, str]:
    return build(host, policy=policy, tmpdir=TMP, **rest).variables  # type: ignore[arg-type]


@pytest.mark.parametrize("name", COPIED.split())
@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_what_programs_need_is_copied_under_both_policies(name: str, policy: str) -> None:
    assert variables({name: "here"}, policy)[name] == "here"


@pytest.mark.parametrize("name", WITHHELD.split())
@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_what_looks_secret_is_withheld_under_both_policies(name: str, policy: str) -> None:
    built = build({name: "hunter2"}, policy=policy, tmpdir=TMP)  # type: ignore[arg-type]
    assert looks_secret(name)
    assert name not in built.variables
    assert built.withheld == (name,)


@pytest.mark.parametrize("name", FOR_THE_HOST.split())
@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_what_is_meant_for_the_host_is_withheld_under_both_policies(name: str, policy: str) -> None:
    assert meant_for_host(name)
    assert name not in variables({name: "x"}, policy)


@pytest.mark.parametrize("name", PLAIN.split())
def test_any_other_name_passes_deny_and_not_allow(name: str) -> None:
    assert variables({name: "v"}, "deny", own_prefix="/elsewhere")[name] == "v"
    assert name not in variables({name: "v"}, "allow")


@pytest.mark.parametrize("name", ["FOO", "GITHUB_TOKEN", "LD_LIBRARY_PATH", "VIRTUAL_ENV"])
@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_a_name_given_explicitly_passes_even_where_it_looks_secret(name: str, policy: str) -> None:
    built = build({name: "v"}, policy=policy, names=iter([name, "ABSENT"]), tmpdir=TMP)  # type: ignore[arg-type]
    assert built.variables[name] == "v"
    assert built.withheld == ()
    assert "ABSENT" not in built.variables


@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_fixed_values_beat_the_host_and_the_settings(policy: str) -> None:
    host = dict.fromkeys([*ALWAYS, "TMPDIR"], "from the host")
    built = build(host, policy=policy, names=("TERM", "TMPDIR"), tmpdir=TMP)  # type: ignore[arg-type]
    assert {name: built.variables[name] for name in host} == {**ALWAYS, "TMPDIR": TMP}
    assert built.withheld == ()


def test_fixed_values_are_those_that_the_contract_names() -> None:
    fixed = {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "PAGER": "cat",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "DEBIAN_FRONTEND": "noninteractive",
        "PIP_NO_INPUT": "1",
        "PYTHONUNBUFFERED": "1",
    }
    assert fixed.items() <= ALWAYS.items()
    assert {"GIT_EDITOR", "EDITOR", "VISUAL"} <= ALWAYS.keys()


@pytest.mark.parametrize("host", [{}, {"PATH": ""}])
@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_a_missing_or_empty_path_gets_the_systems(host: dict[str, str], policy: str) -> None:
    assert variables(host, policy)["PATH"] == DEFAULT_PATH == "/usr/local/bin:/usr/bin:/bin"


def test_handrails_own_virtual_environment_is_withheld_and_path_kept() -> None:
    host = {"VIRTUAL_ENV": "/opt/handrail/", "PATH": "/opt/handrail/bin:/usr/bin"}
    built = build(host, policy="deny", tmpdir=TMP, own_prefix="/opt/handrail")
    assert built.withheld == ("VIRTUAL_ENV",)
    assert built.variables["PATH"] == "/opt/handrail/bin:/usr/bin"


@pytest.mark.parametrize(
    ("name", "value"),
    [("A=B", "v"), ("", "v"), ("A\0", "v"), ("A\nB", "v"), ("A", "v\0w"), ("A", "\ud800"), ("\ud800", "v")],
)
@pytest.mark.parametrize("policy", ["allow", "deny"])
def test_what_no_process_could_be_given_is_left_out(name: str, value: str, policy: str) -> None:
    built = build({name: value}, policy=policy, names=[name], tmpdir=TMP)  # type: ignore[arg-type]
    assert name not in built.variables
    assert built.withheld == (name,)
    subprocess.run(["true"], env=built.variables, check=True)


def test_withheld_names_are_sorted_and_the_host_is_unchanged() -> None:
    host = {"Z": "1", "A": "2", "HOME": "/h", "M": "3"}
    before = dict(host)
    assert build(host, policy="allow", tmpdir=TMP).withheld == ("A", "M", "Z")
    assert host == before


@pytest.mark.parametrize("value", ["/plain", "with space", "", "ünï", "line\nbreak", "a=b", "\udcff"])
def test_values_arrive_unchanged(value: str) -> None:
    given = variables({"FOO": value, "PATH": DEFAULT_PATH}, "deny")
    printed = subprocess.run(["printenv", "FOO"], env=given, capture_output=True, check=True).stdout
    assert printed.decode("utf-8", "surrogateescape") == value + "\n"


@pytest.mark.parametrize("command", [["commit"], ["-c", "core.editor=true", "commit", "--amend"], ["tag", "-a", "v1"]])
def test_git_fails_at_once_where_it_would_open_an_editor(tmp_path: Path, command: list[str]) -> None:
    given = variables({"HOME": str(tmp_path)})
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.com"]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, env=given, check=True)
    (tmp_path / "a").write_text("x")
    subprocess.run(["git", "add", "a"], cwd=tmp_path, env=given, check=True)
    if command != ["commit"]:
        subprocess.run([*git, "commit", "-qm", "one"], cwd=tmp_path, env=given, check=True)
        (tmp_path / "a").write_text("y")
    ended = subprocess.run([*git, *command], cwd=tmp_path, env=given, capture_output=True, timeout=20, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"no editor here: pass the text itself (-m, -F, --no-edit)\n")


@pytest.mark.parametrize("call", ["$EDITOR file", 'eval "$EDITOR file"', 'sh -c "$VISUAL file"'])
def test_the_editor_fails_however_a_program_starts_it(call: str) -> None:
    ended = subprocess.run(["sh", "-c", call], env=variables({}), capture_output=True, timeout=20, check=False)
    assert ended.returncode != 0
