"""A chat completion request as the scripted model reads it, checked as the real endpoint would."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from hubbub.testing.model_responses import as_chat

__all__ = ["ChatRequest", "RequestRefused", "parse_request"]

_INCOMING = re.compile(
    r'<incoming_message\b[^>]*?\bsender="(?P<sender>[^"]*)"[^>]*>\s*'
    r"<content>(?P<text>.*?)</content>\s*(?:<attachment\b.*?</attachment>\s*)*</incoming_message>",
    re.DOTALL,
)
_RESULTS = "<tool_results"
"""How a user's message begins that is none, but the results of calls that stood in words."""
_RESULT = re.compile(r"<tool_result\b[^>]*>(.*?)</tool_result>", re.DOTALL)
_TOLD_TOOL = re.compile(r'^\{"name": "([a-zA-Z0-9_-]{1,64})", "description": ', re.MULTILINE)
_THREAD = re.compile(r"<incoming_thread_id>(.*?)</incoming_thread_id>", re.DOTALL)


class RequestRefused(Exception):
    """The endpoint would answer this request with 400 and this sentence."""


class Lenient(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class FunctionCall(Lenient):
    name: str
    arguments: str


class RequestToolCall(Lenient):
    id: str
    type: Literal["function"]
    function: FunctionCall


class RequestTextPart(Lenient):
    type: Literal["text"]
    text: str


class RequestMessage(Lenient):
    """One message of the conversation that the client sends."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[RequestTextPart] | None = None
    tool_calls: list[RequestToolCall] = []
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class FunctionSpec(Lenient):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str = ""
    parameters: dict[str, JsonValue] = {}
    strict: bool = False


class RequestTool(Lenient):
    type: Literal["function"]
    function: FunctionSpec


class StreamOptions(Lenient):
    include_usage: bool = False


class ChatBody(Lenient):
    model: str
    messages: Annotated[list[RequestMessage], Field(min_length=1)]
    tools: list[RequestTool] = []
    tool_choice: JsonValue = None
    response_format: JsonValue = None
    stream: bool = False
    stream_options: StreamOptions | None = None


@dataclass(frozen=True)
class ChatRequest:
    """One recorded request. `at` is the loop's time of its arrival, in seconds."""

    at: float
    headers: dict[str, str] = field(repr=False)
    """Names in lower case."""
    raw: dict[str, JsonValue] = field(repr=False)
    """The body as it came, with the fields that no property here speaks of."""
    body: ChatBody
    by_responses: bool = False
    """Whether it came to the Responses API: `body` is what Chat Completions would have had."""

    @property
    def form(self) -> dict[str, JsonValue] | None:
        """What `json_schema` the answer's text must fit; None: none."""
        match self.body.response_format:
            case {"type": "json_schema", "json_schema": dict(form)}:
                return form
        return None

    @property
    def model(self) -> str:
        return self.body.model

    @property
    def messages(self) -> Sequence[RequestMessage]:
        return self.body.messages

    @property
    def stream(self) -> bool:
        return self.body.stream

    @property
    def tool_required(self) -> bool:
        """Whether the answer must call a tool."""
        return self.body.tool_choice == "required" or isinstance(self.body.tool_choice, dict)

    @property
    def tools(self) -> list[str]:
        """Names of the tools offered; where there are none, of those described in words."""
        offered = [tool.function.name for tool in self.body.tools]
        return offered or _TOLD_TOOL.findall(self.system)

    @property
    def system(self) -> str:
        texts = (m.text for m in self.messages if m.role in ("system", "developer"))
        return "\n\n".join(texts)

    @property
    def prompt(self) -> str:
        """The last user message that is not the results of calls."""
        return next((m.text for m in reversed(self.messages) if _is_users(m)), "")

    @property
    def step(self) -> int:
        """1 before the first answer to the last user message, then one more for each."""
        since = 0
        for message in self.messages:
            since = 0 if _is_users(message) else since + (message.role == "assistant")
        return 1 + since

    @property
    def tool_result(self) -> str | None:
        """The last message if it is a tool's result; of several in words, the last."""
        last = self.messages[-1]
        if last.role == "user" and last.text.startswith(_RESULTS):
            return next(iter(_RESULT.findall(last.text)[-1:]), None)
        return last.text if last.role == "tool" else None

    @property
    def incoming(self) -> str:
        """The last incoming message of the conversation prompt, whatever was said to the model
        since, such as a correction; without one the whole last prompt."""
        return self.words()["incoming"]

    def words(self) -> dict[str, str]:
        """What an answer can always repeat: incoming, sender, thread, tool_result."""
        prompts = [m.text for m in reversed(self.messages) if _is_users(m)]
        prompt = next(filter(_INCOMING.search, prompts), self.prompt)
        last = next(iter(list(_INCOMING.finditer(prompt))[-1:]), None)
        thread = _THREAD.search(prompt)
        return {
            "incoming": html.unescape(last["text"]) if last else self.prompt,
            "sender": html.unescape(last["sender"]) if last else "",
            "thread": html.unescape(thread[1]) if thread else "",
            "tool_result": self.tool_result or "",
        }


def _is_users(message: RequestMessage) -> bool:
    return message.role == "user" and not message.text.startswith(_RESULTS)


def parse_request(
    raw: JsonValue, headers: dict[str, str], at: float, *, by_responses: bool = False
) -> ChatRequest:
    """The request in `raw`. Raises RequestRefused where the real endpoint answers 400."""
    if not isinstance(raw, dict):
        raise RequestRefused("the body must be a JSON object")
    try:
        body = ChatBody.model_validate(as_chat(raw) if by_responses else raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise RequestRefused(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    _check_tool_results(body.messages)
    if body.tool_choice == "required" and not body.tools:
        raise RequestRefused("tool_choice is only allowed when tools are specified")
    request = ChatRequest(at, headers, raw, body, by_responses)
    for tool in body.tools:
        if tool.function.strict:
            _check_strict(tool.function.name, tool.function.parameters)
    if request.form is not None and request.form.get("strict"):
        _check_strict("response_format", request.form.get("schema"))
    return request


def _check_strict(name: str, schema: JsonValue) -> None:
    """A strict schema has closed objects, all of whose properties are required."""
    if isinstance(schema, list):
        for one in schema:
            _check_strict(name, one)
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    if schema.get("type") == "object":
        known = list(properties) if isinstance(properties, dict) else None
        if schema.get("additionalProperties") is not False or known != schema.get("required"):
            raise RequestRefused(f"invalid schema for {name}: it is not strict")
    if "default" in schema:
        raise RequestRefused(f"invalid schema for {name}: 'default' is not permitted")
    for part in (schema.get("items"), schema.get("anyOf")):
        _check_strict(name, part)
    for member in properties.values() if isinstance(properties, dict) else ():
        _check_strict(name, member)


def _check_tool_results(messages: Sequence[RequestMessage]) -> None:
    """Each call of an assistant's message is answered, by tool messages that follow at once."""
    open_calls: set[str] = set()
    for position, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                raise RequestRefused(f"messages.{position}: result of no call that is open")
            open_calls.discard(message.tool_call_id)
            continue
        if open_calls:
            raise RequestRefused(f"messages.{position}: no result for {sorted(open_calls)}")
        open_calls = {call.id for call in message.tool_calls}
    if open_calls:
        raise RequestRefused(f"the last calls have no result: {sorted(open_calls)}")
