"""How the modules of agents depend on each other."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import hubbub.agents

FOLDER = Path(hubbub.agents.__file__).parent


def test_no_module_imports_itself_by_way_of_others_not_even_for_its_types() -> None:
    names = {
        ".".join(("hubbub.agents", *path.relative_to(FOLDER).with_suffix("").parts)): path
        for path in FOLDER.rglob("*.py")
    }
    modules = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        imports = [
            n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.ImportFrom)
        ]
        wanted = {f"{n.module}.{a.name}" for n in imports for a in n.names}
        graph[name] = {w if w in modules else w.rpartition(".")[0] for w in wanted} & set(modules)
    assert len(list(TopologicalSorter(graph).static_order())) == len(modules)
