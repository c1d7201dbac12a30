"""Agents at work on the page."""

from __future__ import annotations

from playwright.async_api import expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.desk import Desks
from tests.browser.support.room import Room


async def test_a_working_agent_is_shown_until_it_answers_also_to_people_who_join_later(
    desks: Desks, newsroom: Room, model: ModelServer
) -> None:
    ann = await desks.sit(newsroom, "ann")
    await ann.talk_to("editor")
    await ann.says("think slowly")
    await model.held("thinking")
    await expect(ann.thread("dm.ann.editor")).to_contain_text("thinking")
    await ann.page.reload()
    await expect(ann.thread("dm.ann.editor")).to_contain_text("thinking")
    bob = await desks.sit(newsroom, "bob")
    await expect(bob.person("editor")).to_contain_text("working elsewhere")
    model.release("thinking")
    await ann.sees("I have thought about it.")
    await expect(ann.thread("dm.ann.editor")).not_to_contain_text("thinking")
    await expect(bob.person("editor")).not_to_contain_text("working elsewhere")
