"""Calls that nobody should make: operations of a mod with odd, huge and missing arguments."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from pydantic import JsonValue

from hubbub.client import Client
from hubbub.config.models import Limits, NetworkConfig, NetworkFile
from hubbub.errors import OperationError
from hubbub.mods.operation import Operation
from hubbub.protocol.codes import ErrorCode
from hubbub.wording import shortened

__all__ = ["ROOMY", "check_calls", "likely"]

ROOMY = NetworkFile(
    network=NetworkConfig(
        auth="open",
        limits=Limits(calls_per_second=1_000_000, burst=1_000_000, bad_frames=1_000_000),
    )
)
"""A network that takes so many calls."""

ANSWER_S = 30.0
"""Seconds that an answer may take at most."""

_ODD: Sequence[JsonValue] = (
    None, True, 0, -1, 1, 2**63, 10**30, 0.5, -1e300, [], {}, ["x"] * 300, {"a": {"b": [None]}},
    "", " ", "x", "\n\t", "x" * 70_000, "\U0001f642" * 300, "e\u0301\u202e\ufeff", "\x7f\x1b[0m",
    "m1", "m0", "m999999999999999999999", "broadcast", "channel.nowhere", "dm.ann.bob", "ann",
    "@everyone", "../../etc/passwd", "a/b\\c", "%00", "'; DROP TABLE x; --", '"*" OR (', "(a+)+$",
    "[", "{}", "0", "1e9", "2026-02-30T25:61:00Z", "http://", "file:x",
)  # fmt: skip
"""What people, models and programs send by mistake, and some on purpose."""
_WORDS = ("broadcast", "m1", "bob", "x")
"""What texts are in calls that may well succeed: threads, messages, participants, others."""
_IDS = tuple(f"{letter}1" for letter in ascii_lowercase)
"""What mods call the first thing of theirs; patterns tell which."""
_DEPTH = 3
"""Levels of lists and objects in which something odd is put."""

Schema = Mapping[str, Any]  # Any: a JSON Schema, as pydantic gives it


async def check_calls(client: Client, operations: Sequence[Operation]) -> None:
    """Each is answered, with a result or an error that says what is wrong: never `internal`."""
    schemas = {operation.name: operation.info().input_schema or {} for operation in operations}
    for word in _WORDS:  # some make what others are about
        for name, schema in schemas.items():
            await _check(client, name, likely(schema, schema, word))
    for name, schema in schemas.items():
        await _check(client, name, {})
        for word in _WORDS[:2]:
            for odd in _odd(schema, schema, word, _DEPTH):
                await _check(client, name, odd)


async def _check(client: Client, name: str, args: JsonValue) -> None:
    if not isinstance(args, dict):
        return  # no client sends that
    try:
        async with asyncio.timeout(ANSWER_S):
            await client.call(name, **args)  # type: ignore[arg-type]  # JSON, odd as it is
    except OperationError as error:
        if error.code == ErrorCode.INTERNAL:
            raise AssertionError(f"{name} {_shown(args)}: {error}") from error
    except TimeoutError:
        raise AssertionError(f"{name} {_shown(args)}: no answer") from None


def _shown(args: JsonValue) -> str:
    text = json.dumps(args)
    return shortened(text, 300)


def _resolved(schema: Schema, root: Schema) -> Schema:
    """The schema that is meant by a reference or by the first of several."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return _resolved(root["$defs"][name], root)
    several = schema.get("anyOf") or schema.get("oneOf")
    return _resolved(several[0], root) if several else schema


def likely(schema: Schema, root: Schema, word: str) -> JsonValue:
    """A value that the schema takes, as far as that can be told from it."""
    schema = _resolved(schema, root)
    if "const" in schema or "enum" in schema:
        value: JsonValue = schema.get("const", schema.get("enum", [None])[0])
        return value
    match schema.get("type"):
        case "object":
            needed = schema.get("required", ())
            fields = schema.get("properties", {})
            return {name: likely(fields[name], root, word) for name in needed}
        case "array":
            few = max(1, schema.get("minItems", 1))
            return [likely(schema.get("items", {}), root, word)] * few
        case "integer" | "number":
            return max(1, int(schema.get("minimum", 1)))
        case "boolean":
            return True
        case _:
            pattern = schema.get("pattern", "")
            return next((each for each in (word, *_IDS) if re.search(pattern, each)), word)


def _odd(schema: Schema, root: Schema, word: str, depth: int) -> Iterator[JsonValue]:
    """Values in which one thing is odd."""
    schema = _resolved(schema, root)
    yield from _ODD
    if depth and schema.get("type") == "array":
        for odd in _odd(schema.get("items", {}), root, word, depth - 1):
            yield [odd]
    if depth and schema.get("type") == "object":
        plain = likely(schema, root, word)
        assert isinstance(plain, dict)
        for name, field in schema.get("properties", {}).items():
            for odd in _odd(field, root, word, depth - 1):
                yield {**plain, name: odd}
        yield {**plain, "no_such_field": 1}
