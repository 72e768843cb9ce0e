"""What of a home counts as secret, and that it is found by its real path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.sandbox.secrets import present


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    return home


def make(path: Path, *, directory: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if directory:
        path.mkdir()
    else:
        path.write_text("secret")
    return path


def within(top: Path, found: tuple[str, ...]) -> set[str]:
    """What lies in `top`, for the machine has secrets of its own."""
    return {os.path.relpath(path, top) for path in found if path.startswith(f"{top}/")}


@pytest.mark.parametrize(
    "name",
    [
        ".ssh", ".aws", ".gnupg", ".config/gcloud", ".config/gh", ".azure", ".kube", ".docker", ".netrc",
        ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".password-store",
        ".local/share/keyrings", ".mozilla", ".bash_history", ".python_history", ".cargo/credentials.toml",
        ".m2/settings-security.xml", ".config/op", ".terraform.d/credentials.tfrc.json", ".config/rclone",
        ".config/hub", ".1password", ".claude.json", ".codex", ".pgpass", ".gradle/gradle.properties",
    ],
)  # fmt: skip
def test_what_is_there_is_found(home: Path, name: str) -> None:
    make(home / name)
    assert within(home, present([str(home)], {})) == {name}


@pytest.mark.parametrize(
    "name", [".gitconfig", ".config/git/config", ".m2/settings.xml", ".cargo/config.toml", ".profile", "src"]
)
def test_what_programs_need_is_left(home: Path, name: str) -> None:
    make(home / name)
    assert within(home, present([str(home)], {})) == set()


def test_nothing_that_is_not_there_is_named(home: Path) -> None:
    assert within(home, present([str(home)], {})) == set()


def test_every_home_is_searched(home: Path) -> None:
    make(home / "a/.ssh", directory=True)
    make(home / "b/.netrc")
    assert within(home, present([f"{home}/a", f"{home}/b", f"{home}/none"], {})) == {"a/.ssh", "b/.netrc"}


def test_a_link_is_followed_to_what_it_stands_for(home: Path) -> None:
    make(home / "dotfiles/ssh", directory=True)
    make(home / "dotfiles/netrc")
    (home / ".ssh").symlink_to("dotfiles/ssh")
    (home / ".netrc").symlink_to(home / "dotfiles/netrc")
    (home / ".aws").symlink_to("nowhere")
    assert within(home, present([str(home)], {})) == {"dotfiles/ssh", "dotfiles/netrc"}


def test_a_home_that_is_a_link_is_found_by_its_real_path(home: Path) -> None:
    make(home / ".ssh", directory=True)
    link = home.parent / "link"
    link.symlink_to(home)
    assert within(home, present([str(link)], {})) == {".ssh"}


@pytest.mark.parametrize("target", [".", "..", "/"])
def test_a_home_is_never_hidden_whole(home: Path, target: str) -> None:
    (home / ".docker").symlink_to(target)
    found = present([str(home)], {"GNUPGHOME": str(home), "KUBECONFIG": "/", "NETRC": str(home.parent)})
    assert not {"/", str(home), str(home.parent)} & {*found}


def test_a_variable_says_where_else_to_look(home: Path) -> None:
    for name in ("k1", "k2", "gpg/x", "cargo/credentials.toml", "cargo/registry"):
        make(home / name)
    variables = {
        "KUBECONFIG": f"{home}/k1:{home}/k2:relative:",
        "GNUPGHOME": f"{home}/gpg/",
        "CARGO_HOME": f"{home}/cargo",
        "HISTFILE": "/dev/null",
        "NETRC": "",
    }
    found = present([], variables)
    assert within(home, found) == {"k1", "k2", "gpg", "cargo/credentials.toml"}
    assert "/dev/null" not in found


@pytest.mark.skipif(not os.access("/etc/shadow", os.R_OK), reason="needs to be able to read /etc/shadow")
def test_what_only_root_can_read_is_found_for_root() -> None:
    assert "/etc/shadow" in present([], {})


@pytest.mark.skipif(os.access("/etc/shadow", os.R_OK), reason="needs a user who cannot read /etc/shadow")
def test_what_only_root_can_read_is_left_to_the_system() -> None:
    assert "/etc/shadow" not in present([], {})
