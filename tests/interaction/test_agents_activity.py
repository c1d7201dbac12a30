"""Activity signals, which show others the state of an agent at work."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub import Agent, Message
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Breakdown, Refusal
from tests.interaction.agent_harness import Gate, finish, harness, one_person, says, send
from tests.interaction.peers import Networks, Peer
from tests.interaction.scripted import scene

State = dict[str, Any]  # the data of a signal, plain JSON


class Slow(Agent):
    def __init__(self, gate: Gate):
        self._gate = gate

    async def on_direct(self, message: Message) -> str:
        await self._gate.wait()
        return "done"


async def shown(ann: Peer) -> State:
    """The next state that the agent `bot` signals in a thread."""
    while True:
        signal = await ann.signal("activity")
        if signal["sender"] == "bot" and signal.get("thread_id"):
            assert signal["thread_id"] == "dm.ann.bot"
            state: State = signal["data"]
            return state


async def all_shown(ann: Peer) -> list[State]:
    """The states up to `idle`."""
    states = [await shown(ann)]
    while states[-1]["state"] != "idle":
        states.append(await shown(ann))
    return states


def data(state: str, step: int = 1, turn: str = "bot-m1", **more: Any) -> State:
    return {"state": state, "turn": turn, "step": step, **more}


def signal_after(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set how long a handler works before it signals."""
    monkeypatch.setattr("hubbub.agents.python.handlers.SHOWN_AFTER_S", seconds)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    signal_after(monkeypatch, 0.0)


class TestModels:
    async def test_the_agent_is_idle_after_every_outcome(self, in_memory: Networks) -> None:
        cases: list[tuple[AnyAnswer, dict[str, Any]]] = [
            (Refusal(status=500), {}),
            (Breakdown(breakdown="hang"), {"turn_timeout": 0.3}),
            (says(finish()), {"max_steps": 1}),
        ]
        for answer, settings in cases:
            async with scene(in_memory, answer, **settings) as s:
                await s.say()
                assert await all_shown(s.ann) == [data("thinking"), data("idle")], answer

    async def test_a_crashed_agent_is_idle_and_signals_from_the_step_where_it_resumes(
        self, in_memory: Networks
    ) -> None:
        answers = (says(send("ann", "one")), says(finish(), hold="dying"), says(finish()))
        async with scene(in_memory, *answers) as s:
            await s.say()
            await s.held("dying")
            await s.restart()
            assert (await all_shown(s.ann))[-1] == data("idle", 2)
            assert await all_shown(s.ann) == [data("thinking", 2), data("idle", 2)]

    async def test_the_state_is_signalled_again_after_a_lost_connection(
        self, in_memory: Networks
    ) -> None:
        async with scene(in_memory, says(finish(), hold="on")) as s:
            await s.say()
            assert await shown(s.ann) == data("thinking")
            await s.net.cut("bot")
            assert await shown(s.ann) == data("thinking")
            s.model.release("on")
            assert (await all_shown(s.ann))[-1]["state"] == "idle"


@pytest.mark.usefixtures("at_once")
class TestHandlers:
    async def test_each_message_of_a_turn_is_a_step(self, in_memory: Networks) -> None:
        gate = Gate()
        async with one_person(in_memory) as (net, ann):
            await net.python("bot", Slow(gate))
            for text in ("one", "two", "three"):
                await ann.say("bot", text)
            gate.open.set()
            assert await all_shown(ann) == [data("thinking"), data("idle")]
            assert await all_shown(ann) == [
                data("thinking", 1, "bot-m2"),
                data("thinking", 2, "bot-m2"),
                data("idle", 2, "bot-m2"),
            ]

    async def test_a_handler_that_asks_is_waiting_until_the_answer_or_the_timeout(
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
            assert await shown(ann) == data("thinking")
            assert await shown(ann) == {**data("waiting"), "for": "slow"}
            gate.open.set()
            states = [each["state"] for each in await all_shown(ann)]
            assert states == ["thinking", "waiting", "thinking", "idle"]


async def test_only_a_handler_that_takes_long_signals(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    async with one_person(in_memory) as (net, ann):
        await net.python("bot", Slow(gate))
        signal_after(monkeypatch, 0.01)
        await ann.say("bot", "go")
        assert await shown(ann) == data("thinking")
        gate.open.set()
        assert await shown(ann) == data("idle")
        assert (await ann.event())["message"]["content"] == "done"
        signal_after(monkeypatch, 60.0)
        turn_id = await net.ask(ann, "go")
        await ann.event()
        await net.turn(turn_id)
        assert [s for s in ann.signals if s["type"] == "activity" and "thread_id" in s] == []
