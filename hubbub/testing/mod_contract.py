"""What every mod must do, as a test. A mod passes by running it:

    test_it_is_a_good_neighbour = mod_contract(Thanks)

It needs no plugin of pytest, and starts real networks in this process. Operations are called with
odd, huge and missing arguments, too.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

from hubbub.client import Client
from hubbub.config.models import Limits, NetworkConfig, NetworkFile
from hubbub.errors import OperationError, UserError
from hubbub.field_docs import descriptions
from hubbub.mods.api import Mod
from hubbub.mods.loader import (
    BUILT_IN,
    NAME,
    check_compatible,
    scripts_of,
    settings_of,
    table_prefix,
)
from hubbub.mods.operation import Operation
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.protocol.codes import ErrorCode
from hubbub.testing.network import LocalNetwork
from hubbub.wording import shortened

__all__ = ["MOST_S", "ROOMY", "likely", "mod_contract"]

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


MOST_S = 2.0
"""Seconds that a hook may take here at most, unless a test says otherwise."""

LONG_S = 10.0
"""Seconds that a step of an operation may take here, on however busy a machine."""

_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that endpoints of models accept."""
_MADE = re.compile(
    r"\bCREATE\s+(?:UNIQUE\s+|VIRTUAL\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\s+"
    r"(?:IF\s+NOT\s+EXISTS\s+)?[\"'`\[]?(\w+)",
    re.IGNORECASE,
)
Settings = Mapping[str, JsonValue]


def mod_contract(
    kind: type[Mod],
    settings: Settings | None = None,
    beside: Sequence[type[Mod]] = (),
    most_s: float = MOST_S,
) -> Callable[[], None]:
    """A test that holds the mod to what networks expect of it.

    `settings` are those that it needs; `beside` are the mods that must stand before it; `most_s`
    are the seconds that a hook may take at most, whatever the mod allows itself.
    """
    given = dict(settings or {})

    def test() -> None:
        check_declaration(kind)
        check_settings(kind, given)
        check_operations(kind, given)
        check_tables(kind)
        asyncio.run(check_life(kind, given, beside, most_s))
        asyncio.run(check_answers(kind, given, beside))

    test.__doc__ = f"{kind.__name__} is a good neighbour in any network."
    return test


# What it says of itself -------------------------------------------------------------------------


def check_declaration(kind: type[Mod]) -> None:
    """It has a name of its own and says what it does."""
    assert issubclass(kind, Mod), f"{kind.__name__} does not derive from Mod"
    name = getattr(kind, "name", None)
    assert isinstance(name, str) and NAME.fullmatch(name), (  # noqa: PT018  one fault for people
        f"name: {name!r} is not made of lower-case letters, digits and _, a letter first"
    )
    place = f"{kind.__module__}:{kind.__name__}"
    assert BUILT_IN.get(name, place) == place, f"name: {name!r} is a built-in mod's"
    assert (kind.__doc__ or "").strip(), "it needs a docstring: `hubbub mods list` shows it"
    try:
        check_compatible(kind, [])
    except UserError:
        assert kind.requires, "without `requires` it stands alone"
    assert name not in (*kind.requires, *kind.conflicts), "it neither needs nor excludes itself"


def check_settings(kind: type[Mod], settings: Settings) -> None:
    """Its settings are told, and those that it does not know are refused."""
    meanings = descriptions(kind.Config)
    for name, field in kind.Config.model_fields.items():
        assert not field.is_required() or name in settings, (
            f"Config.{name} has no default: give the contract `settings` with it"
        )
        assert name in meanings, f"Config.{name} needs a text below it that says what it means"
    settings_of(kind, settings)
    try:
        kind.Config.model_validate({**settings, "no_such_setting": 1})
    except ValidationError:
        return
    raise AssertionError("Config takes settings that it does not know: derive it from ModConfig")


