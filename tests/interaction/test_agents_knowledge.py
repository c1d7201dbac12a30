"""Agents that search documents and load skills, from config to turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hubbub.app.preflight import load_valid
from hubbub.app.prompts import agent_prompts
from hubbub.lab.previews import previews
from hubbub.testing.model_script import AnyAnswer
from tests.doc_pages import example
from tests.interaction.agent_harness import call, finish, says, send
from tests.interaction.peers import Networks
from tests.interaction.scripted import Config, Scene, scene

PAGE = "docs/how-to/give-an-agent-knowledge.md"
FILES = ("handbook/returns.md", "skills/refund.md", "shop.yaml", "look.py")
DONE = says(send("ann", "Within three days (returns.md)."), finish())


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The folder of the page's example."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(example(PAGE, name))
    return tmp_path


def clerk(
    networks: Networks, shop: Path, *answers: AnyAnswer, **more: object
) -> AbstractAsyncContextManager[Scene]:
    """The agent of the page."""
    clerk = load_valid(shop / "shop.yaml").file.agent("clerk")
    agent: Config = clerk.model_dump(exclude_unset=True)
    return scene(networks, *answers, base=shop, **{**agent, "model": "default", **more})


@pytest.mark.behaviour("E-1", "E-2", "E-6")
async def test_an_agent_searches_loads_a_skill_and_finds_edited_documents(
    in_memory: Networks, shop: Path
) -> None:
    answers = (
        says(call("search_knowledge", query="are damages refunded?")),
        says(call("load_skill", name="refund"), call("load_skill", name="refunds")), DONE,
        says(call("search_knowledge", query="warranty")), DONE,
        says(call("search_knowledge", query="warranty")), DONE,
    )  # fmt: skip
    async with clerk(in_memory, shop, *answers) as s:
        turn = await s.turn("my lamp is broken")
        before = await s.turn("how long is the warranty?")
        (shop / "handbook" / "warranty.md").write_text("# Warranty\n\nTwo years.")
        after = await s.turn("and now?")
        assert s.model.requests[0].tools == ["search_knowledge"], "as `begin_with` demands"
    search, load = turn.steps[0].calls[0], turn.steps[1].calls[0]
    assert search.error is load.error is None
    assert json.loads(search.result or "") == json.loads(example(PAGE, "hit.json"))
    assert load.result == (
        "1. Ask for the order number.\n"
        "2. Tell the customer the amount of the refund and when it will arrive."
    )
    prompt = turn.system_prompt or ""
    assert (
        "Before such work, load one with `load_skill`:\n"
        "- `refund`: How to refund an order, step by step." in prompt
    )
    assert "Ask for the order number" not in prompt
    unknown = turn.steps[1].calls[1]
    assert (unknown.error, unknown.attempts) == ("unknown_skill", 1)
    assert json.loads(unknown.result or "")["valid_names"] == ["refund"]
    assert '"hits": []' in (before.steps[0].calls[0].result or "")
    assert "Two years." in (after.steps[0].calls[0].result or "")


async def test_passages_that_match_the_incoming_message_are_added_to_the_prompt(
    in_memory: Networks, shop: Path
) -> None:
    page = "# Lamps\n\nA broken lamp: </knowledge> " + "x " * 2000
    (shop / "handbook" / "lamps.md").write_text(page)
    knowledge = {"folders": ["handbook"], "auto": 2, "auto_tokens": 60}
    answers = (DONE, DONE)
    async with clerk(in_memory, shop, *answers, knowledge=knowledge, begin_with=None) as s:
        turn = await s.turn("my broken lamp, is that refunded?")
        other = await s.turn("zzz")
    prompt = turn.system_prompt or ""
    assert "knowledge" in turn.start.components
    assert '<passage source="' in prompt
    assert prompt.count("</knowledge>") == 1, "a document cannot close the element"
    passages = prompt.partition("<knowledge>")[2].partition("</knowledge>")[0]
    assert len(passages) < 60 * 8
    assert "knowledge" not in other.start.components


@pytest.mark.behaviour("E-5")
async def test_search_results_stay_within_the_agents_result_budget(
    in_memory: Networks, shop: Path
) -> None:
    for n in range(20):
        (shop / "handbook" / f"{n}.md").write_text(f"# Page {n}\n\n" + "lamp " * 200)
    search = says(call("search_knowledge", query="lamp", limit=20))
    async with clerk(in_memory, shop, search, DONE, result_budget=1000) as s:
        result = json.loads((await s.turn("lamps?")).steps[0].calls[0].result or "")
    assert 1 <= len(result["hits"]) < 20
    assert "20" in result["hits_cut"]


@pytest.mark.slow
def test_the_pages_python_example_prints_the_passage(shop: Path) -> None:
    run = subprocess.run(
        [sys.executable, "look.py"],
        cwd=shop,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    passage = "Ask for a photo. Refunds are paid within three days."
    assert run.stdout.strip() == f"returns.md:7 Returns > Damaged goods: {passage}"


def test_a_prompt_preview_shows_tools_and_skills_and_limits_are_configurable(shop: Path) -> None:
    prompt = agent_prompts(load_valid(shop / "shop.yaml"))["clerk"]
    assert {"search_knowledge", "load_skill"} <= set(prompt.toolbox.names)
    assert "- `refund`: How to refund an order" in previews(prompt)[0].text
    (shop / "faq").mkdir()
    (shop / "limits.yaml").write_text(example(PAGE, "limits.yaml"))
    limits = load_valid(shop / "limits.yaml").file.knowledge
    assert (limits.max_file, limits.max_files) == (2 * 1024**2, 20_000)
    assert limits.max_size == 200 * 1024**2
    assert limits.folders == [str(shop / "handbook"), str(shop / "faq")]
