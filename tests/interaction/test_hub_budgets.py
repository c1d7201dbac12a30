"""Budgets of interactions, days and pairs of agents: which wakes the hub allows."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.config.budgets import DailyBudget
from tests.interaction.accounts import Worker, limited
from tests.interaction.peers import Network, Networks, Peer
from tests.interaction.stop_harness import HandClock, notices, settled
from tests.interaction.stores import MoodyStore


async def agents(network: Network, *names: str) -> list[Peer]:
    return [await network.join(name, "agent") for name in names]


async def chain(ann: Peer, speakers: list[Peer], names: list[str]) -> list[Any]:
    """Ann writes to the first agent, which then writes to the second, and so on."""
    sent = [await ann.say(names[0], "go")]
    for speaker, to in zip(speakers, names[1:], strict=False):
        sent.append(await speaker.say(to, "on", cause=sent[-1]["id"]))
    return sent


def skipped(result: Any) -> dict[str, str]:
    """The agents that a sent message did not wake, with the reasons."""
    reasons: dict[str, str] = result.get("not_woken", {})
    return reasons


async def read_budget(peer: Peer, opening: Any) -> Any:
    """The budget of the interaction that a message opened."""
    return await peer.call("read_budget", interaction=f"i{opening['seq']}")


# Limits of an interaction ---------------------------------------------------------------------


@pytest.mark.behaviour("H-1", "H-2")
async def test_wakes_stop_at_the_limit_with_one_notice(networks: Networks) -> None:
    async with networks.start(limited(wakes=2)) as network:
        ann, names = await network.join("ann"), ["a", "b", "c", "d"]
        peers = await agents(network, *names)
        sent = await chain(ann, peers, names)
        again = await peers[1].say("c", "on", cause=sent[1]["id"])
        c, d = {"c": "budget_wakes"}, {"d": "budget_wakes"}
        assert [skipped(each) for each in (*sent, again)] == [{}, {}, c, d, c]
        (notice,) = await notices(network, ann)
        assert (notice["thread_id"], notice["mentions"]) == ("dm.a.ann", ["ann"]), "where it began"
        content = notice["content"]
        assert (content["code"], content["used"], content["of"]) == ("budget_wakes", 2, 2)
        assert content["interaction"] == f"i{sent[0]['seq']}"
        assert "raise network.budgets.wakes" in notice["text_representation"]
        for peer, woken in zip(peers[1:], ([True], [False, False], [False]), strict=True):
            events = await peer.sync()
            assert ["wake" in event for event in events] == woken, "all are delivered, no notice"
        assert not skipped(await ann.say("c", "go on then")), "a new message has a new budget"


@pytest.mark.behaviour("H-1")
async def test_the_number_of_agents_in_an_interaction_is_limited(in_memory: Networks) -> None:
    async with in_memory.start(limited(agents=2)) as network:
        ann, names = await network.join("ann"), ["a", "b", "c"]
        peers = await agents(network, *names)
        sent = await chain(ann, peers, names)
        assert [skipped(result) for result in sent] == [{}, {}, {"c": "budget_agents"}]
        assert not skipped(await peers[1].say("a", "you again", cause=sent[1]["id"]))
        assert (await read_budget(ann, sent[0]))["used"]["agents"] == 2


@pytest.mark.behaviour("H-1")
async def test_fan_out_is_limited_for_agents_but_not_for_people(in_memory: Networks) -> None:
    async with in_memory.start(limited(fan_out=3)) as network:
        ann, names = await network.join("ann"), ["a", "b", "c", "d", "e"]
        first, *_ = await agents(network, *names)
        question = await ann.say("a", "tell them")
        sent = await first.say(names[1:], "hear", cause=question["id"])
        assert skipped(sent) == {"e": "budget_fan_out"}
    async with in_memory.start(limited(fan_out=1, agents=1, wakes=1)) as network:
        ann = await network.join("ann")
        first, _ = await agents(network, "a", "b")
        question = await ann.say(["a", "b"], "both of you")
        assert not skipped(question)
        assert skipped(await first.say("b", "and?", cause=question["id"])) == {"b": "budget_wakes"}


@pytest.mark.behaviour("H-1")
async def test_an_interaction_wakes_no_one_after_its_time_limit(in_memory: Networks) -> None:
    clock = HandClock()
    async with in_memory.start(limited(wall_clock="60s"), clock=clock) as network:
        ann = await network.join("ann")
        first, _ = await agents(network, "a", "b")
        question = await ann.say("a", "go")
        clock.set(-1_000_000)  # does not change its age
        for after_s, expected in ((60, {}), (1, {"b": "budget_wall_clock"})):
            clock.wall += after_s
            assert skipped(await first.say("b", "late?", cause=question["id"])) == expected
        assert not skipped(await ann.say("b", "a new one"))


@pytest.mark.behaviour("H-1")
@pytest.mark.parametrize(
    ("limit", "steps"), [({"tokens": 100}, [(99, 0.0), (1, 0.0)]), ({"usd": 0.8}, [(1, 0.1)] * 8)]
)
async def test_no_turn_starts_after_the_tokens_or_the_money_are_used(
    in_memory: Networks, limit: dict[str, Any], steps: list[tuple[int, float]]
) -> None:
    async with in_memory.start(limited(**limit)) as network:
        ann = await network.join("ann")
        await agents(network, "b")
        worker = await Worker.woken(network, "a", ann)
        for n, (tokens, usd) in enumerate(steps):  # tenths do not add up exactly in binary
            assert not skipped(await worker.peer.say("b", "on", cause=worker.turn))
            await worker.step(n + 1, tokens, usd)
        sent = await worker.peer.say("b", "on", cause=worker.turn)
        assert skipped(sent) == {"b": f"budget_{next(iter(limit))}"}


@pytest.mark.behaviour("H-3")
async def test_an_agents_interaction_has_half_of_each_limit(in_memory: Networks) -> None:
    async with in_memory.start(limited(wakes=4, agents=16, fan_out=1)) as network:
        one, two, three = await agents(network, "a", "b", "c")
        opened = await one.say("b", "by myself")
        second = await two.say("c", "on", cause=opened["id"])
        third = await three.say("a", "on", cause=second["id"])
        assert skipped(opened) == skipped(second) == {}
        assert skipped(third) == {"a": "budget_wakes"}
        budget = await read_budget(one, opened)
        limits = {"hops": 500, "wakes": 2, "fan_out": 1, "agents": 8, "wall_clock": 900}
        assert budget["limits"] == limits
        assert (budget["used"]["wakes"], budget["reached"]) == (2, ["wakes"])


@pytest.mark.behaviour("H-4")
@pytest.mark.parametrize(("limits", "code"), [({"wakes": 2}, "wakes"), ({"agents": 1}, "agents")])
async def test_a_message_of_an_observing_agent_counts_in_the_interactions_budget(
    in_memory: Networks, limits: dict[str, Any], code: str
) -> None:
    async with in_memory.start(limited(**limits)) as network:
        ann = await network.join("ann")
        observer, _, _ = await agents(network, "watcher", "a", "b")
        posted = await ann.call("post_to_channel", channel="desk", text="@a look")
        first = await observer.say("a", "I read it", cause=posted["id"])
        assert skipped(first) == {"a": f"budget_{code}"}, "its own message is the second wake"
        if code == "wakes":
            budget = await read_budget(ann, posted)
            assert (budget["used"]["wakes"], budget["used"]["agents"]) == (2, 2)


# The loop limit ---------------------------------------------------------------------------------


async def volley(one: Peer, two: Peer, count: int) -> list[dict[str, str]]:
    """Agents a and b write to each other in turn, each message an interaction of its own."""
    results = []
    for n in range(count):
        speaker, to = ((one, "b"), (two, "a"))[n % 2]
        results.append(skipped(await speaker.say(to, "thanks")))
    return results


@pytest.mark.behaviour("H-5")
async def test_the_loop_limit_stops_two_agents_until_a_person_writes(
    in_memory: Networks, snapshot: SnapshotAssertion
) -> None:
    async with in_memory.start(limited(loop_limit={"wakes": 3})) as network:
        ann = await network.join("ann")
        one, two = await agents(network, "a", "b")
        assert await volley(one, two, 5) == [{}, {}, {}, {"a": "loop_limit"}, {"b": "loop_limit"}]
        await agents(network, "c")
        assert not skipped(await one.say("c", "hello")), "other agents are not affected"
        messages = [event["message"] for event in await two.sync()]
        (notice,) = [message for message in messages if message["sender_kind"] == "system"]
        assert len(messages) == 3 + 1, "everything is delivered, with one notice"
        content = notice["content"]
        assert (content["code"], content["agents"]) == ("loop_limit", ["b", "a"])
        assert content["interaction"] == "i4"
        assert notice["text_representation"] == snapshot
        for to in ("a", "b"):
            await ann.say(to, "go on")
            assert await volley(one, two, 4) == [{}, {}, {}, {"a": "loop_limit"}]


@pytest.mark.behaviour("H-14")
async def test_the_loop_limit_is_counted_per_interaction(in_memory: Networks) -> None:
    async with in_memory.start(limited(loop_limit={"wakes": 2})) as network:
        people = [await network.join(f"p{n}") for n in range(4)]
        one, two = await agents(network, "a", "b")
        questions = [await person.say("a", "what is it?") for person in people]
        for question in questions:
            passed_on = await one.say("b", "what is it?", cause=question["id"])
            assert not skipped(passed_on)
            assert not skipped(await two.say("a", "it is this", cause=passed_on["id"]))
        again = await one.say("b", "and this?", cause=questions[0]["id"])
        assert skipped(again) == {"b": "loop_limit"}
        for part in range(3):
            task = {"to": "b", "task": f"part {part}", "cause": questions[0]["id"]}
            assert not skipped(await one.call("delegate", **task)), "delegated tasks are exempt"


# A day ----------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-6")
@pytest.mark.parametrize("whose", ["network", "thread", "agent"])
async def test_the_daily_limit_stops_wakes_until_the_next_day(
    in_memory: Networks, whose: str, snapshot: SnapshotAssertion
) -> None:
    clock = HandClock()
    file = limited(daily={whose: {"wakes": 2}})
    async with in_memory.start(file, clock=clock) as network:
        ann = await network.join("ann")
        one, two = await agents(network, "a", "b")
        sent = [await ann.say("a", "again") for _ in range(3)]
        code = f"daily_{whose}"
        assert [skipped(result) for result in sent] == [{}, {}, {"a": code}]
        (notice,) = await notices(network, ann)
        expected = {"notice": code, "code": code, "message": sent[2]["id"], "agents": ["a"]}
        assert notice["content"] == expected
        assert (notice["mentions"], notice["text_representation"]) == (["ann"], snapshot)
        clock.wall += 24 * 3600
        assert not skipped(await ann.say("a", "a new day"))
        if whose == "network":
            sent = [await one.say("b", "more") for _ in range(3)]
            assert [skipped(result) for result in sent] == [{}, {"b": code}, {"b": code}]
            (notice,) = await notices(network, two)
            assert "raise network.daily.network.wakes" in notice["text_representation"]


@pytest.mark.behaviour("H-6")
async def test_an_agents_own_daily_limit_replaces_the_default(in_memory: Networks) -> None:
    own = {"agents": {"a": {"daily": {"tokens": 10}}}}
    file = limited(daily={"agent": {"tokens": 1000}}, sections=own)
    async with in_memory.start(file) as network:
        ann = await network.join("ann")
        worker = await Worker.woken(network, "a", ann)
        await worker.step(1, 9)
        assert not skipped(await ann.say("a", "go"))
        await worker.step(2, 1)
        assert skipped(await ann.say("a", "go")) == {"a": "daily_agent"}
        other = await Worker.woken(network, "b", ann)
        await other.step(1, 999)
        assert not skipped(await ann.say("b", "go"))


@pytest.mark.behaviour("H-6")
async def test_a_daily_limit_set_while_the_hub_runs_includes_what_the_day_has_cost(
    in_memory: Networks,
) -> None:
    async with in_memory.start(limited()) as network:
        ann = await network.join("ann")
        worker = await Worker.woken(network, "a", ann)
        await worker.step(1, 10)
        budgets = network.hub.services.budgets
        await budgets.set_daily("a", DailyBudget(tokens=11))
        assert not skipped(await ann.say("a", "go"))
        await budgets.set_daily("a", DailyBudget(tokens=10))
        assert skipped(await ann.say("a", "go")) == {"a": "daily_agent"}
        await budgets.set_daily("a", None)
        assert not skipped(await ann.say("a", "go"))
        await budgets.set_daily("a", DailyBudget(tokens=11, wakes=4))
        assert not skipped(await ann.say("a", "go")), "10 tokens and three wakes, counted once"
        assert skipped(await ann.say("a", "go")) == {"a": "daily_agent"}


@pytest.mark.behaviour("H-6")
async def test_the_daily_limits_apply_after_the_clock_was_set_to_another_day(
    in_memory: Networks,
) -> None:
    clock, file = HandClock(), limited(daily={"agent": {"tokens": 10}})
    async with in_memory.start(file, clock=clock) as network:
        ann = await network.join("ann")
        clock.set(by=2 * 24 * 3600)
        worker = await Worker.woken(network, "a", ann)
        await worker.step(1, 10)
        assert skipped(await ann.say("a", "go")) == {"a": "daily_agent"}
        clock.set(by=-2 * 24 * 3600)
        assert not skipped(await ann.say("a", "go"))
        clock.set(by=2 * 24 * 3600)
        assert skipped(await ann.say("a", "go")) == {"a": "daily_agent"}


# What the store refuses, and restarts ---------------------------------------------------------


@pytest.mark.behaviour("H-10")
async def test_failed_and_repeated_messages_use_no_budget(
    in_memory: Networks, moody: MoodyStore
) -> None:
    file = limited(wakes=2, agents=2, loop_limit={"wakes": 2}, daily={"agent": {"wakes": 2}})
    async with in_memory.start(file, store=moody) as network:
        ann = await network.join("ann")
        one, _ = await agents(network, "a", "b")
        question = await ann.say("a", "go")
        for _ in range(3):
            moody.failing = 1
            refused = await one.ask("send_text_message", to="b", text="no", cause=question["id"])
            assert refused["code"] == "store_unavailable"
        assert (await read_budget(ann, question))["used"]["wakes"] == 1
        for _ in range(3):
            assert not skipped(await one.say("b", "yes", cause=question["id"], cid="same"))
        assert (await read_budget(ann, question))["used"]["wakes"] == 2
        assert skipped(await one.say("b", "no more", cause=question["id"])) == {"b": "budget_wakes"}
        assert len(await notices(network, ann)) == 1


@pytest.mark.behaviour("H-10")
async def test_a_failed_message_is_not_the_last_one_of_an_observer(
    in_memory: Networks, moody: MoodyStore
) -> None:
    async with in_memory.start(limited(agents=1), store=moody) as network:
        ann = await network.join("ann")
        observer, _ = await agents(network, "watcher", "a")
        posted = await ann.call("post_to_channel", channel="desk", text="@a look")
        codes = []
        for failing in (1, 0, 0):
            moody.failing = failing
            answer = await observer.ask("send_text_message", to="a", text="so", cause=posted["id"])
            codes.append(answer.get("code"))
        assert codes == ["store_unavailable", None, "budget_exhausted"]
        assert answer["message"] == (
            f"interaction i{posted['seq']} is past its limit (agents), and nothing in it woke "
            "you; a person can continue it with a new message"
        )
        assert answer["details"] == {"interaction_id": f"i{posted['seq']}", "limit": "agents"}


@pytest.mark.behaviour("H-6", "H-9", "H-12")
async def test_budgets_spending_and_untrusted_marks_survive_a_restart(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, clock = f"sqlite:{tmp_path / 'hub.db'}", HandClock()
    file = limited(wakes=3, daily={"network": {"wakes": 6, "tokens": 100}})
    async with in_memory.start(file, store=store, clock=clock) as network:
        ann = await network.join("ann")
        await agents(network, "b", "c")
        worker = await Worker.woken(network, "a", ann)
        await worker.step(1, 10, 0.5)
        sent = await worker.peer.say("b", "on", cause=worker.turn, untrusted=True)
        other = await ann.say(["b", "c"], "another interaction")
        before = await ann.call("read_budget", interaction=worker.interaction)
        assert before["sums"] == {
            "turns": 1, "wakes": 2, "tokens_in": 5, "tokens_out": 5, "usd": 0.5,
        }  # fmt: skip
    async with in_memory.start(file, store=store, clock=clock) as network:
        ann = await network.join("ann")
        two, three = await agents(network, "b", "c")
        assert await ann.call("read_budget", interaction=worker.interaction) == before
        spent = await ann.call("read_spending")
        assert {row["limit"]: row["used"] for row in spent["today"]} == {"wakes": 4, "tokens": 10}
        await two.say("ann", "it says", cause=sent["id"])
        assert (await ann.take(3))[2]["message"]["untrusted"] is True
        assert not skipped(await two.say("c", "the third", cause=sent["id"]))
        assert skipped(await two.say("c", "the fourth", cause=sent["id"])) == {"c": "budget_wakes"}
        assert not skipped(await three.say("b", "the third", cause=other["id"]))
        fourth = await three.say("b", "the fourth", cause=other["id"])
        assert skipped(fourth) == {"b": "budget_wakes"}
        assert skipped(await ann.say("b", "the seventh")) == {"b": "daily_network"}


@pytest.mark.behaviour("H-2")
async def test_a_notice_about_a_limit_lost_in_a_crash_is_posted_once_after_the_restart(
    in_memory: Networks, tmp_path: Path
) -> None:
    path = f"sqlite:{tmp_path / 'hub.db'}"
    store, file = MoodyStore(path), limited(daily={"agent": {"wakes": 1}})
    async with in_memory.start(file, store=store) as network:
        ann = await network.join("ann")
        (one,) = await agents(network, "a")
        await ann.say("a", "go")
        await one.say("ann", "and an agent's own question is not followed")
        store.gate.clear()
        await ann.post("send_text_message", to="a", text="and this?")
        await store.hold_second_commit()  # the message is written, the notice is not
        store.failing = 1000
        store.gate.set()
    for _ in range(2):
        async with in_memory.start(file, store=path) as network:
            ann = await network.join("ann")
            await ann.take(4)
            await network.quiet()
            page = (await ann.call("read_thread", thread="dm.a.ann"))["messages"]
            assert [m["sender_id"] for m in page] == ["ann", "a", "ann", "hub"]
            about = {"message": page[2]["id"], "agents": ["a"]}
            assert page[3]["content"] == {"notice": "daily_agent", "code": "daily_agent", **about}


# What is read ---------------------------------------------------------------------------------


@pytest.mark.behaviour("H-11")
async def test_only_owners_and_participants_can_read_a_budget(in_memory: Networks) -> None:
    humans = {"humans": {"ann": {}, "bob": {}, "olga": {"roles": ["owner"]}}}
    async with in_memory.start(limited(sections=humans)) as network:
        ann, bob, olga = [await network.join(name) for name in ("ann", "bob", "olga")]
        one, two = await agents(network, "a", "b")
        question = await ann.say("a", "go")
        opened = f"i{question['seq']}"
        for reader in (ann, one, olga):
            budget = await reader.call("read_budget", interaction=opened)
            assert (budget["opened_by"], budget["used"]["wakes"]) == ("ann", 1)
            assert budget["active"] is True
        for other, name in ((two, opened), (bob, "i999")):
            answer = await other.ask("read_budget", interaction=name)
            assert answer["code"] == "unknown_interaction"
        for reader, rows in ((ann, 1), (one, 1), (olga, 1), (two, 0)):
            assert len((await reader.call("read_spending"))["rows"]) == rows
        posted = await ann.call("post_to_channel", channel="desk", text="@a look")
        for member in (ann, one, two):
            await member.call("leave_channel", channel="desk")
        for reader in (ann, one):
            assert (await read_budget(reader, posted))["opened_by"] == "ann"
        answer = await two.ask("read_budget", interaction=f"i{posted['seq']}")
        assert answer["code"] == "unknown_interaction"


@pytest.mark.behaviour("H-11")
async def test_an_interaction_is_active_until_its_turns_have_ended(in_memory: Networks) -> None:
    clock = HandClock()
    async with in_memory.start(limited(), clock=clock) as network:
        ann = await network.join("ann")
        clock.set(3_000_000)
        worker, opened = await Worker.woken(network, "a", ann), clock.wall
        clock.wall += 60
        budget = await ann.call("read_budget", interaction=worker.interaction)
        assert (budget["active"], budget["used"]["wall_clock"]) == (True, 60)
        await worker.end()
        clock.wall += 600
        clock.set(-1_000_000)
        budget = await ann.call("read_budget", interaction=worker.interaction)
        assert (budget["active"], budget["used"]["wall_clock"]) == (False, 60)
        assert datetime.fromisoformat(budget["opened_at"]).timestamp() == opened


@pytest.mark.behaviour("H-11")
async def test_spending_is_listed_by_day_agent_and_thread(in_memory: Networks) -> None:
    clock = HandClock()
    async with in_memory.start(limited(), clock=clock) as network:
        ann = await network.join("ann")
        first = await Worker.woken(network, "a", ann)
        await first.step(1, 10, 0.25)
        await first.step(1, 12, 0.5)
        second = await Worker.woken(network, "b", ann)
        await second.step(1, 3)
        assert (await ann.call("read_spending"))["total"]["wakes"] == 2
        clock.wall += 24 * 3600
        await second.step(2, 1)
        whole = await ann.call("read_spending", days=2)
        rows = [(row["agent"], row["thread_id"], row["sums"]) for row in whole["rows"]]
        assert [(agent, thread) for agent, thread, _ in rows] == [
            ("b", "dm.ann.b"), ("a", "dm.a.ann"), ("b", "dm.ann.b"),
        ]  # fmt: skip
        assert rows[1][2] == {
            "turns": 1, "wakes": 1, "tokens_in": 6, "tokens_out": 6, "usd": 0.5,
        }  # fmt: skip
        assert whole["total"]["tokens_in"] + whole["total"]["tokens_out"] == 12 + 3 + 1
        today = await ann.call("read_spending")
        assert [row["agent"] for row in today["rows"]] == ["b"]
        own = await first.peer.call("read_spending", days=2)
        assert [row["agent"] for row in own["rows"]] == ["a"], "only threads that it can read"
        of_thread = await ann.call("read_spending", days=2, thread="dm.a.ann")
        assert [row["agent"] for row in of_thread["rows"]] == ["a"]


@pytest.mark.behaviour("H-11")
async def test_an_owner_can_read_spending_by_model_and_by_person(in_memory: Networks) -> None:
    spent = {
        "ann": ("small", 5, 1, 0.0),
        "bob": ("wide", 10, 10, 0.0),
        "cat": ("dear", 1, 1, 0.5),
        "dan": (None, 0, 0, 0.0),
    }
    async with in_memory.start(limited()) as network:
        for person, (model, tokens_in, tokens_out, usd) in spent.items():
            peer = await network.join(person)
            worker = await Worker.woken(network, f"of-{person}", peer)
            step = {"tokens_in": tokens_in, "tokens_out": tokens_out, "cost_usd": usd}
            await worker.peer.call(
                "record_step", turn=worker.turn, step={"n": 1, "model": model, **step}
            )
        read = await peer.call("read_spending", turns=True)
        assert [each["name"] for each in read["models"]] == ["dear", "wide", "small"]
        assert [each["name"] for each in read["people"]] == ["cat", "bob", "ann", "dan"]
        for each in (*read["models"], *read["people"][:3]):
            (of,) = [of for name, of in spent.items() if each["name"] in (name, of[0])]
            sums = [each["sums"].get(name) for name in ("tokens_in", "tokens_out", "usd", "turns")]
            assert sums == [*of[1:], 1]
        assert (await peer.call("read_spending"))["models"] == []
        assert (await worker.peer.call("read_spending", turns=True))["models"] == []


async def test_an_account_is_in_use_only_while_a_message_or_a_turn_of_it_is_in_progress(
    in_memory: Networks, moody: MoodyStore
) -> None:
    async with in_memory.start(limited(tokens=100), store=moody) as network:
        ann, two = await network.join("ann"), await network.join("b", "agent", turns=True)
        worker = await Worker.woken(network, "a", ann)
        account = network.hub.services.budgets.book.find(worker.interaction)
        assert account is not None
        assert account.pins == 1, "the turn"
        message = {"to": "b", "text": "x", "cause": worker.turn}
        start = {"id": worker.turn, "thread_id": "dm.a.ann", "messages": [worker.asked["id"]]}
        for failing in (1, 0):
            for name, args in (
                ("send_text_message", message),
                ("begin_turn", {"start": start}),
                ("record_step", {"turn": worker.turn, "step": {"n": 1, "tokens_in": 10}}),
            ):
                moody.failing = failing
                answer = await worker.peer.ask(name, **args)
                assert answer["op"] == ("error" if failing else "result")
                assert account.pins == 1
        exhausted = await worker.reserve("2", 91)
        assert exhausted["code"] == "budget_exhausted"
        await network.quiet()
        assert account.pins == 1
        await worker.end()
        assert account.pins == 0
        other = Worker(two, "b", (await two.event())["message"])
        await other.begin()
        await ann.call("stop", scope="turn", target=other.turn)
        await settled(network)
        assert account.pins == 0


# Untrusted content, and exemptions ------------------------------------------------------------


async def untrusted_marks(peer: Peer) -> dict[str, bool]:
    messages = [event["message"] for event in await peer.sync()]
    return {message["id"]: message.get("untrusted", False) for message in messages}


@pytest.mark.behaviour("H-12")
async def test_untrusted_content_stays_marked_when_agents_pass_it_on(in_memory: Networks) -> None:
    async with in_memory.start(limited()) as network:
        ann = await network.join("ann")
        one, two = await agents(network, "a", "b")
        question = await ann.say("a", "look it up")
        page = await one.say("b", "the page says", cause=question["id"], untrusted=True)
        passed = await two.say("ann", "it says", cause=page["id"])
        clean = await one.say("ann", "hello", cause=question["id"])
        assert await untrusted_marks(ann) == {passed["id"]: True, clean["id"]: False}
        reply = await ann.say("b", "thanks", cause=passed["id"])
        marks = {page["id"]: True, reply["id"]: False}
        assert await untrusted_marks(two) == marks, "a person's own message is trusted"


@pytest.mark.behaviour("H-1", "H-5")
async def test_a_report_wakes_its_requester_beyond_the_limits(in_memory: Networks) -> None:
    file = limited(wakes=2, agents=2, fan_out=1, loop_limit={"wakes": 1})
    async with in_memory.start(file) as network:
        ann = await network.join("ann")
        one, two = await agents(network, "a", "b")
        question = await ann.say("a", "have it done")
        task = await one.call("delegate", to="b", task="do it", cause=question["id"])
        assert not skipped(task)
        done = await two.call("report", request=task["id"], status="result", text="done")
        assert not skipped(done)
        assert "wake" in (await one.take(2))[1]
        budget = await read_budget(ann, question)
        assert budget["used"]["wakes"] == 2, "the report belongs to the request"
        assert skipped(await one.say("b", "thanks", cause=done["id"])) == {"b": "budget_wakes"}


@pytest.mark.behaviour("H-1", "H-5")
async def test_the_loop_limit_exempts_awaited_answers_and_people(in_memory: Networks) -> None:
    file = limited(wakes=4, fan_out=1, loop_limit={"wakes": 1})
    async with in_memory.start(file) as network:
        ann = await network.join("ann")
        one, two = await agents(network, "a", "b")
        for _ in range(3):
            question = await one.say("b", "how much?", awaits=True)
            assert not skipped(question)
            assert not skipped(await two.say("a", "this much", cause=question["id"]))
        assert await volley(one, two, 2) == [{}, {"a": "loop_limit"}]
        await ann.call("take_over", agent="a")
        sent = await ann.say(["b"], "it is me", on_behalf_of="a")
        assert not skipped(sent)
        budget = await read_budget(ann, sent)
        assert (budget["opened_by"], budget["limits"]["wakes"]) == ("ann", 4)
