"""A client joins and leaves."""

from __future__ import annotations

import asyncio
import socket

import pytest

from hubbub.client import Client, ClientOptions, WebSocketTransport
from hubbub.client import client as client_module
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.protocol.frames import Cursor
from hubbub.protocol.messages import Card
from tests.unit.client.peer import Answer, Consumer, Peer, soon


async def test_a_client_identifies_with_its_options_and_receives_limits_and_operations(
    any_peer: Peer,
) -> None:
    card = Card(description="adds", skills=("sums",))
    options = ClientOptions(card=card, observe=True)
    client = Client(
        any_peer.transport, "adder", "agent", token="secret", turns=True, options=options
    )
    async with client:
        identify = (await any_peer.connection()).identify
        assert (client.network, client.participant) == ("testnet", "adder")
        assert client.hello.limits.frame_bytes == 4096
        names = [operation.name for operation in client.ready.operations]
        assert names == ["list_participants", "send_text_message"]
    assert identify is not None
    assert (identify.version, identify.participant) == ("hubbub.v1", "adder")
    assert (identify.kind, identify.token, identify.card) == ("agent", "secret", card)
    assert (identify.turns, identify.observe) == (True, True)


@pytest.mark.parametrize("given", [None, Cursor(epoch="epoch-1", seq=41)])
async def test_a_client_resumes_at_its_given_cursor_or_where_the_hub_decides(
    peer: Peer, given: Cursor | None
) -> None:
    peer.answers.append(Answer(cursor=None if given else 7))
    client = peer.client(cursor=given)
    assert client.cursor == given
    async with client:
        identify = (await peer.connection()).identify
        assert client.ready.cursor == (41 if given else 7)
        assert client.cursor == Cursor(epoch="epoch-1", seq=client.ready.cursor)
    assert identify is not None
    assert identify.cursor == given


async def test_a_refused_client_raises_the_reason_on_joining(any_peer: Peer) -> None:
    any_peer.answers += [
        Answer(error={"code": "auth_failed", "message": "no such token"}, close=(4500, "auth")),
        Answer(close=(4503, "replaced")),
        Answer(versions=["hubbub.v9"]),
    ]
    with pytest.raises(OperationError) as caught:
        async with any_peer.client():
            pass
    assert (caught.value.code, caught.value.message) == ("auth_failed", "no such token")
    await soon((await any_peer.connection()).gone.wait())
    with pytest.raises(ConnectionLost) as lost:
        await any_peer.client().__aenter__()
    assert (lost.value.code, lost.value.reason) == (4503, "replaced")
    with pytest.raises(OperationError, match=r"hubbub\.v9") as caught:
        await any_peer.client().__aenter__()
    assert caught.value.code == "unsupported_version"


async def test_parts_missing_from_ready_are_requested_without_losing_events(peer: Peer) -> None:
    peer.answers += [Answer(left_out=["participants"]), Answer(left_out=["participants"])]
    client = peer.client()
    joining = asyncio.create_task(client.__aenter__())
    connection = await peer.connection()
    call = await connection.call()
    assert call["name"] == "list_participants"
    connection.event(1, 0)
    connection.result(call, {"participants": [], "more": False})
    await soon(joining)
    consumer = Consumer(client)
    await consumer.ready()
    assert (await consumer.event()).seq == 1
    await client.__aexit__(None, None, None)
    joining = asyncio.create_task(peer.client().__aenter__())
    connection = await peer.connection()
    connection.refuse(await connection.call(), "store_unavailable")
    with pytest.raises(OperationError, match="store_unavailable"):
        await soon(joining)


async def test_joining_a_silent_or_absent_hub_raises_connection_lost(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "HANDSHAKE_S", 0.01)
    peer.answers.append(Answer(silent=True))
    with pytest.raises(ConnectionLost, match="does not answer"):
        await peer.client().__aenter__()
    await soon((await peer.connection()).gone.wait())
    peer.away = True
    with pytest.raises(ConnectionLost, match="Connection refused"):
        await peer.client().__aenter__()


async def test_joining_a_server_that_is_not_a_hub_raises_connection_lost() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionLost, match="is not a hub"):
            await Client(WebSocketTransport(f"ws://127.0.0.1:{port}"), "ann").__aenter__()
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # does not listen, and no other program gets the port
        transport = WebSocketTransport(f"ws://127.0.0.1:{reserved.getsockname()[1]}")
        with pytest.raises(ConnectionLost) as caught:
            await Client(transport, "ann").__aenter__()
    assert caught.value.code == 1006


async def test_leaving_sends_posted_calls_and_ends_events_and_replies(any_peer: Peer) -> None:
    async with any_peer.client() as client:
        connection = await any_peer.connection()
        consumer = Consumer(client)
        await consumer.ready()
        waiting = asyncio.create_task(consumer.end())
        replies = [client.post("send_text_message", n=n) for n in range(20)]
    sent = [frame["args"] for frame in await connection.ended()]
    assert sent == [{"n": n} for n in range(20)]
    assert (await soon(waiting)).code == 1000
    for reply in (replies[0], client.call("list_participants")):
        with pytest.raises(ConnectionLost):
            await soon(reply)


async def test_a_client_is_used_in_its_block_and_event_loop_and_entered_once(peer: Peer) -> None:
    client = peer.client()

    async def call() -> None:
        await client.call("list_participants")

    async def event() -> None:
        await anext(client.events())

    for use in (call(), event(), client.signal("typing"), client.written()):
        with pytest.raises(UserError, match="not connected: use `async with client:`"):
            await soon(use)
    async with client:
        with pytest.raises(UserError, match="run_coroutine_threadsafe"):
            await soon(asyncio.to_thread(asyncio.run, call()))
        with pytest.raises(UserError, match="only once"):
            await client.__aenter__()


@pytest.mark.parametrize("joining", [True, False])
async def test_cancelling_the_owner_disconnects_the_client(peer: Peer, joining: bool) -> None:
    peer.answers.append(Answer(silent=joining))
    joined = asyncio.Event()

    async def live() -> None:
        async with peer.client() as client:
            joined.set()
            await client.call("list_participants")

    owner = asyncio.create_task(live())
    connection = await peer.connection()
    if not joining:
        await soon(joined.wait())
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(owner)
    await soon(connection.gone.wait())


async def test_leaving_during_a_reconnect_fails_the_calls_in_flight(peer: Peer) -> None:
    async with peer.client() as client:
        peer.away = True
        (await peer.connection()).drop()
        consumer = Consumer(client)
        await consumer.ready()
        await consumer.disconnected()
        reply = client.post("list_participants")
    with pytest.raises(ConnectionLost):
        await soon(reply)
