"""What a person's client knows of the network: threads, people, channels, read marks. Pure.

The snapshot of `ready` with everything after it applied is what a fresh `ready` would tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field

from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.ids import parse_message_id
from hubbub.people.names import find_thread, label
from hubbub.people.notices import KnownIds
from hubbub.people.oversight import Oversight, overheard
from hubbub.people.text import clip, one_line
from hubbub.protocol import thread_ids
from hubbub.protocol.control import ObservedMessage
from hubbub.protocol.frames import Ready, Signal
from hubbub.protocol.messages import Channel, Message, Participant, ThreadSummary, amended
from hubbub.protocol.operations import ThreadPage
from hubbub.wording import did_you_mean

__all__ = ["KEPT", "LASTS_S", "TYPING_S", "ClientState", "ClientThread", "CurrentActivities"]

KEPT = 500
"""Messages of a thread that are remembered."""
LASTS_S = 900.0
"""Seconds after which an unconfirmed activity is taken for over. Long: an agent says when it begins
to ask its model, and that it is done; one that dies becomes absent."""
TYPING_S = 10.0
"""The same for typing, whose end is not announced."""
QUIET = frozenset({"", "idle", "done", "finished", "stopped", "off", "end", "ended"})
"""States that say: nothing any more."""
MOST = 40
"""Columns of one activity."""


@dataclass
class ClientThread:
    """A thread as this person knows it, with edits and deletions applied."""

    id: str
    messages: dict[int, Message] = field(default_factory=dict)
    """By `tseq`, ascending, each as it is by now."""
    amendments: dict[int, Message] = field(default_factory=dict)
    """Edits and deletions of messages, by their `tseq`; by themselves they say nothing."""
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
    """Whether the hub may have older messages than these."""

    def add(self, messages: Iterable[Message], me: str = "") -> None:
        concerned = set[str]()
        for message in messages:
            self.head = max(self.head, message.tseq)
            self.last_seq = max(self.last_seq, message.seq)
            if message.amends is not None:
                self.amendments[message.tseq] = message
                concerned.add(message.amends.message_id)
                continue
            self.messages[message.tseq] = message
            concerned.add(message.id)
            if me in message.mentions and message.sender_id != me:
                self.mentions.add(message.tseq)
        self.messages = dict(sorted(self.messages.items()))
        if self.amendments:
            self._amend(concerned)

    def _amend(self, concerned: Set[str]) -> None:
        """Show these messages as they are by now, as far as it is known here."""
        self.amendments = dict(sorted(self.amendments.items()))
        for tseq, message in self.messages.items():
            if message.id in concerned:
                self.messages[tseq] = amended(message, self.amendments_of(message.id))

    def amendments_of(self, message_id: str) -> list[Message]:
        """The edits and deletions of a message, oldest first."""
        found = self.amendments.values()
        return [each for each in found if each.amends and each.amends.message_id == message_id]

    def has(self, tseq: int) -> bool:
        """Whether what stands at a position is known."""
        return tseq in self.messages or tseq in self.amendments

    def append(self, message: Message, me: str = "") -> None:
        """A new message; the oldest one is forgotten when there are too many."""
        self.add([message], me)
        if len(self.messages) > KEPT:  # the hub has what is far back
            self.messages = dict(list(self.messages.items())[-KEPT:])
            later = ((n, each) for n, each in self.amendments.items() if n > self.first)
            self.amendments = dict(later)
            self.more = True

    @property
    def unread(self) -> int:
        """How many messages the reader has not read; edits and deletions are none."""
        silent = sum(1 for tseq in self.amendments if tseq > self.read)
        return max(0, self.head - self.read - silent)

    @property
    def count(self) -> int:
        """How many messages there are, without edits and deletions as far as they are known."""
        return self.head - len(self.amendments)

    @property
    def unread_mentions(self) -> int:
        """How many of them mention the reader."""
        return sum(1 for tseq in self.mentions if tseq > self.read)

    @property
    def mentioned(self) -> bool:
        """Whether something unread mentions the reader."""
        return self.unread_mentions > 0

    @property
    def last(self) -> Message | None:
        return next(reversed(self.messages.values()), None)

    @property
    def oldest(self) -> int:
        """`tseq` of the first message, edit or deletion that is known; 0 if none is."""
        firsts = (self.first, next(iter(self.amendments), 0))
        return min(filter(None, firsts), default=0)

    @property
    def first(self) -> int:
        """`tseq` of the first message that is known; 0 if none is."""
        return next(iter(self.messages), 0)


@dataclass(frozen=True)
class CurrentActivity:
    """What somebody does, and since when (monotonic seconds)."""

    text: str
    thread_id: str | None
    since: float
    until: float
    turn: str | None = None
    """The turn in which an agent does it, where it says so."""


class CurrentActivities:
    """`activity` and `typing` signals until they end, are contradicted or grow old.

    An `activity` says in `data` what its sender does: text, or an object with `state` (and `tool`).
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, str | None], CurrentActivity] = {}

    def take(self, signal: Signal, now: float) -> None:
        """A signal arrived at `now` (monotonic seconds)."""
        if signal.sender is None or signal.type not in ("activity", "typing"):
            return
        typing = signal.type == "typing"
        key = (signal.sender, signal.thread_id)
        text = "typing" if typing else _doing(signal.data)
        if text in QUIET or signal.data is False:
            self._over(*key)
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
        """The sender has spoken in the thread."""
        self._running.pop((sender, thread_id), None)

    def left(self, sender: str) -> None:
        """The sender is gone."""
        self._running = {key: doing for key, doing in self._running.items() if key[0] != sender}

    def clear(self) -> None:
        """The connection is lost: nothing is heard any more."""
        self._running.clear()

    def by_sender(self, time: float) -> dict[str, CurrentActivity]:
        """What each does who does something; what it does in a thread says more than that it works
        at all."""
        self._forget_old(time)
        everywhere_first = sorted(self._running.items(), key=lambda item: item[0][1] is not None)
        return {sender: doing for (sender, _), doing in everywhere_first}

    def in_thread(self, thread_id: str, time: float) -> dict[str, CurrentActivity]:
        """What each does who does something in a thread."""
        self._forget_old(time)
        running = self._running.items()
        return {sender: doing for (sender, where), doing in running if where == thread_id}

    def turns(self, thread_id: str) -> set[str]:
        """The turns in which agents work in a thread, as far as they say so."""
        running = self._running.values()
        return {doing.turn for doing in running if doing.turn and doing.thread_id == thread_id}

    def ended(self, turn: str) -> None:
        """A turn is over, whatever its agent says of it."""
        self._running = {key: doing for key, doing in self._running.items() if doing.turn != turn}

    def _forget_old(self, time: float) -> None:
        self._running = {key: value for key, value in self._running.items() if value.until > time}

    def now(self, time: float) -> list[str]:
        """Sentences such as `calculator is thinking`, one for each who does something."""
        return [
            f"{sender} is {doing.text}" for sender, doing in sorted(self.by_sender(time).items())
        ]

    def _over(self, sender: str, thread_id: str | None) -> None:
        if thread_id is None:
            self.left(sender)  # idle altogether
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
    if text not in QUIET and isinstance(tool, str) and tool:
        text = f"{text} {one_line(tool)}"
    return clip(text, MOST)


