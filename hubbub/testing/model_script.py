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
from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, ValidationError

from hubbub.errors import ConfigError

__all__ = [
    "Answer",
    "AnyAnswer",
    "Breakdown",
    "Call",
    "Refusal",
    "Rule",
    "Script",
    "ScriptMistake",
    "Usage",
    "When",
    "fill",
    "load_script",
]

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class ScriptMistake(Exception):
    """The script cannot answer this request: nothing matches, or an answer is impossible."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Usage(Part):
    """Tokens as the endpoint bills them; counted roughly (four characters each) when left out."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class Call(Part):
    """One tool call. `arguments` given as text go out as they are, however broken."""

    tool: str
    arguments: dict[str, JsonValue] | str = {}
    id: str | None = None


class Answer(Part):
    """An assistant's message, and how its bytes travel."""

    text: str | None = None
    calls: list[Call] = []
    finish_reason: Literal["stop", "tool_calls", "length", "content_filter"] | None = None
    """Left out: `tool_calls` or `stop`, whichever is true."""
    usage: Usage | None = None
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


class Refusal(Part):
    """An HTTP error."""

    status: Annotated[int, Field(ge=400, le=599)]
    message: str = "scripted refusal"
    code: str | None = None
    retry_after: Annotated[float, Field(ge=0)] | None = None
    """Seconds, sent as Retry-After."""
    hold: str | None = None


class Breakdown(Part):
    """No HTTP answer: `hang` stays silent until the client goes, `reset` drops the socket."""

    breakdown: Literal["hang", "reset"]


def _answer_type(value: object) -> str:
    if isinstance(value, Answer | Refusal | Breakdown):
        return type(value).__name__.lower()
    keys = value if isinstance(value, Mapping) else ()
    return next((k for k in ("breakdown", "refusal") if _MARK[k] in keys), "answer")


_MARK = {"breakdown": "breakdown", "refusal": "status"}

AnyAnswer = Annotated[
    Annotated[Answer, Tag("answer")]
    | Annotated[Refusal, Tag("refusal")]
    | Annotated[Breakdown, Tag("breakdown")],
    Discriminator(_answer_type),
]


class When(Part):
    """Conditions on a request; those left out hold always. Patterns are searched for."""

    model: re.Pattern[str] | None = None
    system: re.Pattern[str] | None = None
    prompt: re.Pattern[str] | None = None
    """The last user message, as it came."""
    incoming: re.Pattern[str] | None = None
    """The text of the last `<incoming_message>`, unescaped; the whole prompt if there is none."""
    sender: re.Pattern[str] | None = None
    thread: re.Pattern[str] | None = None
    tool_result: re.Pattern[str] | None = None
    """The last message, which must be a tool's result."""
    tools: list[str] = []
    """Tools that must all be offered."""
    step: Annotated[int, Field(ge=1)] | None = None
    """1: no answer yet since the last user message; 2: one answer; and so on."""
    nth: Annotated[int, Field(ge=1)] | None = None
    """Only the nth request for which the other conditions hold, whichever rule answers those."""


class Rule(Part):
    """When the conditions hold, this is the answer; a list is used in order, each once."""

    name: str | None = None
    when: When = When()
    answer: AnyAnswer | Annotated[list[AnyAnswer], Field(min_length=1)]
    times: Annotated[int, Field(ge=1)] | None = None
    """How often the rule may answer."""

    @property
    def limit(self) -> int | None:
        """How often the rule can answer: `times`, and a list no oftener than it is long."""
        bounds = [self.times] if self.times else []
        bounds += [len(self.answer)] if isinstance(self.answer, list) else []
        return min(bounds, default=None)

    def answer_at(self, use: int) -> Answer | Refusal | Breakdown:
        """What it says the `use`th time (from 0)."""
        return self.answer[use] if isinstance(self.answer, list) else self.answer


class Script(Part):
    """A whole model."""

    models: list[str] = ["scripted"]
    """What `/v1/models` lists. Requests may name any model."""
    api_key: str | None = None
    """If set, other keys are refused with 401."""
    rules: list[Rule] = []
    answers: list[AnyAnswer] = []


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
    places = (
        f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors()[:5]
    )
    return "; ".join(places)


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
