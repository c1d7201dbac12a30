"""The full-screen client in trouble, and what it knows compared with what the hub knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.cli.full.engine import Engine
from hubbub.cli.full.state import State
from hubbub.client import Backoff, Client, MemoryTransport
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import ThreadPage
from hubbub.protocol.turns import Step, ToolCallRecord, TurnEnd, TurnStart
from hubbub.testing.network import LocalNetwork
from tests.examples import examples
from tests.interaction.full_rig import DEADLINE_S, FILE, Desk, next_event, sitting

pytestmark = pytest.mark.slow  # hubs go and come back


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    async with LocalNetwork(FILE) as network:
        yield network


async def texts(client: Client, thread: str) -> list[str]:
    page = ThreadPage.model_validate(await client.call("read_thread", thread=thread, limit=100))
    return [message.text for message in page.messages]


@pytest.mark.behaviour("P-22")
async def test_without_a_connection_it_says_so_and_keeps_the_draft_and_what_is_said(
    network: LocalNetwork,
) -> None:
    bob = await network.join("bob", "human")
    async with sitting(network) as desk:
        desk.away = True
        desk.cut()
        await desk.sees(lambda: "not connected (" in desk.status)
        await desk.says("said meanwhile")
        await desk.says("and this")
        await desk.reads("sending…")
        await desk.writes("half a sen")
        await desk.sees(lambda: "2 to send" in desk.status)
        await bob.call("post_to_channel", channel="general", text="what she missed")
        desk.away = False
        await desk.sees(lambda: "not connected" not in desk.status)
        await desk.reads("what she missed")
        await desk.sees(lambda: desk.state.outbox.under_way == 0)
        assert desk.writing.text == "half a sen"
        assert await texts(bob, "channel_general") == [
            "what she missed",
            "said meanwhile",
            "and this",
        ]
        shown = [line for line in desk.conversation if "said meanwhile" in line]
        assert len(shown) == 1


async def test_a_hub_that_was_restarted_finds_everything_as_it_was(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'town.db'}"
    async with LocalNetwork(FILE, store=store) as first, sitting(first) as desk:
        await desk.says("before")
        await desk.sees(lambda: desk.state.thread("channel.general").head == 1)
        desk.away = True
        await first.hub.__aexit__(None, None, None)
        await desk.sees(lambda: "not connected (" in desk.status)
        await desk.says("during")
        await desk.writes("and half a")
        async with LocalNetwork(FILE, store=store) as second:
            desk.network, desk.away = second, False
            await desk.sees(lambda: desk.state.outbox.under_way == 0)
            bob = await second.join("bob", "human")
            await bob.call("post_to_channel", channel="general", text="after")
            await desk.reads("after")
            assert await texts(bob, "channel_general") == ["before", "during", "after"]
            said = [m.text for m in desk.state.thread("channel.general").messages.values()]
            assert said == ["before", "during", "after"]
            assert desk.writing.text == "and half a"
            desk.away = True


async def test_a_network_that_starts_anew_is_shown_anew_with_the_draft_kept(
    network: LocalNetwork,
) -> None:
    async with sitting(network) as desk:
        await desk.says("in the old one")
        await desk.reads("in the old one")
        await desk.writes("half a")
        async with LocalNetwork(FILE) as other:
            bob = await other.join("bob", "human")
            await bob.call("post_to_channel", channel="general", text="in the new one")
            desk.network = other
            for session in network.hub.sessions():
                session.close(CloseCode.SLOW, "moved")
            await desk.reads("in the new one")
            assert not any("in the old one" in line for line in desk.conversation)
            assert desk.writing.text == "half a"
            desk.away = True


async def test_a_hub_that_closes_for_good_is_told_and_leaving_is_a_failure(
    network: LocalNetwork,
) -> None:
    async with sitting(network) as desk:
        desk.cut(CloseCode.REVOKED)
        await desk.sees(lambda: "the hub closed the connection" in desk.status)
        await desk.says("too late")
        await desk.presses("ctrl+q")
    assert desk.app.return_value == 1


async def test_a_refused_message_stays_with_its_reason_and_can_be_said_again_or_dropped(
    network: LocalNetwork,
) -> None:
    bob = await network.join("bob", "human")
    async with sitting(network) as desk:
        await desk.says("x" * 3000)
        await desk.presses("escape", "G")
        await desk.reads("✗ not sent:")
        await desk.says("short")
        assert (await next_event(bob)).message.text == "short"
        (first,) = desk.state.outbox
        await desk.says("/again")
        await desk.sees(lambda: [s.cid for s in desk.state.outbox if s.failed] != [first.cid])
        await desk.sees(lambda: desk.state.outbox.under_way == 0)
        await desk.reads("✗ not sent:")
        await desk.says("/drop")
        await desk.sees(lambda: not list(desk.state.outbox))
        assert await texts(bob, "channel_general") == ["short"]
        await desk.says("hello @bbo")
        await desk.tells("nobody here is called @bbo")
        desk.chat.open("mod.tasks")
        await desk.says("hello")
        await desk.tells("only the network itself")
        assert desk.writing.text == "hello"


# Agents -------------------------------------------------------------------------------------------


async def answered(desk: Desk, agent: Client) -> str:
    """The agent takes ann's message as a turn and answers; the turn's id."""
    event: Event = await next_event(agent)
    assert event.wake is not None
    turn = event.wake.turn
    thread = event.message.thread_id
    start = TurnStart(id=turn, thread_id=thread, messages=(event.message.id,), model="abacus")
    await agent.call("begin_turn", start=start)
    await agent.signal("activity", thread, {"state": "calling", "tool": "add"})
    await desk.sees(lambda: "● calculator  calling add" in desk.listed("#people"))
    assert "calculator is calling add" in desk.status
    call = ToolCallRecord(id="c1", name="add", arguments={"a": 2}, result="4", duration_ms=3.0)
    step = Step(n=1, calls=(call,), tokens_in=70, tokens_out=7, duration_ms=12.0)
    await agent.call("record_step", turn=turn, step=step)
    await agent.call("send_text_message", to="ann", text="it is **4**", cause=turn)
    await agent.call("end_turn", end=TurnEnd(id=turn, outcome="finished", reason="said it"))
    await agent.signal("activity", thread, {"state": "idle"})
    return turn


@pytest.mark.behaviour("U-5")
async def test_an_agents_work_is_watched_and_its_turn_looked_into(network: LocalNetwork) -> None:
    agent = await network.join("calculator", turns=True)
    async with sitting(network) as desk:
        await desk.says("/dm calculator 2+2")
        turn = await answered(desk, agent)
        await desk.reads("it is 4")
        await desk.sees(lambda: "● calculator  idle" in desk.listed("#people"))
        await desk.presses("escape", "k", "i")
        await desk.sees(lambda: f"turn {turn}" in desk.details)
        for piece in ("abacus", "70 in, 7 out", 'add {"a": 2} 3 ms', "→ 4", "finished", "said it"):
            assert piece in desk.details
        await desk.presses("k")
        await desk.sees(lambda: f"turn {turn} ended" in desk.details)
        await desk.says(f"/turn {turn}")
        await desk.sees(lambda: desk.details.startswith(f"turn {turn}"))
        await desk.says("/turn calculator-m999")
        await desk.sees(lambda: any("calculator-m999" in text for text in desk.told))


async def test_details_are_looked_at_by_whoever_may(network: LocalNetwork) -> None:
    file = FILE.model_copy(update={"humans": {}})
    async with LocalNetwork(file) as strangers, sitting(strangers) as desk:
        await desk.presses("escape", "i")  # turns are for owners
        await desk.sees(lambda: "channel.general" in desk.details)
        await strangers.join("calculator")
        await desk.sees(lambda: "● calculator  idle" in desk.listed("#people"))
        desk.chat.query_one("#people").focus()
        await desk.presses("down", "i")
        await desk.sees(lambda: "kind    agent" in desk.details)
        await desk.presses("enter")
        await desk.sees(lambda: desk.state.current == "dm.ann.calculator")


# What is known ------------------------------------------------------------------------------------


class Nowhere:
    """A view without a screen; remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def refresh_soon(self) -> None:
        """Nobody looks."""

    def tell(self, text: str, tone: str = "information") -> None:
        self.told.append(text)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0)


