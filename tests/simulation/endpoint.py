"""A model endpoint under the real HTTP client, which streams, fails temporarily with 429 or 503,
does not respond, or breaks off in the middle of an answer."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import httpx2

from hubbub.config.models import ModelConfig
from tests.simulation.loop import PROCESS, VirtualLoop
from tests.simulation.model import obey

__all__ = ["MODEL", "MOST_TOKENS", "Endpoint", "Mood"]

Mood = Literal["429", "503", "silent", "breaks off", "unreachable"]
MODEL = ModelConfig(
    model="obedient",
    base_url="http://endpoint.test/v1",
    max_output_tokens=100,
    timeout=20.0,
    stream=True,
)
WRITES = 50
"""Tokens of an answer."""
MOST_TOKENS = 2500
"""The maximum of a request with its answer."""
PIECES = 6
"""The number of chunks for the arguments of a call."""


class Endpoint(httpx2.AsyncBaseTransport):
    """The endpoint of one world; `colleague` returns the agent to which an agent passes work."""

    def __init__(self, loop: VirtualLoop, colleague: Callable[[str], str]):
        self._loop, self._colleague = loop, colleague
        self.moods: list[Mood] = []
        """The outcomes of the next requests."""
        self.texts: set[tuple[str, str]] = set()
        """The texts that the model wrote, by agent, even if only partly sent."""
        self.failed = Counter[str]()
        """The number of each agent's requests that failed permanently or after all retries."""
        self.hasty: list[str] = []
        """Agents that repeated a request before its Retry-After."""
        self._tries: dict[tuple[object, bytes], list[Mood]] = {}
        """The failures of each process's request so far."""
        self._not_before: dict[tuple[object, bytes], float] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body, agent = await request.aread(), PROCESS.get().name
        question = PROCESS.get(), body
        if self._loop.time() < self._not_before.pop(question, 0.0):
            self.hasty.append(agent)
        mood = self.moods.pop(0) if self.moods else None
        if mood is not None:
            self._record_failure(agent, question, mood)
        else:
            self._tries.pop(question, None)
        match mood:
            case "429":
                return httpx2.Response(429, headers=self._retry_after(request), request=request)
            case "503":
                return httpx2.Response(503, request=request)
            case "unreachable":
                raise httpx2.ConnectError("connection refused", request=request)
            case "silent":
                await asyncio.sleep(MODEL.timeout)
                raise httpx2.ReadTimeout("timed out", request=request)
        return await self._answer(agent, request, json.loads(body), broken=mood is not None)

    def _record_failure(self, agent: str, question: tuple[object, bytes], mood: Mood) -> None:
        """Records a failure; the agent retries a request, and a stream, `retries` times each."""
        tries = self._tries.setdefault(question, [])
        tries.append(mood)
        broken = [n for n, each in enumerate(tries) if each == "breaks off"]
        refused = len(tries) - 1 - (broken[-1] if broken else -1)
        if len(broken) > MODEL.retries or refused > MODEL.retries:
            self.failed[agent] += 1
            del self._tries[question]

    async def _answer(
        self, agent: str, request: httpx2.Request, asked: dict[str, Any], *, broken: bool
    ) -> httpx2.Response:
        calls, thinks = obey(asked["messages"], self._colleague(agent))
        await asyncio.sleep(thinks)
        if not calls:
            self.failed[agent] += 1
            return httpx2.Response(400, json={"error": {"message": "it is down"}}, request=request)
        for _, args in calls:
            self.texts |= {(agent, str(args[key])) for key in ("text", "message") if key in args}
        reads = min(len(request.content) // 8, MOST_TOKENS - WRITES)
        chunks = list(_chunks(calls, reads))
        headers = {"content-type": "text/event-stream"}
        if broken:
            chunks = chunks[: self._loop.random.randrange(1, len(chunks) - 1)]
            headers |= self._retry_after(request)
        return httpx2.Response(200, headers=headers, content=self._stream(chunks), request=request)

    def _retry_after(self, request: httpx2.Request) -> dict[str, str]:
        """Headers with a time before which the request must not be repeated."""
        wait = self._loop.random.randrange(1, 9)
        self._not_before[PROCESS.get(), request.content] = self._loop.time() + wait
        return {"retry-after": str(wait)}

    async def _stream(self, chunks: list[dict[str, Any]]) -> AsyncIterator[bytes]:
        for chunk in chunks:
            await asyncio.sleep(self._loop.random.uniform(0, self._loop.weather.model))
            yield f"data: {json.dumps(chunk)}\n\n".encode()


def _chunks(calls: Any, reads: int) -> list[dict[str, Any]]:
    """The chunks of an answer; the last one has the finish reason and the usage."""
    chunks: list[dict[str, Any]] = []
    for n, (name, args) in enumerate(calls):
        text = json.dumps(args)
        size = -(-len(text) // PIECES)
        for at in range(0, len(text), size):
            function = {"arguments": text[at : at + size], **({} if at else {"name": name})}
            call = {"index": n, "function": function, **({} if at else {"id": f"c{n}"})}
            chunks.append({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": reads, "completion_tokens": WRITES}
    return [*chunks, {"choices": [end], "usage": usage}]
