"""A scripted model: an OpenAI-compatible endpoint that plays a script over real HTTP.

    finish = ScriptedCall(tool="finish", arguments={"reason": "done"})
    script = Script(answers=[ScriptedAnswer(calls=[finish])])
    async with ModelServer(script) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="any")
        ...
        assert server.requests[0].incoming == "hello"

A request without an answer in the script gets 400 with the reason, also in `server.mistakes`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.interop.http import BadRequest, Exchange, HttpServer
from hubbub.testing import model_wire as wire
from hubbub.testing.model_playbook import Playbook
from hubbub.testing.model_request import ChatRequest, RequestRefused, parse_request
from hubbub.testing.model_script import (
    Breakdown,
    Refusal,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptedUsage,
    ScriptMistake,
    ScriptRule,
    When,
    load_script,
)

__all__ = [
    "Breakdown",
    "ChatRequest",
    "ModelServer",
    "Refusal",
    "Script",
    "ScriptRule",
    "ScriptedAnswer",
    "ScriptedCall",
    "ScriptedUsage",
    "When",
    "load_script",
    "main",
]


MAX_BODY = 64 * 1024 * 1024
"""Maximum bytes of a request."""


class Gates:
    """Named gates at which answers wait until a test releases them: delays without sleeping. A gate
    is closed at first, and stays open after its release."""

    def __init__(self) -> None:
        self._arrivals: defaultdict[str, int] = defaultdict(int)
        self._open: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._changed = asyncio.Condition()

    async def pass_through(self, name: str | None) -> None:
        """Wait until the gate is open; None is no gate."""
        if name is None:
            return
        async with self._changed:
            self._arrivals[name] += 1
            self._changed.notify_all()
        await self._open[name].wait()

    async def held(self, name: str, count: int) -> None:
        """Wait until `count` answers in total have arrived at the gate."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._arrivals[name] >= count)

    def release(self, name: str) -> None:
        self._open[name].set()


_ERROR_TYPES = {401: "invalid_request_error", 429: "rate_limit_error"}


