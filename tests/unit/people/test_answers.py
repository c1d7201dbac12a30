"""Who asks agents is told what came of it, in memory: the real hub, agents that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.client import Backoff, Client, ClientOptions, MemoryTransport
from hubbub.config.models import NetworkFile
from hubbub.people.answers import Answers
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.control import Approvals
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import SendResult, ThreadList
from hubbub.protocol.turns import Outcome, TurnEnd, TurnStart
from hubbub.testing.network import LocalNetwork
from tests.unit.cli.conftest import settled

DEADLINE_S = 30.0
FILE = NetworkFile.model_validate({
    "network": {"auth": "open"}, "channels": {"desk": {"members": "all"}},
    "humans": {"ann": {"roles": ["owner"]}},
})  # fmt: skip


class Bot:
    """An agent that does with each wake what it is told to."""

    def __init__(self, client: Client):
        self.client, self.turn = client, ""
        self.message: Message | None = None

    async def woken(self) -> None:
        async for item in self.client.events():
            if isinstance(item, Event) and item.wake is not None:
                self.turn, self.message = item.wake.turn, item.message
                return

    async def begin(self) -> None:
        assert self.message is not None
        messages, thread = (self.message.id,), self.message.thread_id
        start = TurnStart(id=self.turn, thread_id=thread, messages=messages)
        await self.client.call("begin_turn", start=start)

    async def says(self, text: str) -> None:
        assert self.message is not None
        thread = self.message.thread_id
        await self.client.call("send_text_message", to=thread, text=text, cause=self.turn)

    async def ends(self, outcome: Outcome = "finished", reason: str = "") -> None:
        end = TurnEnd(id=self.turn, outcome=outcome, reason=reason)
        await self.client.call("end_turn", end=end)


class Room:
    """Ann, who asks, and her network."""

    def __init__(self, network: LocalNetwork, ann: Client):
        self.network, self.ann = network, ann
        self.heard: list[str] = []

    async def bot(self, name: str = "bot") -> Bot:
        return Bot(await self.network.join(name, turns=True))

    async def asks(self, to: str = "bot", operation: str = "send_text_message") -> Answers:
        where = {"to": to} if operation == "send_text_message" else {"channel": to}
        value = await self.ann.call(operation, text="2+2?", **where)
        return Answers(
            self.ann,
            SendResult.model_validate(value),
            answered=lambda message: self.heard.append(message.text),
            writing=lambda agent, text: self.heard.append(f"{agent} writes {text}"),
        )

    async def waits(self, answers: Answers, *work: Awaitable[object]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(answers.wait(), *work)


@asynccontextmanager
async def room() -> AsyncIterator[Room]:
    quick = ClientOptions(backoff=Backoff(first_s=0.001, most_s=0.005))
    async with LocalNetwork(FILE) as network:
        way = MemoryTransport(network.hub.gateway.attach)
        async with Client(way, "ann", "human", cursor="latest", options=quick) as ann:
            yield Room(network, ann)


async def test_all_that_the_turn_says_is_an_answer_and_its_end_is_the_end() -> None:
    async with room() as here:
        bot = await here.bot()
        answers = await here.asks()

        async def work() -> None:
            await bot.woken()
            await bot.begin()
            partial: JsonValue = {"turn": bot.turn, "step": 1, "text": "let"}
            await bot.client.signal("partial", "dm.ann.bot", partial)
            await bot.says("let me see")
            await here.ann.call("read_message", id="m2")  # the first answer is no reason to leave
            await bot.says("4")
            await bot.ends()

        await here.waits(answers, work())
        assert here.heard == ["bot writes let", "let me see", "4"]
        assert (answers.reason, answers.receipts["bot"].outcome) == ("", "finished")
        threads = ThreadList.model_validate(await here.ann.call("list_threads")).threads
        assert [t.read for t in threads if t.id == "dm.ann.bot"] == [3], "it has been read"


async def test_what_an_agent_says_in_a_later_turn_when_it_has_asked_another_is_an_answer() -> None:
    async with room() as here:
        bot, calc = await here.bot(), await here.bot("calc")
        answers = await here.asks()

        async def work() -> None:
            await bot.woken()
            await bot.begin()
            await bot.says("I ask calc")
            await bot.client.call("delegate", to="calc", task="2+2", cause=bot.turn)
            await bot.ends()
            await calc.woken()
            await calc.begin()
            assert calc.message is not None
            task = calc.message.id
            report = calc.client.call
            await report("report", request=task, status="result", text="4", cause=calc.turn)
            await calc.ends()
            await bot.woken()
            await bot.begin()
            await bot.client.call("send_text_message", to="ann", text="it is 4", cause=bot.turn)
            await bot.ends()

        await here.waits(answers, work())
        assert here.heard == ["I ask calc", "it is 4"]


Ending = Callable[[Bot, Client], Awaitable[object]]


async def _approval(bot: Bot, ann: Client) -> None:
    await bot.client.call(
        "request_approval", turn=bot.turn, call="1.c", tool="refund", arguments={"cents": 700}
    )


NO_ANSWER: dict[str, Ending] = {
    "silent": lambda bot, ann: bot.ends(reason="no need"),
    "error": lambda bot, ann: bot.ends("model_error", "HTTP 500"),
    "stopped": lambda bot, ann: ann.call("stop", scope="turn", target=bot.turn, reason="enough"),
    "approval": _approval,
}


async def test_without_an_answer_the_reason_is_told(snapshot: SnapshotAssertion) -> None:
    told = {}
    for name, ending in NO_ANSWER.items():
        async with room() as here:
            bot = await here.bot()
            answers = await here.asks()

            async def work(bot: Bot = bot, here: Room = here, ending: Ending = ending) -> None:
                await bot.woken()
                await bot.begin()
                await ending(bot, here.ann)

            await here.waits(answers, work())
            assert here.heard == []
            value = await here.ann.call("list_approvals")
            told[name] = settled(answers.reason)
            for approval in Approvals.model_validate(value).approvals:
                told[name] = told[name].replace(approval.id, "<id>")
    async with room() as here:
        answers = await here.asks("desk", "post_to_channel")
        await here.waits(answers)
        told["nobody woken"] = answers.reason
    assert told == snapshot


async def test_an_answer_is_not_lost_with_the_connection() -> None:
    async with room() as here:
        bot = await here.bot()
        answers = await here.asks()

        async def work() -> None:
            await bot.woken()
            await bot.begin()
            for session in here.network.hub.gateway.sessions():
                if session.participant == "ann":
                    session.close(CloseCode.SLOW, "too slow")
            await bot.says("4")
            await bot.ends()

        await here.waits(answers, work())
        assert (here.heard, answers.reason) == (["4"], "")


async def test_all_agents_that_were_woken_are_waited_for_and_others_are_not() -> None:
    async with room() as here:
        bots = [await here.bot(name) for name in ("bot", "eve", "raw")]
        value = await here.ann.call("post_to_channel", channel="desk", text="@bot @eve 2+2?")
        answers = Answers(here.ann, SendResult.model_validate(value))

        async def work(bot: Bot, text: str) -> None:
            await bot.woken()
            await bot.begin()
            await bot.says(text)
            await bot.ends()

        async def chatter(bot: Bot) -> None:
            await bot.client.call("post_to_channel", channel="desk", text="hello everybody")

        await here.waits(answers, chatter(bots[2]), work(bots[0], "4"), work(bots[1], "four"))
        assert sorted(message.text for message in answers.messages) == ["4", "four"]


async def test_an_agent_without_records_has_answered_when_it_has_spoken() -> None:
    async with room() as here:
        raw = await here.network.join("raw")
        answers = await here.asks("raw")

        async def work() -> None:
            async for item in raw.events():
                if isinstance(item, Event):
                    await raw.ack(item.seq)
                    await raw.call("send_text_message", to="ann", text="4")
                    return

        await here.waits(answers, work())
        assert [message.text for message in answers.messages] == ["4"]


@pytest.mark.parametrize("begun", [True, False])
async def test_what_is_not_wanted_any_more_is_stopped(begun: bool) -> None:
    async with room() as here:
        bot = await here.bot()
        answers = await here.asks()
        await bot.woken()
        if begun:
            await bot.begin()
        await answers.stop()
        await here.waits(answers)
        assert answers.receipts["bot"].outcome == "cancelled"
