"""Reduces a tool's JSON Schema to the subset that every engine accepts. Pure.

Servers that constrain a model's output compile the schemas of all tools into one grammar or
automaton. Each supports a different subset of JSON Schema; an unsupported part makes the request
fail or, worse, leaves the answer unconstrained. llama.cpp (Ollama, LM Studio) rejects repetitions
of 2,000 and more and treats `{}` as an object; xgrammar and outlines (vLLM, SGLang) reject or
ignore patterns, formats and unique items; OpenAI requires an object without a union at the top
level, and `items` in arrays.

So models are offered only the following, and their calls are validated against the full schema:

    type             one name, never a list; or `enum`; or `anyOf` of these
    properties       required ones first, with `required`; always present at the top level
    additionalProperties  true, or a schema for arbitrary names; engines allow none without it
    items            in every array
    minLength, minItems   1, if the value must not be empty
    minimum, maximum      of integers, up to a million
    description, default  if not empty; patterns and formats are added to the description

References are inlined. A schema that is recursive, too deep or too large becomes any JSON value. An
optional argument need not be nullable as well.

A schema is `strict`, in OpenAI's sense, if all objects are closed and all their properties are
required. Optional ones are nullable instead, and `without_nulls` removes the nulls from the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from pydantic import JsonValue

__all__ = ["portable", "strict", "without_nulls"]

Schema: TypeAlias = dict[str, JsonValue]

_MAX_DEPTH, _MAX_SCHEMAS, _MAX_OPTIONS, _MAX_CHOICES = 8, 400, 12, 300
"""Limits: levels, schemas within a schema, alternatives of a union, values of an enumeration."""
_MAX_BOUND = 1_000_000
_MAX_PATTERN = 80
_MAX_REFERENCES = 16
"""Maximum length of a chain of references."""
_TYPE_KEYWORDS = frozenset(
    {"type", "properties", "items", "enum", "const", "$ref", "allOf", "anyOf"}
)
_UNIONS = ("anyOf", "oneOf")
_UNION_KEYWORDS = (*_UNIONS, "description", "default")
"""Keywords of a union that its alternatives do not inherit."""
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
    """The form of an object's schema that is offered to models."""
    return _SchemaWriter(schema).top()


class _SchemaWriter:
    """Rewrites one schema."""

    def __init__(self, root: Mapping[str, JsonValue]):
        self._root = root
        self._parts = 0

    def top(self) -> Schema:
        """The arguments: always an object without a union."""
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
        """`within`: the enclosing references. `nullable`: preserve null where it is allowed."""
        if depth > _MAX_DEPTH:
            return self._any()
        flat, within = self._flat(schema, within)
        return {**self._kind(flat, within, depth, nullable), **_annotations(flat)}

    def _kind(self, flat: Schema, within: frozenset[str], depth: int, nullable: bool) -> Schema:
        choices = [flat["const"]] if "const" in flat else flat.get("enum")
        if isinstance(choices, list) and 0 < len(choices) <= _MAX_CHOICES:
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
        if len(options) > _MAX_OPTIONS:
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
        """The schema with `$ref` and `allOf` inlined; without recursive or broken references."""
        self._parts += 1
        if not isinstance(schema, dict) or self._parts > _MAX_SCHEMAS:
            return {}, within
        flat: Schema = {}
        parts: list[JsonValue] = []
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in within and len(within) < _MAX_REFERENCES:
            within |= {reference}
            parts.append(self._resolve(reference))
        all_of = schema.get("allOf")
        parts += all_of[:_MAX_OPTIONS] if isinstance(all_of, list) else []
        for part in parts:
            inner, within = self._flat(part, within)
            flat = _merged(flat, inner)
        own = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
        return _with_type(_merged(flat, own)), within

    def _resolve(self, reference: str) -> JsonValue:
        """The target of a reference; None if it is missing or in another document."""
        target: JsonValue = dict(self._root)
        if not reference.startswith("#"):
            return None
        for part in reference.removeprefix("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        return target


def _with_type(flat: Schema) -> Schema:
    """The schema with its implied type made explicit."""
    if "type" not in flat and not any(isinstance(flat.get(key), list) for key in _UNIONS):
        for key, kind in (("properties", "object"), ("items", "array")):
            if key in flat:
                return {**flat, "type": kind}
    return flat


def _options(flat: Schema) -> list[Schema]:
    """The alternatives, each with the common keywords; empty if the schema is not a union."""
    kinds = flat.get("type")
    rest = {key: value for key, value in flat.items() if key not in _UNION_KEYWORDS}
    if isinstance(kinds, list):
        return [{**rest, "type": kind} for kind in kinds]
    for key in _UNIONS:
        options = flat.get(key)
        if not isinstance(options, list):
            continue
        schemas = [option for option in options if isinstance(option, dict)]
        if schemas and all(option.keys() & _TYPE_KEYWORDS for option in schemas):
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
    """One object schema that covers all alternatives."""
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
    minimum = flat.get(key)
    return {key: 1} if isinstance(minimum, int) and minimum >= 1 else {}


def _bounds(flat: Schema) -> Schema:
    bounds = ((key, flat.get(key)) for key in ("minimum", "maximum"))
    return {key: n for key, n in bounds if isinstance(n, int) and abs(n) <= _MAX_BOUND}


def _is_short(rule: JsonValue) -> bool:
    return isinstance(rule, str) and len(rule) <= _MAX_PATTERN


def _annotations(flat: Schema) -> Schema:
    """The description and the default. The format is added to the description. A pattern is added
    only to an empty description, because a call that violates it fails with an error anyway.
    """
    annotations: Schema = {}
    description = flat.get("description")
    parts = description.split() if isinstance(description, str) else []
    rules = ("format",) if parts else ("format", "pattern")
    parts += [f"({key}: {flat[key]})" for key in rules if _is_short(flat.get(key))]
    if parts:
        annotations["description"] = " ".join(parts)
    if flat.get("default"):
        annotations["default"] = flat["default"]
    return annotations


# Strict -------------------------------------------------------------------------------------------


_NOT_STRICT = frozenset({"default", "minLength"})
"""Keywords that strict schemas do not support."""
_NULL: Schema = {"type": "null"}


def strict(schema: Mapping[str, JsonValue]) -> Schema | None:
    """The strict form of a `portable` schema; None if it has none."""
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
            required, members = set(_names(schema)), Schema()
            for name, member in properties.items():
                inner = strict(member) if isinstance(member, dict) else None
                if inner is None:
                    return None
                members[name] = inner if name in required else _nullable(inner)
            closed: Schema = {"required": [*members], "additionalProperties": False}
            return {**written, "properties": members, **closed}
    return written


def _nullable(schema: Schema) -> Schema:
    options = schema.get("anyOf")
    several = options if isinstance(options, list) else [
        {key: value for key, value in schema.items() if key != "description"}
    ]  # fmt: skip
    description = {key: schema[key] for key in ("description",) if key in schema}
    return {"anyOf": [*several, *([] if _NULL in several else [_NULL])], **description}


def without_nulls(schema: JsonValue, value: JsonValue) -> JsonValue:
    """Convert a value of the strict form to one of the `portable` schema, by removing the nulls of
    omitted properties.
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
            required = set(_names(option))
            return {
                name: without_nulls(properties[name], item)
                for name, item in value.items()
                if item is not None or name in required
            }
    return value
