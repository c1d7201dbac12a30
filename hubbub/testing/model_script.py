"""The script of a model: rules that match requests, or a list of answers.

    rules:
      - when: {incoming: 'add (?P<a>\\d+) and (?P<b>\\d+)', step: 1}
        answer: {calls: [{tool: add, arguments: {a: "{{ a }}", b: "{{ b }}"}}]}
      - when: {step: 2}
        answer: {calls: [{tool: finish, arguments: {reason: done}}]}

The first rule whose conditions all hold answers; if none matches, the next of `answers` does. Named
groups of the patterns and the values from `hubbub.testing.model_request` (`sender`, `thread`,
`incoming`, `tool_result`) fill the placeholders in double braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import ConfigDict, Discriminator, Field, JsonValue, Tag, ValidationError
from pydantic_core import ErrorDetails

from hubbub.config.problems import closest
from hubbub.errors import ConfigError
from hubbub.field_docs import Documented

__all__ = [
    "AnyAnswer",
    "Breakdown",
    "Refusal",
    "Script",
    "ScriptDialect",
    "ScriptMistake",
    "ScriptRule",
    "ScriptedAnswer",
    "ScriptedCall",
    "ScriptedUsage",
    "When",
    "fill",
    "load_script",
]

ScriptDialect = Literal["native", "tool_call", "final_output"]
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class ScriptMistake(Exception):
    """The script cannot answer this request: nothing matches, or the answer is impossible."""


class Part(Documented):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedUsage(Part):
    """Tokens that the endpoint bills."""

    prompt_tokens: int = Field(ge=0)
    """Tokens read."""
    completion_tokens: int = Field(ge=0)
    """Tokens written."""


class ScriptedCall(Part):
    """One tool call."""

    tool: str
    """The tool's name, offered or not."""
    arguments: dict[str, JsonValue] | str = {}
    """Text is sent unchanged, even if it is not valid JSON."""
    id: str | None = None
    """The id of the call; generated when left out."""


class ScriptedAnswer(Part):
    """An assistant's message, and how it is transmitted."""

    text: str | None = None
    """Its text."""
    calls: list[ScriptedCall] = []
    """Its tool calls, in this order."""
    dialect: ScriptDialect | None = None
    """The format of its calls: `tool_calls` (`native`) or text; left out: the format that the
    request requires."""
    wait: Literal["all", "any", "majority"] = "all"
    """With several calls in the dialect `final_output`: the results that it waits for."""
    finish_reason: Literal["stop", "tool_calls", "length", "content_filter"] | None = None
    """Left out: `tool_calls` with calls, otherwise `stop`."""
    usage: ScriptedUsage | None = None
    """Tokens; estimated (one per four characters) when left out."""
    ignore_tool_choice: bool = False
    """Allow an answer without calls to a request that requires one."""
    piece: Annotated[int, Field(ge=1)] = 8
    """Streaming: characters of text or arguments in one chunk."""
    hold: str | None = None
    """The name of a gate: the answer waits until the test releases it."""
    hold_after: Annotated[int, Field(ge=0)] = 0
    """Streaming: the number of chunks before the gate."""
    delay_s: Annotated[float, Field(ge=0)] = 0.0
    """Seconds before the answer, for manual experiments; tests use `hold`."""
    chunk_delay_s: Annotated[float, Field(ge=0)] = 0.0
    """Streaming: seconds between chunks."""
    cut_after: Annotated[int, Field(ge=0)] | None = None
    """Close the connection after this many chunks; without streaming, in the middle of the body."""
    content_type: str | None = None
    """Replaces the Content-Type of the response."""
    retry_after: Annotated[float, Field(ge=0)] | None = None
    """Streaming: seconds, sent as Retry-After."""


class Refusal(Part):
    """An HTTP error."""

    status: Annotated[int, Field(ge=400, le=599)]
    """The status of the response."""
    message: str = "scripted refusal"
    """`error.message` in its body."""
    code: str | None = None
    """`error.code` in its body."""
    retry_after: Annotated[float, Field(ge=0)] | None = None
    """Seconds, sent as Retry-After."""
    hold: str | None = None
    """As for an answer."""


class Breakdown(Part):
    """No HTTP answer at all."""

    breakdown: Literal["hang", "reset"]
    """`hang` sends nothing until the client disconnects, `reset` drops the socket."""


def _answer_type(value: object) -> str:
    keys = value if isinstance(value, Mapping) else ()
    if isinstance(value, Breakdown) or "breakdown" in keys:
        return "breakdown"
    return "refusal" if isinstance(value, Refusal) or "status" in keys else "answer"


AnyAnswer = Annotated[
    Annotated[ScriptedAnswer, Tag("answer")]
    | Annotated[Refusal, Tag("refusal")]
    | Annotated[Breakdown, Tag("breakdown")],
    Discriminator(_answer_type),
]


