"""A program for test_survivors.py: ways to outlive a call and ways to end it, in the tier that HANDRAIL_TIER names.

Usage: python kill_matrix.py FOLDER. Prints a JSON list with one object for each run. It looks for survivors itself,
since another process would look too late; and it needs the standard library and handrail only, since an ordinary user
may be able to read no other interpreter than the system's.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

from handrail.hosts.local import LocalHost
from handrail.process.cancel import Cancel, Stop
from handrail.values.completed import Completed
from handrail.values.invocation import Invocation

# Under load a command needs its time to get everything in place; where it did not, the run says nothing and is made
# again with the next limit.
LIMITS_S = (0.5, 2.0, 8.0)
GRACE_S = 0.2
LOOK_S = 0.05
LOOK_AGAIN_S = 1.2
GENERATIONS = 200
NUMBERS = itertools.count()

# Each of them touches READY as soon as it is where it wants to be. All but "plain" hold no pipe of ours.
SLEEPER = "bash -c ': > READY; exec sleep MARK'"
DOUBLE_FORK = """
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("READY", "w").close()
        os.execve("/bin/sleep", ["sleep", "MARK"], {})
    os._exit(0)
os.wait()
"""
RESPAWNER = f"""
import os, time
for generation in range({GENERATIONS}):
    if os.fork():
        os._exit(0)
    os.setsid()
    if generation == 9:
        open("READY", "w").close()
    time.sleep(0.002)
time.sleep(40)  # MARK: the last one stays, so that it can be seen
"""
ESCAPES = {
    "plain": f"{SLEEPER} &",
    "background": f"( {SLEEPER} >/dev/null 2>&1 & )",
    "setsid": f"setsid {SLEEPER} >/dev/null 2>&1 &",
    "double_fork": f"'{sys.executable}' -c '{DOUBLE_FORK}' >/dev/null 2>&1",
    "nohup": f"nohup {SLEEPER} >/dev/null 2>&1 & disown",
    "trap": f"(trap '' TERM; exec {SLEEPER}) >/dev/null 2>&1 &",
    "respawner": f"'{sys.executable}' -c '{RESPAWNER}' >/dev/null 2>&1 &",
}
IN_PLACE = "until [ -e READY ]; do sleep 0.01; done; echo ready; "
# What the main process does once everything is in place, and what ends the call then.
ENDS = {"timeout": "sleep MARK", "cancel": "sleep MARK", "exit": "exit 0"}


def carrying(mark: str) -> list[int]:
    """Living processes with `mark` in their command line; a zombie has none."""
    found: list[int] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(int(pid))
    return found


def run(host: LocalHost, folder: Path, escape: str, end: str) -> dict[str, object]:
    """One call, with more time if it needs more to get into place, and what is left of it."""
    *shorter, longest = LIMITS_S
    for limit_s in shorter if end == "timeout" else ():
        row = attempt(host, folder, escape, end, limit_s)
        if row["ready"]:
            return row
    return attempt(host, folder, escape, end, longest)


def attempt(host: LocalHost, folder: Path, escape: str, end: str, limit_s: float) -> dict[str, object]:
    """One call, and what is left of it 50 ms after it has returned."""
    place = tempfile.mkdtemp(dir=folder)
    # A number of seconds that no other process on this machine sleeps for.
    mark = f"40.{os.getpid()}{next(NUMBERS):04}"
    line = (ESCAPES[escape] + "\n" + IN_PLACE + ENDS[end]).replace("READY", f"{place}/ready").replace("MARK", mark)
    completed = call(host, line, end, limit_s)
    time.sleep(LOOK_S)
    survivors = carrying(mark)
    if escape == "respawner":  # one look can miss what moves from pid to pid; by then its last one rests
        time.sleep(LOOK_AGAIN_S - LOOK_S)
        survivors += carrying(mark)
    for pid in carrying(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return {
        "escape": escape,
        "end": end,
        "tier": completed.enforced.tier,
        "ready": b"ready\n" in completed.stdout.head,
        "ended": [completed.exit_code, completed.timed_out, completed.cancelled],
        "limit_s": limit_s,
        "seconds": completed.duration_s,
        "left_behind": [left.name for left in completed.left_behind],
        "survivors": len(survivors),
    }


def call(host: LocalHost, line: str, end: str, limit_s: float) -> Completed:
    """Run `line`; where it is to be cancelled, as soon as it says that everything is in place."""
    with closing(Cancel()) as cancel:

        def listen(_stream: str, data: memoryview) -> None:
            if end == "cancel" and b"ready" in bytes(data):
                cancel.request(Stop.KILL)

        invocation = Invocation(
            argv=("bash", "-c", line),
            cwd="/",
            env={"PATH": os.environ["PATH"]},
            timeout_s=limit_s,
            grace_s=GRACE_S,
        )
        return host.run(invocation, cancel=cancel, on_output=listen)


def main(folder: Path) -> None:
    """All runs, a few at a time."""
    host = LocalHost()
    with closing(host), ThreadPoolExecutor(4) as threads:
        rows = [threads.submit(run, host, folder, escape, end) for escape in ESCAPES for end in ENDS]
        sys.stdout.write(json.dumps([row.result() for row in rows]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
