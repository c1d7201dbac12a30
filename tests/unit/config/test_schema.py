"""The JSON Schema for editors."""

from __future__ import annotations

import json
import re
from typing import cast

import pytest
from pydantic import JsonValue

from hubbub.config.models import NetworkFile, json_schema

Schema = dict[str, JsonValue]


def resolve(schema: Schema, *keys: str) -> Schema:
    """The subschema of nested properties, with references resolved."""
    node = schema
    for key in keys:
        node = cast(Schema, cast(Schema, node.get("properties", {}))[key])
        if "$ref" in node:
            name = cast(str, node["$ref"]).rpartition("/")[2]
            node = cast(Schema, cast(Schema, schema["$defs"])[name])
    return node


@pytest.fixture
def schema() -> Schema:
    return cast(Schema, json.loads(json.dumps(json_schema())))


@pytest.mark.behaviour("L-8")
def test_the_schema_has_exactly_the_keys_of_the_yaml_with_descriptions(schema: Schema) -> None:
    properties = cast(Schema, schema["properties"])
    assert set(properties) == set(NetworkFile.model_fields) | {"include"}
    assert schema["additionalProperties"] is False
    assert cast(str, schema["$schema"]).startswith("https://json-schema.org/")
    agent = cast(dict[str, Schema], schema["$defs"])["AgentConfig"]
    fields = cast(dict[str, Schema], agent["properties"])
    assert "class_" not in fields
    assert "file.py:ClassName" in cast(str, fields["class"]["description"])
    forms = cast(list[Schema], cast(Schema, properties["knowledge"])["anyOf"])
    assert [form["type"] for form in forms] == ["array", "object"]
    assert "'not has_skills'" in str(schema)
    assert "'has_tools'" in str(schema)


def test_the_schema_accepts_sizes_with_units_and_variables(schema: Schema) -> None:
    frame = json.dumps(resolve(schema, "network", "limits", "frame"))
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', frame)
    regexes = [re.compile(json.loads(pattern)) for pattern in patterns]
    for valid in ("256KiB", "1 MB", "1.5MiB", "12", "${FRAME}"):
        assert any(regex.search(valid) for regex in regexes), valid
    for invalid in ("256XB", "lots", "MB"):
        assert not any(regex.search(invalid) for regex in regexes), invalid


def test_the_schema_accepts_a_variable_in_place_of_a_switch(schema: Schema) -> None:
    switch = cast(Schema, resolve(schema, "network")["properties"])["compression"]
    assert isinstance(switch, dict)
    branches = cast(list[Schema], switch["anyOf"])
    assert {"type": "boolean"} in branches
    assert any(branch.get("pattern") == r"\$\{" for branch in branches)
    assert switch["default"] is False
    assert "description" in switch
