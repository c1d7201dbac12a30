"""A model without a model: an OpenAI-compatible endpoint that plays a script over real HTTP.

    script = Script(answers=[Answer(calls=[Call(tool="finish", arguments={"reason": "done"})])])
    async with ModelServer(script) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="any")
        ...
        assert server.requests[0].incoming == "hello"

A request the script has no answer to gets 400 with the reason, which `server.mistakes` keeps.
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
from hubbub.testing import model_http as http
from hubbub.testing import model_wire as wire
from hubbub.testing.model_playbook import Playbook
from hubbub.testing.model_request import ChatRequest, RequestRefused, parse_request
from hubbub.testing.model_script import (
    Answer,
    Breakdown,
    Call,
    Refusal,
    Rule,
    Script,
    ScriptMistake,
    Usage,
    When,
    load_script,
)

__all__ = [
    "Answer",
    "Breakdown",
    "Call",
    "ChatRequest",
    "Delivery",
    "ModelServer",
    "Refusal",
    "Rule",
    "Script",
    "Usage",
    "When",
    "load_script",
    "main",
]


class Gates:
    """Named places where answers wait until a test lets them pass: delays without time. Each is
    closed until it is released, and then stays open."""

    def __init__(self) -> None:
        self._came: defaultdict[str, int] = defaultdict(int)
        self._open: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._news = asyncio.Condition()

    async def pass_through(self, name: str | None) -> None:
        """Returns when the gate is open; at once when there is none."""
        if name is None:
            return
        async with self._news:
            self._came[name] += 1
            self._news.notify_all()
        await self._open[name].wait()

    async def held(self, name: str, count: int) -> None:
        """Returns when `count` answers in all have come to the gate."""
        async with self._news:
            await self._news.wait_for(lambda: self._came[name] >= count)

    def release(self, name: str) -> None:
        self._open[name].set()


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


class ModelServer:
    """Plays a script on 127.0.0.1 (or `host`); port 0 takes a free one.

    `requests` has every legal chat request in order of arrival, `rules` the names of what answered,
    `mistakes` why requests got 400, `embedded` the texts of each request for embeddings.
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
        self._news = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def port(self) -> int:
        """The port it listens on, or shall listen on."""
        if self._server is None:
            return self._port
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def base_url(self) -> str:
        """What an OpenAI client is given."""
        return f"http://{self._host}:{self.port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._greet, self._host, self._port, limit=http.MAX_HEAD
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for talk, writer in self._talks.items():
            writer.transport.abort()
            talk.cancel()
        ends = await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()
        for end in ends:
            if isinstance(end, Exception) and error is None:
                raise end  # a mistake of this server must not pass for a client that left

    async def serve_forever(self, announce: Callable[[str], object] | None = None) -> None:
        """Serve until cancelled; `announce` is given a sentence with the address.

        Raises UserError if the port cannot be had.
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

    # What a test waits for and pulls --------------------------------------------------------

    async def received(self, count: int) -> list[ChatRequest]:
        """Waits until `count` requests have come; gives those."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.requests) >= count)
        return self.requests[:count]

    async def held(self, name: str, count: int = 1) -> None:
        """Waits until `count` answers in all have come to the hold `name`."""
        await self._gates.held(name, count)

    def release(self, name: str) -> None:
        """Lets everything pass that the hold `name` keeps, now and later."""
        self._gates.release(name)

    # Connections ----------------------------------------------------------------------------

    def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(self._talk(reader, writer))
        self._talks[talk] = writer
        talk.add_done_callback(self._ended)

    def _ended(self, talk: asyncio.Task[None]) -> None:
        if talk.cancelled() or talk.exception() is None:
            self._talks.pop(talk)  # a failed one stays, for __aexit__ to raise

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # a client that timed out just goes
            try:
                await self._serve(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        delivery = Delivery(reader, writer, self._gates)
        try:
            while (request := await http.read_request(reader, writer)) is not None:
                await self._respond(request, delivery)
                if not request.keep_alive or writer.is_closing():
                    break
        except http.BadHttp as bad:
            await delivery.error(bad.status, bad.message)

    async def _respond(self, request: http.HttpRequest, delivery: Delivery) -> None:
        key, given = self.script.api_key, request.headers.get("authorization")
        if key is not None and given != f"Bearer {key}":
            await delivery.error(401, "wrong API key", "invalid_api_key")
            return
        match request.method, request.path:
            case "GET", "/v1/models":
                await delivery.json(200, wire.model_list(self.script.models))
            case "POST", "/v1/chat/completions" | "/v1/responses":
                await self._chat(request, delivery, request.path == "/v1/responses")
            case "POST", "/v1/embeddings" if self.script.embeddings:
                await self._embed(request, delivery)
            case _:
                await delivery.error(404, f"there is no {request.method} {request.path}")

    async def _embed(self, request: http.HttpRequest, delivery: Delivery) -> None:
        try:
            texts, answer = wire.embeddings(json.loads(request.body), self.script.embeddings)
        except (ValueError, ScriptMistake) as mistake:
            self.mistakes.append(str(mistake))
            await delivery.error(400, str(mistake))
            return
        self.embedded.append(texts)
        await delivery.json(200, answer)

    async def _chat(
        self, request: http.HttpRequest, delivery: Delivery, by_responses: bool
    ) -> None:
        at = asyncio.get_running_loop().time()
        try:
            raw = json.loads(request.body)
            chat = parse_request(raw, request.headers, at, by_responses=by_responses)
            number = await self._record(chat)
            choice = self._playbook.choose(chat)
        except (ValueError, RequestRefused, ScriptMistake) as mistake:
            self.mistakes.append(str(mistake))
            await delivery.error(400, str(mistake))
            return
        self.rules.append(choice.rule)
        await delivery.play(chat, choice.answer, number)

    async def _record(self, chat: ChatRequest) -> int:
        """The request's number, from 1."""
        async with self._news:
            self.requests.append(chat)
            self._news.notify_all()
            return len(self.requests)


def main(script_path: Path | str, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve the script in a file until Ctrl-C. Raises UserError if file or port cannot be used."""
    server_script = load_script(Path(script_path))

    async def serve() -> None:
        await ModelServer(server_script, host, port).serve_forever(_say)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


def _say(sentence: str) -> None:
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()
