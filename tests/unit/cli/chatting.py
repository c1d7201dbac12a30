"""Messages and frames for the tests of the chat."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from hubbub.cli.chat.lines import Line
from hubbub.cli.chat.render import plain, render
from hubbub.cli.chat.session import Session
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event, Ready
from hubbub.protocol.messages import (
    Card,
    Channel,
    Message,
    Participant,
    SenderKind,
    ThreadSummary,
)
from hubbub.protocol.operations import SendResult

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def said(
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
    """A thread that ends with these messages, all of them read unless `read` says how far."""
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


def result(seq: int, thread: str, tseq: int, **more: tuple[str, ...]) -> SendResult:
    return SendResult(id=f"m{seq}", seq=seq, thread_id=thread, tseq=tseq, **more)


def begun(*threads: ThreadSummary, head: int = 0) -> Session:
    """Ann's session in a network with bob, concierge, #general (joined, open) and #desk (not)."""
    session = Session("ann", UTC)
    session.begin(ready(*threads, head=head))
    session.open("channel.general")
    return session


def shown(lines: list[Line]) -> list[str]:
    """Lines as a pipe would print them."""
    return [plain(render(line, UTC, 100)) for line in lines]
