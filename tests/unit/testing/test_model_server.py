"""The model server with the real client: its answers and the faults of endpoints."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from openai import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AsyncOpenAI,
    AuthenticationError,
    BadRequestError,
    RateLimitError,
)

from hubbub.errors import ConfigError, UserError
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import (
    Breakdown,
    ModelServer,
    Refusal,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptedUsage,
    main,
)

HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


class Caller:
    """The real client."""

    def __init__(self, client: AsyncOpenAI):
        self.client = client

    async def create(self, **more: Any) -> Any:  # of the client's many overloads
        return await self.client.chat.completions.create(
            **{"model": "m", "messages": HELLO, **more}
        )

    async def ask(self) -> str | None:
        text: str | None = (await self.create()).choices[0].message.content
        return text

    async def pieces(self, seen: list[str | None]) -> list[str | None]:
        """The texts of a stream's chunks, appended to `seen` as they arrive."""
        async for chunk in await self.create(stream=True):
            seen.append(chunk.choices[0].delta.content)
        return seen


@contextlib.asynccontextmanager
async def playing(
    *answers: AnyAnswer, retries: int = 0, **script: Any
) -> AsyncIterator[tuple[ModelServer, Caller]]:
    async with (
        ModelServer(Script(answers=list(answers), **script)) as server,
        AsyncOpenAI(base_url=server.base_url, api_key="key", max_retries=retries) as client,
    ):
        yield server, Caller(client)


