"""What participants remember: kept by the hub, for each of them alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.network.operations.memory import MOST_KEYS
from hubbub.protocol.memory import MemoryEntry, Recalled
from tests.interaction.peers import Network, Networks, Peer, config, soon
from tests.interaction.stores import MoodyStore

HASTY = config(network={"limits": {"burst": 1000}})
"""Lets one participant fill its memory at once."""


async def entries(peer: Peer) -> dict[str, Any]:
    """All keys, with the values that are told with them."""
    return {e["key"]: e.get("value") for e in (await peer.call("recall"))["entries"]}


async def refused(peer: Peer, operation: str, **args: Any) -> OperationError:
    with pytest.raises(OperationError) as caught:
        await peer.call(operation, **args)
    return caught.value


@pytest.mark.behaviour("E-8")
async def test_what_is_remembered_is_the_participants_own(network: Network) -> None:
    ann, bot = await network.join("ann"), await network.join("bot", "agent")
    value = {"likes": ["tea", None, 1.5], "seq": 3, "name": "Zoë", "age": None, "": {}}
    assert await bot.call("remember", key="ann", value=value) == {"done": True}
    await ann.call("remember", key="ann", value="mine")
    assert (await bot.call("recall", key="ann"))["value"] == value
    assert (await ann.call("recall", key="ann"))["value"] == "mine"
    assert await entries(bot) == {"ann": value}
    assert await entries(await network.join("carol")) == {}


@pytest.mark.behaviour("E-8")
async def test_a_key_has_what_it_was_given_last(network: Network) -> None:
    bot = await network.join("bot", "agent")
    for value in ("1", 2, [3], None):
        await bot.call("remember", key="k", value=value)
        assert (await bot.call("recall", key="k")).get("value") == value
    await bot.call("forget", key="k")
    assert await entries(bot) == {}
    await bot.call("remember", key="k", value=5)
    assert await entries(bot) == {"k": 5}


@pytest.mark.behaviour("E-8")
async def test_memory_survives_a_restart_of_the_hub(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'town.db'}"
    async with Networks(sockets=False).start(HASTY, store=store) as network:
        bot = await network.join("bot", "agent")
        for n in range(MOST_KEYS):
            await bot.call("remember", key=f"k{n}", value=n)
        await bot.call("forget", key="k0")
    async with Networks(sockets=False).start(HASTY, store=store) as network:
        bot = await network.join("bot", "agent")
        assert len(await entries(bot)) == MOST_KEYS - 1
        assert (await bot.call("recall", key="k7"))["value"] == 7
        await bot.call("remember", key="new", value=1)
        assert (await refused(bot, "remember", key="more", value=1)).code == "limit"


async def test_keys_come_in_order_and_long_values_by_their_size(network: Network) -> None:
    bot = await network.join("bot", "agent")
    for key, length in (("b", 254), ("a", 255), ("_", 0)):
        await bot.call("remember", key=key, value="x" * length)
    told = (await bot.call("recall"))["entries"]
    assert [(e["key"], e["size"], "value" in e) for e in told] == [
        ("_", 2, True),
        ("a", 257, False),
        ("b", 256, True),
    ]


@pytest.mark.behaviour("E-9")
@pytest.mark.parametrize("key", ["", "a b", "a/b", "ä", "x" * 65, "a\n", 5, None])
async def test_keys_are_plain_names(network: Network, key: object) -> None:
    bot = await network.join("bot", "agent")
    error = await refused(bot, "remember", key=key, value=1)
    assert error.code == "bad_request"
    assert "key" in error.message
    await bot.call("remember", key="A-z_0.9" + "x" * 57, value=1)


@pytest.mark.behaviour("E-9")
async def test_a_value_has_a_size(network: Network) -> None:
    bot = await network.join("bot", "agent")
    await bot.call("remember", key="k", value="ä" * 8191)
    error = await refused(bot, "remember", key="k", value="ä" * 8192)
    assert (error.code, error.message) == (
        "too_large",
        "value: 16386 bytes of JSON, and at most 16384 are kept under a key",
    )
    assert len((await bot.call("recall", key="k"))["value"]) == 8191


@pytest.mark.behaviour("E-9")
async def test_keys_on_their_way_to_the_store_count(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(HASTY, store=store) as network:
        bot, ann = await network.join("bot", "agent"), await network.join("ann")
        for n in range(MOST_KEYS - 1):
            await bot.call("remember", key=f"k{n}", value=n)
        store.gate.clear()
        last = asyncio.create_task(bot.call("remember", key="last", value=1))
        async with soon():
            await store.waiting.wait()
        assert (await refused(bot, "remember", key="over", value=1)).code == "limit"
        again = asyncio.create_task(bot.call("remember", key="k1", value="again"))
        await asyncio.sleep(0)
        store.gate.set()
        await last
        await again
        await ann.call("remember", key="mine", value=1)
        assert (await entries(bot))["k1"] == "again"


@pytest.mark.behaviour("E-9")
async def test_a_key_that_could_not_be_stored_is_not_there(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        bot = await network.join("bot", "agent")
        store.failing = 1
        assert (await refused(bot, "remember", key="k", value=1)).temporary
        assert (await refused(bot, "forget", key="k")).code == "unknown_key"
        await bot.call("remember", key="k", value=1)
        store.failing = 1
        assert (await refused(bot, "forget", key="k")).temporary
        assert await entries(bot) == {"k": 1}


async def test_an_unknown_key_is_answered_with_near_ones(network: Network) -> None:
    bot = await network.join("bot", "agent")
    await bot.call("remember", key="ann.likes", value=1)
    for operation in ("recall", "forget"):
        error = await refused(bot, operation, key="ann-like")
        assert error.code == "unknown_key"
        assert error.message == ("you remember nothing under 'ann-like'; did you mean ann.likes?")
        assert error.details["near"] == ["ann.likes"]
    assert (await refused(bot, "recall", key="zz")).details == {}


@pytest.mark.behaviour("E-9")
async def test_a_repeated_call_is_answered_as_the_first_and_changes_nothing(
    network: Network,
) -> None:
    bot = await network.join("bot", "agent")
    first = await bot.call("remember", key="k", value=1, cid="c1")
    await bot.call("remember", key="k", value=2, cid="c2")
    assert await bot.call("remember", key="k", value=1, cid="c1") == first
    assert await entries(bot) == {"k": 2}
    gone = await bot.call("forget", key="k", cid="c3")
    assert await bot.call("forget", key="k", cid="c3") == gone
    error = await refused(bot, "remember", key="k", value=9, cid="c1")
    assert (error.code, error.details["first"]) == ("cid_conflict", first)
    assert await entries(bot) == {}


async def test_memory_is_offered_to_models(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        bot = await network.join("bot", "agent")
        offered = {op["name"]: op for op in bot.ready["operations"]}
        kinds = {name: offered[name]["permission"] for name in ("remember", "recall", "forget")}
        assert kinds == {"remember": "write", "recall": "read", "forget": "write"}
        assert all(offered[name]["tool"] for name in kinds)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_json_comes_back_as_it_was(value: Any) -> None:
    from pydantic_core import to_json

    text = to_json(value)
    assert Recalled.of("k", text).value == value
    assert MemoryEntry.of("k", len(text), text).value == value
    assert MemoryEntry.of("k", len(text), None).value is None
