"""Branches and cases that owners ask a running network for."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.errors import OperationError
from hubbub.protocol.agents import Branch, Branched, BranchSide
from tests.interaction.peers import Networks, config

pytestmark = pytest.mark.behaviour("Q-13")

NOTHING = BranchSide(messages=0, turns=0, tokens_in=0, tokens_out=0, seconds=0.0)


class Held:
    """A command line whose commands end when they are let go."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = asyncio.Event()

    async def branch(self, args: Branch) -> Branched:
        self.asked.append(args.message)
        await self.go.wait()
        return Branched(message=args.message, then=NOTHING, now=NOTHING)

    async def case(self, message: str) -> str:
        self.asked.append(f"case {message}")
        return "cases: []"


async def test_a_command_that_runs_is_not_begun_again_and_two_run_at_once(
    in_memory: Networks,
) -> None:
    async with in_memory.start(config(humans={"ann": {"roles": ["owner"]}})) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        with pytest.raises(OperationError, match="only `hubbub up` can"):
            await ann.call("branch", message="m1")
        held = network.hub.services.trials.program = Held()
        first = await ann.post("branch", message="m1")
        again = await ann.post("branch", message="m1")
        other = await ann.post("branch", message="m2")
        with pytest.raises(OperationError, match="2 of these are already running"):
            await ann.call("make_case", message="m3")
        with pytest.raises(OperationError, match="only an owner"):
            await bot.call("make_case", message="m3")
        network.hub.services.trials.branching.patience_s = 0.0
        with pytest.raises(OperationError, match="ask again") as caught:
            await ann.call("branch", message="m1")
        assert caught.value.temporary, "the page asks again by itself"
        network.hub.services.trials.branching.patience_s = 10.0
        held.go.set()
        for ref, message in ((first, "m1"), (again, "m1"), (other, "m2")):
            assert (await ann.answer(ref))["value"]["message"] == message
        assert held.asked == ["m1", "m2"]
        assert await ann.call("make_case", message="m3") == {"yaml": "cases: []"}
