"""A person who writes to an agent gets an answer or a notice, for every outcome of a turn.

Turns are generated: the model's answers, and what interferes with the turn before the first of
them. In the end, the records of the hub must show an outcome for each message of the person.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hubbub.network.records import TurnEnded
from hubbub.protocol.turns import Turn, TurnEnd, TurnStart
from hubbub.testing.model_script import AnyAnswer, Breakdown, ScriptedUsage, ScriptRule, When
from hubbub.testing.model_server import ModelServer, Refusal, Script, ScriptedAnswer
from tests.interaction.agent_harness import Harness, call, finish, harness, notice, says, send
from tests.interaction.peers import Networks, Peer, config, soon

SEEDS, TURNS, LIVES = 2, 10, 3
"""Generated runs, messages of the person in each life of a hub, and lives of the hub."""
LOOSE = {
    "limits": {"burst": 100_000, "calls_per_second": 100_000},
    "breaker": {"enabled": False},
    "budgets": {"tokens": 300_000},
}

ANSWERS: dict[str, list[AnyAnswer]] = {
    "answers": [says(send("ann", "here you are"), finish())],
    "answers late": [says(call("list_channels")), says(send("ann", "at last")), says(finish())],
    "says nothing": [says(finish("not for me")), says(finish("really not"))],
    "calls no tool": [ScriptedAnswer(text="hm", ignore_tool_choice=True)],
    "goes in circles": [says(call("list_channels"))],
    "is refused": [Refusal(status=400, message="no")],
    "breaks off": [Breakdown(breakdown="reset")],
    "spends it all": [
        says(call("list_channels"), usage=ScriptedUsage(prompt_tokens=400_000, completion_tokens=1))
    ],
}
"""The model's answers in a turn; it repeats the last one."""
FIRST = ("answers", "is refused")
"""The answers of the first turns, which nothing disturbs, so that each run has both outcomes."""

Event = Callable[["Play", str], Awaitable[None]]


@dataclass
class Play:
    """One person, one agent, and the messages so far."""

    chance: random.Random
    model: ModelServer
    base: Path
    sent: dict[str, set[str]] = field(default_factory=dict)
    """By message, the participants that it did not wake, which its result names."""
    notices: set[str] = field(default_factory=set)
    """Messages whose sender has got a notice about their outcome."""
    net: Harness = field(init=False)
    ann: Peer = field(init=False)

    @asynccontextmanager
    async def life(self, networks: Networks) -> AsyncIterator[None]:
        """A life of the hub; the model no longer holds the answers of earlier lives."""
        store = f"sqlite:{self.base / 'town.db'}"
        async with harness(networks, config(network=LOOSE), store=store) as self.net:
            for case in range(len(self.sent)):
                self.model.release(f"case {case}")
            self.ann = await self.net.person()
            await self.start()
            yield

    async def start(self) -> None:
        steer = self.chance.choice(["steer", "queue", "interrupt"])
        await self.net.llm("bot", self.model, steer=steer)

    async def more(self, mode: str | None = None) -> str:
        """Send the next message, which the model answers at once. Returns its id."""
        self.model.release(f"case {len(self.sent)}")
        return await self.say(mode=mode)

    async def say(self, **options: Any) -> str:
        """Send the next message. Returns its id."""
        result = await self.ann.say("bot", f"case {len(self.sent)}", **options)
        self.sent[result["id"]] = set(result.get("not_woken", ()))
        return str(result["id"])

    async def turn(self, event: Event) -> None:
        """Send a message, and let the event happen once the model is asked about it, if it is."""
        case = f"case {len(self.sent)}"
        id = await self.say()
        asked = asyncio.create_task(self.model.held(case))
        ended = asyncio.create_task(self.ended(id))
        async with soon():
            await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        await asyncio.wait({ended})
        if asked.cancel():
            return
        await event(self, id)
        if event is not left_unanswered:
            self.model.release(case)

    async def ended(self, id: str) -> None:
        """Wait until a message has its final outcome."""

        async def holds() -> bool:
            receipt = await self._receipt(id)
            return not receipt["woken"] or receipt.get("state") == "ended"

        await self.net.until(holds)

    async def _receipt(self, id: str) -> dict[str, Any]:
        answer = await self.ann.call("read_receipts", id=id)
        return next(r for r in answer["receipts"] if r["participant"] == "bot")

    async def collect_notices(self) -> None:
        """Store the notices of the hub so far."""
        await self.net.network.quiet()
        events = await self.ann.sync()
        if events:
            await self.ann.ack(events[-1]["seq"])
        for message in (event["message"] for event in events):
            if message["sender_kind"] == "system" and isinstance(message["content"], dict):
                self.notices.update(message["content"].get("messages", ()))

    async def outcome(self, id: str) -> str:
        """The outcome of a message, or an empty string if the sender got neither."""
        receipt = await self._receipt(id)
        if not receipt["woken"]:
            return "not woken" if "bot" in self.sent[id] else ""
        turn = Turn.model_validate(await self.ann.call("read_turn", id=receipt["turn"]))
        if any(int(sent[1:]) > int(id[1:]) for sent in turn.sent):
            return "answered"
        return "notice" if id in self.notices else ""


