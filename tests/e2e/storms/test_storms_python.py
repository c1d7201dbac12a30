"""Agents in Python that set each other going. Limits are those of the shipped config, unless a test
says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.config.budgets import Budgets
from tests.e2e.storms.cast import WORM
from tests.e2e.storms.storm import Storm, brewing, python_agents

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LIMITS = Budgets()


async def show(storm, i):
    for m in storm.log[:60]: print(m.seq, m.sender_id, m.thread_id, m.interaction_id, m.hop, str(m.content)[:150])
    print(len(storm.log), storm.notices(i), len(await storm.wakes(i)))
    for m in storm.log:
        if m.sender_kind=="system": print(m.seq, m.sender_id, m.thread_id, m.interaction_id, m.hop, str(m.content)[:150], m.text)
    assert 0

@pytest.mark.behaviour("H-110")
async def test_two_agents_that_thank_each_other(tmp_path: Path) -> None:
    agents = python_agents("Polite", ["dee", "dum"])
    async with brewing(tmp_path, agents, channels=["desk"]) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.posts("desk", "@dee please thank dum")
        await storm.saw(lambda m: m.sender_id == "dum")
        await ann.posts("desk", "@dum are you there?")
        await ann.hears("dum", lambda m: m.text == "I am here, ann")
        await storm.over(ben)
        interaction = storm.opened_by("ann", "@dee please thank dum")
        await show(storm, interaction)


@pytest.mark.behaviour("H-110")
async def test_agents_that_fail_and_talk_about_their_failures(tmp_path: Path) -> None:
    agents = python_agents("Unlucky", ["uma", "una", "uri"])
    async with brewing(tmp_path, agents, channels=["desk"]) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.posts("desk", "@uma @una please")
        await storm.saw(lambda m: m.sender_kind == "system")
        await ann.posts("desk", "@uri are you there?")
        await ann.hears("uri", lambda m: m.text == "I am here, ann")
        await storm.over(ben)
        interaction = storm.opened_by("ann", "@uma @una please")
        await show(storm, interaction)


@pytest.mark.behaviour("H-110")
async def test_sixteen_agents_on_one_channel_that_mention_each_other(tmp_path: Path) -> None:
    names = [f"m{n}" for n in range(16)]
    async with brewing(tmp_path, python_agents("Mentioner", names), channels=["desk"]) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.posts("desk", "@m0 what do you think?")
        await storm.saw(lambda m: m.sender_id == "m1")
        await ann.posts("desk", "@m5 are you there?")
        await ann.hears("m5", lambda m: m.text == "I am here, ann")
        await storm.over(ben)
        interaction = storm.opened_by("ann", "@m0 what do you think?")
        await show(storm, interaction)


@pytest.mark.behaviour("H-110")
async def test_criers_that_answer_what_they_overhear(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(8)]
    async with brewing(tmp_path, python_agents("Crier", names)) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.broadcasts("who is for it?")
        await storm.saw(lambda m: m.sender_kind == "agent")
        assert await ann.asks("c3", "are you there?") == "I am here, ann"
        await storm.over(ben)
        interaction = storm.opened_by("ann", "who is for it?")
        await show(storm, interaction)


@pytest.mark.behaviour("H-110", "H-112")
async def test_a_worm_among_twenty_agents(tmp_path: Path) -> None:
    names = [f"w{n}" for n in range(20)]
    async with brewing(tmp_path, python_agents("Forwarder", names)) as storm:
        ann, ben = await storm.network.join("ann"), await storm.network.join("ben")
        await ann.tells("w0", WORM)
        await storm.saw(lambda m: m.sender_id == "w1")
        assert await ann.asks("w0", "are you there?") == "I am here, ann"
        await storm.over(ben)
        interaction = storm.opened_by("ann", WORM)
        await show(storm, interaction)
