"""The widget below the conversation: where a person writes."""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message as Notice
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from hubbub.cli.chat.completion import Candidate, candidates
from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.full import keys
from hubbub.cli.full.commands import COMMANDS
from hubbub.cli.full.state import Draft, State
from hubbub.protocol.messages import Quote

__all__ = ["Composer", "Writing"]

MOST = 8
"""Completions that are offered at a time."""
_QUIET = Style(color="#878787")


class Writing(TextArea):
    """The text itself: keys of the composer become its actions."""

    class Pressed(Notice):
        """A key of the composer's table."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self) -> None:
        super().__init__(compact=True, placeholder="Write …", highlight_cursor_line=False)
        self.choosing = False
        """Whether completions are offered, among which Up and Down choose."""

    def on_key(self, event: events.Key) -> None:
        action = keys.action_of("composer", event.key)
        if self.choosing and event.key in ("up", "down", "escape"):
            action = {"up": "choose_up", "down": "choose_down"}.get(event.key, "choose_none")
        if action == "leave_empty" and self.text:
            return  # deletes the character on the right, as everywhere
        if action is not None:
            event.stop()
            event.prevent_default()
            self.post_message(self.Pressed(action))

    @property
    def before(self) -> str:
        """What stands before the cursor."""
        return self.get_text_range((0, 0), self.cursor_location)

    def take(self, candidate: Candidate) -> None:
        """Put a completion in the place of what was typed of it."""
        row, column = self.cursor_location
        following = self.document.get_line(row)[column:]
        space = "" if following.startswith(" ") or not candidate.last else " "
        start = (row, max(0, column - candidate.replaces))
        self.replace(candidate.text + space, start, (row, column))


class Composer(Vertical):
    """A quotation, completions, the text."""

    DEFAULT_CSS = """
    Composer { height: auto; max-height: 60%; border-top: solid $panel; }
    Composer #quoted { height: 1; display: none; padding: 0 2; }
    Composer #choices { height: auto; max-height: 8; display: none; border: none; margin: 0 2; }
    Composer Writing { height: auto; min-height: 1; max-height: 8; padding: 0 1; border: none;
                       scrollbar-size-vertical: 1; }
    Composer.-quoting #quoted, Composer.-choosing #choices { display: block; }
    """

    @dataclass
    class Submitted(Notice):
        """Something is to be said or done."""

        draft: Draft

    class Leave(Notice):
        """The person wants to go."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state
        self._quote: Quote | None = None
        self._offered: list[Candidate] = []
        self._chose = False

    def compose(self) -> ComposeResult:
        yield Static(id="quoted")
        choices = OptionList(id="choices")
        choices.can_focus = False
        yield choices
        yield Writing()

    @property
    def writing(self) -> Writing:
        return self.query_one(Writing)

    @property
    def draft(self) -> Draft:
        """What is written."""
        return Draft(self.writing.text, self._quote)

    @draft.setter
    def draft(self, draft: Draft) -> None:
        self.writing.text = draft.text
        self.writing.move_cursor(self.writing.document.end)
        self.quote(draft.quote)
        self._offer([])

    def quote(self, quote: Quote | None) -> None:
        """Quote a message in what is written, or none."""
        self._quote = quote
        self.set_class(quote is not None, "-quoting")
        if quote is not None:
            said = clip(one_line(quote.text), 60)
            self.query_one("#quoted", Static).update(
                Text(f"▎{quote.message_id}: {said}  (Esc drops it)", style=_QUIET)
            )

    def leave_off(self) -> bool:
        """What Esc closes first: completions, then a quotation; whether there was one."""
        if self._offered:
            self._offer([])
            return True
        if self._quote is not None:
            self.quote(None)
            return True
        return False

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._offer_now()

    def _offer_now(self) -> None:
        self._offer(candidates(self.writing.before, self._state, COMMANDS)[:MOST])

    def _offer(self, found: list[Candidate]) -> None:
        before = self.writing.before
        if len(found) == 1 and before.endswith(found[0].text):
            found = []  # it stands there already
        self._offered, self._chose = found, False
        self.writing.choosing = bool(found)
        self.set_class(bool(found), "-choosing")
        choices = self.query_one("#choices", OptionList)
        choices.set_options([Option(_choice(candidate)) for candidate in found])
        choices.highlighted = 0 if found else None

    def on_writing_pressed(self, event: Writing.Pressed) -> None:
        event.stop()
        choices = self.query_one("#choices", OptionList)
        match event.action:
            case "submit" if self._chose:
                self._complete(choices.highlighted)
            case "submit":
                self._submit()
            case "newline":
                self.writing.insert("\n")
            case "complete":
                if not self._chose:
                    self._offer_now()  # whoever types fast is ahead of what is offered
                self._complete(choices.highlighted)
            case "choose_up" | "choose_down":
                step = -1 if event.action == "choose_up" else 1
                choices.highlighted = ((choices.highlighted or 0) + step) % len(self._offered)
                self._chose = True
            case "choose_none":
                self._offer([])
            case "leave_empty":
                self.post_message(self.Leave())

    def _complete(self, index: int | None) -> None:
        if self._offered and index is not None:
            self.writing.take(self._offered[index])
        else:
            self.screen.focus_next()

    def _submit(self) -> None:
        draft = self.draft
        if not draft.text.strip():
            return
        self.draft = Draft()
        self.post_message(self.Submitted(draft))


def _choice(candidate: Candidate) -> Text:
    text = Text(candidate.text, no_wrap=True, overflow="ellipsis")
    return text.append(f"  {candidate.about}", style=_QUIET)
