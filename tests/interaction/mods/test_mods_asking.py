"""What mods may ask of the hub and of each other."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, JsonValue

from hubbub.config.agents import ModelConfig
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Calling, operation
from hubbub.protocol.operations import Input
from tests.interaction.mods.office import ask, office, refused, say

pytestmark = pytest.mark.behaviour("M-193")


class Question(Input):
    name: str
    """The operation."""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """Its arguments."""


class Told(BaseModel):
    told: JsonValue


class Clerk(Mod):
    """Asks for others."""

    name = "clerk"

    @operation()
    async def ask_for_me(self, call: Calling, args: Question) -> Told:
        """Ask for an operation in the caller's place."""
        answer = await self.host.ask(call, args.name, **args.args)
        return Told(told=answer.model_dump(mode="json"))


class Plain(Mod):
    """Has a plain operation."""

    name = "plain"

    @operation()
    def plain_number(self, call: Calling, args: Input) -> Told:
        """Tell a number and who asks."""
        return Told(told=[42, call.participant])


def mods() -> list[Mod]:
    return [Clerk(ModConfig()), Plain(ModConfig())]


async def test_a_mod_asks_for_what_its_caller_could_ask_for_and_for_nothing_else() -> None:
    async with office(*mods()) as network:
        ann, cat = await network.join("ann", "human"), await network.join("cat", "human")
        id = await say(ann, "bob", "between us")
        args = {"name": "read_message", "args": {"id": id}}
        told = await ask(ann, "ask_for_me", **args)
        assert told["told"]["content"] == "between us"
        assert (await refused(cat, "ask_for_me", **args)).code == "unknown_message"
        plain = await ask(cat, "ask_for_me", name="plain_number")
        assert plain["told"]["told"] == [42, "cat"]


async def test_what_writes_is_not_asked_for_and_wrong_arguments_are_told() -> None:
    async with office(*mods()) as network:
        ann = await network.join("ann", "human")
        for name in ("send_text_message", "add_token", "nothing"):
            error = await refused(ann, "ask_for_me", name=name)
            assert error.code == "unknown_operation"
        error = await refused(ann, "ask_for_me", name="read_message", args={"idd": 1})
        assert error.code == "bad_request"
        assert "idd" in error.message
        assert not network.hub.mods.failures


async def test_a_mod_knows_the_others_by_name_in_their_order() -> None:
    async with office(*mods()) as network:
        clerk, plain = network.hub.mods.pipeline.mods
        assert list(clerk.host.mods()) == [clerk, plain]
        assert clerk.host.mod("plain") is plain
        assert plain.host.mod("nobody") is None


async def test_a_mod_knows_how_busy_an_agent_is_and_what_was_read() -> None:
    model = ModelConfig(model="x")
    async with office(*mods(), models={"small": model}) as network:
        host = network.hub.mods.pipeline.mods[0].host
        ann, bot = await network.join("ann", "human"), await network.join("bot")
        assert host.busy("bot") == (0, 0)
        await say(ann, "bot", "do this")
        await say(ann, "bot", "and that")
        assert host.busy("bot") == (0, 2)
        assert host.busy("ann") == host.busy("nobody") == (0, 0)
        assert host.read_upto("bot", "dm.ann.bot") == 0
        await ask(bot, "mark_read", thread="ann", upto=1)
        assert host.read_upto("bot", "dm.ann.bot") == 1
        assert host.model("small") == model
        assert host.model("large") is None
