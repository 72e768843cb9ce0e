"""Which module may import which.

Every import counts, wherever it stands: in a function, for a type checker only, or by name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

# From the top down. An import points down, or sideways within a layer that is open.
# "handrail" alone is the package's front page; what stands on no layer may not be imported by anything here.
LAYERS: list[tuple[str, set[str]]] = [
    ("command line", {"cli", "__main__"}),
    ("front page", {"handrail"}),
    ("fakes", {"testing"}),
    ("faces", {"agent", "mcp", "console", "adapters"}),
    ("toolbox", {"toolbox"}),
    ("options", {"options"}),
    ("tools", {"tools"}),
    ("gate", {"gate"}),
    ("capabilities", {"shell", "operations", "query", "files"}),
    ("hosts", {"hosts"}),
    ("platform", {"process", "sandbox", "workspace", "state", "settings"}),
    ("pure", {"errors", "values", "text", "commandline"}),
]
OPEN = {"command line", "platform", "pure"}  # their members may import each other
MAY_ALSO = {("adapters", "mcp")}
PURE = LAYERS[-1][1]

# What the pure layer does without: the system, other threads and loops, clocks.
IMPURE = {
    "anyio", "asyncio", "concurrent", "fcntl", "glob", "io", "multiprocessing", "os", "pty", "resource", "select",
    "selectors", "shutil", "signal", "socket", "subprocess", "tempfile", "threading", "time",
}  # fmt: skip
PURE_PATHS = {"PurePath", "PurePosixPath", "PureWindowsPath"}


@dataclass(frozen=True, slots=True)
class Import:
    """`name` is the imported module or a name in one; `at_start` tells whether it happens when `module` is loaded."""

    module: str
    name: str
    line: int
    at_start: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.name}"


def module_name(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def modules(source: Path) -> dict[str, ast.Module]:
    """Every module below `source` by its dotted name, parsed."""
    return {module_name(p, source): ast.parse(p.read_bytes(), str(p)) for p in sorted(source.rglob("*.py"))}


def is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def walk(node: ast.AST, *, at_start: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Every node below `node`, and whether it runs when the module is loaded."""
    yield node, at_start
    later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for_checkers = node.body if isinstance(node, ast.If) and is_type_checking(node.test) else []
    for child in ast.iter_child_nodes(node):
        yield from walk(child, at_start=at_start and not later and child not in for_checkers)


def names_in(node: ast.AST, package: str) -> list[str]:
    """What a node imports, if it is an import or a call of import_module with a name written out."""
    match node:
        case ast.Import(names=names):
            return [n.name for n in names]
        case ast.ImportFrom(module=base, names=names, level=level):
            up = package.split(".")[: len(package.split(".")) - level + 1] if level else []
            base = ".".join([*up, *([base] if base else [])])
            return [f"{base}.{n.name}" for n in names]
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return [name]
        case _:
            return []


def imports(source: Path) -> list[Import]:
    found: list[Import] = []
    for module, tree in modules(source).items():
        is_package = (source / Path(*module.split(".")) / "__init__.py").exists()
        package = module if is_package else module.rpartition(".")[0]
        for node, at_start in walk(tree):
            found += [Import(module, name, getattr(node, "lineno", 0), at_start) for name in names_in(node, package)]
    return found


def part(name: str) -> str:
    """The piece of the package that a dotted name belongs to: `handrail.shell.session` is of `shell`."""
    return name.split(".")[1] if "." in name else name


def ours(source: Path) -> list[tuple[Import, str]]:
    """The imports of our own modules, each with the module that it really loads."""
    known = modules(source).keys()
    found: list[tuple[Import, str]] = []
    for one in imports(source):
        if one.name.split(".")[0] == "handrail":
            target = one.name if one.name in known else one.name.rpartition(".")[0]
            found.append((one, target))
    return found


def upward(source: Path) -> list[str]:
    """Imports that point up, or sideways where a layer's members are to know nothing of each other."""
    rank = {member: n for n, (_, members) in enumerate(LAYERS) for member in members}
    wrong: list[str] = []
    for one, target in ours(source):
        here, there = part(one.module), part(target)
        if here not in rank or there not in rank:
            wrong.append(f"{one}: {here if here not in rank else there} is on no layer")
        elif here == there or (here, there) in MAY_ALSO:
            continue
        elif rank[there] < rank[here] or (rank[there] == rank[here] and LAYERS[rank[here]][0] not in OPEN):
            wrong.append(f"{one}: {LAYERS[rank[here]][0]} may not import {there}")
    return wrong


def fakes_in_use(source: Path) -> list[str]:
    """The fakes are for tests and for those who embed the package."""
    return [str(one) for one, target in ours(source) if part(target) == "testing" != part(one.module)]


def cycles(source: Path) -> list[str]:
    """Modules that need each other to be loaded."""
    needs: dict[str, set[str]] = {}
    for one, target in ours(source):
        if one.at_start and target != one.module:
            needs.setdefault(one.module, set()).add(target)
    found: list[str] = []
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            found.append(" > ".join([*path[path.index(module) :], module]))
        elif module not in done:
            for other in sorted(needs.get(module, ())):
                visit(other, [*path, module])
            done.add(module)

    for module in sorted(needs):
        visit(module, [])
    return found


def impure(source: Path) -> list[str]:
    """Where the pure layer reaches for the system."""
    wrong: list[str] = []
    for one in imports(source):
        if part(one.module) not in PURE:
            continue
        top, _, rest = one.name.partition(".")
        if top in IMPURE or (top == "pathlib" and rest not in PURE_PATHS):
            wrong.append(str(one))
    for module, tree in modules(source).items():
        if part(module) in PURE:
            wrong += [
                f"{module}:{node.lineno} calls {node.func.id}"
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "input"}
            ]
    return wrong


