"""Requests as records, messages and errors, and the graph of participants waiting for each other.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.ids import message_id, parse_message_id
from hubbub.mods.operation import over_limit
from hubbub.network.log import Entry
from hubbub.network.records import RequestSaved
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Request
from hubbub.protocol.messages import Draft, RequestMark

__all__ = [
    "RequestsAwaitingReply",
    "Wait",
    "Waits",
    "failure_draft",
    "held_up",
    "hop_limit_error",
    "opened_request",
    "position",
    "request_over_error",
    "request_record",
    "updated_request",
]


def position(id: str) -> int:
    """The position of the message that opened a request; 0 if `id` is not a message id."""
    return parse_message_id(id) or 0


def opened_request(entry: Entry, mark: RequestMark, now: float) -> Request:
    """The request that a numbered message opens."""
    draft, at = entry.draft, datetime.fromtimestamp(now, UTC)
    content = draft.content
    return Request(
        id=message_id(entry.seq),
        requester=draft.sender_id,
        worker=draft.recipients[0],
        thread_id=draft.thread_id,
        task=content if isinstance(content, str) else draft.text_representation or "",
        asked_at=at,
        deadline=mark.deadline or at,
        state="open",
        untrusted=draft.untrusted,
    )


def updated_request(request: Request, entry: Entry, mark: RequestMark) -> Request:
    """The request after a numbered message that asks about it, replies, or ends it."""
    id = message_id(entry.seq)
    if mark.kind == "question":
        return request.model_copy(update={"question": id, "reply": None})
    if mark.kind == "reply":
        return request.model_copy(update={"reply": id})
    ended = {"state": mark.kind, "outcome": mark.outcome, "answer": id}
    return request.model_copy(update=ended)


def held_up(open: Mapping[int, Request], since: Mapping[int, float]) -> dict[int, float]:
    """Of the open requests, those that are held up `since` these times, and those whose workers
    wait for one of them."""
    held, askers = dict[int, float](), dict[str, float]()
    for seq in sorted(open, reverse=True):
        began = since.get(seq, askers.get(open[seq].worker))
        if began is not None:
            held[seq] = askers[open[seq].requester] = began
    return held


def failure_draft(request: Request, outcome: str, why: str) -> Draft:
    """The hub's message that fails a request. It mentions the requester, to wake it."""
    text = f"{request.worker} did not do what {request.id} asked for: {why}."
    return Draft(
        sender_id="hub",
        sender_kind="system",
        thread_id=request.thread_id,
        type="direct",
        content={"notice": "request", "request": request.id, "code": outcome},
        recipients=tuple(sorted((request.requester, request.worker))),
        mentions=(request.requester,),
        text_representation=text,
        cause_id=request.id,
        purpose=RequestMark(id=request.id, kind="failed", outcome=outcome),
    )


def request_over_error(id: str, request: Request | None) -> OperationError:
    """The error for a request that has ended or is about to."""
    if request is None or request.state == "open":
        return OperationError(ErrorCode.REQUEST_OVER, f"request {id} has ended already")
    outcome = f" ({request.outcome})" if request.outcome else ""
    by = f" with {request.answer}" if request.answer else ""
    details = request.model_dump(mode="json", include={"state", "outcome", "answer"})
    return OperationError(
        ErrorCode.REQUEST_OVER,
        f"request {id} has ended{by}: {request.state}{outcome}",
        details={key: value for key, value in details.items() if value},
    )


def hop_limit_error(entry: Entry) -> OperationError:
    """The error for a request whose answer would exceed the interaction's hop limit."""
    return OperationError(
        ErrorCode.HOP_LIMIT,
        f"interaction {entry.interaction} has no hops left for a result; "
        "do it yourself, or answer with what you have",
        details={"interaction_id": entry.interaction, "hops": entry.hop_limit},
    )


