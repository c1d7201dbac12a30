"""Calls of mods to operations of the hub and of other mods."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field, JsonValue

from hubbub.config.agents import ModelConfig
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Calling, operation
from hubbub.protocol.operations import Input
from tests.interaction.mods.workspace import refusal, refused, workspace

pytestmark = pytest.mark.behaviour("M-193")


class Question(Input):
    name: str
    """The operation."""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """Its arguments."""


class Result(BaseModel):
    value: JsonValue


class Clerk(Mod):
    """Calls operations for its callers."""

    name = "clerk"

    @operation()
    async def ask_for_me(self, call: Calling, args: Question) -> Result:
        """Call an operation for the caller."""
        answer = await self.host.ask(call, args.name, **args.args)
        return Result(value=answer.model_dump(mode="json"))


class Plain(Mod):
    """Has a plain operation."""

    name = "plain"

    @operation()
    def plain_number(self, call: Calling, args: Input) -> Result:
        """Return a number and the caller."""
        return Result(value=[42, call.participant])


def mods() -> list[Mod]:
    return [Clerk(ModConfig()), Plain(ModConfig())]


async def test_a_mod_can_call_only_reads_that_its_caller_could_make() -> None:
    async with workspace(mods(), "ann", "bob", "cat") as (network, ann, _, cat):
        id = (await ann.say("bob", "between us"))["id"]
        args: dict[str, Any] = {"name": "read_message", "args": {"id": id}}
        answer = await ann.call("ask_for_me", **args)
        assert answer["value"]["content"] == "between us"
        assert await refused(cat, "ask_for_me", **args) == "unknown_message"
        answer = await cat.call("ask_for_me", name="plain_number")
        assert answer["value"]["value"] == [42, "cat"]
        for name in ("send_text_message", "add_token", "nothing"):  # writes, or does not exist
            assert await refused(ann, "ask_for_me", name=name) == "unknown_operation"
        error = await refusal(ann, "ask_for_me", name="read_message", args={"idd": 1})
        assert (error.code, "idd" in error.message) == ("bad_request", True)
        assert not network.hub.services.mods.failures


async def test_a_mod_can_see_mods_models_load_and_read_marks() -> None:
    model = ModelConfig(model="x")
    async with workspace(mods(), "ann", "bot", models={"small": model}) as (network, ann, bot):
        clerk, plain = network.hub.services.mods.pipeline.mods
        host = clerk.host
        assert list(host.mods()) == [clerk, plain]
        assert host.busy("bot") == (0, 0)
        await ann.say("bot", "do this")
        await ann.say("bot", "and that")
        assert host.busy("bot") == (0, 2)
        assert host.busy("ann") == host.busy("nobody") == (0, 0)
        assert host.read_upto("bot", "dm.ann.bot") == 0
        await bot.call("mark_read", thread="ann", upto=1)
        assert host.read_upto("bot", "dm.ann.bot") == 1
        assert (host.model("small"), host.model("large")) == (model, None)
