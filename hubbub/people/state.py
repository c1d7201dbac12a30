"""A person's view of the network: threads, participants, channels, read marks. Pure.

The snapshot in `ready` with all later events applied equals a fresh `ready`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.ids import parse_message_id
from hubbub.people.names import find_thread, label, members
from hubbub.people.notices import KnownIds
from hubbub.people.oversight import Oversight, observed_message
from hubbub.people.text import clip, one_line
from hubbub.protocol import thread_ids
from hubbub.protocol.control import ObservedMessage
from hubbub.protocol.frames import Ready, Signal
from hubbub.protocol.messages import Channel, Message, Participant, ThreadSummary, amended
from hubbub.protocol.operations import ThreadPage
from hubbub.wording import did_you_mean

__all__ = ["KEPT", "LASTS_S", "TYPING_S", "ClientState", "ClientThread", "CurrentActivities"]

KEPT = 500
"""Messages of a thread that are cached."""
LASTS_S = 900.0
"""Seconds after which an unconfirmed activity expires. Long, because an agent reports only the
start and the end of a model call, and one that dies becomes absent."""
TYPING_S = 10.0
"""The same for typing, whose end is not reported."""
QUIET = frozenset({"", "idle", "done", "finished", "stopped", "off", "end", "ended"})
"""States that mean the end of an activity."""
PARKED = "waiting for approval"
MOST = 40
"""Columns of one activity."""


@dataclass
class ClientThread:
    """A person's view of a thread, with edits and deletions applied."""

    id: str
    messages: dict[int, Message] = field(default_factory=dict)
    """By ascending `tseq`, each in its current version."""
    amendments: dict[int, Message] = field(default_factory=dict)
    """Edits and deletions by their own `tseq`; they are not shown as messages."""
    head: int = 0
    """`tseq` of the last message."""
    read: int = 0
    """`tseq` up to which the reader has read."""
    last_seq: int = 0
    mentions: set[int] = field(default_factory=set)
    """`tseq` of messages that mention the reader."""
    shown_from: int = 0
    """`tseq` of the oldest message shown since the thread was opened; 0 if none was."""
    more: bool = True
    """Whether the hub may have older messages."""

    def add(self, messages: Iterable[Message], me: str = "") -> None:
        changed = set[str]()
        for message in messages:
            self.head = max(self.head, message.tseq)
            self.last_seq = max(self.last_seq, message.seq)
            if message.amends is not None:
                self.amendments[message.tseq] = message
                changed.add(message.amends.message_id)
                continue
            self.messages[message.tseq] = message
            changed.add(message.id)
            if me in message.mentions and message.sender_id != me:
                self.mentions.add(message.tseq)
        self.messages = dict(sorted(self.messages.items()))
        if self.amendments:
            self._amend(changed)

    def _amend(self, changed: Set[str]) -> None:
        """Apply the cached edits and deletions of these messages."""
        self.amendments = dict(sorted(self.amendments.items()))
        for tseq, message in self.messages.items():
            if message.id in changed:
                self.messages[tseq] = amended(message, self.amendments_of(message.id))

    def amendments_of(self, message_id: str) -> list[Message]:
        """The edits and deletions of a message, oldest first."""
        amendments = self.amendments.values()
        return [each for each in amendments if each.amends and each.amends.message_id == message_id]

    def has(self, tseq: int) -> bool:
        """Whether the message, edit or deletion at a position is cached."""
        return tseq in self.messages or tseq in self.amendments

    def append(self, message: Message, me: str = "") -> None:
        """Add a new message; drops the oldest ones beyond the limit."""
        self.add([message], me)
        if len(self.messages) > KEPT:  # the hub still has the older ones
            self.messages = dict(list(self.messages.items())[-KEPT:])
            later = ((n, each) for n, each in self.amendments.items() if n > self.first)
            self.amendments = dict(later)
            self.more = True

    @property
    def unread(self) -> int:
        """The number of unread messages, without edits and deletions."""
        silent = sum(1 for tseq in self.amendments if tseq > self.read)
        return max(0, self.head - self.read - silent)

    @property
    def count(self) -> int:
        """The number of messages, without the edits and deletions that are cached."""
        return self.head - len(self.amendments)

    @property
    def unread_mentions(self) -> int:
        """The number of unread messages that mention the reader."""
        return sum(1 for tseq in self.mentions if tseq > self.read)

    @property
    def mentioned(self) -> bool:
        """Whether an unread message mentions the reader."""
        return self.unread_mentions > 0

    @property
    def last(self) -> Message | None:
        return next(reversed(self.messages.values()), None)

    @property
    def oldest(self) -> int:
        """`tseq` of the first cached message, edit or deletion; 0 if there is none."""
        firsts = (self.first, next(iter(self.amendments), 0))
        return min(filter(None, firsts), default=0)

    @property
    def first(self) -> int:
        """`tseq` of the first cached message; 0 if there is none."""
        return next(iter(self.messages), 0)


