"""Joining by name or token, in several tabs, and leaving."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import BrowserContext, Request, WebSocket, expect

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Plan, Room

PRIVATE: Plan = {"humans": {"ann": {}}}


class Addresses:
    """Every address that a browser requests, including sockets."""

    def __init__(self, context: BrowserContext):
        self.all: list[str] = []
        context.on("request", self._request)
        context.on("page", lambda page: page.on("websocket", self._socket))

    def _request(self, request: Request) -> None:
        self.all += [request.url, *request.headers.values()]

    def _socket(self, socket: WebSocket) -> None:
        self.all.append(socket.url)


async def stored(desk: Desk) -> str:
    """Everything that the page stores in the browser."""
    return json.dumps(await desk.page.evaluate("({...localStorage})"))


async def test_joining_an_open_network_by_name_is_remembered_until_leaving(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit(room)
    await expect(desk.page).to_have_title("test")
    await desk.join_as("ann")
    await desk.reload()
    other = await desk.another_tab(room.page)
    await other.is_joined()
    for each in (desk, other):
        await each.open_thread("channel.general")
    await desk.says("from the first")
    await other.sees("from the first")
    await desk.choose_in_own_menu("Leave the network")
    for each in (desk, other):
        await expect(each.page.get_by_label("Your name")).to_have_value("ann")
    await other.page.reload()
    await expect(other.page.get_by_role("button", name="Join")).to_be_focused()
    # A tab of another person stays joined.
    await desk.join_as("ann")
    await other.join_as("bob")
    await other.choose_in_own_menu("Leave the network")
    await expect(other.page.get_by_label("Your name")).to_be_visible()
    await desk.open_thread("channel.general")
    await desk.says("still here")
    await desk.reload()
    await desk.sees("still here")


async def test_a_token_is_kept_secret_and_its_revocation_is_reported_and_loses_no_draft(
    desks: Desks,
) -> None:
    async with Room.open({"auth": "tokens"}, plan=PRIVATE) as room:
        token = room.token("ann")
        first = await desks.sit("about:blank", new=True)
        asked = Addresses(first.context)
        desk = await first.another_tab(room.page)
        await desk.try_token("ann", f"{token[:-1]}?")
        await expect(desk.page.get_by_role("alert")).to_contain_text("token")
        await audit(desk.page)
        await desk.join_with_token("ann", token)
        await desk.reload()
        assert asked.all
        assert [url for url in [desk.page.url, *asked.all] if token in url] == []
        assert token in await stored(desk)
        await desk.open_thread("channel.general")
        await room.as_operator("revoke_tokens", participant="ann")
        await expect(desk.page.locator(".connection[data-state=refused]")).to_be_visible()
        await desk.submit("still here?")
        await expect(desk.main.get_by_role("alert")).to_contain_text("nothing can be sent")
        await expect(desk.composer).to_have_value("still here?")
        await expect(desk.message("still here?")).to_have_count(0)
        assert token not in await stored(desk)
        await desk.page.keyboard.press("Control+.")
        dialog = desk.page.get_by_role("dialog", name="Stop")
        await dialog.get_by_role("button", name="Stop").click()
        await expect(dialog.get_by_role("alert")).to_have_text("the token was revoked")
        await desk.page.keyboard.press("Escape")
        await desk.page.get_by_role("button", name="Join again").click()
        await expect(desk.page.get_by_label("Token")).to_have_value("")
        new = await room.as_operator("add_token", participant="ann")
        await desk.join_with_token("ann", new["token"])
        await desks.leave()


@pytest.mark.behaviour("U-15")
async def test_a_person_joins_with_any_name_and_is_mentioned_by_a_derived_id(
    desks: Desks, room: Room
) -> None:
    desk, ann = await desks.sit(room), await desks.sit(room, "ann", "channel.general")
    await desk.page.get_by_label("Your name").fill("Jürgen Müller")
    await expect(desk.page.get_by_text("Others mention you as @jurgen-muller")).to_be_visible()
    await desk.page.get_by_role("button", name="Join").click()
    await desk.is_joined()
    await desk.open_thread("channel.general")
    await desk.says("Guten Tag")
    await expect(await ann.sees("Guten Tag")).to_contain_text("Jürgen Müller")
    await expect(ann.person("Jürgen Müller")).to_contain_text("JM")
    await ann.composer.press_sequentially("@Jü")
    await ann.page.get_by_role("option", name="jurgen-muller").click()
    await expect(ann.composer).to_have_value("@jurgen-muller ")
    await desk.reload()
    await expect(await desk.sees("Guten Tag")).to_contain_text("Jürgen Müller")
