"""Branches and cases that owners request from a running network."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.errors import OperationError
from hubbub.protocol.agents import Branch, Branched, BranchSide
from tests.interaction.peers import Networks, config

pytestmark = pytest.mark.behaviour("Q-13")

NOTHING = BranchSide(messages=0, turns=0, tokens_in=0, tokens_out=0, seconds=0.0)


class HeldProgram:
    """A command line whose branches finish when the test releases them."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.released = asyncio.Event()

    async def branch(self, args: Branch) -> Branched:
        self.commands.append(args.message)
        await self.released.wait()
        return Branched(message=args.message, then=NOTHING, now=NOTHING)

    async def case(self, message: str) -> str:
        self.commands.append(f"case {message}")
        return "cases: []"


async def test_a_running_command_is_not_started_twice_and_at_most_two_run_at_once(
    in_memory: Networks,
) -> None:
    async with in_memory.start(config(humans={"ann": {"roles": ["owner"]}})) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        with pytest.raises(OperationError, match="only `hubbub up` can"):
            await ann.call("branch", message="m1")
        program = network.hub.services.trials.program = HeldProgram()
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
        assert caught.value.temporary, "the page retries by itself"
        network.hub.services.trials.branching.patience_s = 10.0
        program.released.set()
        for ref, message in ((first, "m1"), (again, "m1"), (other, "m2")):
            assert (await ann.answer(ref))["value"]["message"] == message
        assert program.commands == ["m1", "m2"]
        assert await ann.call("make_case", message="m3") == {"yaml": "cases: []"}
