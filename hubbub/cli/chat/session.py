"""The state of a chat: threads, what is unread, who does what. Pure: time is passed in.

Every method that takes something in returns the lines to show for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from hubbub.cli.chat.activity import Activities
from hubbub.cli.chat.lines import Day, Elsewhere, Line, Note, Opened, Said
from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.naming import did_you_mean, find_thread, label
from hubbub.errors import UserError
from hubbub.ids import interaction_id, parse_message_id
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Channel, Message, Participant
from hubbub.protocol.operations import SendResult, ThreadPage

__all__ = ["HISTORY", "Session", "Thread"]

HISTORY = 20
"""Messages shown when a thread is opened."""
KEPT = 500
"""Messages of a thread that are remembered."""
PREVIEW = 200
"""Columns of a last message in the list of threads; a narrow terminal shows less."""


@dataclass
class Thread:
    """A thread as this person knows it."""

    id: str
    messages: dict[int, Message] = field(default_factory=dict)
    """By `tseq`, ascending."""
    last_seq: int = 0
    unread: int = 0
    mentioned: bool = False
    """Whether something unread mentions the reader."""
    shown_from: int = 0
    """`tseq` of the oldest message shown since the thread was opened; 0 if none was."""
    more: bool = True
    """Whether the hub may have older messages than these."""

    def add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.messages[message.tseq] = message
            self.last_seq = max(self.last_seq, message.seq)
        self.messages = dict(sorted(self.messages.items()))

    def append(self, message: Message) -> None:
        """A new message; the oldest one is forgotten when there are too many."""
        self.add([message])
        if len(self.messages) > KEPT:
            del self.messages[self.oldest]
            self.more = True

    @property
    def last(self) -> Message | None:
        return next(reversed(self.messages.values()), None)

    @property
    def oldest(self) -> int:
        return next(iter(self.messages), 0)


class Session:
    """One person's chat."""

    def __init__(self, me: str, zone: tzinfo | None = None):
        """`zone` is where days begin and end; None means the machine's."""
        self.me = me
        self.current = thread_ids.BROADCAST
        self.threads: dict[str, Thread] = {}
        self.participants: dict[str, Participant] = {}
        self.channels: dict[str, Channel] = {}
        self.activities = Activities()
        self.listing: list[str] = []
        """Ids of the last list of threads, for `/open 2`."""
        self._zone = zone
        self._head = 0  # events up to here were missed while away
        self._missed: dict[str, int] = {}
        self._told_away: dict[str, tuple[str, ...]] = {}
        self._opening = False
        self._day: object = None

    # What arrives -----------------------------------------------------------------------------

    def begin(self, ready: Ready) -> list[Line]:
        """A connection stands. The first one, and one that did not resume, start afresh."""
        self.participants = {person.id: person for person in ready.participants}
        self.channels = {channel.name: channel for channel in ready.channels}
        self._head = ready.head
        first = not self.threads
        if ready.resumed and not first:
            return [Note("connected again", "good")]
        self.threads = {thread_ids.BROADCAST: Thread(thread_ids.BROADCAST)}
        self._missed.clear()
        for summary in ready.threads:
            self.thread(summary.id).add(summary.messages)
        for channel in self._joined():
            self.thread(thread_ids.channel(channel))
        if not first:
            note = Note("connected again; the network has started anew", "good")
            return [note, *self.open(self.current)]
        self.switch(thread_ids.BROADCAST)
        return []

    def _joined(self) -> list[str]:
        return sorted(name for name, channel in self.channels.items() if channel.joined)

    def take(self, event: Event) -> list[Line]:
        """A message arrived."""
        message = event.message
        thread = self.thread(message.thread_id)
        if message.tseq in thread.messages:
            return []  # one's own, known from the answer to the call
        thread.append(message)
        self.activities.over(message.sender_id, message.thread_id)
        if thread.id == self.current:
            # Until the thread has been opened its history is on the way; older than what is shown
            # is what was missed while away, which `older` shows.
            if self._opening or message.tseq < thread.shown_from:
                return []
            return self._said([message])
        if message.sender_id == self.me:
            return []  # said in another window
        mentions_me = self._mentions_me(message)
        thread.unread += 1
        thread.mentioned |= mentions_me
        if event.seq <= self._head:
            self._missed[thread.id] = self._missed.get(thread.id, 0) + 1
            return []
        return [*self.missed(), Elsewhere(message, self.shown(thread.id), mentions_me)]

    def missed(self) -> list[Line]:
        """One line about what arrived while this person was away; nothing the second time."""
        if not self._missed:
            return []
        parts = [self._count(self.threads[name], count) for name, count in self._missed.items()]
        self._missed.clear()
        return [Note(f"while you were away: {', '.join(parts)}")]

    def signal(self, signal: Signal, now: float) -> None:
        """Presence and activity; `now` is monotonic seconds."""
        if signal.type == "presence" and isinstance(signal.data, dict):
            self._presence(signal.data.get("online"), signal.data.get("offline"))
        elif signal.sender is not None and signal.sender != self.me:
            self.activities.take(signal, now)

    def _presence(self, online: object, offline: object) -> None:
        for described in online if isinstance(online, list) else ():
            person = Participant.model_validate(described)
            self.participants[person.id] = person
        for name in offline if isinstance(offline, list) else ():
            if (known := self.participants.get(name)) is not None:
                self.participants[name] = known.model_copy(update={"present": False})
                self.activities.left(name)

    def sent(self, text: str, result: SendResult, now: datetime) -> list[Line]:
        """One's own message is in the log."""
        thread = self.thread(result.thread_id)
        message = self._own(text, result, now)
        known = message.tseq in thread.messages
        thread.append(message)
        lines: list[Line] = []
        if known:
            pass  # its event came first, after a reconnection
        elif thread.id == self.current:
            lines += self._said([message])
        else:
            lines.append(Elsewhere(message, self.shown(thread.id), mine=True))
        if result.absent and self._told_away.get(thread.id) != result.absent:
            are = "are" if len(result.absent) > 1 else "is"
            lines.append(Note(f"{', '.join(result.absent)} {are} away; the message waits"))
        self._told_away[thread.id] = result.absent
        if result.unresolved:
            names = ", ".join(f"@{one_line(name)}" for name in result.unresolved)
            lines.append(Note(f"nobody here is called {names}"))
        return lines

    def _own(self, text: str, result: SendResult, now: datetime) -> Message:
        """What was said, as the hub has it: it does not send it back."""
        return Message(
            id=result.id,
            seq=result.seq,
            thread_id=result.thread_id,
            tseq=result.tseq,
            sender_id=self.me,
            sender_kind="human",
            type=thread_ids.kind_of(result.thread_id),
            content=text,
            interaction_id=interaction_id(result.seq),
            hop=0,
            sent_at=now,
        )

    def learn(self, page: ThreadPage) -> None:
        """Messages of a thread that the hub was asked for."""
        thread = self.thread(page.thread_id)
        if not page.messages or page.messages[0].tseq <= (thread.oldest or 1):
            thread.more = page.more
        thread.add(page.messages)

    # Threads ----------------------------------------------------------------------------------

    def thread(self, thread_id: str) -> Thread:
        """The thread of this canonical id, known from now on."""
        return self.threads.setdefault(thread_id, Thread(thread_id))

    def shown(self, thread_id: str) -> str:
        """A thread as this person is shown it: `#general`, `@bob`, `#general › m13`."""
        return label(thread_id, self.me)

    def switch(self, thread_id: str) -> None:
        """Make a thread the current one; nothing of it is shown until `open`."""
        self.current, self._opening = thread_id, True

    def open(self, thread_id: str) -> list[Line]:
        """Show a thread from here on: its header and last messages."""
        thread = self.thread(thread_id)
        self.current, self._opening = thread_id, False
        thread.unread, thread.mentioned = 0, False
        self._missed.pop(thread_id, None)
        self._day = None
        messages = list(thread.messages.values())[-HISTORY:]
        thread.shown_from = messages[0].tseq if messages else 0
        return [Opened(self.shown(thread_id)), *self._said(messages)]

    def older(self) -> list[Line]:
        """The page of messages before those that are shown."""
        thread = self.thread(self.current)
        before = [m for m in thread.messages.values() if m.tseq < (thread.shown_from or 1 << 62)]
        if not before:
            return [Note("that was the beginning of this thread")]
        page = before[-HISTORY:]
        thread.shown_from = page[0].tseq
        self._day = None
        lines = self._said(page)
        self._day = None
        return [*lines, Note("— up to here; newer messages stand above —")]

    def lists(self) -> list[Line]:
        """All threads, the most recently active first, with numbers for `/open`."""
        found = sorted(self.threads.values(), key=lambda t: (-t.last_seq, t.id))
        self.listing = [thread.id for thread in found]
        width = max(len(self.shown(thread.id)) for thread in found)
        lines: list[Line] = [
            Note(self._listed(n, thread, width), cut=True) for n, thread in enumerate(found, 1)
        ]
        if any(thread.unread and thread.mentioned for thread in found):
            lines.append(Note("! somebody mentioned you there; /open <n> opens a thread"))
        return lines

    def _listed(self, number: int, thread: Thread, width: int) -> str:
        last = thread.last
        here = "*" if thread.id == self.current else " "
        unread = f"{thread.unread} new{'!' if thread.mentioned else ''}" if thread.unread else ""
        said = f"{last.sender_id}: {clip(one_line(last.text), PREVIEW)}" if last else "nothing yet"
        return f"{here}{number:>3}  {self.shown(thread.id):<{width}}  {unread:>7}  {said}"

    def people(self) -> list[Line]:
        """Everybody in the network."""
        everybody = sorted(self.participants.values(), key=lambda p: (not p.present, p.kind, p.id))
        width = max((len(person.id) for person in everybody), default=0)
        return [Note(_introduced(person, width, self.me), cut=True) for person in everybody]

    def find(self, target: str) -> str:
        """The canonical id that a person means: a number of the last list, a message's id for the
        replies under it, or a thread as `find_thread` has them. Raises `UserError`.
        """
        if target.isdecimal():
            return self._numbered(int(target))
        if (seq := parse_message_id(target)) is not None:
            return self._replies(target, seq)
        found = find_thread(target, self.me, self.participants, self.channels)
        top = thread_ids.root(found)
        if top.startswith("channel."):
            self.channel(top.partition(".")[2])
        return found

    def _replies(self, message_id: str, seq: int) -> str:
        for thread in self.threads.values():
            if any(message.seq == seq for message in thread.messages.values()):
                return thread_ids.reply_thread(thread.id, seq)
        raise UserError(f"there is no message {message_id} in what you have read")

    def _numbered(self, number: int) -> str:
        if not self.listing:
            self.lists()
        if not 1 <= number <= len(self.listing):
            raise UserError(f"/threads lists 1 to {len(self.listing)}, not {number}")
        return self.listing[number - 1]

    def direct(self, names: Sequence[str]) -> str:
        """The direct thread with these participants. Raises `UserError`."""
        others = [name for name in names if name != self.me]
        for name in others:
            if name not in self.participants:
                hint = did_you_mean(name, self.participants)
                raise UserError(f"nobody here is called {one_line(name)!r}{hint}")
        if not others:
            raise UserError("a direct conversation needs somebody else")
        if len(others) >= thread_ids.MAX_GROUP:
            raise UserError(f"a group has at most {thread_ids.MAX_GROUP} members")
        return thread_ids.direct({*others, self.me})

    def channel(self, name: str) -> str:
        """The thread of a channel that this person is in. Raises `UserError`."""
        channel = self.channels.get(name)
        if channel is None:
            raise UserError(
                f"there is no channel {one_line(name)!r}{did_you_mean(name, self.channels)}"
            )
        if not channel.joined:
            raise UserError(f"you are not in {name}; /join {name} first")
        return thread_ids.channel(name)

    def joined(self, name: str) -> None:
        """This person is in a channel now."""
        known = self.channels.get(name) or Channel(name=name)
        self.channels[name] = known.model_copy(update={"joined": True})

    def left(self, name: str) -> list[Line]:
        """This person is not in a channel any more."""
        if (known := self.channels.get(name)) is not None:
            self.channels[name] = known.model_copy(update={"joined": False})
        gone = thread_ids.channel(name)
        self.threads = {id: t for id, t in self.threads.items() if thread_ids.root(id) != gone}
        lines: list[Line] = [Note(f"you left {name}", "good")]
        if thread_ids.root(self.current) == gone:
            lines += self.open(thread_ids.BROADCAST)
        return lines

    # What stands around the messages ----------------------------------------------------------

    @property
    def unread(self) -> list[str]:
        """Threads with something unread, for the status line: `@bob 2`, `#x 1!`."""
        found = [thread for thread in self.threads.values() if thread.unread]
        found.sort(key=lambda t: (not t.mentioned, -t.last_seq))
        return [self._count(thread, thread.unread) for thread in found]

    def _count(self, thread: Thread, count: int) -> str:
        return f"{self.shown(thread.id)} {count}{'!' if thread.mentioned else ''}"

    def hint(self) -> Line | None:
        """For somebody who has not said anything yet: how to ask an agent."""
        messages = (m for thread in self.threads.values() for m in thread.messages.values())
        if any(message.sender_id == self.me for message in messages):
            return None
        agents = sorted(p.id for p in self.participants.values() if p.kind == "agent" and p.present)
        if not agents:
            return Note("/help lists the commands; no agent is here at the moment")
        name = "concierge" if "concierge" in agents else agents[0]
        return Note(f"ask an agent: `@{name} …` here, or `/dm {name}`; /help lists the commands")

    def _mentions_me(self, message: Message) -> bool:
        return self.me in message.mentions

    def _said(self, messages: Iterable[Message]) -> list[Line]:
        lines: list[Line] = []
        for message in messages:
            day = message.sent_at.astimezone(self._zone).date()
            if self._day is not None and day != self._day:
                lines.append(Day(day))
            self._day = day
            mine = message.sender_id == self.me
            lines.append(Said(message, mine, self._mentions_me(message) and not mine, self.me))
            shown = self.thread(message.thread_id)
            shown.shown_from = min(shown.shown_from or message.tseq, message.tseq)
        return lines


def _introduced(person: Participant, width: int, me: str) -> str:
    dot = "●" if person.present else "○"
    about = one_line(person.card.description)
    if person.card.skills:
        about = f"{about} [{', '.join(map(one_line, person.card.skills))}]".strip()
    you = " (you)" if person.id == me else ""
    return f"{dot} {person.id:<{width}}  {person.kind:<7}  {about}{you}".rstrip()
