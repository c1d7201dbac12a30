"""Agents that search documents and load skills, from their config to their turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.app.preflight import load_valid
from hubbub.app.prompts import agent_prompts
from hubbub.app.readings import readings
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer, Script
from tests.doc_pages import example
from tests.interaction.agent_rig import call, finish, rig, says, send
from tests.interaction.peers import Networks

PAGE = "docs/how-to/give-an-agent-knowledge.md"
FILES = ("handbook/returns.md", "skills/refund.md", "shop.yaml", "look.py")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The folder that the page tells its reader to make."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(example(PAGE, name))
    return tmp_path


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


def models(server: ModelServer) -> dict[str, ModelConfig]:
    return {"default": ModelConfig(model="m", base_url=server.base_url, retries=0)}


def clerk(shop: Path) -> AgentConfig:
    return load_valid(shop / "shop.yaml").file.agent("clerk")


@pytest.mark.behaviour("E-1", "E-6")
async def test_an_agent_looks_something_up_loads_a_skill_and_answers(
    in_memory: Networks, shop: Path
) -> None:
    answers = (
        says(call("search_knowledge", query="are damages refunded?")),
        says(call("load_skill", name="refund")),
        says(send("ann", "Within three days (returns.md).")),
        says(finish()),
    )
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.configured("clerk", clerk(shop), shop, models(model))
        await ann.say("clerk", "my lamp is broken")
        turn = await net.turn("clerk-m1")
    search, load, *_ = [step.calls[0] for step in turn.steps]
    assert search.error is load.error is None
    assert json.loads(search.result or "") == json.loads(example(PAGE, "hit.json"))
    assert load.result == (
        "1. Ask for the order's number.\n2. Tell the customer what they get back, and when."
    )
    assert "- `refund`: How to pay money back, step by step." in (turn.start.system_prompt or "")
    first = model.requests[0].body
    assert first.tools is not None
    assert [tool.function.name for tool in first.tools] == ["search_knowledge"]


@pytest.mark.behaviour("E-2")
async def test_what_was_edited_between_two_turns_is_found(in_memory: Networks, shop: Path) -> None:
    search = says(call("search_knowledge", query="warranty"))
    reply = says(send("ann", "see there"))
    answers = (search, reply, says(finish()), search, reply, says(finish()))
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.configured("clerk", clerk(shop), shop, models(model))
        await ann.say("clerk", "how long is the warranty?")
        before = await net.turn("clerk-m1")
        (shop / "handbook" / "warranty.md").write_text("# Warranty\n\nTwo years.")
        said = await ann.say("clerk", "and now?")
        after = await net.turn(f"clerk-{said['id']}")
    assert '"hits": []' in (before.steps[0].calls[0].result or "")
    assert "Two years." in (after.steps[0].calls[0].result or "")


@pytest.mark.behaviour("E-5")
async def test_results_keep_to_the_agents_budget(in_memory: Networks, shop: Path) -> None:
    for n in range(20):
        (shop / "handbook" / f"{n}.md").write_text(f"# Page {n}\n\n" + "lamp " * 200)
    search = says(call("search_knowledge", query="lamp", limit=20))
    async with playing(search, says(finish())) as model, rig(in_memory) as net:
        ann = await net.person()
        config = clerk(shop).model_copy(update={"result_budget": 1000})
        await net.configured("clerk", config, shop, models(model))
        await ann.say("clerk", "lamps?")
        turn = await net.turn("clerk-m1")
    told = json.loads(turn.steps[0].calls[0].result or "")
    assert 1 <= len(told["hits"]) < 20
    assert "20" in told["hits_cut"]


@pytest.mark.behaviour("E-6")
async def test_an_unknown_skill_is_answered_with_the_near_ones(
    in_memory: Networks, shop: Path
) -> None:
    wrong = says(call("load_skill", name="refunds"))
    config = clerk(shop).model_copy(update={"begin_with": None})
    async with playing(wrong, says(finish())) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.configured("clerk", config, shop, models(model))
        await ann.say("clerk", "hi")
        turn = await net.turn("clerk-m1")
    (made,) = turn.steps[0].calls
    assert made.error == "unknown_skill"
    assert json.loads(made.result or "")["valid_names"] == ["refund"]
    assert made.attempts == 1


@pytest.mark.slow
def test_the_page_says_how_the_search_is_used_from_python(shop: Path) -> None:
    done = subprocess.run(
        [sys.executable, "look.py"],
        cwd=shop,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    told = (
        "returns.md:7 Returns > Damaged goods: Ask for a photo. Refunds are paid within three days."
    )
    assert done.stdout.strip() == told


def test_tools_and_skills_are_shown_without_a_network(shop: Path) -> None:
    prompt = agent_prompts(load_valid(shop / "shop.yaml"))["clerk"]
    assert {"search_knowledge", "load_skill"} <= set(prompt.toolbox.names)
    assert "- `refund`: How to pay money back" in readings(prompt)[0].text


def test_the_limits_of_the_page_can_be_said(shop: Path) -> None:
    (shop / "faq").mkdir()
    (shop / "limits.yaml").write_text(example(PAGE, "limits.yaml"))
    said = load_valid(shop / "limits.yaml").file.knowledge
    assert (said.max_file, said.max_files, said.max_size) == (2 * 1024**2, 20_000, 200 * 1024**2)
    assert said.folders == [str(shop / "handbook"), str(shop / "faq")]
