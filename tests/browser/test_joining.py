"""Coming in: by one click where the network is open, with a token elsewhere."""

from __future__ import annotations

import json

from playwright.async_api import BrowserContext, Request, WebSocket, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Networks, Plan, Room

PRIVATE: Plan = {"channels": {"general": {}}, "humans": {"ann": {}}}


class Addresses:
    """Every address that a browser asks for, sockets included."""

    def __init__(self, context: BrowserContext):
        self.all: list[str] = []
        context.on("request", self._request)
        context.on("page", lambda page: page.on("websocket", self._socket))

    def _request(self, request: Request) -> None:
        self.all += [request.url, *request.headers.values()]

    def _socket(self, socket: WebSocket) -> None:
        self.all.append(socket.url)


async def stored(desk: Desk) -> str:
    """All that the page keeps in its browser."""
    return json.dumps(await desk.page.evaluate("({...localStorage})"))


async def test_one_click_joins_an_open_network(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.page.get_by_role("button", name="Join").click()
    await desk.is_joined()


async def test_the_name_is_the_participant(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    bob = await room.join("bob")
    await bob.tells("ann", "hello ann")
    await desk.open_thread("dm.ann.bob")
    await desk.sees("hello ann")


async def test_a_reload_comes_back_without_asking(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    await desk.page.reload()
    await desk.is_joined()


async def test_a_name_that_is_none_is_refused_before_it_is_sent(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    name = desk.page.get_by_label("Your name")
    await name.fill("ann lee")
    await desk.page.get_by_role("button", name="Join").click()
    assert not await name.evaluate("(it) => it.validity.valid")
    await expect(desk.page.locator("[data-thread]")).to_have_count(0)


async def test_a_token_joins_and_never_stands_in_an_address(
    desks: Desks, networks: Networks
) -> None:
    network = await networks.start(PRIVATE, auth="tokens")
    token = await network.token("ann")
    desk = await desks.sit("about:blank")
    asked = Addresses(desk.context)
    page = await desk.context.new_page()
    await page.goto(network.page)
    desk = Desk(page, desk.complaints)
    await desk.join_with_token("ann", token)
    assert token not in desk.page.url
    await desk.page.reload()
    await desk.is_joined()
    assert asked.all
    assert [url for url in asked.all if token in url] == []
    assert token in await stored(desk)


async def test_a_wrong_token_is_told_and_another_can_be_given(
    desks: Desks, networks: Networks
) -> None:
    network = await networks.start(PRIVATE, auth="tokens")
    token = await network.token("ann")
    desk = await desks.sit(network.page)
    await desk.try_token("ann", f"{token[:-1]}?")
    await expect(desk.page.get_by_role("alert")).to_contain_text("token")
    await desk.join_with_token("ann", token)


async def test_somebody_whose_token_was_revoked_is_told_so_and_keeps_what_was_written(
    desks: Desks, networks: Networks
) -> None:
    network = await networks.start(PRIVATE, auth="tokens")
    token = await network.token("ann")
    desk = await desks.sit(network.page)
    await desk.join_with_token("ann", token)
    await desk.open_thread("channel.general")
    await network.revoke("ann")
    await expect(desk.page.locator(".connection[data-state=refused]")).to_be_visible()
    await desk.write("still here?")
    await desk.send()
    await expect(desk.main.get_by_role("alert")).to_contain_text("nothing can be sent")
    await expect(desk.composer).to_have_value("still here?")
    await expect(desk.message("still here?")).to_have_count(0)
    assert token not in await stored(desk)
    await desk.page.get_by_role("button", name="Join anew").click()
    await expect(desk.page.get_by_label("Token")).to_have_value("")
    await desk.join_with_token("ann", await network.token("ann"))


async def test_two_tabs_of_one_person_show_the_same(desks: Desks, room: Room) -> None:
    one = await desks.sit(room.page)
    await one.join_as("ann")
    two = await one.another_tab(room.page)
    await two.is_joined()
    for desk in (one, two):
        await desk.open_thread("channel.general")
    await one.says("from the first")
    await two.sees("from the first")
    await two.says("from the second")
    await one.sees("from the second")


async def test_two_people_talk_at_once(desks: Desks, room: Room) -> None:
    ann, bob = await desks.sit(room.page), await desks.sit(room.page)
    await ann.join_as("ann")
    await bob.join_as("bob")
    for desk in (ann, bob):
        await desk.open_thread("channel.general")
    for n in range(3):
        await ann.says(f"ann's {n}")
        await bob.says(f"bob's {n}")
    for desk in (ann, bob):
        await desk.sees("ann's 2")
        await desk.sees("bob's 2")
    assert [it.id for it in await ann.messages()] == [it.id for it in await bob.messages()]
