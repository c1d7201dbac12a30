"""The OpenAI API on the hub's port, used with the `openai` package."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from hubbub import Agent, Client, LlmAgent, Message, Network, tool
from hubbub.client import MemoryTransport
from hubbub.network.auth import AT_ONCE
from hubbub.protocol.control import Approvals
from hubbub.protocol.frames import Event, Signal
from hubbub.protocol.operations import ThreadList, ThreadPage
from hubbub.testing.model_script import AnyAnswer, Refusal, ScriptedUsage
from hubbub.testing.model_server import ModelServer
from tests.interaction.agent_harness import call, held, playing, says
from tests.interaction.peers import soon

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}


class Echo(Agent):
    """Repeats each message."""

    async def on_direct(self, message: Message) -> str:
        return f"you said: {message.text}"


def finish(text: str) -> AnyAnswer:
    return says(call("finish", message=text))


def chat(*texts: str) -> list[ChatCompletionMessageParam]:
    """A conversation that alternates between user and assistant."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]  # type: ignore[misc]  # alternating


async def ask(client: openai.AsyncOpenAI, *texts: str, **more: Any) -> str:
    """The answer of `echo` to a conversation."""
    answer = await client.chat.completions.create(model="echo", messages=chat(*texts), **more)
    return answer.choices[0].message.content or ""


KEY: Any = {"extra_headers": {"Idempotency-Key": "k1"}}


async def next_outcome(person: Client) -> str:
    """The outcome of the next `turn_ended` signal."""
    async with soon():
        async for item in person.events():
            match item:
                case Signal(type="turn_ended", data={"outcome": str(outcome)}):
                    return outcome
    raise AssertionError("events end by an error")


class Door:
    """A network with the API, and clients of it."""

    def __init__(self, net: Network, url: str):
        self.net, self.url = net, url.replace("ws:", "http:")

    def client(self, key: str = "ann", **more: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, **more)

    async def threads(self, who: str = "ann") -> list[list[str]]:
        """The texts of each conversation with an agent, oldest first."""
        person = await self.net.join(who)
        listed = ThreadList.model_validate(await person.call("list_threads"))
        texts = []
        for thread in sorted(listed.threads, key=lambda each: each.id):
            if ".t" in thread.id:
                page = await person.call("read_thread", thread=thread.id)
                texts.append([m.text for m in ThreadPage.model_validate(page).messages])
        return texts


@asynccontextmanager
async def door(*agents: Any, model: ModelServer | None = None, **more: Any) -> AsyncIterator[Door]:
    """The API for these agents, and for `bot` if there is a model."""
    bots = []
    if model is not None:
        price = {"input": 1, "output": 2}
        settings: dict[str, Any] = {"retries": 0, "stream": True, "price": price}
        bots = [LlmAgent("bot", model="m", base_url=model.base_url, **settings)]
    async with Network(*agents, *bots, openai=True, **more) as net:
        yield Door(net, await net.serve(page=False))


@pytest.mark.behaviour("I-16")
async def test_agents_are_models_and_answer_in_the_continued_conversation() -> None:
    async with door(Echo()) as there, there.client() as ann:
        assert [model.id async for model in await ann.models.list()] == ["echo"]
        assert (await ann.models.retrieve("echo")).owned_by == "hubbub"
        first = await ann.chat.completions.create(model="echo", messages=chat("hello"))
        choice = first.choices[0]
        assert (choice.message.content, choice.finish_reason) == ("you said: hello", "stop")
        assert await ask(ann, "hello", "you said: hello", "and now?") == "you said: and now?"
        assert await ask(ann, "hello") == "you said: hello"
        assert await there.threads() == [
            ["hello", "you said: hello", "and now?", "you said: and now?"],
            ["hello", "you said: hello"],
        ]
        text = await ask(ann, "hi", "ho", "what now?")
        assert text.startswith("you said: Earlier in this conversation, elsewhere:\n\nasker: hi")
        assert text.endswith("what now?")


