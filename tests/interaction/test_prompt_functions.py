"""Prompts computed in Python: components, conditions and instructions as functions."""

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


async def system_prompt(**agent: Any) -> str:
    """The system message of the model's first request."""
    async with playing(says(call("finish", message="ok"))) as model:
        clerk = LlmAgent("clerk", model="m", base_url=model.base_url, retries=0, **agent)
        async with Network(clerk, name="shop") as net:
            await net.ask("clerk", "hello")
    return str(model.requests[0].messages[0].content)


async def test_components_conditions_and_instructions_can_be_functions() -> None:
    builder = (
        default_builder()
        .register(Component("stock", stock, 60))
        .register(Component("closed", "We are closed.", when=closed))
        .replace(Component("network", greeting, 95))
    )
    builder.unregister("delegation")
    before = builder.names
    system = await system_prompt(prompt=builder, instruction="Sell.", tools=[])
    assert "clerk has 7 chairs for direct_user." in system
    assert "You are the clerk of shop." in system
    assert "We are closed." not in system
    assert builder.names == before, "an agent copies its builder"
    for instruction in (greeting, stock):
        system = await system_prompt(instruction=instruction)
        assert system.startswith(("You are the clerk of shop.", "clerk has 7 chairs"))


async def test_an_error_in_a_function_names_its_component(snapshot: SnapshotAssertion) -> None:
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
    errors = {}
    for name, agent in {**agents, "instruction": {"instruction": broken}}.items():
        with pytest.raises(NoAnswer) as failed:
            await system_prompt(**agent)
        errors[name] = str(failed.value)
    assert errors == snapshot


@pytest.mark.slow  # the Python runs in a separate process
def test_yaml_can_name_a_builder_and_functions(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "shop.py").write_text(_SHOP)
    config = tmp_path / "net.yaml"

    def preview_of(prompt: str) -> str:
        config.write_text(_NET.replace("PROMPT", prompt))
        (preview,) = previews(agent_prompts(load_valid(config))["clerk"])
        return preview.text

    assert "Three left." in preview_of("shop.py:builder")
    both = preview_of("{builder: shop.py:builder, reminder: [Be brief.]}")
    assert "Three left." in both
    assert both.endswith("- Be brief.")
    assert "clerk sells." in preview_of("{components: {add: {who: {function: shop.py:who}}}}")
    errors = {}
    for prompt in (
        "shop.py:bilder",
        "shop.py:who",
        "{builder: shop.py:gone}",
        "{components: {add: {who: {function: shop.py:whom}}}}",
        "{components: {add: {who: {function: shop.py:who, text: x}}}}",
    ):
        with pytest.raises(ConfigError) as caught:
            preview_of(prompt)
        errors[prompt] = str(caught.value).replace(str(tmp_path), "FOLDER")
    assert errors == snapshot


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
