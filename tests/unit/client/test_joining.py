"""How a client enters and leaves."""

from __future__ import annotations

import asyncio
import socket

import pytest

from hubbub.client import Client, ClientOptions, WebSocketTransport
from hubbub.client import client as client_module
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.frames import Cursor
from hubbub.protocol.messages import Card
from tests.unit.client.peer import Answer, Consumer, Peer, soon


async def test_a_client_introduces_itself_with_all_it_was_given_and_learns_its_limits(
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
    assert (identify.version, identify.participant, identify.kind) == (
        "hubbub.v1",
        "adder",
        "agent",
    )
    assert (identify.token, identify.card) == ("secret", card)
    assert (identify.turns, identify.observe) == (True, True)


@pytest.mark.parametrize("given", [None, Cursor(epoch="epoch-1", seq=41)])
async def test_a_cursor_of_an_earlier_life_is_asked_for_else_the_hub_decides(
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


async def test_who_is_turned_away_learns_why_when_entering(any_peer: Peer) -> None:
    wrong: dict[str, object] = {"code": "auth_failed", "message": "no such token"}
    any_peer.answers += [
        Answer(error=wrong, close=(4500, "auth")),  # type: ignore[arg-type]  # it is JSON
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


async def test_what_ready_leaves_out_is_asked_for_and_what_comes_meanwhile_is_not_lost(
    peer: Peer,
) -> None:
    peer.answers += [Answer(left_out=["participants"]), Answer(left_out=["participants"])]
    client = peer.client()
    entering = asyncio.create_task(client.__aenter__())
    connection = await peer.connection()
    asked = await connection.call()
    assert asked["name"] == "list_participants"
    connection.event(1, 0)
    connection.result(asked, {"participants": [], "more": False})
    await soon(entering)
    consumer = Consumer(client)
    await consumer.ready()
    assert (await consumer.event()).seq == 1
    await client.__aexit__(None, None, None)
    entering = asyncio.create_task(peer.client().__aenter__())
    connection = await peer.connection()
    connection.refuse(await connection.call(), "store_unavailable")
    with pytest.raises(OperationError, match="store_unavailable"):
        await soon(entering)


async def test_a_hub_that_never_answers_is_given_up(
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


async def test_who_is_no_hub_is_a_lost_connection() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionLost, match="is not a hub"):
            await Client(WebSocketTransport(f"ws://127.0.0.1:{port}"), "ann").__aenter__()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody else gets this port
        transport = WebSocketTransport(f"ws://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ConnectionLost) as caught:
            await Client(transport, "ann").__aenter__()
    assert caught.value.code == 1006


async def test_leaving_writes_what_was_posted_and_ends_events_and_calls(any_peer: Peer) -> None:
    async with any_peer.client() as client:
        connection = await any_peer.connection()
        consumer = Consumer(client)
        await consumer.ready()
        waiting = asyncio.create_task(consumer.end())
        asked = [client.post("send_text_message", n=n) for n in range(20)]
    sent = [frame["args"] for frame in await connection.ended()]
    assert sent == [{"n": n} for n in range(20)]
    assert (await soon(waiting)).code == 1000
    for late in (asked[0], client.call("list_participants")):
        with pytest.raises(ConnectionLost):
            await soon(late)


@pytest.mark.parametrize("entering", [True, False])
async def test_a_cancelled_owner_leaves_nothing_behind(peer: Peer, entering: bool) -> None:
    peer.answers.append(Answer(silent=entering))
    inside = asyncio.Event()

    async def live() -> None:
        async with peer.client() as client:
            inside.set()
            await client.call("list_participants")

    owner = asyncio.create_task(live())
    connection = await peer.connection()
    if not entering:
        await soon(inside.wait())
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(owner)
    await soon(connection.gone.wait())


async def test_leaving_in_the_middle_of_a_reconnection_works(peer: Peer) -> None:
    async with peer.client() as client:
        peer.away = True
        (await peer.connection()).drop()
        consumer = Consumer(client)
        await consumer.ready()
        await consumer.disconnected()
        asked = client.post("list_participants")
    with pytest.raises(ConnectionLost):
        await soon(asked)
