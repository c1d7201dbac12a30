"""The JSON Schema for editors, and the amounts it allows."""

from __future__ import annotations

import json
import re
from typing import cast

import pytest
from pydantic import JsonValue, TypeAdapter, ValidationError

from hubbub.config.models import NetworkFile
from hubbub.config.schema import json_schema
from hubbub.config.units import Size, Span

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
def test_the_schema_is_json_and_names_every_section() -> None:
    schema = json.loads(json.dumps(json_schema()))
    sections = set(NetworkFile.model_fields) | {"include"}
    assert set(schema["properties"]) == sections
    assert schema["additionalProperties"] is False
    assert schema["$schema"].startswith("https://json-schema.org/")


def test_the_schema_uses_the_names_of_the_yaml_and_explains_them() -> None:
    definitions = cast(dict[str, Schema], json_schema()["$defs"])
    fields = cast(dict[str, Schema], definitions["AgentConfig"]["properties"])
    assert "class" in fields
    assert "class_" not in fields
    assert "file.py:ClassName" in cast(str, fields["class"]["description"])


def test_amounts_are_numbers_or_texts_with_units() -> None:
    frame = resolve(json_schema(), "network", "limits", "frame")
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(frame))
    texts = [re.compile(json.loads(pattern)) for pattern in patterns]
    for good in ("256KiB", "1 MB", "1.5MiB", "12", "${FRAME}"):
        assert any(p.search(good) for p in texts), good
    for bad in ("256XB", "lots", "MB"):
        assert not any(p.search(bad) for p in texts), bad


def test_where_a_number_or_switch_stands_a_variable_may_stand() -> None:
    network = resolve(json_schema(), "network")
    switch = cast(Schema, cast(Schema, network["properties"])["compression"])
    branches = cast(list[Schema], switch["anyOf"])
    assert {"type": "boolean"} in branches
    assert any(branch.get("pattern") == r"\$\{" for branch in branches)
    assert switch["default"] is False
    assert "description" in switch


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), (5, 5), ("256KiB", 262144), ("256kib", 262144), ("1MB", 10**6), ("32k", 32768)],
)
def test_sizes_are_bytes(text: object, size: int) -> None:
    assert TypeAdapter(Size).validate_python(text) == size


@pytest.mark.parametrize(
    ("text", "span"),
    [(3, 3.0), ("500ms", 0.5), ("10s", 10.0), ("1.5m", 90.0), ("2h", 7200.0), ("1d", 86400.0)],
)
def test_spans_are_seconds(text: object, span: float) -> None:
    assert TypeAdapter(Span).validate_python(text) == pytest.approx(span)


@pytest.mark.parametrize("text", ["", "x", "5 bananas", "-5", "1e3", 0, -1, "0", None, [1]])
def test_what_is_no_amount_is_refused(text: object) -> None:
    for amount in (Size, Span):
        with pytest.raises(ValidationError):
            TypeAdapter(amount).validate_python(text)
