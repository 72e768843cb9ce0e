"""A session's private directory: where it lies, who may see it, and who removes it when."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.errors import ConfigurationError
from handrail.state import SessionDirectory


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    (tmp_path / "work").mkdir()
    return str(tmp_path / "work")


def test_it_is_private_and_gone_after_close(tmp_path: Path, workspace: str) -> None:
    directory = SessionDirectory(tmp_path / "state", workspace)
    assert stat.S_IMODE(os.stat(directory.path).st_mode) == 0o700
    directory.close()
    directory.close()
    assert os.listdir(tmp_path / "state" / "sessions") == []


def test_what_a_command_made_unreadable_is_removed_too(tmp_path: Path, workspace: str) -> None:
    directory = SessionDirectory(tmp_path / "state", workspace)
    locked = Path(directory.path, "tmp", "locked")
    locked.mkdir(parents=True)
    (locked / "file").touch()
    locked.chmod(0)
    directory.close()
    assert os.listdir(tmp_path / "state" / "sessions") == []


HOST = """
import sys, time
from handrail.state import SessionDirectory
directory = SessionDirectory(sys.argv[1], sys.argv[2])
print(directory.path, flush=True)
time.sleep(60)
"""


def test_a_dead_hosts_directory_is_swept_and_a_living_ones_is_not(tmp_path: Path, workspace: str) -> None:
    def start() -> tuple[subprocess.Popen[str], str]:
        host = subprocess.Popen(
            [sys.executable, "-c", HOST, tmp_path / "state", workspace], stdout=subprocess.PIPE, text=True
        )
        assert host.stdout is not None
        return host, host.stdout.readline().strip()

    living, kept = start()
    dead, orphan = start()
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    assert os.path.isdir(orphan)
    SessionDirectory(tmp_path / "state", workspace).close()
    assert not os.path.exists(orphan)
    assert not os.path.exists(orphan + ".lock")
    assert os.path.isdir(kept)
    living.kill()
    living.communicate()


def test_a_host_that_forgets_to_close_leaves_nothing_when_it_ends(tmp_path: Path, workspace: str) -> None:
    script = HOST.replace("time.sleep(60)", "")
    subprocess.run([sys.executable, "-c", script, tmp_path / "state", workspace], check=True, stdout=subprocess.DEVNULL)
    assert os.listdir(tmp_path / "state" / "sessions") == []


def test_a_forked_child_does_not_remove_its_parents_directory(tmp_path: Path, workspace: str) -> None:
    directory = SessionDirectory(tmp_path / "state", workspace)
    pid = os.fork()
    if pid == 0:
        directory.close()
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.path.isdir(directory.path)
    directory.close()


@pytest.mark.parametrize("place", ["work", "work/deep", "."])
def test_a_state_directory_inside_the_workspace_or_around_it_is_refused(
    tmp_path: Path, workspace: str, place: str
) -> None:
    with pytest.raises(ConfigurationError, match="neither inside the workspace nor around it"):
        SessionDirectory(tmp_path / place, workspace)


def test_a_state_directory_that_leads_inside_by_a_link_is_refused(tmp_path: Path, workspace: str) -> None:
    (tmp_path / "link").symlink_to(workspace)
    with pytest.raises(ConfigurationError, match="neither inside"):
        SessionDirectory(tmp_path / "link", workspace)


def test_a_state_directory_that_others_can_write_is_refused(tmp_path: Path, workspace: str) -> None:
    (tmp_path / "state" / "sessions").mkdir(parents=True)
    (tmp_path / "state" / "sessions").chmod(0o777)
    with pytest.raises(ConfigurationError, match="belongs to you"):
        SessionDirectory(tmp_path / "state", workspace)


def test_without_a_home_the_temporary_directory_serves(
    tmp_path: Path, workspace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    directory = SessionDirectory(None, workspace)
    assert directory.path.startswith(str(tmp_path / "tmp" / f"handrail-{os.getuid()}"))
    directory.close()


def test_where_no_place_is_left_the_user_is_told_what_to_pass(workspace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", workspace)
    monkeypatch.setattr("tempfile.tempdir", workspace)
    with pytest.raises(ConfigurationError, match="pass state_dir="):
        SessionDirectory(None, workspace)


def test_a_descriptor_that_is_no_longer_ours_is_left_open(tmp_path: Path, workspace: str) -> None:
    directory = SessionDirectory(tmp_path / "state", workspace)
    with (tmp_path / "mine").open("w") as mine:
        os.dup2(mine.fileno(), directory._lock_fd)
        directory.close()
        assert os.path.samestat(os.fstat(directory._lock_fd), os.fstat(mine.fileno()))
        os.close(directory._lock_fd)


NOBODY_AT_ALL = """
import os, sys
os.setgid(54321)
os.setuid(54321)
import handrail as hr
with hr.Toolbox(sys.argv[1], approver=hr.allow_all, sandbox="best") as box:
    print(box.call("shell", {"command": "echo on"}).data["output"])
print(os.path.exists("~"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user that nobody knows")
def test_a_user_without_home_and_without_entry_has_a_place_too() -> None:
    place = Path("/tmp") / f"handrail-nobody-{os.getpid()}"
    place.mkdir()
    place.chmod(0o777)
    source = Path(__file__).parents[1] / "src"
    packages = [path for path in sys.path if path.endswith("site-packages")]
    version = "{}.{}".format(*sys.version_info)
    try:
        if not Path(f"/usr/bin/python{version}").exists():
            pytest.skip("there is no Python of this version that everybody can run")
        shutil.copytree(source, place / "src")
        for name in ("msgspec", "platformdirs", "typing_extensions.py"):
            for path in packages:
                origin = Path(path) / name
                if origin.is_dir():
                    shutil.copytree(origin, place / "src" / name, dirs_exist_ok=True)
                elif origin.exists():
                    shutil.copy(origin, place / "src")
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(place / "src")}
        ended = subprocess.run(
            [f"/usr/bin/python{version}", "-c", NOBODY_AT_ALL, place],
            capture_output=True,
            text=True,
            env=env,
            cwd=place,
            check=False,
        )
        assert (ended.stdout, ended.returncode) == ("on\nFalse\n", 0), ended.stderr
    finally:
        shutil.rmtree(place)
        shutil.rmtree("/tmp/handrail-54321", ignore_errors=True)
