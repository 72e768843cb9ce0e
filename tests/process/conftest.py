"""Hosts that tests start, kill, and look at from outside."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.process.onlooker import Hosts


@pytest.fixture(scope="session")
def _source() -> Generator[Hosts]:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("needs /proc to find what is left")
    place = Path(tempfile.mkdtemp(prefix="handrail-"))  # pytest's own directories are closed to other users
    try:
        yield Hosts(place)
    finally:
        shutil.rmtree(place)


@pytest.fixture
def hosts(_source: Hosts) -> Generator[Hosts]:
    """What a failed test left ends with it."""
    yield _source
    _source.clean()
