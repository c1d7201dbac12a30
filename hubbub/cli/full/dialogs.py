"""What opens above everything: help, the inbox."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.full.charge import asked_line
from hubbub.cli.full.commands import COMMANDS
from hubbub.cli.full.keys import KEYS, Where
from hubbub.cli.full.state import State
from hubbub.protocol.messages import Message

__all__ = ["HelpScreen", "InboxScreen", "help_text"]

_QUIET = Style(color="#878787")
_TITLES: dict[Where, str] = {
    "everywhere": "Everywhere",
    "outside": "While nothing is being written (Esc leaves the composer)",
    "composer": "In the composer",
}


def help_text(offers: Collection[str]) -> Text:
    """The table of keys, then the commands where the hub has these operations."""
    text = Text()
    for where, title in _TITLES.items():
        text.append(f"{title}\n", style="bold")
        for key in KEYS:
            if key.where == where:
                text.append(f"  {key.shown:<15}").append(f"{key.help}\n", style=_QUIET)
        text.append("\n")
    text.append("Commands\n", style="bold")
    there = [spec for spec in COMMANDS.values() if spec.is_among(offers)]
    width = max(len(spec.usage) for spec in there)
    for spec in there:
        text.append(f"  {spec.usage:<{width}}  ").append(f"{spec.help}\n", style=_QUIET)
    return text.append("\n//text says /text; @name mentions somebody.", style=_QUIET)


class HelpScreen(ModalScreen[None]):
    """Keys and commands."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,question_mark,f1", "dismiss", "close")]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { width: 84; max-width: 100%; height: 90%; padding: 1 2;
                                background: $surface; border: round $primary; }
    """

    def __init__(self, offers: Collection[str]) -> None:
        super().__init__()
        self._offers = offers

    def compose(self) -> ComposeResult:
        with VerticalScroll() as scroll:
            scroll.border_title = "Help"
            scroll.border_subtitle = "Esc closes"
            yield Static(help_text(self._offers))


class InboxScreen(ModalScreen[str | None]):
    """Approvals, unread threads and mentions; its result is the id of one of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q", "dismiss", "close"),
        ("j", "down", "next"),
        ("k", "up", "previous"),
    ]
    DEFAULT_CSS = """
    InboxScreen { align: center middle; }
    InboxScreen OptionList { width: 90; max-width: 100%; height: 80%; background: $surface;
                             border: round $primary; }
    """

    def __init__(self, state: State, mentions: Sequence[Message]) -> None:
        super().__init__()
        self._state, self._mentions = state, mentions

    def compose(self) -> ComposeResult:
        shown = OptionList(*_inbox(self._state, self._mentions))
        shown.border_title = "Inbox"
        shown.border_subtitle = "Enter opens, Esc closes"
        yield shown

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_id)

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()


def _inbox(state: State, mentions: Sequence[Message]) -> Iterator[Option]:
    """Options whose ids are those of approvals, then of threads, then of messages."""
    unread = [thread for thread in state.threads.values() if thread.unread]
    unread.sort(key=lambda t: (not t.mentioned, -t.last_seq))
    if state.charge.mine:
        yield Option(Text("Approvals", style=_QUIET), disabled=True)
    for approval in state.charge.mine:
        yield Option(asked_line(approval), id=approval.id)
    yield Option(Text("Unread", style=_QUIET), disabled=True)
    if not unread:
        yield Option(Text("nothing; all is read", style=_QUIET), disabled=True)
    for thread in unread:
        line = Text(no_wrap=True, overflow="ellipsis").append(state.shown(thread.id), style="bold")
        line.append(f"  {thread.unread} new", style="bold #af8700")
        if thread.last is not None:
            line.append(f"  {_said(thread.last)}", style=_QUIET)
        yield Option(line, id=thread.id)
    if mentions:
        yield Option(Text("Mentions", style=_QUIET), disabled=True)
    for message in mentions:
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{message.sent_at.astimezone():%d %b %H:%M}  ", style=_QUIET)
        line.append(state.shown(message.thread_id), style="bold").append(f"  {_said(message)}")
        yield Option(line, id=message.id)


def _said(message: Message) -> str:
    return f"{one_line(message.sender_id)}: {clip(one_line(message.text), 120)}"
