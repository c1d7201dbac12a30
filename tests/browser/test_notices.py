"""What the hub itself has to say in a thread."""

from __future__ import annotations

from playwright.async_api import expect

from hubbub.protocol.turns import TurnEnd
from hubbub.testing.model_server import ModelServer, Script
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desks
from tests.browser.support.network import Networks, Room
from tests.browser.support.team import PLAN
from tests.browser.support.worker import worker


async def test_what_an_error_says_mentions_nobody_and_links_nowhere(
    desks: Desks, room: Room
) -> None:
    async with worker(room) as clerk:
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await desk.talk_to("clerk")
        await desk.says("tidy up")
        await clerk.begins()
        reason = "500: `model` said @ann [see](https://elsewhere.example/) m1"
        end = TurnEnd(id=clerk.turn, outcome="model_error", reason=reason)
        await clerk.client.call("end_turn", end=end)
        notice = desk.conversation.get_by_role("article", name="Notice of the hub")
        await expect(notice).to_contain_text(reason)
        await expect(notice.locator(".prose").locator("a, button")).to_have_count(0)
        await desks.leave()


async def test_a_notice_of_the_hub_is_a_quiet_line_that_is_no_message_of_anybody(
    desks: Desks, networks: Networks
) -> None:
    async with ModelServer(Script(rules=[])) as model:
        network = await networks.start(PLAN, model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.visit("thread", "dm.ann.helper")
        await desk.says("Are you well?")
        notice = desk.conversation.get_by_role("article", name="Notice of the hub")
        await expect(notice).to_contain_text("helper")
        await expect(notice.locator(".avatar")).to_have_count(0)
        await audit(desk.page)
        await desk.composer.press("Escape")
        await desk.page.keyboard.press("k")
        await expect(notice).to_be_focused()
