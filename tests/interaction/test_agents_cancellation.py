"""A turn that is stopped, or whose process dies, at any of its awaits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import ScriptRule, When
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer
from tests.interaction.agent_harness import Harness, call, ended, finish, harness, heard, says, send
from tests.interaction.injection import Points
from tests.interaction.peers import Networks, Peer, config, eventually, soon
from tests.interaction.role_harness import scores

TOOLS = '''
import asyncio

async def look_up(word: str) -> str:
    """Look a word up."""
    for _ in range(3):
        await asyncio.sleep(0)
    return f"{word}: found"

def count(word: str) -> int:
    """Count the letters of a word."""
    return len(word)
'''
HOOKS = """
import asyncio

from hubbub.agents.turn.hooks import Hooks, Proceed

class Quick(Hooks):
    async def on_turn_start(self, turn):
        await asyncio.sleep(0)

    def on_tool_start(self, turn, call):
        return Proceed()

    async def on_turn_end(self, turn, end):
        await asyncio.sleep(0)
"""
WORK = [
    says(
        call("look_up", word="tea"),
        call("count", word="tea"),
        send("ann", "one"),
        send("ann", "two"),
    ),
    says(send("ann", "three"), call("look_up", word="cake")),
    says(finish("all said")),
]
SAID = ["one", "two", "three"]
HUBS_TOOL = "send_text_message"
MOST_POINTS = 400
"""Far more than the turn has: a test that reaches it does not end by itself."""
ROOMY = config(
    network={
        "limits": {"burst": 100_000, "calls_per_second": 100_000},
        "breaker": {"enabled": False},  # more turns in one thread than any person would start
    }
)


def in_order(heard: Sequence[str], said: Sequence[str]) -> bool:
    """Whether this is a beginning of what the turn says, nothing twice."""
    return list(heard) == list(said[: len(heard)])


def in_any_order(heard: Sequence[str], said: Sequence[str]) -> bool:
    """Whether nothing was said but this, nor twice."""
    return not Counter(heard) - Counter(said)


@dataclass(frozen=True)
class Work:
    """A turn that may be repeated: its answers go by what has been done."""

    script: Script
    said: Sequence[str]
    """All that ann hears of it."""
    reason: str = "all said"
    """For which it ends."""
    config: dict[str, JsonValue] = field(default_factory=dict)
    fits: Callable[[Sequence[str], Sequence[str]], bool] = in_order
    """Whether what was heard of it by now can be."""
    sent: Callable[[str], bool] = lambda text: True
    """Which of it counts as sent by the turn."""
    asks: int = 0
    """How many messages it sends to `silent` besides."""


PLAIN = Work(
    Script(rules=[ScriptRule(when=When(step=n), answer=a) for n, a in enumerate(WORK, 1)]), SAID
)

STEPS: list[JsonValue] = [
    {"id": 1, "goal": "look it up", "executor": "look_up"},
    {"id": 2, "goal": "count it", "executor": "count", "arguments": {"word": "tea"}},
    {"id": 3, "goal": "count that", "executor": "count", "depends_on": [2],
     "arguments": {"word": "$step_1_result"}},
    {"id": 4, "goal": "anybody there?", "executor": "silent"},
]  # fmt: skip


def judged(verdict: str, pattern: str, **more: JsonValue) -> ScriptRule:
    when = When.model_validate({"tools": ["judge"], "prompt": pattern})
    judgement = call("judge", scores=scores(3), verdict=verdict, reasoning="so", **more)
    return ScriptRule(when=when, answer=says(judgement))


PIPELINE = Work(
    Script(
        rules=[
            ScriptRule(
                when=When(tools=["route"]),
                answer=says(call("route", target="make_plan", confidence=1)),
            ),
            ScriptRule(
                when=When(tools=["submit_plan"]), answer=says(call("submit_plan", steps=STEPS))
            ),
            ScriptRule(when=When(tools=["look_up"]), answer=says(call("look_up", word="tea"))),
            judged("retry_step", 'step="(?P<n>[123])" outcome="failed', step="{{ n }}"),
            judged("retry_step", r"(?s)\A(?!.*<judgement>)", step=1),
            judged("accept", "", answer="$step_1_result, $step_3_result"),
        ]
    ),
    ["tea: found, 10"],
    "answered",
    {
        "kind": "pipeline",
        "tools": ["tools.py:look_up", "tools.py:count"],
        "roles": {"targets": ["silent"], "request_timeout": "20ms"},
    },
    asks=1,
)


def helper(goal: str, step: int, answer: ScriptedAnswer) -> ScriptRule:
    when = When.model_validate({"prompt": f"<goal>{goal}", "step": step})
    return ScriptRule(when=when, answer=answer)


FORKS = Work(
    Script(
        rules=[
            helper("first", 1, says(call("look_up", word="tea"), call("count", word="tea"))),
            helper("first", 2, says(finish("tea"))),
            helper("second", 1, says(send("ann", "from a helper"))),
            helper("second", 2, says(finish("told her"))),
            ScriptRule(
                when=When(step=1),
                answer=says(call("fork", goal="first"), call("fork", goal="second")),
            ),
            ScriptRule(when=When(step=2), answer=says(send("ann", "all"))),
            ScriptRule(when=When(step=3), answer=says(finish("all said"))),
        ]
    ),
    [
        "helper 1, goal:\n```\nfirst\n```",
        "helper 1, result:\n```\ntea\n```",
        "helper 2, goal:\n```\nsecond\n```",
        "helper 2, result:\n```\ntold her\n```",
        "from a helper",
        "all",
    ],
    config={"fork": {}},
    fits=in_any_order,
    sent=lambda text: not text.startswith("helper"),
)


class Stage:
    """A network on which the same turn is run over and over."""

    def __init__(self, net: Harness, ann: Peer, model: ModelServer, base: Path, work: Work = PLAIN):
        self.net, self.ann, self._model, self._base = net, ann, model, base
        self.work, self.points = work, Points()

    async def start_agent(self) -> None:
        (self._base / "tools.py").write_text(TOOLS)
        (self._base / "hooks.py").write_text(HOOKS)
        wanted: dict[str, JsonValue] = {
            "tools": ["tools.py:look_up", "tools.py:count", HUBS_TOOL],
            "hooks": ["hooks.py:Quick"],
            **self.work.config,
        }
        endpoint = {"model": "m", "base_url": self._model.base_url, "retries": 0, "stream": True}
        models = {"default": ModelConfig.model_validate(endpoint)}
        await self.net.configured("bot", AgentConfig.model_validate(wanted), self._base, models)

    async def ask(self, point: int) -> str:
        """Ann's message; the id of the turn that it starts."""
        said = await self.ann.say("bot", f"go {point}")
        return f"bot-{said['id']}"

    async def heard(self, turn: Turn) -> list[str]:
        """What ann has heard by now of a turn: that this can be, and that its record says so."""
        where, told = self.points.where, await heard(self.net, self.ann)
        assert self.work.fits(told, self.work.said), where
        asked = len(turn.sent) - sum(map(self.work.sent, told))
        assert 0 <= asked <= self.work.asks, where
        if ended(turn).outcome == "finished":
            assert asked == self.work.asks, where
        return told


