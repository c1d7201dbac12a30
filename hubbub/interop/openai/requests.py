"""Parses requests of both APIs, chat completions and responses, into an `InboundRequest`.

Unsupported parameters that change the form of the answer are refused. Sampling parameters are
ignored: they are up to the agent.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from hubbub.interop.asking.request import AgentAnswer, InboundRequest, RequestFile, UserInput
from hubbub.protocol.external_tools import MAX_TOOLS, ExternalResult, ExternalTool

__all__ = ["ChatCompletionBody", "ResponsesRequest", "Unsupported"]


class Unsupported(Exception):
    """A parameter asks for something agents do not support."""

    def __init__(self, param: str, why: str):
        self.param = param
        super().__init__(f"{param}: {why}")


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


Text = Annotated[str, Field(max_length=2**24)]


class _Url(_Model):
    url: Text


class _FileData(_Model):
    file_data: Text | None = None
    file_id: str | None = None
    filename: str | None = None


class _ContentPart(_Model):
    type: str
    text: Text = ""
    refusal: Text = ""
    image_url: _Url | Text | None = None
    file: _FileData | None = None
    file_data: Text | None = None
    file_id: str | None = None
    file_url: Text | None = None
    filename: str | None = None


class _Function(_Model):
    name: str
    arguments: Text = "{}"


class _ToolCall(_Model):
    id: str
    function: _Function | None = None


class _Declared(_Model):
    name: str
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None


class _Tool(_Model):
    type: str
    function: _Declared | None = None
    name: str = ""
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None


Content = Text | list[_ContentPart] | None
ToolChoice = Literal["auto", "none", "required"] | dict[str, Any] | None


class _Message(_Model):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None


class _StreamOptions(_Model):
    include_usage: bool = False


class _Format(_Model):
    type: str = "text"


class ChatCompletionBody(_Model):
    """The body of `POST /v1/chat/completions`."""

    model: str
    messages: Annotated[list[_Message], Field(min_length=1, max_length=10_000)]
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    tools: Annotated[list[_Tool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: ToolChoice = None
    user: Annotated[str, Field(max_length=1024)] | None = None
    n: int | None = 1
    logprobs: bool | None = False
    modalities: list[str] | None = None
    response_format: _Format | None = None
    functions: JsonValue = None

    def to_request(self) -> InboundRequest:
        """Raises `Unsupported`."""
        _check_form(self.n, self.response_format)
        if self.logprobs:
            raise Unsupported("logprobs", "an agent has none")
        if self.functions:
            raise Unsupported("functions", "use `tools`")
        if self.modalities and self.modalities != ["text"]:
            raise Unsupported("modalities", "agents answer with text")
        return InboundRequest(
            self.model,
            _groups(_chat_items(self.messages)),
            _tools(self.tools, self.tool_choice),
            bool(self.stream),
            self.stream_options is not None and self.stream_options.include_usage,
            self.user or "",
        )


class _Item(_Model):
    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: Content = None
    call_id: str = ""
    output: Text | list[_ContentPart] | None = None


class _TextFormat(_Model):
    format: _Format | None = None


class _Conversation(_Model):
    id: str


class ResponsesRequest(_Model):
    """The body of `POST /v1/responses`."""

    model: str
    input: Text | Annotated[list[_Item], Field(max_length=10_000)]
    instructions: Text | None = None
    previous_response_id: str | None = None
    conversation: _Conversation | str | None = None
    stream: bool | None = False
    tools: Annotated[list[_Tool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: ToolChoice = None
    user: Annotated[str, Field(max_length=1024)] | None = None
    background: bool | None = False
    text: _TextFormat | None = None

    def to_request(self) -> InboundRequest:
        """Raises `Unsupported`."""
        if self.background:
            raise Unsupported("background", "wait for the answer, or stream it")
        if self.conversation is not None:
            raise Unsupported("conversation", "use `previous_response_id`, or `user`")
        _check_form(1, self.text.format if self.text is not None else None)
        items = [_Item(content=self.input)] if isinstance(self.input, str) else self.input
        messages = list(_response_items(items))
        if self.instructions:
            messages.insert(0, _InputMessage("system", self.instructions))
        return InboundRequest(
            self.model,
            _groups(messages),
            _tools(self.tools, self.tool_choice),
            bool(self.stream),
            user=self.user or "",
            previous=(self.previous_response_id or "").removeprefix("resp_"),
        )


def _check_form(n: int | None, format: _Format | None) -> None:
    """Raises `Unsupported` for anything but one answer as text."""
    if n not in (None, 1):
        raise Unsupported("n", "an agent gives one answer")
    if format is not None and format.type != "text":
        raise Unsupported(
            "response_format", "an agent answers with text; describe the format in the message"
        )


def _tools(tools: Iterable[_Tool] | None, choice: ToolChoice) -> tuple[ExternalTool, ...]:
    if choice not in (None, "auto", "none"):
        raise Unsupported("tool_choice", "the agent decides which tools it calls: `auto` or `none`")
    external = []
    for number, tool in enumerate(tools or ()):
        if tool.type != "function":
            raise Unsupported(f"tools[{number}]", f"there are no tools of the type {tool.type!r}")
        declared = tool.function or _Declared(
            name=tool.name, description=tool.description, parameters=tool.parameters
        )
        external.append(
            ExternalTool(
                name=declared.name,
                description=declared.description or "",
                parameters=declared.parameters or {},
            )
        )
    return () if choice == "none" else tuple(external)


# From messages or items to groups -------------------------------------------------------------


@dataclass(slots=True)
class _InputMessage:
    """A message or item of either API."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    results: tuple[ExternalResult, ...] = ()
    files: list[RequestFile] = field(default_factory=list)