def check_operations(kind: type[Mod], settings: Settings) -> None:
    """Its operations can be tools of any model, and take nobody's place."""
    core = {operation.name for operation in CORE_OPERATIONS}
    seen: set[str] = set()
    for operation in kind(settings_of(kind, settings)).operations():
        name = operation.name
        assert _TOOL.fullmatch(name), f"{name}: endpoints of models refuse such a name"
        assert name not in core, f"{name}: the hub itself has this operation"
        assert name not in seen, f"{name}: it is there twice"
        assert operation.description, f"{name}: it needs a docstring, it is what models read"
        _check_schemas(operation)
        seen.add(name)


def _check_schemas(operation: Operation) -> None:
    info = operation.info()
    assert info.input_schema is not None and info.output_schema is not None  # noqa: PT018
    assert info.input_schema.get("type") == "object", f"{operation.name}: takes no object"
    model: type[BaseModel] = operation.input
    meanings = descriptions(model)
    for name in model.model_fields:
        assert name in meanings, (
            f"{operation.name}: the argument {name} needs a text below it, it is what models read"
        )


def check_tables(kind: type[Mod]) -> None:
    """What its scripts make is called after it. The store holds them to it once more."""
    for number, script in scripts_of(kind).items():
        for name in _MADE.findall(script):
            own = name.lower().startswith(table_prefix(kind.name))
            assert own, f"script {number:04}: {name!r} must begin with {table_prefix(kind.name)!r}"


# What it does -----------------------------------------------------------------------------------


async def check_life(
    kind: type[Mod], settings: Settings, beside: Sequence[type[Mod]], most_s: float
) -> None:
    """It runs in a real network, twice on the same store."""
    with tempfile.TemporaryDirectory(prefix="hubbub-contract-") as folder:
        store = f"sqlite:{Path(folder) / 'network.db'}"
        for _ in ("at first", "after a restart"):
            await _live(_strict(kind, settings, most_s), beside, store)


async def check_answers(kind: type[Mod], settings: Settings, beside: Sequence[type[Mod]]) -> None:
    """Its operations answer whatever they are asked."""
    config = settings_of(kind, settings)
    mod = kind(config.model_copy(update={"time_limit": LONG_S}))
    others = [each(each.Config()) for each in beside]
    async with LocalNetwork(ROOMY, mods=[*others, mod]) as network:
        ann = await network.join("ann", kind="human")
        await network.join("bob", kind="human")
        await _say(ann.call("broadcast_text_message", text="Good morning, everybody."))
        await check_calls(ann, mod.operations())
    failures = {hook: why for (_, hook), why in network.hub.services.mods.failures.items()}
    assert not failures, f"it has failed: {failures}"


async def _live(mod: Mod, beside: Sequence[type[Mod]], store: str) -> None:
    others = [each(each.Config()) for each in beside]
    async with LocalNetwork(store=store, mods=[*others, mod]) as network:
        ann = await network.join("ann", kind="human")
        bob = await network.join("bob", kind="human")
        await _say(ann.call("broadcast_text_message", text="Good morning, everybody."))
        await _say(ann.call("send_text_message", to="bob", text="How are you?"))
        own = {operation.name for operation in mod.operations()}
        assert own <= {each.name for each in network.hub.services.registry.values()}, (
            "it hides operations that it has"
        )
        await bob.__aexit__(None, None, None)
        await ann.call("list_participants")  # what bob's leaving set off has happened
        network.hub.services.mods.configure(mod, mod.config)
        failures = {hook: why for (_, hook), why in network.hub.services.mods.failures.items()}
    failures |= {hook: why for (_, hook), why in network.hub.services.mods.failures.items()}
    assert not failures, f"it has failed: {failures}"


def _strict(kind: type[Mod], settings: Settings, most_s: float) -> Mod:
    """The mod, with no more time for its hooks than others have."""
    config = settings_of(kind, settings)
    most = min(config.time_limit, most_s)
    return kind(config.model_copy(update={"time_limit": most}))


async def _say(call: object) -> None:
    """A message that the mod may reject, but only by a verdict."""
    assert inspect.isawaitable(call)
    try:
        await call
    except OperationError as error:
        if error.code != ErrorCode.REJECTED:
            raise
