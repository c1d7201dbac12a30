"""The full-screen client: keys and what one sees, against a real hub."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hubbub.cli.full.composer import Writing
from hubbub.cli.full.conversation_view import ConversationView
from hubbub.cli.full.dialogs import HelpScreen, InboxScreen
from hubbub.client import Client
from hubbub.testing.network import LocalNetwork
from tests.interaction.full_rig import FILE, Desk, next_event, read_all, sitting

pytestmark = pytest.mark.slow  # a whole screen is drawn for each key


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    async with LocalNetwork(FILE) as network:
        yield network


@pytest.fixture
async def bob(network: LocalNetwork) -> Client:
    return await network.join("bob", "human")


async def general(bob: Client, *texts: str) -> list[str]:
    """Bob speaks in #general; the ids of his messages."""
    ids = []
    for text in texts:
        value = await bob.call("post_to_channel", channel="general", text=text)
        assert isinstance(value, dict)
        ids.append(str(value["id"]))
    return ids


async def select(desk: Desk, text: str) -> None:
    """Select a message from the keyboard."""
    await desk.reads(text)
    if isinstance(desk.chat.focused, Writing):
        await desk.presses("escape")
    await desk.presses("k")
    while text not in (message.text if (message := desk.view.message()) else ""):
        await desk.presses("k")


@pytest.mark.behaviour("U-1")
async def test_a_person_sees_threads_people_and_the_conversation_and_speaks(
    network: LocalNetwork, bob: Client
) -> None:
    await network.join("bobby", "human")
    await general(bob, "hello ann")
    async with sitting(network) as desk:
        await desk.reads("hello ann")
        await desk.sees(lambda: "● bob" in desk.listed("#people"))
        await desk.sees(lambda: "#general" in desk.listed("#threads"))
        assert desk.header.startswith("#general")
        assert "town as ann" in desk.status
        assert isinstance(desk.chat.focused, Writing)
        await desk.says("hello *all*")
        assert (await next_event(bob)).message.text == "hello *all*"
        await desk.reads("hello all")
        await desk.reads("✓✓ bob")
        assert desk.writing.text == ""
        assert sum("hello all" in line for line in desk.conversation) == 1
        await desk.presses("a", "ctrl+j", "b", "enter")
        assert (await next_event(bob)).message.text == "a\nb"
        await desk.writes("@bob")
        await desk.sees(lambda: desk.writing.choosing)
        await desk.presses("down", "enter")
        assert desk.writing.text == "@bobby "
        await desk.writes("@b")
        await desk.sees(lambda: desk.writing.choosing)
        await desk.presses("escape")
        assert not desk.writing.choosing
        assert desk.chat.focused is desk.writing
        desk.writing.text = ""
        await desk.says("/frobnicate")
        await desk.tells("no command /frobnicate")
        assert desk.writing.text == "/frobnicate", "it stays to be mended"


async def test_unread_threads_are_counted_and_found_by_key_and_read_by_looking(
    network: LocalNetwork, bob: Client
) -> None:
    async with sitting(network) as desk:
        await bob.call("send_text_message", to="ann", text="psst")
        await desk.sees(lambda: "● @bob 1" in desk.listed("#threads"))
        assert "1 unread" in desk.status
        await desk.presses("alt+shift+down")
        await desk.reads("── new ──")
        await desk.reads("psst")
        await desk.sees(lambda: "● @bob" in desk.listed("#threads"))
        await desk.keeps("dm.ann.bob", head=1, read=1)
        await desk.presses("alt+shift+up")
        await desk.tells("all is read")
        await desk.says("/open #general")
        desk.app.app_focus = False
        await general(bob, "@ann are you there?")
        await desk.reads("are you there?")
        await desk.sees(lambda: "#general @1 1" in desk.listed("#threads"))
        desk.app.app_focus = True
        await desk.sees(lambda: "#general" in desk.listed("#threads"))


