"""The shape of the package, as its own imports tell it."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
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
