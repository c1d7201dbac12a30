"""Questions through the doors beside those of native participants: rate, and the hub's CPU.

Eight askers each ask an agent that answers at once, and wait for its answer. A question and its
answer are two messages. The rate is what they reach; the hub's CPU is compared at the rate of the
goal, since the faster side has larger batches otherwise. Memory is that of the hub after each of
many rounds through one door.
"""

from __future__ import annotations

import asyncio
import json
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from shutil import which
from statistics import median
from uuid import uuid4

import httpx2
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Goal, at_most
from benchmarks.fill import admit
from benchmarks.hubs import write_config
from benchmarks.servers import Server, start_network
from benchmarks.sides import token_of
from hubbub.client import Client, ClientOptions, WebSocketTransport
from hubbub.network.store import open_store
from hubbub.protocol.frames import Event

__all__ = ["run"]

ASKERS, ECHO = 8, "echo"
_SCENARIO = f"questions of {ASKERS} askers at once, through a door"
_TEXT = "the quick brown fox jumps over the lazy dog and writes a message about it"
_RATE = Goal("at least", 200, of="value")
_KINDS = ("native", "mcp", "openai", "typescript")
_SDK = Path(__file__).parents[2] / "sdk" / "typescript" / "src" / "index.js"
_ASKERS_IN_NODE = f"""
import {{ createInterface }} from "node:readline";
import {{ join }} from "{_SDK.as_uri()}";
const [url, to, text, ...tokens] = process.argv.slice(1);
const asks = [];
for (const [n, token] of tokens.entries()) {{
  const asker = await join(url, `typescript${{n}}`, {{ token }});
  const events = asker.events();
  asks.push(async () => {{
    await asker.call("send_text_message", {{ to, text }});
    while ((await events.next()).value.message.sender_id !== to);
    console.log(n);
  }});
}}
console.log("joined");
for await (const n of createInterface({{ input: process.stdin }})) asks[n]();
process.exit();
"""
Ask = Callable[[], Awaitable[object]]


_PER_S = 200
"""Messages a second of all askers together, where their CPU is compared."""


async def run(bench: Bench) -> Sequence[Figure]:
    bench.say("doors")
    each, rounds, many = (20, 3, 2_000) if bench.quick else (50, 5, 20_000)
    async with _network(bench) as server, _echo(server), AsyncExitStack() as stack:
        doors = {"native": _native, "MCP over HTTP": _mcp, "the OpenAI API": _openai}
        sides: dict[str, list[Ask]] = {
            name: [await stack.enter_async_context(door(server, n)) for n in range(ASKERS)]
            for name, door in doors.items()
        }
        if which("node"):
            asks = await stack.enter_async_context(_typescript(server))
            sides["the client in TypeScript"] = asks
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in sides}
        for number in range(rounds + 1):
            for name, asks in sides.items():
                rate, most = await _round(server, asks, each)
                _, paced = await _round(server, asks, each, 2 * len(asks) / _PER_S)
                if number:  # the first one warms up
                    found[name].append((rate, most, paced))
        figures = []
        for name in [*sides][1:]:
            before = server.rss_kib()
            await _round(server, sides[name], many // 2 // ASKERS)
            grown = (server.rss_kib() - before) / 1024
            what = f"{name}: memory after {many:,} messages more"
            figures.append(Figure(_SCENARIO, what, "MiB", ours=grown))
    native = found.pop("native")
    for name, several in found.items():
        rates = [rate for rate, _, _ in several]
        figures.append(
            Figure(_SCENARIO, name, "messages/s", median(rates), goal=_RATE, ours_rounds=rates)
        )
        for at, goal in ((1, None), (2, at_most(1.3))):
            cpus, theirs = [each[at] for each in several], [each[at] for each in native]
            ratio = median(ours / other for ours, other in zip(cpus, theirs, strict=True))
            when = f"at {_PER_S} messages/s" if goal is not None else "as fast as each can"
            what = f"{name}: CPU per message, {when}"
            figures.append(
                Figure(
                    _SCENARIO, what, "us", median(cpus), median(theirs), ratio, goal, cpus, theirs
                )
            )
    return figures


async def _round(
    server: Server, asks: Sequence[Ask], each: int, every_s: float = 0.0
) -> tuple[float, float]:
    """Messages a second, and the hub's microseconds for each. An asker asks every so many seconds,
    one after the other; 0: when it has its answer."""

    async def asking(ask: Ask, number: int) -> None:
        for turn in range(each):
            if every_s:
                at = began + (turn + number / len(asks)) * every_s
                await asyncio.sleep(max(0.0, at - time.perf_counter()))
            await ask()

    began, cpu = time.perf_counter(), server.cpu_s()
    await asyncio.gather(*(asking(ask, number) for number, ask in enumerate(asks)))
    messages = 2 * each * len(asks)
    return messages / (time.perf_counter() - began), (server.cpu_s() - cpu) / messages * 1e6


@asynccontextmanager
async def _network(bench: Bench) -> AsyncIterator[Server]:
    """`hubbub up` with both doors, for the askers of each and the agent."""
    store = bench.scratch / f"{uuid4().hex[:8]}.db"
    names = [ECHO, *(f"{kind}{n}" for kind in _KINDS for n in range(ASKERS))]
    opened = open_store(f"sqlite:{store}")
    await opened.open()
    try:
        await admit(opened, [(name, token_of(name)) for name in names])
    finally:
        await opened.close()
    path = write_config(store)
    config = json.loads(path.read_text())
    config["network"] |= {"mcp": True, "openai": True}
    path.write_text(json.dumps(config))
    async with start_network(path) as server:
        yield server


def _client(server: Server, name: str, kind: str) -> Client:
    return Client(
        WebSocketTransport(f"ws://127.0.0.1:{server.port}"),
        name,
        "human" if kind == "human" else "agent",
        token=token_of(name),
        options=ClientOptions(schemas=False),
    )


@asynccontextmanager
async def _echo(server: Server) -> AsyncIterator[None]:
    """An agent that answers with what it was told."""

    async def answers(client: Client) -> None:
        async for item in client.events():
            if isinstance(item, Event) and item.wake is not None:
                said = item.message
                # Two agents that go on with one interaction run into its budget.
                because = {"cause": said.id} if said.sender_kind == "human" else {}
                to = {"to": said.thread_id, **because}
                client.post("send_text_message", text=said.text, **to)
                await client.ack(item.seq)

    async with _client(server, ECHO, "agent") as client:
        task = asyncio.create_task(answers(client))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})


