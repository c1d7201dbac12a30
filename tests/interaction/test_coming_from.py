"""The programs on the pages about migrating from another prompt system."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from hubbub.testing.model_script import AnyAnswer, Script, ScriptRule, When
from hubbub.testing.model_server import ModelServer, ScriptedAnswer
from tests.doc_pages import ROOT, blocks, example
from tests.interaction.agent_harness import call, playing, says
from tests.interaction.role_harness import scores
from tests.programs import printed

PAGES = "docs/how-to/coming-from"


def _write_files(page: str, folder: Path) -> str:
    """Write the files of a page. Returns the name of its program."""
    files = {b.name: b.text for b in blocks(ROOT / PAGES / page) if b.name is not None}
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return next(name for name in files if name.endswith(".py"))


async def _run(page: str, folder: Path, model: ModelServer) -> list[str]:
    """The lines that the page's program prints."""
    return await printed(folder / _write_files(page, folder), model)


async def test_a_model_that_writes_step_actions_can_keep_its_prompt(tmp_path: Path) -> None:
    page = "a-step-action-prompt.md"

    def step(name: str) -> AnyAnswer:
        return ScriptedAnswer(
            text=f"<final_output>{example(f'{PAGES}/{page}', name)}</final_output>"
        )

    helper = When.model_validate({"prompt": "Which date is the first Monday of May"})
    date = ScriptedAnswer(
        text='{"action": "FINISH", "reasoning": "a Monday", "parameters": {"reason": "May 4"}}'
    )
    answers = [step(f"{name}.json") for name in ("parallel", "fork", "finish")]
    async with ModelServer(
        Script(rules=[ScriptRule(when=helper, answer=date)], answers=answers)
    ) as model:
        lines = await _run(page, tmp_path, model)
    assert lines == [
        "No. New ones come on May 4.",
        "both are needed stock search_knowledge",
        "dates are a helper's work fork",
        "all is known finish",
        "a Monday finish",
    ]
    assert "first Monday of May" in model.requests[1].messages[-1].text
    assert "The year is 2026." in str([request.prompt for request in model.requests])
    assert "May 4" in model.requests[-1].messages[-1].text


async def test_a_tool_contract_in_the_prompt_becomes_a_dialect(tmp_path: Path) -> None:
    page = "a-tool-contract.md"
    texts = [example(f"{PAGES}/{page}", name) for name in ("calls.txt", "end.txt")]
    async with playing(*(ScriptedAnswer(text=text) for text in texts)) as model:
        assert await _run(page, tmp_path, model) == ["64.50 euros together.", "24.5 40.0"]
    system = model.requests[0].system
    assert system.startswith("You sell things in the network market. The shop is open.")
    assert '"name": "price"' in system
    assert model.requests[0].raw.get("tools") is None


async def test_prompt_components_build_the_prompts_of_two_agents(tmp_path: Path) -> None:
    two = [says(call("finish", message=text)) for text in ("Yes.", "Seven.")]
    async with playing(*two) as model:
        lines = await _run("prompt-components.md", tmp_path, model)
    assert [line.split()[0] for line in lines] == ["Yes.", "Seven."]
    assert "identity style network" in lines[0]
    assert "stock" in lines[1].split()
    assert "style" not in lines[1].split()
    assert "capabilities" not in lines[0].split()
    systems = [request.system for request in model.requests]
    assert all("In stock: 7 lamps." in system for system in systems)
    assert [("in one sentence" in system) for system in systems] == [True, False]


async def test_each_role_uses_its_own_model(tmp_path: Path) -> None:
    steps: list[JsonValue] = [
        {"id": 1, "goal": "lamp", "executor": "price", "arguments": {"article": "lamp"}},
        {"id": 2, "goal": "clock", "executor": "price", "depends_on": [1]},
        {
            "id": 3, "goal": "sum", "executor": "add",
            "arguments": {"amounts": ["$step_1_result", "$step_2_result"]},
        },
    ]  # fmt: skip
    total = "$step_3_result euros."
    answers = [
        call("route", target="make_plan", confidence=0.9),
        call("submit_plan", steps=steps),
        call("judge", verdict="retry_step", step=1, scores=scores(1), reasoning="no price yet"),
        call("price", article="clock"),
        call("judge", verdict="accept", scores=scores(5), reasoning="priced", answer=total),
    ]
    async with playing(*map(says, answers)) as model:
        lines = await _run("several-roles.md", tmp_path, model)
    assert lines[0] == "64.5 euros."
    calls = [line for line in lines[1:] if not line.startswith("tools")]
    assert calls == [
        "router gpt-5-nano",
        "planner gpt-5-mini",
        "reflector gpt-5-mini",
        "executor gpt-5-nano",
        "reflector gpt-5-mini",
    ]


async def test_a_custom_conversation_template_shows_all_threads(tmp_path: Path) -> None:
    answers = [
        call("finish", message="Noted."),
        call("send_direct_message", target="bob", text="Ann wants soup."),
        call("finish", message="Soup."),
    ]
    async with playing(*map(says, answers)) as model:
        lines = await _run("a-conversation-template.md", tmp_path, model)
    assert lines == ["Ann wants soup.", "", "Soup."]
    prompt = model.requests[1].prompt
    assert '<incoming thread="direct_bob">Soup or pizza?</incoming>' in prompt
    assert '<message sender="ann">I should like soup.</message>' in prompt
    assert '<message sender="host">Noted.</message>' in prompt
