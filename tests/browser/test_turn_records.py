"""What the runtime records of its turns besides the answers, as the inspector shows it."""

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
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Networks, Plan
from tests.browser.test_turns import fact
from tests.interaction.agent_rig import call, finish, says, send

pytestmark = pytest.mark.behaviour("U-7")


def plan(model: dict[str, JsonValue], **agent: JsonValue) -> Plan:
    endpoint = {"base_url": "${OPENAI_BASE_URL}", "api_key": "${OPENAI_API_KEY}"}
    return {
        "models": {"default": {"model": "scripted", **endpoint, **model}},
        "agents": {"bot": {"kind": "llm", "instruction": "You are bot.", **agent}},
        "humans": {"ann": {"roles": ["owner"]}},
    }


@asynccontextmanager
async def looked_into(
    desks: Desks, networks: Networks, plan: Plan, *answers: AnyAnswer
) -> AsyncIterator[Desk]:
    """Ann has asked, the bot has answered "here" in the end, and its turn is shown."""
    async with ModelServer(Script(answers=list(answers))) as model:
        network = await networks.start(plan, model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.talk_to("bot")
        await desk.says("go")
        await desk.sees("here")
        await desk.visit("turn", "bot-m1")
        await expect(desk.main.get_by_text("all said").first).to_be_visible()
        yield desk
        await desks.leave()
        await network.close()


LAST = says(finish("all said"))


async def test_a_step_tells_what_filled_the_models_window(desks: Desks, networks: Networks) -> None:
    small = plan({"context_window": 9000, "max_output_tokens": 1000})
    async with looked_into(desks, networks, small, says(send("ann", "here")), LAST) as desk:
        window = desk.main.get_by_role("group").filter(has_text="Window:").first
        await expect(window).to_contain_text(re.compile(r"[\d,]+ of 9,000 tokens"))
        await expect(window.get_by_role("table")).to_have_count(0)
        await window.locator("summary").click()
        table = window.get_by_role("table", name="What the model's window held")
        await expect(table.get_by_role("row", name="System prompt")).to_contain_text(
            re.compile(r"\d")
        )
        await expect(table.get_by_role("row", name="Kept free")).to_contain_text("1,000")
        await audit(desk.page)
        await desk.page.set_viewport_size(NARROW)
        await audit(desk.page)


async def test_a_step_tells_what_was_left_out_of_the_window(
    desks: Desks, networks: Networks
) -> None:
    small = plan({"context_window": 9000, "max_output_tokens": 1000})
    async with ModelServer(Script(answers=[says(send("ann", "here")), LAST] * 2)) as model:
        network = await networks.start(small, model=model)
        ann = await network.join("ann")
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        long = "word " * 3000  # there is no room for two of them
        for _ in range(2):
            said = await ann.client.call("send_text_message", to="bot", text=long)
            await desk.visit("turn", f"bot-{SendResult.model_validate(said).id}")
            await expect(desk.main.get_by_text("all said").first).to_be_visible()
        window = desk.main.get_by_role("group").filter(has_text="Window:").first
        await expect(window).to_contain_text(re.compile(r"[1-9][\d,]* left out"))
        await window.locator("summary").click()
        history = window.get_by_role("row", name="History")
        await expect(history.get_by_role("cell").last).to_have_text(re.compile(r"^[1-9][\d,]*$"))
        await desks.leave()
        await network.close()


async def test_a_step_tells_its_reasoning_and_what_else_happened(
    desks: Desks, networks: Networks
) -> None:
    thinks = plan({"retries": 1}, prompt={"scratchpad": True})
    thought = says(send("ann", "here"), text="<scratchpad>Ann wants to go.</scratchpad>")
    refused = Refusal(status=500, retry_after=0)
    async with looked_into(desks, networks, thinks, refused, thought, LAST) as desk:
        first = desk.main.locator("[data-step='1']")
        await expect(first).to_contain_text("Reasoning, sent to nobody")
        await expect(first).to_contain_text("Ann wants to go.")
        await expect(first.get_by_role("list", name="What else happened")).to_be_visible()
        second = desk.main.locator("[data-step='2']")
        await expect(second).not_to_contain_text("Reasoning")
        await expect(second.get_by_role("list", name="What else happened")).to_have_count(0)
        await expect(desk.main.get_by_text("Parts:").locator("..")).to_contain_text("identity")


async def test_a_turn_tells_how_the_model_calls_tools_where_that_is_by_words(
    desks: Desks, networks: Networks
) -> None:
    words = plan({"dialect": "tool_call"})
    async with looked_into(desks, networks, words, says(send("ann", "here")), LAST) as desk:
        await expect(fact(desk.main, "Calls tools")).to_contain_text("tool_call")


async def test_a_turn_tells_from_which_step_on_the_model_calls_tools_by_words(
    desks: Desks, networks: Networks
) -> None:
    refused = Refusal(status=400, message="this model does not support tools")
    here = says(send("ann", "here"))
    async with looked_into(desks, networks, plan({"retries": 0}), refused, here, LAST) as desk:
        await expect(fact(desk.main, "Calls tools")).to_contain_text("from step 1 on")


async def test_a_turn_tells_which_version_of_a_prompt_it_had_and_of_what_parts_it_was(
    desks: Desks, networks: Networks, tmp_path: Path
) -> None:
    version = tmp_path / "prompts" / "greeter" / "1.0.j2"
    version.parent.mkdir(parents=True)
    version.write_text("You greet whoever comes.")
    prompt: JsonValue = {"name": "greeter", "folder": str(version.parent.parent)}
    greets: Plan = {**plan({}), "agents": {"bot": {"kind": "llm", "prompt": prompt}}}
    async with looked_into(desks, networks, greets, says(send("ann", "here")), LAST) as desk:
        await expect(fact(desk.main, "Prompt version")).to_have_text(re.compile(r"^greeter@1\.0\b"))
        await expect(desk.main.get_by_text("Parts:").locator("..")).to_contain_text("identity")


async def test_what_did_not_happen_is_not_shown(desks: Desks, networks: Networks) -> None:
    two = says(call("list_participants"), send("ann", "here"))
    async with looked_into(desks, networks, plan({}), two, LAST) as desk:
        for absent in (
            "What else happened",
            "Said while",
            "Reasoning",
            "in fewer words",
            "Waits for",
        ):
            await expect(desk.main.get_by_text(absent)).to_have_count(0)
        await expect(fact(desk.main, "Calls tools")).to_have_count(0)
        await expect(fact(desk.main, "Prompt version")).to_have_count(0)


async def test_what_a_person_said_meanwhile_stands_in_the_step_that_was_shown_it(
    desks: Desks, networks: Networks
) -> None:
    held = says(send("ann", "on my way"), hold="on")
    async with ModelServer(Script(answers=[held, says(send("ann", "here")), LAST])) as model:
        network = await networks.start(plan({}), model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.talk_to("bot")
        await desk.says("go")
        await model.held("on")
        await desk.says("but be quick")
        # The agent has got it before the model answers.
        await expect(desk.message("but be quick")).to_have_attribute("data-state", "delivered")
        model.release("on")
        await desk.sees("here")
        await desk.visit("turn", "bot-m1")
        said = desk.main.get_by_role("region", name="Said while the turn ran")
        await expect(said.get_by_role("link", name="but be quick")).to_be_visible()
        await expect(desk.main.locator("[data-step='2']")).to_contain_text("Said while")
        await desks.leave()
        await network.close()


@pytest.mark.behaviour("U-8")
async def test_a_turn_can_be_tried_with_another_prompt_or_model(
    desks: Desks, networks: Networks
) -> None:
    here = plan({})
    known = here["models"]
    assert isinstance(known, dict)
    endpoint: dict[str, JsonValue] = {"base_url": "${OPENAI_BASE_URL}", "api_key": "scripted"}
    models: JsonValue = {**known, "big": {"model": "large", **endpoint}}
    tried = says(send("ann", "ahoy"), hold="trial")
    async with ModelServer(Script(answers=[says(send("ann", "here")), LAST, tried])) as model:
        network = await networks.start({**here, "models": models}, model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.talk_to("bot")
        await desk.says("go")
        await desk.sees("here")
        await desk.visit("turn", "bot-m1")
        await expect(desk.main.get_by_text("all said").first).to_be_visible()
        await desk.main.get_by_text("Try it again…").click()
        form = desk.main.locator("form")
        await expect(form.get_by_label("System prompt")).to_have_value(re.compile("You are bot"))
        await form.get_by_label("System prompt").fill("You are a pirate.")
        await form.get_by_label("Model").select_option("big")
        await form.get_by_role("button", name="Try").click()
        await model.held("trial")
        await expect(form.get_by_role("status")).to_have_text("Asking the model…")
        model.release("trial")
        recorded = desk.main.get_by_role("region", name="As recorded, scripted")
        await expect(recorded).to_contain_text('"text": "here"')
        answer = desk.main.get_by_role("region", name="Tried, large")
        await expect(answer).to_contain_text('"text": "ahoy"')
        await expect(answer).to_contain_text("Not run")
        difference = desk.main.get_by_role("region", name="What differs")
        await expect(difference.locator("ins").filter(has_text="You are a pirate.")).to_be_visible()
        asked = model.requests[-1].body
        assert (asked.model, asked.messages[0].content) == ("large", "You are a pirate.")
        await audit(desk.page)
        await desk.page.set_viewport_size(NARROW)
        await audit(desk.page)
        await desks.leave()
        await network.close()


@pytest.mark.behaviour("U-8")
async def test_a_try_stays_where_the_turn_is_given_more_room(
    desks: Desks, networks: Networks
) -> None:
    answers = [says(send("ann", "here")), LAST, says(send("ann", "ahoy"))]
    async with ModelServer(Script(answers=answers)) as model:
        network = await networks.start(plan({}), model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.talk_to("bot")
        await desk.says("go")
        await desk.act(await desk.sees("here"), "Show the turn behind it")
        await expect(desk.details.get_by_text("all said").first).to_be_visible()
        await desk.details.get_by_text("Try it again…").click()
        form = desk.details.locator("form")
        await form.get_by_label("System prompt").fill("You are a pirate.")
        await form.get_by_role("button", name="Try").click()
        answer = desk.details.get_by_role("region", name="Tried, scripted")
        await expect(answer).to_contain_text('"text": "ahoy"')
        await expect(answer.get_by_role("group").filter(has_text="Window:")).to_be_visible()
        await desk.details.get_by_role("link", name="More room").click()
        form = desk.main.locator("form").filter(has_text="System prompt")
        await expect(form.get_by_label("System prompt")).to_have_value("You are a pirate.")
        answer = desk.main.get_by_role("region", name="Tried, scripted")
        await expect(answer).to_contain_text('"text": "ahoy"')
        assert len(model.requests) == 3
        await desks.leave()
        await network.close()


@pytest.mark.behaviour("U-8")
async def test_what_went_wrong_with_a_try_is_said(desks: Desks, networks: Networks) -> None:
    refused = Refusal(status=400, message="no more of that")
    async with looked_into(
        desks, networks, plan({"retries": 0}), says(send("ann", "here")), LAST, refused
    ) as desk:
        await desk.main.get_by_text("Try it again…").click()
        await desk.main.get_by_role("button", name="Try").click()
        await expect(desk.main.get_by_role("alert")).to_contain_text("no more of that")
