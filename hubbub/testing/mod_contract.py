"""The contract of mods, as a test:

    test_it_satisfies_the_mod_contract = mod_contract(Thanks)

It starts real networks in this process and needs no pytest plugin. It also calls the operations
with odd, huge and missing arguments.
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

__all__ = ["MAX_HOOK_S", "UNLIMITED", "mod_contract", "sample"]

UNLIMITED = NetworkFile(
    network=NetworkConfig(
        auth="open",
        limits=Limits(calls_per_second=1_000_000, burst=1_000_000, bad_frames=1_000_000),
    )
)
"""A network without limits on the rate of calls."""

MAX_ANSWER_S = 30.0
"""Maximum seconds until an answer."""

_ODD: Sequence[JsonValue] = (
    None, True, 0, -1, 1, 2**63, 10**30, 0.5, -1e300, [], {}, ["x"] * 300, {"a": {"b": [None]}},
    "", " ", "x", "\n\t", "x" * 70_000, "\U0001f642" * 300, "e\u0301\u202e\ufeff", "\x7f\x1b[0m",
    "m1", "m0", "m999999999999999999999", "broadcast", "channel.nowhere", "dm.ann.bob", "ann",
    "@everyone", "../../etc/passwd", "a/b\\c", "%00", "'; DROP TABLE x; --", '"*" OR (', "(a+)+$",
    "[", "{}", "0", "1e9", "2026-02-30T25:61:00Z", "http://", "file:x",
)  # fmt: skip
"""Values that people, models and programs send by mistake or on purpose."""
_TEXTS = ("broadcast", "m1", "bob", "x")
"""Texts with which a call can succeed: a thread, a message, a participant, any text."""
_IDS = tuple(f"{letter}1" for letter in ascii_lowercase)
"""Ids that mods give their first object; the pattern of a schema selects one."""
_DEPTH = 3
"""Levels of lists and objects that get an odd value."""

Schema = Mapping[str, Any]  # Any: a JSON Schema, as pydantic returns it


async def check_calls(client: Client, operations: Sequence[Operation]) -> None:
    """Every call returns a result or a specific error, never `internal`."""
    schemas = {operation.name: operation.info().input_schema or {} for operation in operations}
    for text in _TEXTS:  # some create the objects that others need
        for name, schema in schemas.items():
            await _check(client, name, sample(schema, schema, text))
    for name, schema in schemas.items():
        await _check(client, name, {})
        for text in _TEXTS[:2]:
            for args in _odd_samples(schema, schema, text, _DEPTH):
                await _check(client, name, args)


async def _check(client: Client, name: str, args: JsonValue) -> None:
    if not isinstance(args, dict):
        return  # clients cannot send it
    try:
        async with asyncio.timeout(MAX_ANSWER_S):
            await client.call(name, **args)  # type: ignore[arg-type]  # JSON, odd as it is
    except OperationError as error:
        if error.code == ErrorCode.INTERNAL:
            raise AssertionError(f"{name} {_shown(args)}: {error}") from error
    except TimeoutError:
        raise AssertionError(f"{name} {_shown(args)}: no answer") from None


def _shown(args: JsonValue) -> str:
    return shortened(json.dumps(args), 300)


def _resolved(schema: Schema, root: Schema) -> Schema:
    """The schema behind a reference, or the first of several alternatives."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return _resolved(root["$defs"][name], root)
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    return _resolved(alternatives[0], root) if alternatives else schema


def sample(schema: Schema, root: Schema, text: str) -> JsonValue:
    """A value that should satisfy the schema; its texts are `text` where the pattern allows."""
    schema = _resolved(schema, root)
    if "const" in schema or "enum" in schema:
        value: JsonValue = schema.get("const", schema.get("enum", [None])[0])
        return value
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            fields = schema.get("properties", {})
            return {name: sample(fields[name], root, text) for name in required}
        case "array":
            length = max(1, schema.get("minItems", 1))
            return [sample(schema.get("items", {}), root, text)] * length
        case "integer" | "number":
            return max(1, int(schema.get("minimum", 1)))
        case "boolean":
            return True
        case _:
            pattern = schema.get("pattern", "")
            return next((each for each in (text, *_IDS) if re.search(pattern, each)), text)


