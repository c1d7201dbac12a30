"""SIGTERM under load: the hub finishes what it has taken, says come back, and ends with 0."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from hubbub.client import Backoff, Client, WebSocketTransport
from hubbub.protocol.codes import CloseCode, ErrorCode
from tests.e2e.support.hubs import DEADLINE_S, HubProcess, running_hub
from tests.e2e.support.peers import Frame, Peer, inside, peer
from tests.e2e.support.traffic import Ledger, Stream, read, write_one_by_one

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

QUICK = Backoff(first_s=0.02, most_s=0.1)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[HubProcess]:
    async with running_hub(tmp_path) as hub:
        yield hub


async def _send_until_closed(sender: Peer, answers: list[Frame]) -> tuple[int, list[Frame]]:
    """Keep 32 calls in flight; returns the close code, and what else the hub said."""
    others: list[Frame] = []
    sent = 0
    try:
        while True:
            while sent < len(answers) + 32:
                sent += 1
                args: Frame = {"to": "bob", "text": f"ann>bob {sent}"}
                call: Frame = {"op": "call", "ref": str(sent), "name": "send_text_message"}
                await sender.send({**call, "args": args})
            frame = await sender.recv()
            (answers if frame["op"] in ("result", "error") else others).append(frame)
    except ConnectionClosed as closed:
        return (closed.rcvd.code if closed.rcvd else 1006), others


@pytest.mark.behaviour("P-30")
async def test_a_terminated_hub_keeps_what_it_acknowledged_and_ends_with_0(
    hub: HubProcess,
) -> None:
    answers: list[Frame] = []
    async with asyncio.timeout(DEADLINE_S), peer(hub.url) as bob, peer(hub.url) as ann:
        await bob.identify("bob", "agent")
        await ann.identify("ann")
        sending = asyncio.create_task(_send_until_closed(ann, answers))
        while len(answers) < 200:
            await bob.expect(op="event")
        # Bob neither reads nor acknowledges from here on: that must not hold up the end.
        code = await hub.terminate()
        close_code, others = await sending
    assert code == 0
    assert close_code == CloseCode.DRAIN
    assert {"op": "reconnect", "after_s": 1.0} in others
    await hub.start()
    async with asyncio.timeout(DEADLINE_S), peer(hub.url) as ann:
        await ann.identify("ann")
        results = [frame for frame in answers if frame["op"] == "result"]
        refused = [frame for frame in answers if frame["op"] == "error"]
        assert {frame["code"] for frame in refused} <= {ErrorCode.DRAINING}
        for frame in results:
            found = await ann.call("read_message", id=inside(frame, "value")["id"])
            assert inside(found, "value")["content"] == f"ann>bob {frame['ref']}"


async def test_clients_of_a_restarted_hub_go_on_as_if_nothing_had_been(
    hub: HubProcess,
) -> None:
    ledger, stop = Ledger(), asyncio.Event()
    streams = [Stream("ann", "bob"), Stream("bob", "ann")]
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        clients = {}
        reading = []
        for name in ("ann", "bob"):
            client = Client(WebSocketTransport(hub.url), name, backoff=QUICK)
            clients[name] = await stack.enter_async_context(client)
            reading.append(tasks.create_task(read(client, ledger)))
        writing = [
            tasks.create_task(write_one_by_one(clients[s.sender], s, ledger, stop)) for s in streams
        ]
        for _ in range(2):
            await ledger.more_acks(50)
            assert await hub.terminate() == 0
            await hub.start()
        await ledger.more_acks(50)
        stop.set()
        await asyncio.gather(*writing)
        await ledger.all_arrived(streams, ["ann", "bob"])
        for task in reading:
            task.cancel()
    assert await hub.terminate() == 0
    ledger.check_readers(streams, ["ann", "bob"])
    ledger.check_log(hub.database, streams)
    assert ledger.fresh_starts == 0
