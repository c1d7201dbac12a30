"""The record of a turn: what an agent saw, did and spent. Prompts are stored as rendered."""

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
"""How a turn ended; `handler_error` is an exception in a Python agent's handler, or the death of
three processes in a row, `budget_exhausted` that the hub gave no leave to ask the model."""


MOST = 2**20
"""Parts of one kind that a record may have, and characters of a name in it. No frame carries so
many: an agent makes its record of whatever its model says, and cuts it to what its hub takes."""
Tokens = Annotated[int, Field(ge=0, le=10**12)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]
Label = Annotated[str, Field(max_length=MOST)]
"""What a model, its endpoint or a config calls something."""
Labels = Annotated[tuple[Label, ...], Field(max_length=MOST, fail_fast=True)]
Notes = Annotated[tuple[str, ...], Field(max_length=MOST, fail_fast=True)]


class ChangedCall(Model):
    """What a person changed of a call when they approved it, before it ran."""

    by: Name
    arguments: dict[str, JsonValue]
    """Those that it ran with."""
    names: Labels
    """The arguments that differ from what was asked."""


class ToolCallRecord(Model):
    """One tool call of a step. `result` is None until it has run.

    Times are those of the call that has the result; a call that was never run (`finish`, a name
    that no tool has) has none.
    """

    id: Label
    name: Label
    arguments: JsonValue
    """As the model gave them: a JSON object, or the raw text when it did not parse."""
    result: str | None = None
    """The prompt that the model was given."""
    error: Label | None = None
    """The kind of failure, for example `unknown_tool`; None when the call succeeded."""
    at_ms: Milliseconds | None = None
    """When it began: milliseconds after the turn's start, as `Step.at_ms`."""
    duration_ms: float | None = None
    """Milliseconds that it took, all attempts and the pauses between them together."""
    attempts: int = Field(default=1, ge=1, le=1000)
    """2 and more: it failed in a way that passes, and was repeated; the result is the last one's.
    """
    changed: ChangedCall | None = None
    """None: it ran with the arguments that the model gave it."""
    external: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether who asked runs it: the turn ends, and the one that their result starts goes on."""

    @property
    def ran_with(self) -> JsonValue:
        """The arguments that it ran with, or was to run with."""
        return self.arguments if self.changed is None else self.changed.arguments


WaitStrategy = Literal["all", "any", "majority"]


class Compressed(Model):
    """A step in the model's own, fewer words."""

    n: int = Field(ge=1, le=10**6)
    text: str


class Layer(Model):
    """A part of what a model is shown. Sizes are tokens."""

    name: Label
    """`system`, `tools`, `knowledge`, `history`, `incoming` or `steps`."""
    tokens: int = Field(ge=0)
    cut: int = Field(default=0, ge=0)
    """Tokens that were left out of it."""


class Window(Model):
    """How a question fills the model's context window. Sizes are tokens."""

    size: int | None = None
    """Of the window; None: not known, nothing is cut."""
    reserve: int = 0
    """Left free for the answer."""
    layers: Annotated[tuple[Layer, ...], Field(max_length=MOST, fail_fast=True)] = ()
    exact: bool = False
    """Whether the sizes are counted by the model's own vocabulary; else they are estimates."""


class Steering(Model):
    """A person's message that came while the turn ran, and was let into it."""

    message: MessageRef
    """Its id."""
    reply: ReplyNeed = "optional"
    """What its wake asked for."""
    text: str
    """The message as the model was shown it."""


Role = Literal["router", "planner", "executor", "reflector"]
"""Who answers, in an agent that is a role or a pipeline of them."""
Made = Literal["run", "ask", "confirm", "say", "join"]
"""What a step of the runtime's own does: it runs steps of a plan, asks a person something or
whether to go on (both end the turn), says the answer, or takes in the results of helpers that have
ended in the background."""


