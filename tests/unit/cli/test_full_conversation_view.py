"""The widget of the conversation by itself: what it shows of its blocks, and where it stands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from hubbub.cli.full.conversation_view import ConversationView, Layout
from hubbub.cli.full.draw import Line, Painter
from hubbub.cli.full.timeline import Beginning, Block, NewLine, Post
from tests.interaction.peers import soon
from tests.unit.cli.chatting import said


class Stage(App[None]):
    """A conversation and nothing else; remembers what it says."""

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


PAINTER = Painter("ann", UTC)


def posts(*numbers: int, together: bool = True) -> list[Block]:
    """Messages of two lines each (three if not together)."""
    return [Post(said(n, f"text {n}."), together=together) for n in numbers]


class Scene:
    def __init__(self, stage: Stage, pilot: Pilot[None]) -> None:
        self.stage, self.view, self.pilot = stage, stage.view, pilot

    async def show(self, blocks: Sequence[Block], thread: str = "t1") -> None:
        self.view.show(thread, blocks, PAINTER)
        await self.pilot.pause()

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
async def stage(width: int = 40, height: int = 10) -> AsyncIterator[Scene]:
    app = Stage()
    async with app.run_test(size=(width, height)) as pilot:
        yield Scene(app, pilot)


async def test_a_short_conversation_stands_at_the_top() -> None:
    async with stage() as scene:
        await scene.show(posts(1, 2))
        assert scene.lines[:5] == ["  12:01  m1", "  text 1.", "  12:02  m2", "  text 2.", ""]
        assert {"top", "end"} <= set(scene.stage.heard)


async def test_a_long_conversation_opens_at_its_end() -> None:
    async with stage() as scene:
        await scene.show(posts(*range(1, 21)))
        assert scene.lines[-1] == "  text 20."
        assert scene.view.at_end
        assert scene.stage.heard[-1] == "end"
        assert "top" not in scene.stage.heard


async def test_a_conversation_with_something_new_opens_there() -> None:
    async with stage() as scene:
        await scene.show([*posts(*range(1, 21)), NewLine(), *posts(*range(21, 41))])
        assert scene.lines[2].strip() == "── new ──"
        assert "end" not in scene.stage.heard
        scene.view.to_end()
        await scene.pilot.pause()
        assert scene.lines[-1] == "  text 40."
        assert scene.stage.heard[-1] == "end"
        scene.view.jump_new()
        assert scene.lines[2].strip() == "── new ──"


async def test_at_the_end_it_stays_at_the_end() -> None:
    async with stage() as scene:
        await scene.show(posts(*range(1, 21)))
        await scene.show(posts(*range(1, 25)))
        assert scene.lines[-1] == "  text 24."


async def test_elsewhere_it_stays_where_it_is_whatever_comes_above_and_below() -> None:
    async with stage() as scene:
        await scene.show(posts(*range(11, 31)))
        scene.view.page(-1)
        before = scene.lines
        await scene.show(posts(*range(1, 41)))
        assert scene.lines == before
        await scene.show([Beginning("#general"), *posts(*range(1, 41))])
        assert scene.lines == before


async def test_a_thread_that_is_being_fetched_settles_where_the_new_begins() -> None:
    async with stage() as scene:
        view = scene.view
        view.show("t1", [NewLine(), *posts(*range(31, 41))], PAINTER, opening=True)
        await scene.pilot.pause()
        more = [*posts(*range(1, 11)), NewLine(), *posts(*range(11, 41))]
        view.show("t1", more, PAINTER, opening=True)
        assert scene.lines[2].strip() == "── new ──"
        assert scene.lines[4] == "  text 11."
        view.page(1)
        before = scene.lines
        view.show("t1", [*posts(0), *more], PAINTER, opening=True)
        assert scene.lines == before  # somebody has scrolled
        view.show("t1", [*posts(0), *more], PAINTER)
        assert scene.lines == before


async def test_another_thread_starts_afresh() -> None:
    async with stage() as scene:
        await scene.show(posts(*range(1, 21)))
        scene.view.choose(3)
        await scene.show(posts(*range(31, 61)), thread="t2")
        assert scene.lines[-1] == "  text 60."
        assert scene.view.selected is None


async def test_the_same_again_changes_nothing_but_is_told() -> None:
    async with stage() as scene:
        blocks = posts(*range(1, 21))
        await scene.show(blocks)
        told = len(scene.stage.heard)
        await scene.show(list(blocks))
        assert len(scene.stage.heard) > told
        assert scene.lines[-1] == "  text 20."


async def test_a_page_is_most_of_a_screen() -> None:
    async with stage(height=10) as scene:
        await scene.show(posts(*range(1, 21)))
        scene.view.page(-1)
        assert scene.view.scroll_y == 40 - 10 - 7
        scene.view.page(1)
        assert scene.view.at_end
        for _ in range(9):
            scene.view.page(-1)
        await scene.pilot.pause()
        assert scene.view.scroll_y == 0
        assert scene.stage.heard[-1] == "top"


async def test_selecting_begins_at_the_last_and_goes_from_message_to_message() -> None:
    async with stage() as scene:
        await scene.show([Beginning("#general"), *posts(1, 2), NewLine(), *posts(3)])
        selected = []
        for step in (-1, -1, -1, -1, 1, 1, 1):
            scene.view.select(step)
            selected.append(scene.view.selected)
        assert selected == [3, 2, 1, 1, 2, 3, 3]
        message = scene.view.message()
        assert message is not None
        assert message.id == "m3"


async def test_there_is_nothing_to_select_in_an_empty_thread() -> None:
    async with stage() as scene:
        await scene.show([Beginning("#general")])
        scene.view.select(1)
        assert scene.view.selected is None
        assert scene.view.message() is None


async def test_what_is_selected_comes_into_sight_and_is_marked() -> None:
    async with stage() as scene:
        await scene.show(posts(*range(1, 21)))
        scene.view.choose(5)
        assert scene.lines[0:2] == ["▌ 12:05  m5", "▌ text 5."]
        scene.view.choose(15)
        assert scene.lines[-2:] == ["▌ 12:15  m15", "▌ text 15."]
        scene.view.choose(None)
        assert not any("▌" in line for line in scene.lines)


async def test_a_message_longer_than_the_screen_is_shown_from_its_beginning() -> None:
    async with stage() as scene:
        long = Post(said(2, "\n".join(f"line {n}" for n in range(30))), together=True)
        await scene.show([*posts(1), long, *posts(3)])
        scene.view.choose(2)
        assert scene.lines[0] == "▌ 12:02  m2"


async def test_the_gap_above_a_message_is_not_part_of_its_mark() -> None:
    async with stage() as scene:
        await scene.show(posts(1, together=False))
        scene.view.choose(1)
        assert scene.lines[:3] == ["", "▌ bob  12:01  m1", "▌ text 1."]


async def test_mentions_of_the_reader_are_marked_too() -> None:
    async with stage() as scene:
        mention = Post(said(1, "@ann", mentions=("ann",)), True, mentions_me=True)
        await scene.show([mention])
        assert scene.lines[:2] == ["▎ 12:01  m1", "▎ @ann"]


async def test_a_click_selects_a_message_and_nothing_between() -> None:
    async with stage() as scene:
        await scene.show([Beginning("#general"), *posts(1, 2)])
        await scene.pilot.click(ConversationView, offset=(5, 0))
        assert scene.view.selected is None
        await scene.pilot.click(ConversationView, offset=(5, 4))
        assert scene.view.selected == 2
        assert scene.stage.heard[-1] == "chosen"
        await scene.pilot.click(ConversationView, offset=(5, 9))
        assert scene.view.selected == 2


async def test_another_width_is_drawn_anew() -> None:
    async with stage(width=60) as scene:
        text = "a sentence of some words that is longer than forty columns"
        await scene.show([Post(said(1, text), together=True)])
        wide = [line for line in scene.lines if line]
        await scene.resize(30, 10)
        await scene.show([Post(said(1, text), together=True)])
        narrow = [line for line in scene.lines if line]
        assert len(narrow) > len(wide)
        assert " ".join(" ".join(narrow[1:]).split()) == text


@pytest.mark.parametrize("width", [1, 3, 8, 12])
async def test_a_width_that_is_no_width_does_no_harm(width: int) -> None:
    async with stage(width=width, height=3) as scene:
        await scene.show(posts(1, 2, 3))
        assert len(scene.lines) == 3


# The layout ---------------------------------------------------------------------------------------


def layout(heights: list[int]) -> Layout:
    drawn: list[list[Line]] = [[[]] * height for height in heights]
    starts = [sum(heights[:n]) for n in range(len(heights) + 1)]
    blocks: list[Block] = [Post(said(n + 1), together=False) for n in range(len(heights))]
    return Layout(blocks, drawn, starts)


@given(st.lists(st.integers(1, 6), max_size=12))
def test_every_line_belongs_to_the_block_it_is_drawn_in(heights: list[int]) -> None:
    found = layout(heights)
    expected = [n for n, height in enumerate(heights) for _ in range(height)]
    assert [found.at(line) for line in range(found.height)] == expected
    assert found.at(-1) is None
    assert found.at(found.height) is None


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.data())
def test_a_message_is_found_by_its_position_in_the_log(
    heights: list[int], data: st.DataObject
) -> None:
    n = data.draw(st.integers(0, len(heights) - 1))
    assert layout(heights).start_of(n + 1) == sum(heights[:n])
    assert layout(heights).start_of(len(heights) + 1) is None