def _chat_items(messages: Iterable[_Message]) -> Iterator[_InputMessage]:
    for message in messages:
        text, files = _content(message.content)
        if message.role == "tool":
            if message.tool_call_id is None:
                raise Unsupported("messages", "a tool's message needs `tool_call_id`")
            result = ExternalResult(id=message.tool_call_id, output=text)
            yield _InputMessage("tool", results=(result,), files=files)
        else:
            calls = tuple(call.id for call in message.tool_calls or ())
            yield _InputMessage(message.role, text or message.refusal or "", calls, files=files)


def _response_items(items: Iterable[_Item]) -> Iterator[_InputMessage]:
    for item in items:
        match item.type:
            case "message":
                text, files = _content(item.content)
                yield _InputMessage(item.role, text, files=files)
            case "function_call":
                yield _InputMessage("assistant", calls=(item.call_id,))
            case "function_call_output":
                text, files = _content(item.output)
                result = ExternalResult(id=item.call_id, output=text)
                yield _InputMessage("tool", results=(result,), files=files)
            case "reasoning":
                pass
            case other:
                raise Unsupported("input", f"there are no items of the type {other!r}")


def _groups(messages: Iterable[_InputMessage]) -> Sequence[UserInput | AgentAnswer]:
    """The messages as alternating groups."""
    runs: list[list[_InputMessage]] = []
    for message in messages:
        is_agent = message.role == "assistant"
        if not runs or (runs[-1][0].role == "assistant") != is_agent:
            runs.append([])
        runs[-1].append(message)
    if not runs or runs[-1][0].role == "assistant":
        raise Unsupported("messages", "the last message must not be the assistant's")
    groups = [_answer(run) if run[0].role == "assistant" else _input(run) for run in runs]
    last = groups[-1]
    if isinstance(last, UserInput) and not (last.text or last.results or last.files):
        raise Unsupported("messages", "the last message is empty")
    return groups


def _input(group: Sequence[_InputMessage]) -> UserInput:
    text = _joined(p.text for p in group if p.role == "user")
    instructions = _joined(p.text for p in group if p.role in ("system", "developer"))
    results = tuple(result for message in group for result in message.results)
    files = tuple(file for message in group for file in message.files)
    if not (text or results or files):  # some programs put the question itself there
        text, instructions = instructions, ""
    return UserInput(text, instructions, results, files)


def _answer(group: Sequence[_InputMessage]) -> AgentAnswer:
    return AgentAnswer(_joined(p.text for p in group), tuple(id for p in group for id in p.calls))


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, (text.strip() for text in texts)))


# Parts of a message -----------------------------------------------------------------------------

_DATA = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64,", re.ASCII)
_EXTENSIONS = {"jpeg": "jpg", "svg+xml": "svg", "plain": "txt"}


def _content(content: Content) -> tuple[str, list[RequestFile]]:
    """The text and the attached files. Raises `Unsupported`."""
    if content is None or isinstance(content, str):
        return content or "", []
    texts, files = [], []
    for number, part in enumerate(content):
        match part.type:
            case "text" | "input_text" | "output_text":
                texts.append(part.text)
            case "refusal":
                texts.append(part.refusal)
            case "image_url" | "input_image" if part.image_url is not None:
                url = part.image_url.url if isinstance(part.image_url, _Url) else part.image_url
                files.append(_file(url, f"image{number + 1}"))
            case "file" | "input_file" | "input_image":
                files.append(_attached(part, f"file{number + 1}"))
            case other:
                raise Unsupported("content", f"there are no parts of the type {other!r}")
    return "\n\n".join(texts), files


def _attached(part: _ContentPart, name: str) -> RequestFile:
    file = part.file or _FileData(
        file_data=part.file_data, file_id=part.file_id, filename=part.filename
    )
    if file.file_id is not None:
        return RequestFile(file.filename or file.file_id, uri=f"file:{file.file_id}")
    if part.file_url is not None:
        return RequestFile(file.filename or name, uri=part.file_url)
    if file.file_data is None:
        raise Unsupported("content", "a file needs `file_data` or `file_id`")
    return _file(file.file_data, name, file.filename)


def _file(url: str, name: str, filename: str | None = None) -> RequestFile:
    """The file at a `data:` or web URL; `name` if there is no filename, without extension."""
    head = _DATA.match(url)
    if head is None and url.startswith(("http://", "https://")):
        return RequestFile(filename or url.rpartition("/")[2][:100] or name, uri=url)
    media_type = (head and head["type"]) or "application/octet-stream"
    try:
        data = base64.b64decode(url[head.end() if head else 0 :], validate=True)
    except (binascii.Error, ValueError):
        raise Unsupported("content", "a file is a base64 `data:` URL, or an https URL") from None
    subtype = media_type.partition("/")[2]
    extension = _EXTENSIONS.get(subtype, subtype)
    return RequestFile(filename or f"{name}.{extension}", media_type, data)
