"""Agents in Python that set each other going. Limits are those of a network whose config says
nothing about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.storms.cast import WORM
from tests.e2e.storms.storm import WAKES, brewing, python_agents

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

HERE = "I am here, ann"


@pytest.mark.behaviour("H-110")
async def test_two_agents_that_thank_each_other(tmp_path: Path) -> None:
    agents = python_agents("Polite", ["dee", "dum"])
    async with brewing(tmp_path, agents, channels=["desk"]) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.posts("desk", "@dee please thank dum")
        await storm.saw(lambda m: m.sender_id == "dum")
        await ann.posts("desk", "@dum are you there?")
        await ann.hears("dum", lambda m: m.text == HERE)
        await storm.over(ben)
        interaction = storm.opened_by("ann", "@dee please thank dum")
        await storm.check_budget(interaction)
        assert storm.notices(interaction) == {"dampened": 1}
        await ann.posts("desk", "@dum are you there?")
        await ann.hears("dum", lambda m: m.text == HERE)


@pytest.mark.behaviour("H-110")
async def test_agents_that_fail_and_would_talk_about_each_failure(tmp_path: Path) -> None:
    agents = python_agents("Unlucky", ["uma", "una", "uri"])
    async with brewing(tmp_path, agents, channels=["desk"]) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.posts("desk", "@uma @una please")
        await storm.saw(lambda m: m.sender_kind == "system")
        await ann.posts("desk", "@uri are you there?")
        await ann.hears("uri", lambda m: m.text == HERE)
        await storm.over(ben)
        await storm.check_budget(storm.opened_by("ann", "@uma @una please"), wakes=2)
        failed = [m.text.split()[0] for m in storm.log if m.sender_kind == "system"]
        assert sorted(failed) == ["uma", "una"], "a notice for each, and nobody woken by it"
        await ann.posts("desk", "@uma are you there?")
        await ann.hears("uma", lambda m: m.text == HERE)


@pytest.mark.behaviour("H-110")
async def test_sixteen_agents_on_one_channel_that_mention_each_other(tmp_path: Path) -> None:
    agents = python_agents("Mentioner", [f"m{n}" for n in range(16)])
    async with brewing(tmp_path, agents, channels=["desk"]) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.posts("desk", "@m0 what do you think?")
        await storm.saw(lambda m: m.sender_id == "m1")
        await ann.posts("desk", "@m5 are you there?")
        await ann.hears("m5", lambda m: m.text == HERE)
        await storm.over(ben)
        interaction = storm.opened_by("ann", "@m0 what do you think?")
        await storm.check_budget(interaction, wakes=WAKES)
        assert storm.notices(interaction) == {"budget_fan_out": 1, "budget_wakes": 1}
        await ann.posts("desk", "@m5 are you there?")
        await ann.hears("m5", lambda m: m.text == HERE)


@pytest.mark.behaviour("H-110", "H-112")
async def test_eight_that_answer_by_broadcast_what_they_merely_overhear(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(8)]
    async with brewing(tmp_path, python_agents("Crier", names)) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.broadcasts("who is for it?")
        await storm.saw(lambda m: m.sender_kind == "agent")
        assert await ann.asks("c3", "are you there?") == HERE
        await storm.over(ben)
        interaction = storm.opened_by("ann", "who is for it?")
        await storm.check_budget(interaction)
        last_words = len(names)
        assert len(storm.said(interaction)) <= WAKES + last_words
        assert storm.notices(interaction) == {"budget_wakes": 1}
        assert await ann.asks("c3", "are you there?") == HERE


@pytest.mark.behaviour("H-113")
async def test_a_worm_among_twelve_agents(tmp_path: Path) -> None:
    agents = python_agents("Forwarder", [f"w{n}" for n in range(12)])
    async with brewing(tmp_path, agents) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.tells("w0", WORM)
        await storm.saw(lambda m: m.sender_id == "w1")
        assert await ann.asks("w0", "are you there?") == HERE
        await storm.over(ben)
        interaction = storm.opened_by("ann", WORM)
        await storm.check_budget(interaction, wakes=WAKES)
        told = storm.notices(interaction)
        assert told["budget_wakes"] == 1
        assert await ann.asks("w0", "are you there?") == HERE