CHECKS: list[Callable[[Path], list[str]]] = [upward, fakes_in_use, cycles, impure]


@pytest.mark.parametrize("check", CHECKS)
def test_the_package_keeps_its_layers(check: Callable[[Path], list[str]]) -> None:
    assert check(SOURCE) == []


def test_every_module_is_looked_at() -> None:
    on_disk = {module_name(p, SOURCE) for p in SOURCE.rglob("*.py")}
    assert {"handrail", "handrail.errors", "handrail.process.cancel"} <= on_disk == modules(SOURCE).keys()
    assert Import("handrail.process.cancel", "os", 8, at_start=True) in imports(SOURCE)


# ---------------------------------------------------------------- each check can fail


def package(top: Path, files: dict[str, str]) -> Path:
    """A package called handrail below `top`, with these files."""
    for name, text in {"__init__.py": "", **files}.items():
        path = top / "handrail" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return top


@pytest.mark.parametrize(
    ("where", "text", "said"),
    [
        ("values/tool.py", "from handrail.process import cancel", "pure may not import process"),
        ("process/run.py", "import handrail.hosts.local", "platform may not import hosts"),
        ("shell/session.py", "from handrail.tools.base import Tool", "capabilities may not import tools"),
        ("shell/session.py", "from handrail.files import reading", "capabilities may not import files"),
        ("agent/loop.py", "from handrail.cli import main", "faces may not import cli"),
        ("agent/loop.py", "from handrail.mcp import server", "faces may not import mcp"),
        ("gate/gate.py", "from handrail import toolbox", "gate may not import toolbox"),
        ("hosts/local.py", "from handrail import Toolbox", "hosts may not import handrail"),
        ("hosts/local.py", "from ..toolbox import Toolbox", "hosts may not import toolbox"),
        ("hosts/local.py", "def f():\n    def g():\n        import handrail.shell", "hosts may not import shell"),
        ("hosts/local.py", "if TYPE_CHECKING:\n    from handrail.shell import x", "hosts may not import shell"),
        ("hosts/local.py", "if not x:\n    pass\nelse:\n    import handrail.shell", "hosts may not import shell"),
        ("hosts/local.py", "importlib.import_module('handrail.shell')", "hosts may not import shell"),
        ("drawer/things.py", "from handrail.values import tool", "drawer is on no layer"),
        ("gate/gate.py", "from handrail.drawer import things", "drawer is on no layer"),
    ],
)
def test_an_import_that_points_up_or_sideways_is_found(tmp_path: Path, where: str, text: str, said: str) -> None:
    stand_ins = {f"{name}/__init__.py": "" for name in ("cli", "mcp", "shell", "files", "hosts", "tools", "process")}
    source = package(tmp_path, {**stand_ins, "toolbox.py": "", where: text})
    [found] = upward(source)
    assert said in found


def test_imports_that_point_down_are_left_alone(tmp_path: Path) -> None:
    source = package(
        tmp_path,
        {
            "__init__.py": "from handrail.toolbox import Toolbox",
            "cli/main.py": "import handrail\nfrom handrail.agent import loop\nfrom . import words",
            "adapters/adk.py": "from handrail.mcp import server",
            "mcp/server.py": "",
            "toolbox.py": "from handrail.process import cancel\nimport os",
            "process/run.py": "from handrail.workspace import Workspace\nfrom .cancel import Cancel",
            "text/cut.py": "from handrail.values import tool",
        },
    )
    assert upward(source) == []


def test_a_use_of_the_fakes_is_found(tmp_path: Path) -> None:
    files = {"testing/fakes.py": "from handrail.testing import clock", "cli/main.py": "import handrail.testing.fakes"}
    assert fakes_in_use(package(tmp_path, files)) == ["handrail.cli.main:1 imports handrail.testing.fakes"]


def test_modules_that_need_each_other_are_found(tmp_path: Path) -> None:
    ring = {"text/a.py": "from .b import x", "text/b.py": "import handrail.text.c", "text/c.py": "from . import a"}
    names = "handrail.text.a > handrail.text.b > handrail.text.c > handrail.text.a"
    assert cycles(package(tmp_path, {**ring, "text/__init__.py": ""})) == [names]


def test_a_package_and_its_module_may_not_need_each_other_either(tmp_path: Path) -> None:
    files = {"process/__init__.py": "from handrail.process.run import run", "process/run.py": "from . import run"}
    assert cycles(package(tmp_path, files)) == []
    files["process/run.py"] = "from handrail.process import something"
    assert len(cycles(package(tmp_path, files))) == 1


def test_a_later_import_makes_no_cycle(tmp_path: Path) -> None:
    later = "def f():\n    import handrail.text.b\nif TYPE_CHECKING:\n    import handrail.text.b"
    assert cycles(package(tmp_path, {"text/a.py": later, "text/b.py": "import handrail.text.a"})) == []


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "import os.path",
        "from os import path",
        "def f():\n    from subprocess import run",
        "import threading",
        "from time import monotonic",
        "import socket",
        "import asyncio.events",
        "from anyio import to_thread",
        "import pathlib",
        "from pathlib import Path",
        "open('x')",
    ],
)
def test_the_system_in_the_pure_layer_is_found(tmp_path: Path, text: str) -> None:
    assert len(impure(package(tmp_path, {"values/tool.py": text, "process/run.py": text}))) == 1


def test_a_path_without_a_disk_is_pure(tmp_path: Path) -> None:
    assert impure(package(tmp_path, {"values/tool.py": "from pathlib import PurePosixPath, PurePath"})) == []
