"""Every case of shell.jsonl as a test of its own, judged by the runner beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent

# What no tier of this release can do, by case, and why. Such a case has to fail: one that passes is to be taken off.
MISSES: dict[str, str] = {}

CASES: list[dict[str, Any]] = [json.loads(line) for line in (HERE / "shell.jsonl").read_text().splitlines() if line]


def load_runner() -> ModuleType:
    spec = spec_from_file_location("run_cases", HERE / "run_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load_runner()


@pytest.fixture(autouse=True)
def _usual_umask() -> Generator[None]:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_reported_fault_does_not_happen_here(case: dict[str, Any]) -> None:
    if case["id"] in MISSES:
        with pytest.raises(runner.Failed):
            runner.run_shell_case(case)
    else:
        runner.run_shell_case(case)


def test_the_declared_misses_are_cases_and_say_why() -> None:
    assert MISSES.keys() <= {case["id"] for case in CASES}
    assert all(len(why.split()) > 3 for why in MISSES.values())
    assert len(CASES) == 86
