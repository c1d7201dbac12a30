"""The adapter to OpenAI-compatible endpoints, against a scripted one over real HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from hubbub.agents.models.base import Completion, CompletionRequest, ToolSpec
from hubbub.agents.models.openai import STREAM_BACKOFF, OpenAIModel
from hubbub.client.calls import Backoff
from hubbub.config.models import ModelConfig
from hubbub.errors import ModelError
from hubbub.testing import model_server as script
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import (
    Breakdown,
    ModelServer,
    Refusal,
    Script,
    ScriptedCall,
    ScriptedUsage,
)

ADD = ToolSpec("add", "Add numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
QUESTION = CompletionRequest(
    [{"role": "system", "content": "be brief"}, {"role": "user", "content": "1 + 2?"}], (ADD,)
)
CALLING = script.ScriptedAnswer(
    calls=[
        ScriptedCall(tool="add", arguments={"a": 1}),
        ScriptedCall(tool="add", arguments={"a": 2}),
    ],
    usage=ScriptedUsage(prompt_tokens=11, completion_tokens=7),
)

AT_ONCE = Backoff(first_s=0, most_s=0)
Ask = Callable[..., Awaitable["Asking"]]


class Asking:
    """A model in front of a scripted endpoint."""

    def __init__(self, server: ModelServer, model: OpenAIModel):
        self.server, self.model = server, model

    async def answer(self) -> Completion:
        return await self.model.answer(QUESTION)

    async def error(self) -> str:
        with pytest.raises(ModelError) as caught:
            await self.answer()
        return str(caught.value)


@pytest.fixture
async def asking() -> AsyncIterator[Ask]:
    """Makes an endpoint that gives these answers, and a model in front of it."""
    async with AsyncExitStack() as stack:

        async def make(
            *answers: AnyAnswer,
            key: str | None = None,
            backoff: Backoff = AT_ONCE,
            **config: object,
        ) -> Asking:
            made = Script(answers=list(answers), api_key=key)
            server = await stack.enter_async_context(ModelServer(made))
            settings = {"model": "m", "base_url": server.base_url, "retries": 0, **config}
            model = OpenAIModel(ModelConfig.model_validate(settings), "small", backoff)
            stack.push_async_callback(model.close)
            return Asking(server, model)

        yield make


@pytest.mark.parametrize("stream", [False, True])
class TestBothWays:
    async def test_calls_and_tokens_come_back(self, asking: Ask, stream: bool) -> None:
        answer = await (await asking(CALLING, stream=stream)).answer()
        assert [c.arguments for c in answer.calls] == ['{"a": 1}', '{"a": 2}']
        assert len({c.id for c in answer.calls}) == 2
        assert all(c.id for c in answer.calls)
        assert (answer.tokens_in, answer.tokens_out) == (11, 7)
        assert answer.finish_reason == "tool_calls"
        assert answer.text is None

    async def test_what_an_answer_cost_is_told_where_price_and_tokens_are_known(
        self, asking: Ask, stream: bool
    ) -> None:
        price = {"input": 0.25, "output": 2.00}
        uncounted = CALLING.model_copy(
            update={"usage": ScriptedUsage(prompt_tokens=0, completion_tokens=0)}
        )
        model = await asking(CALLING, uncounted, stream=stream, price=price)
        assert (await model.answer()).cost_usd == pytest.approx(11 * 0.25e-6 + 7 * 2e-6)
        answer = await model.answer()
        assert (answer.tokens_in > 0, answer.cost_usd) == (True, None)
        assert "estimated" in answer.notes[0]

    async def test_the_request_is_what_the_endpoint_needs_and_its_answer_comes_as_it_is(
        self, asking: Ask, stream: bool
    ) -> None:
        cut = script.ScriptedAnswer(
            calls=[ScriptedCall(tool="add", arguments='{"a": ')], finish_reason="length"
        )
        model = await asking(
            cut, stream=stream, temperature=0.5, max_output_tokens=99, tool_choice="auto"
        )
        answer = await model.answer()
        assert (answer.calls[0].arguments, answer.finish_reason) == ('{"a": ', "length")
        assert (answer.text, answer.cost_usd) == (None, None)
        body = model.server.requests[0].body
        assert (body.model, body.tool_choice, body.stream) == ("m", "auto", stream)
        assert [m.role for m in body.messages] == ["system", "user"]
        assert body.tools[0].function.name == "add"
        assert body.tools[0].function.parameters == ADD.parameters

    @pytest.mark.behaviour("A-7")
    async def test_too_many_requests_are_tried_again_after_the_time_named(
        self, asking: Ask, stream: bool
    ) -> None:
        refusal = Refusal(status=429, retry_after=0.01)
        model = await asking(refusal, CALLING, stream=stream, retries=1)
        assert len((await model.answer()).calls) == 2


@pytest.mark.parametrize(
    ("chance", "named", "pauses"),
    [(1.0, None, [0.5, 1.0]), (0.0, None, [0.25, 0.5]), (0.0, 9, [9.0, 9.0])],
)
async def test_a_stream_that_breaks_off_is_asked_for_again_after_growing_pauses(
    asking: Ask, chance: float, named: int | None, pauses: list[float]
) -> None:
    cut = CALLING.model_copy(update={"cut_after": 2, "retry_after": named})
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    backoff = replace(STREAM_BACKOFF, random=lambda: chance, sleep=sleep)
    model = await asking(cut, cut, CALLING, stream=True, retries=2, backoff=backoff)
    answer = await model.answer()
    assert answer.notes == ("the answer was interrupted and requested again (2 times)",)
    assert waited == pauses
    model = await asking(cut, cut, stream=True, retries=1, backoff=backoff)
    assert model.server.base_url in await model.error()


async def test_a_lost_connection_is_tried_again(asking: Ask) -> None:
    lost = Breakdown(breakdown="reset")
    models = [await asking(lost, CALLING, stream=stream, retries=1) for stream in (False, True)]
    answers = await asyncio.gather(*(model.answer() for model in models))
    assert [len(answer.calls) for answer in answers] == [2, 2]


@pytest.mark.behaviour("A-7")
async def test_what_a_server_says_of_its_failure_is_told(asking: Ask) -> None:
    refusal = Refusal(status=500, message="Failed to parse input at pos 0: #")
    error = await (await asking(refusal, api_key="at pos 0")).error()
    assert "failed (500) after 1 attempts: Failed to parse input ***: #" in error


@pytest.mark.behaviour("A-7")
async def test_a_wrong_key_is_told_and_not_tried_again(asking: Ask) -> None:
    model = await asking(CALLING, key="right", api_key="wrong", retries=3)
    error = await model.error()
    assert error == (
        f"the model endpoint {model.server.base_url} refused the API key (401); "
        "set models.small.api_key"
    )
    assert "wrong" not in error
    assert model.server.requests == []


async def test_a_refusal_is_told_with_what_to_do(asking: Ask) -> None:
    for status, says in [
        (403, "refused the API key"), (404, "has no model 'm' .404.; check models.small.model"),
        (429, "rate limit or quota exceeded"),
        (500, "failed .500. after 1 attempts"), (422, "refused the request .422."),
    ]:  # fmt: skip
        error = await (await asking(Refusal(status=status))).error()
        assert error.startswith("the model endpoint http://127.0.0.1:")
        assert re.search(says, error)


async def test_an_endpoint_that_does_not_know_required_is_told_how_to_go_on(asking: Ask) -> None:
    refusal = Refusal(status=400, message="tool_choice 'required' is not supported")
    error = await (await asking(refusal)).error()
    assert error.endswith("; set models.small.tool_choice to auto")


async def test_a_silent_endpoint_is_told_with_the_timeout(asking: Ask) -> None:
    model = await asking(Breakdown(breakdown="hang"), timeout=0.05)
    assert "did not answer within 0.05 s (1 attempts); raise models.small.timeout" in (
        await model.error()
    )


async def test_an_endpoint_that_is_not_there_is_told() -> None:
    config = ModelConfig(model="m", base_url="http://127.0.0.1:1/v1", retries=0)
    model = OpenAIModel(config)
    with pytest.raises(ModelError, match=r"cannot be reached.*is the server running"):
        await model.answer(QUESTION)
    await model.close()


async def test_what_is_no_chat_completion_is_told_with_a_hint() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        page = "<h1>Welcome</h1>"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n{page}".encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    config = ModelConfig(model="m", base_url=f"http://127.0.0.1:{port}/v1", retries=0)
    async with server:
        model = OpenAIModel(config)
        with pytest.raises(ModelError, match=r"is base_url right\?"):
            await model.answer(QUESTION)
        await model.close()
