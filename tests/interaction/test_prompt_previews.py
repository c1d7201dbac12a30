"""The prompts of `hubbub prompts show --agent` are those of a real turn."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from pydantic import JsonValue

from hubbub.app.prompts import agent_prompts
from hubbub.config.loader import LoadedConfig, load
from hubbub.lab.previews import previews
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer
from tests.interaction import trade
from tests.interaction.agent_harness import call, finish, one_person, playing, says, send
from tests.interaction.peers import Networks
from tests.interaction.peers import config as network
from tests.interaction.role_harness import BOTH, judge, plan, route
from tests.interaction.scripted import Config

DIALECTS: tuple[str | None, ...] = (None, "tool_call", "final_output")


def load_bot(folder: Path, base_url: str, dialect: str | None, **agent: JsonValue) -> LoadedConfig:
    """The config of the agent `bot` in a folder with its tools."""
    shutil.copy(trade.FILE, folder / "trade.py")
    tools = [*trade.TOOLS, "send_text_message"]
    sections = {
        "network": {"name": network().network.name},
        "models": {"default": {"model": "m", "base_url": base_url, "dialect": dialect}},
        "agents": {"bot": {"instruction": "Sell things.", "tools": tools, **agent}},
        "humans": {"ann": {}},
    }
    path = folder / "net.yaml"
    path.write_text(yaml.safe_dump(sections))
    return load(path, environ={})


async def run_turn(
    networks: Networks,
    folder: Path,
    dialect: str | None,
    answers: list[AnyAnswer],
    **agent: JsonValue,
) -> tuple[LoadedConfig, Turn, ModelServer]:
    """Run a turn of such an agent: its config, its record and its model server."""
    async with playing(*answers) as model, one_person(networks) as (net, ann):
        loaded = load_bot(folder, model.base_url, dialect, **agent)
        await net.configured("bot", loaded.file.agent("bot"), folder, loaded.file.models)
        await ann.say("bot", "what do a lamp and a clock cost?")
        return loaded, await net.turn("bot-m1"), model


@pytest.mark.behaviour("Q-9")
async def test_a_preview_is_what_the_model_reads(in_memory: Networks, tmp_path: Path) -> None:
    prompt: JsonValue = {"reminder": ["Be brief."], "scratchpad": True}
    cases: list[Config] = [
        {},
        {"fork": {}, "begin_with": "price_of", "prompt": prompt},
    ]
    answers: list[AnyAnswer] = [
        says(call("price_of", article="lamp")), says(send("ann", "24.5"), finish()),
    ]  # fmt: skip
    for dialect in DIALECTS:
        for more in cases:
            loaded, turn, model = await run_turn(in_memory, tmp_path, dialect, answers, **more)
            (shown,) = previews(agent_prompts(loaded)["bot"])
            assert shown.text == turn.system_prompt == model.requests[0].system, dialect
            assert shown.prompt.components == turn.start.components
            assert "tidy_steps" not in shown.text


@pytest.mark.behaviour("Q-9")
async def test_the_preview_of_a_role_is_what_it_reads(in_memory: Networks, tmp_path: Path) -> None:
    first: JsonValue = {"id": 1, "goal": "price of the lamp", "executor": "price_of"}
    answers: list[AnyAnswer] = [
        route("make_plan"),
        plan([first, *BOTH[1:]]),
        says(call("price_of", article="lamp")),
        judge("accept", answer="$step_3_result"),
    ]
    pipeline: Config = {"kind": "pipeline", "roles": {"targets": []}}
    for dialect in DIALECTS:
        loaded, _, model = await run_turn(in_memory, tmp_path, dialect, answers, **pipeline)
        shown = previews(agent_prompts(loaded)["bot"])
        assert [one.role for one in shown] == ["router", "planner", "executor", "reflector"]
        assert [request.system for request in model.requests] == [r.text for r in shown], dialect
        assert shown[2].tool == "price_of"


def test_a_role_without_tools_to_call_has_no_preview(tmp_path: Path) -> None:
    loaded = load_bot(tmp_path, "http://127.0.0.1:9", None, kind="router", tools=[])
    shown = previews(agent_prompts(loaded)["bot"])
    assert [preview.role for preview in shown] == ["router"]
