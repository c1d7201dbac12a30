"""Writes docs/reference/*.md, pages of docs/explanation and the types of the client in TypeScript
from the code: `make docs`.
tests/unit/test_docs.py holds them to it.

Everything that can be derived is derived: models, codes, operations, config, commands, metrics, the
prompt. The words around it stand in `templates` beside the pages, `{{ name }}` for each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from generating.agents import model_server_parts, prompt_parts, python_parts
from generating.commands import operations_json, schemas_json
from generating.frameworks import frameworks_parts
from generating.network import cli_parts, config_parts
from generating.public_api import public_api_parts
from generating.typescript import typescript_types
from generating.wakes import wakes_parts
from generating.wire import operations_parts, protocol_parts

__all__ = ["pages"]

HERE = Path(__file__).parent
TEMPLATES = HERE / "reference" / "templates"
SCHEMAS = HERE.parent / "hubbub" / "mods" / "schemas.json"
OPERATIONS = HERE.parent / "hubbub" / "people" / "operations.json"
TYPES = HERE.parent / "sdk" / "typescript" / "src" / "operations.d.ts"
FOLDERS = (HERE / "reference", HERE / "explanation")


def pages() -> dict[Path, str]:
    """All generated pages, by path."""
    parts = {**protocol_parts(), **operations_parts(), **config_parts(), **cli_parts()}
    parts |= {**prompt_parts(), **python_parts(), **model_server_parts(TEMPLATES / "script.yaml")}
    parts |= wakes_parts()
    parts |= frameworks_parts()
    parts |= public_api_parts()
    found = {
        folder / template.name: _filled(template.read_text("utf-8"), parts)
        for folder in FOLDERS
        for template in sorted((folder / "templates").glob("*.md"))
    }
    data = {SCHEMAS: schemas_json(), OPERATIONS: operations_json(), TYPES: typescript_types()}
    return found | data


def _filled(template: str, parts: Mapping[str, str]) -> str:
    return re.sub(r"\{\{\s(\w+)\s+\}\}", lambda match: parts[match[1]].strip("\n"), template)


def main() -> None:
    """Write the pages that have changed."""
    _write(SCHEMAS, schemas_json())  # first: what is told of operations is read from it
    _write(OPERATIONS, operations_json())  # then: the commands are read from it
    for path, text in pages().items():
        _write(path, text)


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")
        print(f"wrote {path.relative_to(HERE.parent)}")  # noqa: T201  a program's output


if __name__ == "__main__":
    main()
