"""Agents that owners make while a network runs, what owners ask its models, trials of turns, and
branches: what would have come of a message, had the network been another one.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, JsonValue, model_validator

from hubbub.protocol.messages import MessageRef, Model, Name, Permission, TurnRef
from hubbub.protocol.operations import Input
from hubbub.protocol.turns import Label, Step

__all__ = [
    "AgentChange",
    "AgentChoices",
    "AgentDefinition",
    "AgentDraft",
    "AgentFields",
    "AgentProblem",
    "AgentProblems",
    "AgentRollout",
    "AgentSaved",
    "AgentVersion",
    "AskModel",
    "Branch",
    "BranchSide",
    "Branched",
    "BranchedText",
    "CaseYaml",
    "CheckAgent",
    "DescribeAgent",
    "EditAgent",
    "GivenResult",
    "LackingResult",
    "ListModels",
    "MakeCase",
    "ModelAnswer",
    "ModelChoice",
    "Models",
    "NewAgent",
    "PermissionMode",
    "PromptMessage",
    "ReadAgent",
    "ReadAgentChoices",
    "RemoveAgent",
    "RollBackAgent",
    "ToolChoice",
    "Trial",
    "TriedTurn",
    "TryTurn",
    "TurnTried",
]

PermissionMode = Literal["read_only", "ask", "full"]
Text = Annotated[str, Field(max_length=64 * 1024)]
Names = Annotated[tuple[Name, ...], Field(max_length=256)]


class AgentRollout(Input):
    """Another instruction or model for a share of an agent's threads."""

    share: Annotated[float, Field(ge=0, le=1)]
    """How many threads get it: 0.2 is a fifth. A thread that has it keeps it as the share grows."""
    instruction: Text | None = None
    """Null: as in all threads."""
    model: Name | None = None
    """Null: as in all threads."""


class AgentFields(Input):
    """What owners may say about an agent. What is null or left out is as the config's defaults
    have it."""

    description: Text | None = None
    """What others see about it."""
    instruction: Text | None = None
    """The system prompt."""
    model: Name | None = None
    """A name from the network's `models`."""
    tools: Names | None = None
    """Tools that it may call, by name; left out: all that are allowed here."""
    channels: Names | None = None
    """Channels that it joins besides those that everybody joins."""
    permission_mode: PermissionMode | None = None
    """read_only: it changes nothing; ask: a person approves each change; full: they are made."""
    daily_usd: float | None = None
    """US dollars that it may spend in a day."""
    daily_tokens: int | None = None
    """Tokens that it may read and write in a day."""
    max_steps: int | None = None
    """The most steps in a turn."""
    rollout: AgentRollout | None = None
    """What only a share of the threads has so far; null: all have the same."""


class NewAgent(AgentFields):
    agent: Name
    """What it is to be called."""


class CheckAgent(AgentFields):
    agent: Name
    new: bool = True
    """Whether there is to be no agent of this name yet."""


class EditAgent(AgentFields):
    agent: Name
    version: int | None = None
    """The version that was read; refused if there is a newer one."""


class ReadAgent(Input):
    agent: Name


class RemoveAgent(Input):
    agent: Name


class RollBackAgent(Input):
    agent: Name
    to: Annotated[int, Field(ge=1)]
    """The version that holds again."""


class AgentVersion(Model):
    """How an agent was defined from a moment on."""

    version: int
    at: AwareDatetime | None = None
    by: str | None = None
    """None: its file was changed by hand."""
    fields: AgentFields | None = None
    """None: it was removed."""


class AgentDefinition(Model):
    agent: str
    fields: AgentFields
    version: int
    versions: tuple[AgentVersion, ...]
    """All of them, the latest first."""
    file: str
    """The name of the file that it stands in."""
    removable: bool
    """Whether it can be removed: not from a file that people wrote."""


class AgentSaved(Model):
    agent: str
    version: int


class AgentProblem(Model):
    field: str
    """Its name in `AgentFields`, or `agent`; empty: the whole."""
    message: str


class AgentProblems(Model):
    problems: tuple[AgentProblem, ...]
    """Empty: it can be saved."""


class ReadAgentChoices(Input):
    pass


class ToolChoice(Model):
    name: str
    about: str
    permission: Permission
    mod: str = ""


