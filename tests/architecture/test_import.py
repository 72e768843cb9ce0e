"""What loading the package costs, told by what it loads, and what its front page promises."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import handrail

# What a first import may not pull in: each is loaded by the first thing that needs it.
HEAVY = ["anyio", "asyncio", "click", "importlib.metadata", "msgspec", "platformdirs", "rich", "subprocess"]


def loaded_by(statement: str) -> set[str]:
    """The modules that are there after `statement` in an interpreter of its own, and were not there before."""
    program = f"import sys\nbefore = {{*sys.modules}}\n{statement}\nprint(*{{*sys.modules}} - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_by("import handrail")
    assert "handrail" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_importing_the_package_loads_none_of_its_modules() -> None:
    assert {name for name in loaded_by("import handrail") if name.startswith("handrail.")} == set()


def test_the_bare_engine_needs_no_package_from_outside() -> None:
    loaded = loaded_by("from handrail.process import run")
    assert "handrail.process" in loaded
    assert loaded.isdisjoint({"anyio", "asyncio", "click", "msgspec", "platformdirs", "rich"})


@pytest.mark.parametrize("name", handrail.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(handrail, name) is not None
    assert name in vars(handrail), "a name is kept once it has been loaded"


def test_the_public_names_are_sorted_and_told_to_those_who_ask() -> None:
    assert handrail.__all__ == sorted(set(handrail.__all__))
    assert dir(handrail) == handrail.__all__


def test_a_name_that_is_not_public_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="'handrail' has no attribute 'Tolbox'"):
        getattr(handrail, "Tolbox")  # noqa: B009 - type checkers refuse the plain form, as they should


def test_a_type_checker_sees_the_same_homes_as_the_interpreter() -> None:
    tree = ast.parse(Path(str(handrail.__file__)).read_text(encoding="utf-8"))
    [seen] = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    homes = {n.module: tuple(a.name for a in n.names) for n in seen.body if isinstance(n, ast.ImportFrom)}
    assert homes == handrail._HOMES
    assert sorted(handrail.__all__) == sorted({"__version__"}.union(*homes.values()))


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert handrail.__version__ == version("handrail")
