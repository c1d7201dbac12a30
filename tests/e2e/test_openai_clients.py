"""Clients of the OpenAI API: across a hub kill, in JavaScript, and a chat page in Chromium."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.operations import ThreadList, ThreadPage
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptedCall
from tests.browser.support import chromium
from tests.e2e.support.config_network import (
    ConfigNetwork,
    Network,
    run_config,
    run_here,
    running_up,
)
from tests.e2e.support.http_servers import QuietHandler, http_server
from tests.e2e.support.openai_clients import CLIENTS

pytestmark = pytest.mark.slow

NETWORK = """
network:
  name: desk
  auth: open
  openai: true
  hosts: [{hosts}]
  listen: ${{HUBBUB_LISTEN}}
  store: ${{HUBBUB_STORE}}
humans: {{ann: {{roles: [owner]}}}}
models:
  default: {{model: m, base_url: "{url}", stream: true, retries: 0}}
agents: {{bot: {{}}}}
"""


def answer(text: str, **how: Any) -> ScriptedAnswer:
    return ScriptedAnswer(calls=[ScriptedCall(tool="finish", arguments={"message": text})], **how)


def write_config(folder: Path, model: ModelServer, hosts: str = "") -> Path:
    path = folder / "desk.yaml"
    path.write_text(NETWORK.format(url=model.base_url, hosts=hosts))
    return path


def client(network: ConfigNetwork) -> openai.AsyncOpenAI:
    base = f"{network.url.replace('ws:', 'http:')}/v1"
    return openai.AsyncOpenAI(base_url=base, api_key="ann", max_retries=0)


async def conversation(network: Network) -> list[str]:
    """The messages of the only conversation."""
    async with Client(WebSocketTransport(network.url), "ann", "human") as ann:
        listed = ThreadList.model_validate(await ann.call("list_threads"))
        (thread,) = (thread.id for thread in listed.threads if ".t" in thread.id)
        page = ThreadPage.model_validate(await ann.call("read_thread", thread=thread))
    return [message.text for message in page.messages]


async def read(stream: openai.AsyncStream[ChatCompletionChunk], then: Callable[[], None]) -> None:
    """Reads the stream to its end, and calls `then` for each piece of text."""
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            then()


@pytest.mark.behaviour("I-21")
async def test_retrying_a_stream_cut_by_a_hub_kill_duplicates_no_message(
    tmp_path: Path,
) -> None:
    script = Script(
        answers=[
            answer("It is a long story, and it has an end.", hold="story", hold_after=5),
            answer("It is a long story, and it has an end."),
            answer("You are welcome."),
        ]
    )
    asked: list[Any] = [{"role": "user", "content": "tell me"}]
    async with ModelServer(script) as model:
        path = write_config(tmp_path, model)
        async with running_up(path, tmp_path) as network, client(network) as ann:
            stream = await ann.chat.completions.create(model="bot", messages=asked, stream=True)
            with pytest.raises((openai.APIError, httpx2.TransportError)):
                await read(stream, network.process.kill)
        async with running_up(path, tmp_path) as network, client(network) as ann:
            again = await ann.chat.completions.create(model="bot", messages=asked)
            assert again.choices[0].message.content == "It is a long story, and it has an end."
            asked.append(again.choices[0].message)
            asked.append({"role": "user", "content": "thank you"})
            last = await ann.chat.completions.create(model="bot", messages=asked)
            assert last.choices[0].message.content == "You are welcome."
            assert await conversation(network) == [
                "tell me",
                "It is a long story, and it has an end.",
                "thank you",
                "You are welcome.",
            ]


@pytest.mark.behaviour("I-16")
async def test_the_chat_endpoint_config_answers_and_accepts_files(tmp_path: Path) -> None:
    async with run_config("chat-endpoint", tmp_path) as network, client(network) as ann:
        assert {model.id async for model in ann.models.list()} == {"calculator", "librarian"}
        parts: list[Any] = [
            {"type": "text", "text": "12 miles in km"},
            {"type": "file", "file": {"filename": "a.txt", "file_data": "aGVsbG8="}},
        ]
        asked: list[Any] = [{"role": "user", "content": parts}]
        completion = await ann.chat.completions.create(model="calculator", messages=asked)
        assert "19.3" in (completion.choices[0].message.content or "")


PROGRAM = """
import OpenAI from 'openai'
const client = new OpenAI({ baseURL: process.argv[2], apiKey: 'ann' })
const tools = [{ type: 'function', function: {
  name: 'get_weather', parameters: { type: 'object', properties: {} },
  function: () => 'rain', parse: JSON.parse } }]
