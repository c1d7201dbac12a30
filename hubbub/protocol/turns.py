"""The record of a turn: an agent's input, actions and costs. Prompts are stored as rendered."""

from __future__ import annotations

from hashlib import sha256
from math import fsum
from operator import not_
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, JsonValue

from hubbub.protocol.messages import MessageRef, Model, Name, ReplyNeed, ThreadRef, TurnRef

__all__ = [
    "ChangedCall",
    "Compressed",
    "Label",
    "Layer",
    "Outcome",
    "PromptParts",
    "Role",
    "Steering",
    "Step",
    "ToolCallRecord",
    "Turn",
    "TurnEnd",
    "TurnStart",
    "WaitStrategy",
    "Window",
    "part_id",
]

Outcome = Literal[
    "finished",
    "no_action",
    "max_steps",
    "timeout",
    "loop_detected",
    "cancelled",
    "model_error",
    "handler_error",
    "budget_exhausted",
]
"""How a turn ended. `handler_error`: an exception in a Python agent's handler, or crashes of three
processes in a row; `budget_exhausted`: the hub refused the budget for a model call."""


MAX_ITEMS = 2**20
"""Limit for parts of one kind in a record, and for characters of a name in it. No frame has as
many: an agent records whatever its model produces, cut to the limits of its hub."""
Tokens = Annotated[int, Field(ge=0, le=10**12)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
Label = Annotated[str, Field(max_length=MAX_ITEMS)]
"""A name given by a model, its endpoint or a config."""
Labels = Annotated[tuple[Label, ...], Field(max_length=MAX_ITEMS, fail_fast=True)]
Notes = Annotated[tuple[str, ...], Field(max_length=MAX_ITEMS, fail_fast=True)]


class ChangedCall(Model):
    """The changes that a person made to a call when approving it."""

    by: Name
    arguments: dict[str, JsonValue]
    """The arguments it ran with."""
    names: Labels
    """The arguments that were changed."""


class ToolCallRecord(Model):
    """One tool call of a step. `result` is None until it has run.

    Times are those of the call with the result; a call that never ran (`finish`, an unknown tool)
    has none.
    """

    id: Label
    name: Label
    arguments: JsonValue
    """As given by the model: a JSON object, or the raw text if it did not parse."""
    result: str | None = None
    """The result as shown to the model."""
    error: Label | None = None
    """The kind of failure, for example `unknown_tool`; None if the call succeeded."""
    at_ms: Milliseconds | None = None
    """When it began: milliseconds after the turn's start, as `Step.at_ms`."""
    duration_ms: float | None = None
    """Its duration in milliseconds, including all attempts and the pauses between them."""
    attempts: int = Field(default=1, ge=1, le=1000)
    """2 or more: it failed temporarily and was retried; the result is from the last attempt."""
    changed: ChangedCall | None = None
    """None if it ran with the model's arguments."""
    external: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether the question's sender runs it: the turn ends, and their result starts the next
    one."""

    @property
    def ran_with(self) -> JsonValue:
        """The arguments that it ran with, or would run with."""
        return self.arguments if self.changed is None else self.changed.arguments


WaitStrategy = Literal["all", "any", "majority"]


class Compressed(Model):
    """A step as summarised by the model."""

    n: int = Field(ge=1, le=10**6)
    text: str


class Layer(Model):
    """A part of a model's prompt. Sizes are tokens."""

    name: Label
    """`system`, `tools`, `knowledge`, `history`, `incoming` or `steps`."""
    tokens: int = Field(ge=0)
    cut: int = Field(default=0, ge=0)
    """Tokens that were cut from it."""


class Window(Model):
    """How a prompt fills the model's context window. Sizes are tokens."""

    size: int | None = None
    """Size of the window; None if unknown, in which case nothing is cut."""
    reserve: int = 0
    """Reserved for the answer."""
    layers: Annotated[tuple[Layer, ...], Field(max_length=MAX_ITEMS, fail_fast=True)] = ()
    exact: bool = False
    """Whether the sizes are counted with the model's own vocabulary rather than estimated."""


class Steering(Model):
    """A person's message that arrived during the turn, and was added to it."""

    message: MessageRef
    """Its id."""
    reply: ReplyNeed = "optional"
    """The reply that its wake asks for."""
    text: str
    """The message as shown to the model."""


Role = Literal["router", "planner", "executor", "reflector"]
"""The role that answers, in an agent that is a role or a pipeline of them."""
Made = Literal["run", "ask", "confirm", "say", "join"]
"""The kind of a step made by the runtime itself: it runs steps of a plan, asks a person a question
or whether to continue (both end the turn), sends the answer, or collects the results of helpers
that ended in the background."""


class Step(Model):
    """One answer of the model and its effects; in a Python agent, one run of a handler.

    Times are monotonic offsets from the start of the turn. After a crash they continue where the
    recorded steps end, without the time between processes, so that a turn with `attempts` above 1
    can have taken longer than its offsets.
    """

    n: int = Field(ge=1, le=10**6)
    text: str | None = None
    """Text in addition to calls, or instead of them."""
    calls: Annotated[tuple[ToolCallRecord, ...], Field(max_length=MAX_ITEMS, fail_fast=True)] = ()
    tokens_in: Tokens = 0
    tokens_out: Tokens = 0
    cost_usd: Dollars | None = None
    """The answer's cost; None if the model has no price."""
    finish_reason: Label | None = None
    wait: WaitStrategy = "all"
    """Which of several calls the step waits for; the others are cancelled."""
    reasoning: str | None = None
    """The model's reasoning before it acted; never sent."""
    discards: Annotated[tuple[int, ...], Field(max_length=MAX_ITEMS, fail_fast=True)] = ()
    """Earlier steps that the model no longer needs to see."""
    compresses: Annotated[tuple[Compressed, ...], Field(max_length=MAX_ITEMS, fail_fast=True)] = ()
    """Earlier steps that the model summarised."""
    window: Window | None = None
    """The prompt's layers, and how much of each was cut."""
    steered: Annotated[tuple[Steering, ...], Field(max_length=MAX_ITEMS, fail_fast=True)] = ()
    """Messages shown to the model for the first time before this answer, with which people steer a
    running turn. Recording the step makes their wakes part of the turn."""
    dialect: Label | None = None
    """How tools are called from this step on, if that changed: see `TurnStart.dialect`."""
    made: Made | None = None
    """None if a model or a handler made the step."""
    role: Role | None = None
    """The role that answered; None in an agent without roles."""
    plan_step: int | None = Field(default=None, ge=1, le=10**6)
    """executor: the plan's step that the answer is for."""
    model: Label | None = None
    """The model that answered, if the turn uses several."""
    untrusted: Labels = ()
    """Sources of content from outside the network that was first read in this step: names of tools,
    ids of messages."""
    calls_cut: bool = False
    """Whether its calls are cut in the record, because of the hub's limits."""
    notes: Notes = ()
    """Other actions of the runtime: a fallback, a retried request, a failed hook."""
    at_ms: Milliseconds | None = None
    """When the model or the handler was called: milliseconds after the turn's start."""
    duration_ms: float | None = None
    """Milliseconds until the model's answer (its calls run after that), or the handler's end (its
    calls ran within)."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for people in addition to texts, calls and figures, one line each."""
        plan_step = f", for step {self.plan_step}" if self.plan_step else ""
        lines = [f"role: {self.role}{plan_step}" if self.role else ""]
        lines.append(f"model: {self.model}" if self.model else "")
        lines.append(_MADE[self.made] if self.made else "")
        lines.append(f"untrusted: {', '.join(self.untrusted)}" if self.untrusted else "")
        lines.append("its calls are not recorded in full" if self.calls_cut else "")
        return (*filter(None, lines), *self.notes)


_MADE: dict[Made, str] = {
    "run": "runs steps of the plan",
    "ask": "asks a person",
    "confirm": "asks a person whether to continue",
    "say": "sends the answer",
    "join": "collects the results of helpers in the background",
}


class TurnStart(Model):
    """The data of a turn at its start."""

    id: TurnRef
    """The id from the wake."""
    thread_id: ThreadRef
    """Canonical id of the thread that woke the agent."""
    messages: Annotated[tuple[MessageRef, ...], Field(max_length=MAX_ITEMS, fail_fast=True)]
    """Ids of the messages that woke it, oldest first."""
    continues: TurnRef | None = None
    """The turn whose question these messages answer, and whose work this one continues."""
    model: Label | None = None
    prompt_id: Label | None = None
    """The versioned prompt, as `name@version#hash`; None for a plain instruction."""
    components: Labels = ()
    """Names of the system prompt's parts, in order."""
    dialect: Label | None = None
    """How the model calls tools: native, tool_call or final_output."""
    tools: Labels = ()


def part_id(text: str) -> str:
    """The id of a prompt part."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


PartId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
PartIds = Annotated[tuple[PartId, ...], Field(max_length=1024, fail_fast=True)]


class PromptParts(Model):
    """The prompts of a turn in parts, as most of a prompt repeats the previous one: each part is
    sent to the hub and stored once per agent. A prompt is the concatenation of its parts; the agent
    decides where to split it. A part's id is the first 32 hex digits of the SHA-256 of its UTF-8.
    """

    system: PartIds = ()
    """Ids of the parts of the system message; without parts there is none."""
    user: PartIds = ()
    """Ids of the parts of the first user message; without parts there is none."""
    texts: Annotated[tuple[Label, ...], Field(max_length=2048, fail_fast=True)] = ()
    """The parts that the agent has not sent in an earlier turn, or may not have."""


class TurnEnd(Model):
    """How a turn ended."""

    id: TurnRef
    outcome: Outcome
    reason: str = ""
    """The argument of `finish`, or the failure."""
    text: str | None = None
    """Text of the model without an action; stored, never sent."""
    notes: Notes = ()
    """Other actions of the runtime after the last step."""
    by: Name | None = None
    """Who ended it on the agent's behalf: a person, or `hub` for the breaker and for repeated
    crashes. Set by the hub."""


class Turn(Model):
    """The whole record."""

    start: TurnStart
    agent: str
    started_at: AwareDatetime
    attempts: int = 1
    """2 or more: its process ended in the middle, and another resumed the turn."""
    system_prompt: str | None = None
    prompt: str | None = None
    """The first user message, as shown to the model."""
    steps: tuple[Step, ...] = ()
    end: TurnEnd | None = None
    """None while it runs."""
    ended_at: AwareDatetime | None = None
    sent: tuple[str, ...] = ()
    """Ids of the messages that the turn sent."""

    @property
    def tokens_in(self) -> int:
        return sum(step.tokens_in for step in self.steps)

    @property
    def tokens_out(self) -> int:
        return sum(step.tokens_out for step in self.steps)

    @property
    def cost_usd(self) -> float | None:
        """The total known cost of the steps; None if no cost is known."""
        costs = [step.cost_usd for step in self.steps if step.cost_usd is not None]
        return round(fsum(costs), 12) if costs else None
