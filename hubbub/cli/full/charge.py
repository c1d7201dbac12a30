"""What opens above everything for people in charge: approvals, and stops."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from hubbub.cli.chat.lines import Note, Tone
from hubbub.cli.chat.text import clip, one_line, visible
from hubbub.cli.control import deeds
from hubbub.cli.control.reading import json_object
from hubbub.cli.control.words import moment
from hubbub.cli.full.about import facts
from hubbub.cli.full.state import State
from hubbub.errors import UserError
from hubbub.protocol.control import Approval

__all__ = [
    "AnswerScreen",
    "ApprovalScreen",
    "ApprovalsScreen",
    "ChoiceScreen",
    "StopScreen",
    "answer_text",
    "asked_line",
    "stop_choices",
]

_QUIET = Style(color="#878787")
_BAD = Style(color="#d75f5f", bold=True)
_TONES: dict[Tone, Style] = {
    "info": _QUIET,
    "good": Style(color="#00875f"),
    "error": _BAD,
    "plain": Style.null(),
    "removed": Style(color="#d75f5f"),
}
MOST = 100
"""Columns of a line to choose from."""


class ChoiceScreen(ModalScreen[str | None]):
    """A list to choose from; its result is the id of what was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q", "dismiss", "close"),
        ("j", "down", "next"),
        ("k", "up", "previous"),
    ]
    DEFAULT_CSS = """
    ChoiceScreen { align: center middle; }
    ChoiceScreen OptionList { width: 90; max-width: 100%; height: auto; max-height: 80%;
                         background: $surface; border: round $primary; }
    """

    def __init__(self, title: str, options: Sequence[Option], hint: str) -> None:
        super().__init__()
        self._title, self._options, self._hint = title, options, hint

    def compose(self) -> ComposeResult:
        shown = OptionList(*self._options)
        shown.border_title, shown.border_subtitle = self._title, self._hint
        yield shown

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_id)

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()


class StopScreen(ChoiceScreen):
    """This turn, this thread, an agent, everything; its result is what would be typed."""

    def __init__(self, state: State) -> None:
        options = [Option(text, id=line) for line, text in stop_choices(state)]
        super().__init__("Stop", options, "Enter does it, Esc closes")


def stop_choices(state: State) -> Iterator[tuple[str, Text]]:
    """What can be stopped here, the least first, and what can be let go on; as commands."""
    for turn in sorted(state.activities.turns(state.current)):
        yield f"/stop turn {turn}", _line("this turn", turn, "ends at once")
    here = state.shown(state.current)
    yield f"/stop thread {state.current}", _line("this thread", here, "until it is resumed")
    for agent in _agents(state):
        yield f"/stop agent {agent}", _line("this agent", agent, "until it is resumed")
    yield "/stop all", _line("everything", "all agents", "until it is resumed", _BAD)
    for stop in state.charge.stops:
        target = stop.target or ""
        named = state.shown(target) if stop.scope == "thread" else target or "everything"
        line = f"/resume {stop.scope} {target}".rstrip()
        yield line, _line("resume", named, f"stopped by {stop.by}")
    for latched in state.charge.latched:
        thread = latched.thread_id
        yield f"/breaker release {thread}", _line("release", state.shown(thread), "latched")
    for agent in state.charge.spoken_for:
        yield f"/handback {agent}", _line("hand back", agent, "you speak for it")


def _agents(state: State) -> list[str]:
    """Agents that are here, those at work first."""
    working = {turn.rpartition("-")[0] for turn in state.activities.turns(state.current)}
    here = [p for p in state.participants.values() if p.kind == "agent" and p.present]
    return [p.id for p in sorted(here, key=lambda p: (p.id not in working, p.id))]


def _line(what: str, which: str, how: str, style: Style | None = None) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis").append(f"{what:<13}", style=style or "bold")
    return text.append(clip(one_line(which), MOST)).append(f"  {one_line(how)}", style=_QUIET)


class ApprovalsScreen(ChoiceScreen):
    """Tool calls that wait for this person's word; its result is an approval's id."""

    def __init__(self, approvals: Sequence[Approval]) -> None:
        options = [Option(asked_line(approval), id=approval.id) for approval in approvals]
        super().__init__("Approvals", options, "Enter looks at one, Esc closes")


