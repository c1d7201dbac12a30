"""The shape of the package, as its own imports tell it."""

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


def test_no_modules_import_each_other_in_a_circle_not_even_for_types() -> None:
    graph = grimp.build_graph("hubbub", cache_dir=None)
    imports = {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


def test_the_page_on_architecture_names_files_that_are_there() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text()
    named = set(re.findall(r"\b((?:network|protocol|mods|agents|client)/[\w/]+\.py)\b", page))
    assert named
    assert {name for name in named if not (ROOT / "hubbub" / name).exists()} == set()


ONE_BY_ONE = {"hubbub", "hubbub/cli", "hubbub/people/groups"}
"""Folders whose modules stand beside each other, each for one subject that its name says."""


def test_the_first_lines_of_a_folder_name_most_of_what_is_in_it() -> None:
    for path in sorted((ROOT / "hubbub").rglob("__init__.py")):
        folder = str(path.parent.relative_to(ROOT))
        modules = {each.stem for each in path.parent.glob("*.py")} - {"__init__"}
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        missing = {name for name in modules if not re.search(rf"\b{name}\b", text)}
        if folder not in ONE_BY_ONE:
            assert 2 * len(missing) <= max(len(modules), 3), f"{folder} does not name {missing}"


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _definitions() -> Mapping[str, Sequence[Definition]]:
    """The classes and functions of each module of the package, by its path."""
    paths = sorted((ROOT / "hubbub").rglob("*.py"))
    return {str(path.relative_to(ROOT)): [*_within(ast.parse(path.read_text()))] for path in paths}


def _within(node: ast.AST) -> Iterator[Definition]:
    """Definitions stand in statements alone: expressions, most of all there is, need no look."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, name, ()):
            if isinstance(child, Definition):
                yield child
            yield from _within(child)


def _functions(*folders: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, found in _definitions().items():
        if path.startswith(folders):
            for node in found:
                if not isinstance(node, ast.ClassDef):
                    yield f"{path}:{node.lineno} {node.name}", node


def test_no_two_classes_of_the_package_have_the_same_name() -> None:
    places = defaultdict(list)
    for path, found in _definitions().items():
        for node in found:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


MOST_PARAMETERS = 7


def test_no_function_of_hub_and_client_has_more_parameters_than_one_can_hold_in_mind() -> None:
    found = {
        name: len(names)
        for name, node in _functions("hubbub/network/", "hubbub/client/")
        if len(names := _parameters(node.args)) > MOST_PARAMETERS
    }
    assert found == {}


MOST_LINES_OF_A_MODULE = 500
MOST_LINES_OF_A_FUNCTION = 60
"""Of its body, without its signature and what its docstring says."""


def test_no_module_and_no_function_is_longer_than_one_can_overlook() -> None:
    modules = {name: (ROOT / name).read_text().count("\n") for name in _definitions()}
    functions = {name: _length(node) for name, node in _functions("hubbub/")}
    assert {name: n for name, n in modules.items() if n > MOST_LINES_OF_A_MODULE} == {}
    assert {name: n for name, n in functions.items() if n > MOST_LINES_OF_A_FUNCTION} == {}


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[ast.get_docstring(node) is not None :] or node.body
    return (node.end_lineno or 0) - first[0].lineno + 1


def test_tests_of_frameworks_are_read_without_what_their_environment_leaves_out() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (project["optional-dependencies"][name] for name in ("test", "dev"))
    few, all_ = ({re.split(r"[\[>=]", each)[0] for each in extra} for extra in extras)
    assert few < all_
    read = "import sys, tests.conftest; print(*{each.partition('.')[0] for each in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", read], cwd=ROOT, capture_output=True, check=True)
    packages = packages_distributions()
    loaded = {one for each in ran.stdout.decode().split() for one in packages.get(each, ())}
    assert loaded & (all_ - few) == set()


def _parameters(given: ast.arguments) -> list[str]:
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]
