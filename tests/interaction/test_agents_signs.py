"""What the others see of an agent while it works: its activity, as signals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hubbub import Agent, Message
from hubbub.protocol.codes import CloseCode
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Breakdown, ModelServer, Refusal, Script
from tests.interaction.agent_rig import Gate, Rig, finish, rig, says, send
from tests.interaction.peers import Networks, Peer, soon

State = dict[str, Any]  # the data of a signal: plain JSON, as it is


class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return f"you said: {message.text}"


class Slow(Agent):
    def __init__(self, gate: Gate):
        self._gate = gate

    async def on_direct(self, message: Message) -> str:
        await self._gate.wait()
        return "done"


async def shown(ann: Peer, agent: str = "bot") -> State:
    """The next that this agent says of its turn in a thread."""
    while True:
        signal = await ann.signal("activity")
        if signal["sender"] == agent and signal.get("thread_id"):
            assert signal["thread_id"] == f"dm.ann.{agent}"
            data: State = signal["data"]
            return data


async def all_shown(ann: Peer, agent: str = "bot") -> list[State]:
    """All that the agent says, up to `idle`."""
    states = [await shown(ann, agent)]
    while states[-1]["state"] != "idle":
        states.append(await shown(ann, agent))
    return states


def said(state: str, step: int = 1, turn: str = "bot-m1", **more: Any) -> State:
    return {"state": state, "turn": turn, "step": step, **more}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers show themselves without delay."""
    monkeypatch.setattr("hubbub.agents.python.handlers.SHOWN_AFTER_S", 0.0)


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


class TestModels:
    async def test_every_step_is_shown_with_its_turn(self, networks: Networks) -> None:
        async with playing(says(send("ann", "x")), says(finish())) as model, rig(networks) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "go")
            assert await all_shown(ann) == [
                said("thinking", 1),
                said("calling", 1, tool="send_text_message"),
                said("thinking", 2),
                said("idle", 2),
            ]

    @pytest.mark.parametrize(
        ("answer", "settings"),
        [
            (Refusal(status=500), {}),
            (Breakdown(breakdown="reset"), {}),
            (Breakdown(breakdown="hang"), {"turn_timeout": 0.05}),
            (says(finish()), {"max_steps": 1}),
        ],
    )
    async def test_whatever_the_outcome_the_agent_is_idle_in_the_end(
        self, in_memory: Networks, answer: AnyAnswer, settings: dict[str, Any]
    ) -> None:
        async with playing(answer) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("bot", model, **settings)
            await ann.say("bot", "go")
            assert await all_shown(ann) == [said("thinking"), said("idle")]

    async def test_an_agent_whose_process_stops_is_idle(self, networks: Networks) -> None:
        async with playing(says(finish(), hold="on")) as model, rig(networks) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "go")
            assert await shown(ann) == said("thinking")
            async with soon():
                await model.held("on")
            await net.kill("bot")
            assert await shown(ann) == said("idle")

    async def test_a_turn_that_is_taken_up_again_is_shown_where_it_goes_on(
        self, in_memory: Networks
    ) -> None:
        script = (says(send("ann", "one")), says(finish(), hold="dying"), says(finish()))
        async with playing(*script) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "go")
            async with soon():
                await model.held("dying")
            await net.kill("bot")
            assert (await all_shown(ann))[-1] == said("idle", 2)
            await net.llm("bot", model)
            assert await all_shown(ann) == [said("thinking", 2), said("idle", 2)]


