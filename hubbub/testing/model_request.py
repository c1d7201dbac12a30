"""A chat completion request as the scripted model reads it, validated as by a real endpoint."""

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
    r"(?:<quote\b[^>]*>[^<]*</quote>\s*)?<content>(?P<text>.*?)</content>\s*(?:<attachment\b.*?</attachment>\s*)*</incoming_message>",
    re.DOTALL,
)
_RESULTS = "<tool_results"
"""The beginning of a user message that has the results of calls in a text dialect."""
_RESULT = re.compile(r"<tool_result\b[^>]*>(.*?)</tool_result>", re.DOTALL)
_LISTED_TOOL = re.compile(r'^\{"name": "([a-zA-Z0-9_-]{1,64})", "description": ', re.MULTILINE)
_THREAD = re.compile(r"<incoming_thread_id>(.*?)</incoming_thread_id>", re.DOTALL)


class RequestRefused(Exception):
    """A real endpoint answers this request with 400 and this message."""


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
    """One recorded request. `at` is the loop's time at its arrival, in seconds."""

    at: float
    headers: dict[str, str] = field(repr=False)
    """Names in lower case."""
    raw: dict[str, JsonValue] = field(repr=False)
    """The body as it arrived, with all its fields."""
    body: ChatBody
    is_responses_api: bool = False
    """Whether the request was to the Responses API. `body` is then its equivalent in Chat
    Completions."""

    @property
    def form(self) -> dict[str, JsonValue] | None:
        """The `json_schema` of the answer's text; None: the text is free."""
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
        """The names of the native tools, or without any of the tools listed in the prompt."""
        native = [tool.function.name for tool in self.body.tools]
        return native or _LISTED_TOOL.findall(self.system)

    @property
    def system(self) -> str:
        texts = (m.text for m in self.messages if m.role in ("system", "developer"))
        return "\n\n".join(texts)

    @property
    def prompt(self) -> str:
        """The last user message that has no results of calls."""
        return next((m.text for m in reversed(self.messages) if _is_users(m)), "")

    @property
    def step(self) -> int:
        """1 until the last user message is answered, then one more for each answer."""
        since = 0
        for message in self.messages:
            since = 0 if _is_users(message) else since + (message.role == "assistant")
        return 1 + since

    @property
    def tool_result(self) -> str | None:
        """The last message if it is a tool's result; in a text dialect, the last result of it."""
        last = self.messages[-1]
        if last.role == "user" and last.text.startswith(_RESULTS):
            return next(iter(_RESULT.findall(last.text)[-1:]), None)
        return last.text if last.role == "tool" else None

    @property
    def incoming(self) -> str:
        """The last incoming message of the conversation prompt, also after later prompts such as a
        correction; without one, the whole last prompt."""
        return self.placeholders()["incoming"]

    def placeholders(self) -> dict[str, str]:
        """The values for an answer's placeholders: incoming, sender, thread, tool_result."""
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
    raw: JsonValue, headers: dict[str, str], at: float, *, is_responses_api: bool = False
) -> ChatRequest:
    """The request in `raw`. Raises RequestRefused where a real endpoint answers 400."""
    if not isinstance(raw, dict):
        raise RequestRefused("the body must be a JSON object")
    try:
        body = ChatBody.model_validate(as_chat(raw) if is_responses_api else raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise RequestRefused(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    _check_tool_results(body.messages)
    if body.tool_choice == "required" and not body.tools:
        raise RequestRefused("tool_choice is only allowed when tools are specified")
    request = ChatRequest(at, headers, raw, body, is_responses_api)
    for tool in body.tools:
        if tool.function.strict:
            _check_strict(tool.function.name, tool.function.parameters)
    if request.form is not None and request.form.get("strict"):
        _check_strict("response_format", request.form.get("schema"))
    return request


def _check_strict(name: str, schema: JsonValue) -> None:
    """The objects of a strict schema are closed, and all their properties are required."""
    if isinstance(schema, list):
        for one in schema:
            _check_strict(name, one)
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    if schema.get("type") == "object":
        names = list(properties) if isinstance(properties, dict) else None
        if schema.get("additionalProperties") is not False or names != schema.get("required"):
            raise RequestRefused(f"invalid schema for {name}: it is not strict")
    if "default" in schema:
        raise RequestRefused(f"invalid schema for {name}: 'default' is not permitted")
    for part in (schema.get("items"), schema.get("anyOf")):
        _check_strict(name, part)
    for member in properties.values() if isinstance(properties, dict) else ():
        _check_strict(name, member)


def _check_tool_results(messages: Sequence[RequestMessage]) -> None:
    """The messages after an assistant's calls are the results of exactly these calls."""
    open_calls: set[str] = set()
    for position, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                raise RequestRefused(f"messages.{position}: the result of a call that is not open")
            open_calls.discard(message.tool_call_id)
            continue
        if open_calls:
            raise RequestRefused(f"messages.{position}: no result for {sorted(open_calls)}")
        open_calls = {call.id for call in message.tool_calls}
    if open_calls:
        raise RequestRefused(f"the last calls have no result: {sorted(open_calls)}")
