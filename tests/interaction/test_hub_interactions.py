"""Interactions, which follow from one message, and mentions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest

from hubbub.client import Client
from hubbub.client.transport import MemoryTransport
from hubbub.embed.ask import turns_of
from hubbub.network.queries import Query, WakesAt
from hubbub.network.store import SqliteStore, searches
from hubbub.network.store.location import SqliteLocation
from hubbub.protocol.admin import AgentProcess
from tests.interaction.peers import Network, Networks, Peer, config

T = TypeVar("T")
NETWORK = config(channels={"desk": {"members": "all"}})


@pytest.fixture
async def network(in_memory: Networks) -> AsyncIterator[Network]:
    """A network in the store of the test run: SQLite, or Postgres."""
    async with in_memory.start(NETWORK) as network:
        yield network


def start(turn: str, thread: str, *messages: str, **more: object) -> dict[str, object]:
    return {"id": turn, "thread_id": thread, "messages": list(messages), **more}


async def errand(network: Network) -> tuple[Peer, Peer, Peer, list[str]]:
    """Ann asks one, which asks two, which answers. One answers ann. Returns the peers and the ids
    of the messages in order."""
    ann = await network.join("ann")
    one = await network.join("one", "agent", turns=True)
    two = await network.join("two", "agent", turns=True)
    asked = await ann.say("one", "find out")
    first = f"one-{asked['id']}"
    await one.call("begin_turn", start=start(first, "dm.ann.one", asked["id"], model="small"))
    step = {"n": 1, "tokens_in": 5, "tokens_out": 2, "cost_usd": 0.25}
    await one.call("record_step", turn=first, step=step)
    await one.call("record_step", turn=first, step={**step, "n": 2, "cost_usd": 0.5})
    await ann.call("broadcast_text_message", text="something else")
    passed = await one.say("two", "do you know?", cause=first)
    second = f"two-{passed['id']}"
    await two.call("begin_turn", start=start(second, "dm.one.two", passed["id"]))
    back = await two.say("one", "yes", cause=second)
    await two.call("end_turn", end={"id": second, "outcome": "finished"})
    done = await one.say("ann", "found out", cause=first)
    await one.call("end_turn", end={"id": first, "outcome": "finished"})
    return ann, one, two, [asked["id"], passed["id"], back["id"], done["id"]]


def contents(page: Any) -> list[str]:
    return [message["content"] for message in page["messages"]]


@pytest.mark.behaviour("P-36", "P-39", "T-1", "T-3")
async def test_an_interaction_shows_readable_messages_and_counts_the_others(
    network: Network,
) -> None:
    ann, one, two, ids = await errand(network)
    bob, spy = await network.join("bob"), await network.join("spy", "agent")
    operator = await network.join("operator", "service")
    opened, first, second = "i" + ids[0][1:], f"one-{ids[0]}", f"two-{ids[1]}"

    async def read(peer: Peer) -> Any:
        return await peer.call("read_interaction", id=opened)

    page = await read(two)
    assert (page["id"], contents(page)) == (opened, ["do you know?", "yes"])
    assert (page["hidden"], page["more"], page["upto"]) == (2, False, 5)
    assert page["envelopes"] == [], "only owners get envelopes"
    assert {wake["message_id"] for wake in page["wakes"]} == {ids[1], ids[2]}
    page = await read(one)
    assert ([message["id"] for message in page["messages"]], page["hidden"]) == (ids, 0)
    direct = {"reason": "direct", "state": "ended", "reply": "optional"}
    third = f"one-{ids[2]}"
    wakes = [
        {**direct, "message_id": ids[0], "agent": "one", "reply": "required", "turn": first},
        {**direct, "message_id": ids[1], "agent": "two", "turn": second},
        {**direct, "message_id": ids[2], "agent": "one", "turn": third, "state": "pending"},
    ]
    assert page["wakes"] == wakes
    assert page["open"], "one has not answered"
    assert page["turns"] == [], "turns are for owners"
    for owner in (ann, bob, operator):
        page = await read(owner)
        assert page["wakes"] == wakes
        assert [turn["id"] for turn in page["turns"]] == [first, second]
        turn = page["turns"][0]
        assert (turn["outcome"], turn["steps"]) == ("finished", 2)
        assert (turn["model"], turn["cost_usd"]) == ("small", 0.75)
        assert "cost_usd" not in page["turns"][1], "no step of it was priced"
        shown, hidden = [message["id"] for message in page["messages"]], page["hidden"]
        assert (shown, hidden) == ((ids[1:3], 2) if owner is bob else (ids, 0))
        assert len(page["envelopes"]) == hidden
    first_envelope, last_envelope = (await read(bob))["envelopes"]
    assert first_envelope == {
        "id": ids[0], "seq": int(ids[0][1:]), "sent_at": first_envelope["sent_at"],
        "thread_id": "dm.ann.one", "type": "direct", "recipients": ["one"],
        "sender_id": "ann", "sender_kind": "human", "hop": 0,
    }  # fmt: skip
    assert last_envelope == {
        **first_envelope, "id": ids[3], "seq": int(ids[3][1:]),
        "sent_at": last_envelope["sent_at"], "recipients": ["ann"],
        "sender_id": "one", "sender_kind": "agent", "cause_id": first, "hop": 1,
    }  # fmt: skip
    wrong = {"i99": "unknown_interaction", "i3": "unknown_interaction", "m1": "bad_request"}
    for name, code in {**wrong, "i0": "bad_request", "": "bad_request"}.items():
        assert (await ann.ask("read_interaction", id=name))["code"] == code, name
    error = await spy.ask("read_interaction", id=opened)
    assert error["code"] == "unknown_interaction", "the agent took no part"


@pytest.mark.behaviour("P-36")
async def test_an_interaction_in_a_long_log_is_read_in_pages(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "SEARCH_ENTRIES", 2)
    _ann, one, _two, ids = await errand(network)
    opened = "i" + ids[0][1:]
    pages = [await one.call("read_interaction", id=opened)]
    while pages[-1]["more"]:
        after = pages[-1]["upto"]
        pages.append(await one.call("read_interaction", id=opened, after=after))
    assert [message["id"] for page in pages for message in page["messages"]] == ids
    assert (len(pages), pages[-1]["upto"]) == (3, 5)
    again = await one.call("read_interaction", id=opened, after=99)
    assert (again["messages"], again["more"]) == ([], False)


@pytest.mark.behaviour("P-36", "P-39")
async def test_an_envelope_contains_nothing_of_the_content(in_memory: Networks) -> None:
    async with in_memory.start(config(channels={"desk": {"members": ["ann", "bot"]}})) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        sent = await ann.call("post_to_channel", channel="desk", text="the word is plum, @bot")
        extra = {"quote": {"message_id": sent["id"], "text": "plum"}, "cause": sent["id"]}
        await bot.say("ann", "plum", attachments=[{"name": "plum", "uri": "x:plum"}], **extra)
        eve = await network.join("eve")
        page = await eve.call("read_interaction", id="i" + sent["id"][1:])
        assert page["hidden"] == len(page["envelopes"]) == 2
        first, second = page["envelopes"]
        assert (first["type"], first["recipients"]) == ("channel", [])
        assert (second["type"], second["recipients"]) == ("direct", ["ann"])
        assert "plum" not in str(page)
        assert not {"mentions", "content", "quote", "attachments"} & {*first, *second}


# Mentions -------------------------------------------------------------------------------------


@pytest.mark.behaviour("P-34")
async def test_mentions_are_listed_newest_first_in_pages(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    bot = await network.join("bot", "agent")
    post = "post_to_channel"
    await ann.call(post, channel="desk", text="1 @bob")
    await ann.call(post, channel="desk", text="2 `@bob` in code, @bot")
    root = await ann.call(post, channel="desk", text="3")
    await ann.call("reply", message_id=root["id"], text="4 @bob")
    await ann.say("bob", "5 direct")
    await ann.say("bob", "6 @bob")
    await ann.call("broadcast_text_message", text="7", mentions=["bob", "bot"])
    await bob.call(post, channel="desk", text="8 @ann")
    page = await bob.call("list_mentions")
    assert contents(page) == ["7", "6 @bob", "4 @bob", "1 @bob"]
    assert (page["more"], page["upto"]) == (False, 1)
    assert contents(await bot.call("list_mentions")) == ["7", "2 `@bob` in code, @bot"]
    assert contents(await ann.call("list_mentions")) == ["8 @ann"]
    pages = [await bob.call("list_mentions", limit=1)]
    while pages[-1]["more"]:
        pages.append(await bob.call("list_mentions", limit=1, before=pages[-1]["upto"]))
    assert [contents(page) for page in pages] == [["7"], ["6 @bob"], ["4 @bob"], ["1 @bob"]]
    assert contents(await bob.call("list_mentions", before=4)) == ["1 @bob"]
    await bob.call("leave_channel", channel="desk")
    assert contents(await bob.call("list_mentions")) == ["7", "6 @bob"]
    await bob.call("join_channel", channel="desk")
    assert contents(await bob.call("list_mentions")) == ["7", "6 @bob", "4 @bob", "1 @bob"]


@pytest.mark.behaviour("P-34", "W-9")
async def test_a_notice_mentions_the_waiting_person_unless_it_left_the_channel(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    bot = await network.join("bot", "agent", turns=True)
    direct = await ann.say("bot", "well?")
    posted = await ann.call("post_to_channel", channel="desk", text="@bot well?")
    left = await ann.call("post_to_channel", channel="desk", text="@bot and now?")
    for message in (direct, posted, left):
        if message is left:
            await ann.call("leave_channel", channel="desk")
        turn = f"bot-{message['id']}"
        await bot.call("begin_turn", start=start(turn, message["thread_id"], message["id"]))
        await bot.call("end_turn", end={"id": turn, "outcome": "finished"})
    await network.quiet()
    messages = [event["message"] for event in await bot.sync()]
    sent = [message for message in messages if message["sender_id"] == "hub"]
    assert [message.get("mentions", []) for message in sent] == [["ann"], ["ann"], []]
    await ann.call("join_channel", channel="desk")
    notices = (await ann.call("list_mentions"))["messages"]
    about = [notice["content"]["messages"] for notice in notices]
    assert about == [[posted["id"]], [direct["id"]]]
    assert {notice["sender_kind"] for notice in notices} == {"system"}
    assert (await bob.call("list_mentions"))["messages"] == []


class Restarting:
    """A launcher that runs one agent."""

    def __init__(self, agent: str):
        self.process = AgentProcess(agent=agent, state="restarting")

    def processes(self) -> Sequence[AgentProcess]:
        return [self.process]

    def output(self, agent: str) -> Sequence[str]:
        return ()

    def start(self, agent: str) -> None:
        self.process = AgentProcess(agent=agent, state="running")

    async def stop(self, agent: str) -> None:
        self.process = AgentProcess(agent=agent, state="stopped")

    async def restart(self, agent: str) -> None:
        self.start(agent)


async def test_an_interaction_stays_open_while_the_network_restarts_the_agent_it_waits_for(
    in_memory: Networks,
) -> None:
    async with in_memory.start(NETWORK) as network:
        ann, one, _, ids = await errand(network)
        await one.close()
        await network.gone("one")
        opened = f"i{ids[0][1:]}"
        assert not (await ann.call("read_interaction", id=opened))["open"], "nobody starts it"
        network.hub.services.launcher.launcher = Restarting("one")
        assert (await ann.call("read_interaction", id=opened))["open"]
        await ann.call("stop_agent", agent="one")
        assert not (await ann.call("read_interaction", id=opened))["open"], "it was stopped"


async def test_who_asks_an_agent_that_is_being_restarted_is_not_told_that_it_does_not_run(
    in_memory: Networks,
) -> None:
    async with in_memory.start(NETWORK) as network:
        ann, one, _, _ = await errand(network)
        await one.close()
        await network.gone("one")
        launcher = network.hub.services.launcher
        launcher.launcher = Restarting("one")
        for again in ("restart_agent", "start_agent"):
            launcher.given_up(["one"], "is not running: it crashed")
            assert "one" in await down(ann)
            await ann.call(again, agent="one")
            assert await down(ann) == []


async def down(peer: Peer) -> list[str]:
    """The agents that the hub describes as not running."""
    found = (await peer.call("list_participants"))["participants"]
    return [each["id"] for each in found if each.get("down")]


class InterruptedReads(SqliteStore):
    """A store that runs `interruption` once between the reads of an interaction's messages and of
    their wakes."""

    interruption: Callable[[], Awaitable[object]] | None = None

    async def read(self, query: Query[T]) -> T:
        interruption = self.interruption
        if isinstance(query, WakesAt) and interruption is not None:
            self.interruption = None
            await interruption()
        return await super().read(query)


@pytest.mark.behaviour("Q-12")
async def test_an_interaction_stays_open_if_its_last_turn_wakes_another_during_the_read(
    in_memory: Networks,
) -> None:
    store = InterruptedReads(SqliteLocation(None))
    async with in_memory.start(NETWORK, store=store) as network:
        ann = await network.join("ann")
        one = await network.join("one", "agent", turns=True)
        await network.join("two", "agent", turns=True)
        asked = await ann.say("one", "find out")
        first, opened = f"one-{asked['id']}", f"i{asked['id'][1:]}"
        await one.call("begin_turn", start=start(first, "dm.ann.one", asked["id"]))

        async def pass_on() -> None:
            await one.say("two", "do you know?", cause=first)
            await one.call("end_turn", end={"id": first, "outcome": "finished"})

        gateway = network.hub.gateway
        gateway.admission.add_token("operator", "its-token")
        transport = MemoryTransport(gateway.attach)
        async with Client(transport, "operator", "service", token="its-token") as operator:
            store.interruption = pass_on
            assert await turns_of(operator, opened) is None
            assert store.interruption is None, "the turn ended while the page was read"
