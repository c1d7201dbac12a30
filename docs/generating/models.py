"""Pydantic models as tables of their fields."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from generating.tables import docstring, table
from hubbub.protocol import thread_ids

__all__ = ["fields", "models_of", "section"]

Schema = dict[str, Any]  # JSON Schema, walked with the checks that its kinds need


def fields(model: type[BaseModel], *, given: bool = True, skip: Sequence[str] = ()) -> str:
    """A table of a model's fields; `given`: by the reader, who wants to know the defaults."""
    schema = _schema(model)
    must = schema.get("required", [])
    rows = []
    for name, field in schema.get("properties", {}).items():
        if name not in skip:
            default = "required" if name in must else _default(field)
            meaning = field.get("description", "")
            rows.append((f"`{name}`", _type(field, schema), default, meaning))
    if given:
        return table(("field", "type", "default", "meaning"), rows)
    return table(("field", "type", "meaning"), [(name, kind, text) for name, kind, _, text in rows])


@cache
def _schema(model: type[BaseModel]) -> Schema:
    return model.model_json_schema()


def _default(field: Schema) -> str:
    value = field.get("default")
    if value is None or value == "" or isinstance(value, list | dict):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    unit = _unit(field)
    if unit == "size" and value % 1024 == 0:
        return f"`{value // 1024}KiB`" if value < 1024**2 else f"`{value // 1024**2}MiB`"
    return f"`{value:g}s`" if unit == "span" else f"`{value}`"


def _unit(field: Schema) -> str:
    """`size` or `span` for values that may be written with a unit."""
    patterns = [option.get("pattern", "") for option in field.get("anyOf", [])]
    if any("KiB" in pattern for pattern in patterns):
        return "size"
    return "span" if any("|ms|" in pattern for pattern in patterns) else ""


def _type(field: Schema, root: Schema) -> str:
    """A JSON Schema in words."""
    match field:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            target = root.get("$defs", {}).get(name, {})
            return str(name) if target.get("type") == "object" else _type(target, root)
        case {"const": value}:
            return f"`{value}`"
        case {"enum": list(values)}:
            return " or ".join(f"`{value}`" for value in values)
        case {"anyOf": list(options)} if _unit(field):
            return (
                "a number, or `32k`, `256KiB`" if _unit(field) == "size" else "a time: s, or `10m`"
            )
        case {"oneOf": list(options)}:
            return " or ".join(_type(option, root) for option in options)
        case {"anyOf": list(options)}:
            kinds = [_type(option, root) for option in options if option != {"type": "null"}]
            return " or ".join(dict.fromkeys(kinds))
        case {"type": "array"}:
            return f"list of {_type(field.get('items', {}), root)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"map to {_type(values, root)}"
        case {"type": "object", "patternProperties": dict(patterns)}:
            return f"map to {_type(next(iter(patterns.values())), root)}"
        case {"type": "string", "format": "date-time" | "regex" as kind}:
            return "time (RFC 3339)" if kind == "date-time" else "pattern"
        case {"type": "string"}:
            return "text" + _bounds(field, "Length", " characters")
        case {"type": "integer" | "number" as kind}:
            return f"{kind}{_bounds(field, 'imum', '')}"
        case {"type": str(kind)}:
            return kind
        case _:
            return "any JSON"


def _bounds(field: Schema, kind: str, unit: str) -> str:
    low, high = field.get(f"min{kind}"), field.get(f"max{kind}")
    above = field.get("exclusiveMinimum")
    if field.get("pattern") == thread_ids.ID_PATTERN:
        return " (an id)"
    if kind == "Length" and "pattern" in field:
        return f" like `{field['pattern']}`"
    if above is not None:
        return f" over {above}"
    if low is not None and high is not None and high < 2**60:
        return f" ({low} to {high}{unit})"
    if low == 1 and kind == "Length":
        return " (not empty)"
    if low is not None:
        return f" (at least {low}{unit})"
    return f" (at most {high}{unit})" if high is not None and high < 2**60 else ""


def models_of(*roots: type[BaseModel], module: ModuleType) -> list[type[BaseModel]]:
    """The models that the roots are made of and that `module` defines, roots included."""
    names = [root.__name__ for root in roots]
    for root in roots:
        names += _schema(root).get("$defs", {})
    found = [getattr(module, name, None) for name in dict.fromkeys(names)]
    return [model for model in found if isinstance(model, type) and issubclass(model, BaseModel)]


def section(model: type[BaseModel]) -> str:
    """A model that the reader is sent."""
    own = docstring(model) if vars(model).get("__doc__") else ""
    return f"### {model.__name__}\n\n{own + chr(10) * 2 if own else ''}{fields(model, given=False)}"
