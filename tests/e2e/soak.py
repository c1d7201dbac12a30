"""`make soak`: a hub with all mods and a hundred participants for an hour, with random kills.

Pairs, a channel and broadcasts at a steady pace, and questions to agents in their own processes.
The hub is killed at random in the first third, agents all the time. Each minute prints a line: the
hub's memory, the latency of writes, the size of the log. At the end every message must be at its
acknowledged position, once and in order, and every question must have one answer; otherwise the
exit code is 1.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import quantiles
from string import ascii_lowercase

from pydantic import JsonValue

from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Kind
from tests.e2e.support.agents import AgentProcess, running_agent
from tests.e2e.support.hubs import HubProcess, running_hub
from tests.e2e.support.traffic import Ledger, Stream

PAIRS, AGENTS = 48, 4
A_SECOND = 1.5
"""Messages per second of each stream."""
MODS: Sequence[JsonValue] = [
    *("digest", "directory", "documents", "edits", "files", "moderation", "polls", "reactions"),
    *("schedule", "search", "tasks", "threads", "transcript", "webhooks"),
]
QUICK = ClientOptions(backoff=Backoff(first_s=0.05, most_s=0.5))
AGENT = """
from hubbub import Agent, Message


class {name}(Agent):
    async def on_direct(self, message: Message) -> str:
        return "answer to " + message.text
"""


class Soak:
    """One run."""

    def __init__(self, hub: HubProcess, minutes: float):
        self.hub, self.minutes = hub, minutes
        self.ledger, self.stop = Ledger(), asyncio.Event()
        self.took: list[float] = []
        """Seconds that this minute's writes took."""
        self.asked = 0
        self.answers: Counter[str] = Counter()
        self.answered = asyncio.Event()
        """Set when the last answer has come after `stop`."""
        self.kills: Counter[str] = Counter()
        self.chance = random.Random(7)

    async def write(self, client: Client, stream: Stream) -> None:
        """Messages of one stream at a steady pace."""
        n = 0
        while not self.stop.is_set():
            n += 1
            name, args = stream.call(n)
            began = time.perf_counter()
            result = await client.call(name, cid=stream.cid(n), **args)
            self.took.append(time.perf_counter() - began)
            assert isinstance(result, dict)
            seq = result["seq"]
            assert isinstance(seq, int)
            await self.ledger.acknowledge(stream, n, seq)
            await self.pause(self.chance.uniform(0.5, 1.5) / A_SECOND)

    async def ask(self, client: Client, agent: str) -> None:
        """A question to an agent every few seconds."""
        while not self.stop.is_set():
            self.asked += 1
            text = f"question {self.asked}"
            await client.call("send_text_message", to=agent, text=text, cid=text.replace(" ", "-"))
            await self.pause(self.chance.uniform(2, 4))

    async def read(self, client: Client) -> None:
        """Records and acknowledges events."""
        async for item in client.events():
            if isinstance(item, Event):
                text = item.message.text
                if text.startswith("answer to "):
                    self.answers[text] += 1
                    if self.stop.is_set() and len(self.answers) >= self.asked:
                        self.answered.set()
                elif item.message.sender_id != client.participant:
                    await self.ledger.arrive(client.participant, item.seq, text)
                await client.ack(item.seq)

    async def kill(self, agents: Sequence[AgentProcess]) -> None:
        """Kills the hub at random in the first third, agents at random all the time."""
        began = time.monotonic()
        while not self.stop.is_set():
            await self.pause(self.chance.uniform(10, 60))
            if time.monotonic() - began < self.minutes * 20 and self.chance.random() < 0.3:
                await self.hub.kill()
                await self.hub.start()
                self.kills["hub"] += 1
            else:
                agent = self.chance.choice(agents)
                await agent.kill()
                await agent.start()
                self.kills["agent"] += 1

    async def report(self) -> None:
        """Prints a line every minute."""
        print("minute messages answers   p50 ms   p99 ms  hub MiB  WAL MiB  log MiB  kills")
        for minute in range(1, int(self.minutes) + 1):
            await self.pause(60)
            await self.hub.listening.wait()
            took, self.took = self.took or [0.0, 0.0], []
            cuts = quantiles(took, n=100)
            sizes = [self._mib(self.hub.database.with_name("hub.db-wal")), self._mib()]
            print(
                f"{minute:6} {len(took):8} {self.answers.total():7} {cuts[49] * 1e3:8.1f} "
                f"{cuts[98] * 1e3:8.1f} {self.hub.rss_kib() / 1024:8.1f} "
                f"{sizes[0]:8.1f} {sizes[1]:8.1f}  {dict(self.kills)}",
                flush=True,
            )
        self.stop.set()

    async def pause(self, seconds: float) -> None:
        """Returns after `seconds`, or earlier at `stop`."""
        try:
            async with asyncio.timeout(seconds):
                await self.stop.wait()
        except TimeoutError:
            return

    def _mib(self, path: Path | None = None) -> float:
        path = path or self.hub.database
        return path.stat().st_size / 2**20 if path.exists() else 0.0


def _names() -> list[str]:
    return [f"p{a}{b}" for a in ascii_lowercase for b in ascii_lowercase][: 2 * PAIRS]


def _streams(names: Sequence[str]) -> list[Stream]:
    pairs = [Stream(a, b) for a, b in zip(names[::2], names[1::2], strict=True)]
    return [*pairs, *(Stream(name, "general") for name in names[:3]), Stream(names[3], "all")]


async def soak(folder: Path, minutes: float) -> None:
    """Raises AssertionError if a message was lost, duplicated or reordered."""
    names = _names()
    streams = _streams(names)
    async with running_hub(folder, channels=["general"], mods=MODS) as hub:
        run = Soak(hub, minutes)
        async with AsyncExitStack() as stack:
            agents, clients = [], {}
            for n in range(AGENTS):
                file = folder / f"agent{n}" / f"helper{n}.py"
                file.parent.mkdir()
                file.write_text(AGENT.format(name=f"Helper{n}"))
                command = [str(file), "--address", hub.url.removeprefix("ws://")]
                agents.append(await stack.enter_async_context(running_agent(file.parent, command)))
            for n, name in enumerate(names):
                kind: Kind = "human" if n % 2 else "agent"
                client = Client(WebSocketTransport(hub.url), name, kind, options=QUICK)
                clients[name] = await stack.enter_async_context(client)
            reading = [asyncio.create_task(run.read(client)) for client in clients.values()]
            work: list[Awaitable[None]] = [run.write(clients[s.sender], s) for s in streams]
            work += [run.ask(clients[names[2 * n + 1]], f"helper{n % AGENTS}") for n in range(8)]
            await asyncio.gather(*work, run.kill(agents), run.report())
            async with asyncio.timeout(120):
                await run.ledger.all_arrived(streams, names)
                if len(run.answers) < run.asked:
                    await run.answered.wait()
            for task in reading:
                task.cancel()
    run.ledger.check_readers(streams, names)
    run.ledger.check_log(hub.database, streams)
    assert set(run.answers.values()) == {1}, "a question was answered twice"
    print(f"all messages once and in order: {run.asked} questions, kills {dict(run.kills)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(soak(Path(place), float(os.environ.get("MINUTES", "60"))))
    sys.exit(0)
