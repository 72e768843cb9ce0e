"""What lies in a home, or on the machine, that no command has any business with: the list, and what of it is there.

Made to hold a credential, or what a person did and wrote, is on the list. Settings that may hold one beside what a
build needs (~/.m2/settings.xml, ~/.config/pip, NuGet.Config) are not: their programs fail without them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

# Relative to a home. A directory hides all that is in it.
_IN_A_HOME: Mapping[str, tuple[str, ...]] = {
    "keys, and the programs that keep them": (
        ".ssh", ".gnupg", ".pki", ".password-store", ".local/share/gopass", ".local/share/keyrings",
        ".local/share/kwalletd", ".config/sops", ".config/age", ".age", ".config/op", ".1password", ".config/1Password",
        ".config/Bitwarden", ".config/Bitwarden CLI", ".config/keepassxc", ".vault-token", ".putty", ".step",
        ".authinfo", ".authinfo.gpg", ".krb5", ".wireguard",
    ),
    "clouds and clusters": (
        ".aws", ".azure", ".config/gcloud", ".boto", ".gsutil", ".oci", ".aliyun", ".bluemix", ".kube", ".docker",
        ".config/containers/auth.json", ".config/helm/registry", ".config/argocd", ".config/doctl", ".config/hcloud",
        ".config/scw", ".config/linode-cli", ".config/rclone", ".rclone.conf", ".s3cfg", ".mc/config.json",
        ".passwd-s3fs", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".pulumi/credentials.json", ".fly",
        ".config/netlify", ".local/share/com.vercel.cli", ".config/.wrangler", ".wrangler", ".cloudflared", ".ngrok2",
        ".config/ngrok", ".tsh", ".databrickscfg", ".snowflake", ".snowsql", ".config/snowflake", ".kaggle",
        ".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens",
    ),
    "where code is kept": (
        ".netrc", "_netrc", ".git-credentials", ".git-credential-cache", ".cache/git/credential",
        ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli", ".config/tea", ".gitcookies",
        ".subversion/auth",
    ),
    "where packages are published": (
        ".npmrc", ".yarnrc.yml", ".bunfig.toml", ".pypirc", ".config/pypoetry/auth.toml",
        ".local/share/pypoetry/keyring", ".local/share/uv/credentials", ".cargo/credentials.toml", ".cargo/credentials",
        ".gem/credentials", ".local/share/gem/credentials", ".bundle/config", ".m2/settings-security.xml",
        ".gradle/gradle.properties", ".sbt/.credentials", ".ivy2/.credentials", ".composer/auth.json",
        ".config/composer/auth.json", ".hex/hex.config", ".config/dart/pub-credentials.json",
        ".pub-cache/credentials.json", ".continuum",
    ),
    "databases": (".pgpass", ".my.cnf", ".mylogin.cnf", ".mongodb", ".local/share/DBeaverData", ".config/redis"),
    "other agents: their keys, and what was said to them": (
        ".claude", ".claude.json", ".codex", ".gemini", ".qwen", ".copilot", ".config/github-copilot", ".config/goose",
        ".config/opencode", ".local/share/opencode", ".continue", ".codeium", ".cursor", ".config/io.datasette.llm",
        ".config/openai", ".config/anthropic",
    ),
    "browsers, mail and messengers": (
        ".mozilla", ".cache/mozilla", ".librewolf", ".waterfox", ".zen", ".config/google-chrome",
        ".config/google-chrome-beta", ".config/google-chrome-unstable", ".cache/google-chrome", ".config/chromium",
        ".cache/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera",
        ".thunderbird", ".local/share/evolution", ".msmtprc", ".mbsyncrc", ".fetchmailrc", ".offlineimaprc", ".irssi",
        ".weechat", ".config/Signal", ".config/Slack", ".config/discord", ".config/Element", ".config/teams",
        ".local/share/TelegramDesktop", ".var/app", "snap",
    ),
    "the desktop, and ways into others": (
        ".Xauthority", ".ICEauthority", ".vnc", ".config/remmina", ".local/share/remmina", ".config/filezilla",
        ".filezilla", ".config/syncthing", ".local/state/syncthing", ".config/Code", ".config/VSCodium",
        ".config/Cursor", ".config/JetBrains", ".vscode-server/data/User",
    ),
    "what was typed": (
        ".bash_history", ".zsh_history", ".zhistory", ".zsh_sessions", ".histfile", ".history", ".sh_history",
        ".ash_history", ".local/share/fish", ".local/share/atuin", ".config/nushell/history.txt",
        ".config/nushell/history.sqlite3", ".python_history", ".local/state/python_history",
        ".ipython/profile_default/history.sqlite", ".node_repl_history", ".irb_history", ".rhistory", ".Rhistory",
        ".julia/logs", ".psql_history", ".mysql_history", ".mariadb_history", ".sqlite_history", ".duckdb_history",
        ".rediscli_history", ".dbshell", ".lesshst", ".viminfo", ".local/state/nvim/shada", ".local/state/psql_history",
        ".local/share/recently-used.xbel",
    ),
}  # fmt: skip

# A root without capabilities still owns them.
_OF_THE_MACHINE = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd", "/etc/krb5.keytab",
    "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/wireguard", "/etc/openvpn", "/etc/ppp",
    "/etc/NetworkManager/system-connections", "/etc/kubernetes", "/var/lib/kubelet", "/etc/rancher", "/etc/cloud",
    "/var/lib/cloud", "/etc/docker/key.json", "/etc/credstore", "/etc/credstore.encrypted",
    "/var/lib/systemd/credential.secret",
)  # fmt: skip
_HOST_KEYS = "/etc/ssh"  # beside them lie the settings of the client, which it fails without

# The host's own variables that say where such a file lies instead, and what of it is meant.
_NAMED_BY: Mapping[str, tuple[str, ...]] = {
    "AWS_SHARED_CREDENTIALS_FILE": ("",),
    "AWS_CONFIG_FILE": ("",),
    "AZURE_CONFIG_DIR": ("",),
    "CARGO_HOME": ("credentials.toml", "credentials"),
    "CLOUDSDK_CONFIG": ("",),
    "CLAUDE_CONFIG_DIR": ("",),
    "CODEX_HOME": ("",),
    "DOCKER_CONFIG": ("",),
    "GH_CONFIG_DIR": ("",),
    "GNUPGHOME": ("",),
    "GOOGLE_APPLICATION_CREDENTIALS": ("",),
    "GRADLE_USER_HOME": ("gradle.properties",),
    "HF_HOME": ("token", "stored_tokens"),
    "HISTFILE": ("",),
    "KUBECONFIG": ("",),
    "NETRC": ("",),
    "NPM_CONFIG_USERCONFIG": ("",),
    "PASSWORD_STORE_DIR": ("",),
    "PGPASSFILE": ("",),
    "RCLONE_CONFIG": ("",),
    "REGISTRY_AUTH_FILE": ("",),
    "TF_CLI_CONFIG_FILE": ("",),
    "VAULT_TOKEN_PATH": ("",),
    "XAUTHORITY": ("",),
    "npm_config_userconfig": ("",),
}


def present(homes: Iterable[str], variables: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Real paths of the secrets that are there, sorted: in each of `homes`, on this machine, and where `variables` say.

    Never a home itself or what a home lies in, whatever a link or a variable says: to hide that would hide everything.
    """
    homes = tuple(homes)
    kept_clear = {above for home in homes for above in _with_all_above(os.path.realpath(home))} | {"/"}
    found = {os.path.realpath(path) for path in _places(homes, variables) if os.path.lexists(path)}
    return tuple(sorted(path for path in found - kept_clear if _can_hold_one(path)))


def _places(homes: Iterable[str], variables: Mapping[str, str]) -> Iterator[str]:
    for home in homes:
        for names in _IN_A_HOME.values():
            yield from (f"{home}/{name}" for name in names)
    yield from (path for path in _OF_THE_MACHINE if os.access(path, os.R_OK))
    if os.path.isdir(_HOST_KEYS):
        for name in os.listdir(_HOST_KEYS):
            path = f"{_HOST_KEYS}/{name}"
            if name.endswith("_key") and os.access(path, os.R_OK):
                yield path
    for variable, names in _NAMED_BY.items():
        for value in variables.get(variable, "").split(":"):
            if os.path.isabs(value):
                yield from (os.path.join(value, name).rstrip("/") for name in names)


def _with_all_above(path: str) -> Iterator[str]:
    while path not in ("/", ""):
        yield path
        path = os.path.dirname(path)


def _can_hold_one(path: str) -> bool:
    """A file or a directory: one of the variables may name /dev/null."""
    return os.path.isfile(path) or os.path.isdir(path)