class AgentChoices(Model):
    """Among what owners choose when they make an agent."""

    models: tuple[str, ...]
    tools: tuple[ToolChoice, ...]
    channels: tuple[str, ...]
    everybody: tuple[str, ...]
    """Channels that every agent joins."""
    agents: tuple[str, ...]
    """Those that can be changed and removed."""
    refused: str | None = None
    """Why no agent can be made here."""


class DescribeAgent(Input):
    sentence: Annotated[str, Field(min_length=1, max_length=4096)]
    """What it is to do, for example "a reviewer who reads diffs and is blunt"."""


class AgentDraft(Model):
    agent: str
    """A name that is free."""
    fields: AgentFields
    note: str | None = None
    """Why the sentence became the instruction as it is."""


class ListModels(Input):
    pass


class ModelChoice(Model):
    name: str
    """In the network's file."""
    model: str
    """At its endpoint."""
    endpoint: str
    """Its host."""
    usd_in: float | None = None
    """US dollars for a million tokens that it reads; null: no price is known."""
    usd_out: float | None = None
    """For a million tokens that it writes."""
    context_window: int | None = None


class Models(Model):
    models: tuple[ModelChoice, ...]


class PromptMessage(Model):
    """A turn of a conversation with a model."""

    role: Literal["user", "assistant"]
    text: Text


class AskModel(Input):
    model: Name
    """Its name in the network's file."""
    instruction: Text = ""
    """A system prompt."""
    messages: Annotated[tuple[PromptMessage, ...], Field(min_length=1, max_length=40)]


class ModelAnswer(Model):
    text: str
    seconds: float
    tokens_in: int
    tokens_out: int
    usd: float | None = None
    """By the model's price."""


class TryTurn(Input):
    turn: TurnRef
    """The id of the recorded turn."""
    system_prompt: str | None = None
    """In place of the recorded system message, all of it; left out: that one."""
    model: Name | None = None
    """Its name in the network's `models`; left out: the one that the agent uses."""


class TriedTurn(Model):
    """How a model would begin a recorded turn now."""

    turn: str
    model: str
    """The model's name at its endpoint, as in a turn's record."""
    step: Step
    """As it would be recorded; none of its calls was carried out."""


class Trial(Model):
    """What the hub asks of the agent that ran the turn: the data of the signal `try_turn`."""

    request: str
    """To be repeated in `turn_tried`."""
    turn: str
    system_prompt: str | None = None
    model: str | None = None
    within_s: float
    """Seconds after which the answer comes too late."""


class TurnTried(Input):
    request: Name
    """That of the signal."""
    model: Label = ""
    """With `step`: the name of the model that was asked, at its endpoint."""
    step: Step | None = None
    """What the model has answered."""
    error: Annotated[str | None, Field(min_length=1)] = None
    """Why there is no answer."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.step is None) == (self.error is None):
            raise ValueError("either step or error")
        return self


ShortText = Annotated[str, Field(max_length=16_384)]


class AgentChange(Model):
    """Of an agent in a branch; what is left out stays."""

    agent: Name
    instruction: ShortText | None = None
    """In place of its own."""
    model: Name | None = None
    """Another of the config's models."""


class GivenResult(Model):
    """What a tool answers where that is not on record."""

    tool: Name
    text: ShortText


class Branch(Input):
    message: MessageRef
    """What it begins with; of an answer, the message that it answers."""
    changes: Annotated[tuple[AgentChange, ...], Field(max_length=16)] = ()
    """Without any, all models are asked again."""
    results: Annotated[tuple[GivenResult, ...], Field(max_length=64)] = ()


class BranchedText(Model):
    sender: str
    thread_id: str
    text: str


class BranchSide(Model):
    """What came of the message."""

    messages: int
    turns: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None = None
    """None: it is not known."""
    seconds: float
    """From the begin of the first turn to the end of the last."""
    said: tuple[BranchedText, ...] = ()
    """In order."""


class LackingResult(Model):
    """A call that has no result: tools that reach out of the network are not carried out."""

    tool: str
    arguments: dict[str, JsonValue]


class Branched(Model):
    """Two courses of the network from one message on."""

    message: str
    """Id of the message that both begin with."""
    then: BranchSide
    """In the network."""
    now: BranchSide
    """In the branch."""
    lacking: LackingResult | None = None
    """Why the branch broke off."""


class MakeCase(Input):
    message: MessageRef


class CaseYaml(Model):
    yaml: str
    """For a file of cases, as `hubbub test` reads it."""
