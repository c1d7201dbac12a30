"""What `/metrics` tells of a hub that works."""

from __future__ import annotations

import re

import pytest

from hubbub.network.exposition import render
from tests.interaction.peers import GATEWAY, Network, config, eventually
from tests.interaction.stores import MoodyStore

NETWORK = config(network={"limits": {"unacknowledged": 1}})


def figures(network: Network) -> dict[str, float]:
    text = render(network.hub.kernel.metrics).decode()
    return {name: float(value) for name, value in re.findall(r"^(hubbub_\S+) (\S+)$", text, re.M)}


@pytest.mark.skipif(GATEWAY, reason="gateways count what they deliver themselves")
async def test_messages_deliveries_and_wakes_are_counted_and_the_queue_is_told(
    network: Network, moody: MoodyStore
) -> None:
    ann, calc = await network.join("ann"), await network.join("calc", "agent")
    bob = await network.join("bob")
    await ann.say("calc", "direct")
    await ann.call("broadcast_text_message", text="to calc and bob")
    (first,) = await calc.sync()
    await calc.ack(first["seq"])
    await calc.until(lambda: bool(calc.events))  # read from the log: that is delivered too
    await bob.event()
    counted = figures(network)
    assert counted["hubbub_sessions"] == 3
    assert counted["hubbub_messages_total"] == 2
    assert counted["hubbub_deliveries_total"] == 1 + 2
    assert counted['hubbub_wakes_total{reason="direct"}'] == 1
    assert counted['hubbub_wakes_total{reason="broadcast"}'] == 1
    assert counted["hubbub_commit_seconds_count"] >= 2
    moody.gate.clear()
    await ann.post("send_text_message", to="bob", text="is being committed")
    await moody.waiting.wait()
    await ann.post("send_text_message", to="bob", text="waits for its turn")
    await eventually(lambda: figures(network)["hubbub_commit_queue"] == 1)
    moody.gate.set()
    await network.quiet()
    assert figures(network)["hubbub_commit_queue"] == 0
