"""Tools in fewer words, where there is no room for all that is told of them. Pure.

A tool never vanishes, and what is left of its schema stays true: the short form has the same
schema without its explanations, the bare one accepts any object and names the arguments. What a
call is given is checked by the whole schema in every case.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.turn.loop import FINISH

__all__ = ["bare", "short"]

_WHOLE = frozenset({FINISH, SELECT})
"""`finish` is short; the description of `use_tools` is what it offers."""
_NAMES = "properties"
"""The keyword whose keys are names of the tool's, not keywords."""
_VALUES = ("enum", "default", "required")
_TALK = "description"


def short(spec: ToolSpec) -> ToolSpec:
    """With the first sentence of its description, and a schema without explanations."""
    if spec.name in _WHOLE:
        return spec
    sentence = " ".join(spec.description.split()).partition(". ")[0]
    return replace(spec, description=sentence, parameters=_terse(spec.offered))


def bare(spec: ToolSpec) -> ToolSpec:
    """With its name, and the names of its arguments."""
    if spec.name in _WHOLE:
        return spec
    known = spec.parameters.get("properties")
    names = ", ".join(known) if isinstance(known, dict) else ""
    told = f"Arguments: {names}" if names else ""
    return replace(spec, description=told, parameters={"type": "object"})


def _terse(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {key: _inner(key, value) for key, value in schema.items() if key != _TALK}


def _inner(key: str, value: JsonValue) -> JsonValue:
    if key in _VALUES:
        return value
    if isinstance(value, dict):
        if key == _NAMES:
            return {n: _terse(v) if isinstance(v, dict) else v for n, v in value.items()}
        return _terse(value)
    if isinstance(value, list):
        return [_terse(item) if isinstance(item, dict) else item for item in value]
    return value