async def test_drafts_wait_in_their_threads_which_keys_reach(network: LocalNetwork) -> None:
    async with sitting(network) as desk:
        await desk.writes("half a sentence")
        await desk.presses("alt+up")
        assert desk.state.current == "broadcast"
        assert desk.writing.text == ""
        await desk.sees(lambda: "#general ✎" in desk.listed("#threads"))
        await desk.writes("another")
        await desk.presses("alt+down")
        assert desk.state.current == "channel.general"
        assert desk.writing.text == "half a sentence"
        await desk.presses("alt+up")
        assert desk.writing.text == "another"
        desk.writing.text = ""
        await desk.writes("x")
        await desk.presses("left", "ctrl+d")
        assert desk.writing.text == ""
        await desk.presses("ctrl+d")
        await desk.sees(lambda: desk.app.return_value is not None)
    assert desk.app.return_value == 0


@pytest.mark.behaviour("U-1", "P-24")
async def test_history_comes_by_scrolling_up_and_keeps_its_place(
    network: LocalNetwork, bob: Client
) -> None:
    await general(bob, *[f"text {n}." for n in range(1, 131)])
    await read_all(network)
    async with sitting(network) as desk:
        await desk.reads("text 130.")
        await desk.presses("pageup")
        await desk.sees(lambda: not any("text 130." in line for line in desk.conversation))
        before = desk.conversation
        await general(bob, "later")
        await desk.sees(lambda: desk.state.thread("channel.general").head == 131)
        await desk.pilot.pause()
        assert desk.conversation == before
        while not any("text 1." in line for line in desk.conversation):
            await desk.presses("pageup")
        assert desk.conversation[0].startswith("This is the beginning of #general.")
        assert list(desk.state.thread("channel.general").messages) == list(range(1, 132))
        await desk.presses("escape", "G")
        await desk.reads("later")


async def test_a_long_absence_begins_at_what_is_new(network: LocalNetwork, bob: Client) -> None:
    async with sitting(network):
        pass
    first, *_ = await general(bob, *[f"text {n}." for n in range(1, 91)])
    async with sitting(network) as desk:
        await desk.reads("── new ──")
        await desk.reads("text 1.")
        assert desk.state.thread("channel.general").unread == 90
        await desk.presses("escape", "G")
        await desk.reads("text 90.")
        await desk.keeps("channel.general", head=90, read=90)
        await desk.presses("N")
        await desk.reads("text 1.")
        await desk.presses("G")
        await desk.says(f"/go {first}")
        await desk.reads("text 1.")
        await desk.sees(lambda: desk.view.selected == int(first[1:]))
        await desk.presses("c")
        assert desk.app.clipboard == first
        await desk.says("/go m99999")
        await desk.tells("m99999")


async def test_replies_and_quotations_go_with_their_message(
    network: LocalNetwork, bob: Client
) -> None:
    (question,) = await general(bob, "shall we?")
    async with sitting(network) as desk:
        await desk.presses("escape", "r", "q", "c", "u")
        await desk.sees(lambda: desk.told == ["select a message first: k"] * 4)
        await select(desk, "shall we?")
        await desk.presses("q")
        await desk.says("yes")
        quote = (await next_event(bob)).message.quote
        assert quote is not None
        assert (quote.message_id, quote.text) == (question, "shall we?")
        await desk.reads(f"▎{question}: shall we?")
        await select(desk, "shall we?")
        await desk.presses("q", "escape")
        await desk.says("no")
        assert (await next_event(bob)).message.quote is None
        await select(desk, "shall we?")
        await desk.presses("r")
        assert desk.header.startswith(f"#general › {question}")
        await desk.says("under it")
        event = await next_event(bob)
        assert event.message.thread_id == f"channel.general.t{question[1:]}"
        await desk.sees(lambda: f"  ↳ {question} shall we?" in desk.listed("#threads"))
        await desk.presses("escape", "escape")
        await desk.reads("↳ 1 reply")


async def test_marking_as_unread_lasts(network: LocalNetwork, bob: Client) -> None:
    await general(bob, "one", "two", "three")
    async with sitting(network) as desk:
        await desk.keeps("channel.general", head=3, read=3)
        await select(desk, "two")
        await desk.presses("u")
        await desk.keeps("channel.general", head=3, read=1)
        await desk.sees(lambda: "#general 2" in desk.listed("#threads"))
        await desk.presses("alt+up")
        await desk.sees(lambda: "#general 2" in desk.listed("#threads"))


