from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

Handrail = Callable[..., subprocess.CompletedProcess[str]]


def test_the_version_is_the_packages(handrail: Handrail) -> None:
    done = handrail("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"handrail {version('handrail')}\n", "")


@pytest.mark.parametrize("arguments", [["--version"], ["env"], ["--nonsense"]])
def test_what_runs_no_command_loads_no_engine(arguments: list[str]) -> None:
    program = (
        "import sys; from handrail.cli.main import run_main; run_main(sys.argv[1:]);"
        "print([m for m in ('handrail.toolbox', 'rich', 'msgspec', 'anyio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [["env"], ["--help"], ["run", "--json", "true"], ["--version"]])
def test_output_that_a_full_disk_refuses_is_told_in_a_line(handrail: Handrail, arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = handrail(*arguments, stdout=full)
    assert done.returncode == 125
    assert done.stderr.splitlines()[-1] == "handrail: the output could not be written: No space left on device"
    assert "Traceback" not in done.stderr


def test_help_tells_of_every_subcommand(handrail: Handrail) -> None:
    for flag in ("-h", "--help"):
        done = handrail(flag)
        assert done.returncode == 0
        commands = done.stdout.partition("Commands:\n")[2].split("\n")
        assert [line.split()[0] for line in commands if line] == ["demo", "doctor", "env", "run"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["--nope"],
        ["run"],
        ["run", "--nope", "true"],
        ["run", "--timeout", "0", "true"],
        ["run", "--timeout", "nan", "true"],
        ["run", "--timeout", "soon", "true"],
        ["run", "--env", "all", "true"],
        ["env", "--env", "all"],
        ["env", "extra"],
    ],
)
def test_a_wrong_command_line_is_handrails_failure_and_says_so(handrail: Handrail, arguments: list[str]) -> None:
    done = handrail(*arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_a_workspace_that_is_not_there_is_handrails_failure(handrail: Handrail, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in ("missing", "file"):
        done = handrail("run", "--workspace", place, "true")
        assert (done.returncode, done.stdout) == (125, "")
        assert done.stderr.startswith("handrail: ")
        assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_failure_to_complain_of() -> None:
    line = f"{sys.executable} -c 'from handrail.cli.main import main; main()' env | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode in (0, 141), "141 where the reader was gone first"
    assert done.stderr == ""
