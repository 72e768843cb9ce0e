"""How git stands in a workspace, tried with real repositories, and with what a hostile command could have written."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.sandbox.repository import Repository, identity_of, look, unprotected, watch

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def git(place: Path, *words: str) -> None:
    argv = ["git", "-c", "protocol.file.allow=always", "-C", str(place), *words]
    subprocess.run(argv, env=ENVIRONMENT, check=True, capture_output=True, timeout=30)


def repository(place: Path) -> Path:
    """With one commit, and no hooks but an empty directory for them."""
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "--template=")
    (place / ".git/hooks").mkdir()
    (place / "file").write_text("text")
    git(place, "add", "file")
    git(place, "commit", "-qm", "first")
    return place


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def plain(top: Path) -> Path:
    return repository(top / "plain")


@pytest.fixture
def worktree(plain: Path) -> Path:
    git(plain, "worktree", "add", "-q", "../tree")
    return plain.parent / "tree"


@pytest.fixture
def submodule(plain: Path, top: Path) -> Path:
    repository(top / "other")
    git(plain, "submodule", "add", "-q", "../other", "libs/my other")
    return plain / "libs/my other"


def test_a_repository_is_protected_in_what_git_obeys(plain: Path) -> None:
    git(plain, "config", "extensions.worktreeConfig", "true")
    git(plain, "config", "--worktree", "a.b", "c")
    dot = f"{plain}/.git"
    found = look(str(plain))
    assert found == Repository(
        kind="directory",
        writable=(dot,),
        read_only=(f"{dot}/hooks", f"{dot}/config", f"{dot}/config.worktree"),
        identities=tuple(map(identity_of, (dot, f"{dot}/hooks", f"{dot}/config", f"{dot}/config.worktree"))),
        directories=(dot,),
    )


def test_nothing_is_named_that_is_not_there(plain: Path) -> None:
    shutil.rmtree(plain / ".git/hooks")
    assert look(str(plain)).read_only == (f"{plain}/.git/config",)
    assert look(str(plain.parent)) == Repository()


def test_a_link_in_place_of_what_git_obeys_is_not_followed(plain: Path, top: Path) -> None:
    shutil.rmtree(plain / ".git/hooks")
    (plain / ".git/hooks").symlink_to(top)
    assert look(str(plain)).read_only == (f"{plain}/.git/config",)


def test_a_worktree_leads_to_its_repository(worktree: Path, plain: Path) -> None:
    common, own = f"{plain}/.git", f"{plain}/.git/worktrees/tree"
    found = look(str(worktree))
    assert found.kind == "worktree"
    assert found.writable == (common, f"{common}/worktrees", own)
    assert found.read_only == (f"{worktree}/.git", f"{common}/hooks", f"{common}/config", f"{own}/commondir")
    assert [each.path for each in found.identities] == [*found.writable, *found.read_only]
    assert found.directories == (common, own)


def test_a_submodule_leads_to_its_own_directory_only(submodule: Path, plain: Path) -> None:
    own = f"{plain}/.git/modules/libs/my other"
    found = look(str(submodule))
    assert found.kind == "submodule"
    assert found.writable == (own,)
    assert set(found.read_only) - {f"{own}/hooks"} == {f"{submodule}/.git", f"{own}/config"}


def test_a_workspace_that_is_a_git_directory_is_protected_too(top: Path, plain: Path) -> None:
    git(top, "clone", "-q", "--bare", "--template=", str(plain), "bare.git")
    bare = top / "bare.git"
    found = look(str(bare))
    assert (found.kind, found.writable, found.read_only) == ("bare", (), (f"{bare}/config",))


# ---------------------------------------------------------------- what a command could have written


def untrusted(workspace: Path) -> Repository:
    dot = f"{workspace}/.git"
    return Repository(kind="untrusted", read_only=(dot,), identities=(identity_of(dot),))


@pytest.mark.parametrize(
    "text",
    [
        "gitdir: {plain}/.git\n",  # another's repository, which knows nothing of it
        "gitdir: {plain}/.git/worktrees/tree\n",  # another's worktree
        "gitdir: ../plain/.git/worktrees/../worktrees/tree\n",
        "gitdir: /\n",
        "gitdir: /nowhere\n",
        "gitdir: \n",
        "gitdir: a\0b\n",
        "gitdir:{plain}/.git/worktrees/tree\n",
        "",
        "x" * 10_000,
        "\udcff\udcfe",
    ],
)
def test_a_file_that_leads_elsewhere_is_not_followed(top: Path, plain: Path, worktree: Path, text: str) -> None:
    mine = top / "mine"
    mine.mkdir()
    (mine / ".git").write_bytes(os.fsencode(text.replace("{plain}", str(plain))))
    assert look(str(mine)) == untrusted(mine)
    assert look(str(worktree)).kind == "worktree"


@pytest.mark.parametrize("place", ["mine/evil", "cache/evil"])
def test_a_directory_of_a_commands_own_names_no_other_repository(top: Path, plain: Path, place: str) -> None:
    mine = top / "mine"
    mine.mkdir()
    own = top / place / "worktrees/x"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "gitdir").write_text(f"{mine}/.git\n")
    (own / "commondir").write_text(f"{plain}/.git\n")
    (mine / ".git").write_text(f"gitdir: {own}\n")
    assert look(str(mine)) == untrusted(mine)
    # Not even a whole one, where a command could have made it.
    whole = repository(top / place / "whole")
    git(whole, "worktree", "add", "-q", str(top / "tree"))
    shutil.copy(top / "tree/.git", mine / ".git")
    tree = next((whole / ".git/worktrees").iterdir())
    (tree / "gitdir").write_text(f"{mine}/.git\n")
    assert look(str(mine), [str(top / "cache")]) == untrusted(mine)


def test_a_submodule_elsewhere_is_not_followed(submodule: Path, plain: Path, top: Path) -> None:
    mine = top / "mine"
    mine.mkdir()
    (mine / ".git").write_text(f"gitdir: {plain}/.git/modules/libs/my other\n")
    assert look(str(mine)) == untrusted(mine)
    assert look(str(submodule)).kind == "submodule"


def test_a_repository_in_the_workspace_that_a_file_names_is_not_trusted(top: Path) -> None:
    mine = repository(top / "mine")
    (mine / ".git").rename(mine / "elsewhere")
    (mine / ".git").write_text("gitdir: elsewhere\n")
    git(mine, "config", "core.worktree", str(mine))
    assert look(str(mine)) == untrusted(mine)


def link(target: Path, path: Path) -> None:
    path.symlink_to(target)


def fifo(_: Path, path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [link, fifo])
def test_what_is_neither_file_nor_directory_is_not_followed(
    top: Path, plain: Path, make: Callable[[Path, Path], None]
) -> None:
    mine = top / "mine"
    mine.mkdir()
    make(plain / ".git", mine / ".git")
    assert look(str(mine)) == Repository(kind="untrusted")


def test_a_fifo_where_git_has_a_file_holds_nobody_up(worktree: Path, plain: Path) -> None:
    back = plain / ".git/worktrees/tree/gitdir"
    back.unlink()
    os.mkfifo(back)
    assert look(str(worktree)) == untrusted(worktree)


# ---------------------------------------------------------------- what no mount protects


def told(workspace: Path, act: Callable[[], object]) -> list[str]:
    before = watch(str(workspace))
    time.sleep(0.01)  # for the file system's clock, which ticks every 4 ms
    act()
    return unprotected(before, str(workspace))


MADE = ".git was made: the hooks and configuration in it are not protected from this command"
REPLACED = MADE.replace("made", "replaced", 1)


def obeyed(name: str, how: str = "made") -> list[str]:
    return [f".git/{name} was {how}: git obeys it, and it is not protected"]


def test_ordinary_work_is_not_told(plain: Path) -> None:
    def work() -> None:
        (plain / "file").write_text("more")
        git(plain, "commit", "-qam", "second")
        git(plain, "branch", "other")
        git(plain, "stash", "list")
        git(plain, "gc", "-q")

    assert told(plain, work) == []


def test_ordinary_work_in_a_worktree_is_not_told(worktree: Path) -> None:
    (worktree / "file").write_text("more")
    assert told(worktree, lambda: git(worktree, "commit", "-qam", "second")) == []


def test_a_new_repository_is_told(top: Path) -> None:
    mine = top / "mine"
    mine.mkdir()
    assert told(mine, lambda: git(mine, "init", "-q")) == [MADE]
    assert told(mine, lambda: shutil.rmtree(mine / ".git")) == []


def test_another_repository_in_its_place_is_told(plain: Path, top: Path) -> None:
    def swap() -> None:
        (plain / ".git").rename(top / "old")
        shutil.copytree(top / "old", plain / ".git")

    assert told(plain, swap) == [REPLACED]


def test_a_file_that_leads_elsewhere_now_is_told(worktree: Path) -> None:
    assert told(worktree, lambda: (worktree / ".git").write_text("gitdir: /elsewhere\n")) == [REPLACED]


@pytest.mark.parametrize("name", ["commondir", "config.worktree"])
def test_a_new_file_that_git_obeys_is_told(plain: Path, name: str) -> None:
    assert told(plain, lambda: (plain / ".git" / name).write_text("x")) == obeyed(name)


def test_hooks_where_there_were_none_are_told(plain: Path) -> None:
    shutil.rmtree(plain / ".git/hooks")
    assert told(plain, (plain / ".git/hooks").mkdir) == obeyed("hooks")


def test_hooks_in_place_of_a_link_are_told(plain: Path, top: Path) -> None:
    hooks = plain / ".git/hooks"
    hooks.rmdir()
    hooks.symlink_to(top)

    def replace() -> None:
        hooks.unlink()
        hooks.mkdir()

    assert told(plain, replace) == obeyed("hooks", "replaced")


def test_configuration_that_a_person_changed_meanwhile_is_not_told(plain: Path) -> None:
    assert told(plain, lambda: git(plain, "config", "a.b", "c")) == []


@pytest.mark.parametrize("name", ["config", "hooks/post-checkout", "config.worktree"])
def test_what_a_submodule_obeys_is_told(submodule: Path, plain: Path, name: str) -> None:
    assert submodule.is_dir()
    module = plain / ".git/modules/libs/my other"
    (module / "hooks").mkdir(exist_ok=True)

    def write() -> None:
        (module / name).write_text("x")

    assert told(plain, write) == obeyed("modules/libs/my other", "replaced")


def test_a_new_submodule_is_told(plain: Path, top: Path) -> None:
    repository(top / "other")
    assert told(plain, lambda: git(plain, "submodule", "add", "-q", "../other", "lib")) == obeyed("modules/lib")


def test_a_redirection_of_another_worktree_is_told(worktree: Path, plain: Path) -> None:
    assert worktree.is_dir()
    assert told(plain, lambda: (plain / ".git/worktrees/tree/commondir").write_text("/evil")) == obeyed(
        "worktrees/tree", "replaced"
    )


def test_more_submodules_than_are_looked_at_are_told(plain: Path) -> None:
    def flood() -> None:
        for number in range(2100):
            (plain / f".git/modules/{number}").mkdir(parents=True)

    assert told(plain, flood) == obeyed("modules")


def test_a_git_directory_in_place_of_the_workspace_is_told(top: Path) -> None:
    mine = top / "mine"
    mine.mkdir()
    assert told(mine, lambda: git(mine, "init", "-q", "--bare")) == [
        "a git directory in place of the workspace was made: git obeys it, and it is not protected"
    ]


def test_to_watch_costs_next_to_nothing(plain: Path) -> None:
    started = time.process_time()
    for _ in range(200):
        assert unprotected(watch(str(plain)), str(plain)) == []
    assert time.process_time() - started < 0.2  # 1 ms each, where 30 µs are usual
