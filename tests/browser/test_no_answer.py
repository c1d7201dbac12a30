"""Missing answers: the reason, and how to ask again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import expect

from hubbub.testing.model_script import Script
from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import audit
from tests.browser.support.agents import NEWSROOM
from tests.browser.support.desk import Desk, Desks, fact
from tests.browser.support.room import Room

SCRIPT = Script.model_validate(
    {
        "rules": [
            {"when": {"sender": "editor"}, "answer": {"status": 401, "message": "who are you"}},
            {
                "when": {"incoming": "pass it on", "step": 1},
                "answer": {
                    "calls": [
                        {
                            "tool": "send_text_message",
                            "arguments": {"to": "researcher", "text": "What do you know?"},
                        },
                        {"tool": "finish", "arguments": {"reason": "passed on"}},
                    ]
                },
            },
            {"when": {"incoming": "the key"}, "answer": {"status": 401, "message": "who are you"}},
            {
                "when": {"incoming": "not for you"},
                "answer": {"calls": [{"tool": "finish", "arguments": {"reason": "Not my beat."}}]},
            },
            {"answer": {"calls": [{"tool": "finish", "arguments": {"message": "Here I am."}}]}},
        ]
    }
)


@asynccontextmanager
async def _with_the_editor(desks: Desks) -> AsyncIterator[Desk]:
    """Ann's thread with the editor of a newsroom that plays `SCRIPT`."""
    async with (
        ModelServer(SCRIPT) as model,
        Room.open(plan=NEWSROOM, model=model) as room,
    ):
        desk = await desks.sit(room, "ann")
        await desk.talk_to("editor")
        yield desk
        await desks.leave()


@pytest.mark.behaviour("U-11", "U-12")
async def test_a_missing_answer_shows_the_reason_and_can_be_retried(
    desks: Desks,
) -> None:
    async with _with_the_editor(desks) as desk:
        await desk.says("Try the key")
        card = await desk.sees("editor got no answer from its model")
        await expect(card).to_contain_text("The model's server refused the API key.")
        await expect(card.get_by_text("set models.default.api_key")).to_be_hidden()
        await card.get_by_text("Details", exact=True).click()
        await expect(card.get_by_text("set models.default.api_key")).to_be_visible()
        await audit(desk.page)
        await card.get_by_role("button", name="Open the turn").click()
        await expect(fact(desk.details, "Agent")).to_have_text("editor")
        await card.get_by_role("button", name="Try again").click()
        await expect(desk.message("Try the key")).to_have_count(2)
        await desk.says("It is not for you")
        quiet = await desk.sees("editor read this and decided not to answer")
        await expect(quiet).to_contain_text("Not my beat.")
        await _is_asked_by_name(desk)


@pytest.mark.behaviour("U-11", "U-12")
async def test_a_failed_delegation_shows_the_reason_and_offers_agents_in_the_thread(
    desks: Desks,
) -> None:
    async with _with_the_editor(desks) as desk:
        await desk.says("Please pass it on")
        card = await desk.sees("editor and researcher did not answer")
        await expect(card).to_contain_text("researcher got no answer from its model.")
        await expect(card).to_contain_text("The model's server refused the API key.")
        await card.get_by_text("Details", exact=True).click()
        await expect(card.get_by_text("set models.default.api_key")).to_be_visible()
        await expect(card.get_by_role("button", name="Ask editor")).to_be_visible()
        await expect(card.get_by_role("button", name="Ask researcher")).to_have_count(0)
        await audit(desk.page)
        await card.get_by_role("button", name="Open researcher's turn").click()
        await expect(fact(desk.details, "Agent")).to_have_text("researcher")


async def _is_asked_by_name(desk: Desk) -> None:
    await desk.visit("thread", "channel.general")
    await desk.says("What is new?")
    message = desk.message("What is new?").first
    await expect(message).to_contain_text("No agent was mentioned.")
    await message.get_by_role("button", name="Ask editor").click()
    await desk.sees("@editor What is new?")
    await desk.sees("Here I am.")
    await expect(message.get_by_role("button", name="Ask editor")).to_have_count(0)
