"""JSON Schema validation with bounded work, so that no schema can keep an agent or the hub busy.

The rules are those of `jsonschema`, except that

* patterns always match: Python's `re` differs from JSON Schema, and a pattern could run forever. So
  do rules that depend on them, and `unevaluated…`;
* `uniqueItems` takes linear time;
* `$schema` within a schema has no effect;
* the total work is limited.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from pydantic import JsonValue
from referencing import Registry

__all__ = ["Rules", "TooMuchWork"]

_WORK = 200_000
"""Rules evaluated for one value, about a second's work; no real arguments need as many."""
_REFERENCE = 20
"""The cost of following a reference, in rules."""
_LARGEST = 10_000
"""Values in a schema."""
_TYPES = 7
"""The number of types, and so the longest useful list of types."""
_NAMING = ("$id", "$anchor", "$dynamicAnchor")


class TooMuchWork(Exception):
    """The value could not be checked within the limit."""


class Rules:
    """A schema to validate values with. Raises ValueError if it is invalid."""

    def __init__(self, schema: Mapping[str, JsonValue]):
        self._size, self._named = 0, False
        try:
            plain = self._plain(schema, top=True)
            mistake = _mistake(json.dumps(plain))
        except RecursionError:
            raise ValueError("the JSON Schema is nested too deep") from None
        if mistake is not None:
            raise ValueError(f"not a JSON Schema: {mistake}")
        # The empty registry fetches nothing, so an external `$ref` stays unresolved.
        self._validator: Validator = _Validator(plain, registry=Registry())

    def mistakes(self, value: JsonValue) -> list[ValidationError]:
        """The validation errors of the value.

        Raises `TooMuchWork`, `Unresolvable` for an unknown reference, and RecursionError.
        """
        token = _meter.set(_Meter(_REFERENCE + (self._size if self._named else 0)))
        try:
            return list(self._validator.iter_errors(value))
        finally:
            _meter.reset(token)

    def _plain(self, value: JsonValue | Mapping[str, JsonValue], *, top: bool = False) -> JsonValue:
        """The schema without `$schema`, with which a part could select other rules."""
        self._size += 1
        if self._size > _LARGEST:
            raise ValueError("this JSON Schema is too large")
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        kinds = value.get("type")
        if isinstance(kinds, list) and len(kinds) > _TYPES:
            raise ValueError("not a JSON Schema: a list of types is too long")
        self._named = self._named or (not top and any(name in value for name in _NAMING))
        chosen = isinstance(value.get("$schema"), str)
        return {k: self._plain(v) for k, v in value.items() if not (chosen and k == "$schema")}


class _Meter:
    """The remaining work."""

    def __init__(self, reference: int):
        """`reference`: the cost of following a reference. If parts of the schema have names of
        their own, all of it is searched each time.
        """
        self.left, self.reference = _WORK, reference

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise TooMuchWork(
                "checking these arguments against the tool's schema is too much work; use fewer"
            )


_meter: ContextVar[_Meter] = ContextVar("_meter")

# A rule as `jsonschema` calls it: with the validator, the rule's value, the instance, and the
# schema.
_Rule = Callable[
    [Validator, JsonValue, JsonValue, Mapping[str, JsonValue]], Iterator[ValidationError]
]


def _metered(rule: _Rule) -> _Rule:
    def look(
        validator: Validator, wanted: JsonValue, value: JsonValue, schema: Mapping[str, JsonValue]
    ) -> Iterator[ValidationError]:
        meter = _meter.get()
        meter.spend(1 + (len(wanted) if isinstance(wanted, list | dict) else 0))
        if "$ref" in schema or "$dynamicRef" in schema:
            meter.spend(meter.reference)
        for mistake in rule(validator, wanted, value, schema) or ():
            meter.spend(1 + len(mistake.message) // 100)  # it quotes the value
            yield mistake

    return look


def _no_rule(
    validator: Validator, wanted: JsonValue, value: JsonValue, schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    return iter(())


def _additional(
    validator: Validator, wanted: JsonValue, value: JsonValue, schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    if "patternProperties" not in schema:
        yield from _KNOWN["additionalProperties"](validator, wanted, value, schema)


def _unique(
    validator: Validator, wanted: JsonValue, value: JsonValue, schema: Mapping[str, JsonValue]
) -> Iterator[ValidationError]:
    items = value if wanted is True and isinstance(value, list) else []
    if len({_written(item) for item in items}) < len(items):
        yield ValidationError(f"{value!r} has non-unique elements")


def _written(value: JsonValue) -> str:
    """The value as text that is equal exactly if the values are equal in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, dict):
        members = sorted((json.dumps(name), _written(item)) for name, item in value.items())
        return f"{{{','.join(f'{name}:{item}' for name, item in members)}}}"
    return json.dumps(value)


_KNOWN: Mapping[str, _Rule] = Draft202012Validator.VALIDATORS
_OWN: Mapping[str, _Rule] = {
    "additionalProperties": _additional,
    "pattern": _no_rule,
    "patternProperties": _no_rule,
    "unevaluatedItems": _no_rule,
    "unevaluatedProperties": _no_rule,
    "uniqueItems": _unique,
}
_Validator = extend(  # type: ignore[no-untyped-call]  # its stubs leave out the return type
    Draft202012Validator,
    validators={name: _metered(_OWN.get(name, rule)) for name, rule in _KNOWN.items()},
)
_META = Draft202012Validator(Draft202012Validator.META_SCHEMA)


@lru_cache(256)
def _mistake(schema: str) -> str | None:
    """Why this JSON is not a schema. Cached, as agents of a process share their tools."""
    mistake = next(_META.iter_errors(json.loads(schema)), None)
    return None if mistake is None else mistake.message
