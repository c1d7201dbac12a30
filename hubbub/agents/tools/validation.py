"""Validates arguments by a tool's JSON Schema, with errors that a model can act on. Pure.

Every tool is validated in the same way, whatever the origin of its schema: functions, the hub,
mods, MCP servers. The rules of JSON Schema come from the package `jsonschema`, which implements the
drafts in full; pydantic can generate schemas, but not validate by them. The limits that protect the
agent against expensive schemas and arguments are in `rules`.
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

_MOST = 5
"""Errors reported at once."""


class ArgumentCheck:
    """Validates arguments by `schema`, a JSON Schema of an object.

    Raises ValueError when the schema is invalid.
    """

    def __init__(self, schema: Mapping[str, JsonValue]):
        self._schema = schema
        self._rules = Rules(schema)

    def check(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The arguments. JSON in a string (`"3"` for 3) is parsed where the schema wants that.
        Raises `ToolFailed` with every error.
        """
        try:
            return self._checked(dict(arguments))
        except (Unresolvable, RecursionError) as exc:
            words = f"the tool's own schema cannot be followed: {exc}"
            raise ToolFailed(words, error="invalid_schema") from exc
        except TooMuchWork as exc:
            raise ToolFailed(str(exc), error="invalid_arguments", retry=True) from exc

    def _checked(self, value: JsonValue) -> dict[str, JsonValue]:
        errors = self._errors(value)
        if errors:
            value, errors = self._repaired(value, errors)
        if errors:
            messages = dict.fromkeys(self._error_text(error) for error in errors[:_MOST])
            words = "; ".join(filter(None, messages))
            raise ToolFailed(words, error="invalid_arguments", retry=True)
        assert isinstance(value, dict)
        return value

    def _errors(self, value: JsonValue) -> list[ValidationError]:
        return sorted(self._rules.mistakes(value), key=_place)

    def _repaired(
        self, value: JsonValue, errors: list[ValidationError]
    ) -> tuple[JsonValue, list[ValidationError]]:
        mended = copy.deepcopy(value)
        changed = [_parse_string(mended, error) for error in errors]
        if not any(changed):
            return value, errors
        left = self._errors(mended)
        return (mended, left) if len(left) < len(errors) else (value, errors)

    # Messages ------------------------------------------------------------------------------------

    def _error_text(self, error: ValidationError) -> str:
        mistake = _Mistake.of(_most_relevant(error))
        place, wanted, value = _dotted(mistake.path), mistake.wanted, mistake.value
        match mistake.rule:
            case "additionalProperties":
                return _unknown(mistake)
            case "required":
                return self._missing(mistake)
            case "type":
                example = f", for example {_json(_example(mistake.schema))}"
                return f"{place}: expected {_types(wanted)}, not {_shown(value)}{example}"
            case "enum":
                return _not_in(place, value, wanted)
            case "const":
                return f"{place}: must be {_json(wanted)}"
            case "anyOf" | "oneOf":
                options = wanted if isinstance(wanted, list) else []
                kinds = " or ".join(_kind(self._resolved(option)) for option in options)
                return f"{place}: expected {kinds}, not {_shown(value)}"
            case _:
                return f"{place}: {mistake.message}"

    def _missing(self, mistake: _Mistake) -> str:
        words = []
        there = {
            *mistake.given,
            *_similar_names(mistake).values(),
        }  # a misspelled name is reported as that
        for name in mistake.wanted if isinstance(mistake.wanted, list) else ():
            if name in there or not isinstance(name, str):
                continue
            wanted = self._resolved(mistake.properties.get(name))
            description = wanted.get("description")
            of = f" ({description})" if isinstance(description, str) else ""
            place = _dotted([*mistake.path, name])
            words.append(f"{place} is missing{of}, for example {_json(_example(wanted))}")
        return "; ".join(words)

    def _resolved(self, schema: JsonValue) -> Mapping[str, JsonValue]:
        """The schema, or the one that it refers to."""
        if not isinstance(schema, dict):
            return {}
        ref = schema.get("$ref")
        definitions = self._schema.get("$defs")
        if isinstance(ref, str) and isinstance(definitions, dict):
            found = definitions.get(ref.removeprefix("#/$defs/"))
            return found if isinstance(found, dict) else schema
        return schema


@dataclass(frozen=True, slots=True)
class _Mistake:
    """A validation error as plain JSON."""

    path: tuple[str | int, ...]
    rule: str
    wanted: JsonValue
    """The value of the rule."""
    value: JsonValue
    schema: Mapping[str, JsonValue]
    message: str

    @staticmethod
    def of(error: ValidationError) -> _Mistake:
        schema = error.schema if isinstance(error.schema, dict) else {}
        wanted, value = cast(JsonValue, error.validator_value), cast(JsonValue, error.instance)
        path = tuple(error.absolute_path)
        return _Mistake(path, str(error.validator), wanted, value, schema, error.message)

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
    """For a union, the error in the alternative that was probably meant."""
    if not error.context:
        return error
    inner = best_match([error])
    return inner if inner is not None and inner.validator != "type" else error


def _unknown(mistake: _Mistake) -> str:
    words = []
    for name, meant in _similar_names(mistake).items():
        listed = f"there are: {', '.join(mistake.properties) or 'none'}"
        hint = f"did you mean {meant}?" if meant else listed
        words.append(f"there is no argument {_dotted([*mistake.path, name])}; {hint}")
    return "; ".join(words)


def _similar_names(mistake: _Mistake) -> dict[str, str | None]:
    """Unknown names, where those are an error, each with a similar known name."""
    if mistake.schema.get("additionalProperties") is not False:
        return {}
    known = list(mistake.properties)
    unknown = (name for name in mistake.given if name not in mistake.properties)
    return {
        name: next(iter(near(name, known, cutoff=0.5)), None) for name in islice(unknown, _MOST)
    }


def _not_in(place: str, value: JsonValue, values: JsonValue) -> str:
    options = values if isinstance(values, list) else []
    hint = did_you_mean(str(value), map(str, options))
    return f"{place}: {_shown(value)} is none of {', '.join(map(_json, options))}{hint}"


def _parse_string(root: JsonValue, error: ValidationError) -> bool:
    """Parse a string as the JSON wanted in its place. Returns whether anything changed."""
    path = list(error.absolute_path)
    if error.validator not in ("type", "anyOf", "oneOf") or not isinstance(error.instance, str):
        return False
    try:
        read: JsonValue = json.loads(error.instance)
    except (ValueError, RecursionError):
        return False
    if isinstance(read, str) or not path:
        return False
    last = path.pop()
    holder = root
    for part in path:
        holder = _within(holder, part)
    match holder, last:
        case dict(), str():
            holder[last] = read
        case list(), int():
            holder[last] = read
    return True


def _within(value: JsonValue, part: str | int) -> JsonValue:
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
    """A value of the kind that the schema wants; it need not meet every bound."""
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
