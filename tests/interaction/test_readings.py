"""`hubbub prompts show --agent` shows what the models of that agent read in a turn."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from pydantic import JsonValue

from hubbub.app.prompts import agent_prompts
from hubbub.app.readings import readings
from hubbub.config.loader import LoadedConfig, load
from hubbub.testing.model_server import ModelServer
from tests.interaction import trade
from tests.interaction.agent_rig import call, finish, rig, says, send
from tests.interaction.peers import Networks
from tests.interaction.peers import config as network
from tests.interaction.role_rig import BOTH, judge, plan, playing, route

DIALECTS = pytest.mark.parametrize("dialect", [None, "tool_call", "final_output"])
TOOLS: list[JsonValue] = ["trade.py:price_of", "trade.py:total_of", "send_text_message"]


def written(
    folder: Path, server: ModelServer, dialect: str | None, **agent: JsonValue
) -> LoadedConfig:
    """The config of the agent `bot`, in a folder with its tools."""
    shutil.copy(trade.FILE, folder / "trade.py")
    model: dict[str, JsonValue] = {"model": "m", "base_url": server.base_url, "dialect": dialect}
    sections = {
        "network": {"name": network().network.name},
        "models": {"default": model},
        "agents": {"bot": {"instruction": "Sell things.", "tools": TOOLS, **agent}},
        "humans": {"ann": {}},
    }
    path = folder / "net.yaml"
    path.write_text(yaml.safe_dump(sections))
    return load(path, environ={})


@DIALECTS
@pytest.mark.behaviour("Q-9")
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"fork": {}, "begin_with": "price_of"},
        {"prompt": {"reminder": ["Be brief."], "scratchpad": True}, "fork": {}},
    ],
)
async def test_the_prompt_of_a_model_is_what_it_reads(
    in_memory: Networks, tmp_path: Path, dialect: str | None, more: dict[str, JsonValue]
) -> None:
    answers = [says(call("price_of", article="lamp")), says(send("ann", "24.5")), says(finish())]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        loaded = written(tmp_path, model, dialect, **more)
        await net.configured("bot", loaded.file.agent("bot"), tmp_path, loaded.file.models)
        await ann.say("bot", "what is a lamp?")
        turn = await net.turn("bot-m1")
        (shown,) = readings(agent_prompts(loaded)["bot"])
        assert shown.text == turn.start.system_prompt == model.requests[0].system
        assert shown.prompt.components == turn.start.components
        assert ("tidy_steps" in shown.text) is False


@DIALECTS
@pytest.mark.behaviour("Q-9")
async def test_the_prompts_of_roles_are_what_each_of_them_reads(
    in_memory: Networks, tmp_path: Path, dialect: str | None
) -> None:
    first: JsonValue = {"id": 1, "goal": "price of the lamp", "executor": "price_of"}
    answers = [
        route("make_plan"),
        plan([first, *BOTH[1:]]),
        says(call("price_of", article="lamp")),
        judge("accept", answer="$step_3_result"),
    ]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        loaded = written(tmp_path, model, dialect, kind="pipeline", roles={"targets": []})
        await net.configured("bot", loaded.file.agent("bot"), tmp_path, loaded.file.models)
        await ann.say("bot", "what do a lamp and a clock cost?")
        await net.turn("bot-m1")
        shown = readings(agent_prompts(loaded)["bot"])
        assert [reading.role for reading in shown] == [
            "router", "planner", "executor", "reflector",
        ]  # fmt: skip
        assert [request.system for request in model.requests] == [r.text for r in shown]
        assert shown[2].tool == "price_of"


def test_a_role_without_a_tool_to_call_is_not_shown(tmp_path: Path) -> None:
    loaded = written(tmp_path, playing(), None, kind="router", tools=[])
    shown = readings(agent_prompts(loaded)["bot"])
    assert [reading.role for reading in shown] == ["router"]