# Events while the model is asked ---------------------------------------------------------------


async def undisturbed(play: Play, id: str) -> None:
    """The model answers."""


async def left_unanswered(play: Play, id: str) -> None:
    """The model does not answer."""


async def stopped(play: Play, id: str) -> None:
    await play.ann.call("stop", scope="turn", target=f"bot-{id}")


async def stopped_for_a_while(play: Play, id: str) -> None:
    scope, target = play.chance.choice([("agent", "bot"), ("thread", "direct_bot")])
    await play.ann.call("stop", scope=scope, target=target, reason="a pause")
    if play.chance.random() < 0.5:
        await play.more()
    await play.ann.call("resume", scope=scope, target=target)


async def taken_over(play: Play, id: str) -> None:
    await play.ann.call("take_over", agent="bot")
    await play.ann.call("hand_back", agent="bot")


async def killed(play: Play, id: str) -> None:
    await play.net.crash("bot")
    if play.chance.random() < 0.5:
        await stopped(play, id)
    await play.start()


async def cut(play: Play, id: str) -> None:
    await play.net.cut("bot")
    if play.chance.random() < 0.5:
        await stopped_for_a_while(play, id)


async def followed_by_more(play: Play, id: str) -> None:
    for _ in range(play.chance.randint(1, 3)):
        await play.more(play.chance.choice(["steer", "queue", "interrupt", None]))


EVENTS: tuple[Event, ...] = (
    *[undisturbed] * 5,
    *[stopped, taken_over, killed, cut],
    *[stopped_for_a_while, followed_by_more] * 2,
)


def script(chance: random.Random, cases: int) -> Script:
    """For each case the answers of one kind, held until the case is released."""
    rules: list[ScriptRule] = []
    kinds = ["answers", "answers late", *ANSWERS]
    for case in range(cases):
        kind = FIRST[case] if case < len(FIRST) else chance.choice(kinds)
        rules += _rules(case, ANSWERS[kind])
    return Script(rules=rules)


def _rules(case: int, answers: list[AnyAnswer]) -> Iterator[ScriptRule]:
    about = {"incoming": f"^case {case}$"}
    for step, answer in enumerate(answers, 1):
        when = When.model_validate({**about, "step": step} if step < len(answers) else about)
        yield ScriptRule(when=when, answer=_held(answer, case))


def _held(answer: AnyAnswer, case: int) -> AnyAnswer:
    if isinstance(answer, Breakdown):  # it cannot be held, so the event comes after it
        return answer
    return answer.model_copy(update={"hold": f"case {case}"})


@pytest.mark.slow
@pytest.mark.behaviour("H-68")
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_every_message_of_a_person_gets_an_answer_or_a_notice(
    in_memory: Networks, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    async with ModelServer(script(chance, LIVES * TURNS * 5)) as model:
        play = Play(chance, model, tmp_path)
        for number in range(LIVES):
            async with play.life(in_memory):
                for _ in range(0 if number else len(FIRST)):  # one after the other
                    await play.ended(await play.more())
                for _ in range(TURNS):
                    await play.turn(chance.choice(EVENTS))
                await play.turn(left_unanswered)
                await play.collect_notices()  # then the hub ends, in the middle of that turn
        async with play.life(in_memory):
            for id in play.sent:
                await play.ended(id)
            await play.collect_notices()
            outcomes = {id: await play.outcome(id) for id in play.sent}
    assert len(outcomes) > LIVES * TURNS
    lost = [id for id, outcome in outcomes.items() if not outcome]
    assert not lost, f"neither an answer nor a notice for {lost}"
    assert [*outcomes.values()][: len(FIRST)] == ["answered", "notice"]


@pytest.mark.behaviour("H-68")
async def test_a_restarted_hub_sends_a_notice_that_a_crash_prevented_once(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'town.db'}"
    end = TurnEnd(id="bot-m1", outcome="model_error", reason="it is asleep")
    start = TurnStart(id="bot-m1", thread_id="dm.ann.bot", messages=("m1",))
    async with in_memory.start(store=store) as network:
        bot = await network.join("bot", "agent", turns=True)
        ann = await network.join("ann")
        await ann.say("bot", "hello")
        await bot.call("begin_turn", start=start.model_dump(mode="json"))
        ended = TurnEnded("bot-m1", network.hub.clock.now(), end.model_dump_json())
        await network.hub.kernel.log.write(ended)
    for _ in range(2):
        async with in_memory.start(store=store) as network:
            ann = await network.join("ann")
            message = await notice(ann, "model_error")
            assert (message["id"], message["content"]["messages"]) == ("m2", ["m1"])
            await network.quiet()
            assert await ann.texts() == ["hello"], "there is one notice"
