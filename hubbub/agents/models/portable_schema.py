"""Reduces a tool's JSON Schema to the subset that every engine accepts. Pure.

Servers that constrain a model's output compile the schemas of all tools into one grammar or
automaton. Each supports a different subset of JSON Schema; an unsupported part makes the request
fail or, worse, leaves the answer unconstrained. llama.cpp (Ollama, LM Studio) refuses repetitions
from 2,000 on and treats `{}` as an object; xgrammar and outlines (vLLM, SGLang) refuse or ignore
patterns, formats and unique items; OpenAI requires an object without a union at the top, and
`items` in arrays.

So models are offered only the following, and their calls are validated by the full schema:

    type             one name, never a list; or `enum`, or `anyOf` of such
    properties       with `required`, those first; the top is always an object that has them
    additionalProperties  true or a schema where names are free; without it engines accept no others
    items            in every array
    minLength, minItems   1, where something must be there
    minimum, maximum      of integers, up to a million
    description, default  if not empty; patterns and formats become part of the description

References are inlined. A schema that refers to itself, or is too deep or too large, becomes any
JSON value. An optional argument need not be nullable as well.

A schema is `strict`, in OpenAI's sense, if all objects are closed and all their properties
required: optional ones are nullable instead, and `without_nulls` removes the nulls from the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from pydantic import JsonValue

__all__ = ["portable", "strict", "without_nulls"]

Schema: TypeAlias = dict[str, JsonValue]

_DEEPEST, _MOST_PARTS, _MOST_OPTIONS, _MOST_CHOICES = 8, 400, 12, 300
"""Limits: levels, schemas within a schema, alternatives of a union, values of an enumeration."""
_LARGEST_BOUND = 1_000_000
_LONGEST_PATTERN = 80
_MOST_HOPS = 16
"""Length of a chain of references."""
_SAYS_A_KIND = frozenset({"type", "properties", "items", "enum", "const", "$ref", "allOf", "anyOf"})
_UNIONS = ("anyOf", "oneOf")
_OF_ALL = (*_UNIONS, "description", "default")
"""Keywords of a union that do not belong to its alternatives."""
_KINDS: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
_PLAIN = frozenset({"string", "integer", "number", "boolean", "null"})
_OPEN: tuple[Schema, ...] = (
    {"type": "string"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "object"},
)


def portable(schema: Mapping[str, JsonValue]) -> Schema:
    """The schema of an object as models are offered it."""
    return _SchemaWriter(schema).top()


class _SchemaWriter:
    """Rewrites one schema."""

    def __init__(self, root: Mapping[str, JsonValue]):
        self._root = root
        self._parts = 0

    def top(self) -> Schema:
        """The arguments: an object without a union, whatever the schema is."""
        flat, within = self._flat(dict(self._root), frozenset())
        options = [self._flat(option, within)[0] for option in _options(flat)]
        if options:
            flat = _merged(flat, _joined(options))
        written = self._object(flat, within, 0)
        if "properties" in written:
            return written
        return {"additionalProperties": True, **written, "properties": {}}

    def _any(self) -> Schema:
        items: Schema = {"anyOf": [dict(kind) for kind in _OPEN]}
        return {"anyOf": [*(dict(kind) for kind in _OPEN), {"type": "array", "items": items}]}

    def _of(self, schema: JsonValue, within: frozenset[str], depth: int, nullable: bool) -> Schema:
        """`within`: references that lead here. `nullable`: keep null where it is allowed."""
        if depth > _DEEPEST:
            return self._any()
        flat, within = self._flat(schema, within)
        return {**self._kind(flat, within, depth, nullable), **_words(flat)}

    def _kind(self, flat: Schema, within: frozenset[str], depth: int, nullable: bool) -> Schema:
        choices = [flat["const"]] if "const" in flat else flat.get("enum")
        if isinstance(choices, list) and 0 < len(choices) <= _MOST_CHOICES:
            return _enumeration(choices, nullable)
        options = _options(flat)
        if options:
            return self._union(options, within, depth, nullable)
        match flat.get("type"):
            case "object":
                return self._object(flat, within, depth)
            case "array":
                items = self._of(flat.get("items"), within, depth + 1, nullable=True)
                return {"type": "array", "items": items, **_at_least_one(flat, "minItems")}
            case "string":
                return {"type": "string", **_at_least_one(flat, "minLength")}
            case "integer":
                return {"type": "integer", **_bounds(flat)}
            case "number" | "boolean" | "null" as kind:
                return {"type": kind}
        return self._any()

    def _object(self, flat: Schema, within: frozenset[str], depth: int) -> Schema:
        written: Schema = {"type": "object"}
        properties, more = flat.get("properties"), flat.get("additionalProperties")
        if isinstance(properties, dict):
            required = [name for name in properties if name in set(_names(flat))]
            written["properties"] = {
                name: self._of(properties[name], within, depth + 1, name in required)
                for name in dict.fromkeys((*required, *properties))
            }
            if required:
                written["required"] = [*required]
        elif more is False:
            written["properties"] = {}
        if isinstance(more, dict) and more:
            written["additionalProperties"] = self._of(more, within, depth + 1, nullable=True)
        elif isinstance(properties, dict) and (more is True or more == {}):
            written["additionalProperties"] = True
        return written

    def _union(
        self, options: Sequence[Schema], within: frozenset[str], depth: int, nullable: bool
    ) -> Schema:
        if len(options) > _MOST_OPTIONS:
            return self._any()
        written: list[JsonValue] = []
        for option in options:
            one = self._of(option, within, depth + 1, nullable)
            nested = one.get("anyOf")
            written += nested if isinstance(nested, list) else [one]
        null: Schema = {"type": "null"}
        if not nullable:
            written = [one for one in written if one != null] or [null]
        different = [one for n, one in enumerate(written) if one not in written[:n]]
        only = different[0]
        return only if len(different) == 1 and isinstance(only, dict) else {"anyOf": different}

    # References ---------------------------------------------------------------------------------

    def _flat(self, schema: JsonValue, within: frozenset[str]) -> tuple[Schema, frozenset[str]]:
        """The schema with `$ref` and `allOf` inlined; recursive or broken references vanish."""
        self._parts += 1
        if not isinstance(schema, dict) or self._parts > _MOST_PARTS:
            return {}, within
        flat: Schema = {}
        parts: list[JsonValue] = []
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in within and len(within) < _MOST_HOPS:
            within |= {reference}
            parts.append(self._referred(reference))
        all_of = schema.get("allOf")
        parts += all_of[:_MOST_OPTIONS] if isinstance(all_of, list) else []
        for part in parts:
            inner, within = self._flat(part, within)
            flat = _merged(flat, inner)
        own = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        return _kinded(_merged(flat, own)), within

    def _referred(self, reference: str) -> JsonValue:
        """The value at a place in the schema; None: there is none, or it is in another document."""
        found: JsonValue = dict(self._root)
        if not reference.startswith("#"):
            return None
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        return found


def _kinded(flat: Schema) -> Schema:
    """The schema with its type, where that is only implied."""
    if "type" not in flat and not any(isinstance(flat.get(key), list) for key in _UNIONS):
        for key, kind in (("properties", "object"), ("items", "array")):
            if key in flat:
                return {**flat, "type": kind}
    return flat


def _options(flat: Schema) -> list[Schema]:
    """The alternatives, each with the common keywords; empty: it is a single kind of value."""
    kinds = flat.get("type")
    rest = {key: value for key, value in flat.items() if key not in _OF_ALL}
    if isinstance(kinds, list):
        return [{**rest, "type": kind} for kind in kinds]
    for key in _UNIONS:
        options = flat.get(key)
        if not isinstance(options, list):
            continue
        schemas = [option for option in options if isinstance(option, dict)]
        if schemas and all(option.keys() & _SAYS_A_KIND for option in schemas):
            return [_merged(rest, option) for option in schemas]
    return []


def _merged(one: Schema, other: Schema) -> Schema:
    """The conjunction of both; on conflict `other` wins."""
    merged = {**one, **other}
    properties, more = one.get("properties"), other.get("properties")
    if isinstance(properties, dict) and isinstance(more, dict):
        merged["properties"] = {**properties, **more}
    if "required" in merged:
        merged["required"] = list(dict.fromkeys((*_names(one), *_names(other))))
    return merged


def _joined(options: Sequence[Schema]) -> Schema:
    """One object that can be each of the alternatives."""
    properties: Schema = {}
    for option in options:
        given = option.get("properties")
        properties |= given if isinstance(given, dict) else {}
    always = set.intersection(*(set(_names(option)) for option in options))
    return {"properties": properties, "required": [*sorted(always)]}


def _names(schema: Mapping[str, JsonValue]) -> Iterator[str]:
    required = schema.get("required")
    yield from (n for n in required if isinstance(n, str)) if isinstance(required, list) else ()


def _enumeration(choices: Sequence[JsonValue], nullable: bool) -> Schema:
    values = [choice for choice in choices if nullable or choice is not None] or [None]
    kinds = {_KINDS[type(choice)] for choice in values}
    kind: Schema = {"type": kinds.pop()} if len(kinds) == 1 and kinds <= _PLAIN else {}
    return {**kind, "enum": [*values]}


def _at_least_one(flat: Schema, key: str) -> Schema:
    least = flat.get(key)
    return {key: 1} if isinstance(least, int) and least >= 1 else {}


def _bounds(flat: Schema) -> Schema:
    found = ((key, flat.get(key)) for key in ("minimum", "maximum"))
    return {key: n for key, n in found if isinstance(n, int) and abs(n) <= _LARGEST_BOUND}


def _is_short(rule: JsonValue) -> bool:
    return isinstance(rule, str) and len(rule) <= _LONGEST_PATTERN


def _words(flat: Schema) -> Schema:
    """The description and the default. Format and pattern are added to the description; the pattern
    only if there is no other description, because a model that violates it gets an error anyway.
    """
    words: Schema = {}
    description = flat.get("description")
    parts = description.split() if isinstance(description, str) else []
    rules = ("format",) if parts else ("format", "pattern")
    parts += [f"({key}: {flat[key]})" for key in rules if _is_short(flat.get(key))]
    if parts:
        words["description"] = " ".join(parts)
    if flat.get("default"):
        words["default"] = flat["default"]
    return words


# Strict -------------------------------------------------------------------------------------------


_NOT_STRICT = frozenset({"default", "minLength"})
"""Keywords that strict schemas do not support."""
_NULL: Schema = {"type": "null"}


def strict(schema: Mapping[str, JsonValue]) -> Schema | None:
    """The strict form of a `portable` schema; None: there is none."""
    written: Schema = {key: value for key, value in schema.items() if key not in _NOT_STRICT}
    match schema:
        case {"anyOf": [*options]}:
            strict_options = [strict(option) for option in options if isinstance(option, dict)]
            written["anyOf"] = [option for option in strict_options if option is not None]
            return written if None not in strict_options else None
        case {"type": "array", "items": dict(items)}:
            inner = strict(items)
            return None if inner is None else {**written, "items": inner}
        case {"type": "object"}:
            properties = schema.get("properties")
            if not isinstance(properties, dict) or "additionalProperties" in schema:
                return None
            needed, members = set(_names(schema)), Schema()
            for name, member in properties.items():
                inner = strict(member) if isinstance(member, dict) else None
                if inner is None:
                    return None
                members[name] = inner if name in needed else _nullable(inner)
            closed: Schema = {"required": [*members], "additionalProperties": False}
            return {**written, "properties": members, **closed}
    return written


def _nullable(schema: Schema) -> Schema:
    options = schema.get("anyOf")
    several = options if isinstance(options, list) else [
        {key: value for key, value in schema.items() if key != "description"}
    ]  # fmt: skip
    words = {key: schema[key] for key in ("description",) if key in schema}
    return {"anyOf": [*several, *([] if _NULL in several else [_NULL])], **words}


def without_nulls(schema: JsonValue, value: JsonValue) -> JsonValue:
    """A value written by the strict form of a `portable` schema, converted to the schema itself:
    without the nulls that stand for omitted properties.
    """
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        return [without_nulls(schema.get("items"), item) for item in value]
    if not isinstance(value, dict):
        return value
    options = schema.get("anyOf")
    for option in options if isinstance(options, list) else [schema]:
        properties = option.get("properties") if isinstance(option, dict) else None
        if not (isinstance(option, dict) and isinstance(properties, dict)):
            continue
        if value.keys() <= properties.keys():
            needed = set(_names(option))
            return {
                name: without_nulls(properties[name], item)
                for name, item in value.items()
                if item is not None or name in needed
            }
    return value
