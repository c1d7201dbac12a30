"""Conversations in the chat, with and without a connection."""

from __future__ import annotations

import asyncio

from syrupy.assertion import SnapshotAssertion

from hubbub.client import Client, MemoryTransport
from hubbub.protocol.codes import CloseCode
from hubbub.testing.network import LocalNetwork
from tests.unit.people.chatroom import chatting, next_text


async def test_a_newcomer_sees_her_thread_and_a_hint(network: LocalNetwork) -> None:
    await network.join("calculator")
    async with chatting(network, opening=None) as chat:
        await chat.ann.sees("── broadcast ──")
        await chat.ann.sees("@calculator")
        assert chat.ann.status.prompt == "broadcast> "
        assert chat.ann.status.network == "town"
    assert chat.code == 0
    async with chatting(network, opening="#genral") as chat:
        await chat.ann.sees("did you mean general?")
        await chat.ann.sees("── broadcast ──")


async def test_a_message_reaches_its_thread_and_is_shown_once(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        chat.ann.types("hello all")
        assert await next_text(bob) == "hello all"
        await chat.ann.sees("ann: hello all ✓")
        await bob.call("post_to_channel", channel="general", text="hello ann")
        await chat.ann.sees("bob: hello ann")
        await bob.call("send_text_message", to="ann", text="psst")
        await chat.ann.sees("[@bob] bob: psst")
        await chat.ann.status_shows("unread: @bob 1")
        chat.ann.types("/dm bob yes?")
        await chat.ann.sees("── @bob ──")
        await chat.ann.sees("bob: psst")
        await chat.ann.sees("ann: yes? ✓")
        assert await next_text(bob) == "yes?"
        assert chat.ann.status.notices() == []
        chat.ann.types("/opne")
        await chat.ann.sees("did you mean /open?")
    assert chat.code == 0, "only scripts fail"
    assert not any("hello all" in line for line in chat.ann.shown)


async def test_a_chat_begins_with_all_threads_not_only_the_latest(
    network: LocalNetwork, bob: Client
) -> None:
    await bob.call("send_text_message", to="ann", text="psst")
    for n in range(51):
        await bob.call("post_to_channel", channel="general", text=f"topic {n}")
        await bob.call("reply", message_id=f"m{2 * n + 2}", text="an answer")
    async with chatting(network) as chat:
        await chat.ann.sees("topic 50")  # and receives the others, which the next chat does not
    async with chatting(network) as chat:
        await chat.ann.sees("── #general")
        await chat.ann.status_shows("@bob 1")
        chat.ann.types("/threads")
        await chat.ann.sees("bob: psst")


async def test_opening_a_thread_shows_its_history_and_more_on_request(
    network: LocalNetwork, bob: Client
) -> None:
    for n in range(1, 46):
        await bob.call("post_to_channel", channel="general", text=f"text {n}.")
    async with chatting(network) as chat:
        await chat.ann.sees("text 26.")
        await chat.ann.sees("text 45.")
        for first, last in ((6, 25), (1, 5)):
            chat.ann.types("/more")
            assert f"text {first}." in await chat.ann.sees(": text ")
            await chat.ann.sees(f"text {last}.")
        chat.ann.types("/more", "/dm bob", "/more")
        await chat.ann.sees("beginning of the thread")
        await chat.ann.sees("── @bob ──")
        await chat.ann.sees("beginning of the thread")


async def test_results_and_errors_appear_below_their_commands(
    network: LocalNetwork, bob: Client, snapshot: SnapshotAssertion
) -> None:
    for question in ("a question", "another"):
        await bob.call("post_to_channel", channel="general", text=question)
    await bob.call("create_channel", name="loft")
    async with chatting(network, patient=True) as chat:
        await chat.ann.enters(
            "/reply m1 an answer", "/open #general › m1", "and more", "/open m2", "first there",
        )  # fmt: skip
        received = [await next_text(bob) for _ in range(3)]
        assert received == ["an answer", "and more", "first there"]
        await chat.ann.enters(
            "/open #loft", "/join loft", "/create attic", "/leave", "/leave", "/join nowhere",
            "/create general", "/who", "/threads", "/open 1",
            "/opne 1", "/dm nobody", "/open #nothing", "/open m999", "/reply m999 x",
            "/dm calculator hello @nobody",
        )  # fmt: skip
        assert chat.ann.transcript == snapshot
        await chat.ann.enters("x" * 70_000)
        error = await chat.ann.sees("✗ not sent: text: at most 65536 bytes")
        assert error.endswith("xxx…")
        assert len(error) < 200
    assert chat.code == 1


async def test_a_script_with_a_refused_line_fails(network: LocalNetwork) -> None:
    for line, code in (
        ("/dm nobody", 1), ("/join nowhere", 1), ("/frobnicate", 1), ("x" * 70_000, 1), ("/who", 0),
    ):  # fmt: skip
        async with chatting(network, patient=True) as chat:
            chat.ann.types(line, "fine", "/quit")
            await chat.ann.sees("ann: fine ✓")
        assert chat.code == code


async def test_a_script_runs_line_by_line_and_waits_for_answers(network: LocalNetwork) -> None:
    """Each line is finished before the next one is read."""
    calculator = await network.join("calculator")

    async def answer() -> None:
        await next_text(calculator)
        await calculator.call("send_text_message", to="ann", text="4")

    async with asyncio.TaskGroup() as tasks, chatting(network, patient=True) as chat:
        tasks.create_task(answer())
        chat.ann.types("/dm calculator 2+2", "/wait 10", "/who", "/wait 0.001", "on", "/quit")
        for line in ("── @calculator ──", "ann: 2+2 ✓", "calculator: 4", "  human  ", "on ✓"):
            await chat.ann.sees(line)


async def test_activity_is_shown_in_the_status(network: LocalNetwork) -> None:
    calculator = await network.join("calculator")
    async with chatting(network) as chat:
        chat.ann.types("/dm calculator 2+2")
        await chat.ann.sees("2+2 ✓")
        await calculator.signal("activity", "dm.ann.calculator", {"state": "thinking"})
        await chat.ann.status_shows("calculator is thinking")
        await calculator.call("send_text_message", to="ann", text="4")
        await chat.ann.sees("calculator: 4")
        await calculator.signal("activity", "dm.ann.calculator", {"state": "idle"})
        await chat.ann.status_is_quiet()


# The connection -----------------------------------------------------------------------------------


async def test_a_lost_connection_is_reported_once_and_queued_messages_arrive(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("#general")
        chat.away = True
        chat.cut()
        await chat.ann.sees("connection lost (cut by the test)")
        await chat.ann.status_shows("Connection refused")
        chat.ann.types("/who", "sent offline", "/dm bob", "/threads")
        await chat.ann.sees("not connected; will run after reconnecting")
        await chat.ann.sees("not connected; will send later: sent offline")
        await chat.ann.sees("── @bob ──")
        await chat.ann.status_shows("1 unsent")
        chat.away = False
        await chat.ann.sees("reconnected")
        assert await next_text(bob) == "sent offline"
        chat.ann.types("/open #general", "/who")
        await chat.ann.sees("sent offline ✓")
        await chat.ann.sees("  human  ")
    assert not any("connection lost" in line for line in chat.ann.shown)


async def test_leaving_without_a_connection_reports_unsent_messages(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("#general")
        chat.away = True
        chat.cut()
        await chat.ann.status_shows("Connection refused")
        chat.ann.types("lost words", "/quit")
        await chat.ann.sees("1 not sent")
    assert chat.code == 0


async def test_a_permanent_close_by_the_hub_ends_the_chat(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("#general")
        chat.cut(CloseCode.REVOKED)
        await chat.ann.sees("the hub closed the connection: cut by the test")
    assert chat.code == 1


# Read marks ---------------------------------------------------------------------------------------


async def read_marks(network: LocalNetwork) -> dict[str, int]:
    """Ann's read marks in the hub."""
    transport = MemoryTransport(network.hub.gateway.attach)
    async with Client(transport, "ann", "human", cursor="latest") as another_window:
        return {thread.id: thread.read for thread in another_window.ready.threads}


async def test_shown_messages_are_read_and_announced_ones_are_not(
    network: LocalNetwork, bob: Client
) -> None:
    await bob.call("post_to_channel", channel="general", text="before")
    async with chatting(network) as chat:
        await chat.ann.sees("bob: before")
        await bob.call("post_to_channel", channel="general", text="while she looks")
        await chat.ann.sees("while she looks")
        await bob.call("send_text_message", to="ann", text="elsewhere")
        await chat.ann.sees("elsewhere")
        chat.ann.types("my answer")
        await chat.ann.sees("my answer ✓")
        chat.ann.types("/who")
        await chat.ann.sees("bob")  # so earlier posts have arrived
        assert await read_marks(network) == {"channel.general": 3, "dm.ann.bob": 0}
        chat.ann.types("/open @bob", "/who")
        await chat.ann.sees("bob: elsewhere")
        await chat.ann.sees("  human  ")
        assert await read_marks(network) == {"channel.general": 3, "dm.ann.bob": 1}


async def test_reading_in_another_window_clears_unread_and_missed_messages_are_counted(
    network: LocalNetwork, bob: Client
) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("── #general")
        await bob.call("send_text_message", to="ann", text="psst")
        await chat.ann.status_shows("unread: @bob 1")
        async with Client(MemoryTransport(network.hub.gateway.attach), "ann", "human") as other:
            await other.call("mark_read", thread="direct_bob", upto=1)
        await chat.ann.status_is_quiet()
    for n in range(30):
        await bob.call("send_text_message", to="ann", text=f"missed {n}")
    async with chatting(network) as chat:
        await chat.ann.sees("while you were away: @bob 30")
