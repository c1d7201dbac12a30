"""The open thread from top to bottom: days, what is new, messages, what is on its way. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from typing import assert_never

from hubbub.cli.full.delivery import delivery
from hubbub.cli.full.outbox import Sending
from hubbub.cli.full.state import State
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message

__all__ = [
    "Beginning",
    "Block",
    "DayLine",
    "Earlier",
    "NewLine",
    "Pending",
    "Post",
    "key",
    "timeline",
]

TOGETHER = timedelta(minutes=5)
"""Messages of one sender within this time need no gap between them."""


@dataclass(frozen=True)
class Beginning:
    """There is nothing before this."""

    thread: str
    above: str = ""
    """Of a reply thread: what the message says that it hangs under."""


@dataclass(frozen=True)
class Earlier:
    """Older messages are at the hub."""


@dataclass(frozen=True)
class DayLine:
    day: date


@dataclass(frozen=True)
class NewLine:
    """What follows was unread when the thread was opened."""


@dataclass(frozen=True)
class Post:
    """A message in the log."""

    message: Message
    together: bool
    """Whether it goes on from the one above."""
    state: str = ""
    """Of one's own: how far it has come."""
    mentions_me: bool = False
    replies: int = 0
    new_replies: int = 0
    reactions: str = ""
    """`👍 2`: what stands below it."""


@dataclass(frozen=True)
class Pending:
    """A message on its way, or refused."""

    sending: Sending


Block = Beginning | Earlier | DayLine | NewLine | Post | Pending


def timeline(state: State, zone: tzinfo | None = None) -> list[Block]:
    """The open thread; days begin in `zone` (None: the machine's)."""
    thread = state.thread(state.current)
    blocks: list[Block] = [*_top(state)]
    before: Message | None = None
    new_from = state.new_from
    for message in thread.messages.values():
        day = message.sent_at.astimezone(zone).date()
        if before is None or day != before.sent_at.astimezone(zone).date():
            blocks.append(DayLine(day))
            before = None
        if new_from is not None and message.tseq > new_from:
            if message.sender_id != state.me:
                blocks.append(NewLine())
                before = None
            new_from = None
        blocks.append(_post(state, message, _goes_on(before, message)))
        before = message
    return [*blocks, *map(Pending, state.outbox.of(thread.id))]


def _top(state: State) -> Iterator[Block]:
    thread = state.thread(state.current)
    if thread.more and thread.oldest > 1:
        yield Earlier()
    else:
        yield Beginning(state.shown(thread.id), _above(state, thread.id))


def _above(state: State, thread_id: str) -> str:
    """`bob: what he said`, if it is known."""
    above = thread_ids.parent(thread_id)
    if above is None:
        return ""
    said = state.message(int(thread_id.removeprefix(f"{above}.t")))
    return "" if said is None else f"{said.sender_id}: {said.text}"


def _goes_on(before: Message | None, message: Message) -> bool:
    return (
        before is not None
        and before.sender_id == message.sender_id
        and before.spoken_by == message.spoken_by
        and message.sent_at - before.sent_at < TOGETHER
    )


def _post(state: State, message: Message, together: bool) -> Post:
    mine = message.sender_id == state.me
    under = state.threads.get(thread_ids.reply_thread(message.thread_id, message.seq))
    return Post(
        message,
        together,
        delivery(state, message) if mine else "",
        state.me in message.mentions and not mine,
        under.count if under else 0,
        under.unread if under else 0,
        state.reacted.of(message.id),
    )


def key(block: Block) -> tuple[object, ...]:
    """What tells a block from every other one, its looks included."""
    match block:
        case Beginning(thread, above):
            return ("beginning", thread, above)
        case Earlier():
            return ("earlier",)
        case DayLine(day):
            return ("day", day)
        case NewLine():
            return ("new",)
        case Post(message, together, state, _, replies, new, reactions):
            latest = (message.amended, message.text) if message.amended else None
            return ("post", message.seq, latest, together, state, replies, new, reactions)
        case Pending(sending):
            return ("pending", sending.cid, sending.failed)
        case _:
            assert_never(block)
