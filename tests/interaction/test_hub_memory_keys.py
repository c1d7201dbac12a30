"""Memory of participants: keys that the hub stores for each of them alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from hubbub.errors import OperationError
from hubbub.network.records import MemoryWritten
from hubbub.network.services.memory import MAX_KEYS
from hubbub.network.store import open_store
from hubbub.protocol.memory import MemoryEntry, Recalled
from hubbub.testing.store_rows import opened, write
from tests.interaction.peers import Network, Networks, Peer
from tests.interaction.stores import MoodyStore


async def entries(peer: Peer) -> dict[str, Any]:
    """All keys, with the values that are listed with them."""
    return {e["key"]: e.get("value") for e in (await peer.call("recall"))["entries"]}


async def refused(peer: Peer, operation: str, **args: Any) -> OperationError:
    with pytest.raises(OperationError) as caught:
        await peer.call(operation, **args)
    return caught.value


@pytest.mark.behaviour("E-8")
async def test_each_participant_has_its_own_memory(network: Network) -> None:
    ann, bot = await network.join("ann"), await network.join("bot", "agent")
    value = {"likes": ["tea", None, 1.5], "seq": 3, "name": "Zoë", "age": None, "": {}}
    for last in ("1", 2, [3], None, value):  # the last value counts
        assert await bot.call("remember", key="ann", value=last) == {"done": True}
        assert (await bot.call("recall", key="ann")).get("value") == last
    await ann.call("remember", key="ann", value="mine")
    assert (await ann.call("recall", key="ann"))["value"] == "mine"
    assert await entries(bot) == {"ann": value}
    assert await entries(await network.join("carol")) == {}
    await bot.call("forget", key="ann")
    assert await entries(bot) == {}
    for key, length in (("b", 254), ("a", 255), ("_", 0)):
        await bot.call("remember", key=key, value="x" * length)
    listed = [(e["key"], e["size"], "value" in e) for e in (await bot.call("recall"))["entries"]]
    assert listed == [("_", 2, True), ("a", 257, False), ("b", 256, True)]
    operations = {op["name"]: op for op in bot.ready["operations"]}
    for name, permission in {"remember": "write", "recall": "read", "forget": "write"}.items():
        operation = operations[name]
        assert (operation["permission"], operation["tool"]) == (permission, True)


@pytest.mark.behaviour("E-8", "E-9")
async def test_memory_survives_a_restart_and_uncommitted_keys_count_in_its_limit(
    in_memory: Networks, tmp_path: Path
) -> None:
    place = f"sqlite:{tmp_path / 'town.db'}"
    async with opened(before := open_store(place)):
        await write(before, *(MemoryWritten("bot", f"k{n}", str(n)) for n in range(MAX_KEYS - 1)))
    store = MoodyStore(place)
    async with in_memory.start(store=store) as network:
        bot, ann = await network.join("bot", "agent"), await network.join("ann")
        assert len(await entries(bot)) == MAX_KEYS - 1
        assert (await bot.call("recall", key="k7"))["value"] == 7
        store.gate.clear()
        last = await bot.post("remember", key="last", value=1)
        await store.until_waiting()
        again = await bot.post("remember", key="k1", value="again")
        assert (await refused(bot, "remember", key="over", value=1)).code == "limit"
        store.gate.set()
        for ref in (last, again):
            assert (await bot.answer(ref))["op"] == "result"
        await ann.call("remember", key="mine", value=1)
        assert (await entries(bot))["k1"] == "again"
        assert (await refused(bot, "remember", key="over", value=1)).code == "limit"


@pytest.mark.behaviour("E-9")
async def test_invalid_keys_and_oversized_values_are_refused(network: Network) -> None:
    bot = await network.join("bot", "agent")
    for key in ("", "a b", "a/b", "ä", "x" * 65, "a\n", 5, None):
        error = await refused(bot, "remember", key=key, value=1)
        assert (error.code, "key" in error.message) == ("bad_request", True)
    await bot.call("remember", key="A-z_0.9" + "x" * 57, value=1)
    await bot.call("remember", key="ann.likes", value="ä" * 8191)
    error = await refused(bot, "remember", key="ann.likes", value="ä" * 8192)
    assert error.code == "too_large"
    assert "at most 16384 bytes of JSON per key, this has 16386" in error.message
    assert len((await bot.call("recall", key="ann.likes"))["value"]) == 8191
    for operation in ("recall", "forget"):
        error = await refused(bot, operation, key="ann-like")
        assert (error.code, error.details["near"]) == ("unknown_key", ["ann.likes"])
        assert "'ann-like'; did you mean ann.likes?" in error.message
    assert (await refused(bot, "recall", key="zz")).details == {}


@pytest.mark.behaviour("E-9")
async def test_a_failed_commit_neither_adds_nor_removes_a_key(
    network: Network, moody: MoodyStore
) -> None:
    bot = await network.join("bot", "agent")
    moody.failing = 1
    assert (await refused(bot, "remember", key="k", value=1)).temporary
    assert (await refused(bot, "forget", key="k")).code == "unknown_key"
    await bot.call("remember", key="k", value=1)
    moody.failing = 1
    assert (await refused(bot, "forget", key="k")).temporary
    assert await entries(bot) == {"k": 1}


@pytest.mark.behaviour("E-9")
async def test_a_repeated_call_returns_the_first_result_and_changes_nothing(
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_json_value_is_returned_unchanged(value: Any) -> None:
    text = to_json(value)
    assert Recalled.of("k", text).value == value
    assert MemoryEntry.of("k", len(text), text).value == value
    assert MemoryEntry.of("k", len(text), None).value is None