class Step(Model):
    """One answer of the model and what came of it; in a Python agent, one handler's run.

    Times are offsets by a clock that only goes forward, from the beginning of the turn. After a
    crash they go on where the recorded steps end: the time without a process is left
    out, so that a turn with `attempts` above 1 may have taken longer than its offsets say.
    """

    n: int = Field(ge=1, le=10**6)
    text: str | None = None
    """Text beside the calls, or instead of them."""
    calls: Annotated[tuple[ToolCallRecord, ...], Field(max_length=MOST, fail_fast=True)] = ()
    tokens_in: Tokens = 0
    tokens_out: Tokens = 0
    cost_usd: Dollars | None = None
    """What the answer cost; None if the model has no price or its endpoint counts no tokens."""
    finish_reason: Label | None = None
    wait: WaitStrategy = "all"
    """Which of several calls the step waits for; the rest is cancelled."""
    reasoning: str | None = None
    """What a model said to itself before it acted; never sent."""
    discards: Annotated[tuple[int, ...], Field(max_length=MOST, fail_fast=True)] = ()
    """Earlier steps that the model no longer needs to see."""
    compresses: Annotated[tuple[Compressed, ...], Field(max_length=MOST, fail_fast=True)] = ()
    """Earlier steps that the model has put into fewer words."""
    window: Window | None = None
    """What was asked, layer by layer, and what of it had to be left out."""
    steered: Annotated[tuple[Steering, ...], Field(max_length=MOST, fail_fast=True)] = ()
    """Messages that the model was shown for the first time before this answer: people steer a turn
    that runs. Recording the step makes their wakes part of the turn."""
    dialect: Label | None = None
    """How tools are called from this step on, where that is another way than before: see
    `TurnStart.dialect`."""
    made: Made | None = None
    """None: a model has given it, or a handler."""
    role: Role | None = None
    """Whose answer it is; None in an agent without roles."""
    plan_step: int | None = Field(default=None, ge=1, le=10**6)
    """executor: the step of the plan that its answer is for."""
    model: Label | None = None
    """Which model has answered, where the turn asks several."""
    untrusted: Labels = ()
    """Where content from outside the network was read in this step, for the first time in the
    turn: names of tools, ids of messages."""
    calls_cut: bool = False
    """Its calls are not recorded in full: the hub takes no more."""
    notes: Notes = ()
    """What the runtime did besides: a fallback, a repeated request, a hook that failed."""
    at_ms: Milliseconds | None = None
    """When the model was asked, or the handler called: milliseconds after the turn's start."""
    duration_ms: float | None = None
    """Milliseconds until the model had answered (its calls run after that), or the handler ended
    (its calls ran within)."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What people are shown of it besides texts, calls and figures: one line each."""
        whose = f", for step {self.plan_step}" if self.plan_step else ""
        told = [f"role: {self.role}{whose}" if self.role else ""]
        told.append(f"model: {self.model}" if self.model else "")
        told.append(_MADE[self.made] if self.made else "")
        told.append(f"untrusted: {', '.join(self.untrusted)}" if self.untrusted else "")
        told.append("its calls are not recorded in full" if self.calls_cut else "")
        return (*filter(None, told), *self.notes)


_MADE: dict[Made, str] = {
    "run": "runs steps of the plan",
    "ask": "asks a person",
    "confirm": "asks a person whether to go on",
    "say": "says the answer",
    "join": "takes in what helpers have done in the background",
}


class TurnStart(Model):
    """What is known when a turn begins."""

    id: TurnRef
    """The id that the wake gave it."""
    thread_id: ThreadRef
    """Canonical id of the thread that woke the agent."""
    messages: Annotated[tuple[MessageRef, ...], Field(max_length=MOST, fail_fast=True)]
    """Ids of the messages that woke it, oldest first."""
    continues: TurnRef | None = None
    """The turn whose question these messages answer, and whose work this one goes on with."""
    model: Label | None = None
    prompt_id: Label | None = None
    """Which versioned prompt: `name@version#hash`; None for a plain instruction."""
    components: Labels = ()
    """Names of the parts that the system prompt was built from, in their order."""
    dialect: Label | None = None
    """How the model calls tools: native, tool_call or final_output."""
    tools: Labels = ()


def part_id(text: str) -> str:
    """What a part of a prompt is called: 32 hex digits, the first half of its UTF-8's SHA-256."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


PartId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
PartIds = Annotated[tuple[PartId, ...], Field(max_length=1024, fail_fast=True)]


class PromptParts(Model):
    """The prompts of a turn in parts, since most of a prompt stands in the one before, too: each
    part is sent to the hub and stored once for each agent. A prompt is its parts without anything
    between them; where it is cut is up to the agent.
    """

    system: PartIds = ()
    """The system message; without parts there is none."""
    user: PartIds = ()
    """The message of the user that the turn begins with; without parts there is none."""
    texts: Annotated[tuple[Label, ...], Field(max_length=2048, fail_fast=True)] = ()
    """Those parts that the agent has sent in no turn yet, or that it is not sure of."""


class TurnEnd(Model):
    """How a turn ended."""

    id: TurnRef
    outcome: Outcome
    reason: str = ""
    """What `finish` was given, or what went wrong."""
    text: str | None = None
    """Text of the model that led to no action; stored, never published."""
    notes: Notes = ()
    """What the runtime did besides at the end, and after the last step."""
    by: Name | None = None
    """Who ended it in the agent's place: a person, or `hub` for the breaker and for a turn in which
    one process after the other died. The hub says so."""


class Turn(Model):
    """The whole record."""

    start: TurnStart
    agent: str
    started_at: AwareDatetime
    attempts: int = 1
    """2 and more: its process ended in the middle, and the turn was taken up again."""
    system_prompt: str | None = None
    prompt: str | None = None
    """The first message of the user, as the model was shown it."""
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
        """What the steps cost together, as far as it is known; None if it is of none of them."""
        known = [step.cost_usd for step in self.steps if step.cost_usd is not None]
        return round(fsum(known), 12) if known else None