@dataclass(frozen=True)
class CurrentActivity:
    """A participant's activity, and since when (monotonic seconds)."""

    text: str
    thread_id: str | None
    since: float
    until: float
    turn: str | None = None
    """The agent's turn, if it reports one."""


class CurrentActivities:
    """Activities from `activity` and `typing` signals, until they end, are replaced or expire.

    The `data` of an `activity` is its text, or an object with `state` (and `tool`).
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, str | None], CurrentActivity] = {}

    def take(self, signal: Signal, now: float) -> None:
        """Process a signal that arrived at `now` (monotonic seconds)."""
        if signal.sender is None or signal.type not in ("activity", "typing"):
            return
        typing = signal.type == "typing"
        key = (signal.sender, signal.thread_id)
        text = "typing" if typing else _doing(signal.data)
        if text in QUIET or signal.data is False:
            self._end(*key)
            return
        before = self._running.get(key)
        since = now - (signal.age_s or 0.0)
        if before is not None and before.text == text:
            since = min(since, before.since)
        until = now + (TYPING_S if typing else LASTS_S)
        turn = signal.data.get("turn") if isinstance(signal.data, dict) else None
        named = turn if isinstance(turn, str) else None
        self._running[key] = CurrentActivity(text, signal.thread_id, since, until, named)

    def over(self, sender: str, thread_id: str) -> None:
        """The sender's activity in the thread has ended: it posted there."""
        self._running.pop((sender, thread_id), None)

    def left(self, sender: str) -> None:
        """The sender went offline."""
        self._running = {key: doing for key, doing in self._running.items() if key[0] != sender}

    def clear(self) -> None:
        """The connection was lost."""
        self._running.clear()

    def by_sender(self, time: float) -> dict[str, CurrentActivity]:
        """The activity of each active participant; one in a thread wins over a general one."""
        self._forget_old(time)
        everywhere_first = sorted(self._running.items(), key=lambda item: item[0][1] is not None)
        return {sender: doing for (sender, _), doing in everywhere_first}

    def turns(self, thread_id: str) -> set[str]:
        """The running turns in a thread that agents reported."""
        running = self._running.values()
        return {doing.turn for doing in running if doing.turn and doing.thread_id == thread_id}

    def ended(self, turn: str) -> None:
        """A turn has ended, whether or not its agent reported it."""
        self._running = {key: doing for key, doing in self._running.items() if doing.turn != turn}

    def _forget_old(self, time: float) -> None:
        self._running = {key: value for key, value in self._running.items() if value.until > time}

    def now(self, time: float) -> list[str]:
        """Sentences such as `calculator is thinking`, one per active participant."""
        return [
            f"{sender} is {doing.text}" for sender, doing in sorted(self.by_sender(time).items())
        ]

    def _end(self, sender: str, thread_id: str | None) -> None:
        if thread_id is None:  # it works nowhere
            parked = {key: doing for key, doing in self._running.items() if doing.text == PARKED}
            self.left(sender)
            self._running |= parked
        else:
            self.over(sender, thread_id)


def _doing(data: JsonValue) -> str:
    if isinstance(data, str):
        return clip(one_line(data), MOST)
    if not isinstance(data, dict):
        return "thinking" if data else ""
    state = data.get("state")
    text = one_line(state) if isinstance(state, str) else "thinking"
    tool = data.get("tool")
    whom = data.get("for")
    if text not in QUIET and isinstance(tool, str) and tool:
        text = f"{text} {one_line(tool)}"
    if text == "waiting" and isinstance(whom, str) and whom:
        text = f"waiting for {one_line(whom)}"
    return clip(text, MOST)


