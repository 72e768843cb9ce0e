"""The workspace's lock: who comes second is told at once, and no crash leaves it locked."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import handrail as hr
from handrail.gate.lock import Busy, WorkspaceLock

HOLDER = """
import os, sys, time
from handrail.gate.lock import WorkspaceLock
with WorkspaceLock(sys.argv[1]).held():
    if sys.argv[2] == "fork" and os.fork() == 0:
        time.sleep(2)
        os._exit(0)
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(root: Path, how: str = "plain") -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, root, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def is_free(root: Path) -> bool:
    try:
        with WorkspaceLock(str(root)).held():
            return True
    except Busy:
        return False


def test_it_excludes_another_process_until_that_lets_go(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    assert not is_free(tmp_path)
    holder.communicate()
    assert is_free(tmp_path)


@pytest.mark.parametrize("how", ["plain", "fork"])
def test_a_holder_that_is_killed_holds_nothing_even_if_a_child_of_it_lives_on(tmp_path: Path, how: str) -> None:
    holder = hold(tmp_path, how)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert is_free(tmp_path)
    holder.communicate()


def test_it_excludes_another_thread_and_another_path_to_the_same_directory(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to("work")
    seen: list[bool] = []
    with WorkspaceLock(str(tmp_path / "work")).held():
        other = threading.Thread(target=lambda: seen.append(is_free(tmp_path / "link")))
        other.start()
        other.join()
    assert seen == [False]
    assert is_free(tmp_path / "link")


def test_another_workspace_is_not_concerned(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with WorkspaceLock(str(tmp_path / "a")).held():
        assert is_free(tmp_path / "b")


def test_a_forked_child_does_not_think_it_holds_it(tmp_path: Path) -> None:
    with WorkspaceLock(str(tmp_path)).held():
        pid = os.fork()
        if pid == 0:
            os._exit(0 if not is_free(tmp_path) else 1)
        assert os.waitpid(pid, 0)[1] == 0
    assert is_free(tmp_path)


def test_a_second_command_is_told_busy_at_once_and_reading_goes_on(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with (
        hr.Toolbox(tmp_path / "work", approver=hr.allow_all, sandbox="best") as box,
        hr.Toolbox(tmp_path / "work", approver=hr.allow_all, sandbox="best") as other,
    ):
        box.call("shell", {"command": "seq 1 5000"})
        first: list[hr.ToolResult] = []
        line = "touch on; while [ -e on ]; do sleep 0.02; done"
        call = threading.Thread(target=lambda: first.append(box.call("shell", {"command": line})))
        call.start()
        while not (tmp_path / "work" / "on").exists():
            pass
        for each in (box, other):
            busy = each.call("shell", {"command": "true"})
            assert (busy.text, busy.data["code"]) == ("BUSY: another operation is running; retry later.", "BUSY")
        assert not box.call("read_output", {"id": "out1"}).is_error
        (tmp_path / "work" / "on").unlink()
        call.join()
        assert first[0].data["exit_code"] == 0
        assert other.call("shell", {"command": "true"}).data["exit_code"] == 0


def test_a_state_directory_that_was_tidied_away_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lock = WorkspaceLock(str(tmp_path))
    shutil.rmtree(tmp_path / "state")
    with lock.held():
        assert not is_free(tmp_path)
    assert is_free(tmp_path)
