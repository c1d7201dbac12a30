"""Requests: asking another agent for work, and telling what came of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hubbub.errors import OperationError
from hubbub.ids import parse_message_id
from hubbub.mods.operation import Speaking, operation
from hubbub.network.caller import Caller
from hubbub.network.operations.messages import voice
from hubbub.network.queries import LatestRequests
from hubbub.network.requests.book import over
from hubbub.network.router import nearest
from hubbub.network.speaking import cause_position
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import (
    Delegate,
    ListRequests,
    Report,
    Request,
    Requests,
    StopWaiting,
)
from hubbub.protocol.messages import RequestMark
from hubbub.protocol.operations import Done, SendResult

__all__ = ["delegate", "list_requests", "report", "stop_waiting"]


@operation(permission="write", output=SendResult)
def delegate(call: Caller, args: Delegate) -> Speaking:
    """Ask another agent to do something. You are woken once, with its result or when it has failed,
    and need not wait meanwhile."""
    hub, (who, kind, person) = call.hub, voice(call, args)
    known = hub.state.get(args.to)
    if known is None:
        text = f"to: there is no agent {args.to!r}{nearest(args.to, hub.state.agents)}"
        raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)
    if known.kind != "agent":
        text = f"to: {args.to} is no agent; send a message instead"
        raise OperationError(ErrorCode.BAD_REQUEST, text)
    thread = hub.speaker.thread(args.to, who)
    deadline = datetime.fromtimestamp(hub.clock.now() + args.deadline_s, UTC)
    draft = hub.speaker.draft(who, kind, thread, args.task, args, spoken_by=person)
    mark = RequestMark(id="", kind="task", deadline=deadline)
    return Speaking(replace(draft, request=mark))


@operation(permission="write", output=SendResult)
async def report(call: Caller, args: Report) -> Speaking:
    """Tell who has asked you for something what came of it. This ends the request: there is one
    report."""
    hub, (who, kind, person) = call.hub, voice(call, args)
    request = await _visible(call, args.request, who)
    if request.worker != who:
        text = f"request {request.id} is {request.worker}'s to report"
        raise OperationError(ErrorCode.FORBIDDEN, text)
    if request.state != "open":
        raise over(request.id, request)
    if args.cause is not None:
        await _check_cause(call, args.cause, who)
    thread = hub.state.threads.ensure(request.thread_id)
    draft = hub.speaker.draft(who, kind, thread, args.text, args, spoken_by=person)
    outcome = "reported" if args.status == "failed" else ""
    mark = RequestMark(id=request.id, kind=args.status, outcome=outcome)
    return Speaking(replace(draft, request=mark, cause_id=args.cause or request.id))


async def _check_cause(call: Caller, cause: str, who: str) -> None:
    """Raises `OperationError` unless the cause of a report has reached `who`: the log goes by the
    request instead, and does not look at it."""
    state, (seq, _) = call.hub.state, cause_position(cause, who)
    found = await call.hub.writes.causes.ancestor(seq)
    thread = state.threads.by_no(found.thread_no) if found is not None else None
    if thread is None or not state.may_read(thread, who):
        raise OperationError(ErrorCode.UNKNOWN_MESSAGE, f"cause: {cause[:100]} never reached you")


async def _visible(call: Caller, id: str, who: str) -> Request:
    """The request, if `who` takes part in it. Raises `OperationError`."""
    seq = parse_message_id(id)
    request = await call.hub.requests.known(seq) if seq is not None else None
    if request is None or who not in (request.requester, request.worker):
        text = f"there is no request {id[:64]!r} for you; see list_requests"
        raise OperationError(ErrorCode.UNKNOWN_REQUEST, text)
    return request


@operation(tool=False)
async def list_requests(call: Caller, args: ListRequests) -> Requests:
    """List requests, newest first: those that you have made or are to report, all for an owner."""
    whose = None if call.owner else call.participant
    state = "open" if args.state == "open" else None
    bodies = await call.hub.store.read(LatestRequests(whose, state, args.limit))
    return Requests(requests=tuple(map(Request.model_validate_json, bodies)))


@operation(permission="write", tool=False, idempotent=True)
def stop_waiting(call: Caller, args: StopWaiting) -> Done:
    """Say that you no longer wait for the answer to a message that was sent with `awaits`."""
    waits = call.hub.requests.waits
    wait = waits.held.get(args.message)
    if wait is not None and wait.asker == call.participant:
        waits.end(args.message)
    return Done()
