"""Reactions, as people and agents of a running network use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.mods.loader import load_mods
from hubbub.mods.reactions.mod import ReactionsConfig, ReactionsMod
from hubbub.testing.mod_contract import mod_contract
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

test_it_is_a_good_neighbour = pytest.mark.behaviour("M-230")(mod_contract(ReactionsMod))

NETWORKS = Networks(sockets=False)
FILE = config(
    network={"limits": {"burst": 10_000}}, channels={"desk": {"members": ["ann", "bob", "bot"]}}
)


def mod(**settings: JsonValue) -> ReactionsMod:
    return ReactionsMod(ReactionsConfig.model_validate(settings))


async def refused(peer: Peer, name: str, **args: Any) -> Frame:
    answer = await peer.answer(await peer.post(name, **args))
    assert answer["op"] == "error", answer
    return answer


async def shown(peer: Peer, *ids: str) -> dict[str, dict[str, int]]:
    """What stands under messages: counts by emoji."""
    answer = await peer.call("list_reactions", message_ids=list(ids))
    return {
        each["message_id"]: {r["emoji"]: r["count"] for r in each["reactions"]}
        for each in answer["messages"]
    }


async def post(peer: Peer, text: str = "Ship it?") -> str:
    return str((await peer.call("post_to_channel", channel="desk", text=text))["id"])


@pytest.mark.behaviour("M-230")
async def test_a_reaction_is_added_once_listed_and_taken_back() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        id = await post(ann)
        first = await bob.call("add_reaction", message_id=id, emoji="👍")
        again = await bob.call("add_reaction", message_id=id, emoji="👍")
        assert (first["changed"], again["changed"]) == (True, False)
        await ann.call("add_reaction", message_id=id, emoji="👍")
        await ann.call("add_reaction", message_id=id, emoji="🎉")
        [told] = (await ann.call("list_reactions", message_ids=[id]))["messages"]
        assert (told["message_id"], told["thread_id"], told["tseq"]) == (id, "channel.desk", 1)
        assert told["reactions"] == [
            {"emoji": "👍", "count": 2, "who": ["bob", "ann"], "more": False, "mine": True},
            {"emoji": "🎉", "count": 1, "who": ["ann"], "more": False, "mine": True},
        ]
        gone = await ann.call("remove_reaction", message_id=id, emoji="👍")
        assert gone["reactions"][0] == {
            "emoji": "👍", "count": 1, "who": ["bob"], "more": False, "mine": False,
        }  # fmt: skip
        assert not (await ann.call("remove_reaction", message_id=id, emoji="👍"))["changed"]
        assert (await bob.call("toggle_reaction", message_id=id, emoji="👍"))["changed"]
        assert await shown(bob, id) == {id: {"🎉": 1}}


@pytest.mark.behaviour("M-231")
async def test_a_reaction_wakes_nobody_and_is_no_message_but_is_signalled_to_the_readers() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        bot, eve = await network.join("bot", "agent"), await network.join("eve")
        sent = await bot.call("post_to_channel", channel="desk", text="done")
        head = network.hub.log.head
        await ann.call("add_reaction", message_id=sent["id"], emoji="❤")
        await ann.call("toggle_reaction", message_id=sent["id"], emoji="❤️")
        await bob.until(lambda: len(signals(bob)) == 2)
        await network.quiet()
        assert network.hub.log.head == head
        added, removed = (signal["data"] for signal in signals(bob))
        assert (added["kind"], removed["kind"]) == ("added", "removed")
        assert added["data"] == {
            "message_id": sent["id"], "thread_id": "channel.desk", "tseq": sent["tseq"],
            "by": "ann", "emoji": "❤️",
            "reactions": [{"emoji": "❤️", "count": 1, "who": ["ann"], "more": False}],
        }  # fmt: skip
        assert removed["data"]["reactions"] == []
        for peer in (bot, eve):
            await peer.call("list_participants")
            assert not [event for event in peer.events if event.get("wake")]
        assert not signals(eve)


def signals(peer: Peer) -> list[Frame]:
    return [signal for signal in peer.signals if signal["type"] == "mod.reactions"]


@pytest.mark.behaviour("M-232")
async def test_who_may_not_read_a_message_can_neither_react_to_it_nor_see_reactions() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann, bob, eve = [await network.join(name) for name in ("ann", "bob", "eve")]
        id = (await ann.say("bob", "between us"))["id"]
        await bob.call("add_reaction", message_id=id, emoji="👀")
        for name in ("add_reaction", "remove_reaction", "toggle_reaction"):
            theirs = await refused(eve, name, message_id=id, emoji="👀")
            none = await refused(eve, name, message_id="m999", emoji="👀")
            assert theirs["code"] == none["code"] == "unknown_message"
            assert theirs["message"].replace(id, "m999") == none["message"]
        assert await shown(eve, id, "m999") == {}
        theirs = await refused(eve, "list_reactions", thread="dm.ann.bob")
        assert theirs["code"] == "unknown_thread"
        assert await shown(ann, id) == {id: {"👀": 1}}


@pytest.mark.behaviour("M-233")
@pytest.mark.parametrize("given", ["ok", "<b>", "👍👍", "1", " 👍", ":nope:", "\u200d", "👍" * 40])
async def test_what_is_no_emoji_is_refused(given: str) -> None:
    async with NETWORKS.start(FILE, mods=[mod(names=[":ship-it:"])]) as network:
        ann = await network.join("ann")
        id = await post(ann)
        for name in ("add_reaction", "toggle_reaction"):
            assert (await refused(ann, name, message_id=id, emoji=given))["code"] == "bad_request"
        await ann.call("add_reaction", message_id=id, emoji=":ship-it:")
        assert await shown(ann, id) == {id: {":ship-it:": 1}}


@pytest.mark.behaviour("M-233")
async def test_a_name_that_the_network_knows_no_longer_can_still_be_taken_back() -> None:
    async with NETWORKS.start(FILE, mods=[mod(names=["lgtm"])]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        id = await post(ann)
        await ann.call("add_reaction", message_id=id, emoji="lgtm")
        own = network.hub.mods.pipeline.mods[0]
        network.hub.mods.configure(own, ReactionsConfig())
        no = await refused(bob, "add_reaction", message_id=id, emoji="lgtm")
        assert no["code"] == "bad_request"
        assert (await ann.call("remove_reaction", message_id=id, emoji="lgtm"))["changed"]


@pytest.mark.behaviour("M-234")
async def test_a_message_takes_so_many_emoji_and_no_more() -> None:
    async with NETWORKS.start(FILE, mods=[mod(max_kinds=3, max_each=2)]) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        id = await post(ann)
        for emoji in "👍🎉":
            await ann.call("add_reaction", message_id=id, emoji=emoji)
        mine = await refused(ann, "add_reaction", message_id=id, emoji="👀")
        assert mine["code"] == "limit"
        await bob.call("add_reaction", message_id=id, emoji="👀")
        kinds = await refused(bob, "add_reaction", message_id=id, emoji="🔥")
        assert kinds["code"] == "limit"
        assert "👍 🎉 👀" in kinds["message"]
        await bob.call("add_reaction", message_id=id, emoji="👍")
        assert await shown(bob, id) == {id: {"👍": 2, "🎉": 1, "👀": 1}}


@pytest.mark.behaviour("M-234")
async def test_the_first_participants_are_named_and_the_others_counted() -> None:
    async with NETWORKS.start(FILE, mods=[mod(who=2)]) as network:
        people = [await network.join(f"p{n}") for n in range(5)]
        id = (await people[0].call("broadcast_text_message", text="Lunch?"))["id"]
        for each in people:
            await each.call("add_reaction", message_id=id, emoji="🍕")
        told = await people[0].call("remove_reaction", message_id=id, emoji="🍕")
        assert told["reactions"] == [
            {"emoji": "🍕", "count": 4, "who": ["p1", "p2"], "more": True, "mine": False}
        ]
        [read] = (await people[4].call("list_reactions", message_ids=[id]))["messages"]
        assert read["reactions"] == [{**told["reactions"][0], "mine": True}]


@pytest.mark.behaviour("M-235")
async def test_the_reactions_of_a_thread_are_listed_by_position_in_pages() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        ann = await network.join("ann")
        ids = [await post(ann, str(n)) for n in range(130)]
        for id in ids[5:]:
            await ann.call("add_reaction", message_id=id, emoji="👍")
        page = await ann.call("list_reactions", thread="channel_desk")
        assert page["more"]
        assert [m["tseq"] for m in page["messages"]] == list(range(6, 106))
        rest = await ann.call("list_reactions", thread="channel.desk", first=106)
        assert ([m["tseq"] for m in rest["messages"]], rest["more"]) == ([*range(106, 131)], False)
        few = await ann.call("list_reactions", thread="channel.desk", first=1, last=6)
        assert [m["message_id"] for m in few["messages"]] == [ids[5]]
        for wrong in ({}, {"thread": "channel.desk", "message_ids": ids[:1]}):
            assert (await refused(ann, "list_reactions", **wrong))["code"] == "bad_request"
        many = await refused(ann, "list_reactions", message_ids=[f"m{n + 1}" for n in range(101)])
        assert many["code"] == "bad_request"


@pytest.mark.behaviour("M-236")
async def test_many_at_once_leave_counts_that_are_right() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        people = [await network.join(f"p{n}") for n in range(6)]
        id = (await people[0].call("broadcast_text_message", text="Lunch?"))["id"]
        refs = [
            (each, await each.post("toggle_reaction", message_id=id, emoji="👍"))
            for each in people
            for _ in range(5)
        ]
        answers = [await each.answer(ref) for each, ref in refs]
        assert all(answer["op"] == "result" for answer in answers), answers
        assert await shown(people[0], id) == {id: {"👍": 6}}
        own = network.hub.mods.pipeline.mods[0]
        assert isinstance(own, ReactionsMod)
        assert not len(own._queues)


@pytest.mark.behaviour("M-236")
async def test_what_the_disk_refuses_is_not_told_as_done(tmp_path: Path) -> None:
    store = MoodyStore(f"sqlite:{tmp_path / 'x.db'}")
    async with NETWORKS.start(FILE, store=store, mods=[mod()]) as network:
        ann = await network.join("ann")
        id = await post(ann)
        store.failing = 1
        error = await refused(ann, "add_reaction", message_id=id, emoji="👍")
        assert error["code"] == "store_unavailable"
        assert await shown(ann, id) == {}
        assert (await ann.call("add_reaction", message_id=id, emoji="👍"))["changed"]
        assert len(signals(ann)) == 1


@pytest.mark.behaviour("M-237")
async def test_reactions_outlive_the_hub(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'x.db'}"
    async with LocalNetwork(FILE, store=store, mods=[mod()]) as local:
        ann = await Network(local).join("ann")
        id = await post(ann)
        toggle = {"message_id": id, "emoji": "👍", "cid": "c1"}
        await ann.call("toggle_reaction", **toggle)
        await ann.close()
    async with LocalNetwork(FILE, store=store, mods=[mod()]) as local:
        ann = await Network(local).join("ann")
        again = await ann.answer(await ann.post("toggle_reaction", **toggle))
        assert again["duplicate"]
        assert await shown(ann, id) == {id: {"👍": 1}}
        await ann.close()


@pytest.mark.behaviour("M-231")
async def test_agents_find_reactions_as_tools() -> None:
    async with NETWORKS.start(FILE, mods=[mod()]) as network:
        bot = await network.join("bot", "agent")
        told = {each["name"]: each["tool"] for each in bot.ready["operations"]}
        assert told["add_reaction"]
        assert told["remove_reaction"]
        assert told["list_reactions"]
        assert not told["toggle_reaction"]
        id = await post(bot)
        await bot.call("add_reaction", message_id=id, emoji="👍")
        assert await shown(bot, id) == {id: {"👍": 1}}


@pytest.mark.behaviour("M-232")
async def test_what_was_deleted_gets_no_more_reactions_and_an_edit_none_of_its_own() -> None:
    mods = [mod(), *load_mods(["edits"])]
    async with NETWORKS.start(FILE, mods=mods) as network:
        ann = await network.join("ann")
        id = await post(ann)
        await ann.call("add_reaction", message_id=id, emoji="👍")
        edit = await ann.call("edit_message", message_id=id, text="Ship it!")
        await ann.call("add_reaction", message_id=id, emoji="🎉")
        assert await shown(ann, id) == {id: {"👍": 1, "🎉": 1}}
        error = await refused(ann, "add_reaction", message_id=edit["id"], emoji="👍")
        assert error["message"] == f"{edit['id']} only changes {id}: react to that"
        await ann.call("delete_message", message_id=id)
        assert (await refused(ann, "add_reaction", message_id=id, emoji="👀"))["code"]
        assert (await ann.call("remove_reaction", message_id=id, emoji="👍"))["changed"]