class When(Part):
    """Conditions on a request, all optional. Patterns match anywhere in the text."""

    model: re.Pattern[str] | None = None
    """The model that the request names."""
    system: re.Pattern[str] | None = None
    """The system messages."""
    prompt: re.Pattern[str] | None = None
    """The last user message, unchanged."""
    incoming: re.Pattern[str] | None = None
    """The text of the last `<incoming_message>`, unescaped; the whole prompt if there is none."""
    sender: re.Pattern[str] | None = None
    """The sender of the last `<incoming_message>`."""
    thread: re.Pattern[str] | None = None
    """The thread of that message: `direct_ann`, `channel_desk`."""
    tool_result: re.Pattern[str] | None = None
    """The last message, which must be a tool's result."""
    tools: list[str] = []
    """The tools that the request must offer."""
    step: Annotated[int, Field(ge=1)] | None = None
    """1: no answer since the last user message; 2: one answer; and so on."""
    nth: Annotated[int, Field(ge=1)] | None = None
    """Only the nth request that meets the other conditions, whichever rule answers the others."""


class ScriptRule(Part):
    """An answer, and the conditions for it."""

    name: str | None = None
    """The name in error messages."""
    when: When = When()
    """Left out: the rule matches every request."""
    answer: AnyAnswer | Annotated[list[AnyAnswer], Field(min_length=1)]
    """One answer for every use of the rule, or a list, used in order, each once."""
    times: Annotated[int, Field(ge=1)] | None = None
    """The maximum number of uses."""

    @property
    def limit(self) -> int | None:
        """The maximum number of uses, from `times` and the length of a list of answers."""
        bounds = [self.times] if self.times else []
        bounds += [len(self.answer)] if isinstance(self.answer, list) else []
        return min(bounds, default=None)

    def answer_at(self, use: int) -> ScriptedAnswer | Refusal | Breakdown:
        """The answer for use number `use`, from 0."""
        return self.answer[use] if isinstance(self.answer, list) else self.answer


class Script(Part):
    """A whole model."""

    models: list[str] = ["scripted"]
    """The models that `/v1/models` lists. Requests can name any model."""
    api_key: str | None = None
    """If set, other keys are refused with 401."""
    rules: list[ScriptRule] = []
    """The first rule that matches and is not used up answers."""
    answers: list[AnyAnswer] = []
    """Answers to requests that no rule matches: in order, each once."""
    embeddings: dict[str, list[float]] = {}
    """Vectors by pattern: `/v1/embeddings` returns the vector of the first pattern that matches a
    text. Left out: there is no such endpoint."""


def load_script(path: Path) -> Script:
    """A script from a YAML or JSON file. Raises ConfigError with the place of each error."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigError(f"is not valid YAML: {error.problem}", path, line) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError("is not valid YAML: it has forbidden characters", path) from error
    try:
        return Script.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_summary(error), path) from error


def _summary(error: ValidationError) -> str:
    """Up to five problems; only misspelled keys if there are any, since they cause others."""
    errors = error.errors(include_url=False)
    unknown = [e for e in errors if e["type"] == "extra_forbidden"]
    return "; ".join(map(_problem, (unknown or errors)[:5]))


def _problem(error: ErrorDetails) -> str:
    # Pydantic's labels for the branches of a union are not keys of the file.
    loc = [str(part) for part in error["loc"] if "[" not in str(part)]
    place = ".".join(loc) or "the file"
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg']}"
    parent = next((_PARTS[part] for part in reversed(loc[:-1]) if part in _PARTS), Script)
    keys = list(parent.model_fields)
    near = closest(loc[-1], keys)
    hint = f"did you mean '{near}'? " if near else ""
    return f"{place}: unknown key; {hint}valid: {', '.join(keys)}"


_PARTS: Mapping[str, type[Part]] = {
    "rules": ScriptRule,
    "when": When,
    "answer": ScriptedAnswer,
    "refusal": Refusal,
    "breakdown": Breakdown,
    "calls": ScriptedCall,
    "usage": ScriptedUsage,
}
"""By key, the model of its value or of the items of its list."""


def fill(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """`value` with every `{{ name }}` in its texts replaced. Raises ScriptMistake for an unknown
    name."""
    if isinstance(value, str):
        return _fill_text(value, names)
    if isinstance(value, list):
        return [fill(item, names) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, names) for key, item in value.items()}
    return value


def _fill_text(text: str, names: Mapping[str, str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1] not in names:
            raise ScriptMistake(f"unknown placeholder {match[1]!r}; valid: {', '.join(names)}")
        return names[match[1]]

    return _PLACEHOLDER.sub(replacement, text)
