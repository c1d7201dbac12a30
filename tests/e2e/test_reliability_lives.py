"""Agents whose processes crash or hang on a message, in one network of real processes."""

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
    """Crashes on some messages, and hangs on others while holding the GIL."""

    async def on_direct(self, message: Message) -> str:
        if "die" in message.text:
            os._exit(3)
        if "hang" in message.text and not STUCK.exists():
            STUCK.touch()
            ctypes.PyDLL(None).sleep(3600)
        return f"you said {message.text}"


class Listener(Agent):
    """Crashes on messages that it observes."""

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
    """People who have each sent the message that crashes an agent; all agents crash at once."""
    home = tmp_path_factory.mktemp("lives")
    (home / "agents.py").write_text(AGENTS)
    (home / "lives.yaml").write_text(CONFIG)
    async with run_config(str(home / "lives"), home) as network:
        names = ("ann", "bob", "cem", "dora", "eve", "fay")
        people = {name: await network.join(name) for name in names}
        await people["ann"].tells("crasher", "die")
        await people["cem"].tells("hanger", "hang")
        await people["dora"].tells("stillborn", "hello")
        for _ in range(2):
            await people["fay"].posts("desk", "listeners die")
        yield people


async def last_turn(person: Person, agent: str) -> Turn:
    listed = await person.client.call("list_turns", agent=agent, limit=1)
    (summary,) = Turns.model_validate(listed).turns
    return Turn.model_validate(await person.client.call("read_turn", id=summary.id))


@pytest.mark.behaviour("R-7")
async def test_a_message_that_crashes_an_agent_fails_after_three_attempts(
    people: dict[str, Person],
) -> None:
    ann = people["ann"]
    await ann.hears("hub", lambda m: "crasher failed" in m.text and "died 3 times" in m.text)
    turn = await last_turn(ann, "crasher")
    assert (turn.attempts, turn.end and turn.end.outcome) == (3, "handler_error")
    assert await people["bob"].asks("crasher", "hello") == "you said hello"


@pytest.mark.behaviour("R-11")
async def test_an_agent_crashed_by_observed_messages_answers_the_next_one(
    people: dict[str, Person],
) -> None:
    assert await people["fay"].asks("listener", "hello") == "you said hello"


@pytest.mark.behaviour("R-9")
async def test_an_agent_that_hangs_holding_the_gil_is_restarted_and_answers(
    people: dict[str, Person],
) -> None:
    await people["cem"].hears("hanger", lambda m: m.text == "you said hang")
    turn = await last_turn(people["cem"], "hanger")
    assert turn.attempts == 2


@pytest.mark.behaviour("R-10")
async def test_senders_to_an_agent_that_cannot_start_are_notified(
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
