"""Which of the host's variables a command sees, and which are set for every command.

A pure function of its arguments: it reads neither `os.environ` nor the disk, and it looks at names, never at values,
except to leave out what could not be passed to a process at all.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Policy = Literal["allow", "deny"]

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

# git and crontab hand the value to `sh -c`; programs that split it at blanks start `sh` all the same, and fail in it.
_NO_EDITOR = "sh -c 'echo \"no editor here: pass the text itself (-m, -F, --no-edit)\" >&2; exit 1' --"

ALWAYS: Mapping[str, str] = MappingProxyType(
    {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "PAGER": "cat",
        "MANPAGER": "cat",
        "GIT_EDITOR": _NO_EDITOR,
        "GIT_SEQUENCE_EDITOR": _NO_EDITOR,
        "EDITOR": _NO_EDITOR,
        "VISUAL": _NO_EDITOR,
        "TERM": "dumb",
        "NO_COLOR": "1",
        "DEBIAN_FRONTEND": "noninteractive",
        "PIP_NO_INPUT": "1",
        "PYTHONUNBUFFERED": "1",
        "npm_config_yes": "true",  # npx asks before it installs
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "npm_config_progress": "false",
        "npm_config_update_notifier": "false",
    }
)
"""Set for every command, over whatever the host or the settings say: no prompt, no pager, no editor, no colours."""

_BASIC = frozenset({"PATH", "HOME", "LANG", "USER", "LOGNAME", "SHELL", "TZ"})

_LANGUAGE_HOMES = frozenset(
    {
        "JAVA_HOME", "JDK_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "SDKMAN_DIR",
        "ANDROID_HOME", "ANDROID_SDK_ROOT", "KOTLIN_HOME", "SCALA_HOME", "COURSIER_CACHE",
        "GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE",
        "CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME",
        "NVM_DIR", "FNM_DIR", "N_PREFIX", "VOLTA_HOME", "PNPM_HOME", "COREPACK_HOME", "DENO_DIR", "DENO_INSTALL",
        "BUN_INSTALL",
        "PYENV_ROOT", "CONDA_PREFIX", "UV_CACHE_DIR", "PIP_CACHE_DIR", "PIPX_HOME", "POETRY_HOME",
        "RBENV_ROOT", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "COMPOSER_HOME",
        "DOTNET_ROOT", "NUGET_PACKAGES", "JULIA_DEPOT_PATH", "GHCUP_INSTALL_BASE_PREFIX", "STACK_ROOT", "CABAL_DIR",
        "OPAMROOT", "MIX_HOME", "HEX_HOME", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR",
    }
)  # fmt: skip

_PROXIES = frozenset(
    spelling
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY")
    for spelling in (name, name.lower())
)

_CERTIFICATES = frozenset(
    {
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
        "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "PIP_CERT", "CARGO_HTTP_CAINFO", "BUNDLE_SSL_CA_CERT",
        "npm_config_cafile", "NPM_CONFIG_CAFILE",
    }
)  # fmt: skip

_COPIED = _BASIC | _LANGUAGE_HOMES | _PROXIES | _CERTIFICATES

_SECRET = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL|CREDS"
    r"|^AWS_|^SSH_AUTH_SOCK$"
)  # `TOKENIZERS_PARALLELISM` is no secret

_FOR_THE_HOST = re.compile(
    r"JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|PYTHONPATH|PYTHONHOME"
    r"|LD_.*|DYLD_.*"
    r"|BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|BASH_XTRACEFD|PS4|CDPATH"  # what changes how bash reads its text
    r"|PWD|OLDPWD|SHLVL|_"  # the host's own directory and shell
    r"|GIT_ASKPASS|SSH_ASKPASS",  # programs that ask on the host's desktop, where nobody waits for the question
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Environment:
    """`variables` is a command's whole environment; `withheld` the sorted names of the host's that are not in it."""

    variables: dict[str, str]
    withheld: tuple[str, ...]


def build(
    host: Mapping[str, str],
    *,
    policy: Policy,
    names: Iterable[str] = (),
    tmpdir: str,
    own_prefix: str = sys.prefix,
) -> Environment:
    """Make a command's environment from the host's variables.

    "allow" starts from nothing and copies what programs need to work here; "deny" starts from `host` and leaves
    out what looks secret and what is meant for the host's own runtime. A name in `names` (exact, as the settings
    give it) is copied under either policy, even where it looks secret: the one way to hand a command a secret.
    `ALWAYS` and TMPDIR (`tmpdir`, an absolute directory) are set over all of it.

    `own_prefix` is the prefix of the Python that runs handrail: a VIRTUAL_ENV of that very place is withheld under
    "deny". PATH keeps that environment's `bin` directory: who activated it expects its programs.
    """
    named = frozenset(names)
    passes = _passes_allow if policy == "allow" else _passes_deny
    variables = {
        name: value
        for name, value in host.items()
        if _can_be_passed(name, value)
        and (name in named or (passes(name) and not (name == "VIRTUAL_ENV" and _same_path(value, own_prefix))))
    }
    if not variables.get("PATH"):  # an empty PATH would mean the working directory
        variables["PATH"] = DEFAULT_PATH
    variables.update(ALWAYS)
    variables["TMPDIR"] = tmpdir
    return Environment(variables, tuple(sorted(name for name in host if name not in variables)))


def looks_secret(name: str) -> bool:
    """Whether a variable of this name probably holds a secret; spelling in lower case does not hide it."""
    return _SECRET.search(name.upper()) is not None


def meant_for_host(name: str) -> bool:
    """Whether a variable of this name steers the host's own runtime, loader or shell, and would misguide a command."""
    return _FOR_THE_HOST.fullmatch(name) is not None


def _passes_allow(name: str) -> bool:
    return name in _COPIED or name.startswith("LC_")


def _passes_deny(name: str) -> bool:
    return not looks_secret(name) and not meant_for_host(name)


def _can_be_passed(name: str, value: str) -> bool:
    try:
        os.fsencode(name + value)
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        return False
    return name.isprintable() and name != "" and "=" not in name and "\0" not in value


def _same_path(one: str, other: str) -> bool:
    return os.path.normpath(one) == os.path.normpath(other)
