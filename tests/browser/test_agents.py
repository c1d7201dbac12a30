"""People and agents at work together, as the page shows it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest_asyncio
from playwright.async_api import expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.agents import NEWSROOM, newsroom_script
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Networks


@asynccontextmanager
async def _model() -> AsyncIterator[ModelServer]:
    async with ModelServer(newsroom_script()) as model:
        yield model
        assert model.mistakes == []


@pytest_asyncio.fixture(loop_scope="session")
async def model() -> AsyncIterator[ModelServer]:
    """The agents' model. It must have had an answer to everything."""
    async with _model() as model:
        yield model


@pytest_asyncio.fixture(loop_scope="session")
async def newsroom(model: ModelServer, networks: Networks) -> Network:
    return await networks.start(NEWSROOM, model=model)


@pytest_asyncio.fixture(loop_scope="session")
async def ann(desks: Desks, newsroom: Network) -> Desk:
    """The owner has joined."""
    desk = await desks.sit(newsroom.page)
    await desk.join_as("ann")
    return desk


async def test_an_agent_answers(ann: Desk) -> None:
    await ann.talk_to("editor")
    await ann.says("hello editor")
    await ann.sees("You said: hello editor")


async def test_one_sees_that_an_agent_is_at_work(ann: Desk, model: ModelServer) -> None:
    await ann.talk_to("editor")
    await ann.says("think slowly")
    await model.held("thinking")
    await expect(ann.thread("dm.ann.editor")).to_contain_text("thinking")
    model.release("thinking")
    await ann.sees("I have thought about it.")
    await expect(ann.thread("dm.ann.editor")).not_to_contain_text("thinking")


async def test_activity_is_seen_by_who_comes_later(
    ann: Desk, desks: Desks, newsroom: Network, model: ModelServer
) -> None:
    await ann.talk_to("editor")
    await ann.says("think slowly")
    await model.held("thinking")
    await ann.page.reload()
    await expect(ann.thread("dm.ann.editor")).to_contain_text("thinking")
    bob = await desks.sit(newsroom.page)
    await bob.join_as("bob")
    await expect(bob.person("editor")).to_contain_text("working elsewhere")
    model.release("thinking")
    await ann.sees("I have thought about it.")
    await expect(bob.person("editor")).not_to_contain_text("working elsewhere")


async def test_a_mention_wakes_an_agent_and_comes_back_as_one(ann: Desk) -> None:
    await ann.open_thread("broadcast")
    await ann.open_thread("channel.general")
    await ann.composer.press_sequentially("@edi")
    await ann.page.get_by_role("option", name="editor").click()
    await ann.composer.press_sequentially("are you there?")
    await expect(ann.composer).to_have_value("@editor are you there?")
    await ann.send()
    await ann.sees("@ann here I am.")
    await ann.threads.get_by_role("link", name="Inbox").click()
    await expect(ann.page.get_by_role("main")).to_contain_text("here I am.")


async def test_a_reply_thread_hangs_under_its_message(
    ann: Desk, desks: Desks, newsroom: Network
) -> None:
    bob = await desks.sit(newsroom.page)
    await bob.join_as("bob")
    await bob.open_thread("channel.general")
    await bob.says("Shall we do a story on Jupiter?")
    await ann.open_thread("channel.general")
    await ann.act(await ann.sees("story on Jupiter"), "Reply in a thread")
    await expect(ann.composer).to_have_attribute("aria-label", "Reply")
    await ann.says("Yes, a long one.")
    under = await bob.sees("story on Jupiter")
    await expect(under).to_contain_text("1 reply")
    await under.get_by_role("link", name=re.compile("1 reply")).click()
    await bob.sees("Yes, a long one.")
    await bob.says("Good.")
    await ann.sees("Good.")
    replies = ann.threads.locator('[data-thread^="channel.general.t"]')
    await expect(replies).to_have_count(1)


async def test_a_turn_can_be_looked_into(ann: Desk) -> None:
    await ann.talk_to("editor")
    await ann.says("How large is Jupiter?")
    answer = await ann.sees("139,822 km")
    first = await ann.sees("I am having that looked up.")
    await ann.act(first, "Show the turn behind it")
    turn = ann.details
    await expect(turn).to_contain_text("Finished")
    await expect(turn).to_contain_text("list_participants")
    await expect(turn).to_contain_text("send_text_message")
    await expect(turn).to_contain_text("How large is Jupiter?")
    await expect(turn.get_by_text("Cost")).to_be_visible()
    await turn.get_by_text(re.compile("^Prompt")).click()
    await expect(turn).to_contain_text("<incoming_thread_id>direct_ann</incoming_thread_id>")
    await turn.get_by_role("button", name="Close").click()
    await ann.act(answer, "Details")
    await expect(ann.details).to_contain_text("Who was woken")


async def test_whom_a_message_woke_and_why(ann: Desk) -> None:
    await ann.talk_to("editor")
    await ann.says("hello")
    await ann.sees("You said: hello")
    await ann.act(ann.message("hello").first, "Details")
    await expect(ann.details.locator("[data-woken]")).to_contain_text("editor")
    await ann.details.get_by_role("link", name="Turn editor-m").click()
    await expect(ann.page.get_by_role("main")).to_contain_text("Finished")


async def test_two_turns_stand_side_by_side(ann: Desk) -> None:
    await ann.talk_to("editor")
    for text in ("one", "two"):
        await ann.says(text)
        await ann.sees(f"You said: {text}")
    turns = [
        "editor-" + str(await ann.message(text).first.get_attribute("data-message"))
        for text in ("one", "two")
    ]
    await ann.visit("turns", *turns)
    main = ann.page.get_by_role("main")
    await expect(main).to_contain_text(turns[0])
    await expect(main).to_contain_text(turns[1])
    await expect(main.get_by_role("img", name="Differs").first).to_be_visible()


async def test_a_member_may_not_look_into_turns(
    desks: Desks, networks: Networks, model: ModelServer
) -> None:
    network = await networks.start(NEWSROOM, auth="tokens", model=model)
    bob = await desks.sit(network.page)
    await bob.join_with_token("bob", await network.token("bob"))
    await bob.talk_to("editor")
    await bob.says("hello from bob")
    answer = await bob.sees("You said: hello from bob")
    await answer.hover()
    await expect(answer.get_by_role("button", name="Details")).to_be_visible()
    await expect(answer.get_by_role("button", name="Show the turn behind it")).to_have_count(0)


async def test_an_interaction_is_drawn_as_a_diagram(ann: Desk) -> None:
    await ann.talk_to("editor")
    await ann.says("How large is Jupiter?")
    await ann.sees("139,822 km")
    asked = await ann.message("How large").first.get_attribute("data-message")
    await ann.visit("interaction", f"i{str(asked)[1:]}")
    diagram = ann.page.get_by_role("main")
    await expect(diagram.get_by_role("group", name="Sequence diagram")).to_be_visible()
    for who in ("ann", "editor", "researcher", "How large is Jupiter?"):
        await expect(diagram).to_contain_text(who)


async def test_the_network_is_drawn_as_a_graph(ann: Desk) -> None:
    await ann.talk_to("editor")
    await ann.says("hello")
    await ann.sees("You said: hello")
    await ann.visit("network")
    for who in ("ann", "editor", "researcher"):
        await expect(ann.page.get_by_role("main")).to_contain_text(who)
