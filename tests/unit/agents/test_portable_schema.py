"""The portable form of a tool's JSON Schema, which models are offered."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.models.portable_schema import portable, strict, without_nulls

STRING: dict[str, JsonValue] = {"type": "string"}
INTEGER: dict[str, JsonValue] = {"type": "integer"}
KINDS = {"string", "integer", "number", "boolean", "array", "object", "null"}
KNOWN = {
    *("type", "enum", "anyOf", "properties", "required", "additionalProperties", "items"),
    *("minLength", "minItems", "minimum", "maximum", "description", "default"),
}


def argument(
    schema: JsonValue, *, required: bool = False, **beside: JsonValue
) -> Mapping[str, JsonValue]:
    """The offered schema of an argument with this schema."""
    names: list[JsonValue] = ["a"] if required else []
    written = portable({"properties": {"a": schema}, "required": names, **beside})
    properties = written["properties"]
    assert isinstance(properties, dict)
    offered = properties["a"]
    assert isinstance(offered, dict)
    return offered


def test_an_argument_is_offered_in_a_form_that_all_engines_accept() -> None:
    cases: list[tuple[JsonValue, JsonValue]] = [
        ({"type": "string", "maxLength": 2048, "minLength": 3}, {**STRING, "minLength": 1}),
        ({"type": "string", "minLength": 0}, STRING),
        (
            {"type": "string", "pattern": "^t[0-9]+$", "description": "The\n task."},
            {**STRING, "description": "The task."},
        ),
        ({"type": "string", "format": "uuid"}, {**STRING, "description": "(format: uuid)"}),
        ({"type": "string", "pattern": "x" * 500}, STRING),
        ({"type": "integer", "minimum": 1, "maximum": 2**62}, {**INTEGER, "minimum": 1}),
        ({"type": "number", "multipleOf": 0.5, "maximum": 1}, {"type": "number"}),
        (
            {"type": "array", "uniqueItems": True, "minItems": 2, "maxItems": 5, "items": INTEGER},
            {"type": "array", "items": INTEGER, "minItems": 1},
        ),
        ({"const": "x"}, {**STRING, "enum": ["x"]}),
        ({"enum": ["x", 1]}, {"enum": ["x", 1]}),
        ({"enum": ["x", None]}, {**STRING, "enum": ["x"]}),
        ({"anyOf": [STRING, {"type": "null"}], "default": None}, STRING),
        ({"type": ["integer", "null"]}, INTEGER),
        ({"oneOf": [STRING, INTEGER]}, {"anyOf": [STRING, INTEGER]}),
        ({"anyOf": [STRING, {"anyOf": [INTEGER, STRING]}]}, {"anyOf": [STRING, INTEGER]}),
        ({"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "x"}]}, STRING),
        ({"type": "object"}, {"type": "object"}),
        (
            {"type": "object", "additionalProperties": INTEGER},
            {"type": "object", "additionalProperties": INTEGER},
        ),
        (
            {"properties": {"b": INTEGER, "a": STRING}, "required": ["a", "gone"]},
            {"type": "object", "properties": {"a": STRING, "b": INTEGER}, "required": ["a"]},
        ),
        (
            {"allOf": [{"properties": {"a": STRING}}, {"properties": {"b": INTEGER}}]},
            {"type": "object", "properties": {"a": STRING, "b": INTEGER}},
        ),
        ({**STRING, "default": "", "examples": ["x"], "title": "A", "x-mine": 1}, STRING),
        ({**INTEGER, "default": 50}, {**INTEGER, "default": 50}),
    ]
    for schema, offered in cases:
        assert argument(schema) == offered
    nullable: JsonValue = {"anyOf": [STRING, {"type": "null"}]}
    assert argument(nullable) == STRING
    assert argument(nullable, required=True) == nullable
    kinds = argument({})["anyOf"]
    assert isinstance(kinds, list)
    assert {kind["type"] for kind in kinds if isinstance(kind, dict)} == KINDS - {"integer", "null"}


def test_the_top_level_is_an_object_that_merges_alternatives() -> None:
    assert portable({}) == {"type": "object", "properties": {}, "additionalProperties": True}
    closed = {"type": "object", "properties": {}}
    assert portable({"type": "object", "properties": {}, "additionalProperties": False}) == closed
    alternatives: list[JsonValue] = [
        {"properties": {"by": {"const": "id"}, "id": INTEGER}, "required": ["by", "id"]},
        {"properties": {"by": {"const": "name"}, "name": STRING}, "required": ["by"]},
    ]
    merged = portable({"oneOf": alternatives})
    by: JsonValue = {**STRING, "enum": ["name"]}
    assert "anyOf" not in merged
    assert merged["required"] == ["by"]
    assert merged["properties"] == {"by": by, "id": INTEGER, "name": STRING}


def test_a_strict_schema_requires_all_arguments_and_omitted_ones_are_null() -> None:
    inner: Any = {
        "properties": {"n": {**INTEGER, "default": 3}, "s": STRING},
        "required": ["s"],
    }
    both: Any = {
        "properties": {
            "a": {**STRING, "description": "Words.", "minLength": 1},
            "b": {"type": "array", "items": inner, "minItems": 1},
            "c": {"anyOf": [STRING, INTEGER]},
        },
        "required": ["b"],
    }
    offered = portable(both)
    null: Any = {"type": "null"}
    closed: Any = {"type": "object", "additionalProperties": False}
    assert strict(offered) == {
        **closed,
        "required": ["b", "a", "c"],
        "properties": {
            "a": {"anyOf": [STRING, null], "description": "Words."},
            "b": {
                "type": "array",
                "minItems": 1,
                "items": {
                    **closed,
                    "required": ["s", "n"],
                    "properties": {"s": STRING, "n": {"anyOf": [INTEGER, null]}},
                },
            },
            "c": {"anyOf": [STRING, INTEGER, null]},
        },
    }
    written: JsonValue = {"a": None, "b": [{"n": None, "s": "x"}, {"n": 1, "s": "y"}], "c": None}
    assert without_nulls(offered, written) == {"b": [{"s": "x"}, {"n": 1, "s": "y"}]}
    required = portable({"properties": {"a": {"anyOf": [STRING, null]}}, "required": ["a"]})
    assert without_nulls(required, {"a": None, "odd": None}) == {"a": None, "odd": None}
    opened: Any = ({}, {"type": "object"}, {"additionalProperties": INTEGER})
    for open_one in opened:
        assert strict(portable({"properties": {"a": open_one}})) is None
    assert strict(portable({})) is None


class Node(BaseModel):
    name: str = Field(max_length=3000)
    below: list[Node] = []


class Tree(BaseModel):
    root: Node = Field(description="Where it begins.")


def test_references_are_resolved_and_recursion_ends() -> None:
    written = portable(Tree.model_json_schema())
    assert "$" not in ToolSpec("tree", "", written).offered_text
    root = written["properties"]
    assert isinstance(root, dict)
    assert isinstance(root["root"], dict)
    assert root["root"]["description"] == "Where it begins."
    below = root["root"]["properties"]
    assert isinstance(below, dict)
    assert "anyOf" in str(below["below"])


def test_an_exponentially_growing_schema_is_offered_in_bounded_size() -> None:
    doubling: dict[str, JsonValue] = {
        f"D{n}": {"properties": {side: {"$ref": f"#/$defs/D{n + 1}"} for side in "ab"}}
        for n in range(60)
    }
    deep: JsonValue = STRING
    for _ in range(200):
        deep = {"allOf": [{"anyOf": [deep, {"type": "array", "items": deep}]}]}
    written = portable({"$defs": doubling, "properties": {"x": doubling["D0"], "y": deep}})
    assert sum(1 for _ in _schemas(written)) < 5000


TYPES: tuple[JsonValue, ...] = (*KINDS, "odd", ["string", "null"], ["integer", "object"])
REFERENCES: tuple[JsonValue, ...] = ("#", "#/properties/a", "#/$defs/a", "elsewhere")
ODDS: tuple[JsonValue, ...] = (None, True, 0, "x", [], {}, ["x"], [1, None], {"a": 1})


def _random_schema(dice: random.Random, depth: int) -> JsonValue:
    """A schema or something else; smaller at greater depth."""
    if depth > 3 or dice.random() < 0.15:
        return dice.choice(ODDS)

    def inner() -> JsonValue:
        return _random_schema(dice, depth + 1)

    def several() -> list[JsonValue]:
        return [inner() for _ in range(dice.randrange(4))]

    def named() -> dict[str, JsonValue]:
        return {name: inner() for name in dice.sample("abc", dice.randrange(4))}

    made: dict[str, Callable[[], JsonValue]] = {
        "type": lambda: dice.choice(TYPES),
        "$ref": lambda: dice.choice(REFERENCES),
        **dict.fromkeys(("properties", "$defs"), named),
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), several),
        **dict.fromkeys(("items", "not", "if", "additionalProperties"), inner),
        **dict.fromkeys(
            ("enum", "const", "default", "minimum", "minLength", "pattern", "required"),
            lambda: dice.choice(ODDS),
        ),
    }
    return {key: made[key]() for key in dice.sample([*made], dice.randrange(1, 5))}


@given(st.randoms(use_true_random=True))
def test_any_schema_is_offered_in_a_known_form(dice: random.Random) -> None:
    schema = _random_schema(dice, 0)
    written = portable(schema if isinstance(schema, dict) else {})
    assert written["type"] == "object"
    assert isinstance(written["properties"], dict)
    for part in _schemas(written):
        assert part.keys() <= KNOWN, schema
        assert part.keys() & {"type", "enum", "anyOf"}, schema
        assert part.get("type", "object") in KINDS, schema
        assert part.get("type") != "array" or "items" in part, schema
        assert part.get("anyOf", [{}]), schema


def _schemas(schema: JsonValue) -> Iterator[dict[str, JsonValue]]:
    """The schema and all schemas in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    inner = [schema.get("items"), schema.get("additionalProperties")]
    options, properties = schema.get("anyOf"), schema.get("properties")
    inner += options if isinstance(options, list) else []
    inner += properties.values() if isinstance(properties, dict) else []
    for part in inner:
        yield from _schemas(part)