@asynccontextmanager
async def _native(server: Server, number: int) -> AsyncIterator[Ask]:
    async with _client(server, f"native{number}", "human") as client:
        events = client.events()

        async def ask() -> None:
            await client.call("send_text_message", to=ECHO, text=_TEXT)
            while True:
                item = await anext(events)
                if isinstance(item, Event):
                    await client.ack(item.seq)
                    if item.message.sender_id == ECHO:
                        return

        yield ask


@asynccontextmanager
async def _mcp(server: Server, number: int) -> AsyncIterator[Ask]:
    name = f"mcp{number}"
    key = {"Authorization": f"Bearer {token_of(name)}"}
    async with create_mcp_http_client(key) as http:
        url = f"http://127.0.0.1:{server.port}/mcp/{name}"
        async with McpClient(streamable_http_client(url, http_client=http), mode="auto") as client:
            cursor: dict[str, int] = {}

            async def ask() -> None:
                await client.call_tool("send_text_message", {"to": ECHO, "text": _TEXT})
                heard = await client.call_tool("wait_for_messages", {**cursor, "timeout_s": 30})
                told = heard.structured_content
                if not told or not told["messages"]:
                    raise RuntimeError("an answer has not come")
                cursor["cursor"] = told["cursor"]

            yield ask


@asynccontextmanager
async def _typescript(server: Server) -> AsyncIterator[list[Ask]]:
    """All in one process of Node, as the native ones are in this one."""
    node = ("node", "--experimental-websocket", "--no-warnings", "--input-type=module")
    said = (f"ws://127.0.0.1:{server.port}", ECHO, _TEXT)
    tokens = [token_of(f"typescript{n}") for n in range(ASKERS)]
    process = await asyncio.create_subprocess_exec(
        *node, "-e", _ASKERS_IN_NODE, *said, *tokens, stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    tell, told = process.stdin, process.stdout
    answered: list[asyncio.Queue[None]] = [asyncio.Queue() for _ in range(ASKERS)]

    async def asking(number: int) -> None:
        tell.write(f"{number}\n".encode())
        await answered[number].get()

    async def reading() -> None:
        async for line in told:
            answered[int(line)].put_nowait(None)

    if await told.readline() != b"joined\n":
        raise RuntimeError("the client in TypeScript has not joined")
    reader = asyncio.create_task(reading())
    try:
        yield [partial(asking, number) for number in range(ASKERS)]
    finally:
        tell.close()
        await process.wait()
        await reader


@asynccontextmanager
async def _openai(server: Server, number: int) -> AsyncIterator[Ask]:
    key = {"Authorization": f"Bearer {token_of(f'openai{number}')}"}
    asked = {"model": ECHO, "user": "bench", "messages": [{"role": "user", "content": _TEXT}]}
    async with httpx2.AsyncClient(headers=key, timeout=60) as http:

        async def ask() -> None:
            url = f"http://127.0.0.1:{server.port}/v1/chat/completions"
            answer = await http.post(url, json=asked)
            if answer.json()["choices"][0]["message"]["content"] != _TEXT:
                raise RuntimeError("an answer is another one's")

        yield ask
