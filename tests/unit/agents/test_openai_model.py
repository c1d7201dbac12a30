"""The adapter for OpenAI-compatible endpoints, with a scripted endpoint over HTTP."""

from __future__ import annotations

import asyncio
import re
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from pydantic import JsonValue

from hubbub.agents.models.base import Completion, CompletionRequest, ToolSpec
from hubbub.agents.models.embeddings import Embeddings
from hubbub.agents.models.openai import MAX_ANSWER, STREAM_BACKOFF, OpenAIModel
from hubbub.client.calls import Backoff
from hubbub.config.models import ModelConfig
from hubbub.errors import ConfigError, ModelError
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
from tests.unit.agents.raw_endpoint import Reply, chunk, completion, endpoint

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
Connect = Callable[..., Awaitable["Connection"]]


class Connection:
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
async def connect() -> AsyncIterator[Connect]:
    """Starts an endpoint that gives these answers, and connects a model to it."""
    async with AsyncExitStack() as stack:

        async def make(
            *answers: AnyAnswer,
            key: str | None = None,
            backoff: Backoff = AT_ONCE,
            **config: object,
        ) -> Connection:
            answering = Script(answers=list(answers), api_key=key)
            server = await stack.enter_async_context(ModelServer(answering))
            settings = {"model": "m", "base_url": server.base_url, "retries": 0, **config}
            model = OpenAIModel(ModelConfig.model_validate(settings), "small", backoff)
            stack.push_async_callback(model.close)
            return Connection(server, model)

        yield make