def marks(state: State) -> dict[str, tuple[int, int, int, int]]:
    found = state.threads.values()
    return {t.id: (t.head, t.read, t.unread, t.last_seq) for t in found if t.head}


async def fresh(network: LocalNetwork) -> State:
    state = State("ann")
    async with Client(MemoryTransport(network.hub.attach), "ann", "human", latest=True) as ann:
        state.apply(ann.ready, 0)
    return state


deeds = st.lists(
    st.sampled_from(["bob", "dm", "reply", "ann", "look", "unread", "cut", "channel"]), max_size=14
)


@pytest.mark.behaviour("P-19")
@settings(max_examples=examples(25), deadline=None)
@given(deeds)
def test_what_the_client_knows_is_what_a_fresh_one_is_told(deeds: list[str]) -> None:
    asyncio.run(_compare(deeds))


@asynccontextmanager
async def running(network: LocalNetwork) -> AsyncIterator[tuple[Client, Engine]]:
    """Ann's engine at work, without a screen."""
    backoff = Backoff(first_s=0.0001, most_s=0.0005)
    transport = MemoryTransport(network.hub.attach)
    async with Client(transport, "ann", "human", latest=True, backoff=backoff) as ann:
        engine = Engine(ann, Nowhere())
        task = asyncio.create_task(engine.run())
        await engine.began.wait()
        yield ann, engine
        task.cancel()
        await asyncio.wait({task})


