"""The operations that come with Hubbub, as data that is read in place of their models.

`hubbub/people/operations.json` has them as commands see them, `hubbub/mods/schemas.json` as the hub
describes them.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator

from pydantic import JsonValue

from hubbub.mods.loader import BUILT_IN, find_mod
from hubbub.mods.operation import Operation, answer_schema, model_key
from hubbub.network.operations import CORE_OPERATIONS

__all__ = ["declared", "operations_json", "schemas_json"]

_UNUSED = frozenset({"title", "additionalProperties", "$defs", "maxLength", "minLength"})


def operations_json() -> str:
    """One operation a line, by name."""
    told = {operation.name: _told(mod, operation) for mod, operation in declared()}
    lines = (f"{json.dumps(name)}: {json.dumps(told[name])}" for name in sorted(told))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def schemas_json() -> str:
    """One model a line: what an operation takes or answers."""
    made: dict[str, JsonValue] = {}
    for _, operation in declared():
        taken, answered = operation.input, operation.output
        made[model_key(taken)] = taken.model_json_schema()
        made[model_key(answered)] = answer_schema(answered)
    lines = (f"{json.dumps(key)}: {json.dumps(made[key])}" for key in sorted(made))
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
