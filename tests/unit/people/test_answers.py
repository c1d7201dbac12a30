"""Answers of scripted agents, or the reasons for none, with the real hub in memory."""

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
    """An agent that handles its wakes step by step."""

    def __init__(self, client: Client):
        self.client, self.turn = client, ""
        self.message: Message | None = None

    async def woken(self) -> None:
        async for item in self.client.events():
            if isinstance(item, Event) and item.wake is not None:
                self.turn, self.message = item.wake.turn, item.message
                return

    async def begin(self) -> None:
        """Begins the turn of the next wake."""
        await self.woken()
        assert self.message is not None
        messages, thread = (self.message.id,), self.message.thread_id
        start = TurnStart(id=self.turn, thread_id=thread, messages=messages)
        await self.client.call("begin_turn", start=start)

    async def sends(self, text: str) -> None:
        assert self.message is not None
        thread = self.message.thread_id
        await self.client.call("send_text_message", to=thread, text=text, cause=self.turn)

    async def ends(self, outcome: Outcome = "finished", reason: str = "") -> None:
        end = TurnEnd(id=self.turn, outcome=outcome, reason=reason)
        await self.client.call("end_turn", end=end)


class Room:
    """Ann and her network."""

    def __init__(self, network: LocalNetwork, ann: Client):
        self.network, self.ann = network, ann
        self.received: list[str] = []

    async def bot(self, name: str = "bot") -> Bot:
        return Bot(await self.network.join(name, turns=True))

    async def asks(self, to: str = "bot", operation: str = "send_text_message") -> Answers:
        where = {"to": to} if operation == "send_text_message" else {"channel": to}
        value = await self.ann.call(operation, text="2+2?", **where)
        return Answers(
            self.ann,
            SendResult.model_validate(value),
            answered=lambda message: self.received.append(message.text),
            writing=lambda agent, text: self.received.append(f"{agent} writes {text}"),
        )

    async def waits(self, answers: Answers, *work: Awaitable[object]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(answers.wait(), *work)


@asynccontextmanager
async def open_room() -> AsyncIterator[Room]:
    quick = ClientOptions(backoff=Backoff(first_s=0.001, most_s=0.005))
    async with LocalNetwork(FILE) as network:
        way = MemoryTransport(network.hub.gateway.attach)
        async with Client(way, "ann", "human", cursor="latest", options=quick) as ann:
            yield Room(network, ann)


async def test_every_message_of_the_turn_is_an_answer_until_the_turn_ends() -> None:
    async with open_room() as room:
        bot = await room.bot()
        answers = await room.asks()

        async def work() -> None:
            await bot.begin()
            partial: JsonValue = {"turn": bot.turn, "step": 1, "text": "let"}
            await bot.client.signal("partial", "dm.ann.bot", partial)
            await bot.sends("let me see")
            await room.ann.call("read_message", id="m2")  # after the first answer she still waits
            await bot.sends("4")
            await bot.ends()

        await room.waits(answers, work())
        assert room.received == ["bot writes let", "let me see", "4"]
        assert (answers.reason, answers.receipts["bot"].outcome) == ("", "finished")
        threads = ThreadList.model_validate(await room.ann.call("list_threads")).threads
        assert [t.read for t in threads if t.id == "dm.ann.bot"] == [3], "it is marked as read"


async def test_quick_replies_below_the_question_are_all_answers_in_order() -> None:
    async with open_room() as room:
        bot = await room.bot()
        answers = await room.asks()

        async def work() -> None:
            await bot.begin()
            for text in ("first", "second"):
                message = {"message_id": answers.question, "text": text, "cause": bot.turn}
                await bot.client.call("reply", **message)
            await bot.sends("last")
            await bot.ends()

        await work()  # all of it, before she reads
        await room.waits(answers)
        assert room.received == ["first", "second", "last"]


async def test_what_a_helper_of_the_agent_posts_below_the_question_is_no_answer() -> None:
    async with open_room() as room:
        bot = await room.bot()
        answers = await room.asks()

        async def work() -> None:
            await bot.begin()
            goal = {"message_id": answers.question, "text": "helper 1, goal"}
            await bot.client.call("reply", **goal, cause=answers.question)
            await bot.ends("model_error", "HTTP 500")

        await room.waits(answers, work())
        assert room.received == []
        assert "HTTP 500" in answers.reason


async def test_a_message_of_a_later_turn_after_a_delegation_is_an_answer() -> None:
    async with open_room() as room:
        bot, calc = await room.bot(), await room.bot("calc")
        answers = await room.asks()

        async def work() -> None:
            await bot.begin()
            await bot.sends("I ask calc")
            await bot.client.call("delegate", to="calc", task="2+2", cause=bot.turn)
            await bot.ends()
            await calc.begin()
            assert calc.message is not None
            task = calc.message.id
            report = calc.client.call
            await report("report", request=task, status="result", text="4", cause=calc.turn)
            await calc.ends()
            await bot.begin()
            await bot.client.call("send_text_message", to="ann", text="it is 4", cause=bot.turn)
            await bot.ends()

        await room.waits(answers, work())
        assert room.received == ["I ask calc", "it is 4"]


async def test_a_failed_answer_is_not_awaited_while_its_helper_still_works() -> None:
    async with open_room() as room:
        bot, calc = await room.bot(), await room.bot("calc")
        answers = await room.asks()

        async def work() -> None:
            await bot.begin()
            await bot.client.call("delegate", to="calc", task="2+2", cause=bot.turn)
            await calc.begin()  # and does not end
            assert calc.message is not None
            failure = {"request": calc.message.id, "status": "failed", "text": "too hard"}
            await calc.client.call("report", **failure, cause=calc.turn)
            await bot.ends("handler_error", "calc has failed")
            await bot.begin()
            await bot.ends()

        await room.waits(answers, work())
        assert "calc has failed" in answers.reason


async def test_delegated_work_that_waits_for_approval_is_not_awaited() -> None:
    async with open_room() as room:
        bot, calc = await room.bot(), await room.bot("calc")
        answers = await room.asks()

        async def work() -> None:
            await bot.begin()
            await bot.client.call("delegate", to="calc", task="2+2", cause=bot.turn)
            await bot.ends()
            await calc.begin()
            await calc.client.call(
                "request_approval", turn=calc.turn, call="1.c", tool="pay", arguments={}
            )

        await room.waits(answers, work())
        assert "calc asks to run pay" in answers.reason


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


async def test_a_missing_answer_is_explained(snapshot: SnapshotAssertion) -> None:
    reasons = {}
    for name, ending in NO_ANSWER.items():
        async with open_room() as room:
            bot = await room.bot()
            answers = await room.asks()

            async def work(bot: Bot = bot, room: Room = room, ending: Ending = ending) -> None:
                await bot.begin()
                await ending(bot, room.ann)

            await room.waits(answers, work())
            assert room.received == []
            value = await room.ann.call("list_approvals")
            reasons[name] = settled(answers.reason)
            for approval in Approvals.model_validate(value).approvals:
                reasons[name] = reasons[name].replace(approval.id, "<id>")
    async with open_room() as room:
        answers = await room.asks("desk", "post_to_channel")
        await room.waits(answers)
        reasons["no agent woken"] = answers.reason
        await room.bot()
        await room.ann.call("take_over", agent="bot", minutes=1)
        reasons["taken over"] = (await room.asks()).reason
    assert reasons == snapshot


async def test_an_answer_is_not_lost_with_the_connection() -> None:
    async with open_room() as room:
        bot = await room.bot()
        answers = await room.asks()

        async def work() -> None:
            await bot.begin()
            for session in room.network.hub.gateway.sessions():
                if session.participant == "ann":
                    session.close(CloseCode.SLOW, "too slow")
            await bot.sends("4")
            await bot.ends()

        await room.waits(answers, work())
        assert (room.received, answers.reason) == (["4"], "")


async def test_only_the_woken_agents_are_awaited() -> None:
    async with open_room() as room:
        bots = [await room.bot(name) for name in ("bot", "eve", "raw")]
        value = await room.ann.call("post_to_channel", channel="desk", text="@bot @eve 2+2?")
        answers = Answers(room.ann, SendResult.model_validate(value))

        async def work(bot: Bot, text: str) -> None:
            await bot.begin()
            await bot.sends(text)
            await bot.ends()

        async def chatter(bot: Bot) -> None:
            await bot.client.call("post_to_channel", channel="desk", text="hello everybody")

        await room.waits(answers, chatter(bots[2]), work(bots[0], "4"), work(bots[1], "four"))
        assert sorted(message.text for message in answers.messages) == ["4", "four"]


async def test_the_first_message_of_an_agent_without_turn_records_is_its_answer() -> None:
    async with open_room() as room:
        raw = await room.network.join("raw")
        answers = await room.asks("raw")

        async def work() -> None:
            async for item in raw.events():
                if isinstance(item, Event):
                    await raw.ack(item.seq)
                    await raw.call("send_text_message", to="ann", text="4")
                    return

        await room.waits(answers, work())
        assert [message.text for message in answers.messages] == ["4"]


@pytest.mark.parametrize("begun", [True, False])
async def test_stopping_answers_cancels_the_turn(begun: bool) -> None:
    async with open_room() as room:
        bot = await room.bot()
        answers = await room.asks()
        await (bot.begin() if begun else bot.woken())
        await answers.stop()
        await room.waits(answers)
        assert answers.receipts["bot"].outcome == "cancelled"


async def test_a_question_to_an_agent_that_turns_out_not_to_run_ends_with_the_reason() -> None:
    async with open_room() as room:
        async with Client(MemoryTransport(room.network.hub.gateway.attach), "bot", "agent"):
            pass
        answers = await room.asks()
        launcher = room.network.hub.services.launcher

        async def gives_up() -> None:
            launcher.given_up(["bot"], "is not running: it crashed")

        await room.waits(answers, gives_up())
        assert answers.reason.startswith("bot is not running: it crashed. Your message stays")
