"""An agent killed in the middle of a turn resumes the turn and sends nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import Turns
from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptedCall
from tests.e2e.support.agents import all_present, llm_config, running_agent
from tests.e2e.support.hubs import DEADLINE_S, HubProcess, running_hub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PARTS = 4
WRITER: Mapping[str, JsonValue] = {"kind": "llm", "instruction": "Write."}
COURIER = """
import asyncio
from pathlib import Path

from hubbub import Agent, Message

GATES = Path(__file__).parent


class Courier(Agent):
    async def on_direct(self, message: Message) -> str:
        for part in range(1, 5):
            await self.send("ann", f"{message.text}, part {part}")
            if not (GATES / f"gate{part}").exists():
                await asyncio.Event().wait()  # until the process is killed
        return f"{message.text}, delivered"
"""


DEADLY = '''
import os

from hubbub import Hooks


def kill_it(how: int) -> str:
    """Kill it."""
    os._exit(5)


class Deadly(Hooks):
    async def on_turn_start(self, turn: object) -> None:
        os._exit(5)
'''


class _Reader:
    """The agents' messages that ann receives, in order."""

    def __init__(self, client: Client):
        self._client, self.texts = client, list[str]()
        self._received = asyncio.Condition()

    async def run(self) -> None:
        async for item in self._client.events():
            if isinstance(item, Event) and item.message.sender_kind == "agent":
                self.texts.append(item.message.text)
                await self._client.ack(item.seq)
                async with self._received:
                    self._received.notify_all()

    async def until(self, text: str) -> None:
        async with asyncio.timeout(DEADLINE_S), self._received:
            await self._received.wait_for(lambda: text in self.texts)


@asynccontextmanager
async def _ann(hub: HubProcess) -> AsyncIterator[tuple[Client, _Reader]]:
    async with Client(WebSocketTransport(hub.url), "ann", "human") as ann:
        reader = _Reader(ann)
        task = asyncio.create_task(reader.run())
        yield ann, reader
        task.cancel()


async def _only_turn(ann: Client, agent: str) -> Turn:
    """The record of the agent's turn, once it has ended."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            answer = await ann.call("list_turns", agent=agent)
            (summary,) = Turns.model_validate(answer).turns
            if summary.outcome is not None:
                return Turn.model_validate(await ann.call("read_turn", id=summary.id))


async def test_a_python_agent_killed_after_each_message_sends_none_twice(
    tmp_path: Path,
) -> None:
    file = tmp_path / "courier.py"
    file.write_text(COURIER)
    async with running_hub(tmp_path) as hub, _ann(hub) as (ann, reader):
        address = hub.url.removeprefix("ws://")
        async with running_agent(tmp_path, [str(file), "--address", address]) as agent:
            await all_present(hub.url, "courier")
            await ann.call("send_text_message", to="courier", text="letter")
            for part in range(1, PARTS + 1):
                await reader.until(f"letter, part {part}")
                await agent.kill()
                (tmp_path / f"gate{part}").touch()
                await agent.start()
            await reader.until("letter, delivered")
            turn = await _only_turn(ann, "courier")
    parts = [f"letter, part {part}" for part in range(1, PARTS + 1)]
    assert reader.texts == [*parts, "letter, delivered"]
    assert turn.attempts == PARTS + 1
    assert turn.end is not None
    assert turn.end.outcome == "finished"
    assert len(turn.sent) == PARTS + 1
    assert "Traceback" not in agent.output()


def _sends(text: str, hold: str) -> ScriptedAnswer:
    """Sends a text; the answer waits at the gate `hold`."""
    call = ScriptedCall(tool="send_text_message", arguments={"to": "ann", "text": text})
    return ScriptedAnswer(calls=[call], hold=hold)


@pytest.mark.behaviour("R-2")
async def test_an_llm_agent_killed_before_each_model_answer_sends_none_twice(
    tmp_path: Path,
) -> None:
    done = ScriptedAnswer(
        calls=[ScriptedCall(tool="finish", arguments={"reason": "done"})], hold="third"
    )
    # A request consumes an answer, so the answer lost to a kill is scripted again.
    script = Script(
        answers=[
            _sends("one", "first"),
            _sends("two", "lost"),
            _sends("two", "second"),
            done.model_copy(update={"hold": "lost"}),
            done,
        ]
    )
    async with ModelServer(script) as model, running_hub(tmp_path) as hub:
        arguments = llm_config(tmp_path, hub, model, "writer", WRITER)
        for gate in ("first", "second", "third"):
            model.release(gate)
        async with _ann(hub) as (ann, reader), running_agent(tmp_path, arguments) as agent:
            await all_present(hub.url, "writer")
            await ann.call("send_text_message", to="writer", text="write")
            await reader.until("one")
            await model.held("lost", 1)  # the second answer is pending
            await agent.kill()
            await agent.start()
            await reader.until("two")
            await model.held("lost", 2)  # the third answer is pending
            await agent.kill()
            await agent.start()
            turn = await _only_turn(ann, "writer")
        assert reader.texts == ["one", "two"]
        assert turn.attempts == 3
        assert [[call.name for call in step.calls] for step in turn.steps] == [
            ["send_text_message"],
            ["send_text_message"],
            ["finish"],
        ]
        assert model.mistakes == []
        asked = [sum(m.role == "assistant" for m in r.messages) for r in model.requests]
        assert asked == [0, 1, 1, 2, 2], "a recorded step was requested again"
        assert "Traceback" not in agent.output()


@pytest.mark.behaviour("R-7")
@pytest.mark.parametrize("where", ["tools", "hooks"])
async def test_a_manually_started_llm_agent_fails_a_turn_after_three_crashes(
    tmp_path: Path, where: str
) -> None:
    """In a tool, or in a hook before the first request to the model."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    place = "deadly.py:kill_it" if where == "tools" else "deadly.py:Deadly"
    deadly: Mapping[str, JsonValue] = {**WRITER, where: [place]}
    calls = [ScriptedCall(tool="kill_it", arguments={"how": how}) for how in range(3)]
    script = Script(answers=[ScriptedAnswer(calls=[call]) for call in calls])
    async with ModelServer(script) as model, running_hub(tmp_path) as hub:
        arguments = llm_config(tmp_path, hub, model, "writer", deadly)
        async with _ann(hub) as (ann, _), running_agent(tmp_path, arguments) as agent:
            await all_present(hub.url, "writer")
            await ann.call("send_text_message", to="writer", text="write")
            for _life in range(3):
                assert await agent.ended() == 5, agent.output()
                await agent.start()
            turn = await _only_turn(ann, "writer")
    assert (turn.attempts, turn.end and turn.end.outcome) == (3, "handler_error")
