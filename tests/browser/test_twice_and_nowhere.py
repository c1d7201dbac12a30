"""What people do twice, in two tabs, or where nothing is: links, drafts, other logs, outside."""

from __future__ import annotations

from playwright.async_api import expect

from hubbub.protocol.operations import SendResult
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Network, Room
from tests.browser.support.wire import laid

GENERAL = "channel.general"
IS_WITHIN = (
    "(it) => it.scrollWidth <= it.clientWidth && it.getBoundingClientRect().right <= innerWidth"
)


async def joined(desks: Desks, network: Network | Room) -> Desk:
    desk = await desks.sit(network.page)
    await desk.join_as("ann")
    return desk


async def test_a_link_to_a_message_leads_there_however_often(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    said = await bob.client.call("post_to_channel", channel="general", text="the very first")
    first = SendResult.model_validate(said).id
    for n in range(60):
        await bob.posts("general", f"and so on {n}")
    await bob.posts("general", f"look at {first}")
    desk = await joined(desks, room)
    await desk.open_thread(GENERAL)
    for _ in range(2):
        await desk.to_the_end()
        link = desk.message("look at").get_by_role("link", name=first)
        await link.click()
        await expect(desk.message("the very first")).to_be_in_viewport()
        await desk.to_the_end()
        await expect(desk.message("the very first")).not_to_be_in_viewport()


async def test_a_draft_is_the_same_in_two_tabs_and_gone_from_both_when_sent(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    await desk.open_thread(GENERAL)
    other = await desk.another_tab(room.page)
    await other.open_thread(GENERAL)
    await desk.write("half a thought")
    await expect(other.composer).to_have_value("half a thought")
    await desk.send()
    await desk.is_stored("half a thought")
    await expect(other.composer).to_have_value("")


async def test_another_log_on_the_same_address_leaves_nothing_of_the_old_one(
    desks: Desks, network: Network
) -> None:
    bob = await network.join("bob")
    desk = await joined(desks, network)
    desk.expect_losses()
    await bob.posts("general", "@ann of the old log")
    await desk.visit("inbox")
    await expect(desk.main.get_by_role("link", name="of the old log")).to_be_visible()
    await network.stop()
    for file in network.folder.glob(f"{network.database.name}*"):
        file.unlink()
    await network.start()
    await desk.is_joined()
    await expect(desk.main).not_to_contain_text("of the old log")
    await desk.visit("thread", GENERAL)
    await expect(desk.main).to_contain_text("Nothing has been said in #general yet.")
    await desk.says("of the new log")


async def test_a_channel_that_one_is_not_in_offers_to_join_it(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    await bob.client.call("create_channel", name="birds")
    await bob.posts("birds", "A blackbird!")
    desk = await joined(desks, room)
    await desk.visit("thread", "channel.birds")
    await expect(desk.main).to_contain_text("You are not in #birds.")
    await expect(desk.main).not_to_contain_text("Nothing has been said")
    await desk.main.get_by_role("button", name="Join", exact=True).click()
    await desk.sees("A blackbird!")
    await expect(desk.main).not_to_contain_text("You are not in")


async def test_links_to_what_never_was_say_so(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.visit("thread", "channel.nope")
    await expect(desk.main).to_contain_text("There is no channel #nope.")
    await desk.visit("thread", "xyz")
    await expect(desk.main).to_have_text("There is no thread “xyz”.")
    for view in ("interaction", "turn"):
        await desk.visit(view)
        await expect(desk.main.get_by_role("heading").first).to_be_visible()
    for view in ("sequence", "thread"):
        await desk.visit(view)
        await expect(desk.main).to_have_text("There is no thread without a name.")
    await expect(desk.page).to_have_title("test")


async def test_somebody_who_is_not_in_the_conversation_is_said_to_be_that(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    await room.join("cyd")
    desk = await joined(desks, room)
    await bob.tells("ann", "Shall we ask?")
    await desk.open_thread("dm.ann.bob")
    await desk.says("Ask @cyd, or @nobody?")
    said = desk.message("Ask @cyd")
    await expect(said).to_contain_text("Nobody here is called @nobody.")
    await expect(said).to_contain_text("Not in this conversation, and not told: @cyd")


async def test_who_leaves_while_the_hub_is_asked_hears_nothing_of_it_when_joining_again(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    for n in range(80):
        await bob.posts("general", f"line {n}")
    async with laid(room.port) as wire:
        desk = await desks.sit(wire.url)
        desk.expect_losses()
        await desk.join_as("ann")
        wire.silence()
        await desk.open_thread(GENERAL)
        await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
        await desk.page.get_by_role("menuitem", name="Leave").click()
        wire.mend()
        await desk.join_as("ann")
        assert await desk.page.locator(".announcer").inner_text() == ""


async def test_the_longest_names_stay_in_their_column(desks: Desks, room: Room) -> None:
    long = await room.join("W" * 64)
    await long.client.call("create_channel", name="C" * 64)
    desk = await desks.sit(room.page, size=NARROW)
    await desk.join_as("ann")
    await long.posts("general", "from somebody with a long name")
    await desk.visit("thread", GENERAL)
    said = await desk.sees("from somebody")
    assert await said.evaluate(IS_WITHIN)
    await desk.visit("thread", GENERAL, opened=("thread", GENERAL))
    row = desk.details.get_by_role("button", name="W" * 64)
    assert await row.evaluate(IS_WITHIN)
    await desk.visit("network")
    channel = desk.main.get_by_role("link", name="C" * 64)
    await expect(channel).to_be_visible()
    assert await channel.evaluate(IS_WITHIN)


async def test_one_writes_only_where_one_takes_part(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.open_thread(GENERAL)
    await desk.says("while I was here")
    await desk.write("/leave")
    await desk.composer.press("Escape")
    await desk.send()
    await expect(desk.thread(GENERAL)).to_have_count(0)
    await expect(desk.page).to_have_title("test")  # it leads away from there
    await desk.visit("thread", GENERAL)
    await desk.sees("while I was here")
    await expect(desk.main).to_contain_text("You are not in #general.")
    await expect(desk.composer).to_have_count(0)
    await desk.visit("thread", "dm.bob.cyd")
    await expect(desk.main).to_contain_text("You can look on.")
    await expect(desk.composer).to_have_count(0)


async def test_what_was_said_in_a_channel_that_one_has_left_is_read_without_a_word_to_the_hub(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    desk = await joined(desks, room)
    await bob.posts("general", "before you go")
    await expect(desk.thread(GENERAL).locator(".badge")).to_have_count(1)
    await desk.visit("thread", "broadcast", opened=("thread", GENERAL))
    await desk.details.get_by_role("button", name="Leave the channel").click()
    await expect(desk.thread(GENERAL)).to_have_count(0)
    await desk.visit("thread", GENERAL)
    await desk.sees("before you go")
    await desk.tells_its_marks()
    await desk.visit("thread", "broadcast")
    await desk.says("answered later than a mark")
    assert "no thread" not in await desk.page.locator(".announcer").inner_text()
