"""A turn that is stopped, or whose process dies, at any of its awaits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hubbub import Agent, Message
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import Rule, When
from hubbub.testing.model_server import ModelServer, Script
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.injection import Points
from tests.interaction.peers import Networks, Peer, config, eventually, soon

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

from hubbub.agents.hooks import Hooks, Proceed

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
MOST_POINTS = 400
"""Far more than the turn has: a test that reaches it does not end by itself."""
ROOMY = config(network={"limits": {"burst": 100_000, "calls_per_second": 100_000}})


def script() -> Script:
    """The answers go by what the turn has done, so that a turn may be repeated."""
    return Script(rules=[Rule(when=When(step=n), answer=a) for n, a in enumerate(WORK, 1)])


class Stage:
    """A network on which the same turn is run over and over."""

    def __init__(self, net: Rig, ann: Peer, model: ModelServer, base: Path):
        self.net, self.ann, self._model, self._base = net, ann, model, base
        self.points = Points()

    async def start_agent(self) -> None:
        (self._base / "tools.py").write_text(TOOLS)
        (self._base / "hooks.py").write_text(HOOKS)
        hubs = ["send_text_message"]
        wanted = {
            "tools": ["tools.py:look_up", "tools.py:count", *hubs],
            "hooks": ["hooks.py:Quick"],
        }
        endpoint = {"model": "m", "base_url": self._model.base_url, "retries": 0, "stream": True}
        models = {"default": ModelConfig.model_validate(endpoint)}
        await self.net.configured("bot", AgentConfig.model_validate(wanted), self._base, models)

    async def ask(self, point: int) -> str:
        """Ann's message; the id of the turn that it starts."""
        said = await self.ann.say("bot", f"go {point}")
        return f"bot-{said['id']}"

    async def heard(self) -> list[str]:
        """What ann has received by now, notices of the hub aside."""
        await self.net.network.quiet()
        said = [event["message"] for event in await self.ann.sync()]
        return [m["content"] for m in said if m["sender_kind"] == "agent"]


@asynccontextmanager
async def stage(networks: Networks, base: Path) -> AsyncIterator[Stage]:
    async with ModelServer(script()) as model, rig(networks, ROOMY) as net:
        made = Stage(net, await net.person(), model, base)
        with made.points.watching():
            yield made


def whole(heard: list[str]) -> bool:
    """Whether this is a beginning of what the turn says, nothing twice."""
    return heard == SAID[: len(heard)]


def nothing_left(points: Points) -> None:
    left = [task for task in points.tasks if not task.done()]
    assert not left, f"struck at {points.where}, these go on: {left}"


@pytest.mark.behaviour("Y-1")
async def test_a_turn_that_is_stopped_at_any_await_leaves_nothing_behind(
    in_memory: Networks, tmp_path: Path
) -> None:
    outcomes: list[str] = []
    async with stage(in_memory, tmp_path) as play:
        points = play.points
        await play.start_agent()
        for point in range(MOST_POINTS):
            points.strike_at(point, lambda turn: turn.cancel())
            turn = await play.net.turn(await play.ask(point))
            async with soon():
                await asyncio.gather(*points.tasks, return_exceptions=True)
            nothing_left(points)
            assert turn.end is not None
            outcomes.append(turn.end.outcome)
            heard = await play.heard()
            assert whole(heard), points.where
            assert len(turn.sent) == len(heard), points.where
            if not points.struck:
                break
            assert turn.end.reason == ("struck" if turn.end.outcome == "cancelled" else "all said")
        assert heard == SAID
    assert outcomes[-1] == "finished", "the last one was not struck"
    stopped = outcomes.index("finished")
    assert set(outcomes[:stopped]) == {"cancelled"}
    assert set(outcomes[stopped:]) == {"finished"}
    assert stopped > 40, f"the turn has only {stopped} awaits, are all of them seen?"


@pytest.mark.slow
@pytest.mark.behaviour("Y-2")
async def test_a_turn_whose_process_dies_at_any_await_is_taken_up_and_ended_once(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with stage(in_memory, tmp_path) as play:
        points, net = play.points, play.net
        resumed = 0
        for point in range(MOST_POINTS):
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
            assert turn.end is not None
            assert turn.end.outcome == "finished", points.where
            await eventually(lambda: not net.network.hub.log.waiting)
            assert await play.heard() == SAID, points.where
            assert len(turn.sent) == len(SAID)
            if not points.struck:
                break
            resumed += turn.attempts > 1
            await net.kill("bot")
        assert resumed > 30


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
async def test_a_handler_that_is_stopped_at_any_await_leaves_nothing_behind(
    in_memory: Networks,
) -> None:
    points, outcomes = Points(), []
    async with rig(in_memory, ROOMY) as net:
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
                assert turn.end is not None
                outcomes.append(turn.end.outcome)
                await net.network.quiet()
                texts = [t for t in await ann.texts() if isinstance(t, str)]
                assert whole(texts), points.where
                assert len(turn.sent) == len(texts), points.where
                if not points.struck:
                    break
    stopped = outcomes.index("finished")
    assert set(outcomes[:stopped]) == {"cancelled"}
    assert set(outcomes[stopped:]) == {"finished"}
    assert stopped >= 5


@pytest.mark.behaviour("Y-4")
async def test_a_message_that_arrives_at_any_await_is_heard_exactly_once(
    in_memory: Networks, tmp_path: Path
) -> None:
    answers = [
        Rule(when=When(step=1), answer=says(call("look_up", word="tea"))),
        Rule(when=When(step=2), answer=says(send("ann", "here"), finish())),
    ]
    steered = 0
    async with (
        ModelServer(Script(rules=answers)) as model,
        rig(in_memory, ROOMY) as net,
    ):
        play = Stage(net, await net.person(), model, tmp_path)
        points, saying = play.points, []
        phone = await net.network.join("ann", "human")
        with points.watching():
            await play.start_agent()
            for point in range(MOST_POINTS):
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
                assert turn.end is not None
                assert turn.end.outcome == "finished"
                receipts = await play.ann.call("read_receipts", id=second)
                (bot,) = [r for r in receipts["receipts"] if r["participant"] == "bot"]
                assert (bot["state"], bot["turn"]) == (
                    "ended",
                    turn.start.id if told else f"bot-{second}",
                )
    assert steered > 10
