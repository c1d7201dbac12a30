"""How a client enters and leaves."""

from __future__ import annotations

import asyncio
import socket

import pytest

from hubbub.client import Client, WebSocketTransport
from hubbub.client import client as client_module
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.frames import Cursor
from hubbub.protocol.messages import Card
from tests.unit.client.peer import Answer, Consumer, Peer, memory_peer, soon


async def test_a_client_introduces_itself_with_all_it_was_given(peer: Peer) -> None:
    card = Card(description="adds", skills=("sums",))
    client = Client(
        peer.transport, "adder", "agent", token="secret", card=card, turns=True, observe=True
    )
    async with client:
        identify = (await peer.connection()).identify
    assert identify is not None
    assert (identify.version, identify.participant, identify.kind) == (
        "hubbub.v1",
        "adder",
        "agent",
    )
    assert (identify.token, identify.card) == ("secret", card)
    assert identify.turns
    assert identify.observe


async def test_without_a_cursor_the_hub_decides_where_to_start(peer: Peer) -> None:
    peer.answers.append(Answer(cursor=7))
    async with peer.client() as client:
        identify = (await peer.connection()).identify
        assert client.ready.cursor == 7
        assert client.cursor == Cursor(epoch="epoch-1", seq=7)
    assert identify is not None
    assert identify.cursor is None


async def test_a_cursor_of_an_earlier_life_is_asked_for(peer: Peer) -> None:
    cursor = Cursor(epoch="epoch-1", seq=41)
    client = peer.client(cursor=cursor)
    assert client.cursor == cursor
    async with client:
        identify = (await peer.connection()).identify
        assert client.ready.cursor == 41
    assert identify is not None
    assert identify.cursor == cursor


async def test_a_joined_client_knows_its_network_and_its_limits(peer: Peer) -> None:
    async with peer.client() as client:
        assert client.network == "testnet"
        assert client.participant == "ann"
        assert client.hello.limits.frame_bytes == 4096
        assert [o.name for o in client.ready.operations] == [
            "list_participants",
            "send_text_message",
        ]


async def test_a_wrong_token_is_an_operation_error_when_entering(peer: Peer) -> None:
    peer.answers.append(
        Answer(error={"code": "auth_failed", "message": "no such token"}, close=(4500, "auth"))
    )
    with pytest.raises(OperationError) as caught:
        async with peer.client():
            pass
    assert caught.value.code == "auth_failed"
    assert caught.value.message == "no such token"
    await soon((await peer.connection()).gone.wait())


async def test_a_hub_that_closes_at_the_door_is_a_lost_connection(peer: Peer) -> None:
    peer.answers.append(Answer(close=(4503, "replaced")))
    with pytest.raises(ConnectionLost) as caught:
        await peer.client().__aenter__()
    assert (caught.value.code, caught.value.reason) == (4503, "replaced")


async def test_a_hub_of_another_version_is_refused_by_name(peer: Peer) -> None:
    peer.answers.append(Answer(versions=["hubbub.v9"]))
    with pytest.raises(OperationError, match=r"hubbub\.v9") as caught:
        await peer.client().__aenter__()
    assert caught.value.code == "unsupported_version"


async def test_a_hub_that_never_answers_is_given_up(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "HANDSHAKE_S", 0.05)
    peer.answers.append(Answer(silent=True))
    with pytest.raises(ConnectionLost, match="does not answer"):
        await peer.client().__aenter__()
    await soon((await peer.connection()).gone.wait())


async def test_nobody_listening_is_a_lost_connection() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody else gets this port
        transport = WebSocketTransport(f"ws://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ConnectionLost) as caught:
            await Client(transport, "ann").__aenter__()
    assert caught.value.code == 1006


async def test_a_web_server_that_is_no_hub_is_a_lost_connection() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectionLost, match="is no hub"):
            await Client(WebSocketTransport(f"ws://127.0.0.1:{port}"), "ann").__aenter__()


async def test_in_process_nobody_listening_is_the_same() -> None:
    async with memory_peer() as peer:
        peer.away = True
        with pytest.raises(ConnectionLost, match="Connection refused"):
            await peer.client().__aenter__()


async def test_leaving_closes_the_connection_and_ends_events_and_calls(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        consumer = Consumer(client)
        await consumer.ready()
        waiting = asyncio.create_task(consumer.end())
        asked = client.post("list_participants")
        await connection.call()
    await soon(connection.gone.wait())
    assert (await soon(waiting)).code == 1000
    with pytest.raises(ConnectionLost):
        await soon(asked)


async def test_what_was_posted_before_leaving_is_still_written(peer: Peer) -> None:
    async with peer.client() as client:
        connection = await peer.connection()
        for n in range(20):
            client.post("send_text_message", to="bob", text=str(n))
    sent = [frame["args"] for frame in await connection.ended()]
    assert sent == [{"to": "bob", "text": str(n)} for n in range(20)]


async def test_a_call_after_leaving_is_refused_at_once(peer: Peer) -> None:
    async with peer.client() as client:
        pass
    with pytest.raises(ConnectionLost):
        await soon(client.call("list_participants"))


async def test_an_error_inside_the_block_comes_out_as_itself(peer: Peer) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with peer.client():
            raise LookupError("mine")
    await soon((await peer.connection()).gone.wait())


async def test_a_cancelled_owner_leaves_nothing_behind(peer: Peer) -> None:
    inside = asyncio.Event()

    async def live() -> None:
        async with peer.client() as client:
            inside.set()
            await client.call("list_participants")

    owner = asyncio.create_task(live())
    await soon(inside.wait())
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(owner)
    await soon((await peer.connection()).gone.wait())


async def test_entering_can_be_cancelled(peer: Peer) -> None:
    peer.answers.append(Answer(silent=True))
    entering = asyncio.create_task(peer.client().__aenter__())
    connection = await peer.connection()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(entering)
    await soon(connection.gone.wait())


async def test_leaving_in_the_middle_of_a_reconnection_works() -> None:
    async with memory_peer() as peer:
        async with peer.client() as client:
            peer.away = True
            (await peer.connection()).drop()
            consumer = Consumer(client)
            await consumer.ready()
            await consumer.disconnected()
            asked = client.post("list_participants")
        with pytest.raises(ConnectionLost):
            await soon(asked)
