"""What the others see of an agent while it works: its activity, as signals."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub import Agent, Message
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Breakdown, Refusal
from tests.interaction.agent_harness import Gate, finish, harness, says, send
from tests.interaction.peers import Networks, Peer
from tests.interaction.scripted import scene

State = dict[str, Any]  # the data of a signal: plain JSON, as it is


class Slow(Agent):
    def __init__(self, gate: Gate):
        self._gate = gate

    async def on_direct(self, message: Message) -> str:
        await self._gate.wait()
        return "done"


async def shown(ann: Peer) -> State:
    """The next that the agent `bot` says of its turn in a thread."""
    while True:
        signal = await ann.signal("activity")
        if signal["sender"] == "bot" and signal.get("thread_id"):
            assert signal["thread_id"] == "dm.ann.bot"
            data: State = signal["data"]
            return data


async def all_shown(ann: Peer) -> list[State]:
    """All that the agent says, up to `idle`."""
    states = [await shown(ann)]
    while states[-1]["state"] != "idle":
        states.append(await shown(ann))
    return states


def said(state: str, step: int = 1, turn: str = "bot-m1", **more: Any) -> State:
    return {"state": state, "turn": turn, "step": step, **more}


def after(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Handlers show themselves when they have worked for so long."""
    monkeypatch.setattr("hubbub.agents.python.handlers.SHOWN_AFTER_S", seconds)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    after(monkeypatch, 0.0)


class TestModels:
    async def test_whatever_the_outcome_the_agent_is_idle_in_the_end(
        self, in_memory: Networks
    ) -> None:
        cases: list[tuple[AnyAnswer, dict[str, Any]]] = [
            (Refusal(status=500), {}),
            (Breakdown(breakdown="hang"), {"turn_timeout": 0.3}),
            (says(finish()), {"max_steps": 1}),
        ]
        for answer, settings in cases:
            async with scene(in_memory, answer, **settings) as s:
                await s.say()
                assert await all_shown(s.ann) == [said("thinking"), said("idle")], answer

    async def test_an_agent_that_dies_is_idle_and_its_turn_is_shown_where_it_goes_on(
        self, in_memory: Networks
    ) -> None:
        answers = (says(send("ann", "one")), says(finish(), hold="dying"), says(finish()))
        async with scene(in_memory, *answers) as s:
            await s.say()
            await s.held("dying")
            await s.restart()
            assert (await all_shown(s.ann))[-1] == said("idle", 2)
            assert await all_shown(s.ann) == [said("thinking", 2), said("idle", 2)]

    async def test_after_a_lost_connection_a_model_that_is_still_asked_is_shown_again(
        self, in_memory: Networks
    ) -> None:
        async with scene(in_memory, says(finish(), hold="on")) as s:
            await s.say()
            assert await shown(s.ann) == said("thinking")
            await s.net.cut("bot")
            assert await shown(s.ann) == said("thinking")
            s.model.release("on")
            assert (await all_shown(s.ann))[-1]["state"] == "idle"


@pytest.mark.usefixtures("at_once")
class TestHandlers:
    async def test_each_message_that_woke_the_agent_is_a_step(self, in_memory: Networks) -> None:
        gate = Gate()
        async with harness(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Slow(gate))
            for text in ("one", "two", "three"):
                await ann.say("bot", text)
            gate.open.set()
            assert await all_shown(ann) == [said("thinking"), said("idle")]
            assert await all_shown(ann) == [
                said("thinking", 1, "bot-m2"),
                said("thinking", 2, "bot-m2"),
                said("idle", 2, "bot-m2"),
            ]

    async def test_one_who_asks_is_shown_to_wait_until_the_answer_comes_or_the_time_is_up(
        self, in_memory: Networks
    ) -> None:
        gate = Gate()

        class Asker(Agent):
            async def on_direct(self, message: Message) -> str:
                answer = await self.ask("slow", "well?")
                try:
                    return (await self.ask("ben", "well?", timeout=0.02)).text
                except TimeoutError:
                    return answer.text

        async with harness(in_memory) as net:
            ann, _ = await net.person(), await net.person("ben")
            await net.python("slow", Slow(gate))
            await net.python("bot", Asker())
            await ann.say("bot", "go")
            assert await shown(ann) == said("thinking")
            assert await shown(ann) == {**said("waiting"), "for": "slow"}
            gate.open.set()
            states = [data["state"] for data in await all_shown(ann)]
            assert states == ["thinking", "waiting", "thinking", "idle"]


async def test_only_a_handler_that_takes_long_is_shown(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    async with harness(in_memory) as net:
        ann = await net.person()
        await net.python("bot", Slow(gate))
        after(monkeypatch, 0.01)
        await ann.say("bot", "go")
        assert await shown(ann) == said("thinking")
        gate.open.set()
        assert await shown(ann) == said("idle")
        assert (await ann.event())["message"]["content"] == "done"
        after(monkeypatch, 60.0)
        quick = await ann.say("bot", "go")
        await ann.event()
        await net.turn(f"bot-{quick['id']}")
        assert [s for s in ann.signals if s["type"] == "activity" and "thread_id" in s] == []
