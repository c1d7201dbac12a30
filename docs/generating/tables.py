"""Markdown tables, and what docstrings say."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import ModuleType

__all__ = ["docs_of_fields", "docs_of_members", "docstring", "table"]


def table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def docstring(thing: object) -> str:
    """The docstring's first paragraph as one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def docs_of_fields(module: ModuleType | None, class_name: str) -> dict[str, str]:
    """The strings below the fields of a dataclass."""
    assert module is not None
    tree = ast.parse(inspect.getsource(module))
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def docs_of_members(module: ModuleType, class_name: str) -> dict[str, str]:
    """The strings below the members of a class, which Python itself does not keep."""
    tree = ast.parse(inspect.getsource(module))
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name)
    found: dict[str, str] = {}
    for statement, following in pairwise(body):
        if not isinstance(statement, ast.Assign) or not isinstance(following, ast.Expr):
            continue
        name, text = statement.targets[0], following.value
        if isinstance(name, ast.Name) and isinstance(text, ast.Constant):
            found[name.id] = " ".join(str(text.value).split())
    return found
