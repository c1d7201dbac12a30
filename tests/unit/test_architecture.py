"""The structure of the package: imports, names and lengths."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]


def test_there_are_no_import_cycles_even_for_types() -> None:
    graph = grimp.build_graph("hubbub", cache_dir=None)
    imports = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


def test_every_file_named_by_the_architecture_page_exists() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text()
    named = set(re.findall(r"\b((?:network|protocol|mods|agents|client)/[\w/]+\.py)\b", page))
    assert named
    assert {name for name in named if not (ROOT / "hubbub" / name).exists()} == set()


INDEPENDENT = {"hubbub", "hubbub/cli", "hubbub/people/groups"}
"""Folders of independent modules whose names say enough."""


def test_a_package_docstring_names_most_modules_and_that_of_a_mod_all() -> None:
    for path in sorted((ROOT / "hubbub").rglob("__init__.py")):
        folder = str(path.parent.relative_to(ROOT))
        modules = {each.stem for each in path.parent.glob("*.py")} - {"__init__"}
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        missing = {name for name in modules if not re.search(rf"\b{name}\b", text)}
        is_of_mods = folder == "hubbub/mods" or "mod" in modules
        most = 0 if is_of_mods else max(len(modules), 3) // 2
        assert folder in INDEPENDENT or len(missing) <= most, f"{folder} does not name {missing}"


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _definitions() -> Mapping[str, Sequence[Definition]]:
    """The classes and functions of the package by the path of their module."""
    paths = sorted((ROOT / "hubbub").rglob("*.py"))
    return {str(path.relative_to(ROOT)): [*_within(ast.parse(path.read_text()))] for path in paths}


def _within(node: ast.AST) -> Iterator[Definition]:
    """Searches statements only, because expressions contain no definitions."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, ()):
            if isinstance(child, Definition):
                yield child
            yield from _within(child)


def _functions(*folders: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, definitions in _definitions().items():
        if path.startswith(folders):
            for node in definitions:
                if not isinstance(node, ast.ClassDef):
                    yield f"{path}:{node.lineno} {node.name}", node


def test_class_names_are_unique_in_the_package() -> None:
    places = defaultdict(list)
    for path, definitions in _definitions().items():
        for node in definitions:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


MOST_PARAMETERS = 7


def test_functions_of_hub_and_client_have_few_parameters() -> None:
    excessive = {
        name: len(names)
        for name, node in _functions("hubbub/network/", "hubbub/client/")
        if len(names := _parameters(node.args)) > MOST_PARAMETERS
    }
    assert excessive == {}


MOST_LINES_OF_A_MODULE = 500
MOST_LINES_OF_A_FUNCTION = 60
"""Lines of the body, without signature and docstring."""


def test_modules_and_functions_stay_within_the_length_limits() -> None:
    modules = {name: (ROOT / name).read_text().count("\n") for name in _definitions()}
    functions = {name: _length(node) for name, node in _functions("hubbub/")}
    assert {name: n for name, n in modules.items() if n > MOST_LINES_OF_A_MODULE} == {}
    assert {name: n for name, n in functions.items() if n > MOST_LINES_OF_A_FUNCTION} == {}


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[ast.get_docstring(node) is not None :] or node.body
    return (node.end_lineno or 0) - first[0].lineno + 1


def test_the_conftest_imports_no_package_of_the_dev_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    few, all_ = (
        {re.split(r"[\[>=]", each)[0] for name in names for each in extras[name]}
        for names in (["test"], ["dev", *re.findall(r"\w+", extras["dev"][0])[1:]])
    )
    assert few < all_
    read = "import sys, tests.conftest; print(*{each.partition('.')[0] for each in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", read], cwd=ROOT, capture_output=True, check=True)
    packages = packages_distributions()
    loaded = {one for each in ran.stdout.decode().split() for one in packages.get(each, ())}
    assert loaded & (all_ - few) == set()


def _parameters(given: ast.arguments) -> list[str]:
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]