class ResponseWriter:
    """Writes the answer to one request."""

    def __init__(self, exchange: Exchange, gates: Gates):
        self._exchange, self._gates = exchange, gates

    async def play(
        self, chat: ChatRequest, answer: ScriptedAnswer | Refusal | Breakdown, number: int
    ) -> None:
        """Write the answer to request `number`. Raises ConnectionError if the client is gone."""
        match answer:
            case Breakdown(breakdown="reset"):
                self._exchange.abort()
            case Breakdown():
                await asyncio.Event().wait()  # cancelled when the client disconnects
            case Refusal():
                await self._gates.pass_through(answer.hold)
                await self._refuse(answer)
            case ScriptedAnswer():
                await asyncio.sleep(answer.delay_s)
                await (self._stream if chat.stream else self._whole)(chat, answer, number)

    async def json(
        self, status: int, body: JsonValue, headers: Mapping[str, str] | None = None
    ) -> None:
        """Write a whole JSON response."""
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        await self._exchange.respond(status, all_headers, json.dumps(body).encode())

    async def error(self, status: int, message: str, code: str | None = None) -> None:
        """Write an error in the format of a real endpoint."""
        await self.json(status, wire.error_body(message, "invalid_request_error", code))

    async def _refuse(self, refusal: Refusal) -> None:
        headers = _retry_after(refusal)
        kind = _ERROR_TYPES.get(refusal.status, "server_error")
        body = wire.error_body(refusal.message, kind, refusal.code)
        await self.json(refusal.status, body, headers)

    async def _whole(self, chat: ChatRequest, answer: ScriptedAnswer, number: int) -> None:
        await self._gates.pass_through(answer.hold)
        data = json.dumps(wire.whole(chat, answer, number)).encode()
        headers = {"Content-Type": answer.content_type or "application/json"}
        if answer.cut_after is None:
            await self._exchange.respond(200, headers, data)
            return
        self._exchange.start(200, headers)
        await self._exchange.write(data[: len(data) // 2])
        self._exchange.close()

    async def _stream(self, chat: ChatRequest, answer: ScriptedAnswer, number: int) -> None:
        kind = answer.content_type or "text/event-stream"
        if answer.hold_after == 0:
            await self._gates.pass_through(answer.hold)
        self._exchange.start(200, {"Content-Type": kind, **_retry_after(answer)})
        for sent, chunk in enumerate(wire.stream(chat, answer, number)):
            if sent == answer.cut_after:
                self._exchange.close()
                return
            if sent and sent == answer.hold_after:
                await self._gates.pass_through(answer.hold)
            await asyncio.sleep(answer.chunk_delay_s if sent else 0)
            await self._exchange.write(chunk.encode())
        if not chat.is_responses_api:
            await self._exchange.write(b"data: [DONE]\n\n")


def _retry_after(answer: ScriptedAnswer | Refusal) -> dict[str, str]:
    after = answer.retry_after
    return {} if after is None else {"Retry-After": f"{after:g}"}


class ModelServer:
    """Plays a script on `host`; port 0 selects a free port.

    requests   every valid chat request, in order of arrival
    rules      the names of the rules that answered them
    mistakes   why requests got 400
    embedded   the texts of each request for embeddings
    """

    def __init__(self, script: Script, host: str = "127.0.0.1", port: int = 0):
        self.script = script
        self.requests: list[ChatRequest] = []
        self.rules: list[str] = []
        self.mistakes: list[str] = []
        self.embedded: list[list[str]] = []
        self._host, self._port = host, port
        self._playbook = Playbook(script)
        self._gates = Gates()
        self._received = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._http = HttpServer(self._answer)
        self._failed: list[Exception] = []

    @property
    def port(self) -> int:
        """The port that it listens on, or is configured to listen on."""
        if self._server is None:
            return self._port
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"http://{self._host}:{self.port}/v1"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._http.connection, self._host, self._port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self._http.close()
        await self._server.wait_closed()
        if self._failed and error is None:
            raise self._failed[0]  # an error of this server must not look like a lost client

    async def serve_forever(self, announce: Callable[[str], object] | None = None) -> None:
        """Serve until cancelled; `announce` is called with a sentence that has the address.

        Raises UserError if it cannot listen on the port.
        """
        async with contextlib.AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self)
            except OSError as error:
                place = f"{self._host}:{self._port}"
                raise UserError(f"cannot listen on {place}: {error.strerror}") from error
            if announce is not None:
                announce(f"The scripted model listens on {self.base_url} (Ctrl-C stops it)")
            await asyncio.Event().wait()

    # Synchronization with a test ------------------------------------------------------------

    async def received(self, count: int) -> list[ChatRequest]:
        """Wait for `count` requests in total, and return the first `count`."""
        async with self._received:
            await self._received.wait_for(lambda: len(self.requests) >= count)
        return self.requests[:count]

    async def held(self, name: str, count: int = 1) -> None:
        """Wait until `count` answers in total have arrived at the gate `name`."""
        await self._gates.held(name, count)

    def release(self, name: str) -> None:
        """Open the gate `name`, for later answers too."""
        self._gates.release(name)

    # Requests -------------------------------------------------------------------------------

    async def _answer(self, exchange: Exchange) -> None:
        writer = ResponseWriter(exchange, self._gates)
        try:
            await self._respond(exchange, await exchange.body(MAX_BODY), writer)
        except BadRequest as bad:
            await writer.error(bad.status, str(bad))
        except OSError:
            raise  # the client is gone
        except Exception as error:  # noqa: BLE001  `__aexit__` raises it
            self._failed.append(error)

    async def _respond(self, request: Exchange, body: bytes, writer: ResponseWriter) -> None:
        key, authorization = self.script.api_key, request.headers.get("authorization")
        if key is not None and authorization != f"Bearer {key}":
            await writer.error(401, "wrong API key", "invalid_api_key")
            return
        match request.method, request.path:
            case "GET", "/v1/models":
                await writer.json(200, wire.model_list(self.script.models))
            case "POST", "/v1/chat/completions" | "/v1/responses":
                await self._chat(request, body, writer)
            case "POST", "/v1/embeddings" if self.script.embeddings:
                await self._embed(body, writer)
            case _:
                await writer.error(404, f"there is no {request.method} {request.path}")

    async def _embed(self, body: bytes, writer: ResponseWriter) -> None:
        try:
            texts, answer = wire.embeddings(json.loads(body), self.script.embeddings)
        except (ValueError, ScriptMistake) as mistake:
            self.mistakes.append(str(mistake))
            await writer.error(400, str(mistake))
            return
        self.embedded.append(texts)
        await writer.json(200, answer)

    async def _chat(self, request: Exchange, body: bytes, writer: ResponseWriter) -> None:
        at, is_responses_api = asyncio.get_running_loop().time(), request.path == "/v1/responses"
        try:
            raw = json.loads(body)
            chat = parse_request(raw, request.headers, at, is_responses_api=is_responses_api)
            number = await self._record(chat)
            choice = self._playbook.choose(chat)
        except (ValueError, RequestRefused, ScriptMistake) as mistake:
            self.mistakes.append(str(mistake))
            await writer.error(400, str(mistake))
            return
        self.rules.append(choice.rule)
        await writer.play(chat, choice.answer, number)

    async def _record(self, chat: ChatRequest) -> int:
        """The request's number, from 1."""
        async with self._received:
            self.requests.append(chat)
            self._received.notify_all()
            return len(self.requests)


def main(script_path: Path | str, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve the script in a file until Ctrl-C. Raises UserError for an unusable file or port."""
    script = load_script(Path(script_path))

    async def serve() -> None:
        await ModelServer(script, host, port).serve_forever(_print)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