class ClientState:
    """One person's view of the network."""

    def __init__(self, me: str):
        self.me = me
        self.current = thread_ids.BROADCAST
        """The open thread."""
        self.threads: dict[str, ClientThread] = {}
        self.participants: dict[str, Participant] = {}
        self.channels: dict[str, Channel] = {}
        self.activities = CurrentActivities()
        self.oversight = Oversight(me)
        self.offers: frozenset[str] = frozenset()
        """Names of the operations that the hub offers this person."""
        self.known_ids = KnownIds()
        self._marking: dict[str, int] = {}
        """Read marks that the hub has not confirmed yet, by thread."""

    # What arrives -----------------------------------------------------------------------------

    def know(self, ready: Ready) -> bool:
        """Take the snapshot of a new connection. Returns whether the state starts fresh: on the
        first connection, and on one that did not resume.
        """
        self.participants = {person.id: person for person in ready.participants}
        self.channels = {channel.name: channel for channel in ready.channels}
        self.offers = frozenset(operation.name for operation in ready.operations)
        self.oversight.renew()
        if ready.resumed and self.threads:
            for summary in ready.threads:  # another window may have read more
                self.thread(summary.id).read = self._marking.get(summary.id, summary.read)
            return False
        self.threads = {thread_ids.BROADCAST: ClientThread(thread_ids.BROADCAST)}
        self.activities.clear()
        for summary in ready.threads:
            self.summarised(summary)
        for name in sorted(name for name, channel in self.channels.items() if channel.joined):
            self.thread(thread_ids.channel(name))
        return True

    def summarised(self, summary: ThreadSummary) -> None:
        """Take a thread's summary from the hub."""
        thread = self.thread(summary.id)
        thread.add(summary.messages, self.me)
        thread.head = max(thread.head, summary.head)
        thread.last_seq = max(thread.last_seq, summary.last_seq)
        thread.read = self._marking.get(summary.id, summary.read)

    def marking(self, thread_id: str, read: int) -> Callable[[object], None]:
        """Note a read mark that is on its way to the hub. Call the returned function when the hub
        has answered: until then its own marks of the thread may be older.
        """
        self.thread(thread_id).read = self._marking[thread_id] = read

        def answered(_: object) -> None:
            if self._marking.get(thread_id) == read:
                del self._marking[thread_id]

        return answered

    def note(self, message: Message) -> bool:
        """Note a message of the log; returns whether it is new to this client."""
        thread = self.thread(message.thread_id)
        if thread.has(message.tseq):
            return False  # the person's own, from the result of the call
        thread.append(message, self.me)
        if message.amends is None:
            self.activities.over(message.sender_id, message.thread_id)
        if message.sender_id == self.me:
            thread.read = max(thread.read, message.tseq)  # posting in a thread marks it read
        top = thread_ids.root(thread.id)
        if top.startswith("channel."):
            self._member(top.partition(".")[2])
        return True

    def _member(self, channel: str) -> None:
        """Note membership: only members receive a channel's messages."""
        known = self.channels.get(channel)
        if known is None or not known.joined:
            self.joined(channel)

    def hear(self, signal: Signal, now: float) -> None:
        """Process a signal about presence, channels, read marks or activity; `now` is monotonic
        seconds."""
        if signal.type == "presence" and isinstance(signal.data, dict):
            self._presence(signal.data.get("online"), signal.data.get("offline"))
        elif signal.type == "channel" and isinstance(signal.data, dict):
            self._channel(Channel.model_validate(signal.data))
        elif signal.type == "read" and isinstance(signal.data, dict):
            upto = signal.data.get("upto")
            if signal.sender == self.me and signal.thread_id and isinstance(upto, int):
                self.thread(signal.thread_id).read = upto
        elif signal.sender is not None and signal.sender != self.me:
            self.activities.take(signal, now)

    def observe(self, signal: Signal) -> ObservedMessage | None:
        """Note a message that reached an agent this person speaks for, but not this person; None
        if the signal carries no such message."""
        observed = observed_message(signal)
        if observed is None or self._reads(observed.message.thread_id):
            return None
        message = observed.message
        thread = self.thread(message.thread_id)
        if thread.has(message.tseq):
            return None
        if not thread.head:
            thread.read = message.tseq - 1  # earlier messages there are not new
        thread.append(message, self.me)
        return observed

    def _reads(self, thread_id: str) -> bool:
        """Whether this person receives the messages of a thread."""
        top = thread_ids.root(thread_id)
        if top.startswith("dm."):
            return self.me in thread_ids.members_of(top)
        channel = self.channels.get(top.partition(".")[2])
        return not top.startswith("channel.") or (channel is not None and channel.joined)

    def _presence(self, online: object, offline: object) -> None:
        for described in online if isinstance(online, list) else ():
            person = Participant.model_validate(described)
            self.participants[person.id] = person
        for name in offline if isinstance(offline, list) else ():
            if (participant := self.participants.get(name)) is not None:
                self.participants[name] = participant.model_copy(update={"present": False})
                self.activities.left(name)

    def _channel(self, channel: Channel) -> None:
        """Note a new channel, or a change of its members."""
        before = self.channels.get(channel.name)
        joined = self.me in channel.members
        self.channels[channel.name] = channel.model_copy(update={"joined": joined})
        if joined:
            self.thread(thread_ids.channel(channel.name))
        elif before is not None and before.joined:
            self.parted(channel.name)  # left in another window

    def learn(self, page: ThreadPage) -> None:
        """Take a page of a thread from the hub."""
        thread = self.thread(page.thread_id)
        if not page.messages or page.messages[0].tseq <= (thread.oldest or 1):
            thread.more = page.more
        thread.add(page.messages, self.me)

    # Threads ----------------------------------------------------------------------------------

    def thread(self, thread_id: str) -> ClientThread:
        """The thread with this canonical id; created if needed."""
        return self.threads.setdefault(thread_id, ClientThread(thread_id))

    def shown(self, thread_id: str) -> str:
        """A thread's name for this person: `#general`, `@bob`, `#general › m13`."""
        return label(thread_id, self.me)

    def message(self, seq: int) -> Message | None:
        """A cached message by its position in the log."""
        for thread in self.threads.values():
            for message in thread.messages.values():
                if message.seq == seq:
                    return message
        return None

    @property
    def names(self) -> set[str]:
        """The names that a direct thread can have: participants, and members of known threads."""
        return {*self.participants, *members(self.threads), self.me}

    def find(self, target: str) -> str:
        """The canonical id of a thread that a person names: a message's id for the replies to it,
        or any form that `find_thread` accepts. Raises `UserError`.
        """
        if (seq := parse_message_id(target)) is not None:
            if (message := self.message(seq)) is None:
                raise UserError(f"there is no message {target} among those you have read")
            return thread_ids.reply_thread(message.thread_id, seq)
        thread_id = find_thread(target, self.me, self.names, self.channels)
        top = thread_ids.root(thread_id)
        if top.startswith("channel."):
            self.channel(top.partition(".")[2])
        return thread_id

    def way_to(self, thread_id: str) -> tuple[str, dict[str, str]]:
        """The operation that posts in a thread, and the argument that names it. A reply thread
        exists only after its first reply."""
        above = thread_ids.parent(thread_id)
        if above is None or self.thread(thread_id).head:
            return "send_text_message", {"to": thread_id}
        return "reply", {"message_id": f"m{thread_id.removeprefix(above + '.t')}"}

    def direct(self, names: Sequence[str]) -> str:
        """The direct thread with these participants. Raises `UserError`."""
        others = [name for name in names if name != self.me]
        for name in others:
            if name not in self.participants:
                hint = did_you_mean(name, self.participants)
                raise UserError(f"there is no participant {one_line(name)!r}{hint}")
        if not others:
            raise UserError("a direct message needs another participant")
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
        """This person joined a channel."""
        channel = self.channels.get(name) or Channel(name=name)
        self.channels[name] = channel.model_copy(update={"joined": True})

    def parted(self, name: str) -> None:
        """This person left a channel."""
        if (channel := self.channels.get(name)) is not None:
            self.channels[name] = channel.model_copy(update={"joined": False})
        gone = thread_ids.channel(name)
        self.threads = {id: t for id, t in self.threads.items() if thread_ids.root(id) != gone}
