"""Cases of prompt tests in YAML: what a model is given, and what must be true of what it does.

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
    """One thing that must be true: exactly one of these keys, `in` and `schema` beside theirs.

    `the answer` is what the model wrote; of an agent, the last message that it sent.
    """

    valid_json: Literal[True] | None = None
    """The answer is JSON, and nothing but JSON."""
    has_field: str | None = None
    """The answer is JSON with this field: `queue`, or further in, `order.items.0.name`."""
    no_field: str | None = None
    """The answer is JSON without this field."""
    field: str | None = None
    """The answer is JSON, and this field has one of the values of `in`."""
    values: Annotated[list[JsonValue] | None, Field(alias="in", min_length=1)] = None
    """Beside `field`: the values."""
    matches: Annotated[str | None, BeforeValidator(_pattern)] = None
    """The answer contains this regular expression; of an agent, any message that it sent."""
    tool_called: str | None = None
    """The tool was called, with arguments of whatever kind."""
    tool_not_called: str | None = None
    """The tool was not called, not even wrongly."""
    arguments_match: str | None = None
    """The tool was called, and all its calls have arguments that its schema accepts."""
    schema_: Annotated[dict[str, JsonValue] | None, Field(alias="schema")] = None
    """Beside `arguments_match`: this JSON Schema in place of the tool's own."""
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    """The model has written at most so many tokens, in all steps together."""
    ends_with_finish: Literal[True] | None = None
    """The agent has called `finish`, and that ended its turn; of a network, all turns."""
    answered_by: Id | None = None
    """Of a network: this agent has answered the person, and no other has."""
    never_silent: Literal[True] | None = None
    """Of a network: the person has an answer, or a notice of the hub in its place."""
    max_turns: Annotated[int | None, Field(ge=1)] = None
    """Of a network: agents have taken at most so many turns."""
    max_cost: Annotated[float | None, Field(ge=0)] = None
    """Of a network: the turns have cost at most so many US dollars."""
    no_loop: Literal[True] | None = None
    """Of a network: no turn went round in circles, and no agents only woke each other."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: object) -> object:
        """`valid_json` alone means `valid_json: true`."""
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
        """The key that says what is expected."""
        return next(name for name in KINDS if getattr(self, name) is not None)

    def __str__(self) -> str:
        value = getattr(self, self.kind)
        if value is True:
            return self.kind
        among = f" in {self.values}" if self.values is not None else ""
        return f"{self.kind}: {value}{among}"


KINDS = tuple(name for name in Expectation.model_fields if name not in ("values", "schema_"))
OF_AGENTS = frozenset({"tool_called", "tool_not_called", "arguments_match", "ends_with_finish"})
"""What only an agent does."""
OF_NETWORKS = frozenset({"answered_by", "never_silent", "max_turns", "max_cost", "no_loop"})
"""What only a network does."""
Fault = Literal["slow_model", "rate_limit", "agent_killed", "person_silent"]


class CaseMessage(Section):
    """A message of a conversation. Its text alone means: from the person who talks to the agent."""

    sender: Annotated[Id | None, Field(alias="from")] = None
    """Left out: the first person of the network, or `ann`."""
    text: str
    """What is said."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> object:
        return {"text": value} if isinstance(value, str) else value


class NetworkCaseMessage(CaseMessage):
    """A message to a network."""

    to: str
    """An agent's name, or a channel: `#help`."""


def _several(value: object) -> object:
    return value if isinstance(value, list) else [value]


class CaseSettings(Section):
    """What a file may say for all its cases."""

    agent: Id | None = None
    """An agent of the network."""
    prompt: str | None = None
    """A versioned prompt, NAME or NAME@VERSION; left out in `prompts/NAME/cases`: NAME. With a
    conversation: the version that the agent uses, in place of the one that its config pins."""
    model: Id | None = None
    """A model of the network; left out: the agent's."""
    variables: dict[str, JsonValue] = {}
    """Of the prompt; they go over those that the agent gives."""
    results: dict[str, JsonValue] = {}
    """What tools return, by their names: text, or other JSON. No tool is really called; one that
    has no result here ends the conversation where it is called."""


class Case(CaseSettings):
    """One case: a `message` for a prompt alone, an `incoming` message for a whole agent, or what
    people say (`says`) to a whole network."""

    name: str
    """What is to be shown, in a sentence."""
    message: str | None = None
    """To the prompt as system message, without tools and without an agent."""
    threads: dict[str, list[CaseMessage]] = {}
    """What was said before, by thread, as the agent is shown them: `direct_ann`, `channel_help`."""
    incoming: (
        Annotated[list[CaseMessage], BeforeValidator(_several), Field(min_length=1)] | None
    ) = None
    """The message that wakes the agent, or several."""
    thread: str | None = None
    """Where it stands; left out: the direct thread with its sender."""
    says: (
        Annotated[list[NetworkCaseMessage], BeforeValidator(_several), Field(min_length=1)] | None
    ) = None
    """To the network: what people say, each when all is over that came of the one before."""
    faults: list[Fault] = []
    """What may go wrong in the network: each run has one of these or none, as its number says."""
    runs: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """How often; left out: as the command line says."""
    bar: Annotated[float | None, Field(ge=0, le=1)] = None
    """The share of runs that must pass; left out: as the command line says."""
    expect: Annotated[list[Expectation], Field(min_length=1)]
    """All of these must be true of a run that passes."""

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
                raise wrong(f"'{needing[0]}' needs `says`: it is of a network")
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
        """The case with what its file says where it says nothing itself."""
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
