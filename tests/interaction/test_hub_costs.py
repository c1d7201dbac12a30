"""No frame costs the hub more CPU time than its size justifies, whatever it contains."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from time import process_time
from typing import Any

import pytest

from hubbub.mods.api import Mod
from hubbub.mods.loader import BUILT_IN, settings_of
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.testing.mod_contract import sample
from tests.interaction.peers import Networks, Peer, config

SIZE = 96 * 1024
"""Bytes of a frame: quadratic work on it would take seconds."""
STRANGER = 15 * 1024
"""Bytes of a frame before `identify` has succeeded."""
WORK = 100
"""The limit of a frame's cost, as a multiple of a loop over its bytes."""
FLOOR = 4096
"""Bytes added to each frame's size, for answers, commits and suggestions of names."""

LIMITS = {"burst": 10**9, "bad_frames": 10**9}
WORDS = {
    "to": "bob",
    "participant": "bob",
    "agent": "bob",
    "message_id": "m1",
    "thread": "broadcast",
}
"""Arguments that reach the handlers because they name something that exists."""

Args = dict[str, Any]  # arguments as plain JSON, invalid ones too


def _mods() -> list[Mod]:
    mods = []
    for name, place in BUILT_IN.items():
        module, _, kind = place.partition(":")
        if name not in ("moderation", "files"):  # the cost of moderation has its own tests
            mod: type[Mod] = getattr(import_module(module), kind)
            mods.append(mod(settings_of(mod, {})))
    return mods


def _calls() -> dict[str, Mapping[str, Any]]:
    """All operations by name, with the schemas of their arguments."""
    of_mods = [operation for mod in _mods() for operation in mod.operations()]
    return {op.name: op.input.model_json_schema() for op in (*CORE_OPERATIONS, *of_mods)}


CALLS = _calls()

pytestmark = pytest.mark.slow  # it measures CPU time

# The contents of a frame: each builds a value of about `size` bytes of JSON.
FILLINGS: Mapping[str, Callable[[str, int], str]] = {
    "text": lambda piece, size: json.dumps(piece * (size // len(piece))),
    "list": lambda piece, size: f"[{','.join([json.dumps(piece)] * (size // (len(piece) + 3)))}]",
    "numbers": lambda piece, size: f"[{','.join('7' * (size // 2))}]",
    "lists": lambda piece, size: f"[{','.join(['[]'] * (size // 3))}]",
    "objects": lambda piece, size: f"[{','.join(['{}'] * (size // 3))}]",
    "keys": lambda piece, size: _object(_keys(size)),
    "repeated key": lambda piece, size: _object([*_keys(size), *_keys(size)[-1:]]),
    "deep": lambda piece, size: "[" * (size // 2) + "]" * (size // 2),
    "digits": lambda piece, size: "1" * size,
    "fraction": lambda piece, size: "0." + "1" * size,
    "zeros": lambda piece, size: "1" + "0" * size + "e-7",
}


def _keys(size: int) -> list[str]:
    return [f'"{n}":1' for n in range(size // 9)]


def _object(members: Sequence[str]) -> str:
    return "{" + ",".join(members) + "}"


PIECES = (
    *(".t1", "@bob ", "`", "``", "@_", "[", "](", "*", "_", "# ", "> ", "<", "&", ":", '":', "\\"),
    *("a\0", "\x7f", "\u200b", "\ud800", "ä", "~/\"'", "\n-+", "()", "{}", "%$0"),
)


def likely_frames(count: int) -> Iterator[str]:
    """Large calls, each with one huge argument."""
    chance = random.Random(count)
    for _ in range(count):
        name = chance.choice(sorted(CALLS))
        field = chance.choice([*CALLS[name].get("properties", {}), "zzz"])
        prefix = chance.choice(["", "broadcast", "channel_"])
        filling, piece = chance.choice(sorted(FILLINGS)), chance.choice(PIECES)
        yield call(name, field, filling, piece, prefix=prefix)


def call(name: str, field: str, filling: str, piece: str = ".t1", *, prefix: str = "") -> str:
    args: Args = {}
    plain = sample(CALLS[name], CALLS[name], "bob")
    if isinstance(plain, dict):
        args = {key: WORDS.get(key, value) for key, value in plain.items()}
    inner = _filled(args, field, filling, piece, prefix=prefix)
    return _object(['"op":"call"', '"ref":"r"', f'"name":"{name}"', f'"args":{inner}'])


def _filled(plain: Args, field: str, filling: str, piece: str, *, prefix: str = "") -> str:
    value = FILLINGS[filling](piece, SIZE - 512)
    if filling == "text":
        value = f'"{prefix}{value[1:]}'
    members = [f"{json.dumps(key)}:{json.dumps(plain[key])}" for key in plain if key != field]
    return _object([*members, f"{json.dumps(field)}:{value}"])


def strange_keys() -> str:
    """An `identify` frame with thousands of fields, the last one twice."""
    keys = _keys(STRANGER)
    whole = {"op": "identify", "version": "hubbub.v1", "participant": "eve", "kind": "human"}
    return _object([json.dumps(whole)[1:-1], *keys, keys[-1]])


def deep_signal() -> str:
    plain = {"op": "signal", "type": "typing"}
    return _filled(plain, "thread_id", "text", ".t1", prefix="broadcast")


KNOWN = (
    strange_keys(),
    deep_signal(),
    call("read_thread", "thread", "text", prefix="broadcast"),
    call("send_text_message", "mentions", "list", "x"),
    call("send_text_message", "attachments", "objects"),
    call("send_text_message", "zzz", "repeated key"),
    call("send_text_message", "text", "text", "@bob__ `"),
    call("send_message", "content", "repeated key"),
    call("send_message", "content", "numbers"),
    "[" * 20_000 + '"' + '\\"' * 30_000,
)
"""Frames that were expensive once."""


@pytest.mark.behaviour("B-11")
async def test_a_frame_costs_no_more_cpu_time_than_its_size_justifies(in_memory: Networks) -> None:
    per_byte = seconds_per_byte()
    async with in_memory.start(config(network={"limits": LIMITS}), mods=_mods()) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await bob.call("send_text_message", to="broadcast", text="hello")
        for frame in (*KNOWN, *likely_frames(100)):
            data = frame.encode("utf-8", "surrogatepass")
            limit = WORK * per_byte * (len(data) + FLOOR)
            for _ in range(4):  # the machine may have been busy with something else
                peer = await network.attach() if b'"identify"' in data[:40] else ann
                spent = await cost(peer, data)
                if spent <= limit:
                    break
            excess = f"{spent / limit:.1f} times the limit of {len(data)} bytes: {frame[:200]}"
            assert spent <= limit, excess


def seconds_per_byte() -> float:
    """The CPU time of one step of a loop over bytes."""
    began, size = process_time(), 16 * 1024 * 1024
    for _ in bytes(size):
        pass
    return (process_time() - began) / size


async def cost(peer: Peer, data: bytes) -> float:
    """The CPU time until the hub has processed a frame."""
    began = process_time()
    await peer.send_raw(data)
    await peer.send(op="call", ref="last", name="list_channels")
    while (await peer.receive()).get("ref") != "last":
        pass
    return process_time() - began