def asked_line(approval: Approval) -> Text:
    """`delete_file {"path": "a.txt"}  clerk, until 12:30`."""
    arguments = one_line(json.dumps(approval.arguments, ensure_ascii=False))
    text = Text(no_wrap=True, overflow="ellipsis").append(one_line(approval.tool), style="bold")
    text.append(f" {clip(arguments, MOST)}")
    return text.append(f"  {approval.agent}, until {moment(approval.expires_at)}", style=_QUIET)


class AnswerScreen(ModalScreen[None]):
    """What came of a command, in as much room as there is."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,enter", "dismiss", "close")]
    DEFAULT_CSS = """
    AnswerScreen { align: center middle; }
    AnswerScreen VerticalScroll { width: 95%; height: auto; max-height: 90%; padding: 1 2;
                                  background: $surface; border: round $primary; }
    """

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll() as scroll:
            scroll.border_subtitle = "Esc closes"
            yield Static(self._text)


def answer_text(notes: Sequence[Note]) -> Text:
    """What notes say, in their colours, made safe here."""
    lines = (Text(visible(note.text), style=_TONES[note.tone]) for note in notes)
    return Text("\n").join(lines)


class ApprovalScreen(ModalScreen[deeds.Approve | deeds.Deny | None]):
    """One tool call: approve it, change its arguments, or deny it with a reason."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "close"),
        ("ctrl+y", "approve", "approve"),
        ("ctrl+n", "deny", "deny"),
    ]
    DEFAULT_CSS = """
    ApprovalScreen { align: center middle; }
    ApprovalScreen > Vertical { width: 84; max-width: 100%; height: auto; max-height: 95%;
                                padding: 1 2; background: $surface; border: round $primary; }
    ApprovalScreen VerticalScroll { height: auto; max-height: 12; }
    ApprovalScreen TextArea { height: auto; min-height: 3; max-height: 12; margin: 1 0; }
    ApprovalScreen #wrong { color: $error; height: auto; }
    ApprovalScreen Horizontal { height: auto; }
    ApprovalScreen Button { margin: 1 2 0 0; }
    """

    def __init__(self, approval: Approval, shown: str) -> None:
        """`shown` is how its thread is called."""
        super().__init__()
        self._approval, self._shown = approval, shown

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Approval"
            box.border_subtitle = "Ctrl-Y approves, Ctrl-N denies, Esc leaves it"
            with VerticalScroll():
                yield Static(self._about())
            arguments = json.dumps(self._approval.arguments, indent=2, ensure_ascii=False)
            yield TextArea(visible(arguments), id="arguments", tab_behavior="focus")
            yield Static(id="wrong")
            yield Input(placeholder="A reason, if you deny it", id="reason")
            with Horizontal():
                yield Button("Approve", variant="success", id="approve")
                yield Button("Deny", variant="error", id="deny")

    def on_mount(self) -> None:
        self.query_one("#approve").focus()

    def _about(self) -> Text:
        approval = self._approval
        rows = [
            ("agent", approval.agent),
            ("in", self._shown),
            ("turn", approval.turn),
            ("does", approval.description),
            ("because", approval.reason),
            ("until", f"{moment(approval.expires_at)}, then it is a no"),
        ]
        return facts(f"{approval.agent} asks to run {approval.tool}", rows)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "approve":
            self.action_approve()
        else:
            self.action_deny()

    def action_approve(self) -> None:
        """With the arguments that stand there; those that are no JSON object are told."""
        written = self.query_one(TextArea).text
        asked = visible(json.dumps(self._approval.arguments, indent=2, ensure_ascii=False))
        try:
            changed = None if written == asked else json_object(written)
        except UserError as exc:
            self.query_one("#wrong", Static).update(Text(str(exc)))
            return
        self.dismiss(deeds.Approve(self._approval.id, changed))

    def action_deny(self) -> None:
        reason = self.query_one(Input).value.strip()
        self.dismiss(deeds.Deny(self._approval.id, reason))
