"""Short constructors for the rows that tests put into a `Store`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from hubbub.network.ports import Store
from hubbub.network.queries import WakeOf
from hubbub.network.records import Batch, Delivery, MessageRow, Record
from hubbub.network.stored import StoredEvent, StoreState

__all__ = [
    "body",
    "delivery",
    "direct",
    "message",
    "opened",
    "seqs",
    "wake",
    "wake_states",
    "with_recipient",
    "write",
]


def body(seq: int) -> bytes:
    """The default body of `message(seq)`, as it is read back."""
    return f'{{"seq":{seq},"text":"grüße 👋"}}'.encode()


def message(
    seq: int,
    *,
    thread: int = 1,
    tseq: int | None = None,
    scope: int | None = None,
    sender: str = "alice",
    cid: str | None = None,
    digest: int | None = None,
    to: Delivery | None = None,
    text: str | None = None,
) -> MessageRow:
    """A log entry; `tseq` defaults to `seq`."""
    position = seq if tseq is None else tseq
    content = body(seq) if text is None else text.encode()
    row = MessageRow(seq, thread, position, scope, sender, cid, digest, None, None, None, content)
    return row if to is None else with_recipient(row, to)


def with_recipient(row: MessageRow, to: Delivery) -> MessageRow:
    """The message with this delivery as its first, which is part of its row."""
    return row._replace(recipient=to.participant, reason=to.reason, reply=to.reply)


def delivery(participant: str, seq: int) -> Delivery:
    """A message that reaches a participant without waking it."""
    return Delivery(participant, seq, "person", None)


def wake(participant: str, seq: int, *, reply: str = "required") -> Delivery:
    """A message that wakes a participant."""
    return Delivery(participant, seq, "direct", reply)


def direct(first: int, last: int, *, to: str = "bob", sender: str = "alice") -> Batch:
    """A batch of direct messages to one participant, in thread 1."""
    span = range(first, last + 1)
    return Batch([], [message(seq, sender=sender, to=delivery(to, seq)) for seq in span])


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[StoreState]:
    """Open the store, and close it at the end."""
    try:
        yield await store.open()
    finally:
        await store.close()


async def write(
    store: Store,
    *records: Record,
    messages: Iterable[MessageRow] = (),
    deliveries: Iterable[Delivery] = (),
) -> None:
    """Append one batch as the hub does: the first delivery of a message is in the message's row."""
    first: dict[int, Delivery] = {}
    others = [row for row in deliveries if first.setdefault(row.seq, row) is not row]
    rows = [with_recipient(row, first[row.seq]) if row.seq in first else row for row in messages]
    await store.append(Batch(list(records), rows, others))


async def wake_states(store: Store, agent: str, seqs: Iterable[int]) -> Sequence[str | None]:
    """The states of wakes, in the order of `seqs`."""
    wakes = [await store.read(WakeOf(agent, seq)) for seq in seqs]
    return [each.state if each else "unknown" for each in wakes]


def seqs(events: Iterable[StoredEvent]) -> list[int]:
    """The sequence numbers of events."""
    return [event.seq for event in events]