@pytest.mark.behaviour("I-16")
async def test_a_user_header_or_earlier_response_selects_the_conversation() -> None:
    async with door(Echo()) as there, there.client() as ann:
        for text in ("one", "two"):
            await ask(ann, text, user="desk-7")
        response = await ann.responses.create(model="echo", input="three", instructions="Be kind.")
        assert response.output_text.endswith("Be kind.\n\nthree")
        again = await ann.responses.create(
            model="echo", input="four", previous_response_id=response.id
        )
        assert again.output_text == "you said: four"
        direct = {"X-Hubbub-Thread": "direct_echo"}
        raw = await ann.chat.completions.with_raw_response.create(
            model="echo", messages=chat("five"), extra_headers=direct
        )
        assert raw.headers["x-hubbub-thread"] == "dm.ann.echo"
        threads = await there.threads()
        assert [[text for text in t if not text.startswith("you")] for t in threads] == [
            ["one", "two"],
            ["Instructions for this conversation:\n\nBe kind.\n\nthree", "four"],
        ]
        with pytest.raises(openai.NotFoundError):
            await ask(ann, "x", extra_headers={"X-Hubbub-Thread": "broadcast"})


async def test_a_system_message_without_a_question_is_the_question() -> None:
    async with door(Echo()) as there, there.client() as ann:
        system: Any = [{"role": "system", "content": "Name a colour."}]
        for more in (chat(), chat("")):
            answer = await ann.chat.completions.create(model="echo", messages=[*system, *more])
            assert answer.choices[0].message.content == "you said: Name a colour."
        continued: Any = [*system, {"role": "assistant", "content": "you said: Name a colour."}]
        await ann.chat.completions.create(model="echo", messages=[*continued, *chat("another")])
        replied = await ann.responses.create(model="echo", input=[], instructions="Name a fruit.")
        assert replied.output_text == "you said: Name a fruit."
        assert sorted(map(len, await there.threads())) == [2, 2, 4]


@pytest.mark.behaviour("I-17")
async def test_text_streams_as_the_model_writes_it_and_ends_with_usage_and_cost() -> None:
    slow = says(
        call("finish", message="It is a long story."),
        hold="begun", hold_after=4, usage=ScriptedUsage(prompt_tokens=1000, completion_tokens=500),
    )  # fmt: skip
    async with playing(slow) as model, door(model=model) as there, there.client() as ann:
        stream = await ann.chat.completions.create(
            model="bot", messages=chat("tell"), stream=True, stream_options={"include_usage": True}
        )
        text, chunks = "", []
        async with soon():
            async for chunk in stream:
                chunks.append(chunk)
                if chunk.choices and chunk.choices[0].delta.content:
                    text += chunk.choices[0].delta.content
                    model.release("begun")
        assert text == "It is a long story."
        usage = chunks[-1].usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (1000, 500)
        assert usage.to_dict()["cost"] == pytest.approx(0.002)
        assert chunks[-2].choices[0].finish_reason == "stop"


@pytest.mark.behaviour("I-18")
async def test_the_callers_tools_are_called_and_their_results_continue_the_turn() -> None:
    oslo, bergen = call("get_weather", place="Oslo"), call("get_weather", place="Bergen")
    answers = [says(oslo, bergen), finish("Rain in both."), says(oslo), finish("Still rain.")]
    async with playing(*answers) as model, door(model=model) as there, there.client() as ann:
        messages: list[Any] = chat("the weather in Oslo and Bergen?")
        first = await ann.chat.completions.create(model="bot", messages=messages, tools=[WEATHER])
        assert first.choices[0].finish_reason == "tool_calls"
        calls = first.choices[0].message.tool_calls or []
        places = [json.loads(c.function.arguments)["place"] for c in calls if c.type == "function"]
        assert places == ["Oslo", "Bergen"]
        messages.append(first.choices[0].message)
        messages += [{"role": "tool", "tool_call_id": c.id, "content": "rain"} for c in calls]
        second = await ann.chat.completions.create(model="bot", messages=messages, tools=[WEATHER])
        assert second.choices[0].message.content == "Rain in both."
        messages.append(second.choices[0].message)
        messages.append({"role": "user", "content": "and now in Oslo?"})
        stream = ann.chat.completions.stream(model="bot", messages=messages, tools=[WEATHER])
        async with stream as events:
            third = (await events.get_final_completion()).choices[0].message
        (again,) = third.tool_calls or []
        messages += [third, {"role": "tool", "tool_call_id": again.id, "content": "more rain"}]
        last = await ann.chat.completions.create(model="bot", messages=messages, tools=[WEATHER])
        assert last.choices[0].message.content == "Still rain."
        results = [[m.content for m in r.messages if m.role == "tool"] for r in model.requests]
        assert (results[1], results[3]) == (["rain", "rain"], ["more rain"])
        assert len(await there.threads()) == 1, "one conversation"