class Silent(Agent):
    """Answers nobody."""


@asynccontextmanager
async def stage(networks: Networks, base: Path, work: Work) -> AsyncIterator[Stage]:
    async with ModelServer(work.script) as model, harness(networks, ROOMY) as net:
        made = Stage(net, await net.person(), model, base, work)
        if work.asks:
            await net.python("silent", Silent())
        with made.points.watching():
            yield made


def nothing_left(points: Points) -> None:
    left = [task for task in points.tasks if not task.done()]
    assert not left, f"struck at {points.where}, these go on: {left}"


def struck_before_its_end(outcomes: Sequence[str], awaits: int) -> None:
    """How many awaits a turn has varies by a few: a commit may be there before it is waited for."""
    assert set(outcomes) == {"cancelled", "finished"}
    stopped, after = outcomes.index("finished"), outcomes[::-1].index("cancelled")
    assert len(outcomes) - after - stopped < 10
    assert stopped > awaits, f"the turn has only {stopped} awaits, are all of them seen?"


@pytest.mark.slow
@pytest.mark.behaviour("Y-1")
@pytest.mark.parametrize(
    ("work", "every"),  # of many awaits not each, for the time that they take
    [(PLAIN, 1), (PIPELINE, 4), (FORKS, 4)],
    ids=["plain", "roles", "forks"],
)
async def test_a_turn_that_is_stopped_at_any_await_leaves_nothing_behind(
    in_memory: Networks, tmp_path: Path, work: Work, every: int
) -> None:
    outcomes: list[str] = []
    async with stage(in_memory, tmp_path, work) as play:
        points = play.points
        await play.start_agent()
        for point in range(0, MOST_POINTS, every):
            points.strike_at(point, lambda turn: turn.cancel())
            turn = await play.net.turn(await play.ask(point))
            async with soon():
                await asyncio.gather(*points.tasks, return_exceptions=True)
            nothing_left(points)
            outcomes.append(ended(turn).outcome)
            told = await play.heard(turn)
            if not points.struck:
                break
            cancelled = ended(turn).outcome == "cancelled"
            assert ended(turn).reason == ("struck" if cancelled else work.reason)
        assert sorted(told) == sorted(work.said)
    struck_before_its_end(outcomes, 40 // every)


@pytest.mark.slow
@pytest.mark.behaviour("Y-2")
@pytest.mark.parametrize(
    ("work", "every"),
    [(PLAIN, 2), (PIPELINE, 7), (FORKS, 7)],
    ids=["plain", "roles", "forks"],
)
async def test_a_turn_whose_process_dies_at_any_await_is_taken_up_and_ended_once(
    in_memory: Networks, tmp_path: Path, work: Work, every: int
) -> None:
    async with stage(in_memory, tmp_path, work) as play:
        points, net = play.points, play.net
        resumed = 0
        for point in range(0, MOST_POINTS, every):
            await play.start_agent()
            dead = asyncio.Event()
            points.strike_at(point, lambda turn, dead=dead: dead.set())  # type: ignore[misc]
            turn_id = await play.ask(point)
            recorded = asyncio.create_task(net.turn(turn_id))
            dying = asyncio.create_task(dead.wait())
            async with soon():
                await asyncio.wait({recorded, dying}, return_when=asyncio.FIRST_COMPLETED)
            dying.cancel()
            await net.kill("bot")
            nothing_left(points)
            if points.struck:
                await net.network.gone("bot")
                await play.start_agent()
            turn: Turn = await recorded
            assert ended(turn).outcome == "finished", points.where
            await eventually(lambda: not net.network.hub.kernel.log.waiting)
            assert sorted(await play.heard(turn)) == sorted(work.said), points.where
            if not points.struck:
                break
            resumed += turn.attempts > 1
            await net.kill("bot")
        assert resumed > 30 // every


class Talker(Agent):
    """Says three things, with pauses."""

    async def on_direct(self, message: Message) -> str:
        await self.send("ann", "one")
        await asyncio.sleep(0)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            group.create_task(self.participants())
        await self.send("ann", "two")
        return "three"


@pytest.mark.behaviour("Y-1")
async def test_a_handler_stopped_at_any_await_leaves_nothing_behind(in_memory: Networks) -> None:
    points, outcomes = Points(), []
    async with harness(in_memory, ROOMY) as net:
        with points.watching():
            ann = await net.person()
            await net.python("bot", Talker())
            for point in range(MOST_POINTS):
                points.strike_at(point, lambda turn: turn.cancel())
                said = await ann.say("bot", f"go {point}")
                turn = await net.turn(f"bot-{said['id']}")
                async with soon():
                    await asyncio.gather(*points.tasks, return_exceptions=True)
                nothing_left(points)
                outcomes.append(ended(turn).outcome)
                texts = await heard(net, ann)
                assert in_order(texts, SAID), points.where
                assert len(turn.sent) == len(texts), points.where
                if not points.struck:
                    break
    struck_before_its_end(outcomes, 4)


SHORT = Work(
    Script(
        rules=[
            ScriptRule(when=When(step=1), answer=says(call("look_up", word="tea"))),
            ScriptRule(when=When(step=2), answer=says(send("ann", "here"), finish())),
        ]
    ),
    ["here"],
)


@pytest.mark.slow
@pytest.mark.behaviour("Y-4")
@pytest.mark.parametrize(("work", "every"), [(SHORT, 1), (PIPELINE, 7)], ids=["plain", "roles"])
async def test_a_message_that_arrives_at_any_await_is_heard_exactly_once(
    in_memory: Networks, tmp_path: Path, work: Work, every: int
) -> None:
    steered = 0
    async with stage(in_memory, tmp_path, work) as play:
        net, points, saying = play.net, play.points, []
        phone = await net.network.join("ann", "human")
        await play.start_agent()
        for point in range(0, MOST_POINTS, every):
            points.strike_at(
                point,
                lambda turn: saying.append(asyncio.create_task(phone.say("bot", "wait"))),
            )
            turn = await net.turn(await play.ask(point))
            if not points.struck:
                break
            async with soon():
                second = (await saying.pop())["id"]
            told = [s for step in turn.steps for s in step.steered]
            if told:
                steered += 1
                assert [s.message for s in told] == [second], points.where
            else:
                own = await net.turn(f"bot-{second}")
                assert own.start.messages == (second,), points.where
            assert ended(turn).outcome == "finished"
            receipts = await play.ann.call("read_receipts", id=second)
            (bot,) = [r for r in receipts["receipts"] if r["participant"] == "bot"]
            assert (bot["state"], bot["turn"]) == (
                "ended",
                turn.start.id if told else f"bot-{second}",
            )
    assert steered > 5
