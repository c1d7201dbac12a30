"""Agents that keep waking each other, mostly under a network's default limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hubbub.protocol.control import Breakers
from hubbub.protocol.messages import Message
from hubbub.testing.model_server import ScriptedAnswer, ScriptRule
from tests.e2e.storms.cast import WORM
from tests.e2e.storms.storm import (
    CAST,
    WAKES,
    Storm,
    brewing,
    does,
    model_agents,
    python_agents,
    scripted,
)
from tests.unit.configs.people import Person

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.behaviour("H-110")]


def rule(answer: ScriptedAnswer, **when: str) -> ScriptRule:
    return ScriptRule.model_validate({"when": when, "answer": answer})


async def check_answers(ann: Person, agent: str, channel: str | None) -> None:
    """The agent answers when ann asks whether it is there."""
    if channel is None:
        assert await ann.asks(agent, "are you there?") == "I am here, ann"
    else:
        await ann.posts(channel, f"@{agent} are you there?")
        await ann.hears(agent, lambda m: m.text.startswith("I am here"))


async def run_storm(
    storm: Storm,
    to: str,
    spark: str,
    *,
    until: Callable[[Message], bool] = lambda m: m.sender_kind == "agent",
    serves: str,
    notices: Mapping[str, int] | None,
    wakes: int | None = None,
) -> str:
    """Ann's spark starts the storm. She and ben are served throughout, and it stays within limits.

    `to` is an agent, `#channel` or `all`; `notices` are all the hub's notices about it (None: not
    checked). Returns the interaction.
    """
    ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
    channel = to.removeprefix("#") if to.startswith("#") else None
    if channel is not None:
        await ann.posts(channel, spark)
    elif to == "all":
        await ann.broadcasts(spark)
    else:
        await ann.tells(to, spark)
    await storm.until(until)
    await check_answers(ann, serves, channel)
    await storm.end(ben)
    interaction = storm.opened_by("ann", spark)
    await storm.check_budget(interaction, wakes=wakes)
    assert notices is None or storm.notices(interaction) == notices
    await check_answers(ann, serves, channel)
    return interaction


def is_from(name: str) -> Callable[[Message], bool]:
    return lambda message: message.sender_id == name


async def test_two_agents_that_always_answer_each_other_stop_at_the_loop_limit(
    tmp_path: Path,
) -> None:
    greets = does("send_text_message", to="{{ other }}", text="hello, {{ other }}")
    answers = does("send_text_message", to="{{ thread }}", text="hello again")
    script = scripted(
        rule(greets, incoming=r"^greet (?P<other>\w+)$"), rule(answers, incoming="hel")
    )
    agents = model_agents(["ping", "pong"], ["send_text_message"])
    async with brewing(tmp_path, agents, script=script) as storm:
        limit, until = {"loop_limit": 1}, is_from("pong")
        await run_storm(storm, "ping", "greet pong", until=until, serves="ping", notices=limit)


async def test_eight_agents_that_all_answer_broadcasts_stop_at_the_wake_budget(
    tmp_path: Path,
) -> None:
    answers = rule(does("broadcast_text_message", text="so say I"), incoming="^so say")
    tools = ["send_text_message", "broadcast_text_message"]
    agents, network = model_agents([f"b{n}" for n in range(8)], tools), {"broadcast": "all"}
    script = scripted(answers)
    async with brewing(tmp_path, agents, script=script, network={"wake": network}) as storm:
        limit = {"budget_wakes": 1}
        await run_storm(storm, "all", "so say we all", serves="b3", notices=limit, wakes=WAKES)


@pytest.mark.behaviour("H-111")
async def test_an_agent_that_wakes_itself_through_a_tool_trips_the_breaker(tmp_path: Path) -> None:
    script = scripted(rule(does("remind_me", agent="busy"), incoming="your work"))
    agents = model_agents(["busy"], ["send_text_message", f"{CAST}:remind_me"])
    network = {"breaker": {"turns": 12}}
    async with brewing(tmp_path, agents, script=script, network=network) as storm:
        timer = is_from("timer")
        await run_storm(storm, "busy", "do your work", until=timer, serves="busy", notices={})
        await storm.until(lambda m: m.thread_id == "dm.busy.timer" and m.sender_kind == "system")
        messages = [m for m in storm.log if m.thread_id == "dm.busy.timer"]
        assert len([m for m in messages if m.sender_kind == "system"]) == 1, "not one notice"
        turns = [w for m in messages for w in await storm.wakes(m.interaction_id)]
        assert len([wake for wake in turns if wake.agent == "busy"]) <= 14
        owner = (await storm.network.join("eve")).client
        breakers = Breakers.model_validate(await owner.call("list_breakers")).breakers
        assert [each.thread_id for each in breakers] == ["dm.busy.timer"]
        await owner.call("release_breaker", thread="dm.busy.timer")
        assert await owner.call("list_breakers") == {"breakers": []}


async def test_two_agents_that_answer_every_mention_stop_at_the_loop_limit(tmp_path: Path) -> None:
    agents, spark = python_agents("Polite", ["dee", "dum"]), "@dee please thank dum"
    async with brewing(tmp_path, agents, channels=["desk"]) as storm:
        limit = {"loop_limit": 1}
        await run_storm(storm, "#desk", spark, until=is_from("dum"), serves="dum", notices=limit)


async def test_failure_notices_wake_no_agent(tmp_path: Path) -> None:
    agents = python_agents("Unlucky", ["uma", "una", "uri"])
    async with brewing(tmp_path, agents, channels=["desk"]) as storm:
        until = is_from("hub")
        spark = "@uma @una please"
        await run_storm(storm, "#desk", spark, until=until, serves="uri", notices={}, wakes=2)
        failed = [m.text.split()[0] for m in storm.log if m.sender_kind == "system"]
        assert sorted(failed) == ["uma", "una"], "not one notice for each failure"


@pytest.mark.behaviour("H-112")
async def test_agents_that_answer_observed_broadcasts_stop_at_the_wake_budget(
    tmp_path: Path,
) -> None:
    names = [f"c{n}" for n in range(8)]
    async with brewing(tmp_path, python_agents("Crier", names)) as storm:
        limit = {"budget_wakes": 1}
        interaction = await run_storm(storm, "all", "who is for it?", serves="c3", notices=limit)
        final_messages = len(names)
        assert len(storm.messages(interaction)) <= WAKES + final_messages


@pytest.mark.behaviour("H-113")
async def test_a_worm_among_twelve_agents_stops_at_the_wake_budget(tmp_path: Path) -> None:
    agents = python_agents("Forwarder", [f"w{n}" for n in range(12)])
    async with brewing(tmp_path, agents) as storm:
        interaction = await run_storm(
            storm, "w0", WORM, until=is_from("w1"), serves="w0", notices=None, wakes=WAKES
        )
        assert storm.notices(interaction)["budget_wakes"] == 1
