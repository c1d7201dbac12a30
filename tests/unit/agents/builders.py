"""Messages, events and plans as a hub would build them; a test names only what it cares about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import JsonValue

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.models.base import Completion
from hubbub.agents.turn.loop import Command, Loop, QueryModel, TimedCompletion
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event, Ready
from hubbub.protocol.messages import (
    Message,
    OperationInfo,
    PendingWake,
    Quote,
    SenderKind,
    ThreadSummary,
    Wake,
)
from hubbub.protocol.turns import Steering

__all__ = ["ME", "ManualClock", "answered", "event", "message", "pending", "plan", "ready", "wake"]

ME = "bot"


def answered(
    loop: Loop,
    answer: Completion,
    *,
    at_ms: float | None = None,
    duration_ms: float | None = None,
    steered: Sequence[Steering] = (),
) -> list[Command]:
    """The loop's commands after an answer of the model, with steering that arrived meanwhile."""
    query = QueryModel(0, steering=tuple(steered))
    return loop.answered([TimedCompletion(query, answer, at_ms, duration_ms)])


class ManualClock:
    """A monotonic clock, in seconds, that a test sets."""

    def __init__(self) -> None:
        self.now = 12345.678

    def __call__(self) -> float:
        return self.now


def message(
    seq: int,
    sender: str = "alice",
    content: JsonValue = "hello",
    *,
    thread: str | None = None,
    kind: SenderKind = "human",
    hop: int = 0,
    cause: str | None = None,
    reply_to: str | None = None,
    quote: str | None = None,
    text_representation: str | None = None,
) -> Message:
    """The message at `seq`, by default in the direct thread of its sender and `ME`."""
    thread = thread or thread_ids.direct([sender, ME])
    return Message(
        id=f"m{seq}",
        seq=seq,
        thread_id=thread,
        tseq=seq,
        sender_id=sender,
        sender_kind=kind,
        type=thread_ids.kind_of(thread),
        recipients=tuple(m for m in thread_ids.members_of(thread) if m != sender),
        content=content,
        text_representation=text_representation,
        reply_to=reply_to,
        quote=Quote(message_id=quote, text="") if quote else None,
        interaction_id=f"i{seq}",
        cause_id=cause,
        hop=hop,
        sent_at=datetime(2025, 3, 1, 12, 0, seq % 60, tzinfo=UTC),
    )


def wake(seq: int, reply: Literal["required", "optional"] = "required") -> Wake:
    return Wake(reason="direct", reply=reply, turn=f"{ME}-m{seq}")


def event(what: Message, *, wakes: bool = True, reply: str = "required") -> Event:
    need: Literal["required", "optional"] = "required" if reply == "required" else "optional"
    return Event(
        seq=what.seq,
        prev=what.seq - 1,
        tseq=what.tseq,
        message=what,
        wake=wake(what.seq, need) if wakes else None,
    )


def pending(what: Message, started: str | None = None) -> PendingWake:
    return PendingWake(message=what, wake=wake(what.seq), started=started)


def ready(
    cursor: int = 0,
    *messages: Message,
    pending: tuple[PendingWake, ...] = (),
    resumed: bool = False,
    operations: tuple[OperationInfo, ...] = (),
) -> Ready:
    """A `ready` with the threads of `messages` (oldest first), at most 50 messages each."""
    by_thread: dict[str, list[Message]] = {}
    for m in messages:
        by_thread.setdefault(m.thread_id, []).append(m)
    threads = [
        ThreadSummary(
            id=name,
            type=thread_ids.kind_of(name),
            head=of[-1].tseq,
            last_seq=of[-1].seq,
            messages=tuple(of[-50:]),
        )
        for name, of in by_thread.items()
    ]
    return Ready(
        participant=ME,
        kind="agent",
        resumed=resumed,
        head=cursor,
        cursor=cursor,
        threads=tuple(sorted(threads, key=lambda t: -t.last_seq)),
        pending=pending,
        operations=operations,
    )


def plan(*incoming: Message, resumed: bool = False, reply_required: bool = True) -> TurnPlan:
    """A turn over these messages, all of one thread."""
    return TurnPlan(
        id=f"{ME}-{incoming[0].id}",
        thread_id=incoming[0].thread_id,
        incoming=incoming,
        reasons=("direct",) * len(incoming),
        reply_required=reply_required,
        resumed=resumed,
    )
