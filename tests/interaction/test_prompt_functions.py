"""Prompts that Python computes: parts, conditions and instructions as functions of the context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub import Component, LlmAgent, Network, NoAnswer, PromptContext, default_builder
from hubbub.app.preflight import load_valid
from hubbub.app.prompts import agent_prompts
from hubbub.errors import ConfigError
from hubbub.lab.previews import previews
from tests.interaction.agent_harness import call, playing, says


async def stock(context: PromptContext) -> str:
    return f"{context.agent} has 7 chairs for {context.thread}."


async def closed(context: PromptContext) -> bool:
    return False


def greeting(context: PromptContext) -> str:
    return f"You are the clerk of {context.network}."


async def _system(**agent: Any) -> str:
    """The system message that the model is asked with."""
    async with playing(says(call("finish", message="ok"))) as model:
        clerk = LlmAgent("clerk", model="m", base_url=model.base_url, retries=0, **agent)
        async with Network(clerk, name="shop") as net:
            await net.ask("clerk", "hello")
    return str(model.requests[0].messages[0].content)


async def test_parts_conditions_and_the_instruction_may_be_functions_async_too() -> None:
    builder = (
        default_builder()
        .register(Component("stock", stock, 60))
        .register(Component("closed", "We are closed.", when=closed))
        .replace(Component("network", greeting, 95))
    )
    builder.unregister("delegation")
    before = builder.names
    system = await _system(prompt=builder, instruction="Sell.", tools=[])
    assert "clerk has 7 chairs for direct_user." in system
    assert "You are the clerk of shop." in system
    assert "We are closed." not in system
    assert builder.names == before, "an agent has a builder of its own"
    for instruction in (greeting, stock):
        system = await _system(instruction=instruction)
        assert system.startswith(("You are the clerk of shop.", "clerk has 7 chairs"))


async def test_what_a_function_does_wrong_is_told_with_its_part(
    snapshot: SnapshotAssertion,
) -> None:
    def broken(context: PromptContext) -> str:
        raise KeyError("price list")

    async def numbers(context: PromptContext) -> Any:
        return 7

    parts = {
        "raises": Component("stock", broken),
        "no text": Component("stock", numbers),
        "condition": Component("stock", "x", when=broken),  # type: ignore[arg-type]  # a mistake
        "lambda": Component("stock", lambda context: stock(context)),
    }
    agents: dict[str, dict[str, Any]] = {
        name: {"prompt": default_builder().register(part)} for name, part in parts.items()
    }
    told = {}
    for name, agent in {**agents, "instruction": {"instruction": broken}}.items():
        with pytest.raises(NoAnswer) as failed:
            await _system(**agent)
        told[name] = str(failed.value)
    assert told == snapshot


@pytest.mark.slow  # the Python is tried in a process of its own
def test_yaml_names_a_builder_and_functions(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "shop.py").write_text(_SHOP)
    config = tmp_path / "net.yaml"

    def shown(prompt: str) -> str:
        config.write_text(_NET.replace("PROMPT", prompt))
        (preview,) = previews(agent_prompts(load_valid(config))["clerk"])
        return preview.text

    assert "Three left." in shown("shop.py:builder")
    both = shown("{builder: shop.py:builder, reminder: [Be brief.]}")
    assert "Three left." in both
    assert both.endswith("- Be brief.")
    assert "clerk sells." in shown("{components: {add: {who: {function: shop.py:who}}}}")
    wrong = {}
    for prompt in (
        "shop.py:bilder",
        "shop.py:who",
        "{builder: shop.py:gone}",
        "{components: {add: {who: {function: shop.py:whom}}}}",
        "{components: {add: {who: {function: shop.py:who, text: x}}}}",
    ):
        with pytest.raises(ConfigError) as caught:
            shown(prompt)
        wrong[prompt] = str(caught.value).replace(str(tmp_path), "FOLDER")
    assert wrong == snapshot


_SHOP = """
from hubbub import Component, default_builder

async def left(context):
    return "Three left."

def who(context):
    return f"{context.agent} sells."

builder = default_builder().register(Component("left", left))
"""
_NET = """
network: {name: shop, auth: open, store: "sqlite::memory:"}
models: {default: {model: m}}
agents:
  clerk:
    prompt: PROMPT
"""
