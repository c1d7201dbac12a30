"""Models whose fields are documented by the docstrings below them, read on demand.

pydantic's `use_attribute_docstrings` does the same while creating the class: it reads and parses
the source for each one, which took longer than everything else that a command does.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

__all__ = ["Documented", "descriptions"]


_SCHEMAS = WeakKeyDictionary[type[BaseModel], dict[tuple[Any, ...], dict[str, Any]]]()
"""By what was asked for; weak, because programs make models of their own, too."""


class Documented(BaseModel):
    """A model that is built, with descriptions of its fields, on first use."""

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def model_json_schema(cls, *args: Any, **named: Any) -> dict[str, Any]:  # Any: as in pydantic
        """As in pydantic, but cached, as it takes milliseconds and roles need theirs for each
        question."""
        schemas, key = _SCHEMAS.setdefault(cls, {}), (args, tuple(named.items()))
        if key not in schemas:
            schemas[key] = super().model_json_schema(*args, **named)
        return deepcopy(schemas[key])

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in descriptions(cls).items():
            field = cls.model_fields[name]
            for alias in (name, field.validation_alias, field.serialization_alias):
                if isinstance(alias, str) and alias in properties:
                    properties[alias]["description"] = text
        return schema


def descriptions(model: type[BaseModel]) -> Mapping[str, str]:
    """The descriptions of a model's documented fields, by name."""
    docstrings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base is not Documented and issubclass(base, Documented):
            docstrings.update(_texts(base.__module__).get(base.__qualname__, {}))
    explicit = {name: field.description for name, field in model.model_fields.items()}
    return {name: text for name in explicit if (text := explicit[name] or docstrings.get(name))}


@cache
def _texts(module: str) -> Mapping[str, Mapping[str, str]]:
    """The field docstrings of all classes of a module, by the class's qualified name."""
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):  # created at run time, or installed without source
        return {}
    return dict(_classes(ast.parse(source), ""))


def _classes(node: ast.AST, place: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef(name=name):
                yield f"{place}{name}", dict(_fields(child))
                yield from _classes(child, f"{place}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _classes(child, f"{place}{name}.<locals>.")
            case _:
                yield from _classes(child, place)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(docstring))),
            ):
                yield name, inspect.cleandoc(docstring)
