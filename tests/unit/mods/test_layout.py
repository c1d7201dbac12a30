"""What one finds in `hubbub/mods`, and where."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import hubbub.mods

ROOT = Path(hubbub.mods.__file__).parent


def test_a_class_has_its_name_alone_and_no_module_is_long() -> None:
    places = defaultdict[str, list[str]](list)
    for path in ROOT.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert source.count("\n") <= 500, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_each_folder_says_what_is_inside() -> None:
    for folder in (ROOT, *(each for each in ROOT.iterdir() if (each / "mod.py").is_file())):
        about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        assert about is not None
        assert {name for name in modules if name not in about} == set(), folder
