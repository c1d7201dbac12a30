"""What a model endpoint can do wrong, as the real client meets it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from openai import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AsyncOpenAI,
    AuthenticationError,
    InternalServerError,
    RateLimitError,
)
from openai.types.chat import ChatCompletionMessageParam

from hubbub.testing.model_server import Answer, Breakdown, Call, ModelServer, Refusal, Script

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]


@contextlib.asynccontextmanager
async def playing(
    *answers: Answer | Refusal | Breakdown, retries: int = 0
) -> AsyncIterator[tuple[ModelServer, AsyncOpenAI]]:
    async with (
        ModelServer(Script(answers=list(answers))) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=retries) as client,
    ):
        yield server, client


async def ask(client: AsyncOpenAI) -> str | None:
    done = await client.chat.completions.create(model="m", messages=HELLO)
    return done.choices[0].message.content


async def test_a_client_that_retries_gets_past_429_and_500() -> None:
    busy, broken = Refusal(status=429, retry_after=0.01), Refusal(status=500, retry_after=0.01)
    async with playing(busy, broken, Answer(text="at last"), retries=2) as (server, client):
        assert await ask(client) == "at last"
        assert [r.headers["x-stainless-retry-count"] for r in server.requests] == ["0", "1", "2"]


@pytest.mark.behaviour("A-13")
async def test_a_429_says_when_to_come_back() -> None:
    async with playing(Refusal(status=429, retry_after=7, code="slow_down")) as (_, client):
        with pytest.raises(RateLimitError) as caught:
            await ask(client)
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.code == "slow_down"


async def test_a_500_that_stays_is_an_error() -> None:
    async with playing(Refusal(status=500, message="out of order")) as (_, client):
        with pytest.raises(InternalServerError, match="out of order"):
            await ask(client)


async def test_a_401_is_not_retried() -> None:
    async with playing(Refusal(status=401), Answer(text="never"), retries=2) as (server, client):
        with pytest.raises(AuthenticationError):
            await ask(client)
        assert len(server.requests) == 1


async def test_a_refusal_can_be_held_too() -> None:
    async with playing(Refusal(status=500, hold="gate")) as (server, client):
        asking = asyncio.create_task(ask(client))
        await server.held("gate")
        server.release("gate")
        with pytest.raises(InternalServerError):
            await asking


async def test_a_hang_ends_with_the_clients_timeout_and_the_server_lives() -> None:
    async with playing(Breakdown(breakdown="hang"), Answer(text="alive")) as (server, client):
        with pytest.raises(APITimeoutError):
            await ask(client.with_options(timeout=0.05))
        assert await ask(client) == "alive"
        assert len(server.requests) == 2


async def test_a_server_that_hangs_can_be_closed() -> None:
    async with playing(Breakdown(breakdown="hang")) as (server, client):
        asking = asyncio.create_task(ask(client))
        await server.received(1)
        await server.__aexit__(None, None, None)
        with pytest.raises(APIConnectionError):
            await asking


async def test_a_reset_is_a_connection_error() -> None:
    async with playing(Breakdown(breakdown="reset"), Answer(text="alive")) as (_, client):
        with pytest.raises(APIConnectionError):
            await ask(client)
        assert await ask(client) == "alive"


async def test_a_cut_body_never_passes_for_an_answer() -> None:
    async with playing(Answer(text="x" * 500, cut_after=0)) as (_, client):
        with pytest.raises(APIConnectionError):
            await ask(client)


@pytest.mark.behaviour("A-13")
async def test_a_cut_stream_ends_in_an_error_after_what_was_sent() -> None:
    seen: list[str | None] = []

    async def read(client: AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        async for chunk in stream:
            seen.append(chunk.choices[0].delta.content)

    async with playing(Answer(text="abcdef", piece=2, cut_after=2)) as (_, client):
        with pytest.raises(APIConnectionError):
            await read(client)
    assert seen == ["", "ab"]


async def test_a_wrong_content_type_is_told_as_it_is() -> None:
    async with playing(Answer(text="hi", content_type="text/html")) as (_, client):
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=HELLO)
    assert raw.headers["content-type"] == "text/html"


@pytest.mark.behaviour("A-13")
async def test_unknown_tools_and_broken_arguments_are_delivered_as_scripted() -> None:
    answer = Answer(calls=[Call(tool="no_such_tool", arguments="{'a': 1")])
    async with playing(answer) as (_, client):
        done = await client.chat.completions.create(model="m", messages=HELLO)
    [call] = done.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("no_such_tool", "{'a': 1")


async def test_slow_chunks_arrive_one_by_one() -> None:
    answer = Answer(text="abcd", piece=2, chunk_delay_s=0.001, delay_s=0.001)
    async with playing(answer) as (_, client):
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        texts = [chunk.choices[0].delta.content async for chunk in stream]
    assert texts == ["", "ab", "cd", None]


async def test_every_refusal_is_an_api_error_to_the_client() -> None:
    refusals = [Refusal(status=status) for status in (400, 403, 404, 409, 422, 503, 599)]
    async with playing(*refusals) as (_, client):
        for refusal in refusals:
            with pytest.raises(APIError, match="scripted refusal"):
                await ask(client)
            assert refusal.status >= 400
