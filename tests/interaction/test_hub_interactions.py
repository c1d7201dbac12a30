"""What one message set in motion, and what concerns somebody by name."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.network.store import searches
from tests.interaction.peers import Network, Networks, Peer, config

DESK = config(channels={"desk": {"members": "all"}})


def start(turn: str, thread: str, *messages: str, **more: object) -> dict[str, object]:
    return {"id": turn, "thread_id": thread, "messages": list(messages), **more}


async def errand(network: Network) -> tuple[Peer, Peer, Peer, list[str]]:
    """Ann asks one, which asks two, which answers; one answers ann. The messages' ids, in order."""
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


@pytest.mark.behaviour("P-36")
async def test_an_interaction_has_what_the_asker_may_read_and_counts_the_rest(
    networks: Networks,
) -> None:
    async with networks.start() as network:
        _ann, one, two, ids = await errand(network)
        opened = "i" + ids[0][1:]
        page = await two.call("read_interaction", id=opened)
        assert (page["id"], contents(page)) == (opened, ["do you know?", "yes"])
        assert (page["hidden"], page["more"], page["upto"]) == (2, False, 5)
        assert page["envelopes"] == [], "who is no owner gets the count"
        assert {wake["message_id"] for wake in page["wakes"]} == {ids[1], ids[2]}
        page = await one.call("read_interaction", id=opened)
        assert [message["id"] for message in page["messages"]] == ids
        assert page["hidden"] == 0
        operator = await network.join("operator", "service")
        page = await operator.call("read_interaction", id=opened)
        assert ([message["id"] for message in page["messages"]], page["hidden"]) == (ids, 0)


@pytest.mark.behaviour("P-36", "T-3")
async def test_an_interaction_tells_its_wakes_and_owners_its_turns(networks: Networks) -> None:
    async with networks.start() as network:
        ann, one, _two, ids = await errand(network)
        opened = "i" + ids[0][1:]
        page = await one.call("read_interaction", id=opened)
        first, second = f"one-{ids[0]}", f"two-{ids[1]}"
        wake = {"reason": "direct", "state": "ended"}
        assert page["wakes"] == [
            {**wake, "message_id": ids[0], "agent": "one", "reply": "required", "turn": first},
            {**wake, "message_id": ids[1], "agent": "two", "reply": "optional", "turn": second},
            {
                "message_id": ids[2],
                "agent": "one",
                "reason": "direct",
                "reply": "optional",
                "turn": f"one-{ids[2]}",
                "state": "pending",
            },
        ]
        assert page["turns"] == [], "turns are for owners"
        wakes = page["wakes"]
        operator = await network.join("operator", "service")
        for owner in (ann, operator):
            page = await owner.call("read_interaction", id=opened)
            assert page["wakes"] == wakes
            assert [turn["id"] for turn in page["turns"]] == [first, second]
            turn = page["turns"][0]
            assert (turn["outcome"], turn["steps"]) == ("finished", 2)
            assert (turn["model"], turn["cost_usd"]) == ("small", 0.75)


@pytest.mark.behaviour("T-1")
async def test_a_turn_without_priced_steps_has_no_cost(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, _one, _two, ids = await errand(network)
        summaries = {turn["id"]: turn for turn in (await ann.call("list_turns"))["turns"]}
        assert summaries[f"one-{ids[0]}"]["cost_usd"] == 0.75
        assert "cost_usd" not in summaries[f"two-{ids[1]}"]


@pytest.mark.behaviour("P-36")
async def test_a_long_log_is_read_in_pages(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "SEARCH_ENTRIES", 2)
    async with in_memory.start() as network:
        _ann, one, _two, ids = await errand(network)
        opened = "i" + ids[0][1:]
        found, pages, after = list[str](), 0, 0
        while True:
            more: dict[str, Any] = {"after": after} if after else {}
            page = await one.call("read_interaction", id=opened, **more)
            found += [message["id"] for message in page["messages"]]
            pages, after = pages + 1, page["upto"]
            if not page["more"]:
                break
        assert (found, pages, after) == (ids, 3, 5)
        again = await one.call("read_interaction", id=opened, after=99)
        assert (again["messages"], again["more"]) == ([], False)


@pytest.mark.behaviour("P-36", "P-39")
async def test_an_owner_learns_who_wrote_what_it_may_not_read_and_whom_it_woke(
    networks: Networks,
) -> None:
    async with networks.start() as network:
        ann, one, _two, ids = await errand(network)
        owner = await network.join("bob")
        page = await owner.call("read_interaction", id="i" + ids[0][1:])
        assert [message["id"] for message in page["messages"]] == ids[1:3]
        asked = {
            "id": ids[0],
            "seq": int(ids[0][1:]),
            "thread_id": "dm.ann.one",
            "sender_id": "ann",
            "sender_kind": "human",
            "type": "direct",
            "recipients": ["one"],
            "hop": 0,
        }
        answered = {
            **asked,
            "id": ids[3],
            "seq": int(ids[3][1:]),
            "sender_id": "one",
            "sender_kind": "agent",
            "recipients": ["ann"],
            "cause_id": f"one-{ids[0]}",
            "hop": 1,
        }
        told = [(each.pop("sent_at"), each)[1] for each in page["envelopes"]]
        assert told == [asked, answered]
        seen_by_one = await one.call("read_interaction", id=page["id"])
        assert page["wakes"] == seen_by_one["wakes"]
        whole = await ann.call("read_interaction", id=page["id"])
        assert page["turns"] == whole["turns"]
        assert whole["envelopes"] == []


@pytest.mark.behaviour("P-36", "P-39")
async def test_an_envelope_has_nothing_of_what_was_said(networks: Networks) -> None:
    async with networks.start(config(channels={"desk": {"members": ["ann", "bot"]}})) as network:
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


@pytest.mark.behaviour("P-36")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("i99", "unknown_interaction"),
        ("i3", "unknown_interaction"),
        ("m1", "bad_request"),
        ("i0", "bad_request"),
        ("", "bad_request"),
    ],
)
async def test_an_interaction_that_is_none_is_an_error(
    in_memory: Networks, name: str, code: str
) -> None:
    async with in_memory.start() as network:
        ann, *_ = await errand(network)
        assert (await ann.ask("read_interaction", id=name))["code"] == code