@pytest.mark.behaviour("I-18")
async def test_the_responses_api_streams_text_and_calls_and_accepts_results() -> None:
    tool: Any = {"type": "function", "name": "get_weather", "parameters": {}, "strict": False}
    answers = [says(call("get_weather", place="Oslo")), finish("It rains.")]
    async with playing(*answers) as model, door(model=model) as there, there.client() as ann:
        async with ann.responses.stream(model="bot", input="weather?", tools=[tool]) as events:
            first = await events.get_final_response()
        (item,) = first.output
        assert item.type == "function_call"
        assert json.loads(item.arguments) == {"place": "Oslo"}
        result: Any = {"type": "function_call_output", "call_id": item.call_id, "output": "rain"}
        text = ""
        async with ann.responses.stream(
            model="bot", input=[result], previous_response_id=first.id, tools=[tool]
        ) as events:
            async for event in events:
                text += event.delta if event.type == "response.output_text.delta" else ""
            second = await events.get_final_response()
        assert (text, second.output_text, second.status) == ("It rains.", "It rains.", "completed")
        assert second.usage is not None
        assert second.usage.total_tokens > 0


@pytest.mark.behaviour("I-19")
async def test_images_and_files_are_attached(tmp_path: Path) -> None:
    pixel = (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
        "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    parts: list[Any] = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": pixel}},
        {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}},
    ]
    messages: Any = [{"role": "user", "content": parts}]
    store = f"sqlite:{tmp_path / 'files.db'}"
    async with door(Echo(), mods=["files"], store=store) as there, there.client() as ann:
        for _ in range(2):
            await ann.chat.completions.create(model="echo", messages=messages, **KEY)
        person = await there.net.join("ann")
        page = await person.call("list_threads", limit=2)
        (thread,) = (t for t in ThreadList.model_validate(page).threads if ".t" in t.id)
        read = ThreadPage.model_validate(await person.call("read_thread", thread=thread.id))
        assert len(read.messages) == 2, "a key works for requests with files"
        attachments = read.messages[0].attachments
        names = [(a.name, a.media_type) for a in attachments]
        assert names[:2] == [("image2.png", "image/png"), ("a.txt", "text/plain")]
        assert attachments[2].uri == "https://example.org/cat.png"
        audio: Any = [{"role": "user", "content": [{"type": "input_audio"}]}]
        with pytest.raises(openai.BadRequestError, match="input_audio"):
            await ann.chat.completions.create(model="echo", messages=audio)
    async with door(Echo()) as there, there.client() as ann:
        with pytest.raises(openai.BadRequestError, match="the mod `files`"):
            await ann.chat.completions.create(model="echo", messages=messages)


@pytest.mark.behaviour("I-16", "I-19")
async def test_conversations_about_different_images_are_told_apart(tmp_path: Path) -> None:
    def about(image: str, *more: str) -> Any:
        url = {"url": f"data:image/png;base64,{image}"}
        question = [
            {"type": "text", "text": "which animal?"},
            {"type": "image_url", "image_url": url},
        ]
        return [{"role": "user", "content": question}, *chat("", *more)[1:]]

    store = f"sqlite:{tmp_path / 'files.db'}"
    async with door(Echo(), mods=["files"], store=store) as there, there.client() as ann:
        for messages in (
            about("AAAA"),
            about("BBBB"),
            about("BBBB", "you said: which animal?", "old?"),
        ):
            await ann.chat.completions.create(model="echo", messages=messages)
        lengths = [len(texts) for texts in await there.threads()]
        assert lengths == [2, 4], "the last question continues the second conversation"