@pytest.mark.usefixtures("at_once")
class TestHandlers:
    async def test_each_message_that_woke_the_agent_is_a_step(self, in_memory: Networks) -> None:
        gate = Gate()
        async with rig(in_memory) as net:
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

    @pytest.mark.parametrize("within", [0.05, 60])
    async def test_a_turn_that_fails_or_takes_too_long_is_idle_too(
        self, in_memory: Networks, within: float
    ) -> None:
        class Stuck(Agent):
            async def on_direct(self, message: Message) -> None:
                await fail.wait()
                raise ValueError("broken")

        fail = asyncio.Event()
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Stuck(), turn_timeout=within)
            await ann.say("bot", "go")
            assert await shown(ann) == said("thinking")
            if within > 1:
                fail.set()
            assert await shown(ann) == said("idle")

    async def test_an_agent_whose_process_stops_is_idle(self, networks: Networks) -> None:
        async with rig(networks) as net:
            ann = await net.person()
            await net.python("bot", Slow(Gate()))
            await ann.say("bot", "go")
            assert await shown(ann) == said("thinking")
            await net.kill("bot")
            assert await shown(ann) == said("idle")

    async def test_a_plain_function_is_shown_as_well(self, in_memory: Networks) -> None:
        class Plain(Agent):
            def on_direct(self, message: Message) -> str:
                return "done"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Plain())
            await ann.say("bot", "go")
            assert await all_shown(ann) == [said("thinking"), said("idle")]

    async def test_one_who_asks_is_shown_to_wait_for_whom_it_asked(
        self, in_memory: Networks
    ) -> None:
        gate = Gate()

        class Asker(Agent):
            async def on_direct(self, message: Message) -> str:
                return (await self.ask("slow", "well?")).text

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("slow", Slow(gate))
            await net.python("bot", Asker())
            await ann.say("bot", "go")
            assert await shown(ann) == said("thinking")
            assert await shown(ann) == {**said("waiting"), "for": "slow"}
            gate.open.set()
            assert await all_shown(ann) == [said("thinking"), said("idle")]

    async def test_an_answer_that_does_not_come_ends_the_waiting(self, in_memory: Networks) -> None:
        class Asker(Agent):
            async def on_direct(self, message: Message) -> str:
                try:
                    return (await self.ask("ben", "well?", timeout=0.02)).text
                except TimeoutError:
                    return "no answer"

        async with rig(in_memory) as net:
            ann, _ = await net.person(), await net.person("ben")
            await net.python("bot", Asker())
            await ann.say("bot", "go")
            states = [data["state"] for data in await all_shown(ann)]
            assert states == ["thinking", "waiting", "thinking", "idle"]

    async def test_asking_outside_a_turn_shows_nothing(self, in_memory: Networks) -> None:
        class Starter(Agent):
            async def on_start(self) -> None:
                await self.ask("ann", "are you there?")
                ready.set()

        ready = asyncio.Event()
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Starter())
            await ann.event()
            await ann.say("bot", "yes")
            async with soon():
                await ready.wait()
            await ann.sync()
            assert [s for s in ann.signals if s["type"] == "activity" and "thread_id" in s] == []


class TestHowSoon:
    async def test_a_turn_that_takes_long_is_shown_until_it_ends(
        self, in_memory: Networks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hubbub.agents.python.handlers.SHOWN_AFTER_S", 0.01)
        gate = Gate()
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Slow(gate))
            await ann.say("bot", "go")
            assert await shown(ann) == said("thinking")
            gate.open.set()
            assert await shown(ann) == said("idle")
            assert (await ann.event())["message"]["content"] == "done"

    async def test_a_quick_turn_makes_no_noise(
        self, in_memory: Networks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hubbub.agents.python.handlers.SHOWN_AFTER_S", 60.0)
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("echo", Echo())
            await ann.say("echo", "hello")
            await ann.event()
            await net.turn("echo-m1")
            assert [s for s in ann.signals if s["type"] == "activity"] == []


class TestAfterALostConnection:
    def drop(self, net: Rig) -> None:
        """The hub loses the agent's connection, which comes back by itself."""
        for session in list(net.network.hub.fanout.of("bot")):
            session.close(CloseCode.INTERNAL, "a test")

    @pytest.mark.usefixtures("at_once")
    async def test_a_handler_that_still_runs_is_shown_again(self, in_memory: Networks) -> None:
        gate = Gate()
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Slow(gate))
            await ann.say("bot", "go")
            assert await shown(ann) == said("thinking")
            self.drop(net)
            assert await shown(ann) == said("thinking")
            gate.open.set()
            assert await shown(ann) == said("idle")

    async def test_a_model_that_is_still_asked_is_shown_again(self, in_memory: Networks) -> None:
        async with playing(says(finish(), hold="on")) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "go")
            assert await shown(ann) == said("thinking")
            self.drop(net)
            assert await shown(ann) == said("thinking")
            model.release("on")
            assert (await all_shown(ann))[-1]["state"] == "idle"
