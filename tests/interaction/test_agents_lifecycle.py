"""Agents that die, return, are stopped, and have more to do than one thing at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hubbub import Agent, Message
from hubbub.agents.inbox import Inbox
from hubbub.agents.python.handlers import HandlerBrain
from hubbub.agents.python.link import Link
from hubbub.agents.runner import AgentRunner
from hubbub.agents.turn.voice import Voice
from hubbub.client import Client
from hubbub.clock import SystemClock
from hubbub.protocol.operations import Turns, TurnSummary
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.agent_rig import Gate, Rig, finish, rig, says, send
from tests.interaction.peers import Networks, Peer, config, eventually, soon

DESK = config(channels={"desk": {"members": "all"}})


async def everything(net: Rig, ann: Peer) -> list[str]:
    """All texts that ann has received by now."""
    await net.network.quiet()
    return await ann.texts()


class TestKilledInTheMiddle:
    @pytest.mark.behaviour("T-2", "R-2")
    async def test_a_handler_runs_again_and_sends_nothing_twice(self, networks: Networks) -> None:
        gate = Gate()

        class Steps(Agent):
            async def on_direct(self, message: Message) -> str:
                await self.send("ann", "one")
                await self.post("desk", "two")
                await gate.wait()
                return "three"

        async with rig(networks, DESK) as net:
            ann = await net.person()
            await net.python("steps", Steps())
            await ann.say("steps", "go")
            await gate.until_reached()
            await net.kill("steps")
            gate.open.set()
            await net.python("steps", Steps())
            turn = await net.turn("steps-m1")
            assert turn.attempts == 2
            assert turn.sent == ("m2", "m3", "m4")
            assert await everything(net, ann) == ["one", "two", "three"]

    async def test_other_words_the_second_time_count_as_said(self, in_memory: Networks) -> None:
        gate, words = Gate(), iter(["first words", "second words"])

        class Moody(Agent):
            async def on_direct(self, message: Message) -> None:
                sent = await self.send("ann", next(words))
                assert sent.id == "m2"
                await gate.wait()

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("moody", Moody())
            await ann.say("moody", "go")
            await gate.until_reached()
            await net.kill("moody")
            gate.open.set()
            await net.python("moody", Moody())
            turn = await net.turn("moody-m1")
            assert turn.end is not None
            assert turn.end.outcome == "finished"
            assert await everything(net, ann) == ["first words"]

    async def test_a_model_is_not_asked_again_for_what_it_had_answered(
        self, networks: Networks
    ) -> None:
        script = Script(
            answers=[
                says(send("ann", "one")),
                says(send("ann", "never said"), hold="dying"),
                says(send("ann", "two"), finish("both said")),
            ]
        )
        async with ModelServer(script) as model, rig(networks) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "go")
            async with soon():
                await model.held("dying")
            await net.kill("bot")
            await net.llm("bot", model)
            turn = await net.turn("bot-m1")
            assert turn.attempts == 2
            assert [c.name for s in turn.steps for c in s.calls] == [
                *("send_text_message", "send_text_message", "finish"),
            ]
            assert await everything(net, ann) == ["one", "two"]
            resumed = model.requests[2].body.messages
            assert [m.role for m in resumed] == ["system", "user", "assistant", "tool"]
            assert resumed[1].text == model.requests[0].body.messages[1].text

    async def test_an_answer_that_came_while_the_asker_was_dead_reaches_the_question(
        self, in_memory: Networks
    ) -> None:
        gate = Gate()

        class Slow(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return "42"

        class Asker(Agent):
            async def on_direct(self, message: Message) -> str:
                if message.sender_id == "slow":
                    return "what is this?"
                return f"it is {(await self.ask('slow', 'the answer?')).text}"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("slow", Slow())
            await net.python("asker", Asker())
            await ann.say("asker", "go")
            await gate.until_reached()
            await net.kill("asker")
            gate.open.set()
            await net.turn("slow-m2")
            await net.python("asker", Asker())
            assert (await ann.event())["message"]["content"] == "it is 42"
            consumed = await net.turn("asker-m3")
            assert consumed.sent == ()
            assert (await net.turn("asker-m1")).attempts == 2

    async def test_what_the_second_run_does_not_ask_for_is_news_after_all(
        self, in_memory: Networks
    ) -> None:
        gate, told = Gate(), asyncio.Event()

        class Slow(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return "42"

        class Asker(Agent):
            async def on_direct(self, message: Message) -> None:
                if message.sender_id == "slow":
                    told.set()
                elif not gate.open.is_set():
                    await self.ask("slow", "the answer?")

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("slow", Slow())
            await net.python("asker", Asker())
            await ann.say("asker", "go")
            await gate.until_reached()
            await net.kill("asker")
            gate.open.set()
            await net.turn("slow-m2")
            await net.python("asker", Asker())
            async with soon():
                await told.wait()

    async def test_what_an_observer_had_said_is_not_said_again(self, in_memory: Networks) -> None:
        gate = Gate()

        class Watcher(Agent):
            async def on_channel_message(self, message: Message) -> str:
                await self.send("ann", f"seen: {message.text}")
                await gate.wait()
                return "noted"

        async with rig(in_memory, DESK) as net:
            ann = await net.person()
            await net.python("watcher", Watcher())
            await ann.call("post_to_channel", channel="desk", text="look")
            await gate.until_reached()
            await net.kill("watcher")
            gate.open.set()
            await net.python("watcher", Watcher())
            assert [(await ann.event())["message"]["content"] for _ in range(2)] == [
                *("seen: look", "noted"),
            ]
            assert await everything(net, ann) == []


class TestAway:
    @pytest.mark.behaviour("W-7")
    async def test_an_agent_that_was_away_is_woken_once_with_all_that_came(
        self, networks: Networks
    ) -> None:
        class Collector(Agent):
            async def on_direct(self, message: Message) -> str:
                return f"re: {message.text}"

        async with rig(networks) as net:
            ann = await net.person()
            await net.python("bot", Collector())
            await net.kill("bot")
            for text in ("one", "two", "three"):
                await ann.say("bot", text)
            await net.python("bot", Collector())
            turn = await net.turn("bot-m1")
            assert turn.start.messages == ("m1", "m2", "m3")
            answers = [(await ann.event())["message"] for _ in range(3)]
            assert [(m["content"], m["quote"]["message_id"]) for m in answers] == [
                *(("re: one", "m1"), ("re: two", "m2"), ("re: three", "m3")),
            ]

    async def test_what_was_dealt_with_is_not_dealt_with_again(self, in_memory: Networks) -> None:
        class Counting(Agent):
            async def on_direct(self, message: Message) -> str:
                return f"re: {message.text}"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Counting())
            await ann.say("bot", "one")
            await net.turn("bot-m1")
            await net.kill("bot")
            await net.python("bot", Counting())
            await ann.say("bot", "two")
            await net.turn("bot-m3")
            assert await everything(net, ann) == ["re: one", "re: two"]


class TestAtTheSameTime:
    @pytest.mark.behaviour("A-11")
    async def test_threads_go_on_beside_each_other_up_to_the_limit(
        self, in_memory: Networks
    ) -> None:
        two = asyncio.Barrier(2)

        class Meeting(Agent):
            async def on_direct(self, message: Message) -> str:
                await two.wait()
                return "met"

        async with rig(in_memory) as net:
            people = [await net.person(name) for name in ("ann", "ben", "cat", "dan")]
            await net.python("bot", Meeting(), concurrency=2)
            for person in people:
                await person.say("bot", "go")
            for person in people:
                assert (await person.event())["message"]["content"] == "met"

    @pytest.mark.behaviour("W-8")
    async def test_what_comes_during_a_turn_becomes_one_next_turn(
        self, in_memory: Networks
    ) -> None:
        gate = Gate()

        class Slow(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return message.text

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Slow())
            await ann.say("bot", "one")
            await gate.until_reached()
            await ann.say("bot", "two")
            await ann.say("bot", "three")
            gate.open.set()
            assert [(await ann.event())["message"]["content"] for _ in range(3)] == [
                *("one", "two", "three"),
            ]
            assert (await net.turn("bot-m2")).start.messages == ("m2", "m3")

    async def test_nobody_waits_for_the_acknowledgement_of_a_busy_thread(
        self, in_memory: Networks
    ) -> None:
        gate = Gate()

        class Uneven(Agent):
            async def on_direct(self, message: Message) -> str:
                if message.sender_id == "ann":
                    await gate.wait()
                return message.text

        few = config(network={"limits": {"unacknowledged": 4}})
        async with rig(in_memory, few) as net:
            ann, ben = await net.person("ann"), await net.person("ben")
            await net.python("bot", Uneven())
            for n in range(8):
                await ann.say("bot", f"waits {n}")
            await gate.until_reached()
            for n in range(8):
                await ben.say("bot", f"passes {n}")
                answer = await ben.event()
                assert answer["message"]["content"] == f"passes {n}"
                await ben.ack(answer["seq"])
            gate.open.set()
            assert (await ann.event())["message"]["content"] == "waits 0"

    @pytest.mark.behaviour("A-14")
    async def test_ignored_senders_start_nothing_and_the_wake_is_settled(
        self, in_memory: Networks
    ) -> None:
        class Echo(Agent):
            async def on_direct(self, message: Message) -> str:
                return "heard"

        async with rig(in_memory) as net:
            ann, spam = await net.person(), await net.person("spam")
            await net.python("bot", Echo(), ignore_senders=["spam"])
            await spam.say("bot", "buy!")
            await ann.say("bot", "hello")
            assert (await ann.event())["message"]["content"] == "heard"
            turn = await net.turn("bot-m1")
            assert turn.end is not None
            assert turn.end.reason == "the agent ignores this sender"
            assert turn.sent == ()


class TestStopping:
    @pytest.fixture
    def gate(self) -> Gate:
        return Gate()

    async def runner(self, net: Rig, gate: Gate, grace_s: float = 0) -> AgentRunner:
        class Waits(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return "done"

        client = await net.network.local.join("bot", turns=True)
        net.clients["bot"] = client
        inbox = Inbox("bot")
        link = Link(Voice(client, inbox, SystemClock()), inbox)
        agent = Waits()
        agent._join(link, {})
        return AgentRunner(client, inbox, HandlerBrain(agent, link), grace_s=grace_s)

    @pytest.mark.behaviour("W-9")
    async def test_a_cancelled_turn_is_recorded_and_the_person_told(
        self, in_memory: Networks, gate: Gate
    ) -> None:
        async with rig(in_memory) as net:
            ann = await net.person()
            runner = await self.runner(net, gate)
            running = asyncio.create_task(runner.run())
            await ann.say("bot", "go")
            await gate.until_reached()
            assert runner.cancel("bot-m1", "ann has changed her mind")
            turn = await net.turn("bot-m1")
            assert turn.end is not None
            assert turn.end.outcome == "cancelled"
            notice = (await ann.event())["message"]
            assert "ann has changed her mind" in notice["text_representation"]
            assert not runner.cancel("bot-m1", "again")
            gate.open.set()
            await ann.say("bot", "again")
            assert (await ann.event())["message"]["content"] == "done"
            running.cancel()
            await asyncio.wait({running})

    async def turns_of(self, client: Client) -> Sequence[TurnSummary]:
        """The agent's turns, as soon as one is on record: a read waits for no write."""
        async with soon():
            while True:
                told = Turns.model_validate(await client.call("list_turns"))
                if told.turns:
                    return told.turns

    async def test_cancelling_the_agent_leaves_no_task_and_the_turn_open(
        self, in_memory: Networks, gate: Gate
    ) -> None:
        async with rig(in_memory) as net:
            ann = await net.person()
            runner = await self.runner(net, gate)
            await net.clients["bot"].call("list_channels")  # the client has all its tasks now
            before = asyncio.all_tasks()
            running = asyncio.create_task(runner.run())
            await ann.say("bot", "go")
            await gate.until_reached()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            # The hub's own come to their end; one of the agent's would wait at the gate for ever.
            await eventually(lambda: asyncio.all_tasks() <= before)
            (summary,) = await self.turns_of(net.clients["bot"])
            assert summary.outcome is None

    async def test_a_turn_that_is_nearly_done_may_end(
        self, in_memory: Networks, gate: Gate
    ) -> None:
        async with rig(in_memory) as net:
            ann = await net.person()
            running = asyncio.create_task((await self.runner(net, gate, grace_s=10)).run())
            await ann.say("bot", "go")
            await gate.until_reached()
            running.cancel()
            gate.open.set()
            assert (await ann.event())["message"]["content"] == "done"
            await asyncio.wait({running})
            assert running.cancelled()
            turn = await net.turn("bot-m1")
            assert turn.end is not None
            assert turn.end.outcome == "finished"
