"""Stopping and resuming agents, and threads paused by the breaker."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, expect

from hubbub.errors import OperationError
from hubbub.testing.model_server import ModelServer
from tests.browser.support.agents import NEWSROOM
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room
from tests.browser.support.worker import at_work

pytestmark = pytest.mark.behaviour("H-141")


def dialog(desk: Desk) -> Locator:
    return desk.page.get_by_role("dialog", name="Stop")


async def confirms(desk: Desk) -> None:
    await dialog(desk).get_by_role("button", name="Stop", exact=True).click()
    await expect(dialog(desk)).to_have_count(0)


async def stops(desk: Desk, what: str, reason: str = "") -> None:
    """Stop by the button in the header of the conversation."""
    await desk.main.get_by_role("button", name="Stop…").click()
    await dialog(desk).get_by_role("radio", name=what).check()
    await dialog(desk).get_by_label("Why").fill(reason)
    await confirms(desk)


async def test_a_running_turn_is_stopped_by_its_buttons_and_by_a_shortcut(
    desks: Desks, room: Room
) -> None:
    async with at_work(desks, room) as (desk, clerk):
        await desk.main.get_by_role("button", name="Stop clerk").click()
        await expect(dialog(desk).get_by_role("radio").first).to_be_checked()
        await expect(dialog(desk).get_by_role("radio").first).to_be_focused()
        await dialog(desk).get_by_label("Why").fill("wrong folder")
        await desk.page.keyboard.press("Enter")
        stop = await clerk.stopped()
        assert stop["turns"] == [clerk.turn]
        assert (stop["by"], stop["reason"]) == ("ann", "wrong folder")
        await desk.sees("wrong folder")  # the hub's notice
        await desk.announces("1 turn ended")
        await expect(desk.banner("stopped")).to_have_count(0)  # the next message wakes again
        await clerk.works_again(desk)
        await desk.composer.focus()
        await desk.page.keyboard.press("Control+.")
        await expect(dialog(desk).get_by_role("radio", name="clerk's current turn")).to_be_focused()
        await desk.page.keyboard.press("Enter")
        assert (await clerk.stopped())["turns"] == [clerk.turn]
        await expect(desk.composer).to_be_focused()
        await clerk.works_again(desk)
        await desk.visit("thread", "dm.ann.clerk", opened=("turn", clerk.turn))
        await desk.details.get_by_role("button", name="Stop…").click()
        await expect(dialog(desk).get_by_role("radio", name="clerk's current turn")).to_be_checked()
        await confirms(desk)
        assert (await clerk.stopped())["turns"] == [clerk.turn]
        await expect(desk.details).to_contain_text("Stopped")


async def test_a_thread_an_agent_and_all_agents_are_stopped_and_resumed(
    desks: Desks, room: Room
) -> None:
    async with at_work(desks, room) as (desk, clerk):
        await stops(desk, "This thread", "too loud")
        await clerk.stopped()
        held = desk.banner("Agents are stopped here")
        await expect(held).to_contain_text("by ann")
        await expect(held).to_contain_text("too loud")
        await desk.says("anybody there?")
        await expect(desk.message("anybody there?")).to_contain_text(
            "clerk was not woken: it is stopped."
        )
        await desk.page.reload()
        await held.get_by_role("button", name="Resume").click()
        await expect(held).to_have_count(0)
        await desk.says("and now?")
        await clerk.begins()

        await desk.person("clerk").click()
        await desk.details.get_by_role("button", name="Stop…").click()
        await dialog(desk).get_by_role("radio", name="clerk, everywhere").check()
        await confirms(desk)
        await clerk.stopped()
        held = desk.banner("clerk is stopped by ann", desk.details)
        await held.get_by_role("button", name="Resume").click()
        await expect(held).to_have_count(0)
        await expect(desk.details.get_by_role("button", name="Stop…")).to_be_visible()

        bob = await desks.sit(room, "bob")
        await bob.visit("control")
        await expect(bob.main).to_contain_text("Nothing is stopped")
        await stops(desk, "All agents", "lunch")
        await bob.page.get_by_role("link", name="Stops and takeovers").click()
        await expect(bob.main.get_by_role("region", name="Stopped")).to_contain_text("lunch")
        await expect(desk.banner("All agents are stopped")).to_be_visible()
        await bob.main.get_by_role("button", name="Resume").click()
        await expect(desk.banner("All agents are stopped")).to_have_count(0)
        await expect(bob.main).to_contain_text("Nothing is stopped")


async def test_a_thread_paused_by_the_breaker_is_released(desks: Desks) -> None:
    async with (
        Room.open({"breaker": {"turns": 1, "within": "1h"}}) as room,
        at_work(desks, room) as (desk, clerk),
    ):
        await clerk.ends()
        await desk.says("once more")
        with pytest.raises(OperationError, match="breaker"):
            await clerk.begins()
        held = desk.banner("Paused by the breaker")
        await expect(held).to_contain_text("2 turns started here within 60 min")
        await held.get_by_role("button", name="Release").click()
        await expect(held).to_have_count(0)


async def test_a_person_who_is_no_owner_stops_a_thread_but_sees_no_turns_and_resumes_nothing(
    desks: Desks, model: ModelServer
) -> None:
    async with Room.open({"auth": "tokens"}, plan=NEWSROOM, model=model) as room:
        bob, ann = await desks.sit(room), await desks.sit(room)
        await bob.join_with_token("bob", room.token("bob"))
        await ann.join_with_token("ann", room.token("ann"))
        await bob.talk_to("editor")
        await bob.says("hello from bob")
        answer = await bob.sees("You said: hello from bob")
        await expect(answer.get_by_role("link", name="1 agent")).to_be_visible()
        await expect(answer.get_by_role("button", name="Turn")).to_have_count(0)
        for place in (("turn", "editor-m1"), ("turns",)):
            await bob.visit(*place)
            await expect(bob.page.get_by_text("Only owners of the network")).to_be_visible()
        for each, text in (
            (ann, "You are not in this conversation, but you can read along."),
            (bob, "You are not in this conversation."),
        ):
            await each.visit("thread", "dm.cyd.dan")
            await expect(each.main.locator(".foot .note")).to_have_text(text)
        await bob.open_thread("channel.general")
        await bob.says("@editor think slowly")
        await bob.main.get_by_role("button", name="Stop…").click()
        radios = dialog(bob).get_by_role("radio")
        await expect(radios.last).to_have_accessible_name(re.compile("This thread: #general"))
        await radios.last.check()
        await confirms(bob)
        held = bob.banner("Agents are stopped here")
        await expect(held).to_be_visible()
        await expect(held.get_by_role("button")).to_have_count(0)
        await bob.person("editor").click()
        await expect(bob.details.get_by_role("button", name="Message")).to_be_visible()
        await expect(bob.details.get_by_role("button", name="Take over")).to_have_count(0)
        await ann.open_thread("channel.general")
        await ann.banner("Agents are stopped here").get_by_role("button", name="Resume").click()
        await expect(held).to_have_count(0)
        model.release("thinking")
        await desks.leave()
