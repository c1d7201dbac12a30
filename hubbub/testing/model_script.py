"""What a scripted model says: rules that look at the request, or answers in a row.

    rules:
      - when: {incoming: 'add (?P<a>\\d+) and (?P<b>\\d+)', step: 1}
        answer: {calls: [{tool: add, arguments: {a: "{{ a }}", b: "{{ b }}"}}]}
      - when: {step: 2}
        answer: {calls: [{tool: finish, arguments: {reason: done}}]}

The first rule whose conditions all hold answers; what no rule matches takes the next of `answers`.
Named groups of the patterns and the words of `hubbub.testing.model_request` (`sender`, `thread`,
`incoming`, `tool_result`) fill the places in double braces.
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
_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class ScriptMistake(Exception):
    """The script cannot answer this request: nothing matches, or an answer is impossible."""


class Part(Documented):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedUsage(Part):
    """Tokens as the endpoint bills them."""

    prompt_tokens: int = Field(ge=0)
    """Tokens read."""
    completion_tokens: int = Field(ge=0)
    """Tokens written."""


class ScriptedCall(Part):
    """One tool call."""

    tool: str
    """The tool's name, offered or not."""
    arguments: dict[str, JsonValue] | str = {}
    """Given as text they go out as they are, however broken."""
    id: str | None = None
    """Of the call; made up when left out."""


class ScriptedAnswer(Part):
    """An assistant's message, and how its bytes travel."""

    text: str | None = None
    """What it writes."""
    calls: list[ScriptedCall] = []
    """The tools that it calls, in this order."""
    dialect: ScriptDialect | None = None
    """How its calls are written: as `tool_calls` (`native`), or in words; left out: as the request
    tells the model to."""
    wait: Literal["all", "any", "majority"] = "all"
    """Several calls in the dialect `final_output`: which of them are waited for."""
    finish_reason: Literal["stop", "tool_calls", "length", "content_filter"] | None = None
    """Left out: `tool_calls` or `stop`, whichever is true."""
    usage: ScriptedUsage | None = None
    """Tokens; counted roughly (four characters each) when left out."""
    ignore_tool_choice: bool = False
    """Allow an answer without calls to a request that requires one."""
    piece: Annotated[int, Field(ge=1)] = 8
    """Streaming: characters of text or arguments in one chunk."""
    hold: str | None = None
    """Wait until the test (or nobody) releases this name."""
    hold_after: Annotated[int, Field(ge=0)] = 0
    """Streaming: hold after so many chunks instead of before the first."""
    delay_s: Annotated[float, Field(ge=0)] = 0.0
    """Seconds before the answer: for trying things by hand, tests hold."""
    chunk_delay_s: Annotated[float, Field(ge=0)] = 0.0
    """Streaming: seconds between chunks."""
    cut_after: Annotated[int, Field(ge=0)] | None = None
    """Close the connection after so many chunks (without streaming: in the middle of the body)."""
    content_type: str | None = None
    """Lie about the body's type."""
    retry_after: Annotated[float, Field(ge=0)] | None = None
    """Streaming: seconds, sent as Retry-After."""


class Refusal(Part):
    """An HTTP error."""

    status: Annotated[int, Field(ge=400, le=599)]
    """Of the response."""
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
    """`hang` stays silent until the client goes, `reset` drops the socket."""


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
    """Conditions on a request; those left out hold always. Patterns are searched for."""

    model: re.Pattern[str] | None = None
    """The model that the request names."""
    system: re.Pattern[str] | None = None
    """The system messages."""
    prompt: re.Pattern[str] | None = None
    """The last user message, as it came."""
    incoming: re.Pattern[str] | None = None
    """The text of the last `<incoming_message>`, unescaped; the whole prompt if there is none."""
    sender: re.Pattern[str] | None = None
    """The sender of the last `<incoming_message>`."""
    thread: re.Pattern[str] | None = None
    """The thread that it stands in: `direct_ann`, `channel_desk`."""
    tool_result: re.Pattern[str] | None = None
    """The last message, which must be a tool's result."""
    tools: list[str] = []
    """Tools that must all be offered."""
    step: Annotated[int, Field(ge=1)] | None = None
    """1: no answer yet since the last user message; 2: one answer; and so on."""
    nth: Annotated[int, Field(ge=1)] | None = None
    """Only the nth request for which the other conditions hold, whichever rule answers those."""


class ScriptRule(Part):
    """When the conditions hold, this is the answer; a list is used in order, each once."""

    name: str | None = None
    """For messages about mistakes."""
    when: When = When()
    """Left out: it matches every request."""
    answer: AnyAnswer | Annotated[list[AnyAnswer], Field(min_length=1)]
    """One, for every use of the rule, or several, used in order, each once."""
    times: Annotated[int, Field(ge=1)] | None = None
    """How often the rule may answer."""

    @property
    def limit(self) -> int | None:
        """How often the rule can answer: `times`, and a list no oftener than it is long."""
        bounds = [self.times] if self.times else []
        bounds += [len(self.answer)] if isinstance(self.answer, list) else []
        return min(bounds, default=None)

    def answer_at(self, use: int) -> ScriptedAnswer | Refusal | Breakdown:
        """What it says the `use`th time (from 0)."""
        return self.answer[use] if isinstance(self.answer, list) else self.answer


class Script(Part):
    """A whole model."""

    models: list[str] = ["scripted"]
    """What `/v1/models` lists. Requests may name any model."""
    api_key: str | None = None
    """If set, other keys are refused with 401."""
    rules: list[ScriptRule] = []
    """The first one that matches and is not used up answers."""
    answers: list[AnyAnswer] = []
    """For what no rule answers: in order, each once."""
    embeddings: dict[str, list[float]] = {}
    """What `/v1/embeddings` gives a text: the vector of the first pattern that is found in it.
    Left out: there is no such endpoint."""


def load_script(path: Path) -> Script:
    """A script from a YAML or JSON file. Raises ConfigError with the place of each mistake."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigError(f"is no YAML: {error.problem}", path, line) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError("is no YAML: it has characters that YAML forbids", path) from error
    try:
        return Script.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_sentence(error), path) from error


def _sentence(error: ValidationError) -> str:
    """Up to five findings; where a key is misspelled, what follows from that is left out."""
    errors = error.errors(include_url=False)
    unknown = [e for e in errors if e["type"] == "extra_forbidden"]
    return "; ".join(map(_finding, (unknown or errors)[:5]))


def _finding(error: ErrorDetails) -> str:
    # What pydantic puts in between for the branches of a union is no key of the file.
    loc = [str(part) for part in error["loc"] if "[" not in str(part)]
    place = ".".join(loc) or "the file"
    if error["type"] != "extra_forbidden":
        return f"{place}: {error['msg']}"
    home = next((_PARTS[part] for part in reversed(loc[:-1]) if part in _PARTS), Script)
    keys = list(home.model_fields)
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
"""What stands below a key, or in its list."""


def fill(value: JsonValue, words: Mapping[str, str]) -> JsonValue:
    """`value` with each `{{ name }}` in its texts replaced; ScriptMistake if one is unknown."""
    if isinstance(value, str):
        return _fill_text(value, words)
    if isinstance(value, list):
        return [fill(item, words) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, words) for key, item in value.items()}
    return value


def _fill_text(text: str, words: Mapping[str, str]) -> str:
    def word(match: re.Match[str]) -> str:
        if match[1] not in words:
            raise ScriptMistake(f"nothing is called {match[1]!r} here; known: {', '.join(words)}")
        return words[match[1]]

    return _PLACE.sub(word, text)