@pytest.mark.behaviour("I-20")
async def test_invalid_requests_fail_with_errors_of_the_openai_api() -> None:
    async with (
        door(Echo()) as there,
        there.client(max_retries=0) as ann,
        httpx2.AsyncClient(base_url=there.url) as http,
    ):
        create = ann.chat.completions.create
        with pytest.raises(openai.NotFoundError, match="valid: echo"):
            await create(model="gpt-4o", messages=chat("x"))
        with pytest.raises(openai.NotFoundError, match="did you mean 'echo'") as missing:
            await create(model="ecco", messages=chat("x"))
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
        invalid: list[Any] = [
            {"n": 2},
            {"tool_choice": "required", "tools": [WEATHER]},
            {"response_format": {"type": "json_object"}},
            {"messages": chat("x", "y")},
            {"messages": chat(" ")},
            {"messages": []},
        ]
        for wrong in invalid:
            with pytest.raises(openai.BadRequestError):
                await create(**{"model": "echo", "messages": chat("x"), **wrong})
        large: Any = chat("x" * 1_000_000)
        with pytest.raises(openai.APIStatusError) as too_large:
            await create(model="echo", messages=large)
        assert (too_large.value.status_code, too_large.value.code) == (413, "too_large")
        key = {"Authorization": "Bearer ann"}
        for method, path, status in (
            ("GET", "/v1/chat/completions", 405),
            ("POST", "/v1/models", 405),
            ("GET", "/v1/engines", 404),
            ("GET", "/v1/models/ecco", 404),
        ):
            answer = await http.request(method, path, headers=key)
            assert (answer.status_code, bool(answer.json()["error"]["message"])) == (status, True)
        garbage = await http.post("/v1/responses", headers=key, content=b"{")
        assert garbage.status_code == 400
        foreign = {**key, "Origin": "https://evil.example"}
        assert (await http.get("/v1/models", headers=foreign)).status_code == 403
        assert (await create(model="echo", messages=chat("still there?"))).choices


@pytest.mark.behaviour("I-20")
async def test_a_key_is_the_token_of_a_person() -> None:
    async with door(Echo(), auth="tokens", people=["ann"]) as there:
        admission = there.net.hub.gateway.admission
        admission.add_token("ann", "hub_right")
        admission.add_token("echo", "hub_agent")
        async with there.client("hub_right") as ann:
            assert await ask(ann, "hi") == "you said: hi"
        for wrong in ("hub_wrong", "ann", "sk-1", "x" * 600):
            async with there.client(wrong, max_retries=0) as stranger:
                with pytest.raises(openai.AuthenticationError) as refused:
                    await stranger.models.list()
                assert refused.value.code == "invalid_api_key"
        async with there.client("hub_agent", max_retries=0) as agent:
            with pytest.raises(openai.PermissionDeniedError, match="only people"):
                await agent.models.list()
    async with door(Echo()) as there, there.client("echo", max_retries=0) as nameless:
        with pytest.raises(openai.AuthenticationError, match="any name that no agent has"):
            await nameless.models.list()


@pytest.mark.behaviour("I-21")
async def test_disconnecting_stops_the_turn_unless_another_request_waits() -> None:
    slow = says(call("finish", message="done"), hold="slow")
    async with playing(slow, slow) as model, door(model=model) as there, there.client() as ann:

        def start(**more: Any) -> asyncio.Task[Any]:
            request = ann.chat.completions.create(model="bot", messages=chat("work"), **more)
            return asyncio.create_task(request)

        alone, person = start(), await there.net.join("ann")
        await held(model, "slow")
        alone.cancel()
        assert await next_outcome(person) == "cancelled"
        first, second = start(**KEY), start(**KEY)
        async with soon():
            await model.held("slow", 2)
        first.cancel()
        await asyncio.wait({first})
        model.release("slow")
        async with soon():
            assert (await second).choices[0].message.content == "done"
        assert await next_outcome(person) == "finished"


@pytest.mark.behaviour("I-21")
async def test_an_idempotency_key_asks_once_and_fits_only_one_request() -> None:
    async with door(Echo()) as there, there.client(max_retries=0) as ann:
        for _ in range(2):
            assert await ask(ann, "once", **KEY) == "you said: once"
        with pytest.raises(openai.ConflictError):
            await ask(ann, "other", **KEY)
        assert await there.threads() == [["once", "you said: once"]]


class Other(Echo):
    name = "other"


@pytest.mark.behaviour("I-21")
async def test_an_idempotency_key_fits_no_question_to_another_agent(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'net.db'}"
    async with door(Echo(), Other(), store=store) as there, there.client() as ann:
        assert await ask(ann, "once", **KEY) == "you said: once"
    async with door(Echo(), Other(), store=store) as there, there.client(max_retries=0) as ann:
        with pytest.raises(openai.ConflictError):
            await ann.chat.completions.create(model="other", messages=chat("once"), **KEY)


