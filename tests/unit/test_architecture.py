"""The shape of the package, as its own imports tell it."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_no_modules_import_each_other_in_a_circle_not_even_for_types() -> None:
    graph = grimp.build_graph("hubbub", cache_dir=None)
    imports = {
        each: graph.find_modules_directly_imported_by(each)
        for each in graph.modules
        if not each.startswith("hubbub.mods.")
    }
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules
