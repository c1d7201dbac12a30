"""People in charge: stops, the breaker, take-over, approvals and requests, as they travel.

Inputs and outputs of the operations that bound what agents do. The descriptions are what people's
clients and models read.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field, JsonValue

from hubbub.protocol.messages import DEFAULT_DEADLINE_S, Id, Message, Model, ThreadRef, TurnRef
from hubbub.protocol.operations import Input, Speech, Text

__all__ = [
    "Approval",
    "ApprovalState",
    "Approvals",
    "Approve",
    "BreakerState",
    "Breakers",
    "Delegate",
    "Deny",
    "HandBack",
    "ListApprovals",
    "ListBreakers",
    "ListRequests",
    "ListStops",
    "ListTakeovers",
    "ObservedMessage",
    "ReadApproval",
    "ReleaseBreaker",
    "Report",
    "Request",
    "RequestApproval",
    "RequestState",
    "Requests",
    "Resume",
    "StartApproved",
    "Stop",
    "StopScope",
    "StopWaiting",
    "Stopped",
    "Stops",
    "TakeOver",
    "Takeover",
    "Takeovers",
]

Reason = Annotated[str, Field(max_length=1000)]

# Stops ------------------------------------------------------------------------------------

StopScope = Literal["turn", "thread", "agent", "all"]


class Stop(Input):
    scope: StopScope
    target: ThreadRef | None = None
    """The turn's id, the thread's id or the agent's id; nothing for `all`."""
    reason: Reason = ""


class Resume(Input):
    scope: Literal["thread", "agent", "all"]
    target: ThreadRef | None = None
    """The thread's or the agent's id; nothing for `all`."""


class Stopped(Model):
    """Something that a person has stopped. A stop of a turn is over at once and is not listed."""

    scope: StopScope
    target: str | None = None
    """Canonical thread id, agent id or turn id."""
    by: str
    reason: str = ""
    at: AwareDatetime
    turns: int = 0
    """Of the answer to `stop`: running turns that it ended."""
    wakes: int = 0
    """Of the answer to `stop`: wakes that had waited and are dropped."""


class ListStops(Input):
    pass


class Stops(Model):
    stops: tuple[Stopped, ...]


# The breaker ------------------------------------------------------------------------------


class ListBreakers(Input):
    pass


class ReleaseBreaker(Input):
    thread: ThreadRef


class BreakerState(Model):
    """A thread in which too many turns began in a short time; no more do until it is released."""

    thread_id: str
    at: AwareDatetime
    turns: int
    """Turns that had begun within the breaker's time."""
    within_s: float


class Breakers(Model):
    breakers: tuple[BreakerState, ...]


# Take-over --------------------------------------------------------------------------------


class TakeOver(Input):
    agent: Id
    minutes: Annotated[float, Field(gt=0, le=24 * 60)] = 15
    """How long the takeover lasts; taking over again renews it."""


class HandBack(Input):
    agent: Id


class Takeover(Model):
    """A person speaks for an agent: it is parked, and nothing wakes it."""

    agent: str
    by: str
    until: AwareDatetime


class ListTakeovers(Input):
    pass


class Takeovers(Model):
    takeovers: tuple[Takeover, ...]


# Approvals --------------------------------------------------------------------------------

ApprovalState = Literal["pending", "approved", "denied", "expired", "cancelled", "started"]
"""`started`: approved, and its call runs or has run; it can be used no second time."""


class RequestApproval(Input):
    turn: TurnRef
    """The turn that asks: one of the caller's own."""
    call: Annotated[str, Field(min_length=1, max_length=200)]
    """The call within the turn (its step and id). Asking for the same call again gives the same
    approval, as it stands by then."""
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=4000)] = ""
    """What the tool does."""
    arguments: dict[str, JsonValue]
    """Exactly those with which it is to run."""
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None
    """The JSON Schema of its arguments, for people who change them."""
    reason: Reason = ""
    """Why a person must be asked."""


