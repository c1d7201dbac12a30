"""The layout of `hubbub/mods`."""

from __future__ import annotations

import ast
from pathlib import Path

import hubbub.mods

ROOT = Path(hubbub.mods.__file__).parent


def test_the_docstring_of_each_mod_folder_names_its_modules() -> None:
    for folder in (ROOT, *(each for each in ROOT.iterdir() if (each / "mod.py").is_file())):
        docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8")))
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        assert docstring is not None
        assert {name for name in modules if name not in docstring} == set(), folder
