"""Imports between packages point downwards only, and no test imports another."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "coevo"
TESTS = ROOT / "tests"

FLOORS = [
    {"cli"},
    {"study"},
    {"tabular"},
    {"policies"},
    {"diagnostics"},
    {"estimators"},
    {"training"},
    {"persistence"},
    {"engines"},
    {"core"},
    {"datasets"},
    {"runtime"},
    {"_typing", "_validation", "_version", "_plotting", "_rendering"},
]
"""The packages from the top to the bottom; each imports only those below it."""
HEIGHTS = {name: -depth for depth, names in enumerate(FLOORS) for name in sorted(names)}
ENTRY_POINTS = {"__init__", "__main__"}  # of coevo, which may import all packages


def imported_modules(source, module):
    """Return the dotted names of all modules that a source imports, wherever it does."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # `from coevo import training` imports a package, not a name of the root.
            found += [f"{base}.{alias.name}" for alias in node.names]
    return found


def floor_of(module):
    """Return the package of coevo that a module belongs to, None for one of another project."""
    parts = module.split(".")
    if parts[0] != "coevo":
        return None
    return parts[1] if len(parts) > 1 else ""


def find_violations(source, module):
    """Return the imports of a module of coevo that do not point downwards."""
    here = HEIGHTS[floor_of(module)]
    found = []
    for imported in imported_modules(source, module):
        floor = floor_of(imported)
        if floor is None or floor == floor_of(module):
            continue
        if floor not in HEIGHTS:
            found.append(f"{module} imports the root: {imported}")
        elif HEIGHTS[floor] >= here:
            found.append(f"{module} imports {imported}, which is not below it")
    return found


def modules_of_coevo():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] not in ENTRY_POINTS:
            yield path, ".".join(["coevo", *parts])


def test_every_package_has_a_height():
    there = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert there - ENTRY_POINTS == HEIGHTS.keys()


@pytest.mark.parametrize("floor", HEIGHTS)
def test_imports_point_downwards(floor):
    violations, n_modules = [], 0
    for path, module in modules_of_coevo():
        if floor_of(module) == floor:
            n_modules += 1
            violations += find_violations(path.read_text(encoding="utf-8"), module)
    assert n_modules > 0
    assert not violations


@pytest.mark.parametrize(
    ("source", "module", "is_refused"),
    [
        ("from coevo.core.search import Search", "coevo.training.run", False),
        ("from coevo.core.search import Search", "coevo.core.extensions.base", False),
        ("import numpy.core", "coevo.core.search", False),
        ("from coevo.training.run import run_search", "coevo.core.search", True),
        ("import coevo.cli.app", "coevo.study.plan", True),
        ("import coevo", "coevo.study.plan", True),
        ("from coevo import Settings", "coevo.study.plan", True),
        ("from coevo import __version__", "coevo.persistence.model", True),
        ("from coevo import core", "coevo.study.plan", False),
        ("def f():\n    from coevo.study import plan", "coevo.core.search", True),
        ("from ..study import plan", "coevo.core.search", True),
        ("from ..runtime import jit", "coevo.core.search", False),
        ("from . import state", "coevo.core.search", False),
        ("from coevo._typing import Array", "coevo._validation", True),
    ],
)
def test_violations_are_found(source, module, is_refused):
    assert bool(find_violations(source, module)) == is_refused


def test_no_test_imports_another():
    names = {path.stem for path in TESTS.rglob("*.py")} | {"tests"}
    for path in TESTS.rglob("*.py"):
        imported = imported_modules(path.read_text(encoding="utf-8"), f"tests.{path.stem}")
        assert not names & {module.split(".")[0] for module in imported}, path
