"""Whatever happens to an agent's turns, a person who waits gets an answer or is told.

Turns are generated: what the model does, and what happens to the turn while the model is asked.
Each message of the person is accounted for at the end, by the records of the hub alone.
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
"""Generated runs, what a person says in each life of a hub, and lives of the hub."""
LOOSE = {
    "limits": {"burst": 100_000, "calls_per_second": 100_000},
    "breaker": {"enabled": False},
    "budgets": {"tokens": 300_000},
}

DOES: dict[str, list[AnyAnswer]] = {
    "answers": [says(send("ann", "here you are"), finish())],
    "answers late": [says(call("list_channels")), says(send("ann", "at last")), says(finish())],
    "says nothing": [says(finish("not for me")), says(finish("really not"))],
    "speaks to nobody": [ScriptedAnswer(text="hm", ignore_tool_choice=True)],
    "goes in circles": [says(call("list_channels"))],
    "is refused": [Refusal(status=400, message="no")],
    "breaks off": [Breakdown(breakdown="reset")],
    "spends it all": [
        says(call("list_channels"), usage=ScriptedUsage(prompt_tokens=400_000, completion_tokens=1))
    ],
}
"""What the model does in a turn: its first answers; the last of them again and again."""
FIRST = ("answers", "is refused")
"""What it does in the first turns, in which nothing happens: so that each run has both fates."""

Happens = Callable[["Play", str], Awaitable[None]]


@dataclass
class Play:
    """One person, one agent, and what has been said so far."""

    chance: random.Random
    model: ModelServer
    base: Path
    said: dict[str, set[str]] = field(default_factory=dict)
    """By message: who would have been woken by it and was not, which the sender is told."""
    notices: set[str] = field(default_factory=set)
    """Messages whose sender has been told what became of them."""
    net: Harness = field(init=False)
    ann: Peer = field(init=False)

    @asynccontextmanager
    async def life(self, networks: Networks) -> AsyncIterator[None]:
        """A life of the hub; what the model was to think about in those before, it has thought."""
        store = f"sqlite:{self.base / 'town.db'}"
        async with harness(networks, config(network=LOOSE), store=store) as self.net:
            for case in range(len(self.said)):
                self.model.release(f"case {case}")
            self.ann = await self.net.person()
            await self.start()
            yield

    async def start(self) -> None:
        steer = self.chance.choice(["steer", "queue", "interrupt"])
        await self.net.llm("bot", self.model, steer=steer)

    async def more(self, mode: str | None = None) -> str:
        """Another message, about which the model need not think long; its id."""
        self.model.release(f"case {len(self.said)}")
        return await self.say(mode=mode)

    async def say(self, **how: Any) -> str:
        """The next case; its id."""
        result = await self.ann.say("bot", f"case {len(self.said)}", **how)
        self.said[result["id"]] = set(result.get("not_woken", ()))
        return str(result["id"])

    async def turn(self, happens: Happens) -> None:
        """A message, and what happens as soon as the model is asked about it, if it is."""
        case = f"case {len(self.said)}"
        id = await self.say()
        asked = asyncio.create_task(self.model.held(case))
        over = asyncio.create_task(self.ended(id))
        async with soon():
            await asyncio.wait({asked, over}, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        await asyncio.wait({over})
        if asked.cancel():
            return
        await happens(self, id)
        if happens is not left_thinking:
            self.model.release(case)

    async def ended(self, id: str) -> None:
        """Nothing more will come of a message."""

        async def holds() -> bool:
            receipt = await self._receipt(id)
            return not receipt["woken"] or receipt.get("state") == "ended"

        await self.net.until(holds)

    async def _receipt(self, id: str) -> dict[str, Any]:
        told = await self.ann.call("read_receipts", id=id)
        return next(r for r in told["receipts"] if r["participant"] == "bot")

    async def listen(self) -> None:
        """Take in what the hub has told so far."""
        await self.net.network.quiet()
        events = await self.ann.sync()
        if events:
            await self.ann.ack(events[-1]["seq"])
        for message in (event["message"] for event in events):
            if message["sender_kind"] == "system" and isinstance(message["content"], dict):
                self.notices.update(message["content"].get("messages", ()))

    async def fate(self, id: str) -> str:
        """What has become of a message: one word; empty if nobody has heard of it again."""
        receipt = await self._receipt(id)
        if not receipt["woken"]:
            return "told at once" if "bot" in self.said[id] else ""
        turn = Turn.model_validate(await self.ann.call("read_turn", id=receipt["turn"]))
        if any(int(sent[1:]) > int(id[1:]) for sent in turn.sent):
            return "answered"
        return "notice" if id in self.notices else ""


# What happens while the model is asked ---------------------------------------------------------


async def nothing(play: Play, id: str) -> None:
    """It answers."""


async def left_thinking(play: Play, id: str) -> None:
    """It goes on to think."""


async def stopped(play: Play, id: str) -> None:
    await play.ann.call("stop", scope="turn", target=f"bot-{id}")


async def stopped_for_a_while(play: Play, id: str) -> None:
    named = {"agent": "bot", "thread": "direct_bot"}
    scope, target = play.chance.choice([*named.items()])
    await play.ann.call("stop", scope=scope, target=target, reason="a pause")
    if play.chance.random() < 0.5:
        await play.more()
    await play.ann.call("resume", scope=scope, target=target)


async def taken_over(play: Play, id: str) -> None:
    await play.ann.call("take_over", agent="bot")
    await play.ann.call("hand_back", agent="bot")


async def killed(play: Play, id: str) -> None:
    await play.net.kill("bot")
    await play.net.network.gone("bot")
    if play.chance.random() < 0.5:
        await stopped(play, id)
    await play.start()


async def cut(play: Play, id: str) -> None:
    await play.net.cut("bot")
    if play.chance.random() < 0.5:
        await stopped_for_a_while(play, id)


async def more_said(play: Play, id: str) -> None:
    for _ in range(play.chance.randint(1, 3)):
        await play.more(play.chance.choice(["steer", "queue", "interrupt", None]))


HAPPENS: tuple[Happens, ...] = (
    *([nothing] * 5),
    stopped,
    stopped_for_a_while,
    stopped_for_a_while,
    taken_over,
    killed,
    cut,
    more_said,
    more_said,
)


def script(chance: random.Random, cases: int) -> Script:
    """For each case one of the things that models do, the first time only when it is let."""
    rules: list[ScriptRule] = []
    often = ["answers", "answers late", *DOES]
    for case in range(cases):
        does = FIRST[case] if case < len(FIRST) else chance.choice(often)
        rules += _rules(case, DOES[does])
    return Script(rules=rules)


def _rules(case: int, answers: list[AnyAnswer]) -> Iterator[ScriptRule]:
    about = {"incoming": f"^case {case}$"}
    for step, answer in enumerate(answers, 1):
        when = When.model_validate({**about, "step": step} if step < len(answers) else about)
        yield ScriptRule(when=when, answer=_held(answer, case))


def _held(answer: AnyAnswer, case: int) -> AnyAnswer:
    if isinstance(answer, Breakdown):  # it cannot be held: what happens, happens after it
        return answer
    return answer.model_copy(update={"hold": f"case {case}"})


@pytest.mark.slow
@pytest.mark.behaviour("H-68")
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_no_message_of_a_person_ends_without_an_answer_or_a_notice(
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
                    await play.turn(chance.choice(HAPPENS))
                await play.turn(left_thinking)
                await play.listen()  # and the hub goes, in the middle of that
        async with play.life(in_memory):
            for id in play.said:
                await play.ended(id)
            await play.listen()
            fates = {id: await play.fate(id) for id in play.said}
    assert len(fates) > LIVES * TURNS
    lost = [id for id, fate in fates.items() if not fate]
    assert not lost, f"nobody was told what became of {lost}"
    assert [*fates.values()][: len(FIRST)] == ["answered", "notice"]


@pytest.mark.behaviour("H-68")
async def test_a_hub_that_died_before_it_could_tell_does_so_when_it_starts(
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
        died = TurnEnded("bot-m1", network.hub.clock.now(), end.model_dump_json())
        await network.hub.kernel.log.write(died)
    for _ in range(2):
        async with in_memory.start(store=store) as network:
            ann = await network.join("ann")
            told = await notice(ann, "model_error")
            assert (told["id"], told["content"]["messages"]) == ("m2", ["m1"])
            await network.quiet()
            assert await ann.texts() == ["hello"], "it is told once"