async def test_the_inbox_lists_mentions_and_unread_threads_and_goes_there(
    network: LocalNetwork, bob: Client
) -> None:
    async with sitting(network, opening=None) as desk:

        async def inbox(*keys: str) -> list[str]:
            await desk.presses(*keys)
            await desk.sees(lambda: isinstance(desk.app.screen, InboxScreen))
            return desk.listed("OptionList")

        assert "nothing; all is read" in await inbox("escape", "g", "i")
        await desk.presses("escape")
        assert desk.app.screen is desk.chat
        await general(bob, "@ann look")
        await bob.call("send_text_message", to="ann", text="psst")
        await desk.sees(lambda: desk.state.threads.get("dm.ann.bob") is not None)
        lines = await inbox("g", "i")
        assert lines[0] == "Unread"
        assert lines[1].startswith("#general  1 new")
        assert lines[2].startswith("@bob  1 new")
        assert lines[4].endswith("#general  bob: @ann look")
        await desk.presses("j", "j", "enter")
        await desk.reads("@ann look")
        assert desk.state.current == "channel.general"


async def test_the_palette_goes_to_people_and_channels_and_does_what_keys_do(
    network: LocalNetwork, bob: Client
) -> None:
    def best(desk: Desk) -> str:
        """The first line that the palette offers."""
        found = desk.listed("CommandList")
        return found[0].split("\n")[0] if found else ""

    async with sitting(network) as desk:

        async def chooses(line: str, *keys: str) -> None:
            await desk.presses("ctrl+k", *keys)
            await desk.sees(lambda: best(desk) == line)
            await desk.presses("enter")

        await chooses("@bob", *"@bob")
        await desk.sees(lambda: desk.state.current == "dm.ann.bob")
        await bob.call("create_channel", name="desk", description="work")
        await chooses("join #desk", *"join", "space", *"desk")
        await desk.sees(lambda: desk.header == "#desk  work  with bob")
        await chooses("this help", *"this", "space", *"help")
        await desk.sees(lambda: isinstance(desk.app.screen, HelpScreen))
        await desk.presses("q")
        assert desk.app.screen is desk.chat
        await desk.presses("f1", "escape")
        assert desk.app.screen is desk.chat
        await desk.says("/leave")
        await desk.sees(lambda: desk.state.current == "broadcast")
        assert "#desk" not in desk.listed("#threads")
        await desk.says("/theme textual-light")
        await desk.sees(lambda: not desk.app.current_theme.dark)
        await desk.says("/theme noir")
        await desk.tells("no theme 'noir'")
        desk.writing.text = ""
        await desk.says("/create music")
        await desk.sees(lambda: desk.state.current == "channel.music")
        await desk.says("/leave music")
        await desk.sees(lambda: "#music" not in desk.listed("#threads"))


async def test_on_a_narrow_terminal_the_panels_fold_away_until_it_grows(
    network: LocalNetwork, bob: Client
) -> None:
    size = (60, 20)
    (long,) = await general(bob, "a rather long sentence that " * 8)
    async with sitting(network, size=size) as desk:
        line = await desk.reads("a rather long")
        await desk.pilot.click(ConversationView, offset=(10, desk.conversation.index(line)))
        assert desk.view.selected == int(long[1:])
        assert desk.view.size.width == size[0]
        assert not desk.chat.query_one("#left").display
        await desk.presses("escape", "left_square_bracket")
        assert desk.chat.query_one("#left").display
        assert desk.view.size.width == size[0]  # it lies over the conversation
        await desk.presses("up", "enter")
        assert desk.state.current == "broadcast"
        assert not desk.chat.query_one("#left").display
        await desk.presses("escape", "right_square_bracket")
        await desk.sees(lambda: "id        broadcast" in desk.details)
        await desk.presses("escape")
        assert desk.details == ""
        await desk.pilot.resize_terminal(140, 40)
        await desk.sees(lambda: desk.chat.query_one("#left").display)
        assert desk.view.size.width < 140
        await desk.pilot.click("#threads", offset=(4, 3))
        await desk.sees(lambda: desk.state.current == "channel.general")
