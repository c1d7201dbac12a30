"""What running agents see of messages that are edited and deleted, and how they edit their own."""

from __future__ import annotations

import pytest

from hubbub import Agent, Message
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.threads.mod import ThreadsMod
from hubbub.mods.threads.settings import ThreadsConfig
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.agent_rig import Gate, Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks, config, eventually

NETWORKS = Networks(sockets=False)
FILE = config(channels={"desk": {"members": "all"}})


def mod() -> EditsMod:
    return EditsMod(EditsConfig())


def messages_in(prompt: str) -> list[str]:
    return [line.strip() for line in prompt.splitlines() if "<content>" in line]


class Reader(Agent):
    """Answers with all that it would see of the thread; waits at the gate before."""

    def __init__(self, gate: Gate | None = None):
        super().__init__()
        self._gate = gate
        self.heard: list[str] = []

    async def on_direct(self, message: Message) -> str:
        if self._gate is not None and message.text == "wait":
            await self._gate.wait()
        assert self._link is not None
        thread = self._link._inbox.thread(message.thread_id)
        assert thread is not None
        said = [m.text or f"({m.amended})" for m in thread.messages if m.seq < message.seq]
        return " | ".join([*said, f"> {message.text}"])

    async def on_channel_message(self, message: Message) -> None:
        self.heard.append(message.text)


async def answer(net: Rig, turn: str) -> str:
    """What the agent has said in a turn."""
    record = await net.turn(turn)
    message = await net.network.peers[0].call("read_message", id=record.sent[-1])
    return str(message["content"])


@pytest.mark.behaviour("M-90")
async def test_a_prompt_has_the_latest_text_and_room_for_as_many_messages_as_before() -> None:
    script = Script(answers=[says(finish())] * 2)
    async with ModelServer(script) as model, rig(NETWORKS, FILE, mods=[mod()]) as net:
        ann = await net.person()
        await net.llm("bot", model, history={"messages": 3})
        for n in range(4):
            await ann.call("post_to_channel", channel="desk", text=f"old {n}")
        for n in (2, 3, 4):
            await ann.call("edit_message", message_id=f"m{n}", text=f"new {n - 1}")
        await ann.call("delete_message", message_id="m3")
        told = await ann.say("bot", "hello")
        await net.turn(f"bot-{told['id']}")
        lines = messages_in(model.requests[0].body.messages[1].text)
        assert ["new 1" in lines[0], "new 3" in lines[2], "hello" in lines[3]] == [True] * 3
        assert 'deleted="true"' in lines[1]
        assert "new 2" not in "".join(lines)
        assert len(lines) == 4


@pytest.mark.behaviour("M-91")
async def test_a_message_edited_before_its_turn_begins_comes_in_edited() -> None:
    gate = Gate()
    async with rig(NETWORKS, FILE, mods=[mod()]) as net:
        ann = await net.person()
        await net.python("bot", Reader(gate))
        await ann.say("bot", "wait")
        await gate.until_reached()
        asked = (await ann.say("bot", "what is 1 + 1?"))["id"]
        await ann.call("edit_message", message_id=asked, text="what is 2 + 2?")
        gate.open.set()
        assert await answer(net, f"bot-{asked}") == "wait | > what is 2 + 2?"


@pytest.mark.behaviour("M-91")
async def test_an_agent_that_was_away_finds_the_latest() -> None:
    async with rig(NETWORKS, FILE, mods=[mod()]) as net:
        ann = await net.person()
        await net.python("bot", Reader())
        await ann.say("bot", "one")
        await net.turn("bot-m1")
        await net.kill("bot")
        await ann.call("edit_message", message_id="m1", text="ONE")
        asked = (await ann.say("bot", "two"))["id"]
        await ann.call("edit_message", message_id=asked, text="TWO")
        await net.python("bot", Reader())
        assert await answer(net, f"bot-{asked}") == "ONE | > one | > TWO"


