"""Agents whose processes die or hang over a message: one network of real processes for all."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Participants, Turns
from hubbub.protocol.turns import Turn

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

WITHIN_S = 100.0
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


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a network of these agents listens."""
    home = tmp_path_factory.mktemp("lives")
    (home / "agents.py").write_text(AGENTS)
    (home / "hubbub.yaml").write_text(CONFIG)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HUBBUB_")}
    environment["HUBBUB_STATE_DIR"] = str(home / "state")
    with (home / "stderr.txt").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "hubbub", "up", "--json"],
            cwd=home, env=environment, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
        assert process.stdout is not None
        with process.stdout as output:
            try:
                first = json.loads(output.readline())  # nobody reads the rest
                assert first["event"] == "up"
                yield str(first["url"])
            finally:
                process.terminate()
                process.wait(WITHIN_S)


class Person:
    """Somebody who talks to the agents, and hears what comes back."""

    def __init__(self, client: Client):
        self.client = client

    async def asks(self, agent: str, text: str) -> None:
        await self.client.call("send_text_message", to=agent, text=text)

    async def hears(self, *words: str) -> Message:
        """The next message that has all these words in it."""
        async with asyncio.timeout(WITHIN_S):
            async for item in self.client.events():
                if isinstance(item, Event):
                    await self.client.ack(item.seq)
                    if all(word in item.message.text for word in words):
                        return item.message
        raise AssertionError("the stream has ended")

    async def last_turn(self, agent: str) -> Turn:
        found = await self.client.call("list_turns", agent=agent, limit=1)
        (summary,) = Turns.model_validate(found).turns
        return Turn.model_validate(await self.client.call("read_turn", id=summary.id))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def people(url: str) -> AsyncIterator[dict[str, Person]]:
    """Each has said already what an agent does not survive: the agents die at the same time."""
    async with AsyncExitStack() as stack:
        found = {}
        for name in ("ann", "bob", "cem", "dora", "eve", "fay"):
            client = Client(WebSocketTransport(url), name, "human")
            found[name] = Person(await stack.enter_async_context(client))
        await found["ann"].asks("crasher", "die")
        await found["cem"].asks("hanger", "hang")
        await found["dora"].asks("stillborn", "hello")
        for _ in range(2):
            post = {"channel": "desk", "text": "listeners die"}
            await found["fay"].client.call("post_to_channel", **post)
        yield found


@pytest.mark.behaviour("R-7")
async def test_a_message_that_kills_an_agent_ends_after_three_lives_and_the_next_is_answered(
    people: dict[str, Person],
) -> None:
    ann, bob = people["ann"], people["bob"]
    told = await ann.hears("crasher failed", "died 3 times")
    assert told.sender_kind == "system"
    turn = await ann.last_turn("crasher")
    assert (turn.attempts, turn.end and turn.end.outcome) == (3, "handler_error")
    await bob.asks("crasher", "hello")
    await bob.hears("you said hello")


@pytest.mark.behaviour("R-11")
async def test_overheard_messages_that_kill_an_agent_are_left_behind_and_the_next_is_answered(
    people: dict[str, Person],
) -> None:
    await people["fay"].asks("listener", "hello")
    await people["fay"].hears("you said hello")


@pytest.mark.behaviour("R-9")
async def test_an_agent_that_hangs_with_the_interpreters_lock_is_replaced_and_answers(
    people: dict[str, Person],
) -> None:
    await people["cem"].hears("you said hang")
    turn = await people["cem"].last_turn("hanger")
    assert turn.attempts == 2  # and the message was not lost with the first


@pytest.mark.behaviour("R-10")
async def test_who_waits_for_an_agent_that_cannot_live_is_told_and_who_writes_later_too(
    people: dict[str, Person],
) -> None:
    told = await people["dora"].hears("stillborn does not run", "exit code 9")
    assert told.sender_kind == "system"
    eve = people["eve"]
    await eve.asks("stillborn", "anybody?")
    await eve.hears("stillborn does not run", "waits until")
    listed = await eve.client.call("list_participants")
    present = Participants.model_validate(listed).participants
    assert [p.id for p in present if p.down] == ["stillborn"]
