"""Reactions in a running network."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.reactions.mod import ReactionsConfig, ReactionsMod
from tests.interaction.mods.workspace import DESK, post, refusal, refused, workspace
from tests.interaction.peers import Frame, Peer


def mod(**settings: JsonValue) -> ReactionsMod:
    return ReactionsMod(ReactionsConfig.model_validate(settings))


async def react(peer: Peer, id: str, emoji: str, verb: str = "add") -> Frame:
    answer: Frame = await peer.call(f"{verb}_reaction", message_id=id, emoji=emoji)
    return answer


async def counts(peer: Peer, *ids: str) -> dict[str, dict[str, int]]:
    """The counts of each emoji by message."""
    answer = await peer.call("list_reactions", message_ids=list(ids))
    return {
        each["message_id"]: {r["emoji"]: r["count"] for r in each["reactions"]}
        for each in answer["messages"]
    }


def signals(peer: Peer) -> list[Frame]:
    return [signal for signal in peer.signals if signal["type"] == "mod.reactions"]


@pytest.mark.behaviour("M-230")
async def test_a_reaction_is_added_once_listed_and_removed() -> None:
    async with workspace([mod()], "ann", "bob") as (_, ann, bob):
        id = await post(ann, "Ship it?")
        assert [(await react(bob, id, "👍"))["changed"] for _ in range(2)] == [True, False]
        for emoji in "👍🎉":
            await react(ann, id, emoji)
        [listed] = (await ann.call("list_reactions", message_ids=[id]))["messages"]
        assert (listed["message_id"], listed["thread_id"], listed["tseq"]) == (id, DESK, 1)
        assert listed["reactions"] == [
            {"emoji": "👍", "count": 2, "who": ["bob", "ann"], "more": False, "mine": True},
            {"emoji": "🎉", "count": 1, "who": ["ann"], "more": False, "mine": True},
        ]
        removed = await react(ann, id, "👍", "remove")
        assert removed["reactions"][0] == {
            "emoji": "👍", "count": 1, "who": ["bob"], "more": False, "mine": False,
        }  # fmt: skip
        assert not (await react(ann, id, "👍", "remove"))["changed"]
        assert (await react(bob, id, "👍", "toggle"))["changed"]
        assert await counts(bob, id) == {id: {"🎉": 1}}


@pytest.mark.behaviour("M-231", "M-232")
async def test_a_reaction_is_only_signalled_to_readers_and_wakes_no_agent() -> None:
    async with workspace([mod()], "ann", "bob", "bot", "cat") as (network, ann, bob, bot, cat):
        tools = {each["name"]: each["tool"] for each in bot.ready["operations"]}
        names = ("add_reaction", "remove_reaction", "list_reactions", "toggle_reaction")
        assert [tools[name] for name in names] == [True, True, True, False]
        sent = await bot.call("post_to_channel", channel="desk", text="done")
        head = network.hub.kernel.log.head
        await react(ann, sent["id"], "❤")
        await react(ann, sent["id"], "❤️", "toggle")
        await bob.until(lambda: len(signals(bob)) == 2)
        await network.quiet()
        assert network.hub.kernel.log.head == head
        added, removed = (signal["data"] for signal in signals(bob))
        assert (added["kind"], removed["kind"]) == ("added", "removed")
        assert added["data"] == {
            "message_id": sent["id"], "thread_id": DESK, "tseq": sent["tseq"],
            "by": "ann", "emoji": "❤️",
            "reactions": [{"emoji": "❤️", "count": 1, "who": ["ann"], "more": False}],
        }  # fmt: skip
        assert removed["data"]["reactions"] == []
        for peer in (bot, cat):
            await peer.call("list_participants")
            assert not [event for event in peer.events if event.get("wake")]
        assert not signals(cat)
        # An unreadable message has no reactions, like an unknown one.
        secret = (await ann.say("bob", "between us"))["id"]
        await react(bob, secret, "👀")
        assert await counts(cat, secret, "m999") == {}
        assert await refused(cat, "list_reactions", thread="dm.ann.bob") == "unknown_thread"
        assert await counts(ann, secret) == {secret: {"👀": 1}}


@pytest.mark.behaviour("M-232", "M-233")
async def test_invalid_reactions_are_refused_and_removal_always_works() -> None:
    mods = [mod(names=[":ship-it:"]), EditsMod(EditsConfig())]
    async with workspace(mods, "ann", "bob") as (network, ann, bob):
        id = await post(ann, "Ship it?")
        for wrong in ("ok", "<b>", "👍👍", "1", " 👍", ":nope:", "\u200d", "👍" * 40):
            for name in ("add_reaction", "toggle_reaction"):
                assert await refused(ann, name, message_id=id, emoji=wrong) == "bad_request", wrong
        await react(ann, id, ":ship-it:")
        assert await counts(ann, id) == {id: {":ship-it:": 1}}
        network.hub.services.mods.configure(mods[0], ReactionsConfig())
        code = await refused(bob, "add_reaction", message_id=id, emoji=":ship-it:")
        assert code == "bad_request", "the name is no longer configured"
        assert (await react(ann, id, ":ship-it:", "remove"))["changed"]
        await react(ann, id, "👍")
        edit = (await ann.call("edit_message", message_id=id, text="Ship it!"))["id"]
        await react(ann, id, "🎉")
        assert await counts(ann, id) == {id: {"👍": 1, "🎉": 1}}
        error = await refusal(ann, "add_reaction", message_id=edit, emoji="👍")
        assert error.message == f"{edit} is an edit of {id}; react to {id} instead"
        await ann.call("delete_message", message_id=id)
        assert await refused(ann, "add_reaction", message_id=id, emoji="👀")
        assert (await react(ann, id, "👍", "remove"))["changed"]


@pytest.mark.behaviour("M-234")
async def test_a_message_has_limited_emoji_and_names_the_first_participants() -> None:
    people = ("ann", "bob", "olga", "bot", "dot")
    async with workspace([mod(max_kinds=3, max_each=2, who=2)], *people) as (_, *peers):
        ann, bob, *_others, dot = peers
        id = await post(ann, "Ship it?")
        for emoji in "👍🎉":
            await react(ann, id, emoji)
        assert await refused(ann, "add_reaction", message_id=id, emoji="👀") == "limit"
        await react(bob, id, "👀")
        error = await refusal(bob, "add_reaction", message_id=id, emoji="🔥")
        assert (error.code, "👍 🎉 👀" in error.message) == ("limit", True)
        await react(bob, id, "👍")
        assert await counts(bob, id) == {id: {"👍": 2, "🎉": 1, "👀": 1}}
        id = await post(ann, "Lunch?")
        for each in peers:
            await react(each, id, "🍕")
        answer = await react(ann, id, "🍕", "remove")
        assert answer["reactions"] == [
            {"emoji": "🍕", "count": 4, "who": ["bob", "olga"], "more": True, "mine": False}
        ]
        [read] = (await dot.call("list_reactions", message_ids=[id]))["messages"]
        assert read["reactions"] == [{**answer["reactions"][0], "mine": True}]


@pytest.mark.behaviour("M-235")
async def test_the_reactions_of_a_thread_are_listed_by_position_in_pages() -> None:
    async with workspace([mod()], "ann") as (_, ann):
        ids = [await post(ann, str(n)) for n in range(108)]
        for id in ids[5:]:
            await react(ann, id, "👍")
        page = await ann.call("list_reactions", thread="channel_desk")
        assert ([m["tseq"] for m in page["messages"]], page["more"]) == ([*range(6, 106)], True)
        rest = await ann.call("list_reactions", thread=DESK, first=106)
        assert ([m["tseq"] for m in rest["messages"]], rest["more"]) == ([106, 107, 108], False)
        few = await ann.call("list_reactions", thread=DESK, first=1, last=6)
        assert [m["message_id"] for m in few["messages"]] == [ids[5]]
        many = [f"m{n + 1}" for n in range(101)]
        for wrong in ({}, {"thread": DESK, "message_ids": ids[:1]}, {"message_ids": many}):
            assert await refused(ann, "list_reactions", **wrong) == "bad_request"
