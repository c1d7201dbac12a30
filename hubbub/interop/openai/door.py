"""The OpenAI API on the hub's own port, at `/v1`: its agents are the models.

Who asks is proven by the token, which is the API key, and is a person of the network. In an open
network, where people have no tokens, the key is the person's name.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec
from pydantic import JsonValue, ValidationError

from hubbub.errors import HubbubError
from hubbub.interop.asking.asker import Asker, unknown_model
from hubbub.interop.asking.question import Failed, Question
from hubbub.interop.http import BadRequest, Exchange, HttpServer
from hubbub.interop.openai.replies import ChatReply, OpenAIReply, ResponsesReply, error_body, model
from hubbub.interop.openai.requests import ChatCompletionBody, ResponsesRequest, Unsupported
from hubbub.interop.request_clients import Attach, Owner, RequestClients, bearer

__all__ = ["PATH", "OpenAiDoor"]

PATH = "/v1"
MOST_BODY = 32 * 1024 * 1024
"""Bytes of a request: files come along in it."""
KEEP_ALIVE_S = 10.0
"""Between two signs of life while nothing is written."""
ASKS: Mapping[str, tuple[type[ChatCompletionBody | ResponsesRequest], type[OpenAIReply]]] = {
    f"{PATH}/chat/completions": (ChatCompletionBody, ChatReply),
    f"{PATH}/responses": (ResponsesRequest, ResponsesReply),
}


class OpenAiDoor:
    """A context, in which `protocol` makes what a connection is spoken with."""

    def __init__(self, attach: Attach, owner: Owner, host: str, names: Sequence[str] = ()):
        """`attach` leads to the hub, for a peer at an address; `host` is where it listens, `names`
        are its others."""
        self._owner, self._host, self._names = owner, host, names
        self._clients = RequestClients(attach, Asker)
        self._server = HttpServer(self._handle)
        self.protocol = self._server.protocol

    async def __aenter__(self) -> OpenAiDoor:
        await self._clients.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.close()
        await self._clients.__aexit__()

    async def _handle(self, exchange: Exchange) -> None:
        shared: dict[str, str] = {}
        try:
            exchange.check()
            wrong_place = exchange.foreign(self._host, self._names)
            if wrong_place is not None:
                raise Failed(403, "forbidden", wrong_place)
            shared = _shared(exchange)
            if exchange.method == "OPTIONS":
                await exchange.whole(204, shared, b"")
            else:
                await self._respond(exchange, shared)
        except BadRequest as wrong:
            await _fail(exchange, Failed(wrong.status, "invalid_request", str(wrong)), shared)
        except HubbubError as error:
            await _fail(exchange, Failed.of(error), shared)

    async def _respond(self, exchange: Exchange, headers: Mapping[str, str]) -> None:
        path, asks = exchange.path, ASKS.get(exchange.path)
        if asks is None and not path.startswith(f"{PATH}/models"):
            raise Failed(404, "not_found", f"there is no {path[:200]} here")
        if exchange.method != ("POST" if asks is not None else "GET"):
            raise Failed(405, "method_not_allowed", f"{exchange.method} is not for {path}")
        token = bearer(exchange.header("authorization"))
        asker = await self._clients.person(self._owner, token, exchange.address)
        with asker.asking():
            if asks is None:
                await self._models(asker, exchange, headers)
                return
            body = await exchange.body(MOST_BODY)
            try:
                asked = asks[0].model_validate_json(body).asked()
            except ValidationError as error:
                raise Failed(400, "invalid_request", _wrong(error)) from None
            except Unsupported as error:
                raise Failed(400, "unsupported_parameter", str(error)) from None
            await asker.check(asked.model)
            key = exchange.header("idempotency-key")[:1000]
            thread = exchange.header("x-hubbub-thread")
            question = await asker.ask(asked, key, thread)
            reply = asks[1](question, int(time.time()))
            async with asker.waiting(question):
                await (_stream if asked.stream else _whole)(question, reply, exchange, headers)
                asker.taken(question)

    async def _models(self, asker: Asker, exchange: Exchange, headers: Mapping[str, str]) -> None:
        agents = await asker.agents()
        told = {agent.id: model(agent.id, agent.card.description) for agent in agents}
        name = exchange.path.removeprefix(f"{PATH}/models").strip("/")
        if name and name not in told:
            raise unknown_model(name, agents)
        every: dict[str, JsonValue] = {"object": "list", "data": list[JsonValue](told.values())}
        await _json(exchange, 200, headers, told[name] if name else every)


async def _fail(exchange: Exchange, failure: Failed, headers: Mapping[str, str]) -> None:
    told = {"x-should-retry": "false"}
    if failure.again_s is not None:
        told = {"x-should-retry": "true", "retry-after": f"{failure.again_s:.0f}"}
    if failure.status == 401:
        told["www-authenticate"] = "Bearer"
    status = failure.status if failure.status != 499 else 400
    await _json(exchange, status, {**headers, **told}, error_body(failure))


async def _whole(
    question: Question, reply: OpenAIReply, exchange: Exchange, headers: Mapping[str, str]
) -> None:
    await question.over.wait()
    if question.failure is not None:
        raise question.failure
    await _json(exchange, 200, {**headers, **_place(question)}, reply.whole())


async def _stream(
    question: Question, reply: OpenAIReply, exchange: Exchange, headers: Mapping[str, str]
) -> None:
    while question.message is None and question.failure is None:
        if not await question.changed(KEEP_ALIVE_S):
            break  # another question is answered before: there shall be a sign of life
    if question.failure is not None:
        raise question.failure
    told = {**headers, **_place(question), "content-type": "text/event-stream"}
    exchange.begin(200, {**told, "cache-control": "no-store", "x-accel-buffering": "no"})
    await exchange.write(b"".join(reply.begin()))
    while not question.over.is_set():
        if news := b"".join(reply.news()):
            await exchange.write(news)
        elif not await question.changed(KEEP_ALIVE_S):
            await exchange.write(b": waiting\n\n")
    last = [*reply.news()]
    failure = question.failure
    last += reply.end() if failure is None else reply.failed(failure)
    await exchange.write(b"".join(last))


def _place(question: Question) -> dict[str, str]:
    """Where the question stands, as headers."""
    message = question.message
    if message is None:
        return {}
    return {"x-request-id": message.id, "x-hubbub-thread": message.thread_id}


async def _json(
    exchange: Exchange, status: int, headers: Mapping[str, str], body: Mapping[str, JsonValue]
) -> None:
    told = {**headers, "content-type": "application/json"}
    await exchange.whole(status, told, msgspec.json.encode(body))


def _shared(exchange: Exchange) -> dict[str, str]:
    """The headers that let a page of another name of this hub read the answer."""
    asked = exchange.headers
    origin = asked.get("origin")
    if origin is None:
        return {}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, POST, OPTIONS",
        "access-control-allow-headers": asked.get("access-control-request-headers", "*"),
        "access-control-expose-headers": "x-request-id, x-hubbub-thread",
        "vary": "Origin",
    }


def _wrong(error: ValidationError) -> str:
    """The first thing that is wrong with a request."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}"