@pytest.mark.behaviour("P-36")
async def test_an_interaction_of_others_does_not_exist(networks: Networks) -> None:
    file = config(network={"auth": "open"})
    async with networks.start(file) as network:
        ann, *_ = await errand(network)
        spy = await network.join("spy", "agent")
        error = await spy.ask("read_interaction", id="i1")
        assert error["code"] == "unknown_interaction"
        owner = await network.join("bob")
        page = await owner.call("read_interaction", id="i1")
        assert (contents(page), page["hidden"]) == (["do you know?", "yes"], 2)
        assert (await ann.call("read_interaction", id="i1"))["hidden"] == 0


# Mentions -------------------------------------------------------------------------------------


@pytest.mark.behaviour("P-34")
async def test_mentions_are_listed_newest_first(networks: Networks) -> None:
    async with networks.start(DESK) as network:
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


@pytest.mark.behaviour("P-34")
async def test_mentions_come_in_pages(networks: Networks) -> None:
    async with networks.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for n in range(9):
            await ann.say("bob", f"{n} @bob" if n % 2 else f"{n}")
        found, before = list[str](), 0
        while True:
            more: dict[str, Any] = {"before": before} if before else {}
            page = await bob.call("list_mentions", limit=1, **more)
            found += contents(page)
            before = page["upto"]
            if not page["more"]:
                break
        assert found == ["7 @bob", "5 @bob", "3 @bob", "1 @bob"]
        assert contents(await bob.call("list_mentions", before=4)) == ["1 @bob"]


@pytest.mark.behaviour("P-34", "W-9")
async def test_a_notice_mentions_the_person_who_waits(networks: Networks) -> None:
    async with networks.start(DESK) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        bot = await network.join("bot", "agent", turns=True)
        direct = await ann.say("bot", "well?")
        posted = await ann.call("post_to_channel", channel="desk", text="@bot well?")
        for message in (direct, posted):
            turn = f"bot-{message['id']}"
            await bot.call("begin_turn", start=start(turn, message["thread_id"], message["id"]))
            await bot.call("end_turn", end={"id": turn, "outcome": "finished"})
        await network.quiet()
        notices = (await ann.call("list_mentions"))["messages"]
        assert [notice["content"]["messages"] for notice in notices] == [
            [posted["id"]],
            [direct["id"]],
        ]
        assert {notice["sender_kind"] for notice in notices} == {"system"}
        assert (await bob.call("list_mentions"))["messages"] == []
        assert [event["message"]["id"] for event in await bot.sync() if "wake" in event] == [
            direct["id"],
            posted["id"],
        ]


@pytest.mark.behaviour("P-34", "W-9")
async def test_a_notice_mentions_nobody_who_has_left(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent", turns=True)
        posted = await ann.call("post_to_channel", channel="desk", text="@bot well?")
        await ann.call("leave_channel", channel="desk")
        turn = f"bot-{posted['id']}"
        await bot.call("begin_turn", start=start(turn, "channel.desk", posted["id"]))
        await bot.call("end_turn", end={"id": turn, "outcome": "finished"})
        await network.quiet()
        (notice,) = [e["message"] for e in await bot.sync() if e["message"]["sender_id"] == "hub"]
        assert "mentions" not in notice
        assert (await ann.call("list_mentions"))["messages"] == []


@pytest.mark.behaviour("P-34")
async def test_mentions_in_a_channel_that_one_has_left_are_not_ones_own_any_more(
    networks: Networks,
) -> None:
    async with networks.start(DESK) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.call("post_to_channel", channel="desk", text="1 @bob")
        await ann.say("bob", "2 @bob")
        await bob.call("leave_channel", channel="desk")
        assert contents(await bob.call("list_mentions")) == ["2 @bob"]
        await bob.call("join_channel", channel="desk")
        assert contents(await bob.call("list_mentions")) == ["2 @bob", "1 @bob"]
