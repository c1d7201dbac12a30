"""The OpenAI API on the hub's own port, at `/v1`, with its agents as the models.

The API key is the token of a person in the network. In an open network, where people have no
tokens, it is the person's name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec
from pydantic import JsonValue, ValidationError

from hubbub.errors import HubbubError
from hubbub.interop.asking.asker import Asker, unknown_model
from hubbub.interop.asking.question import Question, QuestionFailed
from hubbub.interop.http import BadRequest, Exchange, HttpServer
from hubbub.interop.openai.replies import ChatReply, OpenAIReply, ResponsesReply, error_body, model
from hubbub.interop.openai.requests import ChatCompletionBody, ResponsesRequest, Unsupported
from hubbub.interop.request_clients import Attach, Owner, RequestClients, bearer

__all__ = ["PATH", "OpenAiDoor"]

PATH = "/v1"
MAX_BODY = 32 * 1024 * 1024
"""Bytes of a request, files included."""
MAX_VALUES = 100_000
"""JSON values of a request: ten for each message of the longest conversation."""
KEEP_ALIVE_S = 10.0
"""Seconds between keep-alive comments while nothing is written."""
ENDPOINTS: Mapping[str, tuple[type[ChatCompletionBody | ResponsesRequest], type[OpenAIReply]]] = {
    f"{PATH}/chat/completions": (ChatCompletionBody, ChatReply),
    f"{PATH}/responses": (ResponsesRequest, ResponsesReply),
}


class OpenAiDoor:
    """A context in which `protocol` returns the protocol for a connection."""

    def __init__(self, attach: Attach, owner: Owner, host: str, names: Sequence[str]):
        """`host` is the address the hub listens on, `names` are its other names."""
        self._owner, self._host, self._names = owner, host, names
        self._clients = RequestClients(attach, Asker)
        self._server = HttpServer(self._handle)
        self.protocol = self._server.protocol

    async def __aenter__(self) -> OpenAiDoor:
        await self._clients.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        # First, as a request that ends stops its turn, which a hub that stops would never answer.
        await self._clients.__aexit__()
        await self._server.close()

    async def _handle(self, exchange: Exchange) -> None:
        cors: dict[str, str] = {}
        try:
            exchange.check()
            refusal = exchange.foreign(self._host, self._names)
            if refusal is not None:
                raise QuestionFailed(403, "forbidden", refusal)
            cors = _cors_headers(exchange)
            if exchange.method == "OPTIONS":
                await exchange.respond(204, cors, b"")
            else:
                await self._respond(exchange, cors)
        except BadRequest as error:
            await _fail(exchange, QuestionFailed(error.status, "invalid_request", str(error)), cors)
        except HubbubError as error:
            await _fail(exchange, QuestionFailed.from_error(error), cors)

    async def _respond(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        path, endpoint = exchange.path, ENDPOINTS.get(exchange.path)
        if endpoint is None and not path.startswith(f"{PATH}/models"):
            raise QuestionFailed(404, "not_found", f"there is no {path[:200]}")
        if exchange.method != ("POST" if endpoint is not None else "GET"):
            raise QuestionFailed(
                405, "method_not_allowed", f"{exchange.method} is not allowed for {path}"
            )
        token = bearer(exchange.header("authorization"))
        asker = await self._clients.join_person(self._owner, token, exchange.address)
        with asker.in_flight():
            if endpoint is None:
                await self._models(asker, exchange, headers)
                return
            body_type, reply_type = endpoint
            body = await exchange.json(MAX_BODY, MAX_VALUES)
            try:
                request = body_type.model_validate_json(body).to_request()
            except ValidationError as error:
                raise QuestionFailed(400, "invalid_request", _first_error(error)) from None
            except Unsupported as error:
                raise QuestionFailed(400, "unsupported_parameter", str(error)) from None
            await asker.check(request.model)
            key = exchange.header("idempotency-key")[:1000]
            thread = exchange.header("x-hubbub-thread")
            question = await asker.ask(request, key, thread)
            reply = reply_type(question, int(time.time()))
            async with asker.waiting(question):
                send = _stream if request.stream else _send_whole
                await send(question, reply, exchange, headers)
                asker.mark_read(question)

    async def _models(self, asker: Asker, exchange: Exchange, headers: Mapping[str, str]) -> None:
        agents = await asker.agents()
        models = {agent.id: model(agent.id, agent.card.description) for agent in agents}
        name = exchange.path.removeprefix(f"{PATH}/models").strip("/")
        if name and name not in models:
            raise unknown_model(name, agents)
        every: dict[str, JsonValue] = {"object": "list", "data": list[JsonValue](models.values())}
        await _send_json(exchange, 200, headers, models[name] if name else every)


async def _fail(exchange: Exchange, failure: QuestionFailed, headers: Mapping[str, str]) -> None:
    hints = {"x-should-retry": "false"}
    if failure.retry_after_s is not None:
        hints = {"x-should-retry": "true", "retry-after": f"{failure.retry_after_s:.0f}"}
    if failure.status == 401:
        hints["www-authenticate"] = "Bearer"
    status = failure.status if failure.status != 499 else 400
    await _send_json(exchange, status, {**headers, **hints}, error_body(failure))


async def _send_whole(
    question: Question, reply: OpenAIReply, exchange: Exchange, headers: Mapping[str, str]
) -> None:
    await question.done.wait()
    if question.failure is not None:
        raise question.failure
    await _send_json(exchange, 200, {**headers, **_location(question)}, reply.whole())


async def _stream(
    question: Question, reply: OpenAIReply, exchange: Exchange, headers: Mapping[str, str]
) -> None:
    while question.message is None and question.failure is None:
        if not await question.wait_changed(KEEP_ALIVE_S):
            break  # queued behind another question: start the stream to keep it alive
    if question.failure is not None:
        raise question.failure
    own = {**headers, **_location(question), "content-type": "text/event-stream"}
    exchange.start(200, {**own, "cache-control": "no-store", "x-accel-buffering": "no"})
    await exchange.write(b"".join(reply.begin()))
    while not question.done.is_set():
        if events := b"".join(reply.new_events()):
            await exchange.write(events)
        elif not await question.wait_changed(KEEP_ALIVE_S):
            await exchange.write(b": waiting\n\n")
    last = [*reply.new_events()]
    failure = question.failure
    last += reply.end() if failure is None else reply.failed(failure)
    await exchange.write(b"".join(last))


def _location(question: Question) -> dict[str, str]:
    """The question's message and thread, as headers."""
    message = question.message
    if message is None:
        return {}
    return {"x-request-id": message.id, "x-hubbub-thread": message.thread_id}


async def _send_json(
    exchange: Exchange, status: int, headers: Mapping[str, str], body: Mapping[str, JsonValue]
) -> None:
    every = {**headers, "content-type": "application/json"}
    await exchange.respond(status, every, msgspec.json.encode(body))


def _cors_headers(exchange: Exchange) -> dict[str, str]:
    """CORS headers that let a page served under another name of this hub read the response."""
    headers = exchange.headers
    origin = headers.get("origin")
    if origin is None:
        return {}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, POST, OPTIONS",
        "access-control-allow-headers": headers.get("access-control-request-headers", "*"),
        "access-control-expose-headers": "x-request-id, x-hubbub-thread",
        "vary": "Origin",
    }


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}"