def _odd_samples(schema: Schema, root: Schema, text: str, depth: int) -> Iterator[JsonValue]:
    """Values with one odd part each."""
    schema = _resolved(schema, root)
    yield from _ODD
    if depth and schema.get("type") == "array":
        for odd in _odd_samples(schema.get("items", {}), root, text, depth - 1):
            yield [odd]
    if depth and schema.get("type") == "object":
        plain = sample(schema, root, text)
        assert isinstance(plain, dict)
        for name, field in schema.get("properties", {}).items():
            for odd in _odd_samples(field, root, text, depth - 1):
                yield {**plain, name: odd}
        yield {**plain, "no_such_field": 1}


MAX_HOOK_S = 2.0
"""Maximum seconds of a hook, by default."""

MAX_STEP_S = 10.0
"""Maximum seconds of a step of an operation, even on a busy machine."""

_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that model endpoints accept."""
_CREATED = re.compile(
    r"\bCREATE\s+(?:UNIQUE\s+|VIRTUAL\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\s+"
    r"(?:IF\s+NOT\s+EXISTS\s+)?[\"'`\[]?(\w+)",
    re.IGNORECASE,
)
Settings = Mapping[str, JsonValue]


def mod_contract(
    kind: type[Mod],
    settings: Settings | None = None,
    required_mods: Sequence[type[Mod]] = (),
    max_hook_s: float = MAX_HOOK_S,
) -> Callable[[], None]:
    """A test of the mod's contract with networks.

    `settings` are its required settings, `required_mods` the mods that must precede it, and
    `max_hook_s` the maximum seconds of a hook, whatever time limit the mod sets for itself.
    """
    config = dict(settings or {})

    def test() -> None:
        check_declaration(kind)
        check_settings(kind, config)
        check_operations(kind, config)
        check_tables(kind)
        asyncio.run(check_lifecycle(kind, config, required_mods, max_hook_s))
        asyncio.run(check_answers(kind, config, required_mods))

    test.__doc__ = f"{kind.__name__} satisfies the mod contract."
    return test


# Its declaration --------------------------------------------------------------------------------


def check_declaration(kind: type[Mod]) -> None:
    """It has a unique name and a description."""
    assert issubclass(kind, Mod), f"{kind.__name__} does not derive from Mod"
    name = getattr(kind, "name", None)
    assert isinstance(name, str) and NAME.fullmatch(name), (  # noqa: PT018  one error for people
        f"name: {name!r} must start with a letter and have only lower-case letters, digits and _"
    )
    place = f"{kind.__module__}:{kind.__name__}"
    assert BUILT_IN.get(name, place) == place, f"name: {name!r} is the name of a built-in mod"
    assert (kind.__doc__ or "").strip(), "it needs a docstring: `hubbub mods list` shows it"
    try:
        check_compatible(kind, [])
    except UserError:
        assert kind.requires, "without `requires` it must run alone"
    assert name not in (*kind.requires, *kind.conflicts), "it cannot require or exclude itself"


def check_settings(kind: type[Mod], settings: Settings) -> None:
    """Its settings are described, and unknown settings are refused."""
    meanings = descriptions(kind.Config)
    for name, field in kind.Config.model_fields.items():
        assert not field.is_required() or name in settings, (
            f"Config.{name} has no default: pass it to the contract in `settings`"
        )
        assert name in meanings, f"Config.{name} needs a docstring below it"
    settings_of(kind, settings)
    try:
        kind.Config.model_validate({**settings, "no_such_setting": 1})
    except ValidationError:
        return
    raise AssertionError("Config accepts unknown settings: derive it from ModConfig")


def check_operations(kind: type[Mod], settings: Settings) -> None:
    """Its operations can be tools of any model, and their names are free."""
    core = {operation.name for operation in CORE_OPERATIONS}
    seen: set[str] = set()
    for operation in kind(settings_of(kind, settings)).operations():
        name = operation.name
        assert _TOOL.fullmatch(name), f"{name}: model endpoints refuse this name"
        assert name not in core, f"{name}: the hub has an operation of this name"
        assert name not in seen, f"{name}: the name is used twice"
        assert operation.description, f"{name}: it needs a docstring, which models read"
        _check_schemas(operation)
        seen.add(name)


def _check_schemas(operation: Operation) -> None:
    info = operation.info()
    assert info.input_schema is not None and info.output_schema is not None  # noqa: PT018
    assert info.input_schema.get("type") == "object", f"{operation.name}: input is not an object"
    model: type[BaseModel] = operation.input
    meanings = descriptions(model)
    for name in model.model_fields:
        assert name in meanings, (
            f"{operation.name}: the argument {name} needs a docstring below it, which models read"
        )


def check_tables(kind: type[Mod]) -> None:
    """Its scripts create only names with its prefix, which the store also enforces."""
    for number, script in scripts_of(kind).items():
        for name in _CREATED.findall(script):
            own = name.lower().startswith(table_prefix(kind.name))
            assert own, f"script {number:04}: {name!r} must begin with {table_prefix(kind.name)!r}"


# Its behaviour ----------------------------------------------------------------------------------


async def check_lifecycle(
    kind: type[Mod], settings: Settings, required: Sequence[type[Mod]], max_hook_s: float
) -> None:
    """It runs in a real network, also after a restart on the same store."""
    with tempfile.TemporaryDirectory(prefix="hubbub-contract-") as folder:
        store = f"sqlite:{Path(folder) / 'network.db'}"
        for _ in ("first start", "restart"):
            await _run(_limited(kind, settings, max_hook_s), required, store)


async def check_answers(kind: type[Mod], settings: Settings, required: Sequence[type[Mod]]) -> None:
    """Its operations answer any call."""
    config = settings_of(kind, settings)
    mod = kind(config.model_copy(update={"time_limit": MAX_STEP_S}))
    others = [each(each.Config()) for each in required]
    async with LocalNetwork(UNLIMITED, mods=[*others, mod]) as network:
        ann = await network.join("ann", kind="human")
        await network.join("bob", kind="human")
        await _send(ann.call("broadcast_text_message", text="Good morning, everybody."))
        await check_calls(ann, mod.operations())
    failures = {hook: why for (_, hook), why in network.hub.services.mods.failures.items()}
    assert not failures, f"it failed: {failures}"


async def _run(mod: Mod, required: Sequence[type[Mod]], store: str) -> None:
    others = [each(each.Config()) for each in required]
    async with LocalNetwork(store=store, mods=[*others, mod]) as network:
        ann = await network.join("ann", kind="human")
        bob = await network.join("bob", kind="human")
        await _send(ann.call("broadcast_text_message", text="Good morning, everybody."))
        await _send(ann.call("send_text_message", to="bob", text="How are you?"))
        own = {operation.name for operation in mod.operations()}
        assert own <= {each.name for each in network.hub.services.registry.values()}, (
            "some of its operations are not registered"
        )
        await bob.__aexit__(None, None, None)
        await ann.call("list_participants")  # the hooks of bob's leaving have run
        network.hub.services.mods.configure(mod, mod.config)
        failures = {hook: why for (_, hook), why in network.hub.services.mods.failures.items()}
    failures |= {hook: why for (_, hook), why in network.hub.services.mods.failures.items()}
    assert not failures, f"it failed: {failures}"


def _limited(kind: type[Mod], settings: Settings, max_hook_s: float) -> Mod:
    """The mod with at most `max_hook_s` seconds for a hook."""
    config = settings_of(kind, settings)
    limit = min(config.time_limit, max_hook_s)
    return kind(config.model_copy(update={"time_limit": limit}))


async def _send(call: object) -> None:
    """Send a message, which the mod can reject only by a verdict."""
    assert inspect.isawaitable(call)
    try:
        await call
    except OperationError as error:
        if error.code != ErrorCode.REJECTED:
            raise
