"""Agents whose processes die or hang over a message: one network of real processes for all."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hubbub.protocol.operations import Participants, Turns
from hubbub.protocol.turns import Turn
from tests.e2e.support.config_network import run_config
from tests.unit.configs.people import Person

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

AGENTS = '''
import asyncio
import ctypes
import os
from pathlib import Path

from hubbub import Agent, Message

STUCK = Path(__file__).parent / "stuck"


class Mortal(Agent):
    """Dies of some messages, and hangs over others with the interpreter's lock held."""

    async def on_direct(self, message: Message) -> str:
        if "die" in message.text:
            os._exit(3)
        if "hang" in message.text and not STUCK.exists():
            STUCK.touch()
            ctypes.PyDLL(None).sleep(3600)
        return f"you said {message.text}"


class Listener(Agent):
    """Dies of what it overhears."""

    async def on_direct(self, message: Message) -> str:
        return f"you said {message.text}"

    def on_channel_message(self, message: Message) -> None:
        if "die" in message.text:
            os._exit(4)


class Stillborn(Agent):
    async def on_start(self) -> None:
        os._exit(9)
'''
CONFIG = """
network:
  name: lives
  listen: 127.0.0.1:0
  auth: open
  store: sqlite:hub.db
  limits: {heartbeat: 1, heartbeat_reply: 1}
channels:
  desk: {members: all}
agents:
  crasher: {kind: python, class: agents.py:Mortal}
  hanger: {kind: python, class: agents.py:Mortal}
  listener: {kind: python, class: agents.py:Listener}
  stillborn: {kind: python, class: agents.py:Stillborn}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def people(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Person]]:
    """Each has said already what an agent does not survive: the agents die at the same time."""
    home = tmp_path_factory.mktemp("lives")
    (home / "agents.py").write_text(AGENTS)
    (home / "lives.yaml").write_text(CONFIG)
    async with run_config(str(home / "lives"), home) as network:
        found = {name: await network.join(name) for name in ("ann", "bob", "cem", "dora", "eve")}
        found["fay"] = fay = await network.join("fay")
        await found["ann"].tells("crasher", "die")
        await found["cem"].tells("hanger", "hang")
        await found["dora"].tells("stillborn", "hello")
        for _ in range(2):
            await fay.posts("desk", "listeners die")
        yield found


async def last_turn(person: Person, agent: str) -> Turn:
    found = await person.client.call("list_turns", agent=agent, limit=1)
    (summary,) = Turns.model_validate(found).turns
    return Turn.model_validate(await person.client.call("read_turn", id=summary.id))


@pytest.mark.behaviour("R-7")
async def test_a_message_that_kills_an_agent_ends_after_three_lives_and_the_next_is_answered(
    people: dict[str, Person],
) -> None:
    ann = people["ann"]
    await ann.hears("hub", lambda m: "crasher failed" in m.text and "died 3 times" in m.text)
    turn = await last_turn(ann, "crasher")
    assert (turn.attempts, turn.end and turn.end.outcome) == (3, "handler_error")
    assert await people["bob"].asks("crasher", "hello") == "you said hello"


@pytest.mark.behaviour("R-11")
async def test_overheard_messages_that_kill_an_agent_are_left_behind_and_the_next_is_answered(
    people: dict[str, Person],
) -> None:
    assert await people["fay"].asks("listener", "hello") == "you said hello"


@pytest.mark.behaviour("R-9")
async def test_an_agent_that_hangs_with_the_interpreters_lock_is_replaced_and_answers(
    people: dict[str, Person],
) -> None:
    await people["cem"].hears("hanger", lambda m: m.text == "you said hang")
    turn = await last_turn(people["cem"], "hanger")
    assert turn.attempts == 2  # and the message was not lost with the first


@pytest.mark.behaviour("R-10")
async def test_who_waits_for_an_agent_that_cannot_live_is_told_and_who_writes_later_too(
    people: dict[str, Person],
) -> None:
    absent = "stillborn is not running"
    await people["dora"].hears("hub", lambda m: absent in m.text and "exit code 9" in m.text)
    eve = people["eve"]
    await eve.tells("stillborn", "anybody?")
    await eve.hears("hub", lambda m: absent in m.text and "stays queued" in m.text)
    listed = await eve.client.call("list_participants")
    present = Participants.model_validate(listed).participants
    assert [p.id for p in present if p.down] == ["stillborn"]
