"""Test cases in YAML: the input of a model, and expectations about its behaviour.

cases:
  - name: a refund goes to billing
    agent: clerk
    incoming: I want my money back.
    results: {find_order: "order 7: a lamp, paid"}
    expect:
      - tool_called: hand_over
      - ends_with_finish
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from hubbub.config.units import Id, Section, wrong

__all__ = ["Case", "CaseFile", "CaseMessage", "Expectation", "Fault"]


def _pattern(value: object) -> object:
    if isinstance(value, str):
        try:
            re.compile(value)
        except re.error as exc:
            raise wrong(f"expected a regular expression: {exc}") from exc
    return value


class Expectation(Section):
    """One expectation: exactly one of these keys, plus `in` or `schema` where they apply.

    `the answer` is the model's text, or the last message that an agent sent.
    """

    valid_json: Literal[True] | None = None
    """The answer is JSON, and nothing but JSON."""
    has_field: str | None = None
    """The answer is JSON with this field: `queue`, or nested, `order.items.0.name`."""
    no_field: str | None = None
    """The answer is JSON without this field."""
    field: str | None = None
    """The answer is JSON, and this field has one of the values of `in`."""
    values: Annotated[list[JsonValue] | None, Field(alias="in", min_length=1)] = None
    """With `field`: the allowed values."""
    matches: Annotated[str | None, BeforeValidator(_pattern)] = None
    """The answer, or any message that an agent sent, matches this regular expression."""
    tool_called: str | None = None
    """The tool was called, with any arguments."""
    tool_not_called: str | None = None
    """The tool was not called, not even with invalid arguments."""
    arguments_match: str | None = None
    """The tool was called, and all its calls have valid arguments."""
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None
    """With `arguments_match`: a JSON Schema that replaces the tool's own."""
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    """The model wrote at most this many tokens, in all steps together."""
    ends_with_finish: Literal[True] | None = None
    """The agent's turn ended with a call of `finish`; in a network, all turns did."""
    answered_by: Id | None = None
    """Networks only: this agent answered the person, and no other did."""
    never_silent: Literal[True] | None = None
    """Networks only: the person got an answer, or a notice from the hub instead."""
    max_turns: Annotated[int | None, Field(ge=1)] = None
    """Networks only: agents took at most this many turns."""
    max_cost: Annotated[float | None, Field(ge=0)] = None
    """Networks only: the turns cost at most this many US dollars."""
    no_loop: Literal[True] | None = None
    """Networks only: no turn looped, and no agents only woke each other."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        """`valid_json` is short for `valid_json: true`."""
        return {value: True} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one(self) -> Self:
        kinds = [name for name in KINDS if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise wrong(f"expected exactly one of {', '.join(KINDS)}")
        if (self.field is None) != (self.values is None):
            raise wrong("`field` and `in` belong together")
        if self.schema_ is not None and self.arguments_match is None:
            raise wrong("`schema` belongs to `arguments_match`")
        return self

    @property
    def kind(self) -> str:
        """The key of the expectation."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    def __str__(self) -> str:
        value = getattr(self, self.kind)
        if value is True:
            return self.kind
        among = f" in {self.values}" if self.values is not None else ""
        return f"{self.kind}: {value}{among}"


KINDS = tuple(name for name in Expectation.model_fields if name not in ("values", "schema_"))
OF_AGENTS = frozenset({"tool_called", "tool_not_called", "arguments_match", "ends_with_finish"})
"""Expectations that need an agent."""
OF_NETWORKS = frozenset({"answered_by", "never_silent", "max_turns", "max_cost", "no_loop"})
"""Expectations that need a network."""
Fault = Literal["slow_model", "rate_limit", "agent_killed", "person_silent"]


class CaseMessage(Section):
    """A message of a conversation. A string is short for a message from the person."""

    sender: Annotated[Id | None, Field(alias="from")] = None
    """The sender. Default: the first person of the network, or `ann`."""
    text: str
    """The text."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> object:
        return {"text": value} if isinstance(value, str) else value


class NetworkCaseMessage(CaseMessage):
    """A message to a network."""

    to: str
    """An agent, or a channel: `#help`."""


def _several(value: object) -> object:
    return value if isinstance(value, list) else [value]


class CaseSettings(Section):
    """Settings that a file can set for all its cases."""

    agent: Id | None = None
    """An agent of the network."""
    prompt: str | None = None
    """A versioned prompt, NAME or NAME@VERSION. Default in `prompts/NAME/cases`: NAME. With a
    conversation, it overrides the version in the agent's config."""
    model: Id | None = None
    """A model of the network. Default: the agent's."""
    variables: dict[str, JsonValue] = {}
    """Variables of the prompt; they override the agent's."""
    results: dict[str, JsonValue] = {}
    """Results by tool: text, or other JSON. Tools are not executed; a call of a tool without a
    result here ends the conversation."""


class Case(CaseSettings):
    """One case: a `message` for a prompt alone, an `incoming` message for an agent, or messages of
    people (`says`) for a whole network."""

    name: str
    """The expected behaviour, in a sentence."""
    message: str | None = None
    """A message for the prompt as system message, without tools or an agent."""
    threads: dict[str, list[CaseMessage]] = {}
    """Earlier messages, by thread as the agent sees it: `direct_ann`, `channel_help`."""
    incoming: (
        Annotated[list[CaseMessage], BeforeValidator(_several), Field(min_length=1)] | None
    ) = None
    """The message or messages that wake the agent."""
    thread: str | None = None
    """The thread of `incoming`. Default: the direct thread with its sender."""
    says: (
        Annotated[list[NetworkCaseMessage], BeforeValidator(_several), Field(min_length=1)] | None
    ) = None
    """Messages of people to the network, each sent when all work for the one before has ended."""
    faults: list[Fault] = []
    """Faults to inject into the network: each run has one of these or none, by its number."""
    runs: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """The number of runs. Default: set on the command line."""
    bar: Annotated[float | None, Field(ge=0, le=1)] = None
    """The fraction of runs that must pass. Default: set on the command line."""
    expect: Annotated[list[Expectation], Field(min_length=1)]
    """A run passes if all of these hold."""

    @model_validator(mode="after")
    def _kind(self) -> Self:
        if [self.message, self.incoming, self.says].count(None) != 2:
            raise wrong(
                "expected either `message` (to a prompt), `incoming` (to an agent) or `says` (to "
                "the network)"
            )
        if self.says is None:
            if self.faults:
                raise wrong("`faults` belong to `says`")
            if needing := [str(e) for e in self.expect if e.kind in OF_NETWORKS]:
                raise wrong(f"'{needing[0]}' applies to networks: it needs `says`")
        elif self.agent or self.thread or self.threads:
            raise wrong("`agent`, `thread` and `threads` belong to `incoming`, not `says`")
        if self.message is not None:
            if self.threads or self.thread or self.results:
                raise wrong("`threads`, `thread` and `results` belong to `incoming`, not `message`")
            needing = [str(e) for e in self.expect if e.kind in OF_AGENTS]
            if needing:
                raise wrong(f"a prompt alone has no tools: '{needing[0]}' needs `incoming`")
        return self

    def under(self, settings: CaseSettings) -> Case:
        """The case with the file's settings as defaults."""
        return self.model_copy(
            update={
                "agent": self.agent or settings.agent,
                "prompt": self.prompt or settings.prompt,
                "model": self.model or settings.model,
                "variables": {**settings.variables, **self.variables},
                "results": {**settings.results, **self.results},
            }
        )


class CaseFile(CaseSettings):
    """A file of cases."""

    cases: Annotated[list[Case], Field(min_length=1)]
    """The cases."""
