"""Validates arguments against a tool's JSON Schema, with errors that a model can act on. Pure.

Treats all schemas alike, whether they come from functions, the hub, mods or MCP servers. Uses the
package `jsonschema`, which implements the drafts in full; pydantic generates schemas, but cannot
validate against them. `hubbub.protocol.rules` has the limits that protect the agent from expensive
schemas and arguments.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import cast

from jsonschema.exceptions import ValidationError, best_match
from pydantic import JsonValue
from referencing.exceptions import Unresolvable

from hubbub.agents.tools.base import ToolFailed
from hubbub.protocol.rules import Rules, TooMuchWork
from hubbub.wording import did_you_mean, near, shortened

__all__ = ["ArgumentCheck"]

_MAX_ERRORS = 5
"""Maximum errors reported at once."""


class ArgumentCheck:
    """Validates arguments against `schema`, a JSON Schema of an object.

    Raises ValueError if the schema is invalid.
    """

    def __init__(self, schema: Mapping[str, JsonValue]):
        self._schema = schema
        self._rules = Rules(schema)

    def check(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The valid arguments. Parses JSON in strings (`"3"` for 3) where the schema requires it.
        Raises `ToolFailed` with the errors.
        """
        try:
            return self._checked(dict(arguments))
        except (Unresolvable, RecursionError) as exc:
            message = f"the tool's own schema cannot be followed: {exc}"
            raise ToolFailed(message, error="invalid_schema") from exc
        except TooMuchWork as exc:
            raise ToolFailed(str(exc), error="invalid_arguments", retry=True) from exc

    def _checked(self, value: JsonValue) -> dict[str, JsonValue]:
        errors = self._errors(value)
        if errors:
            value, errors = self._repair(value, errors)
        if errors:
            messages = dict.fromkeys(self._error_text(error) for error in errors[:_MAX_ERRORS])
            message = "; ".join(filter(None, messages))
            raise ToolFailed(message, error="invalid_arguments", retry=True)
        assert isinstance(value, dict)
        return value

    def _errors(self, value: JsonValue) -> list[ValidationError]:
        return sorted(self._rules.mistakes(value), key=_place)

    def _repair(
        self, value: JsonValue, errors: list[ValidationError]
    ) -> tuple[JsonValue, list[ValidationError]]:
        repaired = copy.deepcopy(value)
        changed = [_parse_string(repaired, error) for error in errors]
        if not any(changed):
            return value, errors
        remaining = self._errors(repaired)
        return (repaired, remaining) if len(remaining) < len(errors) else (value, errors)

    # Messages ------------------------------------------------------------------------------------

    def _error_text(self, failure: ValidationError) -> str:
        error = _SchemaError.of(_most_relevant(failure))
        place, expected, value = _dotted(error.path), error.expected, error.value
        match error.rule:
            case "additionalProperties":
                return _unknown(error)
            case "required":
                return self._missing(error)
            case "type":
                example = f", for example {_json(_example(error.schema))}"
                return f"{place}: expected {_types(expected)}, not {_shown(value)}{example}"
            case "enum":
                return _not_in(place, value, expected)
            case "const":
                return f"{place}: must be {_json(expected)}"
            case "anyOf" | "oneOf":
                options = expected if isinstance(expected, list) else []
                kinds = " or ".join(_kind(self._resolved(option)) for option in options)
                return f"{place}: expected {kinds}, not {_shown(value)}"
            case _:
                return f"{place}: {error.message}"

    def _missing(self, error: _SchemaError) -> str:
        messages = []
        # A misspelled name is reported as unknown, not as missing.
        present = {*error.given, *_similar_names(error).values()}
        for name in error.expected if isinstance(error.expected, list) else ():
            if name in present or not isinstance(name, str):
                continue
            expected = self._resolved(error.properties.get(name))
            description = expected.get("description")
            of = f" ({description})" if isinstance(description, str) else ""
            place = _dotted([*error.path, name])
            messages.append(f"{place} is missing{of}, for example {_json(_example(expected))}")
        return "; ".join(messages)

    def _resolved(self, schema: JsonValue) -> Mapping[str, JsonValue]:
        """The schema, or the target of its reference."""
        if not isinstance(schema, dict):
            return {}
        ref = schema.get("$ref")
        definitions = self._schema.get("$defs")
        if isinstance(ref, str) and isinstance(definitions, dict):
            target = definitions.get(ref.removeprefix("#/$defs/"))
            return target if isinstance(target, dict) else schema
        return schema


