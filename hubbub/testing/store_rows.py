"""Short ways to write what tests put into a `Store`."""

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
    "named_first",
    "opened",
    "seqs",
    "wake",
    "wake_states",
    "write",
]


def body(seq: int) -> bytes:
    """The body that `message(seq)` has by default, as it is read back."""
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
    """A log entry; `tseq` is `seq` unless it is given."""
    position = seq if tseq is None else tseq
    words = body(seq) if text is None else text.encode()
    row = MessageRow(seq, thread, position, scope, sender, cid, digest, None, None, None, words)
    return row if to is None else named_first(row, to)


def named_first(row: MessageRow, to: Delivery) -> MessageRow:
    """The message, as it reaches this participant first."""
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
    """The store is open inside, and closed afterwards whatever happened."""
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
    """Append one batch, as the hub does it: who is named first stands in the message's row."""
    first: dict[int, Delivery] = {}
    others = [row for row in deliveries if first.setdefault(row.seq, row) is not row]
    rows = [named_first(row, first[row.seq]) if row.seq in first else row for row in messages]
    await store.append(Batch(list(records), rows, others))


async def wake_states(store: Store, agent: str, seqs: Iterable[int]) -> Sequence[str | None]:
    """The states of wakes, in the order of `seqs`."""
    found = [await store.read(WakeOf(agent, seq)) for seq in seqs]
    return [each.state if each else "unknown" for each in found]


def seqs(events: Iterable[StoredEvent]) -> list[int]:
    """The positions of events."""
    return [event.seq for event in events]
