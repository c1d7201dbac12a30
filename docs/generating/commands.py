"""`hubbub/people/operations.json`: the operations that come with Hubbub, as commands see them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator

from pydantic import JsonValue

from hubbub.mods.loader import BUILT_IN, find_mod
from hubbub.mods.operation import Operation
from hubbub.network.operations import CORE_OPERATIONS

__all__ = ["declared", "operations_json"]

_UNUSED = frozenset({"title", "additionalProperties", "$defs", "maxLength", "minLength"})


def operations_json() -> str:
    """One operation a line, by name."""
    told = {operation.name: _told(mod, operation) for mod, operation in declared()}
    lines = (f"{json.dumps(name)}: {json.dumps(told[name])}" for name in sorted(told))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def declared() -> Iterator[tuple[str, Operation]]:
    """The operations of the hub and of the mods that come with it, each with its mod's name."""
    for operation in CORE_OPERATIONS:
        yield "", operation
    for name in BUILT_IN:
        kind = find_mod(name).kind
        for member in dir(kind):
            found = inspect.getattr_static(kind, member)
            if isinstance(found, Operation):
                yield name, found


def _told(mod: str, operation: Operation) -> JsonValue:
    info = operation.info()
    return {
        "mod": mod,
        "about": info.description,
        "permission": info.permission,
        "input": _short(info.input_schema),
    }


def _short(schema: JsonValue, *, names: bool = False) -> JsonValue:
    """What commands read of a schema. `names`: its keys are names of properties."""
    if isinstance(schema, list):
        return [_short(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _short(value, names=key == "properties" and not names)
        for key, value in schema.items()
        if names or key not in _UNUSED
    }
