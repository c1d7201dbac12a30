"""Control by people: stops, the breaker, takeovers, approvals and requests, as wire data.

Inputs and outputs of the operations that control agents. People's clients and models read the
descriptions.
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
    """The id of the turn, thread or agent; left out for `all`."""
    reason: Reason = ""


class Resume(Input):
    scope: Literal["thread", "agent", "all"]
    target: ThreadRef | None = None
    """The id of the thread or agent; left out for `all`."""


class Stopped(Model):
    """A stop by a person. A stop of a turn takes effect once and is not listed."""

    scope: StopScope
    target: str | None = None
    """Canonical thread id, agent id or turn id."""
    by: str
    reason: str = ""
    at: AwareDatetime
    turns: int = 0
    """In the answer to `stop`: the number of running turns it ended."""
    wakes: int = 0
    """In the answer to `stop`: the number of pending wakes it dropped."""


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
    """A thread where too many turns began in a short time; none begin until it is released."""

    thread_id: str
    at: AwareDatetime
    turns: int
    """Turns that began within the breaker's window."""
    within_s: float


class Breakers(Model):
    breakers: tuple[BreakerState, ...]


# Takeovers --------------------------------------------------------------------------------


class TakeOver(Input):
    agent: Id
    minutes: Annotated[float, Field(gt=0, le=24 * 60)] = 15
    """How long the takeover lasts; taking over again renews it."""


class HandBack(Input):
    agent: Id


class Takeover(Model):
    """A person speaks for an agent, which nothing wakes meanwhile."""

    agent: str
    by: str
    until: AwareDatetime


class ListTakeovers(Input):
    pass


class Takeovers(Model):
    takeovers: tuple[Takeover, ...]


# Approvals --------------------------------------------------------------------------------

ApprovalState = Literal["pending", "approved", "denied", "expired", "cancelled", "started"]
"""`started`: approved, and its call is running or has run; it cannot be used again."""


class RequestApproval(Input):
    turn: TurnRef
    """One of the caller's turns."""
    call: Annotated[str, Field(min_length=1, max_length=200)]
    """The call within the turn (its step and id). Asking for the same call again returns the same
    approval in its current state."""
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=4000)] = ""
    """What the tool does."""
    arguments: dict[str, JsonValue]
    """The exact arguments to run with."""
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None
    """The JSON Schema of its arguments, to check changes by people."""
    reason: Reason = ""
    """Why approval is needed."""


class ReadApproval(Input):
    id: Annotated[str, Field(min_length=1, max_length=300)]


class ListApprovals(Input):
    state: Literal["pending", "all"] = "pending"
    agent: Id | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class Approve(Input):
    id: Annotated[str, Field(min_length=1, max_length=300)]
    hash: Annotated[str, Field(min_length=8, max_length=64)] | None = None
    """The hash of the arguments you reviewed; refused if it does not match."""
    arguments: dict[str, JsonValue] | None = None
    """Replaces the requested arguments; left out: as requested."""
    reason: Reason = ""


class Deny(Input):
    id: Annotated[str, Field(min_length=1, max_length=300)]
    reason: Reason = ""
    """The agent receives it."""


class StartApproved(Input):
    id: Annotated[str, Field(min_length=1, max_length=300)]


class Approval(Model):
    """A tool call that waits for a decision, or was decided; also its audit record."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: str
    agent: str
    turn: str
    thread_id: str
    """The turn's thread."""
    call: str
    tool: str
    description: str = ""
    arguments: dict[str, JsonValue]
    """As requested by the agent."""
    hash: str
    """SHA-256 (hex) of the requested arguments, in canonical JSON (sorted keys, no spaces)."""
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None
    reason: str = ""
    """Why approval is needed."""
    approvers: tuple[str, ...] = ()
    """The people who can decide; empty for the owners."""
    may_decide: bool = False
    """Whether the reader can decide."""
    asked_at: AwareDatetime
    expires_at: AwareDatetime
    """Without a decision by then it counts as denied."""
    state: ApprovalState
    decided_by: str | None = None
    decided_at: AwareDatetime | None = None
    verdict: str = ""
    """The reason for the decision."""
    final: dict[str, JsonValue] | None = None
    """If approved: the arguments to run with."""
    started_at: AwareDatetime | None = None


class Approvals(Model):
    approvals: tuple[Approval, ...]
    """Newest first; those visible to the reader."""
    more: bool = False


# Requests ---------------------------------------------------------------------------------

RequestState = Literal["open", "result", "failed"]


class Delegate(Speech):
    to: Id
    """The agent to do it."""
    task: Text
    """What to do, with everything it needs to know."""
    deadline_s: Annotated[float, Field(gt=0, le=7 * 24 * 3600)] = DEFAULT_DEADLINE_S
    """Seconds after which it fails (`timeout`)."""


class Report(Speech):
    request: Annotated[str, Field(min_length=1, max_length=64)]
    """The request's id: the message with the task (m42)."""
    status: Literal["result", "failed", "question"]
    text: Text
    """The result, the failure, or the question you need answered to continue."""


class ListRequests(Input):
    id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """Only this one (m42), in any state; left out: the newest."""
    own: bool = False
    """Only those that you made or were given, even if you are an owner."""
    state: Literal["open", "all"] = "open"
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class Request(Model):
    """Work that one participant asks of another; it ends exactly once."""

    id: str
    """The id of the message with the task."""
    requester: str
    worker: str
    thread_id: str
    task: str
    asked_at: AwareDatetime
    deadline: AwareDatetime
    state: RequestState
    outcome: str = ""
    """For a failed request: a code such as `timeout`, `stopped`, `no_report`, `reported`."""
    answer: str | None = None
    """Id of the message that ended it."""
    question: str | None = None
    """Id of the worker's last question."""
    reply: str | None = None
    """Id of the requester's reply to the question; None while the worker waits for it."""
    untrusted: bool = False
    """Whether the task carries content from outside the network."""


class Requests(Model):
    requests: tuple[Request, ...]
    """Newest first; those that the reader takes part in, or all for an owner."""


class StopWaiting(Input):
    message: Annotated[str, Field(min_length=1, max_length=64)]
    """The message that was sent with `awaits`."""


class ObservedMessage(Model):
    """A message that reached an agent, for the person who took it over."""

    agent: str
    message: Message
