"""The OpenAI API on the hub's own port, at `/v1`: its agents are the models.

Who asks is proven by the token, which is the API key, and is a person of the network. In an open
network, where people have no tokens, the key is the person's name.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from pydantic import JsonValue, ValidationError
from websockets.datastructures import MultipleValuesError

from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.interop.asking.asker import Asker, unknown_model
from hubbub.interop.asking.question import Failed, Question
from hubbub.interop.guests import Attach, Guests, bearer
from hubbub.interop.openai.http import BadRequest, HttpServer, Request, Response
from hubbub.interop.openai.replies import ChatReply, Reply, ResponsesReply, error_body, model
from hubbub.interop.openai.requests import ChatRequest, ResponsesRequest, Unsupported
from hubbub.network.http import refusal
from hubbub.protocol.messages import Kind
from hubbub.protocol.thread_ids import is_participant_id

__all__ = ["PATH", "OpenAiDoor", "Owner"]

PATH = "/v1"
MOST_BODY = 32 * 1024 * 1024
"""Bytes of a request: files come along in it."""
KEEP_ALIVE_S = 10.0
"""Between two signs of life while nothing is written."""
ASKS: Mapping[str, tuple[type[ChatRequest | ResponsesRequest], type[Reply]]] = {
    f"{PATH}/chat/completions": (ChatRequest, ChatReply),
    f"{PATH}/responses": (ResponsesRequest, ResponsesReply),
}
Owner: TypeAlias = Callable[[str], Awaitable[tuple[str, Kind] | None]]
"""Whose token it is, and what they are; None: nobody's."""


class OpenAiDoor:
    """A context, in which `protocol` makes what a connection is spoken with."""

    def __init__(self, attach: Attach, owner: Owner, host: str, names: Sequence[str] = ()):
        """`attach` leads to the hub, for a peer at an address; `host` is where it listens, `names`
        are its others."""
        self._owner, self._host, self._names = owner, host, names
        self._guests = Guests(attach, Asker)
        self._server = HttpServer(self._handle)
        self.protocol = self._server.protocol

    async def __aenter__(self) -> OpenAiDoor:
        await self._guests.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._server.close()
        await self._guests.__aexit__()

    async def _handle(self, response: Response) -> None:
        try:
            request = await response.request()
        except BadRequest as wrong:
            failure = Failed(wrong.status, "invalid_request", str(wrong))
            await self._fail(response, failure, {})
            return
        shared: dict[str, str] = {}
        try:
            wrong_place = refusal(request.headers, self._host, self._names)
            if wrong_place is not None:
                raise Failed(403, "forbidden", wrong_place)
            shared = _shared(request)
            if request.method == "OPTIONS":
                await response.whole(204, shared, b"")
            else:
                await self._respond(request, response, shared)
        except BadRequest as wrong:
            failure = Failed(wrong.status, "invalid_request", str(wrong))
            await self._fail(response, failure, shared)
        except MultipleValuesError as error:
            failure = Failed(400, "invalid_request", f"the header {error} is there twice")
            await self._fail(response, failure, shared)
        except TimeoutError:
            raise
        except HubbubError as error:
            await self._fail(response, Failed.of(error), shared)

    async def _fail(self, response: Response, failure: Failed, headers: Mapping[str, str]) -> None:
        told = {"x-should-retry": "false"}
        if failure.again_s is not None:
            told = {"x-should-retry": "true", "retry-after": f"{failure.again_s:.0f}"}
        if failure.status == 401:
            told["www-authenticate"] = "Bearer"
        status = failure.status if failure.status != 499 else 400
        await _json(response, status, {**headers, **told}, error_body(failure))

    async def _respond(
        self, request: Request, response: Response, headers: Mapping[str, str]
    ) -> None:
        asks, known = ASKS.get(request.path), request.path.startswith(f"{PATH}/models")
        if asks is None and not known:
            raise Failed(404, "not_found", f"there is no {request.path[:200]} here")
        if request.method != ("POST" if asks is not None else "GET"):
            raise Failed(405, "method_not_allowed", f"{request.method} is not for {request.path}")
        asker = await self._asker(request)
        with asker.asking():
            if asks is None:
                await self._models(asker, request, response, headers)
                return
            body = await response.body(MOST_BODY)
            try:
                asked = asks[0].model_validate_json(body).asked()
            except ValidationError as error:
                raise Failed(400, "invalid_request", _wrong(error)) from None
            except Unsupported as error:
                raise Failed(400, "unsupported_parameter", str(error)) from None
            await asker.check(asked.model)
            key = request.headers.get("Idempotency-Key", "")[:1000]
            thread = request.headers.get("X-Hubbub-Thread", "")
            question = await asker.ask(asked, key, thread)
            reply = asks[1](question, int(time.time()))
            left = asyncio.create_task(response.left())
            try:
                async with asker.waiting(question):
                    follow = _stream if asked.stream else _whole
                    if await _unless(left, follow(question, reply, response, headers)):
                        asker.taken(question)
            finally:
                left.cancel()

    async def _asker(self, request: Request) -> Asker:
        """Who asks. Raises `Failed`, `OperationError` and `ConnectionLost`."""
        token = bearer(request.headers.get("Authorization", ""))
        found = await self._owner(token)
        if found is not None:
            name, kind = found
        elif is_participant_id(token) and not token.startswith("hub_"):
            name, kind, token = token, "human", ""
        else:  # the hub says so, in its own time
            name, kind = "everyone", "human"
        if kind != "human":
            words = f"this is the token of {name!r}, and only people ask here"
            raise Failed(403, "forbidden", words)
        try:
            return await self._guests.of(name, kind, token, request.address)
        except OperationError as error:
            if error.temporary:
                raise
            words = "this API key is no token of a person here (`hubbub tokens add NAME`)"
            raise Failed(401, "invalid_api_key", words) from None
        except ConnectionLost as error:
            raise Failed(503, "unavailable", f"the hub is not there: {error}", again_s=1) from None

    async def _models(
        self, asker: Asker, request: Request, response: Response, headers: Mapping[str, str]
    ) -> None:
        agents = await asker.agents()
        told = {agent.id: model(agent.id, agent.card.description) for agent in agents}
        name = request.path.removeprefix(f"{PATH}/models").strip("/")
        if name and name not in told:
            raise unknown_model(name, agents)
        every: dict[str, JsonValue] = {"object": "list", "data": list[JsonValue](told.values())}
        await _json(response, 200, headers, told[name] if name else every)


