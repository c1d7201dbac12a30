"""What one finds in `hubbub/mods`, and where."""

from __future__ import annotations

import ast
from pathlib import Path

import hubbub.mods

ROOT = Path(hubbub.mods.__file__).parent


def test_each_folder_says_what_is_inside() -> None:
    for folder in (ROOT, *(each for each in ROOT.iterdir() if (each / "mod.py").is_file())):
        about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        assert about is not None
        assert {name for name in modules if name not in about} == set(), folder
