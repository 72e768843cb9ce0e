"""What a root's command mounts in its slot is no other command's to find."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import handrail as hr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_slot_with_other_mounts_is_not_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_TIER", "T2")
    (tmp_path / "place").mkdir()
    with hr.Toolbox(tmp_path, approver=hr.allow_all, sandbox="best", state_dir=tmp_path.parent / "state") as box:
        if box.enforced.tier != "T2":
            pytest.skip("there are no namespaces to be had here")
        here = box.call("shell", {"command": "readlink /proc/self/ns/mnt"}).data["output"]
        again = box.call("shell", {"command": "readlink /proc/self/ns/mnt"}).data["output"]
        assert here == again
        mounted = box.call("shell", {"command": "mount -t tmpfs none place && touch place/x && ls place"}).data
        if mounted["exit_code"] != 0:
            pytest.skip("this root may not mount")
        assert mounted["output"] == "x"
        assert box.call("shell", {"command": "ls place; readlink /proc/self/ns/mnt"}).data["output"] != here
        assert box.call("shell", {"command": "ls place"}).data["output"] == ""
    assert list((tmp_path / "place").iterdir()) == []
