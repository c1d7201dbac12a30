"""A chat at work: a scripted person, the real client, the real hub."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from hubbub.cli.chat.conversation import Status, run_chat
from hubbub.cli.chat.lines import Line
from hubbub.cli.chat.render import plain, render
from hubbub.client import Backoff, Client, MemoryTransport
from hubbub.config.models import NetworkFile
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Event
from hubbub.protocol.wire import Inlet, Outlet
from hubbub.testing.network import LocalNetwork

DEADLINE_S = 30.0
FILE = NetworkFile.model_validate(
    {
        "network": {"name": "town", "auth": "open"},
        "channels": {"general": {}, "desk": {"members": [], "description": "work"}},
        "humans": {"ann": {}, "bob": {}},
        "agents": {"calculator": {"instruction": "add"}},
    }
)


class Person:
    """A console with a script: says lines, and waits until something is shown."""

    def __init__(self, *, patient: bool = False) -> None:
        self.patient = patient
        self.shown: list[str] = []
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._news = asyncio.Event()

    def start(self, status: Status) -> None:
        self.status = status

    async def read(self) -> str | None:
        return await self._lines.get()

    def show(self, lines: Sequence[Line]) -> None:
        self.shown += [plain(render(line)) for line in lines]
        self._news.set()

    def refresh(self) -> None:
        self._news.set()

    def types(self, *lines: str) -> None:
        for line in lines:
            self._lines.put_nowait(line)

    def leaves(self) -> None:
        self._lines.put_nowait(None)

    async def sees(self, text: str) -> str:
        """Wait for a line with this text; forget what came before it."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for n, line in enumerate(self.shown):
                    if text in line:
                        self.shown = self.shown[n + 1 :]
                        return line
                self._news.clear()
                await self._news.wait()

    async def status_is_quiet(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while self.status.notices():
                self._news.clear()
                await self._news.wait()

    async def status_says(self, text: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not any(text in notice for _, notice in self.status.notices()):
                self._news.clear()
                await self._news.wait()


class Chat:
    """Ann at her console, in a running network."""

    def __init__(self, network: LocalNetwork, opening: str | None) -> None:
        self.network = network
        self.opening = opening
        self.away = False
        self.ann = Person()
        self.code: int | None = None

    def attach(self, outlet: Outlet) -> Inlet:
        if self.away:
            raise ConnectionRefusedError(111, "nobody there")
        return self.network.hub.attach(outlet)

    async def run(self) -> None:
        backoff = Backoff(first_s=0.001, most_s=0.005)
        async with Client(MemoryTransport(self.attach), "ann", "human", backoff=backoff) as client:
            self.code = await run_chat(client, self.ann, opening=self.opening)

    def cut(self, code: CloseCode = CloseCode.SLOW) -> None:
        for session in self.network.hub.sessions():
            if session.participant == "ann":
                session.close(code, "cut by the test")


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    async with LocalNetwork(FILE) as network:
        yield network


@asynccontextmanager
async def chatting(
    network: LocalNetwork, *, patient: bool = False, opening: str | None = "#general"
) -> AsyncIterator[Chat]:
    """Ann chats, from #general on; at the end of the block she leaves, if she has not yet."""
    chat = Chat(network, opening)
    chat.ann = Person(patient=patient)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(chat.run())
        yield chat
        chat.ann.leaves()
        async with asyncio.timeout(DEADLINE_S):
            await running


async def next_text(client: Client) -> str:
    async with asyncio.timeout(DEADLINE_S):
        async for item in client.events():
            if isinstance(item, Event) and item.message.sender_id != client.participant:
                await client.ack(item.seq)
                return item.message.text
    raise AssertionError


async def test_a_newcomer_sees_where_she_is_and_how_to_begin(network: LocalNetwork) -> None:
    await network.join("calculator")
    async with chatting(network, opening=None) as chat:
        await chat.ann.sees("── broadcast ──")
        await chat.ann.sees("@calculator")
        assert chat.ann.status.prompt == "broadcast> "
        assert chat.ann.status.network == "town"
    assert chat.code == 0


async def test_what_is_said_reaches_the_thread_and_is_shown_once(network: LocalNetwork) -> None:
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
        chat.ann.types("hello all")
        assert await next_text(bob) == "hello all"
        await chat.ann.sees("ann: hello all ✓")
        await bob.call("post_to_channel", channel="general", text="hello ann")
        await chat.ann.sees("bob: hello ann")
    assert not any("hello all" in line for line in chat.ann.shown)


async def test_a_direct_conversation_is_opened_spoken_to_and_announced(
    network: LocalNetwork,
) -> None:
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
        await chat.ann.sees("── #general")
        await bob.call("send_text_message", to="ann", text="psst")
        await chat.ann.sees("[@bob] bob: psst")
        await chat.ann.status_says("unread: @bob 1")
        chat.ann.types("/dm bob yes?")
        await chat.ann.sees("── @bob ──")
        await chat.ann.sees("bob: psst")
        await chat.ann.sees("ann: yes? ✓")
        assert await next_text(bob) == "yes?"
        assert chat.ann.status.notices() == []


async def test_history_is_there_when_a_thread_is_opened_and_more_on_request(
    network: LocalNetwork,
) -> None:
    bob = await network.join("bob", "human")
    for n in range(1, 46):
        await bob.call("post_to_channel", channel="general", text=f"text {n}.")
    async with chatting(network) as chat:
        await chat.ann.sees("text 26.")
        await chat.ann.sees("text 45.")
        chat.ann.types("/more")
        assert "text 6." in await chat.ann.sees(": text ")
        await chat.ann.sees("text 25.")
        chat.ann.types("/more")
        assert "text 1." in await chat.ann.sees(": text ")
        await chat.ann.sees("text 5.")
        chat.ann.types("/more")
        await chat.ann.sees("beginning of this thread")


async def test_a_reply_opens_a_thread_under_the_message(network: LocalNetwork) -> None:
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
        await bob.call("post_to_channel", channel="general", text="a question")
        line = await chat.ann.sees("a question")
        message_id = line.split()[1]
        chat.ann.types(f"/reply {message_id} an answer")
        await chat.ann.sees(f"[#general › {message_id}] ann: an answer ✓")
        chat.ann.types(f"/open #general › {message_id}", "and more")
        await chat.ann.sees("ann: an answer ✓")
        await chat.ann.sees("ann: and more ✓")
        assert [await next_text(bob) for _ in range(2)] == ["an answer", "and more"]


async def test_channels_are_joined_made_and_left(network: LocalNetwork) -> None:
    bob = await network.join("bob", "human")
    await bob.call("create_channel", name="loft")
    async with chatting(network) as chat:
        ann = chat.ann
        ann.types("/channel loft")
        await ann.sees("/join loft first")
        ann.types("/join loft")
        await ann.sees("── #loft ──")
        ann.types("/create attic")
        await ann.sees("── #attic ──")
        ann.types("/leave")
        await ann.sees("you left attic")
        await ann.sees("── broadcast ──")
        ann.types("/leave")
        await ann.sees("this is no channel")
        ann.types("/join nowhere")
        await ann.sees("nowhere")


async def test_lists_of_people_threads_and_commands(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        chat.ann.types("/who")
        assert "human" in await chat.ann.sees("● ann")
        await chat.ann.sees("○ calculator")
        chat.ann.types("/threads")
        await chat.ann.sees("2  #general")
        chat.ann.types("/open 1")
        await chat.ann.sees("── broadcast ──")
        chat.ann.types("/help")
        await chat.ann.sees("/dm <who>")


async def test_wrong_input_is_one_line_and_nothing_else_happens(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        chat.ann.types("/opne 1", "/dm nobody", "/open #nothing", "/reply m999 x", "fine")
        await chat.ann.sees("did you mean /open?")
        await chat.ann.sees("nobody here is called 'nobody'")
        await chat.ann.sees("there is no thread '#nothing'")
        await chat.ann.sees("✗ not sent: there is no message m999 for you: x")
        await chat.ann.sees("ann: fine ✓")


async def test_a_message_that_the_hub_refuses_is_shown_as_not_sent(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        chat.ann.types("x" * 70_000)
        told = await chat.ann.sees("✗ not sent: text: at most 65536 bytes")
        assert told.endswith("xxx…")
        assert len(told) < 200
    assert chat.code == 0


async def test_a_script_of_which_a_line_was_refused_fails(network: LocalNetwork) -> None:
    for line in ("/dm nobody", "/join nowhere", "/frobnicate", "x" * 70_000):
        async with chatting(network, patient=True) as chat:
            chat.ann.types(line, "fine", "/quit")
            await chat.ann.sees("ann: fine ✓")
        assert chat.code == 1


async def test_a_script_without_a_mistake_succeeds(network: LocalNetwork) -> None:
    async with chatting(network, patient=True) as chat:
        chat.ann.types("fine", "/quit")
        await chat.ann.sees("ann: fine ✓")
    assert chat.code == 0


async def test_a_thread_that_cannot_be_opened_first_is_told(network: LocalNetwork) -> None:
    async with chatting(network, opening="#genral") as chat:
        await chat.ann.sees("did you mean general?")
        await chat.ann.sees("── broadcast ──")


async def test_the_hubs_operations_are_told_as_commands_of_the_chat(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        chat.ann.types("/create general", "/open m999")
        await chat.ann.sees("there is no message m999")
        await chat.ann.sees("the channel 'general' exists; /join general")


async def test_what_is_asked_without_a_connection_is_answered_later(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("#general")
        chat.away = True
        chat.cut()
        await chat.ann.status_says("Connection refused")
        chat.ann.types("/who", "words in the dark")
        await chat.ann.sees("not connected; the answer comes later")
        await chat.ann.sees("not connected; will be sent later: words in the dark")
        chat.away = False
        await chat.ann.sees("● ann")
        await chat.ann.sees("words in the dark ✓")


async def test_the_absent_and_the_unknown_are_pointed_out(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        chat.ann.types("/dm bob hello @nobody")
        await chat.ann.sees("bob is away; the message waits")
        await chat.ann.sees("nobody here is called @nobody")


async def test_activity_shows_beside_the_messages(network: LocalNetwork) -> None:
    calculator = await network.join("calculator")
    async with chatting(network) as chat:
        chat.ann.types("/dm calculator 2+2")
        await chat.ann.sees("2+2 ✓")
        await calculator.signal("activity", "dm.ann.calculator", {"state": "thinking"})
        await chat.ann.status_says("calculator is thinking")
        await calculator.call("send_text_message", to="ann", text="4")
        await chat.ann.sees("calculator: 4")
        await calculator.signal("activity", "dm.ann.calculator", {"state": "idle"})
        await chat.ann.status_is_quiet()


async def test_a_lost_connection_is_told_once_and_what_is_said_meanwhile_arrives(
    network: LocalNetwork,
) -> None:
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
        await chat.ann.sees("#general")
        chat.away = True
        chat.cut()
        await chat.ann.sees("connection lost (cut by the test)")
        await chat.ann.status_says("Connection refused")
        chat.ann.types("said in the dark", "/dm bob", "/threads")
        await chat.ann.sees("── @bob ──")
        await chat.ann.status_says("1 to send")
        chat.away = False
        await chat.ann.sees("connected again")
        await chat.ann.sees("said in the dark ✓")
        assert await next_text(bob) == "said in the dark"
    assert not any("connection lost" in line for line in chat.ann.shown)


async def test_leaving_without_a_connection_says_what_was_not_sent(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("#general")
        chat.away = True
        chat.cut()
        await chat.ann.status_says("Connection refused")
        chat.ann.types("lost words", "/quit")
        await chat.ann.sees("1 not sent")
    assert chat.code == 0


async def test_a_hub_that_closes_for_good_ends_the_chat(network: LocalNetwork) -> None:
    async with chatting(network) as chat:
        await chat.ann.sees("#general")
        chat.cut(CloseCode.REVOKED)
        await chat.ann.sees("the hub closed the connection: cut by the test")
    assert chat.code == 1


async def test_what_was_missed_is_summed_up(network: LocalNetwork) -> None:
    bob = await network.join("bob", "human")
    async with chatting(network):
        pass
    for n in range(30):
        await bob.call("send_text_message", to="ann", text=f"missed {n}")
    async with chatting(network) as chat:
        await chat.ann.sees("while you were away: @bob 30")


async def test_a_script_is_obeyed_line_by_line(network: LocalNetwork) -> None:
    """Each line is done with before the next one is read: answers stand below their commands."""
    calculator = await network.join("calculator")

    async def answer() -> None:
        await next_text(calculator)
        await calculator.call("send_text_message", to="ann", text="4")

    async with asyncio.TaskGroup() as tasks, chatting(network, patient=True) as chat:
        tasks.create_task(answer())
        chat.ann.types("/dm calculator 2+2", "/wait 10", "/who", "/quit")
        await chat.ann.sees("── @calculator ──")
        await chat.ann.sees("ann: 2+2 ✓")
        await chat.ann.sees("calculator: 4")
        await chat.ann.sees("● ann")


async def test_waiting_ends_by_itself(network: LocalNetwork) -> None:
    async with chatting(network, patient=True) as chat:
        chat.ann.types("/wait 0.01", "afterwards")
        await chat.ann.sees("afterwards ✓")


async def read_marks(network: LocalNetwork) -> dict[str, int]:
    """How far the hub thinks that ann has read."""
    async with Client(
        MemoryTransport(network.hub.attach), "ann", "human", latest=True
    ) as another_window:
        return {thread.id: thread.read for thread in another_window.ready.threads}


async def test_what_is_shown_is_read_and_what_is_announced_is_not(network: LocalNetwork) -> None:
    bob = await network.join("bob", "human")
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
        await chat.ann.sees("bob")  # what was posted before it has arrived
        assert await read_marks(network) == {"channel.general": 3, "dm.ann.bob": 0}
        chat.ann.types("/open @bob", "/who")
        await chat.ann.sees("bob: elsewhere")
        await chat.ann.sees("● bob")
        assert await read_marks(network) == {"channel.general": 3, "dm.ann.bob": 1}


async def test_what_another_window_has_read_is_not_unread_here(network: LocalNetwork) -> None:
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
        await chat.ann.sees("── #general")
        await bob.call("send_text_message", to="ann", text="psst")
        await chat.ann.status_says("unread: @bob 1")
        async with Client(MemoryTransport(network.hub.attach), "ann", "human") as other:
            await other.call("mark_read", thread="direct_bob", upto=1)
        await chat.ann.status_is_quiet()


async def test_the_first_word_in_a_reply_thread_makes_it(network: LocalNetwork) -> None:
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
        await bob.call("post_to_channel", channel="general", text="a question")
        message_id = (await chat.ann.sees("a question")).split()[1]
        chat.ann.types(f"/open {message_id}", "first", "second")
        await chat.ann.sees("ann: first ✓")
        await chat.ann.sees("ann: second ✓")
        assert await next_text(bob) == "first"
        assert await next_text(bob) == "second"
