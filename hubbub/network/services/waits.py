"""A request as the store, its messages and errors have it; and who waits for whom. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
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
    "asked_by",
    "changed",
    "failure",
    "kept",
    "no_way_back",
    "over",
    "position",
]


def position(id: str) -> int:
    """Where the message stands that asked; 0 for what is no message id."""
    return parse_message_id(id) or 0


def asked_by(entry: Entry, mark: RequestMark, now: float) -> Request:
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
    )


def changed(request: Request, entry: Entry, mark: RequestMark) -> Request:
    """The request after a numbered message that asks back, replies, or ends it."""
    id = message_id(entry.seq)
    if mark.kind == "question":
        return request.model_copy(update={"question": id, "reply": None})
    if mark.kind == "reply":
        return request.model_copy(update={"reply": id})
    ended = {"state": mark.kind, "outcome": mark.outcome, "answer": id}
    return request.model_copy(update=ended)


def failure(request: Request, outcome: str, why: str) -> Draft:
    """The hub's word that ends a request. Who asked is mentioned: that is whom it wakes."""
    text = f"{request.worker} has not done what {request.id} asked for: {why}."
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


def over(id: str, request: Request | None) -> OperationError:
    """The request has ended, or is just about to."""
    if request is None or request.state == "open":
        return OperationError(ErrorCode.REQUEST_OVER, f"request {id} has ended already")
    outcome = f" ({request.outcome})" if request.outcome else ""
    by = f" with {request.answer}" if request.answer else ""
    told = request.model_dump(mode="json", include={"state", "outcome", "answer"})
    return OperationError(
        ErrorCode.REQUEST_OVER,
        f"request {id} has ended{by}: {request.state}{outcome}",
        details={key: value for key, value in told.items() if value},
    )


def no_way_back(entry: Entry) -> OperationError:
    """An answer would be one message too many for the interaction."""
    return OperationError(
        ErrorCode.HOP_LIMIT,
        f"interaction {entry.interaction} has no hops left for a result to come back; "
        "do it yourself, or answer with what there is",
        details={"interaction_id": entry.interaction, "hops": entry.hop_limit},
    )


class RequestsAwaitingReply:
    """Requests whose workers have asked back, and wait for the reply."""

    def __init__(self) -> None:
        self.by_thread: dict[str, dict[str, Request]] = {}
        """By thread, then by id, in the order of the questions. To be looked at only."""

    def take(self, request: Request) -> None:
        """The request as it is now."""
        self.drop(request)
        if request.question is not None and request.reply is None:
            self.by_thread.setdefault(request.thread_id, {})[request.id] = request

    def drop(self, request: Request) -> None:
        """It waits for no reply."""
        known = self.by_thread.get(request.thread_id, {})
        known.pop(request.id, None)
        if not known:
            self.by_thread.pop(request.thread_id, None)

    def replied(self, draft: Draft) -> Request | None:
        """The request that a message says more about: the one whose question it quotes, or the
        first of those that its sender has made."""
        quoted = draft.quote.message_id if draft.quote is not None else None
        for request in self.by_thread.get(draft.thread_id, {}).values():
            if request.requester == draft.sender_id and quoted in (None, request.question):
                return request
        return None


def kept(request: Request) -> RequestSaved:
    """The request as the store keeps it."""
    return RequestSaved(
        position(request.id),
        request.requester,
        request.worker,
        request.state,
        request.deadline.timestamp(),
        request.model_dump_json(exclude_none=True),
    )


# Who does nothing until another one has answered: a graph that never has a circle.

MOST_WAITS = 200
"""Questions of one participant whose answers it waits for at the same time."""


class Wait(NamedTuple):
    asker: str
    awaited: str
    turn: str | None = None
    """The asker's turn that asks."""


class Waits:
    """Waits by a key: whatever the caller calls the question, its message's id in the end."""

    def __init__(self) -> None:
        self.held: dict[Hashable, Wait] = {}
        """All of them. To be looked at only."""
        self._of: dict[str, dict[Hashable, Wait]] = {}
        """By asker."""

    def begin(self, key: Hashable, wait: Wait) -> None:
        """The asker waits from now on. Raises `OperationError` if that would close a circle, or be
        one wait too many."""
        if len(self._of.get(wait.asker, ())) >= MOST_WAITS:
            raise over_limit(f"you wait for {MOST_WAITS} answers already; see stop_waiting")
        path = self._path(wait.awaited, wait.asker)
        if path is not None:
            circle = [wait.asker, *path]
            raise OperationError(
                ErrorCode.WAIT_CYCLE,
                f"nobody would ever answer: {' -> '.join(circle)} would wait for each other; "
                "answer first, or send the message without waiting",
                details={"cycle": circle},
            )
        self.held[key] = wait
        self._of.setdefault(wait.asker, {})[key] = wait

    def rename(self, key: Hashable, other: Hashable) -> None:
        """The question is called `other` from now on."""
        wait = self.end(key)
        if wait is not None:
            self.held[other] = wait
            self._of.setdefault(wait.asker, {})[other] = wait

    def end(self, key: Hashable) -> Wait | None:
        """Nobody waits for that any more. None if nobody did."""
        wait = self.held.pop(key, None)
        if wait is not None:
            of = self._of[wait.asker]
            del of[key]
            if not of:
                del self._of[wait.asker]
        return wait

    def wait_for(self, awaited: str, askers: Iterable[str]) -> bool:
        """Whether one of these waits for that one."""
        if not self._of:
            return False
        waits = (wait for asker in askers for wait in self._of.get(asker, {}).values())
        return any(wait.awaited == awaited for wait in waits)

    def answered(self, by: str, to: Iterable[str]) -> None:
        """`by` has said something to these: whoever of them waits for it has its answer."""
        for asker in to:
            self._end_all(asker, lambda wait: wait.awaited == by)

    def turn_over(self, asker: str, turn: str) -> None:
        """The turn asks for nothing any more."""
        self._end_all(asker, lambda wait: wait.turn == turn)

    def left(self, asker: str) -> None:
        """The asker is gone."""
        self._end_all(asker, lambda wait: True)

    def _end_all(self, asker: str, which: Callable[[Wait], bool]) -> None:
        for key in [key for key, wait in self._of.get(asker, {}).items() if which(wait)]:
            self.end(key)

    def _path(self, start: str, goal: str) -> list[str] | None:
        """A shortest way from one to the other along those who are waited for."""
        came: dict[str, str] = {start: ""}
        queue = [start]
        for name in queue:
            if name == goal:
                way = [name]
                while came[way[0]]:
                    way.insert(0, came[way[0]])
                return way
            for wait in self._of.get(name, {}).values():
                if wait.awaited not in came:
                    came[wait.awaited] = name
                    queue.append(wait.awaited)
        return None
