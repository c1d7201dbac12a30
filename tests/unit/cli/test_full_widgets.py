"""The composer and the conversation of the full screen, each by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Button, OptionList, Static

from hubbub.cli.full.composer import Composer
from hubbub.cli.full.conversation_view import ConversationView, Layout
from hubbub.cli.full.draw import Line, Painter
from hubbub.cli.full.state import Draft, State
from hubbub.cli.full.timeline import Beginning, Block, NewLine, Post
from hubbub.protocol.messages import Quote
from tests.interaction.peers import soon
from tests.unit.cli.chatting import said, state_of, thread

QUOTE = Quote(message_id="m3", text="shall\nwe?")
PAINTER = Painter("ann", UTC)


class Writing(App[None]):
    """A composer, and a button beside it; remembers what is submitted."""

    pilot: Pilot[None]

    def __init__(self, state: State) -> None:
        super().__init__()
        self.composer = Composer(state)
        self.submitted: list[Draft] = []
        self.left = 0

    def compose(self) -> ComposeResult:
        yield self.composer
        yield Button("elsewhere")

    def on_mount(self) -> None:
        self.composer.writing.focus()

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        self.submitted.append(event.draft)

    def on_composer_leave(self) -> None:
        self.left += 1

    async def type(self, text: str, *keys: str) -> str:
        """Insert a text, as a paste does, and press keys; what stands there then."""
        if text:
            self.composer.writing.insert(text)
            await self.pilot.pause()
        await self.pilot.press(*keys)
        return self.composer.writing.text

    async def begins(self, text: str, *keys: str) -> str:
        """The same in an empty composer."""
        self.composer.writing.focus()
        self.composer.draft = Draft()
        await self.pilot.pause()
        return await self.type(text, *keys)

    @property
    def offered(self) -> list[str]:
        """The completions in sight, the chosen one with a star."""
        choices = self.composer.query_one("#choices", OptionList)
        lines = [str(option.prompt).split("  ")[0] for option in choices.options]
        return [f"*{line}" if n == choices.highlighted else line for n, line in enumerate(lines)]


@asynccontextmanager
async def writing() -> AsyncIterator[Writing]:
    app = Writing(state_of(thread(said(7, "shall we?", tseq=1))))
    async with app.run_test(size=(60, 20)) as app.pilot:
        yield app


async def test_enter_submits_what_is_written_and_other_keys_begin_a_line() -> None:
    async with writing() as app:
        await app.pilot.press("enter", "space", "enter")
        assert app.submitted == [], "nothing is not submitted"
        assert await app.begins("one\ntwo\n") == "one\ntwo\n", "nor is a paste of several lines"
        assert app.submitted == []
        for key in ("ctrl+j", "shift+enter", "alt+enter"):
            assert await app.begins("a", key, "b", "enter") == ""
            assert app.submitted.pop() == Draft("a\nb")
        assert await app.begins("@b", "enter") == "", "though something is offered"
        assert app.submitted.pop() == Draft("@b")
        assert app.offered == []
        assert await app.begins("a", "left", "ctrl+d") == ""
        assert app.left == 0, "something was written"
        await app.pilot.press("ctrl+d")
        assert app.left == 1


async def test_commands_and_names_are_completed_as_they_are_typed() -> None:
    async with writing() as app:
        await app.pilot.press("slash", "l")
        assert app.offered[0] == "*leave"
        assert await app.type("", "e", "tab") == "/leave "
        assert app.offered == ["*general"]
        assert await app.type("", "tab") == "/leave general "
        assert app.offered == []
        await app.begins("mail me at bo")
        assert app.offered == [], "there is no at sign"
        await app.type("b @b")
        assert app.offered == ["*bob"]
        assert await app.type("", "tab") == "mail me at bob @bob "
        await app.begins("@")
        assert app.offered == ["*bob", "concierge"]
        await app.pilot.press("down")
        assert app.offered == ["bob", "*concierge"]
        assert await app.type("", "down", "up", "enter") == "@concierge "
        await app.begins("@bob")
        assert app.offered == [], "it stands there already"
        await app.begins("@b you")
        app.composer.writing.move_cursor((0, 2))
        assert await app.type("", "tab") == "@bob you"
        assert await app.begins("first\nthen @c", "tab") == "first\nthen @concierge "
        assert app.submitted == []
        await app.begins("done", "tab")
        assert isinstance(app.focused, Button), "tab goes on when nothing is offered"


async def test_a_quotation_is_shown_in_a_line_and_goes_along_or_is_dropped() -> None:
    async with writing() as app:
        composer = app.composer
        composer.quote(QUOTE)
        await app.type("@b")
        shown = composer.query_one("#quoted", Static)
        assert shown.display
        assert str(shown.render()) == "▎m3: shall we?  (Esc drops it)"
        assert app.offered != []
        await app.pilot.press("escape")
        assert app.offered == []
        assert composer.leave_off()
        assert composer.draft == Draft("@b")
        assert not composer.leave_off()
        composer.draft = Draft("half a\nsent", QUOTE)
        await app.pilot.press("e")
        assert composer.draft == Draft("half a\nsente", QUOTE)
        await app.pilot.press("enter")
        assert app.submitted == [Draft("half a\nsente", QUOTE)]
        await app.pilot.pause()
        assert not shown.display


# The conversation ---------------------------------------------------------------------------------


class Reading(App[None]):
    """A conversation and nothing else; remembers what it says."""

    pilot: Pilot[None]

    def __init__(self) -> None:
        super().__init__()
        self.view = ConversationView()
        self.heard: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.view

    def on_conversation_view_top(self) -> None:
        self.heard.append("top")

    def on_conversation_view_end(self) -> None:
        self.heard.append("end")

    def on_conversation_view_chosen(self) -> None:
        self.heard.append("chosen")

    async def show(self, *blocks: Block, thread: str = "t1", opening: bool = False) -> list[str]:
        """The lines in sight."""
        self.view.show(thread, list(blocks), PAINTER, opening=opening)
        await self.pilot.pause()
        return self.lines

    async def resize(self, width: int, height: int) -> None:
        """Another terminal, and the widget as wide as it is: it is told after the screen."""
        await self.pilot.resize_terminal(width, height)
        async with soon():
            while self.view.size != (width, height):
                await self.pilot.pause()

    @property
    def lines(self) -> list[str]:
        rows = range(self.view.size.height)
        return [self.view.render_line(y).text.rstrip() for y in rows]


@asynccontextmanager
async def reading(width: int = 40, height: int = 10) -> AsyncIterator[Reading]:
    app = Reading()
    async with app.run_test(size=(width, height)) as app.pilot:
        yield app


def posts(*numbers: int, together: bool = True) -> list[Block]:
    """Messages of two lines each (three if not together)."""
    return [Post(said(n, f"text {n}."), together=together) for n in numbers]


TWENTY = posts(*range(1, 21))


async def test_a_conversation_opens_at_its_end_or_where_something_is_new() -> None:
    async with reading() as app:
        lines = await app.show(*posts(1, 2))
        assert lines[:5] == ["  12:01  m1", "  text 1.", "  12:02  m2", "  text 2.", ""]
        assert {"top", "end"} <= set(app.heard)
        app.heard.clear()
        assert (await app.show(*TWENTY, thread="t2"))[-1] == "  text 20."
        assert app.view.at_end
        assert app.heard[-1] == "end"
        assert "top" not in app.heard
        told = len(app.heard)
        assert (await app.show(*TWENTY, thread="t2"))[-1] == "  text 20."
        assert len(app.heard) > told, "the same again changes nothing but is told"
        assert (await app.show(*posts(*range(1, 25)), thread="t2"))[-1] == "  text 24."
        app.view.choose(3)
        app.heard.clear()
        with_news = [*TWENTY, NewLine(), *posts(*range(21, 41))]
        assert (await app.show(*with_news, thread="t3"))[2].strip() == "── new ──"
        assert app.view.selected is None, "another thread starts afresh"
        assert "end" not in app.heard
        app.view.to_end()
        await app.pilot.pause()
        assert app.lines[-1] == "  text 40."
        assert app.heard[-1] == "end"
        app.view.jump_new()
        assert app.lines[2].strip() == "── new ──"


async def test_elsewhere_it_stays_where_it_is_whatever_comes_above_and_below() -> None:
    async with reading() as app:
        await app.show(*posts(*range(11, 31)))
        app.view.page(-1)
        before = app.lines
        assert await app.show(*posts(*range(1, 41))) == before
        assert await app.show(Beginning("#general"), *posts(*range(1, 41))) == before
        # One that is being fetched settles where the new begins, until somebody scrolls.
        await app.show(NewLine(), *posts(*range(31, 41)), thread="t2", opening=True)
        more = [*posts(*range(1, 11)), NewLine(), *posts(*range(11, 41))]
        lines = await app.show(*more, thread="t2", opening=True)
        assert lines[2].strip() == "── new ──"
        assert lines[4] == "  text 11."
        app.view.page(1)
        before = app.lines
        assert await app.show(*posts(0), *more, thread="t2", opening=True) == before
        assert await app.show(*posts(0), *more, thread="t2") == before


async def test_a_page_is_most_of_a_screen() -> None:
    async with reading(height=10) as app:
        await app.show(*TWENTY)
        app.view.page(-1)
        assert app.view.scroll_y == 40 - 10 - 7
        app.view.page(1)
        assert app.view.at_end
        for _ in range(9):
            app.view.page(-1)
        await app.pilot.pause()
        assert app.view.scroll_y == 0
        assert app.heard[-1] == "top"


async def test_messages_are_selected_one_after_the_other_or_by_a_click() -> None:
    async with reading() as app:
        view = app.view
        await app.show(Beginning("#general"))
        view.select(1)
        assert view.selected is None
        assert view.message() is None
        await app.show(Beginning("#general"), *posts(1, 2), NewLine(), *posts(3))
        selected: list[int | None] = []
        for step in (-1, -1, -1, -1, 1, 1, 1):
            view.select(step)
            selected.append(view.selected)
        assert selected == [3, 2, 1, 1, 2, 3, 3]
        message = view.message()
        assert message is not None
        assert message.id == "m3"
        await app.show(Beginning("#general"), *posts(1, 2), thread="t2")
        for y, chosen in ((0, None), (4, 2), (9, 2)):
            await app.pilot.click(ConversationView, offset=(5, y))
            assert view.selected == chosen
        assert app.heard[-1] == "chosen"


async def test_what_is_selected_comes_into_sight_and_is_marked() -> None:
    async with reading() as app:
        await app.show(*TWENTY)
        app.view.choose(5)
        assert app.lines[0:2] == ["▌ 12:05  m5", "▌ text 5."]
        app.view.choose(15)
        assert app.lines[-2:] == ["▌ 12:15  m15", "▌ text 15."]
        app.view.choose(None)
        assert not any("▌" in line for line in app.lines)
    async with reading() as app:
        long = Post(said(2, "\n".join(f"line {n}" for n in range(30))), together=True)
        await app.show(*posts(1), long, *posts(3))
        app.view.choose(2)
        assert app.lines[0] == "▌ 12:02  m2", "from its beginning"
        await app.show(*posts(1, together=False), thread="t3")
        app.view.choose(1)
        assert app.lines[:3] == ["", "▌ bob  12:01  m1", "▌ text 1."], "the gap is not marked"
        mention = Post(said(1, "@ann", mentions=("ann",)), True, mentions_me=True)
        assert (await app.show(mention, thread="t4"))[:2] == ["▎ 12:01  m1", "▎ @ann"]


async def test_another_width_is_drawn_anew_and_none_does_harm() -> None:
    text = "a sentence of some words that is longer than forty columns"
    post = Post(said(1, text), together=True)
    async with reading(width=60) as app:
        wide = [line for line in await app.show(post) if line]
        await app.resize(30, 10)
        narrow = [line for line in await app.show(post) if line]
        assert len(narrow) > len(wide)
        assert " ".join(" ".join(narrow[1:]).split()) == text
        for width in (12, 8, 3, 1):
            await app.resize(width, 3)
            assert len(await app.show(*posts(1, 2, 3))) == 3


def layout(heights: Sequence[int]) -> Layout:
    drawn: list[list[Line]] = [[[]] * height for height in heights]
    starts = [sum(heights[:n]) for n in range(len(heights) + 1)]
    blocks: list[Block] = [Post(said(n + 1), together=False) for n in range(len(heights))]
    return Layout(blocks, drawn, starts)


@given(st.lists(st.integers(1, 6), max_size=12))
def test_lines_and_messages_are_found_in_their_blocks(heights: list[int]) -> None:
    found = layout(heights)
    expected = [n for n, height in enumerate(heights) for _ in range(height)]
    assert [found.at(line) for line in range(found.height)] == expected
    assert found.at(-1) is None
    assert found.at(found.height) is None
    starts = [found.start_of(n + 1) for n in range(len(heights))]
    assert starts == [sum(heights[:n]) for n in range(len(heights))]
    assert found.start_of(len(heights) + 1) is None
