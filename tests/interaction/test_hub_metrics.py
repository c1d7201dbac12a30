"""The metrics of a working hub."""

from __future__ import annotations

import re

import pytest

from hubbub.network.exposition import render
from tests.interaction.peers import GATEWAY, Network, config
from tests.interaction.stores import MoodyStore

NETWORK = config(network={"limits": {"unacknowledged": 1}})


def metrics(network: Network) -> dict[str, float]:
    text = render(network.hub.kernel.metrics).decode()
    return {name: float(value) for name, value in re.findall(r"^(hubbub_\S+) (\S+)$", text, re.M)}


@pytest.mark.skipif(GATEWAY, reason="gateways count what they deliver themselves")
async def test_messages_deliveries_wakes_and_queued_commits_are_counted(
    network: Network, moody: MoodyStore
) -> None:
    ann, calc = await network.join("ann"), await network.join("calc", "agent")
    bob = await network.join("bob")
    await ann.say("calc", "direct")
    await ann.call("broadcast_text_message", text="to calc and bob")
    (first,) = await calc.sync()
    await calc.ack(first["seq"])
    await calc.until(lambda: bool(calc.events))  # a delivery from the log
    await bob.event()
    counted = metrics(network)
    assert counted["hubbub_sessions"] == 3
    assert counted["hubbub_messages_total"] == 2
    assert counted["hubbub_deliveries_total"] == 1 + 2
    assert counted['hubbub_wakes_total{reason="direct"}'] == 1
    assert counted['hubbub_wakes_total{reason="broadcast"}'] == 1
    assert counted["hubbub_commit_seconds_count"] >= 2
    assert 0 < counted["hubbub_commit_seconds_sum"] < 100, "not times of day"
    moody.gate.clear()
    await ann.post("send_text_message", to="bob", text="is being committed")
    await moody.until_waiting()
    await ann.post("send_text_message", to="bob", text="is queued")
    await ann.call("list_channels")  # the hub has read the message before it
    assert metrics(network)["hubbub_commit_queue"] == 1
    moody.gate.set()
    await network.quiet()
    assert metrics(network)["hubbub_commit_queue"] == 0
