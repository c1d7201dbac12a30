"""The widget of the composer by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Button, OptionList, Static

from hubbub.cli.full.composer import Composer
from hubbub.cli.full.state import Draft, State
from hubbub.protocol.messages import Quote
from tests.unit.cli.chatting import said, state_of, thread

QUOTE = Quote(message_id="m3", text="shall\nwe?")


class Stage(App[None]):
    """A composer, and a button beside it; remembers what is submitted."""

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


class Scene:
    def __init__(self, stage: Stage, pilot: Pilot[None]) -> None:
        self.stage, self.composer, self.pilot = stage, stage.composer, pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        self.composer.writing.insert(text)
        await self.pilot.pause()

    @property
    def text(self) -> str:
        return self.composer.writing.text

    @property
    def offered(self) -> list[str]:
        """The completions in sight, the chosen one with a star."""
        choices = self.composer.query_one("#choices", OptionList)
        lines = [str(option.prompt).split("  ")[0] for option in choices.options]
        return [f"*{line}" if n == choices.highlighted else line for n, line in enumerate(lines)]


@asynccontextmanager
async def stage() -> AsyncIterator[Scene]:
    app = Stage(state_of(thread(said(7, "shall we?", tseq=1))))
    async with app.run_test(size=(60, 20)) as pilot:
        yield Scene(app, pilot)


async def test_enter_submits_what_is_written_and_empties_it() -> None:
    async with stage() as scene:
        await scene.press("h", "i", "enter")
        assert scene.stage.submitted == [Draft("hi")]
        assert scene.text == ""


async def test_nothing_is_not_submitted() -> None:
    async with stage() as scene:
        await scene.press("enter", "space", "enter")
        assert scene.stage.submitted == []


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_new_line_is_begun_by_other_keys_than_enter(key: str) -> None:
    async with stage() as scene:
        await scene.press("a", key, "b", "enter")
        assert scene.stage.submitted == [Draft("a\nb")]


async def test_a_paste_of_several_lines_is_not_submitted() -> None:
    async with stage() as scene:
        await scene.type("one\ntwo\n")
        assert scene.stage.submitted == []
        assert scene.text == "one\ntwo\n"


async def test_commands_are_offered_from_their_slash_on() -> None:
    async with stage() as scene:
        await scene.press("slash", "l")
        assert scene.offered[0] == "*leave"
        await scene.press("e", "tab")
        assert scene.text == "/leave "
        assert scene.offered == ["*general"]
        await scene.press("tab")
        assert scene.text == "/leave general "
        assert scene.offered == []


async def test_names_are_offered_after_an_at_sign_only() -> None:
    async with stage() as scene:
        await scene.type("mail me at bo")
        assert scene.offered == []
        await scene.type("b @b")
        assert scene.offered == ["*bob"]
        await scene.press("tab")
        assert scene.text == "mail me at bob @bob "


async def test_arrows_choose_and_enter_takes_what_was_chosen() -> None:
    async with stage() as scene:
        await scene.type("@")
        assert scene.offered == ["*bob", "concierge"]
        await scene.press("down")
        assert scene.offered == ["bob", "*concierge"]
        await scene.press("down", "up", "enter")
        assert scene.text == "@concierge "
        assert scene.stage.submitted == []


async def test_enter_submits_though_something_is_offered_that_nobody_chose() -> None:
    async with stage() as scene:
        await scene.type("@b")
        await scene.press("enter")
        assert scene.stage.submitted == [Draft("@b")]
        assert scene.offered == []


async def test_what_stands_there_already_is_not_offered() -> None:
    async with stage() as scene:
        await scene.type("@bob")
        assert scene.offered == []


async def test_a_completion_in_the_middle_of_a_text_needs_no_second_space() -> None:
    async with stage() as scene:
        await scene.type("@b you")
        scene.composer.writing.move_cursor((0, 2))
        await scene.press("tab")
        assert scene.text == "@bob you"


async def test_a_completion_works_in_any_line() -> None:
    async with stage() as scene:
        await scene.type("first\nthen @c")
        await scene.press("tab")
        assert scene.text == "first\nthen @concierge "


async def test_tab_goes_on_when_nothing_is_offered() -> None:
    async with stage() as scene:
        await scene.type("done")
        await scene.press("tab")
        assert isinstance(scene.stage.focused, Button)


async def test_escape_closes_completions_then_drops_the_quotation() -> None:
    async with stage() as scene:
        scene.composer.quote(QUOTE)
        await scene.type("@b")
        assert scene.offered != []
        await scene.press("escape")
        assert scene.offered == []
        assert scene.composer.leave_off()
        assert scene.composer.draft == Draft("@b")
        assert not scene.composer.leave_off()


async def test_a_quotation_is_shown_in_a_line_and_goes_along() -> None:
    async with stage() as scene:
        scene.composer.quote(QUOTE)
        await scene.pilot.pause()
        shown = scene.composer.query_one("#quoted", Static)
        assert shown.display
        assert str(shown.render()) == "▎m3: shall we?  (Esc drops it)"
        await scene.press("y", "enter")
        assert scene.stage.submitted == [Draft("y", QUOTE)]
        await scene.pilot.pause()
        assert not shown.display


async def test_a_draft_is_put_back_with_the_cursor_at_its_end() -> None:
    async with stage() as scene:
        scene.composer.draft = Draft("half a\nsent", QUOTE)
        await scene.press("e")
        assert scene.composer.draft == Draft("half a\nsente", QUOTE)
        scene.composer.draft = Draft()
        assert scene.composer.draft == Draft()


async def test_ctrl_d_leaves_only_when_nothing_is_written() -> None:
    async with stage() as scene:
        await scene.press("a", "left", "ctrl+d")
        assert (scene.text, scene.stage.left) == ("", 0)
        await scene.press("ctrl+d")
        assert scene.stage.left == 1