async def test_a_stream_assembles_to_the_same_answer() -> None:
    answer = ScriptedAnswer(
        text="Grüße, here you are",
        calls=[ScriptedCall(tool="add", arguments={"a": "ü" * 20}), ScriptedCall(tool="add")],
        piece=3,
        usage=ScriptedUsage(prompt_tokens=1, completion_tokens=2),
    )
    text, arguments, reasons, total = "", {0: "", 1: ""}, [], 0
    slow = ScriptedAnswer(text="abcd", piece=2, chunk_delay_s=0.001, delay_s=0.001)
    async with playing(answer, slow) as (_, caller):
        stream = await caller.create(
            tools=TOOLS, stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            total = chunk.usage.total_tokens if chunk.usage else total
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reasons += [choice.finish_reason] if choice.finish_reason else []
                for call in choice.delta.tool_calls or []:
                    arguments[call.index] += call.function.arguments or ""
        assert text == "Grüße, here you are"
        assert [json.loads(arguments[n]) for n in (0, 1)] == [{"a": "ü" * 20}, {}]
        assert (reasons, total) == (["tool_calls"], 3)
        assert await caller.pieces([]) == ["", "ab", "cd", None], "without usage by default"


async def test_requests_are_recorded_with_content_and_time() -> None:
    async with playing(ScriptedAnswer(text="a"), ScriptedAnswer(text="b")) as (server, caller):
        await caller.create(temperature=0.5)
        await caller.create(model="n", tools=TOOLS)
        first, second = await server.received(2)
        assert (first.model, first.prompt, first.raw["temperature"]) == ("m", "hello", 0.5)
        assert (second.model, second.tools) == ("n", ["add"])
        assert first.at <= second.at
        assert first.headers["authorization"] == "Bearer key"
        assert server.rules == ["answers[0]", "answers[1]"]


async def test_a_held_answer_waits_until_it_is_released() -> None:
    stream = ScriptedAnswer(text="abcdef", piece=2, hold="middle", hold_after=2)
    held = [ScriptedAnswer(text="a", hold="gate"), ScriptedAnswer(text="b"), stream]
    async with playing(*held, Refusal(status=500, hold="refusal")) as (server, caller):
        first = asyncio.create_task(caller.ask())
        await server.held("gate")
        assert await caller.ask() == "b"
        assert not first.done()
        server.release("gate")
        assert await first == "a"
        chunks = aiter(await caller.create(stream=True))
        seen = [(await anext(chunks)).choices[0].delta.content for _ in range(2)]
        assert seen == ["", "ab"]
        await server.held("middle")
        server.release("middle")
        assert [c.choices[0].delta.content async for c in chunks] == ["cd", "ef", None]
        refused = asyncio.create_task(caller.ask())
        await server.held("refusal")
        server.release("refusal")
        with pytest.raises(APIError):
            await refused


async def test_an_invalid_or_unanswered_request_is_refused_with_the_reason() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    unanswered = [*HELLO, {"role": "assistant", "tool_calls": [call]}]
    async with playing() as (server, caller):
        with pytest.raises(BadRequestError, match="no result"):
            await caller.create(messages=unanswered)
        assert server.requests == []
        with pytest.raises(BadRequestError, match="no answers are left"):
            await caller.ask()
        assert (len(server.mistakes), len(server.requests)) == (2, 1)


async def test_only_the_right_api_key_is_accepted() -> None:
    async with playing(ScriptedAnswer(text="in"), api_key="secret") as (server, caller):
        with pytest.raises(AuthenticationError):
            await caller.ask()
        right = Caller(caller.client.with_options(api_key="secret"))
        assert await right.ask() == "in"
        assert len(server.requests) == 1


async def test_a_server_announces_its_address_and_ends_with_its_task() -> None:
    lines: asyncio.Queue[str] = asyncio.Queue()
    server = ModelServer(Script(answers=[ScriptedAnswer(text="hi")]))
    serving = asyncio.create_task(server.serve_forever(lines.put_nowait))
    announcement = await lines.get()
    assert server.base_url in announcement
    async with AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
        assert await Caller(client).ask() == "hi"
    with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1:{server.port}"):
        await ModelServer(Script(), port=server.port).serve_forever()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


# Faults of endpoints ------------------------------------------------------------------------------


@pytest.mark.behaviour("A-13")
async def test_every_refusal_is_an_api_error_and_a_429_has_its_retry_time() -> None:
    refusals = [Refusal(status=status) for status in (400, 404, 500, 599)]
    slow = Refusal(status=429, retry_after=7, code="slow_down", message="out of breath")
    async with playing(*refusals, slow) as (_, caller):
        for _ in refusals:
            with pytest.raises(APIError, match="scripted refusal"):
                await caller.ask()
        with pytest.raises(RateLimitError, match="out of breath") as caught:
            await caller.ask()
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.code == "slow_down"


async def test_a_hang_ends_with_the_clients_timeout_or_the_server() -> None:
    hang = Breakdown(breakdown="hang")
    async with playing(hang, ScriptedAnswer(text="alive"), hang) as (server, caller):
        with pytest.raises(APITimeoutError):
            await Caller(caller.client.with_options(timeout=0.05)).ask()
        assert await caller.ask() == "alive"
        asking = asyncio.create_task(caller.ask())
        await server.received(3)
        await server.__aexit__(None, None, None)
        with pytest.raises(APIConnectionError):
            await asking


@pytest.mark.behaviour("A-13")
async def test_an_interrupted_answer_is_never_taken_for_a_whole_one() -> None:
    broken: list[AnyAnswer] = [
        Breakdown(breakdown="reset"),
        ScriptedAnswer(text="x" * 500, cut_after=0), ScriptedAnswer(text="alive"),
        ScriptedAnswer(text="abcdef", piece=2, cut_after=2),
    ]  # fmt: skip
    async with playing(*broken) as (_, caller):
        for _ in range(2):
            with pytest.raises(APIConnectionError):
                await caller.ask()
        assert await caller.ask() == "alive"
        seen: list[str | None] = []
        with pytest.raises(APIConnectionError):
            await caller.pieces(seen)
        assert seen == ["", "ab"]


@pytest.mark.behaviour("A-13")
async def test_unknown_tools_broken_arguments_and_a_wrong_type_are_delivered_as_scripted() -> None:
    odd = ScriptedAnswer(calls=[ScriptedCall(tool="no_such_tool", arguments="{'a': 1")])
    async with playing(odd, ScriptedAnswer(text="hi", content_type="text/html")) as (_, caller):
        [call] = (await caller.create()).choices[0].message.tool_calls
        assert (call.function.name, call.function.arguments) == ("no_such_tool", "{'a': 1")
        raw = caller.client.chat.completions.with_raw_response
        answer = await raw.create(model="m", messages=[{"role": "user", "content": "hi"}])
        assert answer.headers["content-type"] == "text/html"


# As a program -------------------------------------------------------------------------------------

PROGRAM = "import sys; from hubbub.testing.model_server import main; main(sys.argv[1])"


@pytest.mark.slow
async def test_the_program_prints_its_address_answers_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("answers: [{text: hello}]")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(script), stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), 100)
    url = next(word for word in line.decode().split() if word.startswith("http://"))
    async with AsyncOpenAI(base_url=url, api_key="any") as client:
        assert await Caller(client).ask() == "hello"
    process.send_signal(signal.SIGINT)
    _, errors = await asyncio.wait_for(process.communicate(), 100)
    assert (process.returncode, errors) == (0, b"")


def test_an_invalid_script_is_reported_before_the_server_listens(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("answers: [{txt: hello}]")
    with pytest.raises(ConfigError, match="txt"):
        main(script)