class Counter(Agent):
    """Numbers its answers."""

    name = "echo"

    def __init__(self) -> None:
        self.answers = 0
        self.asked, self.answering = asyncio.Event(), asyncio.Event()
        self.answering.set()

    async def on_direct(self, message: Message) -> str:
        self.answers += 1
        answer = str(self.answers)
        self.asked.set()
        await self.answering.wait()
        return answer


@pytest.mark.behaviour("I-21")
async def test_an_answered_question_is_asked_again_with_another_idempotency_key(
    tmp_path: Path,
) -> None:
    store, agent = f"sqlite:{tmp_path / 'net.db'}", Counter()
    talks: Any = [("news?",), ("news?", "1", "more?")]
    keys = [{"Idempotency-Key": f"k{n}"} for n in range(4)]
    for run in (1, 2):
        async with door(agent, store=store) as there, there.client(max_retries=0) as ann:
            for _ in range(2):
                answers = [
                    await ask(ann, *talks[n // 2], extra_headers=key) for n, key in enumerate(keys)
                ]
                assert answers == ["1", "2", "3", "4"], f"run {run}"
            assert len(await there.threads()) == 3, "the third question continued the first"


@pytest.mark.behaviour("I-21")
async def test_a_question_that_its_answer_repeats_is_asked_even_if_the_answer_was_not_marked_read(
    tmp_path: Path,
) -> None:
    store, agent = f"sqlite:{tmp_path / 'net.db'}", Counter()
    async with door(agent, store=store) as there, there.client() as ann:
        assert await ask(ann, "go on") == "1"
    async with door(agent, store=store) as there, there.client() as ann:
        assert await ask(ann, "go on", "1", "go on") == "2"
        assert await there.threads() == [["go on", "1", "go on", "2"]]


@pytest.mark.behaviour("I-16")
async def test_conversations_that_differ_only_in_what_was_said_elsewhere_are_told_apart() -> None:
    async with door(Counter()) as there, there.client() as ann:
        for first in ("a", "b"):
            await ask(ann, first, "said elsewhere", "thanks")
        assert await ask(ann, "b", "said elsewhere", "thanks", "1", "more") == "3"
        assert await ask(ann, "b", "said elsewhere", "thanks", "2", "more") == "4"
        assert sorted(map(len, await there.threads())) == [2, 2, 4]


@pytest.mark.behaviour("I-16", "I-21")
async def test_long_conversations_are_told_apart_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'net.db'}"
    same = [text for _ in range(6) for text in ("go on", "you said: go on")]
    talks = [["a", "you said: a", *same], ["b", "you said: b", *same]]
    async with door(Echo(), store=store) as there, there.client() as ann:
        for talk in talks:
            for end in range(1, len(talk), 2):
                await ask(ann, *talk[:end])
    async with door(Echo(), store=store) as there, there.client() as ann:
        await ask(ann, *talks[1], "last")
        ends = {texts[0]: texts[-2] for texts in await there.threads()}
        assert ends == {"a": "go on", "b": "last"}


@pytest.mark.behaviour("I-21")
async def test_a_key_finds_its_answer_in_a_long_conversation_after_a_restart(
    tmp_path: Path,
) -> None:
    store, agent = f"sqlite:{tmp_path / 'net.db'}", Counter()
    talk = [text for n in range(1, 16) for text in ("go on", str(n))]
    async with door(agent, store=store) as there, there.client() as ann:
        for end in range(1, len(talk), 2):
            await ask(ann, *talk[:end], **(KEY if end == 1 else {}))
    async with door(agent, store=store) as there, there.client(max_retries=0) as ann:
        assert await ask(ann, "go on", **KEY) == "1"
    assert agent.answers == 15


@pytest.mark.behaviour("I-21")
@pytest.mark.parametrize("more", [{}, KEY], ids=["without a key", "with a key"])
async def test_a_question_whose_turn_was_stopped_by_a_disconnect_is_asked_again(
    more: dict[str, Any],
) -> None:
    agent = Counter()
    async with door(agent) as there, there.client(max_retries=0) as ann, soon():
        person = await there.net.join("ann")
        agent.answering.clear()
        for _ in range(2):
            agent.asked.clear()
            asking = asyncio.create_task(ask(ann, "work", **more))
            await agent.asked.wait()
            asking.cancel()
            assert await next_outcome(person) == "cancelled"
        agent.answering.set()
        assert [await ask(ann, "work", **more), await ask(ann, "work", "3", "more")] == ["3", "4"]
        (texts,) = (texts for texts in await there.threads() if "more" in texts)
        assert texts[-4:] == ["work", "3", "more", "4"]


@pytest.mark.behaviour("I-21")
async def test_an_idempotency_key_of_a_refused_request_can_be_reused() -> None:
    async with door(Echo()) as there, there.client(max_retries=0) as ann:
        with pytest.raises(openai.APIStatusError, match="at most 65536 bytes"):
            await ask(ann, "x" * 70_000, **KEY)
        assert await ask(ann, "short", **KEY) == "you said: short"


@pytest.mark.behaviour("I-20")
async def test_malformed_headers_are_refused_or_echoed(caplog: pytest.LogCaptureFixture) -> None:
    async with door(Echo()) as there:
        host, port = there.url.removeprefix("http://").split(":")
        for more, status in {
            "Authorization: Bearer bob": 400,
            "Idempotency-Key: a\r\nIdempotency-Key: b": 400,
            "X-Hubbub-Thread: \x7f": 400,
            f"Origin: {there.url}\r\nOrigin: {there.url}": 403,
            f"Origin: {there.url}\r\nAccess-Control-Request-Headers: \xe4": 200,
        }.items():
            reader, writer = await asyncio.open_connection(host, int(port))
            body = json.dumps({"model": "echo", "messages": chat("hello")})
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\n"
            head += f"Authorization: Bearer ann\r\nContent-Length: {len(body)}\r\n{more}\r\n"
            head += "Connection: close\r\n\r\n"
            writer.write(f"{head}{body}".encode("latin-1"))
            async with soon():
                answer = await reader.read()
            assert answer.startswith(f"HTTP/1.1 {status} ".encode()), (more, answer)
            writer.close()
    assert "exception" not in caplog.text


@pytest.mark.behaviour("I-21")
async def test_requests_of_one_conversation_are_answered_in_sequence() -> None:
    async with door(Echo()) as there, there.client() as ann:
        texts = [f"number {n}" for n in range(5)]
        answers = await asyncio.gather(*(ask(ann, text, user="queue") for text in texts))
        assert answers == [f"you said: {text}" for text in texts]
        (thread,) = await there.threads()
        assert sorted(thread[::2]) == texts, "questions and answers alternate"


@tool(permission="write")
async def paint(colour: str) -> str:
    """Paint the fence."""
    return f"it is {colour}"


@pytest.mark.behaviour("I-22")
async def test_a_stream_reports_that_it_waits_for_approval_and_then_resumes() -> None:
    answers = [says(call("paint", colour="red")), finish("The fence is red.")]
    async with playing(*answers) as model:
        painter = LlmAgent(
            "painter",
            model="m", base_url=model.base_url, retries=0, tools=[paint], permission_mode="ask",
        )  # fmt: skip
        async with door(painter) as there, there.client() as ann:
            stream = await ann.chat.completions.create(
                model="painter", messages=chat("paint it"), stream=True
            )
            owner, text = await there.net.join("olga"), ""
            async with soon():
                async for chunk in stream:
                    if waits := (chunk.model_extra or {}).get("waits_for"):
                        assert "paint" in waits
                        (pending,) = Approvals.model_validate(
                            await owner.call("list_approvals", state="pending")
                        ).approvals
                        await owner.call("approve", id=pending.id)
                    for choice in chunk.choices:
                        text += choice.delta.content or ""
            assert text == "The fence is red."


@pytest.mark.behaviour("I-22")
async def test_failures_and_exhausted_budgets_are_reported_with_the_reason() -> None:
    broken = Refusal(status=500, message="the model is broken")
    async with (
        playing(broken, broken) as model,
        door(Echo(), model=model, daily={"network": {"wakes": 2}}) as there,
        there.client() as ann,
    ):
        create = ann.chat.completions.create
        with pytest.raises(openai.InternalServerError, match="the model is broken") as failed:
            await create(model="bot", messages=chat("work"))
        assert (failed.value.status_code, failed.value.code) == (502, "model_error")
        with pytest.raises(openai.APIError, match="the model is broken"):
            async for _ in await create(model="bot", messages=chat("work"), stream=True):
                pass
        with pytest.raises(openai.RateLimitError) as spent:
            await create(model="bot", messages=chat("more work"))
        assert spent.value.code == "daily_network"
        assert len(model.requests) == 2, "a client does not retry these errors"
        await (await there.net.join("olga")).call("stop", scope="agent", target="echo")
        with pytest.raises(openai.APIStatusError, match="stopped"):
            await create(model="echo", messages=chat("still there?"))


@pytest.mark.behaviour("I-22")
async def test_a_question_to_an_agent_that_turns_out_not_to_run_fails_with_the_reason() -> None:
    async with door(Echo()) as there, there.client(max_retries=0) as ann:
        async with Client(MemoryTransport(there.net.hub.gateway.attach), "late", "agent"):
            pass
        events = (await there.net.join("ann")).events()
        question = asyncio.ensure_future(
            ann.chat.completions.create(model="late", messages=chat("hello"))
        )
        async with soon():
            while not isinstance(await anext(events), Event):
                pass
        there.net.hub.services.launcher.given_up(["late"], "is not running: it crashed")
        with pytest.raises(openai.InternalServerError, match="late is not running: it crashed"):
            await question


@pytest.mark.behaviour("I-20")
async def test_a_client_that_stops_reading_is_disconnected_and_others_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hubbub.interop.http.STALLED_S", 0.0)
    limits = {"text": "16MB", "frame": "40MB"}
    async with door(Echo(), limits=limits) as there, there.client() as ann:
        body = json.dumps({"model": "echo", "stream": True, "messages": chat("x" * 12_000_000)})
        host, port = there.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer ann\r\n"
        )
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()
        assert b"200" in await reader.readline()
        assert await ask(ann, "and I?") == "you said: and I?"
        received = 0
        async with soon():
            while data := await reader.read(65_536):
                received += len(data)
        assert received < 12_000_000, "disconnected in the middle"
        writer.close()


