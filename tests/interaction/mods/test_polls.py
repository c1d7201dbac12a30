"""Polls, as people and agents of a running network use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.api import Mod, ModConfig, Pass, Reject, Verdict
from hubbub.mods.polls.mod import RETRY_DELAY_S, PollsConfig, PollsMod, result_of, result_text
from hubbub.network.queries import SettledCall
from hubbub.protocol.messages import Draft
from tests.interaction.mods.workspace import (
    DESK,
    at_time,
    later,
    refused,
    refusing,
    said_by_hub,
    workspace,
)
from tests.interaction.peers import DEADLINE_S, Peer, eventually
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore

ASKED = {"thread": DESK, "question": "Lunch?", "options": ["Pizza", "Soup", "Rice"]}


def polls(**settings: Any) -> list[PollsMod]:
    return [PollsMod(PollsConfig(**{"announce": False, "time_limit": DEADLINE_S, **settings}))]


async def create(peer: Peer, **more: Any) -> str:
    return str((await peer.call("create_poll", **{**ASKED, **more}))["id"])


async def votes(peer: Peer, poll: str) -> list[int | None]:
    options = (await peer.call("read_poll", poll=poll))["options"]
    return [option.get("votes") for option in options]


# Voting -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-155")
async def test_people_and_agents_vote_change_and_retract_and_the_result_is_a_message() -> None:
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
        (message,) = await said_by_hub(network, ann, 1)
        assert message["text_representation"] == (
            'The poll "Lunch?" has ended: "Soup".\n- Soup: 2\n- Rice: 1\n- Pizza: 0'
        )
        assert message["content"]["votes"] == {"Pizza": 0, "Soup": 2, "Rice": 1}
        assert message["mentions"] == ["ann"]
        events = [each for each in await bot.sync() if each["message"]["sender_id"] == "hub"]
        assert [event.get("wake") for event in events] == [None]


@pytest.mark.behaviour("M-155", "M-160")
async def test_polls_take_their_own_options_make_sense_and_are_listed_in_pages() -> None:
    clock = HandClock()
    async with workspace(polls(max_open=4), "ann", "bot", clock=clock) as (_, ann, bot):
        one, many = await create(ann), await create(ann, multiple=True)
        assert await refused(bot, "vote", poll=one, options=["Soup", "Rice"]) == "bad_request"
        voted = await bot.call("vote", poll=many, options=["Soup", "3", "soup"])
        assert voted["options"] == [2, 3]
        error = await refusing(bot, "vote", poll=one, options=["Cake"])
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
            assert await refused(ann, "create_poll", **{**ASKED, **each}) == "bad_request", each
        made = [one, many, numbers, await create(ann)]
        assert await refused(ann, "create_poll", **ASKED) == "limit"
        await ann.call("close_poll", poll=made[0])
        for args, expected, more in (
            ({"limit": 3, "thread": DESK}, made[:0:-1], True),
            ({"before": made[1]}, made[:1], False),
            ({"state": "closed"}, made[:1], False),
            ({"state": "open"}, made[:0:-1], False),
        ):
            page = await ann.call("list_polls", **args)
            assert ([poll["id"] for poll in page["polls"]], page["more"]) == (expected, more), args


@pytest.mark.behaviour("M-156")
async def test_a_poll_is_closed_by_its_author_and_by_owners_only_and_then_stays_as_it_is() -> None:
    async with workspace(polls(), "ann", "bot", "dot", "olga") as (network, ann, bot, dot, olga):
        first, second = await create(ann), await create(bot)
        assert await refused(bot, "close_poll", poll=first) == "forbidden"
        assert await refused(dot, "close_poll", poll=second) == "forbidden"
        await olga.call("close_poll", poll=first)
        await bot.call("close_poll", poll=second)
        again = await ann.call("close_poll", poll=first)
        assert (again["poll"]["closed_by"], again["outcome"]) == ("olga", "no_votes")
        for name, args in (("vote", {"options": ["Soup"]}), ("retract_vote", {})):
            error = await refusing(ann, name, poll=first, **args)
            assert (error.code, "has ended" in str(error)) == ("conflict", True)
        assert len(await said_by_hub(network, ann, 2)) == 2


@pytest.mark.behaviour("M-157")
async def test_of_a_secret_poll_nobody_learns_who_votes_for_what(tmp_path: Path) -> None:
    store = MoodyStore(f"sqlite:{tmp_path / 'x.db'}")
    async with workspace(polls(), "ann", "bot", "olga", store=store) as (_, ann, bot, olga):
        id = await create(ann, secret=True)
        await bot.call("vote", poll=id, options=["Pizza"], cid="c1")
        await bot.call("vote", poll=id, options=["Soup"], cid="c1")
        assert await store.read(SettledCall("bot", "c1")) is None, "a call that votes is not kept"
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
            assert [(o["votes"], o["voters"]) for o in read["options"]] == [
                (0, []),
                (0, []),
                (2, []),
            ]
            assert (read["mine"], read["poll"]["voters"]) == ([], 2)
        (message,) = await said_by_hub(network, olga, 1)
        assert "bot" not in str(message["content"]) + message["text_representation"]
        host = network.hub.services.mods.pipeline.mods[0].host
        assert await host.rows("SELECT * FROM polls_vote") == []


# Ends -------------------------------------------------------------------------------------------


def test_a_result_names_the_winner_the_tie_or_what_is_missing() -> None:
    for counts, voters, quorum, outcome, winners, words in (
        ([2, 1], 3, 0, "decided", [0], '"A"'),
        ([2, 2, 1], 5, 5, "tie", [0, 1], 'a tie between "A" and "B"'),
        ([3, 0], 3, 4, "no_quorum", (), "3 voted and the quorum is 4"),
        ([0, 0], 0, 0, "no_votes", (), "no votes"),
        ([0, 0], 0, 3, "no_votes", (), "no votes"),
    ):
        assert result_of(counts, voters, quorum) == (outcome, winners)
        assert words in result_text("Q", "ABC"[: len(counts)], counts, voters, quorum)


@pytest.mark.behaviour("M-158")
async def test_a_poll_ends_at_its_deadline_once_also_while_the_hub_is_down(tmp_path: Path) -> None:
    clock, store = HandClock(), f"sqlite:{tmp_path / 'x.db'}"
    async with workspace(polls(), "ann", "bot", store=store, clock=clock) as (network, ann, bot):
        first = await create(ann, deadline=at_time(clock.wall + 60), quorum=2)
        due = await create(ann, deadline=at_time(clock.wall + 300))
        more = await create(ann, deadline=at_time(clock.wall + 900))
        await bot.call("vote", poll=first, options=["Soup"])
        await ann.call("vote", poll=due, options=["Rice"])
        clock.wall += 60
        assert await refused(ann, "vote", poll=first, options=["Soup"]) == "conflict"
        later(network, clock, 0)
        (message,) = await said_by_hub(network, ann, 1)
        assert message["content"]["outcome"] == "no_quorum"
        for _ in range(2):
            later(network, clock, 61)
        assert len(await said_by_hub(network, ann)) == 1
        assert (await ann.call("read_poll", poll=first))["poll"]["closed_by"] == "hub"
    clock.wall += 200
    for _ in range(2):
        async with workspace(polls(), "ann", store=store, clock=clock) as (network, ann):
            told = await said_by_hub(network, ann, 2)
            assert [each["content"]["winners"] for each in told] == [[], ["Rice"]]
            assert await votes(ann, due) == [0, 0, 1]
    async with workspace(polls(), "ann", store=store, clock=clock) as (network, ann):
        later(network, clock, 600)
        assert (await said_by_hub(network, ann, 3))[2]["content"]["poll"] == more


@pytest.mark.behaviour("M-158")
async def test_a_vote_at_the_same_time_as_the_end_is_counted_or_refused() -> None:
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
            told = await said_by_hub(network, ann, n)
            assert len(told) == n
            assert told[-1]["content"]["votes"]["Soup"] == counted


@pytest.mark.behaviour("M-159")
async def test_a_result_that_the_disk_refused_is_told_later() -> None:
    clock, store = HandClock(), MoodyStore()
    async with workspace(polls(), "ann", store=store, clock=clock) as (network, ann):
        id = await create(ann, deadline=at_time(clock.wall + 60))
        for name, args in (("vote", {"options": [1]}), ("close_poll", {})):
            store.failing = 1
            assert await refused(ann, name, poll=id, **args) == "store_unavailable"
        assert await votes(ann, id) == [0, 0, 0]
        store.failing = 2  # the end itself; then what is tried after it
        later(network, clock, 61)
        await eventually(lambda: store.failing == 1)
        later(network, clock, 61)
        await eventually(lambda: store.failing == 0)
        assert await said_by_hub(network, ann) == []
        later(network, clock, 61)
        assert len(await said_by_hub(network, ann, 1)) == 1


@pytest.mark.behaviour("M-159")
async def test_a_poll_that_ended_untold_is_told_by_the_next_run_of_the_hub(tmp_path: Path) -> None:
    place, mods = f"sqlite:{tmp_path / 'x.db'}", polls()
    store = MoodyStore(place)
    async with workspace(mods, "ann", store=store) as (network, ann):
        id = await create(ann)
        ended = asyncio.create_task(mods[0]._close(1, "ann"))
        await eventually(lambda: "closed_at = ?" in str(store.batches[-1].records))
        store.failing = 1_000_000
        await ended
        assert await said_by_hub(network, ann) == []
    async with workspace(polls(), "ann", store=place) as (network, ann):
        assert (await said_by_hub(network, ann, 1))[0]["content"]["poll"] == id


@pytest.mark.behaviour("M-160")
async def test_a_new_poll_is_told_in_its_thread_and_wakes_nobody() -> None:
    clock = HandClock()
    async with workspace(polls(announce=True), "ann", "bot", clock=clock) as (network, ann, bot):
        id = await create(ann, secret=True, deadline=at_time(clock.wall + 60))
        (message,) = await said_by_hub(network, ann, 1)
        assert message["text_representation"] == (
            f"ann asks until 2027-01-15 08:01 UTC (secret poll {id}): Lunch?\n"
            "1. Pizza\n2. Soup\n3. Rice"
        )
        (event,) = await bot.sync()
        assert event.get("wake") is None


class NoResults(Mod):
    """Refuses what the hub says of the ends of polls."""

    name = "no_results"

    def __init__(self) -> None:
        super().__init__(ModConfig())
        self.refused = 0

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind == "system" and "has ended" in (draft.text_representation or ""):
            self.refused += 1
            return Reject("no results here")
        return Pass()


@pytest.mark.behaviour("M-394")
async def test_a_result_that_is_refused_each_time_is_not_told_for_ever() -> None:
    clock, rule = HandClock(), NoResults()
    async with workspace([*polls(), rule], "ann", clock=clock) as (network, ann):
        id = await create(ann)
        await ann.call("close_poll", poll=id)
        await eventually(lambda: rule.refused == 1)
        for _ in range(3):
            later(network, clock, RETRY_DELAY_S + 1)
            await ann.call("read_poll", poll=id)
        assert rule.refused == 1
        assert (await ann.call("read_poll", poll=id))["outcome"] == "no_votes"
