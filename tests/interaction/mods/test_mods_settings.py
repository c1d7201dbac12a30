"""Changes of the settings of mods while the network runs."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, JsonValue

from hubbub.config.models import HumanConfig, NetworkConfig, NetworkFile
from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Mod, ModConfig, Verdict
from hubbub.mods.operation import Calling, operation
from hubbub.protocol.messages import Draft
from hubbub.protocol.operations import Input
from hubbub.testing.network import LocalNetwork


class PickyConfig(ModConfig):
    word: str = "no"
    """The mod fails at messages with this word."""


class Nothing(Input):
    """No arguments."""


class Word(BaseModel):
    word: str


class Picky(Mod):
    """Fails at a word, and takes not every word."""

    name = "picky"
    Config = PickyConfig
    config: PickyConfig

    def reconfigure(self, config: ModConfig) -> None:
        super().reconfigure(config)
        if self.config.word == "explode":
            raise ValueError("not that word")

    def on_message(self, draft: Draft) -> Verdict:
        if draft.content == self.config.word:
            raise ValueError("that word")
        return PASS

    @operation()
    def picky_word(self, call: Calling, args: Nothing) -> Word:
        """Return the word."""
        return Word(word=self.config.word)


def network() -> LocalNetwork:
    humans = {"olga": HumanConfig(roles=["owner"])}
    file = NetworkFile(network=NetworkConfig(auth="open"), humans=humans)
    return LocalNetwork(file, mods=[Picky(PickyConfig())])


async def test_new_settings_apply_at_once_in_the_mod_and_the_hub() -> None:
    async with network() as running:
        olga = await running.join("olga", "human")
        bot = await running.join("bot", "agent")
        await bot.call("broadcast_text_message", text="no")  # on_failure: pass
        settings: JsonValue = {
            "word": "never",
            "on_failure": "reject",
            "permissions": {"picky_word": "admin"},
        }
        answer = await olga.call("configure_mod", name="picky", settings=settings)
        assert isinstance(answer, dict)
        assert (answer["name"], answer["operations"]) == ("picky", ["picky_word"])
        await bot.call("broadcast_text_message", text="no")
        with pytest.raises(OperationError, match="picky: the mod failed"):
            await bot.call("broadcast_text_message", text="never")
        with pytest.raises(OperationError, match="owner"):
            await bot.call("picky_word")
        assert await olga.call("picky_word") == {"word": "never"}
        late = await running.join("late", "agent")
        assert "picky_word" not in [op.name for op in late.ready.operations]


@pytest.mark.behaviour("M-32")
async def test_invalid_settings_change_nothing_and_only_owners_can_set_any() -> None:
    async with network() as running:
        olga = await running.join("olga", "human")
        bot = await running.join("bot", "agent")
        await bot.call("broadcast_text_message", text="no")
        wrong: list[tuple[str, JsonValue, str]] = [
            ("picky", {"wrod": "x"}, "mods.picky.wrod"),
            ("picky", {"time_limit": "soon"}, "mods.picky.time_limit"),
            ("picky", {"permissions": {"picky_wrod": "admin"}}, "did you mean picky_word"),
            ("picky", {"word": "explode"}, "rejected these settings.*not that word"),
            ("pciky", {}, "no mod 'pciky'; did you mean picky"),
        ]
        for name, settings, message in wrong:
            with pytest.raises(OperationError, match=message):
                await olga.call("configure_mod", name=name, settings=settings)
            assert await olga.call("picky_word") == {"word": "no"}
            (mod,) = running.hub.kernel.pipeline.mods
            assert mod.config == PickyConfig()
        with pytest.raises(OperationError, match="owner"):
            await bot.call("configure_mod", name="picky", settings={})
        about = {
            "name": "picky", "about": "Fails at a word, and takes not every word.",
            "operations": ["picky_word"], "failures": 2,
        }  # fmt: skip
        assert await bot.call("list_mods") == {"mods": [about]}, "without settings"
        tools = [op.name for op in bot.ready.operations if op.tool]
        assert not {"list_mods", "configure_mod"} & set(tools)