@pytest.mark.behaviour("M-91")
async def test_an_agent_whose_connection_was_cut_finds_the_latest() -> None:
    gate = Gate()
    async with rig(NETWORKS, FILE, mods=[mod()]) as net:
        ann = await net.person()
        await net.python("bot", Reader(gate))
        await ann.say("bot", "wait")
        await gate.until_reached()
        asked = (await ann.say("bot", "two"))["id"]
        await net.cut("bot")
        await ann.call("edit_message", message_id=asked, text="TWO")
        gate.open.set()
        assert (await answer(net, f"bot-{asked}")).endswith("> TWO")


@pytest.mark.behaviour("M-91")
async def test_a_deleted_question_comes_in_as_deleted() -> None:
    script = Script(answers=[says(finish())] * 2)
    async with ModelServer(script) as model, rig(NETWORKS, FILE, mods=[mod()]) as net:
        ann = await net.person()
        await net.python("bot", Reader())
        await net.kill("bot")
        asked = (await ann.say("bot", "buy 1000 of them"))["id"]
        await ann.call("delete_message", message_id=asked)
        await net.llm("bot", model)
        await net.turn(f"bot-{asked}")
        prompt = model.requests[0].body.messages[1].text
        assert "buy" not in prompt
        assert 'deleted="true"' in prompt


@pytest.mark.behaviour("M-92")
async def test_an_agent_edits_what_it_has_said_and_knows_it_so() -> None:
    script = Script(
        answers=[
            says(send("ann", "the sum is 5")),
            says(call("edit_message", message_id="m2", text="the sum is 4"), finish()),
            says(finish()),
        ]
    )
    async with ModelServer(script) as model, rig(NETWORKS, FILE, mods=[mod()]) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "what is 2 + 2?")
        await net.turn("bot-m1")
        first, second = await ann.take(2)
        assert first["message"]["content"] == "the sum is 5"
        assert second["message"]["amends"] == {"message_id": "m2", "kind": "edited"}
        assert second["message"]["cause_id"] == "bot-m1"
        again = await ann.say("bot", "thanks")
        await net.turn(f"bot-{again['id']}")
        lines = messages_in(model.requests[2].body.messages[1].text)
        assert ["the sum is 4" in line for line in lines] == [False, True, False]
        assert "the sum is 5" not in "".join(lines)


@pytest.mark.behaviour("M-92")
async def test_who_only_listens_does_not_hear_an_edit_as_a_message() -> None:
    async with rig(NETWORKS, FILE, mods=[mod()]) as net:
        ann, reader = await net.person(), Reader()
        await net.python("bot", reader)
        await ann.call("post_to_channel", channel="desk", text="one")
        await ann.call("edit_message", message_id="m1", text="ONE")
        asked = await ann.say("bot", "two")
        await net.turn(f"bot-{asked['id']}")
        assert reader.heard == ["one"]


@pytest.mark.behaviour("M-92")
async def test_an_agent_that_answers_several_quotes_them_as_they_are_by_now() -> None:
    gate, answering = Gate(), Gate()

    class Slow(Agent):
        async def on_direct(self, message: Message) -> str:
            if message.text == "wait":
                await gate.wait()
            elif message.id == "m2":
                await answering.wait()
            return f"re: {message.id}"

    mods = [mod(), ThreadsMod(ThreadsConfig())]
    async with rig(NETWORKS, FILE, mods=mods) as net:
        ann = await net.person()
        await net.python("bot", Slow())
        await ann.say("bot", "wait")
        await gate.until_reached()
        for text in ("one", "two", "three"):
            await ann.say("bot", text)
        gate.open.set()
        await answering.until_reached()
        await ann.call("edit_message", message_id="m2", text="ONE")
        await ann.call("edit_message", message_id="m3", text="TWO")
        last = (await ann.call("delete_message", message_id="m4"))["seq"]
        bot = net.clients["bot"]
        await eventually(lambda: bot.cursor is not None and bot.cursor.seq >= last)
        answering.open.set()
        await net.turn("bot-m2")
        said = [event["message"] for event in await ann.sync()][1:]
        quotes = {each["content"]: each.get("quote", {}).get("text") for each in said}
        assert quotes == {"re: m2": "ONE", "re: m3": "TWO", "re: m4": None}