@pytest.mark.behaviour("I-20")
async def test_wrong_keys_wait_without_delaying_the_right_one() -> None:
    async with door(Echo(), auth="tokens", people=["ann"]) as there:
        there.net.hub.gateway.admission.add_token("ann", "hub_right")
        async with httpx2.AsyncClient(base_url=there.url, timeout=60) as http:

            async def status(key: str) -> int:
                headers = {"Authorization": f"Bearer {key}"}
                return (await http.get("/v1/models", headers=headers)).status_code

            wrong = [asyncio.create_task(status(f"hub_wrong{n}")) for n in range(AT_ONCE + 20)]
            done, _ = await asyncio.wait(wrong, return_when=asyncio.FIRST_COMPLETED)
            assert {each.result() for each in done} <= {401, 429}
            assert await status("hub_right") == 200
            assert not all(each.done() for each in wrong), "all but a few are delayed"
            for each in wrong:
                each.cancel()
            await asyncio.wait(wrong)


class Sleeper(Agent):
    """Answers nothing."""

    begun = asyncio.Event()

    async def on_direct(self, message: Message) -> None:
        self.begun.set()
        await asyncio.Event().wait()


@pytest.mark.behaviour("B-10")
async def test_a_network_stops_while_a_request_waits_for_its_answer() -> None:
    async with soon():
        async with door(Sleeper()) as there:
            client = there.client(max_retries=0)
            asked = client.chat.completions.create(model="sleeper", messages=chat("work"))
            request = asyncio.create_task(asked)
            await Sleeper.begun.wait()
        with pytest.raises(openai.APIError):
            await request
        await client.close()


@pytest.mark.behaviour("I-16", "I-21")
async def test_conversations_and_idempotency_keys_survive_a_restart(tmp_path: Path) -> None:
    store, talk = f"sqlite:{tmp_path / 'net.db'}", ("hello", "you said: hello", "and now?")
    for run in (1, 2):
        async with door(Echo(), store=store) as there, there.client() as ann:
            assert await ask(ann, "once", **KEY) == "you said: once"
            await ask(ann, f"number {run}", user="desk")
            if run == 1:
                await ask(ann, "hello")
            else:
                assert await ask(ann, *talk) == "you said: and now?"
                other_key = {"Idempotency-Key": "k2"}
                await ask(ann, *talk, "you said: and now?", "bye", extra_headers=other_key)
            questions = [[t for t in texts if "said" not in t] for texts in await there.threads()]
            numbers = [f"number {n}" for n in range(1, run + 1)]
            asked = ["hello"] if run == 1 else ["hello", "and now?", "bye"]
            assert questions == [["once"], numbers, asked]
