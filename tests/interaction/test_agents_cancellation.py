"""Turns that are stopped, crash or receive a message at any of their awaits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import ScriptRule, When
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer
from tests.interaction.agent_harness import Harness, call, ended, finish, harness, heard, says, send
from tests.interaction.injection import Points
from tests.interaction.peers import Networks, Peer, config, soon
from tests.interaction.role_harness import judge, plan, route

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
"""Far more than the turn has."""
ROOMY = config(
    network={
        "limits": {"burst": 100_000, "calls_per_second": 100_000},
        "breaker": {"enabled": False},  # more turns in one thread than any person would start
    }
)


def in_order(received: Sequence[str], sent: Sequence[str]) -> bool:
    """Whether these are the first messages of the turn, in order."""
    return list(received) == list(sent[: len(received)])


def in_any_order(received: Sequence[str], sent: Sequence[str]) -> bool:
    """Whether these are messages of the turn, none twice."""
    return not Counter(received) - Counter(sent)


@dataclass(frozen=True)
class Work:
    """A repeatable turn: its answers depend only on its progress."""

    script: Script
    messages: Sequence[str]
    """All its messages to ann."""
    reason: str = "all said"
    """The reason of its end."""
    config: dict[str, JsonValue] = field(default_factory=dict)
    fits: Callable[[Sequence[str], Sequence[str]], bool] = in_order
    """Whether the received messages are possible."""
    counts: Callable[[str], bool] = lambda text: True
    """Whether its record lists a message as sent."""
    asks: int = 0
    """The number of its messages to `silent`."""


def rule(answer: ScriptedAnswer, **when: JsonValue) -> ScriptRule:
    return ScriptRule(when=When.model_validate(when), answer=answer)


PLAIN = Work(Script(rules=[rule(answer, step=n) for n, answer in enumerate(WORK, 1)]), SAID)

STEPS: list[JsonValue] = [
    {"id": 1, "goal": "look it up", "executor": "look_up"},
    {"id": 2, "goal": "count it", "executor": "count", "arguments": {"word": "tea"}},
    {"id": 3, "goal": "count that", "executor": "count", "depends_on": [2],
     "arguments": {"word": "$step_1_result"}},
    {"id": 4, "goal": "anybody there?", "executor": "silent"},
]  # fmt: skip


def judged(verdict: str, prompt: str, **more: Any) -> ScriptRule:
    return rule(judge(verdict, 3, **more), tools=["judge"], prompt=prompt)


PIPELINE = Work(
    Script(
        rules=[
            rule(route("make_plan"), tools=["route"]),
            rule(plan(STEPS), tools=["submit_plan"]),
            rule(says(call("look_up", word="tea")), tools=["look_up"]),
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
    return rule(answer, prompt=f"<goal>{goal}", step=step)


FORKS = Work(
    Script(
        rules=[
            helper("first", 1, says(call("look_up", word="tea"), call("count", word="tea"))),
            helper("first", 2, says(finish("tea"))),
            helper("second", 1, says(send("ann", "from a helper"))),
            helper("second", 2, says(finish("done"))),
            rule(says(call("fork", goal="first"), call("fork", goal="second")), step=1),
            rule(says(send("ann", "all")), step=2),
            rule(says(finish("all said")), step=3),
        ]
    ),
    [
        "helper 1, goal:\n```\nfirst\n```",
        "helper 1, result:\n```\ntea\n```",
        "helper 2, goal:\n```\nsecond\n```",
        "helper 2, result:\n```\ndone\n```",
        "from a helper",
        "all",
    ],
    config={"fork": {}},
    fits=in_any_order,
    counts=lambda text: not text.startswith("helper"),
)


class Stage:
    """A network that runs the same turn over and over."""

    def __init__(self, net: Harness, ann: Peer, model: ModelServer, base: Path, work: Work = PLAIN):
        self.net, self.ann, self._model, self._base = net, ann, model, base
        self.work, self.points = work, Points()

    async def start_agent(self) -> None:
        (self._base / "tools.py").write_text(TOOLS)
        (self._base / "hooks.py").write_text(HOOKS)
        config: dict[str, JsonValue] = {
            "tools": ["tools.py:look_up", "tools.py:count", HUBS_TOOL],
            "hooks": ["hooks.py:Quick"],
            **self.work.config,
        }
        endpoint = {"model": "m", "base_url": self._model.base_url, "retries": 0, "stream": True}
        models = {"default": ModelConfig.model_validate(endpoint)}
        await self.net.configured("bot", AgentConfig.model_validate(config), self._base, models)

    async def ask(self, point: int) -> str:
        """Send Ann's message. Returns the id of the turn that it starts."""
        return await self.net.ask(self.ann, f"go {point}")

    async def heard(self, turn: Turn) -> list[str]:
        """The messages of a turn to ann so far, after checks of them and of the turn's record."""
        where, received = self.points.where, await heard(self.net, self.ann)
        assert self.work.fits(received, self.work.messages), where
        asked = len(turn.sent) - sum(map(self.work.counts, received))
        assert 0 <= asked <= self.work.asks, where
        if ended(turn).outcome == "finished":
            assert asked == self.work.asks, where
        return received


class Silent(Agent):
    """Never answers."""


@asynccontextmanager
async def stage(networks: Networks, base: Path, work: Work) -> AsyncIterator[Stage]:
    async with ModelServer(work.script) as model, harness(networks, ROOMY) as net:
        play = Stage(net, await net.person(), model, base, work)
        if work.asks:
            await net.python("silent", Silent())
        with play.points.watching():
            yield play