async def _compare(deeds: list[str]) -> None:
    async with LocalNetwork(FILE) as network:
        bob = await network.join("bob", "human")
        async with running(network) as (ann, engine):
            for n, deed in enumerate(deeds):
                await _do(deed, n, network, bob, engine)
            await bob.call("post_to_channel", channel="general", text="the end")
            last = (await texts(bob, "channel_general"))[-1]
            await until(lambda: _last(engine.state) == last and not engine.state.outbox.under_way)
            await ann.call("list_channels")  # what was posted before it is done
            assert marks(engine.state) == marks(await fresh(network))


def _last(state: State) -> str:
    message = state.thread("channel.general").last
    return message.text if message else ""


async def _do(deed: str, n: int, network: LocalNetwork, bob: Client, engine: Engine) -> None:
    general = engine.state.thread("channel.general")
    match deed:
        case "bob":
            await bob.call("post_to_channel", channel="general", text=f"@ann {n}")
        case "dm":
            await bob.call("send_text_message", to="ann", text=f"psst {n}")
        case "reply" if general.last is not None:
            await bob.call("reply", message_id=general.last.id, text=f"reply {n}")
        case "ann":
            engine.open("channel.general")
            engine.say(f"mine {n}")
            await until(lambda: not engine.state.outbox.under_way)
        case "look":
            engine.open("dm.ann.bob" if n % 2 else "channel.general")
            engine.looked_at()
        case "unread" if general.last is not None:
            engine.mark_unread(general.last)
        case "cut":
            for session in network.hub.sessions():
                if session.participant == "ann":
                    session.close(CloseCode.SLOW, "cut by the test")
        case "channel":
            await bob.call("create_channel", name=f"c{n}", members=["ann"])
            await bob.call("post_to_channel", channel=f"c{n}", text="welcome")


async def test_what_others_do_with_channels_is_known_at_once(network: LocalNetwork) -> None:
    bob = await network.join("bob", "human")
    async with running(network) as (ann, engine):
        state = engine.state
        await bob.call("create_channel", name="plans", members=["ann"])
        await until(lambda: "channel.plans" in state.threads)
        assert state.channels["plans"].joined
        engine.open("channel.plans")
        await ann.call("leave_channel", channel="plans")  # as from another window
        await until(lambda: not state.channels["plans"].joined)
        assert state.current == "broadcast"
        await until(lambda: not state.opening)
        assert "channel.plans" not in state.threads
