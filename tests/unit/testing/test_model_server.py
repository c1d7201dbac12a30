from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
from openai import AsyncOpenAI, AuthenticationError, BadRequestError
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from openai.types.chat.chat_completion_message_function_tool_call import (
    ChatCompletionMessageFunctionToolCall,
)

from hubbub.errors import UserError
from hubbub.testing.model_server import (
    Answer,
    Call,
    ModelServer,
    Refusal,
    Rule,
    Script,
    Usage,
    When,
)

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]
TOOLS: list[ChatCompletionFunctionToolParam] = [
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
]


@contextlib.asynccontextmanager
async def playing(*answers: Answer | Refusal) -> AsyncIterator[tuple[ModelServer, AsyncOpenAI]]:
    async with (
        ModelServer(Script(answers=list(answers))) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="key", max_retries=0) as client,
    ):
        yield server, client


async def test_text_comes_back_as_a_completion_with_usage() -> None:
    answer = Answer(text="hi there", usage=Usage(prompt_tokens=11, completion_tokens=3))
    async with playing(answer) as (_, client):
        done = await client.chat.completions.create(model="any", messages=HELLO)
    assert done.model == "any"
    assert done.choices[0].message.content == "hi there"
    assert done.choices[0].finish_reason == "stop"
    assert done.usage is not None
    assert (done.usage.prompt_tokens, done.usage.total_tokens) == (11, 14)


async def test_parallel_calls_keep_their_order_and_get_ids() -> None:
    answer = Answer(
        calls=[
            Call(tool="add", arguments={"a": 1}),
            Call(tool="add", arguments='{"a": ', id="mine"),
        ]
    )
    async with playing(answer) as (_, client):
        done = await client.chat.completions.create(
            model="m", messages=HELLO, tools=TOOLS, tool_choice="required"
        )
    first, second = done.choices[0].message.tool_calls or []
    assert isinstance(first, ChatCompletionMessageFunctionToolCall)
    assert isinstance(second, ChatCompletionMessageFunctionToolCall)
    assert done.choices[0].finish_reason == "tool_calls"
    assert json.loads(first.function.arguments) == {"a": 1}
    assert (second.id, second.function.arguments) == ("mine", '{"a": ')
    assert first.id != second.id


async def test_an_answer_can_be_cut_short_by_length() -> None:
    async with playing(Answer(text="and so on", finish_reason="length")) as (_, client):
        done = await client.chat.completions.create(model="m", messages=HELLO)
    assert done.choices[0].finish_reason == "length"