class ReadApproval(Input):
    id: Annotated[str, Field(min_length=1, max_length=300)]


class ListApprovals(Input):
    state: Literal["pending", "all"] = "pending"
    agent: Id | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class Approve(Input):
    id: Annotated[str, Field(min_length=1, max_length=300)]
    hash: Annotated[str, Field(min_length=8, max_length=64)] | None = None
    """That of the arguments which were looked at; another one is refused."""
    arguments: dict[str, JsonValue] | None = None
    """In place of those that were asked for; left out: as asked."""
    reason: Reason = ""


class Deny(Input):
    id: Annotated[str, Field(min_length=1, max_length=300)]
    reason: Reason = ""
    """The agent is notified."""


class StartApproved(Input):
    id: Annotated[str, Field(min_length=1, max_length=300)]


class Approval(Model):
    """A tool call that waits for a person, or was decided: also its audit record."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: str
    agent: str
    turn: str
    thread_id: str
    """Where the turn works."""
    call: str
    tool: str
    description: str = ""
    arguments: dict[str, JsonValue]
    """As the agent asked."""
    hash: str
    """SHA-256 (hex) of the arguments as asked, in canonical JSON (sorted keys, no spaces)."""
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None
    reason: str = ""
    """Why a person must be asked."""
    approvers: tuple[str, ...] = ()
    """Who may decide; empty: the owners."""
    may_decide: bool = False
    """Whether the reader may."""
    asked_at: AwareDatetime
    expires_at: AwareDatetime
    """Not decided by then is a no."""
    state: ApprovalState
    decided_by: str | None = None
    decided_at: AwareDatetime | None = None
    verdict: str = ""
    """The reason that was given with the decision."""
    final: dict[str, JsonValue] | None = None
    """Of an approved one: the arguments to run with."""
    started_at: AwareDatetime | None = None


class Approvals(Model):
    approvals: tuple[Approval, ...]
    """Newest first; those that the reader may decide, or may otherwise see."""
    more: bool = False


# Requests ---------------------------------------------------------------------------------

RequestState = Literal["open", "result", "failed"]


class Delegate(Speech):
    to: Id
    """The agent that is to do it."""
    task: Text
    """What it is to do, with all that it needs to know."""
    deadline_s: Annotated[float, Field(gt=0, le=7 * 24 * 3600)] = DEFAULT_DEADLINE_S
    """Seconds after which it has failed (`timeout`)."""


class Report(Speech):
    request: Annotated[str, Field(min_length=1, max_length=64)]
    """The request's id: that of the message which asked (m42)."""
    status: Literal["result", "failed", "question"]
    text: Text
    """The result, what went wrong, or what you must know to go on."""


class ListRequests(Input):
    id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """Only this one (m42), in whatever state; left out: the newest."""
    state: Literal["open", "all"] = "open"
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class Request(Model):
    """Work that one participant has asked of another: it ends exactly once."""

    id: str
    """That of the message which asked."""
    requester: str
    worker: str
    thread_id: str
    task: str
    asked_at: AwareDatetime
    deadline: AwareDatetime
    state: RequestState
    outcome: str = ""
    """Of a failed one: a code such as `timeout`, `stopped`, `no_report`, `reported`."""
    answer: str | None = None
    """Id of the message that ended it."""
    question: str | None = None
    """Id of the message by which the worker has last asked back."""
    reply: str | None = None
    """Id of the requester's message that replies to it; None: the worker waits for that."""


class Requests(Model):
    requests: tuple[Request, ...]
    """Newest first; those that the reader takes part in, all for an owner."""


class StopWaiting(Input):
    message: Annotated[str, Field(min_length=1, max_length=64)]
    """The message that was sent with `awaits`."""


class ObservedMessage(Model):
    """What a person who speaks for an agent observes: a message that reached the agent."""

    agent: str
    message: Message
