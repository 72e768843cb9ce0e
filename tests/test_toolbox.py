"""A toolbox as a host program meets it: its options, its errors, its end."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import handrail as hr
from handrail.gate.lock import WorkspaceLock
from handrail.testing import FakeHost, ended
from handrail.values.event import Chunk, Ended, Event, Skipped, Started


def make(root: Path, **options: Any) -> hr.Toolbox:
    chosen: dict[str, Any] = {"approver": hr.allow_all, "sandbox": "best", **options}
    return hr.Toolbox(root, **chosen)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


# ---- options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"approver": None}, "approver is missing: shell can change things"),
        ({"approver": bool}, "approver must be handrail.allow_all in this version"),
        ({"sandbox": "strict"}, "sandbox must be one of"),
        ({"tools": "read-only"}, 'tools must be "shell" or a list of names'),
        ({"tools": ["shell", "job"]}, "got job"),
        ({"tools": []}, "at least one"),
        ({"env": "all"}, 'env must be one of "allow", "deny"'),
        ({"errors": "some"}, "errors must be one of"),
        ({"timeout_s": 0}, "timeout_s must be more than 0"),
        ({"timeout_s": 700}, "timeout_s must be more than 0 and at most max_timeout_s"),
        ({"max_timeout_s": float("inf")}, "finite"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"grace_s": -1}, "grace_s"),
        ({"head_lines": -1}, "head_lines"),
        ({"head_lines": 0, "tail_lines": 0}, "one line be shown"),
        ({"max_chars": 5}, "max_chars"),
        ({"spill_max": -1}, "spill_max"),
        ({"timeout_s": "5"}, "timeout_s must be a number"),
        ({"grace_s": True}, "grace_s must be a number"),
        ({"head_lines": "x"}, "head_lines must be a whole number"),
        ({"head_lines": 1.5}, "head_lines must be a whole number"),
        ({"max_chars": float("nan")}, "max_chars must be a whole number"),
        ({"merge": "no"}, "merge must be True or False"),
        ({"login": 1}, "login must be True or False"),
        ({"env_names": "GITHUB_TOKEN"}, "env_names must be a list"),
        ({"listener": 5}, "listener must be a function"),
        ({"network": "x"}, 'network must be one of "off", "on"'),
        ({"hide_denied": "x"}, "hide_denied must be True or False"),
        ({"read_paths": "/usr"}, "read_paths must be a list of paths"),
        ({"read_paths": [5]}, "read_paths must hold paths only"),
        ({"read_paths": ["/nowhere/at/all"]}, "read_paths names '/nowhere/at/all', which is not there"),
        ({"write_paths": ["missing"]}, "write_paths names 'missing', which is not there"),
        ({"write_paths": ["/"]}, "write_paths must not name the root"),
        ({"write_paths": [""]}, "write_paths names ''"),
        ({"resources": {"cpu_s": 1}}, "resources must be a handrail.Resources"),
        ({"resources": hr.Resources(cpu_s=0)}, "resources.cpu_s must be at least 1"),
        ({"resources": hr.Resources(file_bytes=True)}, "resources.file_bytes must be a whole number"),
        ({"tools": 5}, "tools must be"),
        ({"tools": [5]}, "tools must be"),
    ],
)
def test_options_that_cannot_be_honoured_are_refused(root: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(hr.ConfigurationError, match=says):
        make(root, **options)


@pytest.mark.parametrize("option", ["on_timeout", "leftover", "rules", "limits", "operations"])
def test_options_without_effect_yet_are_not_accepted(root: Path, option: str) -> None:
    with pytest.raises(TypeError, match=option):
        make(root, **{option: "x"})


@pytest.mark.parametrize(("name", "says"), [("gone", "does not exist"), ("file", "is not a directory"), ("", "blank")])
def test_a_workspace_that_is_none_is_refused(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(hr.ConfigurationError, match=says):
        make(tmp_path / name if name else name)  # type: ignore[arg-type]


def test_a_refused_toolbox_leaves_nothing_behind(root: Path, tmp_path: Path) -> None:
    with pytest.raises(hr.ConfigurationError):
        make(root, approver=None, state_dir=tmp_path / "state")
    assert not list((tmp_path / "state").glob("sessions/*"))


def test_reading_tools_need_no_approver(root: Path) -> None:
    with make(root, approver=None, tools=["read_output"]) as box:
        assert [tool.name for tool in box.tools] == ["read_output"]
        assert "shell" not in box.system_text


def test_what_a_model_is_shown_does_not_change_from_run_to_run(root: Path) -> None:
    script = (
        "import handrail as hr, json, sys\n"
        "with hr.Toolbox(sys.argv[1], approver=hr.allow_all, sandbox='off') as box:\n"
        "    print(json.dumps([[t.name, t.description, t.schema, t.effect] for t in box.tools]), box.system_text)"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", script, root],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(3)
    }
    assert len(runs) == 1


def test_errors_never_makes_a_non_zero_exit_a_normal_result(root: Path) -> None:
    with make(root, errors="never") as box:
        assert not box.call("shell", {"command": "exit 3"}).is_error
        assert box.call("shell", {"command": "sleep 9", "timeout_s": 0.2}).is_error


def test_only_what_is_shown_is_accepted(root: Path) -> None:
    with make(root) as box:
        for argument in ("background", "pty"):
            refused = box.call("shell", {"command": "true", argument: True})
            assert (refused.data["code"], refused.is_error) == ("BAD_ARGUMENTS", True)


def test_the_environment_is_built_and_secrets_stay_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "hunter2hunter2")
    monkeypatch.setenv("PLAIN", "seen")
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "none none cat"),
        ({"env": "deny"}, "none seen cat"),
        ({"env_names": ["DEMO_API_KEY"]}, "hunter2hunter2 none cat"),
    ]
    for options, expected in cases:
        with make(root, **options) as box:
            line = 'echo "${DEMO_API_KEY-none} ${PLAIN-none} $PAGER"'
            assert box.call("shell", {"command": line}).data["output"] == expected


def test_temporary_files_of_commands_go_with_the_session(root: Path) -> None:
    with make(root) as box:
        path = box.call("shell", {"command": "mktemp"}).data["output"]
        assert box.call("shell", {"command": f"[ -e {path} ]"}).data["exit_code"] == 0
        state = Path(os.environ["XDG_STATE_HOME"])
        assert [found.name for found in state.rglob(Path(path).name)] == [Path(path).name]
    assert list(state.rglob(Path(path).name)) == []
    assert not os.path.exists(path)


def test_the_place_for_temporary_files_is_there_again_after_a_command_removed_it(root: Path) -> None:
    with make(root) as box:
        box.call("shell", {"command": 'rm -rf "$TMPDIR"'})
        assert box.call("shell", {"command": "mktemp"}).data["exit_code"] == 0


def test_wrong_arguments_are_told_even_while_the_workspace_is_busy(root: Path) -> None:
    with make(root) as box, WorkspaceLock(str(root)).held():
        assert box.call("shell", {"command": ""}).data["code"] == "BAD_ARGUMENTS"
        assert box.call("shell", {"command": "true"}).data["code"] == "BUSY"


def test_a_limit_of_a_month_is_no_trouble(root: Path) -> None:
    with make(root, timeout_s=3e6, max_timeout_s=1e9) as box:
        assert box.call("shell", {"command": "sleep 0.1; echo on", "timeout_s": 9e8}).data["output"] == "on"


def test_a_host_without_descriptors_is_told_and_goes_on_when_there_are_some(root: Path) -> None:
    script = (
        "import handrail as hr, os, resource, sys\n"
        "box = hr.Toolbox(sys.argv[1], approver=hr.allow_all, sandbox='best')\n"
        "if sys.argv[2] == 'used': box.call('shell', {'command': 'true'})\n"
        "tier = os.environ.get('HANDRAIL_TIER', 'T2')\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "for room in (*range(12), 500):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))\n"
        "    used = len(os.listdir('/proc/self/fd')) - 1\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (used + room, hard))\n"
        "    result = box.call('shell', {'command': 'true'})\n"
        "    assert result.data.get('exit_code') == 0 or result.data['code'] == 'COULD_NOT_START', result\n"
        "print(result.data['exit_code'], result.data['enforced']['tier'])\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard)); box.close()\n"
    )
    with make(root) as box:
        tier = box.enforced.tier
    for how in ("used", "fresh"):
        ended = subprocess.run(
            [sys.executable, "-c", script, root, how], capture_output=True, text=True, timeout=50, check=False
        )
        assert (ended.stdout, ended.returncode) == (f"0 {tier}\n", 0), ended.stderr


SHOT = """
import gc, os, signal, sys, threading
import handrail as hr
box = hr.Toolbox(sys.argv[1], approver=hr.allow_all, sandbox="best")
box.call("shell", {"command": "true"})
signal.signal(signal.SIGALRM, signal.default_int_handler)
before = len(os.listdir("/proc/self/fd"))
shots = 0
for n in range(900):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.00002 + (n % 300) * 0.00001)
        box.call("shell", {"command": "true"})
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        shots += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert signal.set_wakeup_fd(-1) == -1
assert signal.getsignal(signal.SIGALRM) is signal.default_int_handler
assert box.call("shell", {"command": "echo on"}).data["output"] == "on"
gc.collect()  # an exception and the frames of its traceback hold each other
left = len(os.listdir("/proc/self/fd"))
box.close()
print(shots > 100, left - before)
"""


@pytest.mark.parametrize("tier", ["T2", "T0"])
def test_an_interrupt_at_any_moment_of_a_call_leaves_nothing_held(root: Path, tier: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SHOT, root],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "HANDRAIL_TIER": tier},
    )
    assert (ended.stdout, ended.returncode) == ("True 0\n", 0), ended.stderr


def test_login_reads_the_profile(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".bash_profile").write_text(
        "export FROM_PROFILE=yes PAGER=less; export PROFILE_TOKEN=secret\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    line = 'echo "${FROM_PROFILE-no} $PAGER ${PROFILE_TOKEN-scrubbed}"'
    with make(root, login=True) as box:
        assert box.call("shell", {"command": line}).data["output"] == "yes cat scrubbed"
    with make(root) as box:
        assert box.call("shell", {"command": line}).data["output"] == "no cat scrubbed"


def test_without_bash_the_call_says_so(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with make(root) as box:
        refused = box.call("shell", {"command": "true"})
    assert (refused.text, refused.data["code"]) == ("COULD_NOT_START: bash: not found", "COULD_NOT_START")


def test_a_workspace_that_goes_away_is_told(root: Path) -> None:
    with make(root) as box:
        root.rmdir()
        refused = box.call("shell", {"command": "true"})
        assert (refused.is_error, refused.data["code"]) == (True, "COULD_NOT_START")
        assert str(root) not in refused.text


def test_a_spill_directory_that_goes_bad_costs_the_rest_of_the_output_only(root: Path, tmp_path: Path) -> None:
    with make(root, state_dir=tmp_path / "state") as box:
        session = next((tmp_path / "state" / "sessions").glob("*[!k]/"))
        moved = session.rename(tmp_path / "moved")
        result = box.call("shell", {"command": "seq 1 400000; exit 4"})
        moved.rename(session)
    assert result.data["exit_code"] == 4
    assert result.data["output"].startswith("1\n2\n")
    assert result.data["output"].endswith("\n400000")
    assert "note: the omitted part of output was not kept: its directory is gone" in result.text
    assert "[... 399000 lines omitted ...]" in result.text


def test_a_disk_that_is_full_costs_the_rest_of_the_output_only(root: Path) -> None:
    with make(root) as box:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            result = box.call("shell", {"command": "seq 1 400000"})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.data["output"].endswith("\n400000")
    assert result.data["omitted_lines"] == 399_000
    assert "files may not grow that large here" in result.text


# ---- the host's side


def test_a_fake_host_sees_the_whole_invocation(root: Path) -> None:
    host = FakeHost([ended(3, b"out\n")])
    with make(root, host=host) as box:
        result = box.call("shell", {"command": "make", "timeout_s": 7})
    assert result.text == "Exit code: 3\ncwd: /\nout"
    asked = host.invocations[0]
    assert (asked.argv[0], asked.argv[-1], asked.cwd, asked.timeout_s) == ("bash", "make", str(root), 7.0)
    assert host.closed


def test_results_are_json_able(root: Path) -> None:
    with make(root) as box:
        for arguments in ({"command": "seq 1 5000; sleep 99 & true"}, {"command": "sleep 9", "timeout_s": 0.1}, {}):
            result = box.call("shell", arguments)
            assert json.loads(json.dumps(result.data)) == result.data


def test_every_result_says_what_was_enforced(root: Path) -> None:
    with make(root) as box:
        enforced = box.call("shell", {"command": "true"}).data["enforced"]
        assert enforced == dataclasses.asdict(box.enforced)
        assert (enforced["files"] == "none") == (enforced["network"] == "none")
    with make(root, sandbox="off") as box:
        unconfined = box.call("shell", {"command": "true"}).data["enforced"]
        assert (unconfined["files"], unconfined["network"]) == ("none", "none")


def test_required_is_refused_where_nothing_confines(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_TIER", "T0")
    with pytest.raises(hr.SandboxUnavailable) as refused:
        make(root, sandbox="required")
    first, second = str(refused.value).splitlines()
    assert first == 'sandbox="best" accepts what this machine has.'
    assert second.startswith('sandbox="required" cannot be had: T3: HANDRAIL_TIER is T0; T2: ')


@pytest.mark.parametrize("name", ["nope", "", "x" * 9000, "\x1b[31m", None, 5, ["shell"], {"a": 1}])
def test_a_name_that_is_no_tool_is_told_briefly(root: Path, name: Any) -> None:
    with make(root) as box:
        refused = box.call(name, {})
    assert (refused.is_error, refused.data["code"]) == (True, "UNKNOWN_TOOL")
    assert len(refused.text) < 200
    assert "\x1b" not in refused.text


# ---- listeners


def test_a_listener_hears_all_in_order(root: Path) -> None:
    events: list[Event] = []
    with make(root, listener=events.append) as box:
        box.call("shell", {"command": "echo one; echo two", "description": "two lines"})
    assert events[0] == Started(1, "echo one; echo two", "two lines")
    assert events[-1] == Ended(1)
    assert b"".join(event.data for event in events if isinstance(event, Chunk)) == b"one\ntwo\n"


def test_a_listener_that_raises_breaks_nothing_and_is_named(root: Path) -> None:
    def fail(_event: Event) -> None:
        raise KeyError("/secret/path")

    with make(root, listener=fail) as box:
        for _ in range(2):
            result = box.call("shell", {"command": "echo whole"})
            assert result.data["output"] == "whole"
            assert "the listener failed (KeyError) and heard no more of this command" in result.data["notes"]
            assert "listener" not in result.text
            assert "secret" not in result.text


def test_what_is_still_queued_for_a_listener_is_told_before_the_end(root: Path) -> None:
    events: list[Event] = []

    def tardy(event: Event) -> None:
        time.sleep(0.1)
        events.append(event)

    with make(root, listener=tardy) as box:
        box.call("shell", {"command": "echo on"})
    assert isinstance(events[-1], Ended)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ('{"command": "exit 3"}', None),
        ("", "BAD_ARGUMENTS"),
        ("{", "BAD_ARGUMENTS"),
        ("[1]", "BAD_ARGUMENTS"),
        ("[" * 100_000, "BAD_ARGUMENTS"),
        (["command"], "BAD_ARGUMENTS"),
        (5, "BAD_ARGUMENTS"),
    ],
)
def test_arguments_may_come_as_json_text(root: Path, arguments: Any, code: str | None) -> None:
    with make(root) as box:
        result = box.call("shell", arguments)
    assert (result.data.get("code"), result.data.get("exit_code")) == (code, 3 if code is None else None)


@pytest.mark.parametrize("command", ["yes abcdefghij | head -c 90000000", r"yes $'\e[31mred\e[0m' | head -c 90000000"])
def test_a_flood_to_a_listener_leaves_the_poll_loop_its_share(root: Path, command: str) -> None:
    """Both threads need Python's one lock: a listener's that always works makes the other late for its deadline."""
    seen: list[tuple[float, float]] = []

    def look(event: Event) -> None:
        if isinstance(event, Chunk):
            seen.append((time.monotonic(), time.thread_time()))

    with make(root, listener=look) as box:
        box.call("shell", {"command": "true"})
        start = time.monotonic()
        result = box.call("shell", {"command": command})
        assert result.data["exit_code"] == 0
        end = start + result.data["duration_s"]
    during = [(at, worked) for at, worked in seen if at < end]
    if len(during) > 20:  # else it was over too soon to be a flood
        (began, before), (ended, after) = during[0], during[-1]
        assert (after - before) / (ended - began) < 0.6


def test_a_listener_that_ends_its_thread_ends_for_this_command_only(root: Path) -> None:
    def leave(_event: Event) -> None:
        raise SystemExit

    with make(root, listener=leave) as box:
        for _ in range(2):
            notes = box.call("shell", {"command": "true"}).data["notes"]
            assert notes == ["the listener failed (SystemExit) and heard no more of this command"]


def test_a_listener_that_sleeps_holds_nothing_up(root: Path) -> None:
    release, heard_all = threading.Event(), threading.Event()
    heard, skipped = 0, 0

    def sleep(event: Event) -> None:
        nonlocal heard, skipped
        release.wait(30)
        heard += len(event.data) if isinstance(event, Chunk) else 0
        skipped += event.total_bytes if isinstance(event, Skipped) else 0
        if isinstance(event, Ended):
            heard_all.set()

    with make(root, listener=sleep) as box:
        started = time.monotonic()
        result = box.call("shell", {"command": "head -c 100000000 /dev/zero | tr '\\0' '\\n'; echo end"})
        assert time.monotonic() - started < 25
        assert result.data["output"].endswith("\nend")
        assert any(note.startswith("the listener is slow") for note in result.data["notes"])
        release.set()
        assert heard_all.wait(30)
    assert heard + skipped == 100_000_004
    assert heard < 20_000_000


# ---- the end


def test_close_ends_calls_in_flight_at_once(root: Path) -> None:
    box = make(root, grace_s=30)
    results: list[hr.ToolResult] = []
    call = threading.Thread(
        target=lambda: results.append(box.call("shell", {"command": "trap '' TERM; echo on; sleep 77"}))
    )
    call.start()
    time.sleep(0.5)
    started = time.monotonic()
    box.close()
    assert time.monotonic() - started < 15
    call.join()
    assert (results[0].data["cancelled"], results[0].data["output"], results[0].data["code"]) == (
        True,
        "on",
        "CANCELLED",
    )
    assert box.call("shell", {"command": "true"}).data["code"] == "CLOSED"
    box.close()


def test_a_forked_child_of_the_host_is_refused_and_harms_nothing(root: Path) -> None:
    with make(root) as box:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(writing, box.call("shell", {"command": "true"}).text.encode())
            box.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert os.read(reading, 1000).startswith(b"CLOSED: ")
        os.close(reading)
        os.close(writing)
        assert box.call("shell", {"command": "mktemp"}).data["exit_code"] == 0


def test_acall_is_call_for_async_programs(tmp_path: Path) -> None:
    async def one(n: int) -> str:
        (tmp_path / str(n)).mkdir()
        async with make(tmp_path / str(n)) as box:
            result = await box.acall("shell", {"command": f"sleep 0.3; echo {n}"})
            return str(result.data["output"])

    async def main() -> list[str]:
        return list(await asyncio.gather(*(one(n) for n in range(20))))

    assert asyncio.run(main()) == [str(n) for n in range(20)]


def test_a_cancelled_acall_has_stopped_the_command(root: Path) -> None:
    async def main() -> None:
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        def told(event: Event) -> None:
            if isinstance(event, Chunk):
                loop.call_soon_threadsafe(started.set)

        async with make(root, listener=told) as box:
            call = asyncio.create_task(box.acall("shell", {"command": f"echo on; sleep 88.{os.getpid()}"}))
            await started.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

    asyncio.run(main())
    left = subprocess.run(["pgrep", "-f", f"sleep 88.{os.getpid()}"], capture_output=True, check=False)
    assert left.stdout == b""
