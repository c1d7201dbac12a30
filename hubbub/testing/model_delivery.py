"""Puts an answer on the socket, in whole or in pieces, or misbehaves as the script says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.testing import model_http as http
from hubbub.testing import model_wire as wire
from hubbub.testing.model_gates import Gates
from hubbub.testing.model_request import ChatRequest
from hubbub.testing.model_script import Answer, Breakdown, Refusal

__all__ = ["Delivery"]

_ERROR_TYPES = {401: "invalid_request_error", 429: "rate_limit_error"}


class Delivery:
    """One connection, as the answers see it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gates: Gates):
        self._reader, self._writer, self._gates = reader, writer, gates

    async def play(
        self, chat: ChatRequest, answer: Answer | Refusal | Breakdown, number: int
    ) -> None:
        """The answer to the `number`th request. Raises ConnectionError when the client is gone."""
        match answer:
            case Breakdown(breakdown="reset"):
                self._writer.transport.abort()
            case Breakdown():
                await self._reader.read(1)  # a client that waits sends nothing more but its end
                self._writer.close()
            case Refusal():
                await self._gates.pass_through(answer.hold)
                await self._refuse(answer)
            case Answer():
                await asyncio.sleep(answer.delay_s)
                await (self._stream if chat.stream else self._whole)(chat, answer, number)

    async def json(
        self, status: int, body: JsonValue, headers: Mapping[str, str] | None = None
    ) -> None:
        """A whole JSON response."""
        everything = {"Content-Type": "application/json", **(headers or {})}
        await http.send(self._writer, status, everything, json.dumps(body).encode())

    async def error(self, status: int, message: str, code: str | None = None) -> None:
        """An error in the endpoint's words."""
        await self.json(status, wire.error_body(message, "invalid_request_error", code))

    async def _refuse(self, refusal: Refusal) -> None:
        headers = _retry_after(refusal)
        kind = _ERROR_TYPES.get(refusal.status, "server_error")
        body = wire.error_body(refusal.message, kind, refusal.code)
        await self.json(refusal.status, body, headers)

    async def _whole(self, chat: ChatRequest, answer: Answer, number: int) -> None:
        await self._gates.pass_through(answer.hold)
        data = json.dumps(wire.whole(chat, answer, number)).encode()
        headers = {"Content-Type": answer.content_type or "application/json"}
        if answer.cut_after is None:
            await http.send(self._writer, 200, headers, data)
            return
        await http.start(self._writer, {**headers, "Content-Length": str(len(data))})
        self._writer.write(data[: len(data) // 2])
        self._writer.close()

    async def _stream(self, chat: ChatRequest, answer: Answer, number: int) -> None:
        kind = answer.content_type or "text/event-stream"
        if answer.hold_after == 0:
            await self._gates.pass_through(answer.hold)
        head = {"Content-Type": kind, "Transfer-Encoding": "chunked", **_retry_after(answer)}
        await http.start(self._writer, head)
        for sent, chunk in enumerate(wire.stream(chat, answer, number)):
            if sent == answer.cut_after:
                self._writer.close()
                return
            if sent and sent == answer.hold_after:
                await self._gates.pass_through(answer.hold)
            await asyncio.sleep(answer.chunk_delay_s if sent else 0)
            await http.send_chunk(self._writer, chunk.encode())
        if not chat.by_responses:
            await http.send_chunk(self._writer, b"data: [DONE]\n\n")
        await http.end_chunks(self._writer)


def _retry_after(answer: Answer | Refusal) -> dict[str, str]:
    after = answer.retry_after
    return {} if after is None else {"Retry-After": f"{after:g}"}
