"""What an agent knows and does after a lost connection, a busy hub, or a long absence."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hubbub import Agent, Message
from hubbub.config.models import AgentConfig
from hubbub.errors import ConfigError
from hubbub.protocol.codes import CloseCode
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.agent_rig import finish, rig, says, send
from tests.interaction.peers import Networks, config, soon

DESK = config(channels={"desk": {"members": "all"}})


class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return f"re: {message.text}"

    async def on_mention(self, message: Message) -> str:
        return f"re: {message.text}"


class Historian(Agent):
    """Answers with what it would see of the thread."""

    async def on_direct(self, message: Message) -> str:
        assert self._link is not None
        thread = self._link._inbox.thread(message.thread_id)
        assert thread is not None
        return " | ".join(m.text for m in thread.messages)


class TestOwnMessages:
    async def test_an_agent_knows_what_it_had_said_before_it_died(
        self, in_memory: Networks
    ) -> None:
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Historian())
            await ann.say("bot", "one")
            await net.turn("bot-m1")
            await net.kill("bot")
            await net.python("bot", Historian())
            await ann.say("bot", "two")
            await ann.event()
            assert (await ann.event())["message"]["content"] == "one | one | two"

    async def test_it_knows_it_as_well_when_more_has_come_meanwhile(
        self, in_memory: Networks
    ) -> None:
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Historian())
            await ann.say("bot", "one")
            await net.turn("bot-m1")
            await net.kill("bot")
            await ann.say("bot", "two")
            await net.python("bot", Historian())
            await ann.event()
            assert (await ann.event())["message"]["content"] == "one | one | two"

    async def test_a_model_that_returns_sees_its_own_words_in_the_prompt(
        self, in_memory: Networks
    ) -> None:
        script = Script(
            answers=[
                *(says(send("ann", "my first words"), finish()),) * 1,
                says(send("ann", "x"), finish()),
            ]
        )
        async with ModelServer(script) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "one")
            await net.turn("bot-m1")
            await net.kill("bot")
            await ann.say("bot", "two")
            await net.llm("bot", model)
            await net.turn("bot-m3")
            history = model.requests[1].body.messages[1].text.partition("<current_interaction>")[0]
            assert history.index(">one<") < history.index(">my first words<")


class TestAbsence:
    async def test_each_thread_is_woken_once_and_none_before_all_has_come(
        self, networks: Networks
    ) -> None:
        async with rig(networks, DESK) as net:
            ann, ben = await net.person("ann"), await net.person("ben")
            await net.python("bot", Echo())
            await net.kill("bot")
            for n in range(12):
                await ann.say("bot", f"a{n}")
                await ben.say("bot", f"b{n}")
            await ann.call("post_to_channel", channel="desk", text="nothing for the bot")
            await net.python("bot", Echo())
            turns = [await net.turn("bot-m1"), await net.turn("bot-m2")]
            assert [len(t.start.messages) for t in turns] == [12, 12]

    async def test_a_greeting_is_said_when_the_agent_joins(self, in_memory: Networks) -> None:
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Echo(), greet="good morning")
            assert (await ann.event())["message"]["content"] == "good morning"

    async def test_a_greeting_that_stands_there_already_is_repeated_in_short(
        self, in_memory: Networks
    ) -> None:
        async with rig(in_memory) as net:
            ann = await net.person()
            for text in ("good morning", "bot is here again.", "bot is here again."):
                await net.python("bot", Echo(), greet="good morning")
                assert (await ann.event())["message"]["content"] == text
                await net.kill("bot")
            for n in range(20):
                await ann.call("broadcast_text_message", text=f"news {n}")
            await net.python("bot", Echo(), greet="good morning")
            assert (await ann.event())["message"]["content"] == "good morning"

    async def test_an_agent_whose_class_raises_is_told_by_file_and_line(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        (tmp_path / "unlucky.py").write_text(
            "from hubbub import Agent\n\n"
            "class Unlucky(Agent):\n"
            "    def __init__(self):\n"
            "        raise RuntimeError('no luck')\n"
        )
        config = AgentConfig.model_validate(
            {"kind": "python", "class": "unlucky.py:Unlucky", "greet": "good morning"}
        )
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.configured("bot", config, tmp_path, {})
            error = await net.death("bot")
            assert isinstance(error, ConfigError)
            assert "unlucky.py:5: Unlucky() raises RuntimeError: no luck" in str(error)
            page = await ann.call("read_thread", thread="broadcast")
            assert page["messages"] == []  # it did not say good morning and die

    async def test_an_agent_of_a_config_is_loaded_and_run(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        (tmp_path / "shouter.py").write_text(
            "from hubbub import Agent, Message\n\n"
            "class Shouter(Agent):\n"
            "    async def on_direct(self, message: Message) -> str:\n"
            "        return message.text.upper()\n"
        )
        agent = AgentConfig.model_validate({"kind": "python", "class": "shouter.py:Shouter"})
        async with rig(in_memory) as net:
            ann = await net.person()
            await net.configured("shouter", agent, tmp_path, {})
            await ann.say("shouter", "quiet")
            assert (await ann.event())["message"]["content"] == "QUIET"


class TestConnection:
    async def test_a_turn_goes_on_over_a_lost_connection(self, on_sockets: Networks) -> None:
        reached, go = asyncio.Event(), asyncio.Event()

        class Slow(Agent):
            async def on_direct(self, message: Message) -> str:
                reached.set()
                await go.wait()
                return "still here"

        async with rig(on_sockets) as net:
            ann = await net.person()
            await net.python("slow", Slow())
            await ann.say("slow", "go")
            async with soon():
                await reached.wait()
            for session in list(net.network.hub.fanout.of("slow")):
                session.close(CloseCode.INTERNAL, "a test")
            go.set()
            assert (await ann.event())["message"]["content"] == "still here"
            turn = await net.turn("slow-m1")
            assert (turn.attempts, turn.sent) == (1, ("m2",))
            await ann.say("slow", "again")
            assert (await ann.event())["message"]["content"] == "still here"

    async def test_a_hub_that_wants_less_gets_the_records_later(self, in_memory: Networks) -> None:
        few = config(network={"limits": {"calls_per_second": 50, "burst": 2}})
        async with rig(in_memory, few) as net:
            await net.python("bot", Echo())
            for n in range(3):
                person = await net.person(f"p{n}")  # each has a rate of their own, the bot but one
                await person.say("bot", f"{n}")
                await person.event()
            records = [await net.turn(f"bot-m{n}") for n in (1, 3, 5)]
            assert [r.end.outcome for r in records if r.end] == ["finished"] * 3
            assert [r.sent for r in records] == [("m2",), ("m4",), ("m6",)]