def check_outcomes(outcomes: Sequence[str], awaits: int) -> None:
    """Check that the turn was struck at each await, of which it has more than `awaits`.

    The number varies by a few, as a turn does not wait for a commit that is already there.
    """
    assert set(outcomes) == {"cancelled", "finished"}
    stopped, after = outcomes.index("finished"), outcomes[::-1].index("cancelled")
    assert len(outcomes) - after - stopped < 10
    assert stopped > awaits, f"only {stopped} awaits of the turn were counted"


@pytest.mark.slow
@pytest.mark.behaviour("Y-1")
@pytest.mark.parametrize(
    ("work", "every"),  # long turns are not struck at each await, to save time
    [(PLAIN, 1), (PIPELINE, 4), (FORKS, 4)],
    ids=["plain", "roles", "forks"],
)
async def test_a_turn_stopped_at_any_await_leaves_no_task_behind(
    in_memory: Networks, tmp_path: Path, work: Work, every: int
) -> None:
    outcomes: list[str] = []
    async with stage(in_memory, tmp_path, work) as play:
        points = play.points
        await play.start_agent()
        for point in range(0, MOST_POINTS, every):
            points.strike_at(point, lambda turn: turn.cancel())
            turn = await points.ended(play.net, await play.ask(point))
            outcomes.append(ended(turn).outcome)
            received = await play.heard(turn)
            if not points.struck:
                break
            cancelled = ended(turn).outcome == "cancelled"
            assert ended(turn).reason == ("struck" if cancelled else work.reason)
        assert sorted(received) == sorted(work.messages)
    check_outcomes(outcomes, 40 // every)


@pytest.mark.slow
@pytest.mark.behaviour("Y-2")
@pytest.mark.parametrize(
    ("work", "every"),
    [(PLAIN, 2), (PIPELINE, 7), (FORKS, 7)],
    ids=["plain", "roles", "forks"],
)
async def test_a_turn_resumes_after_a_crash_at_any_await_and_ends_once(
    in_memory: Networks, tmp_path: Path, work: Work, every: int
) -> None:
    async with stage(in_memory, tmp_path, work) as play:
        points, net = play.points, play.net
        resumed = 0
        for point in range(0, MOST_POINTS, every):
            await play.start_agent()
            ask = partial(play.ask, point)
            turn = await points.crashed(net, point, ask, play.start_agent)
            assert ended(turn).outcome == "finished", points.where
            assert sorted(await play.heard(turn)) == sorted(work.messages), points.where
            if not points.struck:
                break
            resumed += turn.attempts > 1
            await net.kill("bot")
        assert resumed > 30 // every


class Talker(Agent):
    """Sends three messages, with pauses."""

    async def on_direct(self, message: Message) -> str:
        await self.send("ann", "one")
        await asyncio.sleep(0)
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            group.create_task(self.participants())
        await self.send("ann", "two")
        return "three"


@pytest.mark.behaviour("Y-1")
async def test_a_handler_stopped_at_any_await_leaves_no_task_behind(in_memory: Networks) -> None:
    points, outcomes = Points(), []
    async with harness(in_memory, ROOMY) as net:
        with points.watching():
            ann = await net.person()
            await net.python("bot", Talker())
            for point in range(MOST_POINTS):
                points.strike_at(point, lambda turn: turn.cancel())
                turn = await points.ended(net, await net.ask(ann, f"go {point}"))
                outcomes.append(ended(turn).outcome)
                received = await heard(net, ann)
                assert in_order(received, SAID), points.where
                assert len(turn.sent) == len(received), points.where
                if not points.struck:
                    break
    check_outcomes(outcomes, 4)


LOOKS, SENDS = says(call("look_up", word="tea")), says(send("ann", "here"), finish())
SHORT = Work(Script(rules=[rule(LOOKS, step=1), rule(SENDS, step=2)]), ["here"])


@pytest.mark.slow
@pytest.mark.behaviour("Y-4")
@pytest.mark.parametrize(("work", "every"), [(SHORT, 1), (PIPELINE, 7)], ids=["plain", "roles"])
async def test_a_message_that_arrives_at_any_await_is_handled_exactly_once(
    in_memory: Networks, tmp_path: Path, work: Work, every: int
) -> None:
    steered = 0
    async with stage(in_memory, tmp_path, work) as play:
        net, points, sending = play.net, play.points, []
        phone = await net.network.join("ann", "human")
        await play.start_agent()
        for point in range(0, MOST_POINTS, every):
            points.strike_at(
                point,
                lambda turn: sending.append(asyncio.create_task(phone.say("bot", "wait"))),
            )
            turn = await net.turn(await play.ask(point))
            if not points.struck:
                break
            async with soon():
                second = (await sending.pop())["id"]
            taken_in = [s.message for step in turn.steps for s in step.steered]
            if taken_in:
                steered += 1
                assert taken_in == [second], points.where
            else:
                own = await net.turn(f"bot-{second}")
                assert own.start.messages == (second,), points.where
            assert ended(turn).outcome == "finished"
            receipts = await play.ann.call("read_receipts", id=second)
            (bot,) = [r for r in receipts["receipts"] if r["participant"] == "bot"]
            turn_id = turn.start.id if taken_in else f"bot-{second}"
            assert (bot["state"], bot["turn"]) == ("ended", turn_id)
    assert steered > 5