class RequestsAwaitingReply:
    """Requests whose workers asked a question and wait for the reply."""

    def __init__(self) -> None:
        self.by_thread: dict[str, dict[str, Request]] = {}
        """By thread, then by id, in the order of the questions. Read only."""

    def take(self, request: Request) -> None:
        """Update the request; it is dropped unless it waits for a reply."""
        self.drop(request)
        if request.question is not None and request.reply is None:
            self.by_thread.setdefault(request.thread_id, {})[request.id] = request

    def drop(self, request: Request) -> None:
        """Forget the request, as it waits for no reply."""
        waits = self.by_thread.get(request.thread_id, {})
        waits.pop(request.id, None)
        if not waits:
            self.by_thread.pop(request.thread_id, None)

    def replied(self, draft: Draft) -> Request | None:
        """The request whose question a message replies to: the one it quotes, or the first that its
        sender made."""
        quoted = draft.quote.message_id if draft.quote is not None else None
        for request in self.by_thread.get(draft.thread_id, {}).values():
            if request.requester == draft.sender_id and quoted in (None, request.question):
                return request
        return None


def request_record(request: Request) -> RequestSaved:
    """The request as a record."""
    return RequestSaved(
        position(request.id),
        request.requester,
        request.worker,
        request.state,
        request.deadline.timestamp(),
        request.model_dump_json(exclude_none=True),
    )


# Waits for answers: a graph that never has a cycle.

MAX_WAITS = 200
"""Concurrent waits of one participant."""


class Wait(NamedTuple):
    asker: str
    awaited: str
    turn: str | None = None
    """The asker's turn that sent the question."""


class Waits:
    """Waits by key. The caller chooses the key; once committed, it is the question's message id."""

    def __init__(self) -> None:
        self.held: dict[Hashable, Wait] = {}
        """All waits. Read only."""
        self._of: dict[str, dict[Hashable, Wait]] = {}
        """By asker."""

    def begin(self, key: Hashable, wait: Wait) -> None:
        """Add a wait. Raises `OperationError` if it would close a cycle or exceed the limit."""
        if len(self._of.get(wait.asker, ())) >= MAX_WAITS:
            raise over_limit(f"you wait for {MAX_WAITS} answers already; see stop_waiting")
        path = self._path(wait.awaited, wait.asker)
        if path is not None:
            cycle = [wait.asker, *path]
            raise OperationError(
                ErrorCode.WAIT_CYCLE,
                f"{' -> '.join(cycle)} would wait for each other forever; "
                "answer first, or send the message without waiting",
                details={"cycle": cycle},
            )
        self.held[key] = wait
        self._of.setdefault(wait.asker, {})[key] = wait

    def rename(self, key: Hashable, other: Hashable) -> None:
        """Change the key of a wait to `other`."""
        wait = self.end(key)
        if wait is not None:
            self.held[other] = wait
            self._of.setdefault(wait.asker, {})[other] = wait

    def end(self, key: Hashable) -> Wait | None:
        """Remove and return the wait; None if there is none."""
        wait = self.held.pop(key, None)
        if wait is not None:
            of = self._of[wait.asker]
            del of[key]
            if not of:
                del self._of[wait.asker]
        return wait

    def wait_for(self, awaited: str, askers: Iterable[str]) -> bool:
        """Whether any of `askers` waits for `awaited`."""
        if not self._of:
            return False
        waits = (wait for asker in askers for wait in self._of.get(asker, {}).values())
        return any(wait.awaited == awaited for wait in waits)

    def answered(self, by: str, to: Iterable[str]) -> None:
        """End the waits for `by` of the participants that it sent a message to."""
        for asker in to:
            self._end_all(asker, lambda wait: wait.awaited == by)

    def turn_over(self, asker: str, turn: str) -> None:
        """End the waits of a turn that has ended."""
        self._end_all(asker, lambda wait: wait.turn == turn)

    def left(self, asker: str) -> None:
        """End all waits of a participant that left."""
        self._end_all(asker, lambda wait: True)

    def _end_all(self, asker: str, which: Callable[[Wait], bool]) -> None:
        for key in [key for key, wait in self._of.get(asker, {}).items() if which(wait)]:
            self.end(key)

    def _path(self, start: str, goal: str) -> list[str] | None:
        """A shortest path of waits from `start` to `goal`; None if there is none."""
        previous: dict[str, str] = {start: ""}
        queue = [start]
        for name in queue:
            if name == goal:
                path = [name]
                while previous[path[0]]:
                    path.insert(0, previous[path[0]])
                return path
            for wait in self._of.get(name, {}).values():
                if wait.awaited not in previous:
                    previous[wait.awaited] = name
                    queue.append(wait.awaited)
        return None