class ClientState:
    """The network as one person's client knows it."""

    def __init__(self, me: str):
        self.me = me
        self.current = thread_ids.BROADCAST
        """The thread that is open."""
        self.threads: dict[str, ClientThread] = {}
        self.participants: dict[str, Participant] = {}
        self.channels: dict[str, Channel] = {}
        self.activities = CurrentActivities()
        self.oversight = Oversight(me)
        self.offers: frozenset[str] = frozenset()
        """Names of the operations that the hub has for this person."""
        self.seen = KnownIds()
        self._marking: dict[str, int] = {}
        """Marks that the hub has been asked for and has not answered, by thread."""

    # What arrives -----------------------------------------------------------------------------

    def know(self, ready: Ready) -> bool:
        """A connection stands. Returns whether that is a fresh start: the first one is, and one
        that did not resume.
        """
        self.participants = {person.id: person for person in ready.participants}
        self.channels = {channel.name: channel for channel in ready.channels}
        self.offers = frozenset(operation.name for operation in ready.operations)
        self.oversight.renew()
        if ready.resumed and self.threads:
            for summary in ready.threads:  # what another window has read meanwhile
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
        """The hub has sent a thread."""
        thread = self.thread(summary.id)
        thread.add(summary.messages, self.me)
        thread.head = max(thread.head, summary.head)
        thread.last_seq = max(thread.last_seq, summary.last_seq)
        thread.read = self._marking.get(summary.id, summary.read)

    def marking(self, thread_id: str, read: int) -> Callable[[object], None]:
        """The hub is being asked to note that a thread is read up to here. Until what is returned
        is called, what it tells of the thread may be older than that.
        """
        self.thread(thread_id).read = self._marking[thread_id] = read

        def answered(_: object) -> None:
            if self._marking.get(thread_id) == read:
                del self._marking[thread_id]

        return answered

    def note(self, message: Message) -> bool:
        """A message that is in the log; returns whether it was new here."""
        thread = self.thread(message.thread_id)
        if thread.has(message.tseq):
            return False  # one's own, known from the answer to the call
        thread.append(message, self.me)
        if message.amends is None:
            self.activities.over(message.sender_id, message.thread_id)
        if message.sender_id == self.me:
            thread.read = max(thread.read, message.tseq)  # who speaks in a thread has read it
        top = thread_ids.root(thread.id)
        if top.startswith("channel."):
            self._member(top.partition(".")[2])
        return True

    def _member(self, channel: str) -> None:
        """Messages of a channel go to its members."""
        known = self.channels.get(channel)
        if known is None or not known.joined:
            self.joined(channel)

    def hear(self, signal: Signal, now: float) -> None:
        """Presence, channels, read marks and activity; `now` is monotonic seconds."""
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

    def overhear(self, signal: Signal) -> ObservedMessage | None:
        """A message that reached an agent which this person speaks for, and not this person; None
        if the signal tells no such thing."""
        heard = overheard(signal)
        if heard is None or self._reads(heard.message.thread_id):
            return None
        message = heard.message
        thread = self.thread(message.thread_id)
        if thread.has(message.tseq):
            return None
        if not thread.head:
            thread.read = message.tseq - 1  # what was said there before is not new
        thread.append(message, self.me)
        return heard

    def _reads(self, thread_id: str) -> bool:
        """Whether this person gets what is said in a thread without asking."""
        top = thread_ids.root(thread_id)
        if top.startswith("dm."):
            return self.me in thread_ids.members_of(top)
        known = self.channels.get(top.partition(".")[2])
        return not top.startswith("channel.") or (known is not None and known.joined)

    def _presence(self, online: object, offline: object) -> None:
        for described in online if isinstance(online, list) else ():
            person = Participant.model_validate(described)
            self.participants[person.id] = person
        for name in offline if isinstance(offline, list) else ():
            if (known := self.participants.get(name)) is not None:
                self.participants[name] = known.model_copy(update={"present": False})
                self.activities.left(name)

    def _channel(self, told: Channel) -> None:
        """A channel is new or has other members; whether this person is one of them follows."""
        before = self.channels.get(told.name)
        joined = self.me in told.members
        self.channels[told.name] = told.model_copy(update={"joined": joined})
        if joined:
            self.thread(thread_ids.channel(told.name))
        elif before is not None and before.joined:
            self.parted(told.name)  # in another window

    def learn(self, page: ThreadPage) -> None:
        """Messages of a thread that the hub was asked for."""
        thread = self.thread(page.thread_id)
        if not page.messages or page.messages[0].tseq <= (thread.oldest or 1):
            thread.more = page.more
        thread.add(page.messages, self.me)

    # Threads ----------------------------------------------------------------------------------

    def thread(self, thread_id: str) -> ClientThread:
        """The thread of this canonical id, known from now on."""
        return self.threads.setdefault(thread_id, ClientThread(thread_id))

    def shown(self, thread_id: str) -> str:
        """A thread as this person is shown it: `#general`, `@bob`, `#general › m13`."""
        return label(thread_id, self.me)

    def message(self, seq: int) -> Message | None:
        """A message by its position in the log, if it is known here."""
        for thread in self.threads.values():
            for message in thread.messages.values():
                if message.seq == seq:
                    return message
        return None

    def find(self, target: str) -> str:
        """The canonical id that a person means: a message's id for the replies under it, or a
        thread as `find_thread` has them. Raises `UserError`.
        """
        if (seq := parse_message_id(target)) is not None:
            if (message := self.message(seq)) is None:
                raise UserError(f"there is no message {target} in what you have read")
            return thread_ids.reply_thread(message.thread_id, seq)
        found = find_thread(target, self.me, self.participants, self.channels)
        top = thread_ids.root(found)
        if top.startswith("channel."):
            self.channel(top.partition(".")[2])
        return found

    def way_to(self, thread_id: str) -> tuple[str, dict[str, str]]:
        """The operation that speaks in a thread, and the argument that names it: a reply thread
        exists from the first reply on."""
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
            raise UserError("a direct conversation needs another participant")
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

    def parted(self, name: str) -> None:
        """This person is not in a channel any more."""
        if (known := self.channels.get(name)) is not None:
            self.channels[name] = known.model_copy(update={"joined": False})
        gone = thread_ids.channel(name)
        self.threads = {id: t for id, t in self.threads.items() if thread_ids.root(id) != gone}
