"""What `/metrics` tells of a hub that works."""

from __future__ import annotations

import re

from tests.interaction.peers import Network, Networks, config, eventually
from tests.interaction.stores import MoodyStore


def figures(network: Network) -> dict[str, float]:
    text = network.hub.metrics.render().decode()
    return {name: float(value) for name, value in re.findall(r"^(hubbub_\S+) (\S+)$", text, re.M)}


async def test_messages_deliveries_and_wakes_are_counted(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent")
        await network.join("bob")
        await ann.say("calc", "direct")
        await ann.call("broadcast_text_message", text="to calc and bob")
        await calc.sync()
        counted = figures(network)
    assert counted["hubbub_sessions"] == 3
    assert counted["hubbub_messages_total"] == 2
    assert counted["hubbub_deliveries_total"] == 1 + 2
    assert counted['hubbub_wakes_total{reason="direct"}'] == 1
    assert counted['hubbub_wakes_total{reason="broadcast"}'] == 1
    assert counted["hubbub_commit_seconds_count"] >= 2


async def test_what_is_read_from_the_log_counts_as_delivered_too(in_memory: Networks) -> None:
    one = config(network={"limits": {"unacknowledged": 1}})
    async with in_memory.start(one) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for text in ("pushed", "read later"):
            await ann.say("bob", text)
        (first,) = await bob.sync()
        await bob.ack(first["seq"])
        await bob.until(lambda: bool(bob.events))
        assert figures(network)["hubbub_deliveries_total"] == 2


async def test_the_queue_is_told_as_it_is_when_asked(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann = await network.join("ann")
        await network.join("bob")
        store.gate.clear()
        await ann.post("send_text_message", to="bob", text="is being committed")
        await store.waiting.wait()
        await ann.post("send_text_message", to="bob", text="waits for its turn")
        await eventually(lambda: figures(network)["hubbub_commit_queue"] == 1)
        store.gate.set()
        await network.quiet()
        assert figures(network)["hubbub_commit_queue"] == 0
