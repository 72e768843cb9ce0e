"""What a command costs through handrail, each workload against the least that the kernel allows, in the same run.

    python benchmarks/engine.py [W1 W2 W3 W4 W5 W8] [--quick] [--json] [--strict]

W1 call overhead, W2 capture, W3 concurrency, W4 a timeout, W5 a pipe held by a background child, W8 start.
See README.md beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass

import handrail as hr
from handrail.hosts.local import LocalHost
from handrail.process import Cancel, Invocation, OutputLimits, run
from handrail.values.completed import Completed

MIB = 1024 * 1024
AT_ONCE = 64

Clock = Callable[[], float]
"""Does the thing once and returns how long it took, in seconds."""

FLOOR_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "floors", "spawn.c")


class Skip(Exception):
    """This machine cannot give the figure; the message says why."""


def compile_floor(directory: str) -> str:
    """Compile the floor program into `directory` and return its path; Skip where there cannot be one."""
    if not sys.platform.startswith("linux"):
        raise Skip("the floor needs pidfd_open, which only Linux has")
    compiler = shutil.which("cc")
    if compiler is None:
        raise Skip("no C compiler (cc) to build the floor with")
    program = os.path.join(directory, "spawn")
    subprocess.run([compiler, "-O2", "-o", program, FLOOR_SOURCE], check=True)
    return program


@contextmanager
def floor(program: str, count: int, argv: Sequence[str]) -> Generator[Clock, None, None]:
    """The floor's clock for `count` times `argv` at once; the program lives as long as the context."""
    with subprocess.Popen(
        [program, str(count), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        ask, answers = process.stdin, process.stdout

        def clock() -> float:
            ask.write("go\n")
            ask.flush()
            answer = answers.readline().split()
            if len(answer) != 2:
                raise RuntimeError(f"the floor for {argv} gave no figure")
            return int(answer[0]) / 1e9

        yield clock


def timed(action: Callable[[], object]) -> Clock:
    def clock() -> float:
        began = time.perf_counter()
        action()
        return time.perf_counter() - began

    return clock


def take_turns(rounds: int, *clocks: Clock) -> list[list[float]]:
    """Each clock's figures, one a round, in seconds. An uncounted round comes first (page cache, lazy imports).

    Who goes first moves on by one each round, so that nobody always runs in another's wake.
    """
    figures: list[list[float]] = [[] for _ in clocks]
    for number in range(rounds + 1):
        for place in range(len(clocks)):
            who = (number + place) % len(clocks)
            seconds = clocks[who]()
            if number > 0:
                figures[who].append(seconds)
    return figures


def p99(figures: Sequence[float]) -> float:
    return sorted(figures)[math.ceil(0.99 * len(figures)) - 1]


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures summed up, in the row's unit: the median or another percentile, and where their middle half lies."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table, in `unit`: ms, s or MiB. At most one target is set; a row with none is for information."""

    name: str
    unit: str
    ours: Measured
    floor: Measured | None
    max_ratio: float | None
    max_value: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.floor is None else self.ours.value / self.floor.value

    @property
    def missed(self) -> bool:
        over_ratio = self.ratio is not None and self.max_ratio is not None and self.ratio > self.max_ratio
        return over_ratio or (self.max_value is not None and self.ours.value > self.max_value)

    def cells(self) -> tuple[str, ...]:
        target = ""
        if self.max_ratio is not None:
            target = f"<= {self.max_ratio:.2f} x"
        elif self.max_value is not None:
            target = f"<= {self.max_value:g} {self.unit}"
        verdict = "MISS" if self.missed else "ok"
        return (
            self.name,
            str(self.ours),
            "" if self.floor is None else str(self.floor),
            self.unit,
            "" if self.ratio is None else f"{self.ratio:.2f}",
            target,
            verdict if target else "",
        )

    def as_json(self) -> dict[str, object]:
        return {**asdict(self), "ratio": self.ratio, "missed": self.missed}


def row(
    name: str,
    unit: str,
    figures: Sequence[float],
    floor_figures: Sequence[float] | None = None,
    *,
    pick: Callable[[Sequence[float]], float] = statistics.median,
    max_ratio: float | None = None,
    max_value: float | None = None,
) -> Row:
    """Sum up `figures` (seconds, or MiB where that is the unit) by `pick`, the floor's likewise."""
    scale = 1000.0 if unit == "ms" else 1.0

    def sum_up(raw: Sequence[float]) -> Measured:
        ordered = sorted(figure * scale for figure in raw)
        return Measured(pick(ordered), ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4])

    return Row(
        name=name,
        unit=unit,
        ours=sum_up(figures),
        floor=None if floor_figures is None else sum_up(floor_figures),
        max_ratio=max_ratio,
        max_value=max_value,
    )


def machine() -> dict[str, str | int]:
    bash = subprocess.run(["bash", "-c", "echo $BASH_VERSION"], capture_output=True, text=True, check=True)
    return {
        "cores": os.cpu_count() or 0,
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "bash": bash.stdout.strip(),
        "load": f"{os.getloadavg()[0]:.2f}",
    }


def table(rows: Sequence[Row]) -> str:
    header = ("row", "measured (middle half)", "floor (middle half)", "unit", "ratio", "target", "")
    lines = [header, *(one.cells() for one in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text: list[str] = []
    for line in lines:
        numbers = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        text.append("  ".join((line[0].ljust(widths[0]), *numbers)).rstrip())
    return "\n".join(text)


@dataclass(frozen=True, slots=True)
class Bench:
    """How much to measure (`quick`: enough to see that it works) and where its files may lie."""

    quick: bool
    directory: str

    def rounds(self, full: int) -> int:
        return max(3, full // 10) if self.quick else full

    def new_directory(self) -> str:
        return tempfile.mkdtemp(dir=self.directory)

    def toolbox(self) -> hr.Toolbox:
        return hr.Toolbox(self.new_directory(), approver=hr.allow_all, sandbox="off", state_dir=self.new_directory())


def succeeded(completed: Completed) -> Completed:
    """A failed command is a quick command: never let one pass for a figure."""
    if completed.exit_code != 0:
        raise RuntimeError(f"the measured command failed: {completed}")
    return completed


def run_on(host: LocalHost, argv: Sequence[str], env: Mapping[str, str]) -> Completed:
    """As `run` does, but where a toolbox runs its commands: in a slot if this machine has any."""
    with closing(Cancel()) as never:
        return host.run(Invocation(argv=tuple(argv), cwd=os.getcwd(), env=env), cancel=never)


def call_shell(box: hr.Toolbox, command: str) -> None:
    result = box.call("shell", {"command": command})
    if result.is_error:
        raise RuntimeError(f"the measured call failed: {result.text}")


def w1_call_overhead(bench: Bench) -> Iterator[Row]:
    argv = ["bash", "-c", "true"]
    calls = bench.rounds(200)

    def by_subprocess() -> None:
        subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=True
        )

    ours = timed(lambda: succeeded(run(argv, timeout_s=120)))
    with (
        floor(compile_floor(bench.directory), 1, argv) as least,
        closing(LocalHost()) as host,
        bench.toolbox() as box,
    ):
        lowest, direct, hosted, whole, plain = take_turns(
            calls,
            least,
            ours,
            timed(lambda: succeeded(run_on(host, argv, os.environ))),
            timed(lambda: call_shell(box, "true")),
            timed(by_subprocess),
        )
        tier = host.enforced.tier
        yield row("W1 bash -c true, run()", "ms", direct, lowest, max_ratio=1.35)
        yield row("W1 the same, 99th percentile", "ms", direct, lowest, pick=p99, max_ratio=1.5)
        yield row(f"W1 a host's run(), {tier}", "ms", hosted, lowest, max_ratio=1.35 if tier == "T0" else 1.6)
        yield row(f'W1 Toolbox.call("shell"), {tier}', "ms", whole, lowest, max_ratio=1.9)
        yield row("W1 subprocess.run, to compare", "ms", plain, lowest)
        ballast = b"x" * (1024 * MIB)
        through_slot = timed(lambda: succeeded(run_on(host, argv, os.environ)))
        lowest, heavy, heavy_hosted = take_turns(calls // 2, least, ours, through_slot)
        larger = f"this process {len(ballast) // MIB} MiB larger"
        yield row(f"W1 run(), {larger}", "ms", heavy, lowest)
        yield row(f"W1 a host's run(), {tier}, {larger}", "ms", heavy_hosted, lowest, max_ratio=1.7)


def w1_cold_slot(bench: Bench) -> Iterator[Row]:
    """A host's first command: its slot is made first. The warden is there: it is started once for a process."""
    argv = ["bash", "-c", "true"]
    hosts: list[LocalHost] = []

    def on_a_new_host() -> float:
        hosts.append(LocalHost())
        began = time.perf_counter()
        succeeded(run_on(hosts[-1], argv, os.environ))
        return time.perf_counter() - began

    with floor(compile_floor(bench.directory), 1, argv) as least:
        lowest, cold = take_turns(bench.rounds(40), least, on_a_new_host)
    tier = hosts[0].enforced.tier
    for host in hosts:
        host.close()
    yield row(f"W1 a host's first run(), {tier}", "ms", cold, lowest, max_ratio=10)


def eighty_byte_lines(total_bytes: int) -> list[str]:
    return ["bash", "-c", f"yes {'x' * 79} | head -c {total_bytes}"]


def w2_capture(bench: Bench) -> Iterator[Row]:
    total = (64 if bench.quick else 512) * MIB
    argv = eighty_byte_lines(total)
    spills = bench.new_directory()

    def capture(spill_dir: str | None) -> float:
        began = time.perf_counter()
        completed = succeeded(run(argv, spill_dir=spill_dir))
        seconds = time.perf_counter() - began
        output = completed.stdout
        if output.total_bytes != total:
            raise RuntimeError(f"captured {output.total_bytes} of {total} bytes")
        if spill_dir is not None:
            if output.spill is None or os.path.getsize(output.spill) != min(total, OutputLimits().spill_bytes):
                raise RuntimeError(f"the spill is not whole: {output.spill_bytes} bytes, {output.spill_error}")
            os.unlink(output.spill)
        return seconds

    with floor(compile_floor(bench.directory), 1, argv) as least, closing(LocalHost()) as host:
        in_slot = timed(lambda: succeeded(run_on(host, argv, os.environ)))
        lowest, counted, spilled, hosted = take_turns(
            bench.rounds(5), least, lambda: capture(None), lambda: capture(spills), in_slot
        )
        tier = host.enforced.tier
    yield row(f"W2 {total // MIB} MiB of lines, a host's run(), {tier}, no spill", "s", hosted, lowest, max_ratio=1.1)
    yield row(f"W2 {total // MIB} MiB of lines, no spill", "s", counted, lowest, max_ratio=1.1)
    yield row(f"W2 {total // MIB} MiB of lines, up to 256 spilled", "s", spilled, lowest, max_ratio=1.9)


# In a process of its own, and from before the first call, so that what the engine loads and allocates late counts too.
# VmHWM and not ru_maxrss: the latter survives exec and would show this process's own size.
PEAK_GROWTH = """
import sys
from handrail.process import run
def kib(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))
before = kib("VmRSS")
completed = run(sys.argv[2:], spill_dir=sys.argv[1])
assert completed.exit_code == 0, completed
print(kib("VmHWM") - before)
"""


def w2_memory(bench: Bench) -> Iterator[Row]:
    if not os.path.exists("/proc/self/status"):
        raise Skip("peak memory is read from /proc")
    for mib in (64, 256 if bench.quick else 2048):
        grown: list[float] = []
        for _ in range(3):
            with tempfile.TemporaryDirectory(dir=bench.directory) as spills:
                probe = [sys.executable, "-I", "-c", PEAK_GROWTH, spills, *eighty_byte_lines(mib * MIB)]
                answer = subprocess.run(probe, capture_output=True, text=True, check=True)
            grown.append(int(answer.stdout) / 1024)
        yield row(f"W2 peak memory grew by, {mib} MiB of lines", "MiB", grown, pick=max, max_value=8)


def w3_concurrency(bench: Bench) -> Iterator[Row]:
    command = "sleep 0.2"
    argv = ["bash", "-c", command]

    def by_threads() -> None:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for completed in threads.map(run, [argv] * AT_ONCE):
                succeeded(completed)

    with ExitStack() as open_until_done:
        least = open_until_done.enter_context(floor(compile_floor(bench.directory), AT_ONCE, argv))
        runner = open_until_done.enter_context(asyncio.Runner())
        boxes = [open_until_done.enter_context(bench.toolbox()) for _ in range(AT_ONCE)]

        async def gather() -> float:
            began = time.perf_counter()
            results = await asyncio.gather(*(box.acall("shell", {"command": command}) for box in boxes))
            seconds = time.perf_counter() - began
            if any(result.is_error for result in results):
                raise RuntimeError(f"a measured call failed: {results}")
            return seconds

        lowest, threads, loop = take_turns(bench.rounds(15), least, timed(by_threads), lambda: runner.run(gather()))
        tier = boxes[0].enforced.tier
    yield row(f"W3 {AT_ONCE} x {command}, run() in threads", "ms", threads, lowest, max_ratio=1.1)
    yield row(
        f"W3 {AT_ONCE} x {command}, acall on asyncio, {tier}",
        "ms",
        loop,
        lowest,
        max_ratio=1.1 if tier == "T0" else 1.3,
    )


def still_running(mark: str) -> list[str]:
    """Command lines of the processes that have `mark` in their environment: by that, a PID namespace hides none."""
    found: list[str] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                if os.fsencode(mark) in environ.read():
                    found.append(os.fsdecode(cmdline.read()))
        except OSError:  # gone by now, or another user's
            continue
    return found


def w4_timeout(bench: Bench) -> Iterator[Row]:
    """A tree of which a part has left the session: what is returned after the limit, and that nothing is left."""
    argv = ["bash", "-c", "(setsid sleep 300 &) ; sleep 300"]
    mark = f"{os.path.basename(bench.directory)}-w4"
    env = {**os.environ, "HANDRAIL_BENCHMARK": mark}

    with closing(LocalHost()) as host:

        def until_the_limit() -> float:
            began = time.perf_counter()
            with closing(Cancel()) as never:
                completed = host.run(
                    Invocation(argv=tuple(argv), cwd=os.getcwd(), env=env, timeout_s=1.0), cancel=never
                )
            seconds = time.perf_counter() - began
            if not completed.timed_out:
                raise RuntimeError(f"it was to be stopped at its limit: {completed}")
            if left := still_running(mark):
                raise RuntimeError(f"still running after the call: {left}")
            return seconds

        (figures,) = take_turns(bench.rounds(20), until_the_limit)
        tier = host.enforced.tier
    yield row(f"W4 {argv[-1]}, limit 1 s, {tier}, none left", "s", figures, max_value=1.05)


def w5_held_pipe(bench: Bench) -> Iterator[Row]:
    argv = ["bash", "-c", "sleep 47 & echo done"]
    mark = os.path.basename(bench.directory)
    env = {**os.environ, "HANDRAIL_BENCHMARK": mark}

    def checked(completed: Completed) -> None:
        names = [one.name for one in succeeded(completed).left_behind]
        if completed.stdout.head != b"done\n" or names != ["sleep 47"]:
            raise RuntimeError(f"not the output, or not the sleep by its name: {completed}")

    with floor(compile_floor(bench.directory), 1, argv) as least, closing(LocalHost()) as host:
        lowest, direct, hosted = take_turns(
            bench.rounds(30),
            least,
            timed(lambda: checked(run(argv, env=env))),
            timed(lambda: checked(run_on(host, argv, env))),
        )
        tier = host.enforced.tier
        time.sleep(0.05)  # SIGKILL was sent before the calls returned; this is for the kernel to be done with it
        if left := still_running(mark):
            raise RuntimeError(f"still running after the call: {left}")
    yield row(f"W5 {argv[-1]}, run()", "ms", direct, lowest, max_value=60)
    yield row(f"W5 the same, a host's run(), {tier}", "ms", hosted, lowest, max_value=60)


FIRST_TOOLBOX = """
import sys
import handrail
handrail.Toolbox(sys.argv[1], approver=handrail.allow_all, sandbox="off", state_dir=sys.argv[2]).close()
"""


def w8_start(bench: Bench) -> Iterator[Row]:
    def start(code: str, *arguments: str) -> Clock:
        argv = [sys.executable, "-I", "-c", code, *arguments]
        return timed(lambda: subprocess.run(argv, stdin=subprocess.DEVNULL, check=True))

    bare, imported, first = take_turns(
        bench.rounds(40),
        start("pass"),
        start("import handrail"),
        start(FIRST_TOOLBOX, bench.new_directory(), bench.new_directory()),
    )

    def beyond_bare(figures: list[float]) -> list[float]:
        return [figure - base for figure, base in zip(figures, bare, strict=True)]

    yield row("W8 bare Python, to compare", "ms", bare)
    yield row("W8 import handrail, beyond bare Python", "ms", beyond_bare(imported), max_value=30)
    yield row("W8 first Toolbox, beyond bare Python", "ms", beyond_bare(first), max_value=60)


WORKLOADS: dict[str, tuple[Callable[[Bench], Iterator[Row]], ...]] = {
    "W1": (w1_call_overhead, w1_cold_slot),
    "W2": (w2_capture, w2_memory),
    "W3": (w3_concurrency,),
    "W4": (w4_timeout,),
    "W5": (w5_held_pipe,),
    "W8": (w8_start,),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="What a command costs through handrail, against the kernel's floor.")
    parser.add_argument("workload", nargs="*", help=f"which to measure: {' '.join(WORKLOADS)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="few rounds and small sizes: to see that it works")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="exit with 1 where a target is missed")
    options = parser.parse_args()
    unknown = sorted(set(options.workload) - set(WORKLOADS))
    if unknown:
        parser.error(f"no such workload: {' '.join(unknown)}")

    rows: list[Row] = []
    skipped: dict[str, str] = {}
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="handrail-benchmark-") as directory:
        bench = Bench(options.quick, directory)
        for name in options.workload or WORKLOADS:
            for measure in WORKLOADS[name]:
                try:
                    rows.extend(measure(bench))
                except Skip as skip:
                    skipped[measure.__name__] = str(skip)
    if options.json:
        print(json.dumps({"machine": facts, "rows": [one.as_json() for one in rows], "skipped": skipped}, indent=2))
    else:
        print(", ".join(f"{fact} {value}" for fact, value in facts.items()))
        print(table(rows))
        for measured, reason in skipped.items():
            print(f"skipped {measured}: {reason}")
    return 1 if options.strict and any(one.missed for one in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
