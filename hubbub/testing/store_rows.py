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
    text: str | None = None,
) -> MessageRow:
    """A log entry; `tseq` is `seq` unless it is given."""
    position = seq if tseq is None else tseq
    words = body(seq).decode() if text is None else text
    return MessageRow(seq, thread, position, scope, sender, cid, digest, words)


def delivery(participant: str, seq: int) -> Delivery:
    """A message that reaches a participant without waking it."""
    return Delivery(participant, seq, "person", None, None)


def wake(participant: str, seq: int, *, reply: str = "required") -> Delivery:
    """A message that wakes a participant."""
    return Delivery(participant, seq, "direct", reply, f"{participant}-m{seq}")


def direct(first: int, last: int, *, to: str = "bob", sender: str = "alice") -> Batch:
    """A batch of direct messages, one delivery each, in thread 1."""
    span = range(first, last + 1)
    return Batch(
        messages=[message(seq, sender=sender) for seq in span],
        deliveries=[delivery(to, seq) for seq in span],
    )


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
    """Append one batch."""
    await store.append(Batch(list(records), list(messages), list(deliveries)))


async def wake_states(store: Store, agent: str, seqs: Iterable[int]) -> Sequence[str | None]:
    """The states of wakes, in the order of `seqs`."""
    found = [await store.read(WakeOf(agent, seq)) for seq in seqs]
    return [each.state if each else "unknown" for each in found]


def seqs(events: Iterable[StoredEvent]) -> list[int]:
    """The positions of events."""
    return [event.seq for event in events]
