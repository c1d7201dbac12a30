"""The one screen of the full-screen client: panels around the conversation, and its keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import OptionList, Static

from hubbub.cli.chat.lines import Note
from hubbub.cli.chat.text import clip, one_line, visible
from hubbub.cli.full import keys
from hubbub.cli.full.about import message_card, participant_card, thread_card
from hubbub.cli.full.acting import Acting
from hubbub.cli.full.charge import AnswerScreen, answer_text
from hubbub.cli.full.composer import Composer, Writing
from hubbub.cli.full.conversation_view import ConversationView
from hubbub.cli.full.deeds import Deeds, is_message_id
from hubbub.cli.full.dialogs import HelpScreen, InboxScreen
from hubbub.cli.full.draw import Painter
from hubbub.cli.full.engine import Engine
from hubbub.cli.full.groups import groups, neighbour
from hubbub.cli.full.lists import PeopleList, ThreadList
from hubbub.cli.full.panels import NARROW, DetailsPanel, Panels
from hubbub.cli.full.state import Draft
from hubbub.cli.full.status import header, status
from hubbub.cli.full.timeline import timeline
from hubbub.cli.full.turn import turn_card, turn_of
from hubbub.client import Client
from hubbub.clock import Clock
from hubbub.errors import OperationError, UserError
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message, Quote

__all__ = ["ChatScreen"]

TICK_S = 1.0
"""Seconds between looks at the clock: it is told how long somebody has been at something."""
QUOTED = 500
"""Columns of a message that are quoted."""


class ChatScreen(Screen[None]):
    """Threads and people, the conversation and what is written, details."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key.press, key.action, key.help, show=False, priority=key.press != "escape")
            for key in keys.of("everywhere")
        ),
        *(Binding(key.press, key.action, key.help, show=False) for key in keys.of("outside")),
    ]

    def __init__(
        self,
        client: Client,
        zone: tzinfo | None = None,
        opening: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__()
        self.engine = Engine(client, self, clock)
        self.state = self.engine.state
        self.panels = Panels()
        self.deeds = Deeds(self, self.engine)
        self.acting = Acting(self)
        self._zone, self._opening = zone, opening
        self._prefix: str | None = None
        self._details: object = None
        self._due = False
        self._lines: dict[str, Text] = {}
        self._painter = Painter(self.state.me, zone)

    def compose(self) -> ComposeResult:
        with Horizontal(id="all"):
            with Vertical(id="left"):
                yield ThreadList(id="threads")
                yield PeopleList(id="people")
            with Vertical(id="middle"):
                yield Static(id="header")
                yield ConversationView()
                yield Composer(self.state)
            yield DetailsPanel()
        yield Static(id="status")

    def on_mount(self) -> None:
        self._repaint()
        self.app.theme_changed_signal.subscribe(self, lambda theme: self._repaint())
        self.run_worker(self.engine.run(), name="engine")
        self.run_worker(self._begin(), name="begin")
        self.set_interval(TICK_S, self._update)
        self.query_one(Writing).focus()

    async def _begin(self) -> None:
        await self.engine.began.wait()
        if self._opening is not None:
            self.obey(f"/open {self._opening}")

    def _repaint(self) -> None:
        self._painter = Painter(self.state.me, self._zone, dark=self.app.current_theme.dark)
        self.refresh_soon()

    # Showing ----------------------------------------------------------------------------------

    def refresh_soon(self) -> None:
        """The state has changed: show it once this pass of the loop is over."""
        if not self._due:
            self._due = True
            self.call_after_refresh(self._update)

    def tell(self, text: str, tone: str = "information") -> None:
        severity = {"warning": "warning", "error": "error"}.get(tone, "information")
        self.notify(clip(one_line(text), 300), severity=severity, markup=False)  # type: ignore[arg-type]

    def _update(self) -> None:
        self._due = False
        if not self.is_mounted:
            return
        state, now = self.state, self.engine.now()
        self.query_one(ThreadList).show(groups(state))
        self.query_one(PeopleList).show(state, now)
        self._line("#header", header(state))
        self._line("#status", status(state, now))
        blocks = timeline(state, self._zone)
        view = self.query_one(ConversationView)
        view.show(state.current, blocks, self._painter, opening=state.opening)
        self._update_details()

    def _line(self, name: str, text: Text) -> None:
        """Change a line if it is to be another one: the whole screen is laid out anew for it."""
        if self._lines.get(name) != text:
            self._lines[name] = text
            self.query_one(name, Static).update(text)

    def _update_details(self) -> None:
        """What is open on the right follows the state; a turn stays as it was read."""
        panel, now = self.query_one(DetailsPanel), self.engine.now()
        match self._details:
            case ("person", str(name)):
                panel.show(participant_card(self.state, name, now))
            case ("thread", str(thread_id)):
                panel.show(thread_card(self.state, thread_id))
            case Text() as text:
                panel.show(text)

    def _fold(self) -> None:
        self.set_class(self.panels.left, "-left")
        self.set_class(self.panels.right, "-right")
        self.set_class(self.panels.width < NARROW, "-narrow")

    def on_resize(self, event: events.Resize) -> None:
        self.panels.resized(event.size.width)
        self._fold()
        self.refresh_soon()

    # Threads ----------------------------------------------------------------------------------

    def open(self, thread_id: str) -> None:
        """Show a thread; what was begun in the other one waits there as a draft."""
        composer = self.query_one(Composer)
        self.state.draft(self.state.current, composer.draft)
        self.engine.open(thread_id)
        composer.draft = self.state.drafts.get(thread_id, Draft())
        self.panels.chosen()
        self._fold()
        if isinstance(self._details, tuple) and self._details[0] == "thread":
            self._details = ("thread", thread_id)
        self.query_one(Writing).focus()

    async def go_to(self, message_id: str) -> None:
        """Show a message where it stands. Raises `OperationError`."""
        message = await self.engine.message(message_id)
        if message.thread_id != self.state.current:
            self.open(message.thread_id)
        self._update()
        view = self.query_one(ConversationView)
        view.focus()
        self.call_after_refresh(view.choose, message.seq)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_id is None:
            return
        if isinstance(event.option_list, ThreadList):
            self.open(event.option_id)
        elif event.option_id != self.state.me:
            self._details = ("person", event.option_id)
            self.obey(f"/dm {event.option_id}")

    def on_conversation_view_top(self) -> None:
        self.engine.older()

    def on_conversation_view_end(self) -> None:
        if self.app.app_focus and self.is_current:
            self.engine.looked_at()

    def on_conversation_view_chosen(self) -> None:
        if self.panels.right:
            self.action_inspect()

    # Writing ----------------------------------------------------------------------------------

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        self.state.draft(self.state.current, Draft())
        try:
            if event.draft.quote is not None and not event.draft.text.startswith("/"):
                self.engine.say(event.draft.text.strip(), event.draft.quote)
            else:
                self.deeds.obey(event.draft.text)
            self.query_one(ConversationView).to_end()
        except UserError as exc:
            self.query_one(Composer).draft = event.draft
            self.tell(str(exc), "error")

    def on_composer_leave(self) -> None:
        self.action_leave()

    def obey(self, line: str) -> None:
        """Do what a line says, or what a key does if it is `:action`."""
        if line.startswith(":"):
            self.call_later(self.run_action, line[1:])
            return
        try:
            self.deeds.obey(line)
        except UserError as exc:
            self.tell(str(exc), "error")

    # Keys -------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """The second key of a sequence such as `g i`."""
        first, self._prefix = self._prefix, None
        if first is not None and (action := keys.sequence(first, event.key)) is not None:
            event.stop()
            self.call_later(self.run_action, action)
        elif keys.begins(event.key):
            self._prefix = event.key

    def action_palette(self) -> None:
        self.app.action_command_palette()

    def action_neighbour(self, step: int) -> None:
        if (found := neighbour(groups(self.state), self.state.current, step)) is not None:
            self.open(found)

    def action_unread(self, step: int) -> None:
        found = neighbour(groups(self.state), self.state.current, step, unread=True)
        if found is not None:
            self.open(found)
        else:
            self.tell("all is read")

    def action_scroll(self, step: int) -> None:
        self.query_one(ConversationView).page(step)

    def action_back(self) -> None:
        """Out of the composer; then panels, then the selection, then the reply thread."""
        view, current = self.query_one(ConversationView), self.state.current
        if isinstance(self.focused, Writing):
            if not self.query_one(Composer).leave_off():
                view.focus()
        elif self.panels.close():
            self._fold()
        elif view.selected is not None:
            view.choose(None)
        elif (above := thread_ids.parent(current)) is not None:
            self.open(above)

    def action_compose(self) -> None:
        self.query_one(Writing).focus()

    def action_select(self, step: int) -> None:
        focused = self.focused
        if isinstance(focused, OptionList):
            (focused.action_cursor_down if step > 0 else focused.action_cursor_up)()
            return
        view = self.query_one(ConversationView)
        view.focus()
        view.select(step)
        if self.panels.right:
            self.action_inspect()

    def action_reply(self) -> None:
        if (message := self._selected()) is not None:
            self.open(thread_ids.reply_thread(message.thread_id, message.seq))

    def action_quote(self) -> None:
        if (message := self._selected()) is not None:
            quoted = Quote(message_id=message.id, text=clip(message.text, QUOTED))
            self.query_one(Composer).quote(quoted)
            self.query_one(Writing).focus()

    def action_copy_link(self) -> None:
        if (message := self._selected()) is not None:
            self.app.copy_to_clipboard(message.id)
            self.tell(f"{message.id} is in the clipboard")

    def action_mark_unread(self) -> None:
        if (message := self._selected()) is not None:
            self.engine.mark_unread(message)

    def _selected(self) -> Message | None:
        message = self.query_one(ConversationView).message()
        if message is None:
            self.tell("select a message first: k")
        return message

    def action_jump_new(self) -> None:
        self.query_one(ConversationView).jump_new()

    def action_to_end(self) -> None:
        self.query_one(ConversationView).to_end()

    def action_inbox(self) -> None:
        self.engine.do(self._inbox())

    async def _inbox(self) -> None:
        shown = InboxScreen(self.state, await self.engine.mentions())
        self.app.push_screen(shown, self._from_inbox)

    def _from_inbox(self, chosen: str | None) -> None:
        if chosen in self.state.charge.approvals:
            self.acting.look_at(chosen)
        elif chosen is not None:
            self.obey(f"/go {chosen}" if is_message_id(chosen) else f"/open {chosen}")

    def action_approvals(self) -> None:
        self.acting.approvals()

    def action_stop(self) -> None:
        self.acting.stop()

    def action_take_over(self) -> None:
        self.acting.take_over()

    def show_answer(self, lines: Sequence[str]) -> None:
        """Show what came of a command."""
        self.app.push_screen(AnswerScreen(Text("\n".join(map(visible, lines)))))

    def show_notes(self, notes: Sequence[Note]) -> None:
        """As `show_answer`, in colours."""
        self.app.push_screen(AnswerScreen(answer_text(notes)))

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen(self.state.offers))

    def action_toggle_left(self) -> None:
        self.panels.toggle_left()
        self._fold()
        if self.panels.left and self.panels.width < NARROW:
            self.query_one(ThreadList).focus()

    def action_toggle_right(self) -> None:
        self.panels.toggle_right()
        self._fold()
        if self.panels.right:
            self.action_inspect()

    def action_leave(self) -> None:
        self.app.exit(1 if self.state.connection.over else 0)

    def change_theme(self, name: str) -> None:
        """Use these colours; without a name, choose from a list."""
        if not name:
            self.app.action_change_theme()
        elif name in self.app.available_themes:
            self.app.theme = name
        else:
            raise UserError(f"there is no theme {name!r}; /theme lists them")

    # Details ----------------------------------------------------------------------------------

    def action_inspect(self) -> None:
        """Details of what is selected: a person, a message and its turn, or else the thread."""
        self.panels.right = True
        self._fold()
        focused = self.focused
        message = self.query_one(ConversationView).message()
        if isinstance(focused, PeopleList) and focused.highlighted_option is not None:
            self._details = ("person", focused.highlighted_option.id)
            self.engine.do(self.engine.spent(agent=focused.highlighted_option.id))
        elif message is not None:
            self._details = message_card(self.state, message, zone=self._zone)
            self.engine.do(self._look_into(message))
        else:
            self._details = ("thread", self.state.current)
            self.engine.do(self.engine.spent(thread=self.state.current))
        self.refresh_soon()

    async def _look_into(self, message: Message) -> None:
        """The card of a message with its readers, and the turn that sent it, as far as this person
        may see them."""
        card = message_card(self.state, message, await self.engine.receipts(message.id), self._zone)
        if (turn := turn_of(message)) is not None:
            try:
                found = turn_card(await self.engine.turn(turn), self._zone)
                card.append("\n\n").append(found)
            except OperationError as exc:
                card.append(f"\n\n{one_line(exc.message)}", style=Style(color="#878787"))
        if self.query_one(ConversationView).selected == message.seq:
            self._details = card
            self.refresh_soon()

    async def show_turn(self, turn_id: str) -> None:
        """Look into a turn. Raises `OperationError`."""
        self._details = turn_card(await self.engine.turn(turn_id), self._zone)
        self.panels.right = True
        self._fold()
        self.refresh_soon()
