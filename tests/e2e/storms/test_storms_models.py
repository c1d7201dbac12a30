"""Agents with models that set each other going. Limits are those of a network whose config says
nothing about them, unless a test does."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.protocol.control import Breakers
from hubbub.testing.model_server import Answer, Rule
from tests.e2e.storms.storm import CAST, HOPS, WAKES, brewing, does, model_agents, scripted

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def rule(answer: Answer, **when: str) -> Rule:
    return Rule.model_validate({"when": when, "answer": answer})


GREETS = rule(
    does("send_text_message", to="{{ other }}", text="hello, {{ other }}"),
    incoming=r"^greet (?P<other>\w+)$",
)
"""Of an agent that a person sends to another one."""


@pytest.mark.behaviour("H-110")
@pytest.mark.parametrize("dampened", [True, False], ids=["dampened", "to-the-limit"])
async def test_two_agents_that_always_answer_each_other(tmp_path: Path, dampened: bool) -> None:
    answers = rule(does("send_text_message", to="{{ thread }}", text="hello again"), incoming="hel")
    async with brewing(
        tmp_path,
        model_agents(["ping", "pong"], ["send_text_message"]),
        script=scripted(GREETS, answers),
        network={"wake": {"dampener": {"enabled": dampened}}},
    ) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.tells("ping", "greet pong")
        await storm.saw(lambda m: m.sender_id == "pong")
        assert await ann.asks("ping", "are you there?") == "I am here, ann"
        await storm.over(ben)
        interaction = storm.opened_by("ann", "greet pong")
        await storm.check_budget(interaction)
        limit = "dampened" if dampened else "budget_hops"
        assert storm.notices(interaction) == {limit: 1}
        assert await ann.asks("ping", "are you there?") == "I am here, ann"


@pytest.mark.behaviour("H-110")
async def test_three_agents_in_a_ring(tmp_path: Path) -> None:
    ring = {"abe": "bea", "bea": "cleo", "cleo": "abe"}
    passes = [
        rule(
            does("send_text_message", to=to, text="pass it on"),
            system=f"You are {name}",
            incoming="pass it on",
        )
        for name, to in ring.items()
    ]
    agents = model_agents(list(ring), ["send_text_message"])
    async with brewing(tmp_path, agents, script=scripted(*passes)) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.tells("abe", "pass it on")
        await storm.saw(lambda m: m.sender_id == "cleo")
        assert await ann.asks("abe", "are you there?") == "I am here, ann"
        await storm.over(ben)
        interaction = storm.opened_by("ann", "pass it on")
        await storm.check_budget(interaction, wakes=HOPS)
        assert len(storm.said(interaction)) == HOPS
        assert storm.notices(interaction) == {"budget_hops": 1}
        assert await ann.asks("abe", "are you there?") == "I am here, ann"


@pytest.mark.behaviour("H-110")
async def test_eight_agents_that_all_answer_a_broadcast(tmp_path: Path) -> None:
    answers = rule(does("broadcast_text_message", text="so say I"), incoming="^so say")
    async with brewing(
        tmp_path,
        model_agents([f"b{n}" for n in range(8)], ["send_text_message", "broadcast_text_message"]),
        script=scripted(answers),
        network={"wake": {"broadcast": "all"}},
    ) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.broadcasts("so say we all")
        await storm.saw(lambda m: m.sender_kind == "agent")
        assert await ann.asks("b3", "are you there?") == "I am here, ann"
        await storm.over(ben)
        interaction = storm.opened_by("ann", "so say we all")
        await storm.check_budget(interaction, wakes=WAKES)
        assert storm.notices(interaction) == {"budget_wakes": 1}
        assert await ann.asks("b3", "are you there?") == "I am here, ann"


@pytest.mark.behaviour("H-110")
async def test_an_agent_that_mentions_itself(tmp_path: Path) -> None:
    here = rule(does("post_to_channel", channel="desk", text="I am here"), incoming="you there")
    again = rule(does("post_to_channel", channel="desk", text="@loner go on"), incoming="go on")
    async with brewing(
        tmp_path,
        model_agents(["loner"], ["post_to_channel"]),
        script=scripted(here, again, people=False),
        channels=["desk"],
    ) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.posts("desk", "@loner go on")
        assert (await ann.hears("loner")).text == "@loner go on"
        await storm.over(ben)
        interaction = storm.opened_by("ann", "@loner go on")
        await storm.check_budget(interaction, wakes=1)
        assert storm.notices(interaction) == {}, "it has never begun"
        await ann.posts("desk", "@loner are you there?")
        assert (await ann.hears("loner")).text == "I am here"


@pytest.mark.behaviour("H-110", "H-111")
async def test_an_agent_that_sets_itself_going_through_a_tool(tmp_path: Path) -> None:
    again = rule(does("remind_me", agent="busy"), incoming="your work")
    async with brewing(
        tmp_path,
        model_agents(["busy"], ["send_text_message", f"{CAST}:remind_me"]),
        script=scripted(again),
        network={"breaker": {"turns": 12}},
    ) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.tells("busy", "do your work")
        await storm.saw(lambda m: m.sender_id == "timer")
        assert await ann.asks("busy", "are you there?") == "I am here, ann"
        await storm.saw(lambda m: m.thread_id == "dm.busy.timer" and m.sender_kind == "system")
        await storm.over(ben)
        there = [m for m in storm.log if m.thread_id == "dm.busy.timer"]
        assert len([m for m in there if m.sender_kind == "system"]) == 1, "one notice"
        turns = [w for m in there for w in await storm.wakes(m.interaction_id)]
        assert len([wake for wake in turns if wake.agent == "busy"]) <= 14
        assert await ann.asks("busy", "are you there?") == "I am here, ann"
        latched = Breakers.model_validate(await ann.client.call("list_breakers")).latched
        assert [each.thread_id for each in latched] == ["dm.busy.timer"]
        await ann.client.call("release_breaker", thread="dm.busy.timer")
        assert await ann.client.call("list_breakers") == {"latched": []}
