"""Polls in a running network."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.polls.mod import RETRY_DELAY_S, PollsConfig, PollsMod, result_of, result_text
from hubbub.network.queries import SettledCall
from tests.interaction.mods.workspace import (
    DESK,
    NoNotices,
    advance,
    at_time,
    hub_messages,
    refusal,
    refused,
    workspace,
)
from tests.interaction.peers import DEADLINE_S, Peer, soon
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore

POLL = {"thread": DESK, "question": "Lunch?", "options": ["Pizza", "Soup", "Rice"]}


def polls(**settings: Any) -> list[PollsMod]:
    return [PollsMod(PollsConfig(**{"announce": False, "time_limit": DEADLINE_S, **settings}))]


async def create(peer: Peer, **more: Any) -> str:
    return str((await peer.call("create_poll", **{**POLL, **more}))["id"])


async def votes(peer: Peer, poll: str) -> list[int | None]:
    options = (await peer.call("read_poll", poll=poll))["options"]
    return [option.get("votes") for option in options]


# Voting -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-155")
async def test_votes_can_be_changed_and_retracted_and_the_result_is_posted() -> None:
    async with workspace(polls(), "ann", "bot", "dot", "olga") as (network, ann, bot, dot, olga):
        id = await create(ann)
        assert await bot.call("vote", poll=id, options=["pizza"]) == {"poll": id, "options": [1]}
        await bot.call("vote", poll=id, options=["Soup"])
        for _ in range(2):
            await dot.call("vote", poll=id, options=["2"])
        await ann.call("vote", poll=id, options=[3])
        await olga.call("vote", poll=id, options=["Pizza"])
        await olga.call("retract_vote", poll=id)
        read = await dot.call("read_poll", poll=id)
        assert [option["voters"] for option in read["options"]] == [[], ["bot", "dot"], ["ann"]]
        assert (read["mine"], read["poll"]["voters"], read["poll"]["state"]) == ([2], 3, "open")
        closed = await ann.call("close_poll", poll=id)
        assert (closed["outcome"], closed["winners"]) == ("decided", ["Soup"])
        assert (closed["poll"]["state"], closed["poll"]["closed_by"]) == ("closed", "ann")
        (message,) = await hub_messages(network, ann, 1)
        assert message["text_representation"] == (
            'The poll "Lunch?" has ended: "Soup".\n- Soup: 2\n- Rice: 1\n- Pizza: 0'
        )
        assert message["content"]["votes"] == {"Pizza": 0, "Soup": 2, "Rice": 1}
        assert message["mentions"] == ["ann"]
        events = [each for each in await bot.sync() if each["message"]["sender_id"] == "hub"]
        assert [event.get("wake") for event in events] == [None]


@pytest.mark.behaviour("M-155", "M-160")
async def test_polls_accept_only_their_options_and_are_listed_in_pages() -> None:
    clock = HandClock()
    async with workspace(polls(max_open=4), "ann", "bot", clock=clock) as (_, ann, bot):
        one, many = await create(ann), await create(ann, multiple=True)
        assert await refused(bot, "vote", poll=one, options=["Soup", "Rice"]) == "bad_request"
        voted = await bot.call("vote", poll=many, options=["Soup", "3", "soup"])
        assert voted["options"] == [2, 3]
        error = await refusal(bot, "vote", poll=one, options=["Cake"])
        assert error.code == "bad_request"
        assert "has no 'Cake'; options are 1: Pizza, 2: Soup, 3: Rice" in str(error)
        numbers = await create(ann, options=["3", "2", "1"])
        assert (await bot.call("vote", poll=numbers, options=["3"]))["options"] == [1]
        wrong: list[dict[str, Any]] = [
            {"options": ["one"]},
            {"options": ["a"] * 21},
            {"options": ["Yes", " yes "]},
            {"options": ["Yes", " "]},
            {"options": ["a\nb", "c"]},
            {"question": "x" * 501},
            {"deadline": at_time(clock.wall - 1)},
        ]
        for each in wrong:
            assert await refused(ann, "create_poll", **{**POLL, **each}) == "bad_request", each
        created = [one, many, numbers, await create(ann)]
        assert await refused(ann, "create_poll", **POLL) == "limit"
        await ann.call("close_poll", poll=created[0])
        for args, expected, more in (
            ({"limit": 3, "thread": DESK}, created[:0:-1], True),
            ({"before": created[1]}, created[:1], False),
            ({"state": "closed"}, created[:1], False),
            ({"state": "open"}, created[:0:-1], False),
        ):
            page = await ann.call("list_polls", **args)
            assert ([poll["id"] for poll in page["polls"]], page["more"]) == (expected, more), args


@pytest.mark.behaviour("M-156")
async def test_only_author_and_owners_can_close_a_poll_for_good() -> None:
    async with workspace(polls(), "ann", "bot", "dot", "olga") as (network, ann, bot, dot, olga):
        first, second = await create(ann), await create(bot)
        assert await refused(bot, "close_poll", poll=first) == "forbidden"
        assert await refused(dot, "close_poll", poll=second) == "forbidden"
        await olga.call("close_poll", poll=first)
        await bot.call("close_poll", poll=second)
        again = await ann.call("close_poll", poll=first)
        assert (again["poll"]["closed_by"], again["outcome"]) == ("olga", "no_votes")
        for name, args in (("vote", {"options": ["Soup"]}), ("retract_vote", {})):
            error = await refusal(ann, name, poll=first, **args)
            assert (error.code, "has ended" in str(error)) == ("conflict", True)
        assert len(await hub_messages(network, ann, 2)) == 2


@pytest.mark.behaviour("M-157")
async def test_a_secret_poll_reveals_no_votes(tmp_path: Path) -> None:
    store = MoodyStore(f"sqlite:{tmp_path / 'x.db'}")
    async with workspace(polls(), "ann", "bot", "olga", store=store) as (_, ann, bot, olga):
        id = await create(ann, secret=True)
        await bot.call("vote", poll=id, options=["Pizza"], cid="c1")
        await bot.call("vote", poll=id, options=["Soup"], cid="c1")
        assert await store.read(SettledCall("bot", "c1")) is None, "calls that vote are not stored"
        await ann.call("vote", poll=id, options=["Rice"])
        for who, mine in ((ann, [3]), (bot, [2]), (olga, [])):
            read = await who.call("read_poll", poll=id)
            assert (read["poll"]["voters"], read["mine"]) == (2, mine)
            assert [(o.get("votes"), o["voters"]) for o in read["options"]] == [(None, [])] * 3
        signals = [(await olga.signal("mod.polls"))["data"] for _ in range(4)]
        assert [signal["data"]["by"] for signal in signals] == ["ann", None, None, None]
    again = f"sqlite:{tmp_path / 'x.db'}"
    async with workspace(polls(), "ann", "bot", "olga", store=again) as (network, ann, bot, olga):
        await bot.call("vote", poll=id, options=["Rice"])
        await ann.call("close_poll", poll=id)
        for who in (ann, bot, olga):
            read = await who.call("read_poll", poll=id)
            assert [option["votes"] for option in read["options"]] == [0, 0, 2]
            assert not any(option["voters"] for option in read["options"])
            assert (read["mine"], read["poll"]["voters"]) == ([], 2)
        (message,) = await hub_messages(network, olga, 1)
        assert "bot" not in str(message["content"]) + message["text_representation"]
        host = network.hub.services.mods.pipeline.mods[0].host
        assert await host.rows("SELECT * FROM polls_vote") == []


# Ends -------------------------------------------------------------------------------------------


def test_a_result_names_the_winner_the_tie_or_the_missing_votes() -> None:
    for counts, voters, quorum, outcome, winners, text in (
        ([2, 1], 3, 0, "decided", [0], '"A"'),
        ([2, 2, 1], 5, 5, "tie", [0, 1], 'a tie between "A" and "B"'),
        ([3, 0], 3, 4, "no_quorum", (), "3 voted and the quorum is 4"),
        ([0, 0], 0, 0, "no_votes", (), "no votes"),
        ([0, 0], 0, 3, "no_votes", (), "no votes"),
    ):
        assert result_of(counts, voters, quorum) == (outcome, winners)
        assert text in result_text("Q", "ABC"[: len(counts)], counts, voters, quorum)


@pytest.mark.behaviour("M-158")
async def test_a_poll_ends_once_at_its_deadline_even_while_the_hub_is_down(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with workspace(polls(), "ann", "bot", store=store, clock=clock) as (network, ann, bot):
        first = await create(ann, deadline=at_time(clock.wall + 60), quorum=2)
        due = await create(ann, deadline=at_time(clock.wall + 300))
        more = await create(ann, deadline=at_time(clock.wall + 900))
        await bot.call("vote", poll=first, options=["Soup"])
        await ann.call("vote", poll=due, options=["Rice"])
        clock.wall += 60
        assert await refused(ann, "vote", poll=first, options=["Soup"]) == "conflict"
        advance(network, clock, 0)
        (message,) = await hub_messages(network, ann, 1)
        assert message["content"]["outcome"] == "no_quorum"
        for _ in range(2):
            advance(network, clock, 61)
        assert len(await hub_messages(network, ann)) == 1
        assert (await ann.call("read_poll", poll=first))["poll"]["closed_by"] == "hub"
    clock.wall += 200
    for _ in range(2):
        async with workspace(polls(), "ann", store=store, clock=clock) as (network, ann):
            results = await hub_messages(network, ann, 2)
            assert [each["content"]["winners"] for each in results] == [[], ["Rice"]]
            assert await votes(ann, due) == [0, 0, 1]
    async with workspace(polls(), "ann", store=store, clock=clock) as (network, ann):
        advance(network, clock, 600)
        assert (await hub_messages(network, ann, 3))[2]["content"]["poll"] == more


@pytest.mark.behaviour("M-158")
async def test_a_vote_during_the_close_is_counted_or_refused() -> None:
    async with workspace(polls(), "ann", "bot", "dot", "olga") as (network, ann, *others):
        for n in (1, 2):
            id = await create(ann)
            posted = [(each, await each.post("close_poll", poll=id)) for each in (ann, others[2])]
            posted += [(each, await each.post("vote", poll=id, options=[2])) for each in others[:2]]
            frames = await asyncio.gather(*(each.answer(ref) for each, ref in posted))
            counted = sum(frame["op"] == "result" for frame in frames[2:])
            assert {f["code"] for f in frames[2:] if f["op"] == "error"} <= {"conflict"}
            assert [frame["op"] for frame in frames[:2]] == ["result"] * 2
            assert await votes(ann, id) == [0, counted, 0]
            results = await hub_messages(network, ann, n)
            assert len(results) == n
            assert results[-1]["content"]["votes"]["Soup"] == counted


@pytest.mark.behaviour("M-159")
async def test_a_result_that_could_not_be_stored_is_posted_later() -> None:
    clock, store = HandClock(), MoodyStore()
    async with workspace(polls(), "ann", store=store, clock=clock) as (network, ann):
        id = await create(ann, deadline=at_time(clock.wall + 60))
        for name, args in (("vote", {"options": [1]}), ("close_poll", {})):
            store.failing = 1
            assert await refused(ann, name, poll=id, **args) == "store_unavailable"
        assert await votes(ann, id) == [0, 0, 0]
        store.failing = 2  # the close, then its retry
        advance(network, clock, 61)
        await store.until(lambda: store.failing == 1)
        advance(network, clock, 61)
        await store.until(lambda: store.failing == 0)
        assert await hub_messages(network, ann) == []
        advance(network, clock, 61)
        assert len(await hub_messages(network, ann, 1)) == 1


@pytest.mark.behaviour("M-159")
async def test_a_result_that_was_not_posted_is_posted_after_a_restart(tmp_path: Path) -> None:
    path, mods = f"sqlite:{tmp_path / 'x.db'}", polls()
    store = MoodyStore(path)
    async with workspace(mods, "ann", store=store) as (network, ann):
        id = await create(ann)
        closing = asyncio.create_task(mods[0]._close(1, "ann"))
        await store.until(lambda: "closed_at = ?" in str(store.batches[-1].records))
        store.failing = 1_000_000
        await closing
        assert await hub_messages(network, ann) == []
    async with workspace(polls(), "ann", store=path) as (network, ann):
        assert (await hub_messages(network, ann, 1))[0]["content"]["poll"] == id


@pytest.mark.behaviour("M-160")
async def test_a_new_poll_is_announced_in_its_thread_and_wakes_no_agent() -> None:
    clock = HandClock()
    async with workspace(polls(announce=True), "ann", "bot", clock=clock) as (network, ann, bot):
        id = await create(ann, secret=True, deadline=at_time(clock.wall + 60))
        (message,) = await hub_messages(network, ann, 1)
        assert message["text_representation"] == (
            f"ann asks until 2027-01-15 08:01 UTC (secret poll {id}): Lunch?\n"
            "1. Pizza\n2. Soup\n3. Rice"
        )
        (event,) = await bot.sync()
        assert event.get("wake") is None


@pytest.mark.behaviour("M-394")
async def test_a_rejected_result_is_not_posted_again() -> None:
    clock, rule = HandClock(), NoNotices("has ended")
    async with workspace([*polls(), rule], "ann", clock=clock) as (network, ann):
        id = await create(ann)
        await ann.call("close_poll", poll=id)
        async with soon():
            await rule.rejected.get()
        for _ in range(3):
            advance(network, clock, RETRY_DELAY_S + 1)
            await ann.call("read_poll", poll=id)
        assert rule.rejected.empty()
        assert (await ann.call("read_poll", poll=id))["outcome"] == "no_votes"
