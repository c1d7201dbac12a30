"""Records of the runtime in the turn inspector."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import expect
from pydantic import JsonValue

from hubbub.protocol.operations import SendResult
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer, Refusal, Script
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks, fact
from tests.browser.support.room import Plan, Room, call
from tests.interaction.agent_harness import finish, says, send

pytestmark = pytest.mark.behaviour("U-7")

HERE = says(send("ann", "here"))
LAST = says(finish("all said"))


@asynccontextmanager
async def running(
    models: Plan, agents: Plan, *answers: AnyAnswer
) -> AsyncIterator[tuple[Room, ModelServer]]:
    """A network with these agents; their model gives these answers in order."""
    endpoints: dict[str, JsonValue] = {
        name: {"model": name, **config}
        for name, config in models.items()
        if isinstance(config, dict)
    }
    bots: dict[str, JsonValue] = {
        name: {"kind": "llm", **({} if config else {"instruction": f"You are {name}."}), **config}
        for name, config in agents.items()
        if isinstance(config, dict)
    }
    plan: Plan = {"models": endpoints, "agents": bots, "humans": {"ann": {"roles": ["owner"]}}}
    async with (
        ModelServer(Script(answers=list(answers))) as model,
        Room.open(plan=plan, model=model) as room,
    ):
        yield room, model


async def looks_into_turn(desk: Desk, agent: str) -> None:
    """Ask an agent, and open the turn that answered."""
    await desk.visit("")
    await desk.talk_to(agent)
    await desk.says("go")
    await desk.sees("here")
    asked = await desk.message("go").first.get_attribute("data-message")
    await desk.visit("turn", f"{agent}-{asked}")
    await expect(desk.main.get_by_text("all said").first).to_be_visible()


async def test_a_turn_shows_what_the_runtime_recorded_and_nothing_else(
    desks: Desks, tmp_path: Path
) -> None:
    version = tmp_path / "prompts" / "greeter" / "1.0.j2"
    version.parent.mkdir(parents=True)
    version.write_text("You greet whoever comes.")
    models: Plan = {
        "default": {"retries": 0},
        "patient": {"retries": 1},
        "wordy": {"dialect": "tool_call"},
    }
    agents: Plan = {
        "plain": {},
        "thinker": {"instruction": "Think.", "model": "patient", "prompt": {"scratchpad": True}},
        "wordy": {"instruction": "Talk.", "model": "wordy"},
        "toolless": {},
        "greeter": {"prompt": {"name": "greeter", "folder": str(version.parent.parent)}},
    }
    thought = says(send("ann", "here"), text="<scratchpad>Ann wants to go.</scratchpad>")
    answers: list[AnyAnswer] = [HERE, LAST, Refusal(status=500, retry_after=0), thought, LAST]
    answers += [HERE, LAST, Refusal(status=400, message="this model does not support tools")]
    answers += [HERE, LAST, HERE, LAST]
    async with running(models, agents, *answers) as (room, _):
        desk = await desks.sit(room, "ann")
        await looks_into_turn(desk, "plain")
        for absent in (
            "Notes",
            "Messages during",
            "Reasoning",
            ", condensed",
            "Waits for",
        ):
            await expect(desk.main.get_by_text(absent)).to_have_count(0)
        for absent in ("Calls tools", "Prompt version"):
            await expect(fact(desk.main, absent)).to_have_count(0)

        await looks_into_turn(desk, "thinker")
        first, second = (desk.main.locator(f"[data-step='{n}']") for n in (1, 2))
        await expect(first).to_contain_text("Reasoning (not sent)")
        await expect(first).to_contain_text("Ann wants to go.")
        await expect(first.get_by_role("list", name="Notes")).to_be_visible()
        await expect(second).not_to_contain_text("Reasoning")
        await expect(second.get_by_role("list", name="Notes")).to_have_count(0)

        await looks_into_turn(desk, "wordy")
        await expect(fact(desk.main, "Calls tools")).to_contain_text("tool_call")
        await looks_into_turn(desk, "toolless")
        await expect(fact(desk.main, "Calls tools")).to_contain_text("from step 1 on")

        await looks_into_turn(desk, "greeter")
        await expect(fact(desk.main, "Prompt version")).to_have_text(re.compile(r"^greeter@1\.0\b"))
        await expect(desk.main.get_by_text("Parts:").locator("..")).to_contain_text("identity")
        await desks.leave()


async def test_a_step_shows_the_contents_of_the_models_window_and_what_was_left_out(
    desks: Desks,
) -> None:
    small: Plan = {"default": {"context_window": 9000, "max_output_tokens": 1000}}
    async with running(small, {"bot": {}}, *[HERE, LAST] * 2) as (room, _):
        desk, ann = await desks.sit(room, "ann"), await room.join("ann")
        long = "word " * 3000  # the window has no room for two of them
        for _ in range(2):
            said = await call(ann.client, "send_text_message", to="bot", text=long)
            await desk.visit("turn", f"bot-{SendResult.model_validate(said).id}")
            await expect(desk.main.get_by_text("all said").first).to_be_visible()
        window = desk.main.get_by_role("group").filter(has_text="Window:").first
        await expect(window).to_contain_text(re.compile(r"[\d,]+ of 9,000 tokens"))
        await expect(window).to_contain_text(re.compile(r"[1-9][\d,]* left out"))
        await window.locator("summary").click()
        table = window.get_by_role("table", name="Contents of the model's window")
        await expect(table.get_by_role("row", name="Reserved for")).to_contain_text("1,000")
        history = table.get_by_role("row", name="History")
        await expect(history.get_by_role("cell").last).to_have_text(re.compile(r"^[1-9][\d,]*$"))
        await audit(desk.page)
        await desks.leave()


async def test_a_message_during_a_turn_is_shown_in_the_step_that_received_it(
    desks: Desks,
) -> None:
    held = says(send("ann", "on my way"), hold="on")
    async with running({"default": {}}, {"bot": {}}, held, HERE, LAST) as (room, model):
        desk = await desks.sit(room, "ann")
        await desk.talk_to("bot")
        await desk.says("go")
        await model.held("on")
        await desk.says("but be quick")
        # The agent has received it before the model answers.
        await expect(desk.message("but be quick")).to_have_attribute("data-state", "delivered")
        model.release("on")
        await desk.sees("here")
        await desk.visit("turn", "bot-m1")
        said = desk.main.get_by_role("region", name="Messages during the turn")
        await expect(said.get_by_role("link", name="but be quick")).to_be_visible()
        await expect(desk.main.locator("[data-step='2']")).to_contain_text("Messages during")
        await desks.leave()


@pytest.mark.behaviour("U-8")
async def test_a_turn_can_be_tried_with_another_prompt_or_model(desks: Desks) -> None:
    models: Plan = {"default": {"retries": 0}, "large": {}}
    refused = Refusal(status=400, message="no more of that")
    tried = says(send("ann", "ahoy"), hold="trial")
    async with running(models, {"bot": {}}, HERE, LAST, refused, tried) as (room, model):
        desk = await desks.sit(room, "ann")
        await desk.talk_to("bot")
        await desk.says("go")
        await desk.act(await desk.sees("here"), "Turn")
        await expect(desk.details.get_by_text("all said").first).to_be_visible()
        await desk.details.get_by_text("Try it again…").click()
        form = desk.details.locator("form")
        await expect(form.get_by_label("System prompt")).to_have_value(re.compile("You are bot"))
        await form.get_by_role("button", name="Try").click()
        await expect(desk.details.get_by_role("alert")).to_contain_text("no more of that")
        await form.get_by_label("System prompt").fill("You are a pirate.")
        await form.get_by_label("Model").select_option("large")
        await form.get_by_role("button", name="Try").click()
        await model.held("trial")
        await expect(form.get_by_role("status")).to_have_text("Asking the model…")
        model.release("trial")
        answer = desk.details.get_by_role("region", name="Tried, large")
        await expect(answer).to_contain_text('"text": "ahoy"')
        await expect(answer).to_contain_text("Not run")
        await desk.details.get_by_role("link", name="Open as a page").click()
        form = desk.main.locator("form").filter(has_text="System prompt")
        await expect(form.get_by_label("System prompt")).to_have_value("You are a pirate.")
        recorded = desk.main.get_by_role("region", name="As recorded, default")
        await expect(recorded).to_contain_text('"text": "here"')
        await expect(desk.main.get_by_role("region", name="Tried, large")).to_contain_text("ahoy")
        difference = desk.main.get_by_role("region", name="What differs")
        await expect(difference.locator("ins").filter(has_text="You are a pirate.")).to_be_visible()
        asked = model.requests[-1].body
        assert (asked.model, asked.messages[0].content) == ("large", "You are a pirate.")
        assert len(model.requests) == 4
        await audit(desk.page)
        await desk.page.set_viewport_size(NARROW)
        await audit(desk.page)
        await desks.leave()
