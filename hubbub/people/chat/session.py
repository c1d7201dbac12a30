"""The state of a chat: threads, unread counts, activities. Pure: time is passed in.

Methods that process an event return the lines to show for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from hubbub.errors import UserError
from hubbub.people.commands import CHAT
from hubbub.people.figures import delivery_notes, unresolved_notes
from hubbub.people.messages import amendment_text
from hubbub.people.notices import notice
from hubbub.people.shown import (
    DayHeading,
    Line,
    MessageLine,
    NoteLine,
    OtherThreadLine,
    ThreadHeading,
)
from hubbub.people.state import ClientState, ClientThread
from hubbub.people.text import clip, one_line
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import SendResult

__all__ = ["HISTORY", "ChatSession"]

HISTORY = 20
"""Messages shown when a thread opens."""
PREVIEW = 200
"""Columns of the last message in the list of threads; a narrow terminal cuts it further."""


class ChatSession(ClientState):
    """One person's chat, line by line."""

    def __init__(self, me: str):
        super().__init__(me)
        self.listing: list[str] = []
        """Ids of the last list of threads, for `/open 2`."""
        self._head = 0  # events up to here arrived while the person was away
        self._missed: dict[str, int] = {}
        self._noted_away: dict[str, tuple[str, ...]] = {}
        self._explained_threads: set[str] = set()
        self._opening = False
        self._day: object = None

    # What arrives -----------------------------------------------------------------------------

    def begin(self, ready: Ready) -> list[Line]:
        """Take a new connection. The first one, and one that did not resume, start fresh."""
        self._head = ready.head
        first = not self.threads
        if not self.know(ready):
            return [NoteLine("reconnected", "good")]
        self._missed.clear()
        if not first:
            note = NoteLine("reconnected; the network has restarted", "good")
            return [note, *self.open(self.current)]
        self.switch(thread_ids.BROADCAST)
        return []

    def take(self, event: Event) -> list[Line]:
        """Process a message."""
        message = event.message
        if not self.note(message):
            return []
        thread = self.thread(message.thread_id)
        if message.amends is not None:
            return self._amended(message)
        if thread.id == self.current:
            # While the thread opens, its history is on the way. Messages older than those shown
            # were missed while away; `older` shows them.
            if self._opening or message.tseq < thread.shown_from:
                return []
            return self._messages([message])
        if message.tseq <= thread.read:
            return []  # sent or read in another window
        if event.seq <= self._head:
            self._missed[thread.id] = self._missed.get(thread.id, 0) + 1
            return []
        line = OtherThreadLine(message, self.shown(thread.id), self._mentions_me(message))
        return [*self.missed(), line]

    def _amended(self, amendment: Message) -> list[Line]:
        """One line for an edit or deletion of a visible message; else none."""
        thread = self.thread(amendment.thread_id)
        if thread.id != self.current or self._opening:
            return []
        if thread.read >= amendment.tseq - 1:
            thread.read = max(thread.read, amendment.tseq)  # it needs no reading of its own
        assert amendment.amends is not None, "is an amendment"
        if not self._shows(amendment.amends.message_id):
            return []
        return [NoteLine(amendment_text(amendment))]

    def _shows(self, message_id: str) -> bool:
        """Whether a message of the open thread is visible."""
        thread = self.thread(self.current)
        shown = thread.shown_from
        return not self._opening and any(
            message.id == message_id and shown and message.tseq >= shown
            for message in thread.messages.values()
        )

    def missed(self) -> list[Line]:
        """One line about messages that arrived while the person was away; empty the next time."""
        if not self._missed:
            return []
        parts = [self._count(self.threads[name], count) for name, count in self._missed.items()]
        self._missed.clear()
        return [NoteLine(f"while you were away: {', '.join(parts)}")]

    def signalled(self, signal: Signal) -> list[Line]:
        """Lines about approvals, stops and takeovers, and messages to an agent that this person
        speaks for."""
        lines: list[Line] = [*map(NoteLine, self.oversight.hear(signal, self.shown, CHAT))]
        lines += self._mod_notices(signal)
        if (observed := self.observe(signal)) is None:
            return lines
        message = observed.message
        if message.amends is not None:
            return [*lines, *self._amended(message)]
        if message.thread_id == self.current and not self._opening:
            return [*lines, *self._messages([message])]
        lines.append(
            OtherThreadLine(message, f"to {observed.agent} in {self.shown(message.thread_id)}")
        )
        if message.thread_id not in self._explained_threads:
            self._explained_threads.add(message.thread_id)
            ways = f"/open {message.thread_id}, then /as {observed.agent} <text>"
            lines.append(NoteLine(f"to answer there: {ways}"))
        return lines

    def _mod_notices(self, signal: Signal) -> list[Line]:
        """At most one quiet line for a mod's signal."""
        mod_notice = notice(signal, self.me, self.known_ids)
        if mod_notice is None or (mod_notice.thread_id != self.current and not mod_notice.anywhere):
            return []
        if mod_notice.message_id and not self._shows(mod_notice.message_id):
            return []
        is_here = mod_notice.thread_id == self.current
        where = "" if is_here else f"[{self.shown(mod_notice.thread_id)}] "
        return [NoteLine(f"{where}{mod_notice.text}")]

    def sent(self, result: SendResult) -> list[Line]:
        """Take the result of sending a message."""
        message, thread = result.message, self.thread(result.thread_id)
        lines: list[Line] = []
        if not self.note(message):
            pass  # its event came first, after a reconnection
        elif thread.id == self.current:
            lines += self._messages([message])
        else:
            lines.append(OtherThreadLine(message, self.shown(thread.id), mine=True))
        if result.absent and self._noted_away.get(thread.id) != result.absent:
            are = "are" if len(result.absent) > 1 else "is"
            lines.append(NoteLine(f"{', '.join(result.absent)} {are} away; the message waits"))
        self._noted_away[thread.id] = result.absent
        lines += map(NoteLine, unresolved_notes(result, self.participants))
        lines += map(NoteLine, delivery_notes(result, CHAT))
        return lines

    # Threads ----------------------------------------------------------------------------------

    def switch(self, thread_id: str) -> None:
        """Make a thread the current one; `open` shows it."""
        self.current, self._opening = thread_id, True

    def open(self, thread_id: str) -> list[Line]:
        """Open a thread: its heading and last messages."""
        thread = self.thread(thread_id)
        self.current, self._opening = thread_id, False
        thread.read = max(thread.read, thread.head)
        self._missed.pop(thread_id, None)
        self._day = None
        messages = list(thread.messages.values())[-HISTORY:]
        thread.shown_from = messages[0].tseq if messages else 0
        return [ThreadHeading(self.shown(thread_id)), *self._messages(messages)]

    def older(self) -> list[Line]:
        """The page of messages before those shown."""
        thread = self.thread(self.current)
        before = [m for m in thread.messages.values() if m.tseq < (thread.shown_from or 1 << 62)]
        if not before:
            return [NoteLine("this is the beginning of the thread")]
        page = before[-HISTORY:]
        thread.shown_from = page[0].tseq
        self._day = None
        lines = self._messages(page)
        self._day = None
        return [*lines, NoteLine("— end of older messages; newer ones are above —")]

    def lists(self) -> list[Line]:
        """All threads, most recently active first, with numbers for `/open`."""
        threads = sorted(self.threads.values(), key=lambda t: (-t.last_seq, t.id))
        self.listing = [thread.id for thread in threads]
        width = max(len(self.shown(thread.id)) for thread in threads)
        lines: list[Line] = [
            NoteLine(self._listed(n, thread, width), cut=True)
            for n, thread in enumerate(threads, 1)
        ]
        if any(thread.unread and thread.mentioned for thread in threads):
            lines.append(NoteLine("! marks threads that mention you; /open <n> opens one"))
        return lines

    def _listed(self, number: int, thread: ClientThread, width: int) -> str:
        last = thread.last
        here = "*" if thread.id == self.current else " "
        unread = f"{thread.unread} new{'!' if thread.mentioned else ''}" if thread.unread else ""
        text = f"{last.sender_id}: {clip(one_line(last.text), PREVIEW)}" if last else "empty"
        return f"{here}{number:>3}  {self.shown(thread.id):<{width}}  {unread:>7}  {text}"

    def find(self, target: str) -> str:
        """Like `ClientState.find`, and also takes a number from the last list."""
        return self._numbered(int(target)) if target.isdecimal() else super().find(target)

    def _numbered(self, number: int) -> str:
        if not self.listing:
            self.lists()
        if not 1 <= number <= len(self.listing):
            raise UserError(f"/threads lists 1 to {len(self.listing)}, not {number}")
        return self.listing[number - 1]

    def left(self, name: str) -> list[Line]:
        """This person left a channel."""
        self.parted(name)
        lines: list[Line] = [NoteLine(f"you left {name}", "good")]
        if thread_ids.root(self.current) == thread_ids.channel(name):
            lines += self.open(thread_ids.BROADCAST)
        return lines

    # Status and hints -------------------------------------------------------------------------

    @property
    def unread(self) -> list[str]:
        """Threads with unread messages, for the status line: `@bob 2`, `#x 1!`."""
        threads = [thread for thread in self.threads.values() if thread.unread]
        threads.sort(key=lambda t: (not t.mentioned, -t.last_seq))
        return [self._count(thread, thread.unread) for thread in threads]

    def _count(self, thread: ClientThread, count: int) -> str:
        return f"{self.shown(thread.id)} {count}{'!' if thread.mentioned else ''}"

    def hint(self) -> Line | None:
        """How to ask an agent, for a person who has not sent a message yet."""
        messages = (m for thread in self.threads.values() for m in thread.messages.values())
        if any(message.sender_id == self.me for message in messages):
            return None
        agents = sorted(p.id for p in self.participants.values() if p.kind == "agent" and p.present)
        if not agents:
            return NoteLine("no agent is online; /help lists the commands")
        name = "concierge" if "concierge" in agents else agents[0]
        return NoteLine(
            f"ask an agent: `@{name} …` here, or `/dm {name}`; /help lists the commands"
        )

    def _mentions_me(self, message: Message) -> bool:
        return self.me in message.mentions

    def _messages(self, messages: Iterable[Message]) -> list[Line]:
        lines: list[Line] = []
        for message in messages:
            day = message.sent_at.astimezone().date()
            if self._day is not None and day != self._day:
                lines.append(DayHeading(day))
            self._day = day
            mine = message.sender_id == self.me
            mentions_me = self._mentions_me(message) and not mine
            below = self.known_ids.reactions(message.id)
            lines.append(MessageLine(message, mine, mentions_me, self.me, below))
            shown = self.thread(message.thread_id)
            shown.shown_from = min(shown.shown_from or message.tseq, message.tseq)
            shown.read = max(shown.read, message.tseq)
        return lines
