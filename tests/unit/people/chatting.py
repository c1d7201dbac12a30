"""Messages, frames and states of a person's client."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from hubbub.people.chat.console import plain, render
from hubbub.people.chat.session import ChatSession
from hubbub.people.shown import Line
from hubbub.protocol import thread_ids
from hubbub.protocol.control import Approval, BreakerState, Stopped, StopScope, Takeover
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Card, Channel, Message, Participant, SenderKind, ThreadSummary
from hubbub.protocol.operations import SendResult

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def posted(
    seq: int,
    text: JsonValue = "hi",
    *,
    sender: str = "bob",
    thread: str = "channel.general",
    tseq: int | None = None,
    mentions: tuple[str, ...] = (),
    kind: SenderKind = "agent",
    at: datetime | None = None,
) -> Message:
    return Message(
        id=f"m{seq}",
        seq=seq,
        thread_id=thread,
        tseq=seq if tseq is None else tseq,
        sender_id=sender,
        sender_kind=kind,
        type=thread_ids.kind_of(thread),
        content=text,
        mentions=mentions,
        interaction_id=f"i{seq}",
        hop=0,
        sent_at=at or NOON + timedelta(minutes=seq),
    )


def event(message: Message) -> Event:
    return Event(seq=message.seq, prev=message.seq - 1, tseq=message.tseq, message=message)


def thread(*messages: Message, read: int | None = None) -> ThreadSummary:
    """A thread that ends with these messages, all read unless `read` is given."""
    last = messages[-1]
    return ThreadSummary(
        id=last.thread_id,
        type=last.type,
        head=last.tseq,
        last_seq=last.seq,
        messages=messages,
        read=last.tseq if read is None else read,
    )


def person(name: str, kind: str = "agent", *, present: bool = True, about: str = "") -> Participant:
    return Participant.model_validate(
        {"id": name, "kind": kind, "present": present, "card": Card(description=about)}
    )


def ready(
    *threads: ThreadSummary,
    resumed: bool = False,
    head: int = 0,
    people: tuple[Participant, ...] | None = None,
    channels: tuple[Channel, ...] | None = None,
) -> Ready:
    if people is None:
        people = (person("ann", "human"), person("bob"), person("concierge", about="knows all"))
    if channels is None:
        channels = (Channel(name="general", joined=True), Channel(name="desk", description="work"))
    return Ready(
        participant="ann",
        kind="human",
        resumed=resumed,
        head=head,
        cursor=0,
        threads=threads,
        participants=people,
        channels=channels,
    )


def result(
    seq: int, thread: str, tseq: int, text: str = "x", **more: tuple[str, ...]
) -> SendResult:
    """The hub's result for a message that ann sent at noon."""
    mine = posted(seq, text, sender="ann", thread=thread, tseq=tseq, kind="human", at=NOON)
    return SendResult(id=mine.id, seq=seq, thread_id=thread, tseq=tseq, message=mine, **more)


def new_session(*threads: ThreadSummary, head: int = 0) -> ChatSession:
    """Ann's session with bob, concierge, #general (joined and open) and #desk (not joined)."""
    session = ChatSession("ann")
    session.begin(ready(*threads, head=head))
    session.open("channel.general")
    return session


def shown(lines: list[Line]) -> list[str]:
    """Lines as a pipe would print them."""
    return [plain(render(line)) for line in lines]


# Control ------------------------------------------------------------------------------------------


def approval(id: str = "a1", **more: object) -> Approval:
    """Bob asks to delete a file; ann can decide."""
    fields: dict[str, object] = {
        "id": id,
        "agent": "bob",
        "turn": "bob-m4",
        "thread_id": "channel.general",
        "call": "1.c1",
        "tool": "delete_file",
        "arguments": {"path": "a.txt"},
        "hash": "0" * 64,
        "may_decide": True,
        "asked_at": NOON,
        "expires_at": NOON,
        "state": "pending",
    }
    return Approval.model_validate({**fields, **more})


def stopped(scope: StopScope, target: str | None = None, by: str = "eve") -> Stopped:
    return Stopped(scope=scope, target=target, by=by, reason="too loud", at=NOON)


def breaker(thread: str) -> BreakerState:
    return BreakerState(thread_id=thread, at=NOON, turns=61, within_s=60)


def takeover(agent: str, by: str) -> Takeover:
    return Takeover(agent=agent, by=by, until=NOON)


def signal(type: str, data: object, sender: str = "hub", thread: str | None = None) -> Signal:
    return Signal.model_validate(
        {"type": type, "data": data, "sender": sender, "thread_id": thread}
    )
