"""Stopping a call that runs in a slot, by each way there is: nothing of it is left when the call has returned."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.process.onlooker import ANYBODY, BOUND_S, HIDING, TIMES, Host, Hosts

MODES = ["T2", "T1"]
STAY = 5


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest, hosts: Hosts) -> str:
    wanted: str = request.param
    if hosts.tier(ANYBODY) < wanted:
        pytest.skip("not here")
    return wanted


LINE = f"LINE = {HIDING + 'echo up; exec -a $T-main sleep 600'!r}.replace('{{tag}}', TAG)\n"


def box(place: Path) -> str:
    """A toolbox over a directory of its own."""
    (place / "work").mkdir()
    return f"""
from handrail import Toolbox, allow_all
place = {str(place)!r}
box = Toolbox(place + "/work", approver=allow_all, sandbox="best", state_dir=place + "/state", grace_s=0.3)
"""


def until_it_runs(hosts: Hosts, code: str, mode: str) -> Host:
    host = hosts.start(ANYBODY, LINE + code, mode)
    host.wait_for_commands(STAY)
    return host


@pytest.mark.parametrize("stop", ["POLITELY", "KILL"])
def test_a_request_from_another_thread(hosts: Hosts, mode: str, stop: str) -> None:
    code = f"""
from handrail.process import Stop
cancel = Cancel()
threading.Thread(target=lambda: (sys.stdin.readline(), cancel.request(Stop.{stop}))).start()
ended = call(LINE, cancel=cancel, grace_s=0.3)
say(ended.enforced.tier, ended.exit_code, ended.cancelled, ended.signal, ended.stdout.head)
sys.stdin.readline()
told(call("echo again"))
"""
    host = until_it_runs(hosts, code, mode)
    host.go_on()
    assert host.line() == f"{mode} None True SIGKILL b'up\\n'"
    assert host.commands() == []
    host.go_on()
    assert host.end() == f"{mode} 0 None again None\n"
    assert host.survivors(5.0) == []


ASYNC = """
import asyncio, anyio

async def a_line():
    await anyio.to_thread.run_sync(sys.stdin.readline)

async def task():
    one = asyncio.create_task(box.acall("shell", {"command": LINE}))
    await a_line()
    one.cancel()
    try:
        await one
    except asyncio.CancelledError:
        say("cancelled")

async def impatient():
    one = asyncio.create_task(box.acall("shell", {"command": LINE}))
    await a_line()
    for _ in range(3):
        one.cancel()
        await asyncio.sleep(0.05)
    try:
        await one
    except asyncio.CancelledError:
        say("cancelled")

async def scope():
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(box.acall, "shell", {"command": LINE})
            await a_line()
            scope.cancel()
    say("cancelled" if scope.cancelled_caught else "not cancelled")

async def run():
    async with box:
        await WAY()
        await a_line()
        say((await box.acall("shell", {"command": "echo again"})).data["output"])

asyncio.run(run())
"""


@pytest.mark.parametrize("way", ["task", "impatient", "scope"])
def test_a_cancelled_task(hosts: Hosts, mode: str, way: str, tmp_path: Path) -> None:
    host = until_it_runs(hosts, box(tmp_path) + ASYNC.replace("WAY", way), mode)
    host.go_on()
    assert host.line() == "cancelled"
    assert host.commands() == []
    host.go_on()
    assert host.end() == "again\n"
    assert host.survivors(5.0) == []


def test_a_closed_toolbox(hosts: Hosts, mode: str, tmp_path: Path) -> None:
    code = """
def closing():
    sys.stdin.readline()
    started = time.monotonic()
    box.close()
    say("closed", time.monotonic() - started < 5)
    sys.stdin.readline()

thread = threading.Thread(target=closing)
thread.start()
say(box.call("shell", {"command": LINE}).data["code"])
thread.join()
"""
    host = until_it_runs(hosts, box(tmp_path) + code, mode)
    host.go_on()
    assert {host.line(), host.line()} == {"CANCELLED", "closed True"}
    assert host.commands() == []
    host.go_on()
    host.end()
    assert host.survivors(5.0) == []


def command_line(place: Path) -> str:
    return f"""
from handrail.cli.main import main
sys.argv = ["handrail", "run", "--workspace", {str(place)!r}, LINE]
main()
"""


@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_at_the_command_line_once_and_more(hosts: Hosts, mode: str, times: int, tmp_path: Path) -> None:
    host = until_it_runs(hosts, command_line(tmp_path), mode)
    for _ in range(times):
        os.killpg(host.pid, signal.SIGINT)
        time.sleep(0.2)
    out, errors = host.popen.communicate(timeout=BOUND_S)
    assert host.commands() == []
    assert (host.popen.returncode, out) == (130, b"up\n")
    assert errors == b"handrail: stopped by Ctrl-C\n"
    assert host.survivors(5.0) == []


@pytest.mark.parametrize("trial", range(TIMES))
def test_ctrl_c_at_the_command_line_at_any_moment(hosts: Hosts, mode: str, trial: int, tmp_path: Path) -> None:
    host = hosts.start(ANYBODY, f"LINE = 'exec -a {{}}main sleep 600'.format(TAG)\n{command_line(tmp_path)}", mode)
    moment = random.uniform(0.05, 0.6)
    time.sleep(moment)
    os.killpg(host.pid, signal.SIGINT)
    host.popen.communicate(timeout=BOUND_S)
    assert host.popen.returncode in (130, -signal.SIGINT), f"after {moment:.3f} s, {trial}"
    assert host.survivors(5.0) == []