async def _unless(left: asyncio.Task[None], follow: Awaitable[None]) -> bool:
    """Do it, unless the asker leaves before; whether it was done."""
    following = asyncio.ensure_future(follow)
    try:
        await asyncio.wait({left, following}, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            following.result()
        return following.done()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _whole(
    question: Question, reply: Reply, response: Response, headers: Mapping[str, str]
) -> None:
    await question.over.wait()
    if question.failure is not None:
        raise question.failure
    await _json(response, 200, {**headers, **_place(question)}, reply.whole())


async def _stream(
    question: Question, reply: Reply, response: Response, headers: Mapping[str, str]
) -> None:
    while question.message is None and question.failure is None:
        if not await question.changed(KEEP_ALIVE_S):
            break  # another question is answered before: there shall be a sign of life
    if question.failure is not None:
        raise question.failure
    told = {**headers, **_place(question), "content-type": "text/event-stream"}
    await response.begin(200, {**told, "cache-control": "no-store", "x-accel-buffering": "no"})
    await response.write(b"".join(reply.begin()))
    while not question.over.is_set():
        if news := b"".join(reply.news()):
            await response.write(news)
        elif not await question.changed(KEEP_ALIVE_S):
            await response.write(b": waiting\n\n")
    last = [*reply.news()]
    failure = question.failure
    last += reply.end() if failure is None else reply.failed(failure)
    await response.write(b"".join(last))


def _place(question: Question) -> dict[str, str]:
    """Where the question stands, as headers."""
    message = question.message
    if message is None:
        return {}
    return {"x-request-id": message.id, "x-hubbub-thread": message.thread_id}


async def _json(
    response: Response, status: int, headers: Mapping[str, str], body: Mapping[str, JsonValue]
) -> None:
    told = {**headers, "content-type": "application/json"}
    await response.whole(status, told, json.dumps(body, ensure_ascii=False).encode())


def _shared(request: Request) -> dict[str, str]:
    """The headers that let a page of another name of this hub read the answer."""
    origin = request.headers.get("Origin")
    if origin is None:
        return {}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, POST, OPTIONS",
        "access-control-allow-headers": request.headers.get("Access-Control-Request-Headers", "*"),
        "access-control-expose-headers": "x-request-id, x-hubbub-thread",
        "vary": "Origin",
    }


def _wrong(error: ValidationError) -> str:
    """The first thing that is wrong with a request."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}"
