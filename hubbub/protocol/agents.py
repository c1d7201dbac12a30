"""Agents that owners create while a network runs, questions to its models, trials of turns, and
branches: the course of a message under different settings.
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
Names = Annotated[tuple[Name, ...], Field(max_length=256, fail_fast=True)]


class AgentRollout(Input):
    """Another instruction or model for a share of an agent's threads."""

    share: Annotated[float, Field(ge=0, le=1)]
    """The share of threads that get it, such as 0.2. Threads keep it when the share grows."""
    instruction: Text | None = None
    """Null: as in all threads."""
    model: Name | None = None
    """Null: as in all threads."""


class AgentFields(Input):
    """An agent's settings by owners. Fields that are null or left out have the config's
    defaults."""

    description: Text | None = None
    """The description that others see."""
    instruction: Text | None = None
    """The system prompt."""
    model: Name | None = None
    """A name from the network's `models`."""
    tools: Names | None = None
    """Names of the tools it can call; left out: all that are allowed."""
    channels: Names | None = None
    """Channels it joins in addition to those that everyone joins."""
    permission_mode: PermissionMode | None = None
    """read_only: it changes nothing; ask: a person approves each change; full: no approval."""
    daily_usd: float | None = None
    """Daily limit in US dollars."""
    daily_tokens: int | None = None
    """Daily limit of tokens, read and written."""
    max_steps: int | None = None
    """The maximum number of steps in a turn."""
    rollout: AgentRollout | None = None
    """Settings for a share of the threads; null: all threads have the same."""


class NewAgent(AgentFields):
    agent: Name
    """Its name."""


class CheckAgent(AgentFields):
    agent: Name
    new: bool = True
    """Whether the agent must not exist yet."""


class EditAgent(AgentFields):
    agent: Name
    version: int | None = None
    """The version the edit is based on; refused if there is a newer one."""


class ReadAgent(Input):
    agent: Name


class RemoveAgent(Input):
    agent: Name


class RollBackAgent(Input):
    agent: Name
    to: Annotated[int, Field(ge=1)]
    """The version to restore."""


class AgentVersion(Model):
    """One version of an agent's definition."""

    version: int
    at: AwareDatetime | None = None
    by: str | None = None
    """None if its file was edited by hand."""
    fields: AgentFields | None = None
    """None if it was removed."""


class AgentDefinition(Model):
    agent: str
    fields: AgentFields
    version: int
    versions: tuple[AgentVersion, ...]
    """All versions, latest first."""
    file: str
    """The name of its file."""
    removable: bool
    """Whether it can be removed, which is not possible in a file written by hand."""


class AgentSaved(Model):
    agent: str
    version: int


class AgentProblem(Model):
    field: str
    """The field of `AgentFields`, or `agent`; empty for the whole definition."""
    message: str


class AgentProblems(Model):
    problems: tuple[AgentProblem, ...]
    """Empty if it can be saved."""


class ReadAgentChoices(Input):
    pass


class ToolChoice(Model):
    name: str
    about: str
    permission: Permission
    mod: str = ""


class AgentChoices(Model):
    """The choices of owners when they create an agent."""

    models: tuple[str, ...]
    tools: tuple[ToolChoice, ...]
    channels: tuple[str, ...]
    everybody: tuple[str, ...]
    """Channels that every agent joins."""
    agents: tuple[str, ...]
    """Agents that can be changed and removed."""
    refused: str | None = None
    """Why no agent can be created, if so."""


class DescribeAgent(Input):
    sentence: Annotated[str, Field(min_length=1, max_length=4096)]
    """What it should do, for example "a reviewer who reads diffs and is blunt"."""


class AgentDraft(Model):
    agent: str
    """An available name."""
    fields: AgentFields
    note: str | None = None
    """Why the sentence was used as the instruction, if it was."""


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
    """US dollars per million tokens read; null if unknown."""
    usd_out: float | None = None
    """US dollars per million tokens written; null if unknown."""
    context_window: int | None = None


class Models(Model):
    models: tuple[ModelChoice, ...]


class PromptMessage(Model):
    """A message of a conversation with a model."""

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
    """Replaces the whole recorded system message; left out: the recorded one."""
    model: Name | None = None
    """A name from the network's `models`; left out: the agent's model."""


class TriedTurn(Model):
    """The first step that a model would now take in a recorded turn."""

    turn: str
    model: str
    """The model's name at its endpoint, as in a turn's record."""
    step: Step
    """As it would be recorded; none of its calls was run."""


class Trial(Model):
    """The data of the signal `try_turn` to the agent that ran the turn."""

    request: str
    """To be repeated in `turn_tried`."""
    turn: str
    system_prompt: str | None = None
    model: str | None = None
    within_s: float
    """Seconds after which the answer is too late."""


class TurnTried(Input):
    request: Name
    """From the signal."""
    model: Label = ""
    """With `step`: the model's name at its endpoint."""
    step: Step | None = None
    """The model's answer."""
    error: Annotated[str | None, Field(min_length=1)] = None
    """Why there is no answer."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.step is None) == (self.error is None):
            raise ValueError("either step or error")
        return self


ShortText = Annotated[str, Field(max_length=16_384)]


class AgentChange(Model):
    """A change to an agent in a branch; omitted fields stay."""

    agent: Name
    instruction: ShortText | None = None
    """Replaces its instruction."""
    model: Name | None = None
    """A name from the config's models."""


class GivenResult(Model):
    """A tool's result, if none was recorded."""

    tool: Name
    text: ShortText


class Branch(Input):
    message: MessageRef
    """The message to begin with; for an answer, the message that it answers."""
    changes: Annotated[tuple[AgentChange, ...], Field(max_length=16)] = ()
    """Without changes all models are asked again."""
    results: Annotated[tuple[GivenResult, ...], Field(max_length=64)] = ()


class BranchedText(Model):
    sender: str
    thread_id: str
    text: str


class BranchSide(Model):
    """The course of the message on one side."""

    messages: int
    turns: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None = None
    """None if unknown."""
    seconds: float
    """From the start of the first turn to the end of the last."""
    said: tuple[BranchedText, ...] = ()
    """In order; then, from the hub, how each turn ended that failed."""


class LackingResult(Model):
    """A call without a result, as tools with outside effects are not run."""

    tool: str
    arguments: dict[str, JsonValue]


class Branched(Model):
    """The course of a message in the network and in the branch."""

    message: str
    """Id of the message that both begin with."""
    then: BranchSide
    """In the network."""
    now: BranchSide
    """In the branch."""
    lacking: LackingResult | None = None
    """Why the branch stopped early, if it did."""


class MakeCase(Input):
    message: MessageRef


class CaseYaml(Model):
    yaml: str
    """For a file of cases for `hubbub test`."""