async def test_a_stream_assembles_to_the_same_answer() -> None:
    answer = Answer(
        text="Grüße, here you are",
        calls=[Call(tool="add", arguments={"a": "ü" * 20}), Call(tool="add")],
        piece=3,
        usage=Usage(prompt_tokens=1, completion_tokens=2),
    )
    text, arguments, reasons, total = "", {0: "", 1: ""}, [], 0
    async with playing(answer) as (_, client):
        stream = await client.chat.completions.create(
            model="m",
            messages=HELLO,
            tools=TOOLS,
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            total = chunk.usage.total_tokens if chunk.usage else total
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reasons += [choice.finish_reason] if choice.finish_reason else []
                for call in choice.delta.tool_calls or []:
                    assert call.function is not None
                    arguments[call.index] += call.function.arguments or ""
    assert text == "Grüße, here you are"
    assert json.loads(arguments[0]) == {"a": "ü" * 20}
    assert json.loads(arguments[1]) == {}
    assert (reasons, total) == (["tool_calls"], 3)


async def test_a_stream_without_usage_asked_for_has_none() -> None:
    async with playing(Answer(text="hi")) as (_, client):
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        chunks = [chunk async for chunk in stream]
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


async def test_requests_are_recorded_with_what_they_said_and_when_they_came() -> None:
    async with playing(Answer(text="a"), Answer(text="b")) as (server, client):
        await client.chat.completions.create(model="m", messages=HELLO, temperature=0.5)
        await client.chat.completions.create(model="n", messages=HELLO, tools=TOOLS)
        first, second = await server.received(2)
    assert (first.model, first.prompt, first.raw["temperature"]) == ("m", "hello", 0.5)
    assert (second.model, second.tools) == ("n", ["add"])
    assert first.at <= second.at
    assert first.headers["authorization"] == "Bearer key"
    assert server.rules == ["answers[0]", "answers[1]"]


async def test_one_connection_serves_many_requests() -> None:
    async with playing(Answer(text="a"), Answer(text="b")) as (server, client):
        for _ in range(2):
            await client.chat.completions.create(model="m", messages=HELLO)
        assert len(server._talks) == 1


async def test_a_held_answer_waits_until_it_is_released() -> None:
    async with playing(Answer(text="a", hold="gate"), Answer(text="b")) as (server, client):
        first = asyncio.create_task(client.chat.completions.create(model="m", messages=HELLO))
        await server.held("gate")
        second = await client.chat.completions.create(model="m", messages=HELLO)
        assert second.choices[0].message.content == "b"
        assert not first.done()
        server.release("gate")
        assert (await first).choices[0].message.content == "a"


async def test_a_stream_can_be_held_in_its_middle() -> None:
    answer = Answer(text="abcdef", piece=2, hold="middle", hold_after=2)
    async with playing(answer) as (server, client):
        stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
        chunks = aiter(stream)
        seen = [await anext(chunks), await anext(chunks)]
        assert [c.choices[0].delta.content for c in seen] == ["", "ab"]
        await server.held("middle")
        server.release("middle")
        rest = [c.choices[0].delta.content async for c in chunks]
    assert rest == ["cd", "ef", None]


async def test_a_request_without_an_answer_is_told_why() -> None:
    async with playing() as (server, client):
        with pytest.raises(BadRequestError, match="no answers are left"):
            await client.chat.completions.create(model="m", messages=HELLO)
        assert len(server.mistakes) == len(server.requests) == 1


async def test_a_conversation_with_a_missing_tool_result_is_refused() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    messages: list[ChatCompletionMessageParam] = [
        *HELLO,
        {"role": "assistant", "tool_calls": [call]},  # type: ignore[list-item]
    ]
    async with playing(Answer(text="a")) as (server, client):
        with pytest.raises(BadRequestError, match="no result"):
            await client.chat.completions.create(model="m", messages=messages)
        assert server.requests == []


async def test_rules_see_the_request() -> None:
    script = Script(
        rules=[
            Rule(
                when=When.model_validate({"prompt": r"hel(?P<rest>\w+)", "model": "^m$"}),
                answer=Answer(text="rest is {{ rest }}"),
            )
        ]
    )
    async with (
        ModelServer(script) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="k") as client,
    ):
        done = await client.chat.completions.create(model="m", messages=HELLO)
    assert done.choices[0].message.content == "rest is lo"


async def test_models_are_listed() -> None:
    async with (
        ModelServer(Script(models=["small", "large"])) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="k") as client,
    ):
        listed = await client.models.list()
    assert [model.id for model in listed.data] == ["small", "large"]


async def test_a_wrong_key_is_refused_and_the_right_one_is_not() -> None:
    script = Script(api_key="secret", answers=[Answer(text="in")])
    async with ModelServer(script) as server:
        async with AsyncOpenAI(base_url=server.base_url, api_key="guess") as client:
            with pytest.raises(AuthenticationError):
                await client.chat.completions.create(model="m", messages=HELLO)
        async with AsyncOpenAI(base_url=server.base_url, api_key="secret") as client:
            done = await client.chat.completions.create(model="m", messages=HELLO)
    assert done.choices[0].message.content == "in"
    assert len(server.requests) == 1


async def test_serving_forever_announces_the_address_and_ends_with_its_task() -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    server = ModelServer(Script(answers=[Answer(text="hi")]))
    serving = asyncio.create_task(server.serve_forever(said.put_nowait))
    announced = await said.get()
    assert server.base_url in announced
    async with AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
        await client.chat.completions.create(model="m", messages=HELLO)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_a_port_in_use_is_one_sentence() -> None:
    async with ModelServer(Script()) as first:
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{first.port}"):
            await ModelServer(Script(), port=first.port).serve_forever()
