"""What an agent is about to say, as the conversation shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Locator, expect

from hubbub.testing.model_server import Answer, Call, ModelServer, Rule, Script, When
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Networks, Plan

pytestmark = pytest.mark.behaviour("U-6")

STORY = "Once upon a time there was a hub that never slept."
PLAN: Plan = {
    "models": {
        "default": {
            "model": "scripted",
            "base_url": "${OPENAI_BASE_URL}",
            "api_key": "${OPENAI_API_KEY}",
            "stream": True,
            "retries": 0,
        }
    },
    "agents": {"poet": {"kind": "llm", "instruction": "You tell stories."}},
    "humans": {"ann": {"roles": ["owner"]}},
}


@asynccontextmanager
async def asked(
    desks: Desks, networks: Networks, *, cut_after: int | None = None
) -> AsyncIterator[tuple[Desk, ModelServer]]:
    """Ann has asked for a story, and the model has written the half of it."""
    tells = Call(tool="send_text_message", arguments={"to": "ann", "text": STORY})
    half = Answer(calls=[tells], hold="half", hold_after=8, cut_after=cut_after)
    done = Answer(calls=[Call(tool="finish", arguments={"reason": "told"})])
    script = Script(rules=[Rule(when=When(step=1), answer=half), Rule(answer=done)])
    async with ModelServer(script) as model:
        network = await networks.start(PLAN, model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.talk_to("poet")
        await desk.says("Tell me a story")
        await model.held("half")
        yield desk, model
        await desks.leave()
        await network.close()


def ghost(desk: Desk) -> Locator:
    return desk.conversation.get_by_role("article", name="poet is writing")


async def test_what_an_agent_is_about_to_say_stands_below_the_last_message(
    desks: Desks, networks: Networks
) -> None:
    async with asked(desks, networks) as (desk, model):
        await expect(ghost(desk)).to_contain_text("Once upon")
        await expect(ghost(desk)).not_to_contain_text("slept")
        await expect(desk.conversation.locator("[data-message]")).to_have_count(1)  # hers
        asked_at, written_at = await desk.message("story").bounding_box(), await ghost(desk).bounding_box()
        assert asked_at is not None and written_at is not None
        assert written_at["y"] >= asked_at["y"] + asked_at["height"]
        await audit(desk.page)
        model.release("half")
        await desk.sees(STORY)
        await expect(ghost(desk)).to_have_count(0)
        await expect(desk.conversation.locator("[data-message]")).to_have_count(2)


async def test_what_is_not_said_after_all_goes_away(desks: Desks, networks: Networks) -> None:
    async with asked(desks, networks, cut_after=9) as (desk, model):
        await expect(ghost(desk)).to_contain_text("Once upon")
        model.release("half")
        await desk.sees("poet could not reach its model")
        await expect(ghost(desk)).to_have_count(0)


async def test_what_is_being_written_is_no_news_elsewhere(desks: Desks, networks: Networks) -> None:
    async with asked(desks, networks) as (desk, model):
        await expect(ghost(desk)).to_be_visible()
        await desk.open_thread("broadcast")
        await expect(ghost(desk)).to_have_count(0)
        await expect(desk.thread("dm.ann.poet")).not_to_contain_text("Once upon")
        await desk.open_thread("dm.ann.poet")
        await expect(ghost(desk)).to_contain_text("Once upon")
        model.release("half")
        await desk.sees(STORY)
