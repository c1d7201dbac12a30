"""Arguments against a tool's JSON Schema, in words that a model can act on. Pure.

The same for every tool, whoever wrote its schema: functions, the hub, mods, MCP servers. The rules
of JSON Schema are those of the package `jsonschema`: it implements the drafts in full and is what
others test theirs against; pydantic can make schemas but not follow any.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable

from hubbub.agents.tools.base import ToolFailed

__all__ = ["ArgumentCheck"]

_MOST = 5
"""Mistakes that are told at once."""


def _no_rule(
    validator: object, value: object, instance: object, schema: object
) -> Iterator[ValidationError]:
    """Holds always. Patterns are left to those who wrote them: Python's `re` reads them otherwise,
    and one that somebody else has written may take for ever.
    """
    return iter(())


_Validator = extend(  # type: ignore[no-untyped-call]  # its stubs leave out the return type
    Draft202012Validator, validators={"pattern": _no_rule, "patternProperties": _no_rule}
)


class ArgumentCheck:
    """Checks arguments by `schema`, a JSON Schema of an object.

    Raises ValueError when the schema is none.
    """

    def __init__(self, schema: Mapping[str, JsonValue]):
        try:
            _Validator.check_schema(schema)
        except SchemaError as exc:
            raise ValueError(f"no JSON Schema: {exc.message}") from exc
        # The empty registry fetches nothing: a `$ref` to somewhere else stays unresolved.
        self._validator: Validator = _Validator(schema, registry=Registry())
        self._schema = schema

    def check(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The arguments, with JSON that came as text (`"3"` for 3) read where that is what is
        wanted. Raises `ToolFailed` that names every mistake.
        """
        value: JsonValue = dict(arguments)
        errors = self._errors(value)
        if errors:
            value, errors = self._mended(value, errors)
        if errors:
            words = "; ".join(dict.fromkeys(self._told(error) for error in errors[:_MOST]))
            raise ToolFailed(words, error="invalid_arguments", retry=True)
        assert isinstance(value, dict)
        return value

    def _errors(self, value: JsonValue) -> list[ValidationError]:
        try:
            return sorted(self._validator.iter_errors(value), key=_place)
        except (Unresolvable, RecursionError) as exc:
            words = f"the tool's own schema cannot be followed: {exc}"
            raise ToolFailed(words, error="invalid_schema") from exc

    def _mended(
        self, value: JsonValue, errors: list[ValidationError]
    ) -> tuple[JsonValue, list[ValidationError]]:
        mended = copy.deepcopy(value)
        changed = [_mend(mended, error) for error in errors]
        if not any(changed):
            return value, errors
        left = self._errors(mended)
        return (mended, left) if len(left) < len(errors) else (value, errors)

    # Words --------------------------------------------------------------------------------------

    def _told(self, error: ValidationError) -> str:
        mistake = _Mistake.of(_telling(error))
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
        for name in mistake.wanted if isinstance(mistake.wanted, list) else ():
            if name in mistake.given or not isinstance(name, str):
                continue
            wanted = self._resolved(mistake.properties.get(name))
            said = wanted.get("description")
            of = f" ({said})" if isinstance(said, str) else ""
            place = _dotted([*mistake.path, name])
            words.append(f"{place} is missing{of}, for example {_json(_example(wanted))}")
        return "; ".join(words)

    def _resolved(self, schema: JsonValue) -> Mapping[str, JsonValue]:
        """The schema, or what it refers to inside this one."""
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
    """An error of the validator as plain JSON."""

    path: tuple[str | int, ...]
    rule: str
    wanted: JsonValue
    """What the rule says."""
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


def _telling(error: ValidationError) -> ValidationError:
    """Of alternatives, the mistake in the one that was meant, if that can be seen."""
    if not error.context:
        return error
    inner = best_match([error])
    return inner if inner is not None and inner.validator != "type" else error


def _unknown(mistake: _Mistake) -> str:
    known = list(mistake.properties)
    words = []
    for name in mistake.given:
        if name in known:
            continue
        near = get_close_matches(name, known, 1, 0.5)
        listed = f"there are: {', '.join(known) or 'none'}"
        hint = f"did you mean {near[0]}?" if near else listed
        words.append(f"there is no argument {_dotted([*mistake.path, name])}; {hint}")
    return "; ".join(words)


def _not_in(place: str, value: JsonValue, values: JsonValue) -> str:
    options = values if isinstance(values, list) else []
    near = get_close_matches(str(value), [str(option) for option in options], 1, 0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{place}: {_shown(value)} is none of {', '.join(map(_json, options))}{hint}"


def _mend(root: JsonValue, error: ValidationError) -> bool:
    """Read a text as the JSON that is wanted in its place. Whether something was changed."""
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
    """A value of the kind that the schema wants. It need not meet every bound."""
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
    return text if len(text) <= 60 else f"{text[:60]}…"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
