"""Whatever an operation takes is bounded: names have a length, lists a size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import pytest

from hubbub.mods.api import Mod
from hubbub.mods.loader import BUILT_IN, settings_of
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.protocol.frames import Ack, Identify, Signal

TEXTS = re.compile(
    r"\b(text|content|text_representation|task|value|reason|reasoning|result|error|notes|lines|prompt"
    r"|system_prompt|arguments|schema|settings|data|card)(\[\]|\{\})*$"
)
"""What somebody says, or a program notes: as long as a text or a frame may be."""

Schema = Mapping[str, Any]  # a JSON Schema, as pydantic gives it


@pytest.mark.behaviour("B-11")
def test_every_name_has_a_length_and_every_list_a_size() -> None:
    taken = {frame.__name__: frame.model_json_schema() for frame in (Identify, Ack, Signal)}
    for mod in _mods():
        taken |= {each.name: each.input.model_json_schema() for each in mod.operations()}
    taken |= {each.name: each.input.model_json_schema() for each in CORE_OPERATIONS}
    unbounded = [
        f"{name}{place}"
        for name, schema in taken.items()
        for place in _unbounded(schema, schema, "", frozenset())
    ]
    assert unbounded == []


def _mods() -> Iterator[Mod]:
    for place in BUILT_IN.values():
        module, _, name = place.partition(":")
        kind: type[Mod] = getattr(import_module(module), name)
        yield kind(settings_of(kind, {}))


def _unbounded(schema: Schema, root: Schema, place: str, above: frozenset[str]) -> Iterator[str]:
    """The places of what has no bound; a part that stands within itself is looked at once."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in above:
            yield from _unbounded(root["$defs"][name], root, place, above | {name})
        return
    kind = schema.get("type")
    if kind == "array" and "maxItems" not in schema:
        yield f"{place}: list"
    if not TEXTS.search(place) and (
        (kind == "string" and not _is_short(schema))
        or (kind == "object" and "properties" not in schema)
    ):
        yield f"{place}: {kind}"
    for each in schema.get("anyOf", ()):
        yield from _unbounded(each, root, place, above)
    if isinstance(schema.get("items"), dict):
        yield from _unbounded(schema["items"], root, f"{place}[]", above)
    for name, field in schema.get("properties", {}).items():
        yield from _unbounded(field, root, f"{place}.{name}", above)


def _is_short(schema: Schema) -> bool:
    fixed = any(each in schema for each in ("maxLength", "enum", "const", "format"))
    return fixed or re.search(r"\{\d+(,\d+)?\}\$$", schema.get("pattern", "")) is not None
