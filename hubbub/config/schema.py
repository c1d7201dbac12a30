"""The JSON Schema of the YAML, for editors that complete and check while one types."""

from __future__ import annotations

from pydantic import JsonValue

from hubbub.config.models import NetworkFile

__all__ = ["json_schema"]

_REFERENCE: JsonValue = {"type": "string", "pattern": r"\$\{"}


def json_schema() -> dict[str, JsonValue]:
    """The schema of a network file as one writes it.

    Beyond the models: `include`, and a `${NAME}` wherever a number or a switch stands.
    """
    schema: dict[str, JsonValue] = NetworkFile.model_json_schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["include"] = {
        "title": "Include",
        "description": "Files whose maps are merged underneath this one; relative to this file.",
        "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}],
    }
    loose = {key: _with_references(value) for key, value in schema.items()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **loose}


def _with_references(node: JsonValue) -> JsonValue:
    if isinstance(node, list):
        return [_with_references(value) for value in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in ("integer", "number", "boolean"):
        return _loosened(node)
    return {key: _with_references(value) for key, value in node.items()}


def _loosened(node: dict[str, JsonValue]) -> JsonValue:
    """The value itself or a reference; what describes it stays outside."""
    about = {k: v for k, v in node.items() if k in ("title", "description", "default")}
    rule: JsonValue = {k: v for k, v in node.items() if k not in about}
    about["anyOf"] = [rule, _REFERENCE]
    return about