@dataclass(frozen=True, slots=True)
class _SchemaError:
    """A validation error as plain JSON."""

    path: tuple[str | int, ...]
    rule: str
    expected: JsonValue
    """The value of the rule."""
    value: JsonValue
    schema: Mapping[str, JsonValue]
    message: str

    @staticmethod
    def of(error: ValidationError) -> _SchemaError:
        schema = error.schema if isinstance(error.schema, dict) else {}
        expected, value = cast(JsonValue, error.validator_value), cast(JsonValue, error.instance)
        path = tuple(error.absolute_path)
        return _SchemaError(path, str(error.validator), expected, value, schema, error.message)

    @property
    def properties(self) -> Mapping[str, JsonValue]:
        properties = self.schema.get("properties")
        return properties if isinstance(properties, dict) else {}

    @property
    def given(self) -> Mapping[str, JsonValue]:
        return self.value if isinstance(self.value, dict) else {}


def _place(error: ValidationError) -> list[str]:
    return [str(part) for part in error.absolute_path]


def _dotted(path: Iterable[object]) -> str:
    return ".".join(str(part) for part in path) or "arguments"


def _most_relevant(error: ValidationError) -> ValidationError:
    """For a union, the error in the alternative that best matches the value."""
    if not error.context:
        return error
    inner = best_match([error])
    return inner if inner is not None and inner.validator != "type" else error


def _unknown(error: _SchemaError) -> str:
    messages = []
    for name, similar in _similar_names(error).items():
        listed = f"there are: {', '.join(error.properties) or 'none'}"
        hint = f"did you mean {similar}?" if similar else listed
        messages.append(f"there is no argument {_dotted([*error.path, name])}; {hint}")
    return "; ".join(messages)


def _similar_names(error: _SchemaError) -> dict[str, str | None]:
    """Unknown names, where the schema forbids them, each with a similar property, if any."""
    if error.schema.get("additionalProperties") is not False:
        return {}
    properties = list(error.properties)
    unknown = (name for name in error.given if name not in error.properties)
    return {
        name: next(iter(near(name, properties, cutoff=0.5)), None)
        for name in islice(unknown, _MAX_ERRORS)
    }


def _not_in(place: str, value: JsonValue, values: JsonValue) -> str:
    options = values if isinstance(values, list) else []
    hint = did_you_mean(str(value), map(str, options))
    return f"{place}: {_shown(value)} is none of {', '.join(map(_json, options))}{hint}"


def _parse_string(root: JsonValue, error: ValidationError) -> bool:
    """Replace a string with the JSON in it, if the schema expects that. Return whether it did."""
    path = list(error.absolute_path)
    if error.validator not in ("type", "anyOf", "oneOf") or not isinstance(error.instance, str):
        return False
    try:
        parsed: JsonValue = json.loads(error.instance)
    except (ValueError, RecursionError):
        return False
    if isinstance(parsed, str) or not path:
        return False
    last = path.pop()
    parent = root
    for part in path:
        parent = _child(parent, part)
    match parent, last:
        case dict(), str():
            parent[last] = parsed
        case list(), int():
            parent[last] = parsed
    return True


def _child(value: JsonValue, part: str | int) -> JsonValue:
    match value, part:
        case dict(), str():
            return value[part]
        case list(), int():
            return value[part]
    return None


_EXAMPLES: Mapping[str, JsonValue] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


def _example(schema: Mapping[str, JsonValue]) -> JsonValue:
    """A value of the schema's type, which can violate bounds."""
    for key in ("examples", "enum"):
        values = schema.get(key)
        if isinstance(values, list) and values:
            return values[0]
    for key in ("default", "const"):
        if schema.get(key) is not None:
            return schema[key]
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) and kinds else kinds
    items, properties = schema.get("items"), schema.get("properties")
    if kind == "array" and isinstance(items, dict) and "type" in items:
        return [_example(items)]
    if kind == "object" and isinstance(properties, dict):
        required = schema.get("required")
        names = [n for n in required if isinstance(n, str)] if isinstance(required, list) else []
        fields = {name: properties.get(name) for name in names}
        return {
            n: _example(field) if isinstance(field, dict) else "…" for n, field in fields.items()
        }
    return _EXAMPLES.get(kind, "…") if isinstance(kind, str) else "…"


def _kind(schema: Mapping[str, JsonValue]) -> str:
    values = schema.get("enum")
    if isinstance(values, list):
        return f"one of {', '.join(map(_json, values))}"
    return _types(schema.get("type"))


def _types(value: object) -> str:
    names = value if isinstance(value, list) else [value]
    return " or ".join(name if isinstance(name, str) else "something else" for name in names)


def _shown(value: JsonValue) -> str:
    text = _json(value)
    return shortened(text, 60)


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
