"""From the conversation of a case to what its agent finds when it joins. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from hubbub.agents.stage import Scene
from hubbub.config.cases import Case, Said
from hubbub.config.models import NetworkFile
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import (
    Message,
    Participant,
    PendingWake,
    ReplyNeed,
    SenderKind,
    ThreadSummary,
    Wake,
)

__all__ = ["scene"]

_BEGINS = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""The same always, so that the same case gives the same prompt: a Monday morning."""


def scene(case: Case, me: str, file: NetworkFile, ready: Ready) -> Scene:
    """What the agent `me` finds: `ready` with the case's threads, and the incoming messages as the
    wakes of one turn.

    Threads are as old as they stand in the case: what was said in the last one came last.
    """
    incoming = case.incoming or []
    writer = _Writer(me, file)
    where = writer.thread(case.thread, incoming)
    earlier = {
        thread_ids.canonical(thread, me) or thread: said for thread, said in case.threads.items()
    }
    threads = {
        thread: [writer.message(thread, said) for said in saids]
        for thread, saids in earlier.items()
    }
    waking = [writer.message(where, said) for said in incoming]
    threads[where] = [*threads.get(where, []), *waking]
    turn = f"{me}-{waking[0].id}"
    return Scene(
        network=file.network.name,
        ready=ready.model_copy(
            update={
                "head": writer.seq,
                "cursor": writer.seq,
                "threads": tuple(_summary(id, messages) for id, messages in threads.items()),
                "pending": tuple(PendingWake(message=m, wake=_wake(m, turn)) for m in waking),
                "participants": (*ready.participants, *writer.strangers(ready)),
            }
        ),
    )


class _Writer:
    """Numbers messages in the order in which they are written."""

    def __init__(self, me: str, file: NetworkFile):
        self.seq = 0
        self._me, self._file = me, file
        self._somebody = next(iter(file.humans), "ann")
        self._tseqs: dict[str, int] = {}
        self._seen: dict[str, None] = {}

    def thread(self, named: str | None, incoming: Sequence[Said]) -> str:
        """Where the incoming messages stand; canonical."""
        if named is not None:
            return thread_ids.canonical(named, self._me) or named
        return thread_ids.direct({self._me, incoming[0].sender or self._somebody})

    def message(self, thread: str, said: Said) -> Message:
        sender = said.sender or self._somebody
        members = thread_ids.members_of(thread)
        self.seq += 1
        self._tseqs[thread] = self._tseqs.get(thread, 0) + 1
        self._seen[sender] = None
        return Message(
            id=f"m{self.seq}",
            seq=self.seq,
            thread_id=thread,
            tseq=self._tseqs[thread],
            sender_id=sender,
            sender_kind=self._kind(sender),
            type=thread_ids.kind_of(thread),
            recipients=tuple(m for m in members if m != sender),
            content=said.text,
            interaction_id=f"i{self.seq}",
            hop=0,
            sent_at=_BEGINS + timedelta(minutes=self.seq),
        )

    def _kind(self, sender: str) -> SenderKind:
        return "agent" if sender == self._me or sender in self._file.agents else "human"

    def strangers(self, ready: Ready) -> Iterator[Participant]:
        """Those of the case whom the config does not name."""
        known = {participant.id for participant in ready.participants}
        for name in self._seen:
            if name not in known:
                yield Participant(id=name, kind="human", present=True)


def _summary(thread: str, messages: Sequence[Message]) -> ThreadSummary:
    return ThreadSummary(
        id=thread,
        type=thread_ids.kind_of(thread),
        head=len(messages),
        last_seq=messages[-1].seq if messages else 0,
        messages=tuple(messages),
    )


def _wake(message: Message, turn: str) -> Wake:
    reasons = {"direct": "direct", "broadcast": "broadcast"}
    reply: ReplyNeed = "required" if message.sender_kind == "human" else "optional"
    return Wake(reason=reasons.get(message.type, "mention"), reply=reply, turn=turn)
