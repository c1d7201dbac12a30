"""Logs with a past: many messages written quickly, through the same port that the hub writes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from hubbub.ids import interaction_id, new_ulid
from hubbub.network.auth import token_hash
from hubbub.network.ports import Store
from hubbub.network.records import (
    Batch,
    CursorMoved,
    MessageRow,
    ParticipantSeen,
    Record,
    ThreadCreated,
    TokenAdded,
    WakesSettled,
)
from hubbub.network.stored import StoredChannel, StoredMember
from hubbub.protocol import thread_ids
from hubbub.protocol.codec import encode_message
from hubbub.protocol.messages import Draft, MessageType

__all__ = ["admit", "fill"]

PARTICIPANTS = 200
CHANNELS = 20
MEMBERS = 20
"""Of each channel."""
PARTNERS = 4
"""Each participant has direct threads with so many others."""
BATCH = 5000
_START = datetime(2025, 1, 1, tzinfo=UTC)
_WORDS = (
    "we looked at the figures of last week and found that the second report needs another round "
)


@dataclass(slots=True)
class _Thread:
    no: int
    id: str
    type: MessageType
    speakers: Sequence[str]
    tseq: int = 0


async def admit(store: Store, tokens: Iterable[tuple[str, str]]) -> None:
    """Let (participant, token) join a hub that will open this store."""
    records: list[Record] = [TokenAdded(token_hash(token), name) for name, token in tokens]
    await store.append(Batch(records=records))


async def fill(store: Store, count: int) -> None:
    """Write `count` messages into an empty log: 3 of 5 direct, the others in channels.

    All have a cid and are acknowledged; the direct ones woke somebody.
    """
    threads = _threads()
    await store.append(Batch(records=list(_setting(threads))))
    made = _messages(threads, count)
    while chunk := list(islice(made, BATCH)):
        await store.append(Batch(messages=chunk))
    done: list[Record] = [CursorMoved(name, count) for name in _names()]
    done += [WakesSettled(name, count) for name in _names()]
    await store.append(Batch(records=done))


def _names() -> list[str]:
    return [f"past{n}" for n in range(PARTICIPANTS)]


def _threads() -> list[_Thread]:
    names = _names()
    found: list[_Thread] = []
    for n in range(CHANNELS):
        members = [names[(n * 7 + m) % PARTICIPANTS] for m in range(MEMBERS)]
        found.append(_Thread(n + 1, thread_ids.channel(f"past{n}"), "channel", members))
    for n, name in enumerate(names):
        for step in range(1, PARTNERS + 1):
            pair = (name, names[(n + step) % PARTICIPANTS])
            found.append(_Thread(len(found) + 1, thread_ids.direct(pair), "direct", pair))
    return found


def _setting(threads: Sequence[_Thread]) -> Iterator[Record]:
    for name in _names():
        yield ParticipantSeen(name, "agent", "{}")
    for thread in threads:
        if thread.type == "channel":
            yield StoredChannel(thread.id.partition(".")[2], "A channel with a past")
        yield ThreadCreated(thread.no, thread.id)
        for member in thread.speakers if thread.type == "channel" else ():
            yield StoredMember(member, thread.no, 0)


def _messages(threads: Sequence[_Thread], count: int) -> Iterator[MessageRow]:
    channels = [thread for thread in threads if thread.type == "channel"]
    pairs = [thread for thread in threads if thread.type == "direct"]
    for seq in range(1, count + 1):
        pool = pairs if seq % 5 < 3 else channels
        yield _message(pool[seq * 31 % len(pool)], seq)


def _message(thread: _Thread, seq: int) -> MessageRow:
    thread.tseq += 1
    direct = thread.type == "direct"
    sender = thread.speakers[thread.tseq % len(thread.speakers)]
    receiver = thread.speakers[(thread.tseq + 1) % len(thread.speakers)]
    draft = Draft(
        sender_id=sender,
        sender_kind="agent",
        thread_id=thread.id,
        type=thread.type,
        content=_WORDS * (1 + seq % 4),
        recipients=(receiver,) if direct else (),
    )
    sent_at = (_START + timedelta(seconds=seq)).isoformat().replace("+00:00", "Z")
    body = encode_message(draft, seq, thread.tseq, interaction_id(seq), 0, sent_at)
    scope = None if direct else thread.no
    row = MessageRow(
        seq, thread.no, thread.tseq, scope, sender, new_ulid(), seq, None, None, None, body
    )
    return row._replace(recipient=receiver, reason="direct", reply="optional") if direct else row
