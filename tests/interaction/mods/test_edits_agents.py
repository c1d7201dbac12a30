"""Edited and deleted messages as agents see them, and agents' own edits."""

from __future__ import annotations

import pytest

from hubbub import Agent, Message
from hubbub.mods.edits.mod import EditsConfig, EditsMod
from hubbub.mods.threads.mod import ThreadsConfig, ThreadsMod
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.agent_harness import Gate, Harness, call, finish, harness, says, send
from tests.interaction.peers import Networks, config, eventually

NETWORKS = Networks(sockets=False)
FILE = config(channels={"desk": {"members": "all"}})


def mod() -> EditsMod:
    return EditsMod(EditsConfig())


def messages_in(prompt: str) -> list[str]:
    return [line.strip() for line in prompt.splitlines() if "<content>" in line]


class Reader(Agent):
    """Answers with the thread as it sees it, after waiting at the gate if asked to."""

    def __init__(self, gate: Gate | None = None):
        super().__init__()
        self._gate = gate
        self.received: list[str] = []

    async def on_direct(self, message: Message) -> str:
        if self._gate is not None and message.text == "wait":
            await self._gate.wait()
        assert self._link is not None
        thread = self._link._inbox.thread(message.thread_id)
        assert thread is not None
        earlier = [m.text or f"({m.amended})" for m in thread.messages if m.seq < message.seq]
        return " | ".join([*earlier, f"> {message.text}"])

    async def on_channel_message(self, message: Message) -> None:
        self.received.append(message.text)


async def answer(net: Harness, turn: str) -> str:
    """The last message of the agent in a turn."""
    record = await net.turn(turn)
    message = await net.network.peers[0].call("read_message", id=record.sent[-1])
    return str(message["content"])


@pytest.mark.behaviour("M-90", "M-91")
async def test_a_prompt_has_the_latest_text_and_edits_take_no_room() -> None:
    script = Script(answers=[says(finish())] * 2)
    async with ModelServer(script) as model, harness(NETWORKS, FILE, mods=[mod()]) as net:
        ann = await net.person()
        await net.python("bot", Reader())
        await net.kill("bot")
        for n in range(4):
            await ann.call("post_to_channel", channel="desk", text=f"old {n}")
        for n in (2, 3, 4):
            await ann.call("edit_message", message_id=f"m{n}", text=f"new {n - 1}")
        await ann.call("delete_message", message_id="m3")
        sent = await ann.say("bot", "buy 1000 of them")
        await ann.call("delete_message", message_id=sent["id"])
        await net.llm("bot", model, history={"messages": 3})
        await net.turn(f"bot-{sent['id']}")
        prompt = model.requests[0].body.messages[1].text
        lines = messages_in(prompt)
        assert ["new 1" in lines[0], "new 3" in lines[2]] == [True] * 2
        assert 'deleted="true"' in lines[1]
        assert ("new 2" in prompt, "buy" in prompt) == (False, False)
        assert ('deleted="true"' in lines[3], len(lines)) == (True, 4)


@pytest.mark.behaviour("M-91")
async def test_a_busy_absent_or_disconnected_agent_sees_the_latest_text() -> None:
    gate = Gate()
    async with harness(NETWORKS, FILE, mods=[mod()]) as net:
        ann = await net.person()
        await net.python("bot", Reader(gate))
        await ann.say("bot", "wait")
        await gate.until_reached()
        asked = (await ann.say("bot", "one"))["id"]
        cut = (await ann.say("bot", "two"))["id"]
        await ann.call("edit_message", message_id=asked, text="ONE")
        await net.cut("bot")
        await ann.call("edit_message", message_id=cut, text="TWO")
        gate.open.set()
        assert await answer(net, f"bot-{asked}") == "wait | ONE | > TWO"
        await net.kill("bot")
        await ann.call("edit_message", message_id=cut, text="Two!")
        away = (await ann.say("bot", "three"))["id"]
        await ann.call("edit_message", message_id=away, text="THREE")
        await net.python("bot", Reader())
        last = await answer(net, f"bot-{away}")
        assert last.startswith("wait | ONE | Two! | ")
        assert last.endswith("> THREE")


@pytest.mark.behaviour("M-92")
async def test_an_agent_can_edit_its_message_and_sees_the_new_text() -> None:
    script = Script(
        answers=[
            says(send("ann", "the sum is 5")),
            says(call("edit_message", message_id="m2", text="the sum is 4"), finish()),
            says(finish()),
        ]
    )
    async with ModelServer(script) as model, harness(NETWORKS, FILE, mods=[mod()]) as net:
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
async def test_listeners_receive_no_edit_and_answers_quote_the_latest_text() -> None:
    gate, answering = Gate(), Gate()

    class Slow(Reader):
        async def on_direct(self, message: Message) -> str:
            if message.text == "wait":
                await gate.wait()
            elif message.text == "one":
                await answering.wait()
            return f"re: {message.id}"

    mods = [mod(), ThreadsMod(ThreadsConfig())]
    async with harness(NETWORKS, FILE, mods=mods) as net:
        ann, reader = await net.person(), Slow()
        await net.python("bot", reader)
        await ann.call("post_to_channel", channel="desk", text="one")
        await ann.call("edit_message", message_id="m1", text="ONE")
        await ann.say("bot", "wait")
        await gate.until_reached()
        assert reader.received == ["one"]
        ids = [(await ann.say("bot", text))["id"] for text in ("one", "two", "three")]
        gate.open.set()
        await answering.until_reached()
        await ann.call("edit_message", message_id=ids[0], text="ONE")
        await ann.call("edit_message", message_id=ids[1], text="TWO")
        last = (await ann.call("delete_message", message_id=ids[2]))["seq"]
        bot = net.clients["bot"]
        await eventually(lambda: bot.cursor is not None and bot.cursor.seq >= last)
        answering.open.set()
        await net.turn(f"bot-{ids[0]}")
        answers = [event["message"] for event in await ann.sync()][1:]
        quotes = {each["content"]: each.get("quote", {}).get("text") for each in answers}
        texts = ("ONE", "TWO", None)
        assert quotes == {f"re: {id}": text for id, text in zip(ids, texts, strict=True)}
