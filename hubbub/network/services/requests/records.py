"""A request as the store, its messages and errors have it. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from hubbub.errors import OperationError
from hubbub.ids import message_id, parse_message_id
from hubbub.network.log import Entry
from hubbub.network.records import RequestKept
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Request
from hubbub.protocol.messages import Draft, RequestMark

__all__ = ["asked_by", "ended_by", "failure", "kept", "over", "position"]


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


def ended_by(request: Request, entry: Entry, mark: RequestMark) -> Request:
    """The request after a numbered message that ends it."""
    state = "result" if mark.kind == "result" else "failed"
    ended = {"state": state, "outcome": mark.outcome, "answer": message_id(entry.seq)}
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


def kept(request: Request) -> RequestKept:
    """The request as the store keeps it."""
    return RequestKept(
        position(request.id),
        request.requester,
        request.worker,
        request.state,
        request.deadline.timestamp(),
        request.model_dump_json(exclude_none=True),
    )