const models = []
for await (const model of client.models.list()) models.push(model.id)
const runner = client.chat.completions.runTools({
  model: 'bot', messages: [{ role: 'user', content: 'the weather?' }], tools, stream: true })
const weather = await runner.finalContent()
const stream = client.responses.stream({ model: 'bot', input: 'thanks' })
let write_config = ''
stream.on('response.output_text.delta', (event) => { write_config += event.delta })
const response = await stream.finalResponse()
console.log(JSON.stringify({ models, weather, write_config, status: response.status }))
"""


@pytest.mark.npm
@pytest.mark.skipif(not CLIENTS.there(), reason=CLIENTS.missing)
@pytest.mark.behaviour("I-16", "I-17", "I-18")
async def test_the_javascript_package_lists_models_streams_and_runs_tools(tmp_path: Path) -> None:
    weather = ScriptedAnswer(calls=[ScriptedCall(tool="get_weather", arguments={})])
    script = Script(answers=[weather, answer("It rains."), answer("You are welcome.")])
    program = CLIENTS.folder / "client.mjs"
    program.write_text(PROGRAM)
    async with (
        ModelServer(script) as model,
        run_here(write_config(tmp_path, model), tmp_path) as network,
    ):
        process = await asyncio.create_subprocess_exec(
            str(CLIENTS.node), str(program), f"{network.url.replace('ws:', 'http:')}/v1",
            stdout=PIPE, stderr=STDOUT, cwd=CLIENTS.folder,
        )  # fmt: skip
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    assert json.loads(out) == {
        "models": ["bot"],
        "weather": "It rains.",
        "write_config": "You are welcome.",
        "status": "completed",
    }


PAGE = """<!doctype html><meta charset="utf-8"><title>Deep Chat</title>
<script type="module" src="node_modules/deep-chat/dist/deepChat.bundle.js"></script>
<deep-chat id="chat"></deep-chat>
<script type="module">
  const chat = document.getElementById('chat')
  chat.directConnection = { openAI: { key: 'ann', completions: true } }
  chat.connect = { url: new URLSearchParams(location.search).get('url'), stream: true,
    additionalBodyProps: { model: 'bot' } }
</script>"""


class _FileHandler(QuietHandler, SimpleHTTPRequestHandler):
    pass


@pytest.mark.npm
@pytest.mark.skipif(not CLIENTS.there(), reason=CLIENTS.missing)
@pytest.mark.skipif(chromium.find() is None, reason=chromium.MISSING)
@pytest.mark.behaviour("I-16", "I-20")
async def test_a_chat_page_on_another_site_works_if_the_config_lists_its_host(
    tmp_path: Path,
) -> None:
    script = Script(answers=[answer("hello, I am bot"), answer("as I said: bot")])
    (CLIENTS.folder / "page.html").write_text(PAGE)
    executable = chromium.find() or ""
    async with ModelServer(script) as model, chromium.running(executable) as browser:
        with http_server(partial(_FileHandler, directory=str(CLIENTS.folder))) as site:
            path = write_config(tmp_path, model, hosts=f'"{site}"')
            async with run_here(path, tmp_path) as network:
                url = f"{network.url.replace('ws:', 'http:')}/v1/chat/completions"
                page = await browser.new_page()
                await page.goto(f"http://{site}/page.html?url={url}")
                box = page.locator("#text-input")
                for question, text in (
                    ("who are you?", "hello, I am bot"),
                    ("who?", "as I said"),
                ):
                    await page.locator("#submit-icon").wait_for()  # not while an answer streams
                    await box.fill(question)
                    await box.press("Enter")
                    await page.get_by_text(text).wait_for()
                assert await conversation(network) == [
                    "who are you?",
                    "hello, I am bot",
                    "who?",
                    "as I said: bot",
                ]
