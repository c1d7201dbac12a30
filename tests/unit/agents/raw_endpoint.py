"""An endpoint that sends any body or stream, however wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.agents.models.base import Completion, CompletionRequest, Delta, ToolSpec
from hubbub.agents.models.openai import OpenAIModel
from hubbub.config.models import ModelConfig

__all__ = ["QUESTION", "Reply", "asked", "chunk", "completion", "endpoint", "piece"]

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
QUESTION = CompletionRequest([{"role": "user", "content": "1 + 2?"}], (ADD,))


@dataclass(frozen=True, slots=True)
class Reply:
    """The endpoint's response to every request. A list is sent as a stream of events."""

    body: JsonValue | bytes
    status: int = 200
    content_type: str = "application/json"
    missing: int = 0
    """Bytes of the body that never arrive."""

    @property
    def stream(self) -> bool:
        return isinstance(self.body, list)

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        if isinstance(self.body, list):
            return b"".join(map(_event, self.body)) + b"data: [DONE]\n\n"
        return json.dumps(self.body).encode()


def _event(data: JsonValue) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def completion(
    message: JsonValue, usage: JsonValue = None, finish_reason: JsonValue = "tool_calls"
) -> dict[str, JsonValue]:
    """A chat completion with this message."""
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


def chunk(delta: JsonValue, finish_reason: JsonValue = None) -> dict[str, JsonValue]:
    """A chunk of a stream."""
    choice: JsonValue = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}


def piece(index: JsonValue, id: JsonValue, name: JsonValue, arguments: JsonValue) -> JsonValue:
    """A piece of a call in a chunk, without the fields that are None."""
    function = {"name": name, "arguments": arguments}
    call: Mapping[str, JsonValue] = {
        "index": index,
        "id": id,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {key: value for key, value in call.items() if value is not None}


@asynccontextmanager
async def endpoint(reply: Reply, requested: list[str] | None = None) -> AsyncIterator[str]:
    """The base URL of an endpoint with this response. `requested` gets the path of each request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        lines = request.decode().splitlines()
        if requested is not None:
            requested.append(lines[0].split()[1])
        sizes = [line for line in lines if line.lower().startswith("content-length:")]
        await reader.readexactly(sum(int(size.partition(":")[2]) for size in sizes))
        kind = "text/event-stream" if reply.stream else reply.content_type
        body = reply.encoded()
        size = len(body) + reply.missing
        head = f"HTTP/1.1 {reply.status} X\r\nContent-Type: {kind}\r\nContent-Length: {size}"
        writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def asked(
    body: JsonValue | bytes, status: int = 200, *, base_url: str = "http://{url}", **config: object
) -> tuple[Completion, Sequence[Delta]]:
    """A model's answer to the endpoint's `body`, and its deltas.

    `{url}` in `base_url` stands for the endpoint's host and path. Raises `ModelError`.
    """
    deltas: list[Delta] = []
    async with endpoint(Reply(body, status)) as url:
        address = base_url.replace("{url}", url.removeprefix("http://"))
        stream = isinstance(body, list)
        given = {"model": "m", "base_url": address, "stream": stream, "retries": 0, **config}
        model = OpenAIModel(ModelConfig.model_validate(given))
        try:
            return await model.answer(QUESTION, deltas.append), deltas
        finally:
            await model.close()