@pytest.mark.parametrize("stream", [False, True])
class TestBothWays:
    async def test_an_answer_has_its_calls_and_tokens(self, connect: Connect, stream: bool) -> None:
        answer = await (await connect(CALLING, stream=stream)).answer()
        assert [c.arguments for c in answer.calls] == ['{"a": 1}', '{"a": 2}']
        assert len({c.id for c in answer.calls}) == 2
        assert all(c.id for c in answer.calls)
        assert (answer.tokens_in, answer.tokens_out) == (11, 7)
        assert answer.finish_reason == "tool_calls"
        assert answer.text is None

    async def test_an_answer_has_a_cost_even_if_its_tokens_are_estimated(
        self, connect: Connect, stream: bool
    ) -> None:
        price = {"input": 0.25, "output": 2.00}
        uncounted = CALLING.model_copy(
            update={"usage": ScriptedUsage(prompt_tokens=0, completion_tokens=0)}
        )
        model = await connect(CALLING, uncounted, stream=stream, price=price)
        assert (await model.answer()).cost_usd == pytest.approx(11 * 0.25e-6 + 7 * 2e-6)
        answer = await model.answer()
        estimated = answer.tokens_in * 0.25e-6 + answer.tokens_out * 2e-6
        assert answer.cost_usd == pytest.approx(estimated) != 0
        assert "estimated" in answer.notes[0]

    async def test_a_request_has_the_configured_fields_and_its_answer_is_unchanged(
        self, connect: Connect, stream: bool
    ) -> None:
        cut = script.ScriptedAnswer(
            calls=[ScriptedCall(tool="add", arguments='{"a": ')], finish_reason="length"
        )
        model = await connect(
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
    async def test_a_temporarily_refused_request_is_retried_and_noted(
        self, connect: Connect, stream: bool
    ) -> None:
        for status in (429, 500):
            refusal = Refusal(status=status, retry_after=0.01)
            model = await connect(refusal, CALLING, stream=stream, retries=1)
            answer = await model.answer()
            assert len(answer.calls) == 2
            assert answer.notes == ("the request failed temporarily and was retried (1 times)",)


@pytest.mark.parametrize(
    ("chance", "named", "pauses"),
    [(1.0, None, [0.5, 1.0]), (0.0, None, [0.25, 0.5]), (0.0, 9, [9.0, 9.0])],
)
async def test_an_interrupted_stream_is_requested_again_after_growing_pauses(
    connect: Connect, chance: float, named: int | None, pauses: list[float]
) -> None:
    cut = CALLING.model_copy(update={"cut_after": 2, "retry_after": named})
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    backoff = replace(STREAM_BACKOFF, random=lambda: chance, sleep=sleep)
    model = await connect(cut, cut, CALLING, stream=True, retries=2, backoff=backoff)
    answer = await model.answer()
    assert answer.notes == ("the answer was interrupted and requested again (2 times)",)
    assert waited == pauses
    model = await connect(cut, cut, stream=True, retries=1, backoff=backoff)
    assert model.server.base_url in await model.error()


async def test_a_request_is_retried_after_a_lost_connection(connect: Connect) -> None:
    lost = Breakdown(breakdown="reset")
    models = [await connect(lost, CALLING, stream=stream, retries=1) for stream in (False, True)]
    answers = await asyncio.gather(*(model.answer() for model in models))
    assert [len(answer.calls) for answer in answers] == [2, 2]


@pytest.mark.behaviour("A-7")
async def test_a_servers_error_message_is_reported_without_the_key(connect: Connect) -> None:
    refusal = Refusal(status=500, message="Failed to parse input at-pos-0: #")
    error = await (await connect(refusal, api_key="at-pos-0")).error()
    assert "failed (500) after 1 attempt: Failed to parse input ***: #" in error


@pytest.mark.behaviour("A-7")
async def test_a_wrong_key_is_reported_and_not_retried(connect: Connect) -> None:
    model = await connect(CALLING, key="right", api_key="wrong", retries=3)
    error = await model.error()
    assert error == (
        f"the model endpoint {model.server.base_url} refused the API key (401); "
        "set models.small.api_key"
    )
    assert "wrong" not in error
    assert model.server.requests == []


async def test_a_refusal_is_reported_with_advice(connect: Connect) -> None:
    no_choice = Refusal(status=400, message="tool_choice 'required' is not supported")
    # llama.cpp's
    too_long = Refusal(
        status=400,
        message="request (9010 tokens) exceeds the available context size (8192 tokens)",
    )
    for refusal, advice in [
        (Refusal(status=403, message="not in this region"), "refused the API key or the request"),
        (Refusal(status=403, message="not in this region"), "(403): not in this region"),
        (Refusal(status=404), "has no model 'm' (404); check models.small.model"),
        (Refusal(status=429, message="busy"), "limit or quota exceeded (429): busy; try later"),
        (
            Refusal(status=429, message="check your plan", code="insufficient_quota"),
            "no credit left (429): check your plan; add credit, or check models.small.api_key",
        ),
        (Refusal(status=402, message="Insufficient Balance"), "no credit left (402): Insuff"),
        (Refusal(status=500), "failed (500) after 1 attempt"),
        (Refusal(status=422), "refused the request (422)"),
        (no_choice, "; set models.small.tool_choice to auto"),
        (too_long, "; set models.small.context_window to the model's window"),
    ]:
        error = await (await connect(refusal)).error()
        assert error.startswith("the model endpoint http://127.0.0.1:")
        assert advice in error


async def test_a_hanging_endpoint_is_reported_with_the_timeout(connect: Connect) -> None:
    model = await connect(Breakdown(breakdown="hang"), timeout=0.05)
    error = await model.error()
    assert "did not answer within 0.05 s (1 attempt); raise models.small.timeout, lower" in error


async def error_at(base_url: str, stream: bool = False, max_answer: int = MAX_ANSWER) -> str:
    config = ModelConfig(model="m", base_url=base_url, retries=0, stream=stream)
    model = OpenAIModel(config, max_answer=max_answer)
    with pytest.raises(ModelError) as caught:
        await model.answer(QUESTION)
    await model.close()
    return str(caught.value)


async def test_an_unreachable_endpoint_is_reported() -> None:
    error = await error_at("http://127.0.0.1:1/v1")
    assert re.search(r"cannot be reached.*All connection attempts failed.*is the server run", error)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_web_page_instead_of_an_answer_is_reported_with_a_hint(stream: bool) -> None:
    async with endpoint(Reply(b"<h1>Welcome</h1>", content_type="text/html")) as base_url:
        assert "is base_url right?" in await error_at(base_url, stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_or_an_error_that_breaks_off_is_reported(stream: bool) -> None:
    for reply in (Reply({}, missing=9), Reply({}, 400, missing=9), Reply({}, 503, missing=9)):
        async with endpoint(reply) as base_url:
            assert "closed the connection (1 attempt: " in await error_at(base_url, stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_without_end_is_refused(stream: bool) -> None:
    pieces: JsonValue = [chunk({"content": "x" * 50})] * 100
    body = pieces if stream else completion({"content": "x" * 5000})
    async with endpoint(Reply(body)) as base_url:
        error = await error_at(base_url, stream, max_answer=4000)
        assert error == f"the model endpoint {base_url} sent more than 4,000 bytes for one answer"


@pytest.mark.parametrize(
    ("error", "requests"),
    [
        ({"code": 502}, 2),
        ({"code": "429"}, 2),
        ({"type": "overloaded_error"}, 2),
        ({"code": 400}, 1),
    ],
)
async def test_a_temporary_error_within_a_stream_is_retried_like_a_status(
    error: dict[str, JsonValue], requests: int
) -> None:
    requested: list[str] = []
    pieces: JsonValue = [chunk({"content": "x"}), {"error": {"message": "no luck", **error}}]
    async with endpoint(Reply(pieces), requested) as base_url:
        config = ModelConfig(model="m", base_url=base_url, retries=1, stream=True)
        model = OpenAIModel(config, backoff=AT_ONCE)
        with pytest.raises(ModelError, match="no luck"):
            await model.answer(QUESTION)
        await model.close()
    assert len(requested) == requests


async def test_a_query_in_base_url_is_sent_with_each_request() -> None:
    embedding: JsonValue = [{"index": 0, "embedding": [0.5]}]
    requested: list[str] = []
    reply = Reply({**completion({"content": "3"}), "data": embedding})
    async with endpoint(reply, requested) as base_url:
        config = ModelConfig(model="m", base_url=f"{base_url}/?version=1&v=%26")
        model, embeddings = OpenAIModel(config), Embeddings(config)
        assert (await model.answer(QUESTION)).text == "3"
        assert await embeddings.embed(["a"]) == [array("f", [0.5])]
        await model.close()
        await embeddings.close()
    paths = ("/v1/chat/completions", "/v1/embeddings")
    assert requested == [f"{path}?version=1&v=%26" for path in paths]


@pytest.mark.parametrize(
    ("variable", "value"), [("SSL_CERT_FILE", "/no/such.pem"), ("ALL_PROXY", "socks9://proxy")]
)
def test_an_environment_without_a_way_to_endpoints_is_a_sentence(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"no model endpoint can be reached: .*{variable}"):
        OpenAIModel(ModelConfig(model="m"))


async def test_an_endpoint_without_tls_needs_no_certificates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such.pem")
    async with endpoint(Reply(completion({"content": "3"}))) as base_url:
        model = OpenAIModel(ModelConfig(model="m", base_url=base_url))
        assert (await model.answer(QUESTION)).text == "3"
        await model.close()
