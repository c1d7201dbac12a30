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
    """The subschema at nested properties, references followed."""
    here = schema
    for key in keys:
        here = cast(Schema, cast(Schema, here.get("properties", {}))[key])
        if "$ref" in here:
            name = cast(str, here["$ref"]).rpartition("/")[2]
            here = cast(Schema, cast(Schema, schema["$defs"])[name])
    return here


@pytest.mark.behaviour("L-8")
def test_the_schema_names_and_explains_what_the_yaml_may_have() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert set(schema["properties"]) == set(NetworkFile.model_fields) | {"include"}
    assert schema["additionalProperties"] is False
    assert schema["$schema"].startswith("https://json-schema.org/")

    fields = cast(dict[str, Schema], schema["$defs"]["AgentConfig"]["properties"])
    assert "class_" not in fields
    assert "file.py:ClassName" in cast(str, fields["class"]["description"])

    frame = json.dumps(resolve(schema, "network", "limits", "frame"))
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', frame)
    texts = [re.compile(json.loads(pattern)) for pattern in patterns]
    for good in ("256KiB", "1 MB", "1.5MiB", "12", "${FRAME}"):
        assert any(p.search(good) for p in texts), good
    for bad in ("256XB", "lots", "MB"):
        assert not any(p.search(bad) for p in texts), bad

    # Where a number or switch stands a variable may stand.
    switch = cast(Schema, resolve(schema, "network")["properties"])["compression"]
    assert isinstance(switch, dict)
    branches = cast(list[Schema], switch["anyOf"])
    assert {"type": "boolean"} in branches
    assert any(branch.get("pattern") == r"\$\{" for branch in branches)
    assert switch["default"] is False
    assert "description" in switch

    forms = cast(list[Schema], schema["properties"]["knowledge"]["anyOf"])
    assert [form["type"] for form in forms] == ["array", "object"]
    assert "'not has_skills'" in str(schema)
    assert "'has_tools'" in str(schema)
