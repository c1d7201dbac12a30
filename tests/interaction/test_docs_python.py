"""The Python programs on the pages do what the pages say."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.agents.launch import run_agent
from hubbub.agents.tools.assembly import ToolKit
from hubbub.app.preflight import load_valid
from hubbub.app.prompts import agent_prompts
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import ConfigError
from hubbub.protocol.frames import Event
from hubbub.testing.model_server import ModelServer
from hubbub.testing.network import LocalNetwork
from tests.doc_pages import example
from tests.interaction.agent_harness import call, playing, says
from tests.interaction.peers import soon

PAGE = "docs/how-to/use-hubbub-in-python.md"


async def _run(folder: Path, page: str, name: str, model: ModelServer) -> list[str]:
    """The lines that a page's program prints in a process of its own."""
    (folder / name).write_text(example(page, name))
    environment = {"OPENAI_BASE_URL": model.base_url, "PATH": "", "SSL_CERT_DIR": str(folder)}
    program = await asyncio.create_subprocess_exec(
        sys.executable, name, cwd=folder, env=environment, stdout=PIPE, stderr=PIPE
    )
    out, err = await program.communicate()
    assert (program.returncode, model.mistakes) == (0, []), err.decode()
    return out.decode().splitlines()


@pytest.mark.slow
async def test_the_programs_on_the_pages_print_the_expected_output(tmp_path: Path) -> None:
    async with playing(says(call("finish", message="It is blue."))) as model:
        assert await _run(tmp_path, "README.md", "ask.py", model) == ["It is blue."]
    async with playing(says(call("finish", message="It is wide."))) as model:
        assert await _run(tmp_path, PAGE, "one.py", model) == ["It is wide."]
    both: JsonValue = [{"order": 7, "cents": 1900}, {"order": 8, "cents": 250}]
    async with playing(
        says(call("price_of", order=7)),
        says(call("finish", message="19.00")),
        says(call("finish", message=both)),
        says(call("finish", message="You are welcome.")),
    ) as model:
        first, total, *events = await _run(tmp_path, PAGE, "refunds.py", model)
    assert first.startswith("19.00 ")
    assert total == "2150"
    assert events == ["turn_start", "step", "tool_start", "tool_end", "turn_end"]


def test_the_program_in_the_readme_has_at_most_ten_lines() -> None:
    assert len([x for x in example("README.md", "ask.py").splitlines() if x.strip()]) <= 10


@pytest.mark.slow  # the check imports the Python file in a process of its own
async def test_yaml_can_name_python_agents_and_tools_and_override_their_config(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "shop.py").write_text(_SHOP)
    (tmp_path / "net.yaml").write_text(_NET)
    loaded = load_valid(tmp_path / "net.yaml")
    prompt = agent_prompts(loaded)["clerk"]
    assert (prompt.config.instruction, prompt.config.max_steps) == ("You sell.", 4)
    assert "price" in prompt.toolbox.names
    async with (
        playing(says(call("price", order=7)), says(call("finish", message="3"))) as model,
        LocalNetwork(loaded.file) as network,
        asyncio.TaskGroup() as group,
    ):
        models = {"cheap": ModelConfig(model="m", base_url=model.base_url)}
        for name in ("clerk", "echo"):
            client = await network.join(name, turns=True)
            config = loaded.file.agent(name).model_copy(update={"model": "cheap"})
            work = run_agent(config, name, client, tmp_path, models, grace_s=0)
            group.create_task(work, name=name)
        ann = await network.join("ann", "human")
        for name in ("clerk", "echo"):
            await ann.call("send_text_message", to=name, text="hello")
        replies: dict[str, JsonValue] = {}
        async with soon():
            async for item in ann.events():
                if isinstance(item, Event):
                    replies[item.message.sender_id] = item.message.content
                if len(replies) == 2:
                    break
        for task in group._tasks.copy():
            task.cancel()
    assert replies == {"clerk": "3", "echo": "hello"}

    def kit(tools: str) -> ToolKit:
        config = AgentConfig.model_validate({"tools": [str(tmp_path / tools)]})
        return ToolKit(config, "a", tmp_path)

    assert set(kit("shop.py:*").own_names.values()) == {"price", "stock"}
    with pytest.raises(ConfigError, match="is not a function, and has no `@tool`"):
        kit("shop.py:clerk")
    (tmp_path / "net.yaml").write_text(_NET + '  every: {tools: ["shop.py:*"], model: cheap}\n')
    assert load_valid(tmp_path / "net.yaml").file.agents["every"].tools == [f"{tmp_path}/shop.py:*"]

    problems = {}
    for name in ("nothing", "clark"):
        (tmp_path / "net.yaml").write_text(_NET.replace("shop.py:clerk", f"shop.py:{name}"))
        with pytest.raises(ConfigError) as caught:
            load_valid(tmp_path / "net.yaml")
        problems[name] = str(caught.value).replace(str(tmp_path), "FOLDER")
    assert problems == snapshot


_SHOP = """
from hubbub import Agent, LlmAgent, tool

@tool
def price(order: int) -> int:
    "The price of an order."
    return 1900

@tool
def stock() -> int:
    "The number of pieces in stock."
    return 3

clerk = LlmAgent("clerk", model="m", instruction="You buy.", tools=[price], max_steps=4)
nothing = 3

class Echo(Agent):
    def on_direct(self, message):
        return message.text
"""
_NET = """
network: {name: shop, auth: open, store: "sqlite::memory:"}
models: {cheap: {model: m}}
agents:
  clerk: {object: "shop.py:clerk", instruction: You sell.}
  echo: {object: "shop.py:Echo"}
"""
