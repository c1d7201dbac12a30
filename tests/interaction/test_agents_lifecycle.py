"""Agents that crash, return, lose their connection, stop, and run several turns at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hubbub import Agent, Message
from hubbub.agents.inbox import Inbox
from hubbub.agents.python.handlers import HandlerBackend
from hubbub.agents.python.link import AgentLink
from hubbub.agents.runner import AgentRunner
from hubbub.agents.turn.outbox import Outbox
from hubbub.config.models import AgentConfig
from hubbub.errors import ConfigError
from tests.interaction.agent_harness import (
    Gate,
    Harness,
    ended,
    finish,
    harness,
    one_person,
    said_to,
    says,
    send,
)
from tests.interaction.peers import Networks, Peer, config, soon
from tests.interaction.scripted import scene

DESK = config(channels={"desk": {"members": "all"}})


class Echo(Agent):
    """Answers with the message."""

    async def on_direct(self, message: Message) -> str:
        return f"re: {message.text}"


async def everything(net: Harness, ann: Peer) -> list[str]:
    """All messages to ann so far."""
    await net.network.quiet()
    return await ann.texts()


async def crash_at(net: Harness, gate: Gate, name: str, successor: Agent) -> None:
    """Kill the agent where it waits, open the gate and start its successor."""
    await gate.until_reached()
    await net.kill(name)
    gate.open.set()
    await net.python(name, successor)


class TestKilledInTheMiddle:
    @pytest.mark.behaviour("T-2", "R-2")
    async def test_a_handler_runs_again_after_a_crash_and_sends_nothing_twice(
        self, in_memory: Networks
    ) -> None:
        gate, texts = Gate(), iter(["one", "another text in the second run"])

        class Steps(Agent):
            async def on_direct(self, message: Message) -> str:
                sent = await self.send("ann", next(texts))
                assert sent.id == "m2"
                await self.post("desk", "two")
                await gate.wait()
                return "three"

        async with one_person(in_memory, DESK) as (net, ann):
            await net.python("steps", Steps())
            await ann.say("steps", "go")
            await crash_at(net, gate, "steps", Steps())
            turn = await net.turn("steps-m1")
            assert (turn.attempts, ended(turn).outcome) == (2, "finished")
            assert turn.sent == ("m2", "m3", "m4")
            assert await everything(net, ann) == ["one", "two", "three"]

    async def test_a_model_is_not_asked_again_for_recorded_steps(self, in_memory: Networks) -> None:
        script = [
            says(send("ann", "one")),
            says(send("ann", "never said"), hold="dying"),
            says(send("ann", "two"), finish("both said")),
            says(send("ann", "three"), finish()),
        ]
        async with scene(in_memory, *script) as s:
            await s.say()
            await s.held("dying")
            await s.net.kill("bot")
            await s.start()
            turn = await s.net.turn("bot-m1")
            assert turn.attempts == 2
            calls = [c.name for s in turn.steps for c in s.calls]
            assert calls == ["send_text_message", "send_text_message", "finish"]
            assert await everything(s.net, s.ann) == ["one", "two"]
            resumed = s.model.requests[2].body.messages
            assert [m.role for m in resumed] == ["system", "user", "assistant", "tool"]
            assert resumed[1].text == s.model.requests[0].body.messages[1].text
            await s.net.kill("bot")
            again = await s.say("and then?")
            await s.start()
            await s.net.turn(again)
            prompt = s.model.requests[3].body.messages[1].text
            history = prompt.partition("<current_interaction>")[0]
            assert history.index(">go<") < history.index(">one<"), "with its own messages"

    @pytest.mark.parametrize("asks_again", [True, False])
    async def test_an_answer_that_came_during_a_crash_reaches_the_repeated_question_or_the_agent(
        self, in_memory: Networks, asks_again: bool
    ) -> None:
        gate, received = Gate(), asyncio.Event()

        class Slow(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return "42"

        class Asker(Agent):
            async def on_direct(self, message: Message) -> str | None:
                if message.sender_id == "slow":
                    received.set()
                    return None
                if gate.open.is_set() and not asks_again:
                    return None
                return f"it is {(await self.ask('slow', 'the answer?')).text}"

        async with one_person(in_memory) as (net, ann):
            await net.python("slow", Slow())
            await net.python("asker", Asker())
            await ann.say("asker", "go")
            await gate.until_reached()
            await net.kill("asker")
            gate.open.set()
            await net.turn("slow-m2")
            await net.python("asker", Asker())
            if asks_again:
                assert await said_to(ann) == "it is 42"
                assert (await net.turn("asker-m3")).sent == ()
                assert (await net.turn("asker-m1")).attempts == 2
                assert not received.is_set()
            else:
                async with soon():
                    await received.wait()

    async def test_a_handler_of_observed_messages_sends_nothing_twice_after_a_crash(
        self, in_memory: Networks
    ) -> None:
        gate = Gate()

        class Watcher(Agent):
            async def on_channel_message(self, message: Message) -> str:
                await self.send("ann", f"seen: {message.text}")
                await gate.wait()
                return "noted"

        async with one_person(in_memory, DESK) as (net, ann):
            await net.python("watcher", Watcher())
            await ann.call("post_to_channel", channel="desk", text="look")
            await crash_at(net, gate, "watcher", Watcher())
            assert [await said_to(ann) for _ in "12"] == ["seen: look", "noted"]
            assert await everything(net, ann) == []


class TestAway:
    @pytest.mark.behaviour("W-7")
    async def test_an_agent_that_was_away_is_woken_once_per_thread_with_all_its_messages(
        self, networks: Networks
    ) -> None:
        async with harness(networks, DESK) as net:
            ann, ben = await net.person("ann"), await net.person("ben")
            await net.python("bot", Echo())
            await ann.say("bot", "zero")
            assert await said_to(ann) == "re: zero"
            await net.turn("bot-m1")
            await net.kill("bot")
            for n in range(12):
                await ann.say("bot", f"a{n}")
                await ben.say("bot", f"b{n}")
            await ann.call("post_to_channel", channel="desk", text="nothing for the bot")
            await net.python("bot", Echo())
            turns = [await net.turn("bot-m3"), await net.turn("bot-m4")]
            assert [len(t.start.messages) for t in turns] == [12, 12]
            messages = [(await ben.event())["message"] for _ in range(13)]
            answers = [(m["content"], m.get("quote", {}).get("message_id")) for m in messages[1:]]
            assert answers == [(f"re: b{n}", f"m{4 + 2 * n}") for n in range(12)]
            assert "re: zero" not in await everything(net, ann)

    @pytest.mark.parametrize("more_first", [True, False])
    async def test_an_agent_knows_its_own_messages_from_before_a_crash(
        self, in_memory: Networks, more_first: bool
    ) -> None:
        class Historian(Agent):
            async def on_direct(self, message: Message) -> str:
                assert self._link is not None
                thread = self._link._inbox.thread(message.thread_id)
                assert thread is not None
                return " | ".join(m.text for m in thread.messages)

        async with one_person(in_memory) as (net, ann):
            await net.python("bot", Historian())
            await ann.say("bot", "one")
            await net.turn("bot-m1")
            await net.kill("bot")
            if more_first:
                await ann.say("bot", "two")
            await net.python("bot", Historian())
            if not more_first:
                await ann.say("bot", "two")
            assert [await said_to(ann) for _ in "12"] == ["one", "one | one | two"]

    async def test_a_greeting_is_shortened_if_the_full_one_is_recent(
        self, in_memory: Networks
    ) -> None:
        async with one_person(in_memory) as (net, ann):
            for text in ("good morning", "bot is here again.", "bot is here again."):
                await net.python("bot", Echo(), greet="good morning")
                assert await said_to(ann) == text
                await net.kill("bot")
            for n in range(20):
                await ann.call("broadcast_text_message", text=f"news {n}")
            await net.python("bot", Echo(), greet="good morning")
            assert await said_to(ann) == "good morning"

    async def test_a_configured_class_is_loaded_or_its_error_reported_with_file_and_line(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        (tmp_path / "agents.py").write_text(
            "from hubbub import Agent, Message\n\n"
            "class Unlucky(Agent):\n"
            "    def __init__(self):\n"
            "        raise RuntimeError('no luck')\n\n"
            "class Shouter(Agent):\n"
            "    async def on_direct(self, message: Message) -> str:\n"
            "        return message.text.upper()\n"
        )

        def config_of(name: str) -> AgentConfig:
            section = {"kind": "python", "class": f"agents.py:{name}", "greet": "good morning"}
            return AgentConfig.model_validate(section)

        async with one_person(in_memory) as (net, ann):
            await net.configured("bot", config_of("Unlucky"), tmp_path, {})
            error = await net.death("bot")
            assert isinstance(error, ConfigError)
            assert "agents.py:5: Unlucky() raises RuntimeError: no luck" in str(error)
            page = await ann.call("read_thread", thread="broadcast")
            assert page["messages"] == [], "no greeting before the failure"
            await net.configured("shouter", config_of("Shouter"), tmp_path, {})
            await ann.say("shouter", "quiet")
            assert [await said_to(ann) for _ in "12"] == ["good morning", "QUIET"]


class TestConnection:
    async def test_a_turn_continues_after_a_lost_connection_which_the_log_names_once(
        self, on_sockets: Networks, capfd: pytest.CaptureFixture[str]
    ) -> None:
        gate = Gate()

        class Slow(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return "still here"

        async with harness(on_sockets) as net:
            ann = await net.person()
            await net.python("slow", Slow())
            await ann.say("slow", "go")
            await gate.until_reached()
            await net.cut("slow")
            gate.open.set()
            assert await said_to(ann) == "still here"
            turn = await net.turn("slow-m1")
            assert (turn.attempts, turn.sent) == (1, ("m2",))
            await ann.say("slow", "again")
            assert await said_to(ann) == "still here"
            lost, again = capfd.readouterr().err.splitlines()
            assert "connection lost, reconnecting" in lost
            assert "reason='cut by the test'" in lost
            assert "connected again" in again


class TestConcurrency:
    @pytest.mark.behaviour("A-11")
    async def test_threads_run_concurrently_up_to_the_limit(self, in_memory: Networks) -> None:
        two, at_once, most = asyncio.Barrier(2), 0, 0

        class Meeting(Agent):
            async def on_direct(self, message: Message) -> str:
                nonlocal at_once, most
                at_once += 1
                most = max(most, at_once)
                await two.wait()
                at_once -= 1
                return "met"

        async with harness(in_memory) as net:
            people = [await net.person(name) for name in ("ann", "ben", "cat", "dan")]
            await net.python("bot", Meeting(), concurrency=2)
            for person in people:
                await person.say("bot", "go")
            assert [await said_to(person) for person in people] == ["met"] * 4
            assert most == 2

    @pytest.mark.behaviour("A-14", "W-8")
    async def test_messages_during_a_turn_start_one_next_turn(self, in_memory: Networks) -> None:
        gate = Gate()

        class Slow(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return message.text

        async with harness(in_memory) as net:
            ann, spam = await net.person(), await net.person("spam")
            await net.python("bot", Slow(), ignore_senders=["spam"])
            await ann.say("bot", "one")
            await gate.until_reached()
            await ann.say("bot", "two")
            await ann.say("bot", "three")
            ignored = await spam.say("bot", "buy!")
            gate.open.set()
            assert [await said_to(ann) for _ in "123"] == ["one", "two", "three"]
            assert (await net.turn("bot-m2")).start.messages == ("m2", "m3")
            turn = await net.turn(f"bot-{ignored['id']}")
            assert (ended(turn).reason, turn.sent) == ("the agent ignores this sender", ())

    async def test_a_busy_thread_does_not_hold_up_the_messages_of_other_threads(
        self, in_memory: Networks
    ) -> None:
        gate = Gate()

        class Uneven(Agent):
            async def on_direct(self, message: Message) -> str:
                if message.sender_id == "ann":
                    await gate.wait()
                return message.text

        few = config(network={"limits": {"unacknowledged": 4}})
        async with harness(in_memory, few) as net:
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
            assert await said_to(ann) == "waits 0"


class TestStopping:
    async def running(self, net: Harness, gate: Gate, grace_s: float = 0) -> AgentRunner:
        class Waits(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return "done"

        client = await net.network.local.join("bot", turns=True)
        net.clients["bot"] = client
        inbox = Inbox("bot")
        link = AgentLink(Outbox(client, inbox), inbox)
        agent = Waits()
        agent._join(link, {})
        return AgentRunner(client, inbox, HandlerBackend(agent, link), grace_s=grace_s)

    async def test_cancelling_the_agent_leaves_no_task_and_an_open_turn(
        self, in_memory: Networks
    ) -> None:
        gate = Gate()
        async with one_person(in_memory) as (net, ann):
            runner = await self.running(net, gate)
            await net.clients["bot"].call("list_channels")  # starts all tasks of the client
            before = asyncio.all_tasks()
            running = asyncio.create_task(runner.run())
            await ann.say("bot", "go")
            await gate.until_reached()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            # Tasks of the hub end; one of the agent's would wait at the gate forever.
            async with soon():
                while rest := asyncio.all_tasks() - before:
                    await asyncio.wait(rest)
            assert (await net.begun("bot-m1")).end is None

    async def test_a_turn_can_end_within_the_grace_period(self, in_memory: Networks) -> None:
        gate = Gate()
        async with one_person(in_memory) as (net, ann):
            running = asyncio.create_task((await self.running(net, gate, grace_s=10)).run())
            await ann.say("bot", "go")
            await gate.until_reached()
            running.cancel()
            gate.open.set()
            assert await said_to(ann) == "done"
            await asyncio.wait({running})
            assert running.cancelled()
            assert ended(await net.turn("bot-m1")).outcome == "finished"
