"""SIGTERM under load: the hub finishes accepted calls, sends `reconnect` and exits with 0."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hubbub.errors import ConnectionLost
from hubbub.protocol.codes import CloseCode, ErrorCode
from tests.e2e.support.hubs import DEADLINE_S, running_hub
from tests.e2e.support.peers import peer
from tests.interaction.peers import Frame, Peer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


async def _send_until_closed(sender: Peer, answers: list[Frame]) -> tuple[int, list[Frame]]:
    """Keeps 32 calls in flight; returns the close code, and all frames that are not answers."""
    others: list[Frame] = []
    sent = 0
    try:
        while True:
            while sent < len(answers) + 32:
                sent += 1
                args = {"to": "bob", "text": f"ann>bob {sent}"}
                await sender.send(op="call", ref=str(sent), name="send_text_message", args=args)
            frame = await sender.receive()
            (answers if frame["op"] in ("result", "error") else others).append(frame)
    except ConnectionLost as lost:
        return lost.code, others


@pytest.mark.behaviour("P-30")
async def test_a_terminated_hub_keeps_acknowledged_messages_and_exits_with_0(
    tmp_path: Path,
) -> None:
    answers: list[Frame] = []
    async with running_hub(tmp_path) as hub, asyncio.timeout(DEADLINE_S):
        async with peer(hub.url) as bob, peer(hub.url) as ann:
            await bob.identify("bob", "agent")
            await ann.identify("ann")
            sending = asyncio.create_task(_send_until_closed(ann, answers))
            while len(answers) < 200:
                await bob.event()
            # Bob no longer reads or acknowledges, which must not delay the exit.
            assert await hub.terminate() == 0
            close_code, others = await sending
        assert close_code == CloseCode.DRAIN
        assert {"op": "reconnect", "after_s": 1.0} in others
        await hub.start()
        async with peer(hub.url) as ann:
            await ann.identify("ann")
            results = [frame for frame in answers if frame["op"] == "result"]
            refused = [frame for frame in answers if frame["op"] == "error"]
            assert {frame["code"] for frame in refused} <= {ErrorCode.DRAINING}
            for frame in results:
                stored = await ann.call("read_message", id=frame["value"]["id"])
                assert stored["content"] == f"ann>bob {frame['ref']}"
