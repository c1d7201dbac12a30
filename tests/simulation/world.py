"""A whole network in virtual time: the real hub, store, clients, agents and mods, driven by a list
of operations.

An operation is a tuple that starts with its name: `("say", "ann", "bot", "t7 pay")`. An absent
participant does nothing. Operations do not wait for their effect; `wait` and `steps` let time pass.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import openai
import structlog
from pydantic import JsonValue
from structlog.typing import EventDict

from hubbub import ids
from hubbub.agents import launch, parts
from hubbub.agents.models.openai import OpenAIModel
from hubbub.agents.program import PythonObjects
from hubbub.client import Client, ClientOptions, snapshot
from hubbub.client.calls import Backoff
from hubbub.config.models import AgentConfig, ModelConfig, NetworkFile
from hubbub.errors import ConnectionLost, OperationError, StoreUnavailable, UserError
from hubbub.mods import guard
from hubbub.mods.guard import Guard
from hubbub.mods.loader import load_mods
from hubbub.network.hub import Hub
from hubbub.network.queries import PendingWakes
from hubbub.network.store.location import SqliteLocation
from hubbub.network.store.sqlite import SqliteStore
from hubbub.protocol.frames import Event, Ready, Signal
from tests.simulation.disk import Disk, Trouble
from tests.simulation.endpoint import MODEL, Endpoint, Mood
from tests.simulation.loop import PROCESS, Process, VirtualLoop, Weather
from tests.simulation.model import shop
from tests.simulation.network import VirtualNetwork
from tests.simulation.witness import Asked, Moment, Reader, Try, Wiretap

__all__ = ["AGENTS", "BUDGET", "FILE", "LONG", "PEOPLE", "Op", "World"]

Op = tuple[Any, ...]
PEOPLE, AGENTS = ("ann", "bob", "eve"), ("bot", "calc")
TRUSTING = "eve"
"""Uses the hub's cursor instead of its own."""
BUDGET = 5000
"""Tokens of an interaction."""
EXPECTED = ConnectionLost | OSError | StoreUnavailable | UserError
"""The errors with which a process can end; it is restarted."""
DISK_TROUBLE = {"the store refuses writes"}
"""The errors that a hub can log."""
EPOCH = 1_800_000_000.0
LONG = 1440.0
"""Minutes of a takeover that outlasts a history."""
CALM_S = 900.0
"""A calm of this length is enough for everything to finish."""
FILE = NetworkFile.model_validate(
    {
        "network": {
            "auth": "open",
            "store": "sqlite::memory:",
            "budgets": {"tokens": BUDGET},
            "approvals": {"expire": "200s"},
            "limits": {"calls_per_second": 1000, "burst": 1000, "unacknowledged": 4},
        },
        "channels": {"desk": {"members": ["ann", "bob", "bot"]}},
        "mods": ["reactions", "edits"],
    }
)
AGENT = AgentConfig.model_validate(
    {
        "instruction": "Do what you are asked.",
        "tools": ["sim:pay", "sim:look", "send_text_message"],
        "turn_timeout": "300s",
    }
)


class World:
    def __init__(self, seed: object, weather: Weather):
        self.loop = VirtualLoop(seed, weather)  # type: ignore[abstract]  # no sockets, no signals
        self.network, self.disk = VirtualNetwork(self.loop), Disk(self.loop)
        self.endpoint = Endpoint(self.loop, lambda agent: AGENTS[agent == AGENTS[0]])
        self.random = Random(f"{seed} clients")
        self.wire = Wiretap()
        self.network.tap = lambda frame, name: self.wire.record(frame, name, self._moment)
        self.readers = {who: Reader() for who in PEOPLE}
        self.agents: dict[str, Client] = {}
        self.asked: list[Asked] = []
        self.peeked: list[tuple[str, str]] = []
        """Person and thread of each page read."""
        self.hubs = 0
        """The number of hubs started."""
        self.paid: list[tuple[str, str]] = []
        """Agent and item of each payment."""
        self.tools = shop(lambda what: self.paid.append((PROCESS.get().name, what)))
        self.decided: list[tuple[str, str]] = []
        """Approvals and their confirmed decisions."""
        self.changed: list[tuple[str, str]] = []
        """Agent and item of payments of which a person approved only half."""
        self.failures: list[str] = []
        """Faults detected during the run."""
        self.backups: list[tuple[int, bytes]] = []
        """The end of the log at the start of each, and the disk's content."""
        self.stepped = 0.0
        self.jumps: list[Moment] = []
        self.processes: dict[str, Process] = {}
        self.held: set[str] = set()
        """The processes that are not restarted for now."""
        self._cids = self._ulids = 0
        self._unfinished: object = None

    # Time of day --------------------------------------------------------------------------------

    def now(self) -> float:
        return EPOCH + self.loop.time() + self.stepped

    def monotonic(self) -> float:
        return self.loop.time()

    # Lives --------------------------------------------------------------------------------------

    def run(self, history: Sequence[Op], check: Callable[[World], Awaitable[None]]) -> None:
        """Runs the history, then the calm, then `check`."""
        _warm()
        self._run(history, check)

    def _run(self, history: Sequence[Op], check: Callable[[World], Awaitable[None]]) -> None:
        snapshot.forget()  # so that a history does not depend on earlier ones
        asking = partial(_openai_client, openai.AsyncOpenAI, self.endpoint)
        with (
            patch.object(parts, "open_model", self._model),
            patch.object(openai, "AsyncOpenAI", asking),
            patch.object(openai._base_client, "random", self.random.random),
            patch.object(ids, "time_ns", lambda: int(self.now() * 1e9)),
            patch.object(ids, "urandom", self._random_bytes),
            patch.multiple(Guard, start=_nothing, stop=_nothing),  # a thread that watches the loop
            patch.object(guard, "monotonic", self.loop.time),
        ):
            structlog.configure(processors=[self._log])
            try:
                self.loop.run(self._whole(history, check))
            finally:
                structlog.reset_defaults()

    def _log(self, logger: object, method: str, record: EventDict) -> EventDict:
        serious = method in ("error", "exception") and record["event"] not in DISK_TROUBLE
        if serious and PROCESS.get().alive:
            self.failures.append(f"{PROCESS.get().name} logged: {record}")
        raise structlog.DropEvent

    async def _whole(
        self, history: Sequence[Op], check: Callable[[World], Awaitable[None]]
    ) -> None:
        self._driver = PROCESS.get()
        named = any(agent in op for op in history for agent in AGENTS)
        for name in ("hub", *PEOPLE, *(AGENTS if named else ())):
            self._keep_alive(name)
        await asyncio.sleep(1)
        for name, *args in history:
            await getattr(self, name)(*args)
        await self.calm()
        await check(self)

    def _keep_alive(self, name: str) -> None:
        """Starts a process, and restarts it whenever it has died."""
        process = self.processes[name] = Process(name)
        work = self._hub if name == "hub" else self._person if name in PEOPLE else self._agent
        life = self.loop.start(process, work(name))
        life.add_done_callback(lambda done: self._ended(process, done))
        process.on_death.append(lambda: self._again(process))

    def _ended(self, process: Process, life: asyncio.Task[None]) -> None:
        error = None if life.cancelled() else life.exception()
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        temporary = isinstance(error, OperationError) and error.temporary
        if not (temporary or isinstance(error, EXPECTED | None)):
            raise error
        self.loop.kill(process)

    def _again(self, process: Process) -> None:
        if process.name in self.readers:
            self.readers[process.name].client = None
        if process.name == "hub":
            self.disk.crash()
        delay = self.random.uniform(0.1, 3)
        driver = self._driver
        self.loop.deliver(driver, self.loop.time() + delay, self._keep_alive, process.name)

    async def _hub(self, name: str) -> None:
        store = SqliteStore(SqliteLocation(None), connect=self.disk.connect)
        async with Hub(FILE, store, mods=load_mods(FILE.mods), clock=self) as hub:
            self.hub, self.stop = hub, asyncio.Event()
            self.hubs += 1
            self.network.listen(hub.gateway.attach)
            await self.stop.wait()

    async def _person(self, who: str) -> None:
        reader = self.readers[who]
        client = Client(
            self.network.transport(who), who, "human", cursor=reader.cursor,
            options=self._options(schemas=False),
        )  # fmt: skip
        async with client:
            reader.client, reader.unacknowledged = client, 0
            reader.lives.append([])
            reader.begin()
            first = True
            async for item in client.events():
                if isinstance(item, Ready):
                    if not (item.resumed or (first and reader.cursor is None)):
                        self.failures.append(f"{who} could not resume")
                    reader.began = item.cursor if reader.began is None else reader.began
                    reader.begin()
                    first = False
                elif isinstance(item, Event):
                    await asyncio.sleep(self.random.uniform(0, self.loop.weather.disk))
                    if not reader.receive(item):
                        self.failures.append(f"{who} received two messages at {item.seq}")
                    reader.unacknowledged += 1
                    if reader.unacknowledged > reader.lags:
                        reader.unacknowledged = 0
                        await client.ack(item.seq)
                elif isinstance(item, Signal):
                    reader.update(item)
                if who != TRUSTING:
                    reader.cursor = client.cursor

    async def _agent(self, name: str) -> None:
        transport = self.network.transport(name)
        async with Client(
            transport, name, turns=True, options=self._options(schemas=True)
        ) as client:
            self.agents[name] = client
            objects, models = PythonObjects(tools=self.tools), {"default": MODEL}
            await launch.run_agent(AGENT, name, client, Path(), models, grace_s=0, objects=objects)

    def _options(self, *, schemas: bool) -> ClientOptions:
        backoff = Backoff(random=self.random.random)
        return ClientOptions(schemas=schemas, backoff=backoff, clock=self)

    def _model(self, config: ModelConfig, label: str = "default") -> OpenAIModel:
        backoff = Backoff(first_s=0.5, most_s=8.0, random=self.random.random)
        return OpenAIModel(config, label, backoff)

    def _random_bytes(self, size: int) -> bytes:
        self._ulids += 1
        return self._ulids.to_bytes(size)

    # Actions of people --------------------------------------------------------------------------

    async def call(self, who: str, name: str, args: dict[str, JsonValue]) -> None:
        self._cids += 1
        asked = Asked(who, name, args, f"cid{self._cids:05d}")
        self.asked.append(asked)
        self._ask(who, asked)

    def _ask(self, who: str, asked: Asked) -> None:
        if self.readers[who].client is not None:
            self.loop.start(self.processes[who], self._answered(who, asked))

    async def _answered(self, who: str, asked: Asked) -> None:
        client = self.readers[who].client
        assert client is not None
        attempt = Try(self._moment())
        asked.tries.append(attempt)
        try:
            answer = await client.call(asked.name, cid=asked.cid, **asked.args)
        except OperationError as error:
            asked.refusals.append(error)
        except ConnectionLost:
            return
        else:
            assert isinstance(answer, dict)
            attempt.done = self._moment()
            asked.answers.append(answer)

    async def say(self, who: str, to: str, text: str) -> None:
        await self.call(who, "send_text_message", {"to": to, "text": text})

    async def post(self, who: str, text: str) -> None:
        await self.call(who, "post_to_channel", {"channel": "desk", "text": text})

    async def shout(self, who: str, text: str) -> None:
        await self.call(who, "broadcast_text_message", {"text": text})

    async def reply(self, who: str, seq: int, text: str) -> None:
        await self.call(who, "reply", {"message_id": f"m{seq}", "text": text})

    async def again(self, before: int) -> None:
        """A person repeats an earlier call."""
        if before < len(self.asked):
            asked = self.asked[-1 - before]
            self._ask(asked.who, asked)

    async def react(self, who: str, seq: int) -> None:
        args: dict[str, JsonValue] = {"message_id": f"m{seq}", "emoji": "👍"}
        await self.call(who, "add_reaction", args)

    async def edit(self, who: str, seq: int, text: str) -> None:
        await self.call(who, "edit_message", {"message_id": f"m{seq}", "text": text})

    async def delete(self, who: str, seq: int) -> None:
        await self.call(who, "delete_message", {"message_id": f"m{seq}"})

    async def halt(self, who: str, agent: str) -> None:
        await self.call(who, "stop", {"scope": "agent", "target": agent})

    async def resume(self, who: str, agent: str) -> None:
        await self.call(who, "resume", {"scope": "agent", "target": agent})

    async def take_over(self, who: str, agent: str, minutes: float) -> None:
        await self.call(who, "take_over", {"agent": agent, "minutes": minutes})

    async def hand_back(self, who: str, agent: str) -> None:
        await self.call(who, "hand_back", {"agent": agent})

    async def speak(self, who: str, agent: str, to: str, text: str) -> None:
        """Sends a message in the agent's name."""
        args: dict[str, JsonValue] = {"to": to, "text": text, "on_behalf_of": agent}
        await self.call(who, "send_text_message", args)

    async def decide(self, who: str, how: str, state: str = "pending") -> None:
        """Approves, changes or denies the newest call in this state."""
        client = self.readers[who].client
        if client is not None:
            self.loop.start(self.processes[who], self._decide(client, how, state))

    async def _decide(self, client: Client, how: str, state: str) -> None:
        try:
            listed: Any = await client.call("list_approvals", state=state)
            for approval in listed["approvals"][:1]:
                id, agent, what = approval["id"], approval["agent"], approval["arguments"]["what"]
                if how == "change":
                    await client.call("approve", id=id, arguments={"what": f"half of {what}"})
                    self.changed.append((agent, what))
                else:
                    await client.call(how, id=id)
                self.decided.append((id, how))
        except (OperationError, ConnectionLost):
            return

    async def peek(self, who: str, thread: str) -> None:
        client = self.readers[who].client
        if client is not None:
            self.loop.start(self.processes[who], self._peek(client, thread))

    async def _peek(self, client: Client, thread: str) -> None:
        try:
            await client.call("read_thread", thread=thread)
        except (OperationError, ConnectionLost):
            return
        self.peeked.append((client.participant, thread))

    # Mishaps ------------------------------------------------------------------------------------

    async def kill(self, name: str, steps: int) -> None:
        """Kills a process after this number of its steps, or soon if it takes none."""
        process = self.processes[name]
        process.steps_to_live = steps
        self.loop.deliver(self._driver, self.loop.time() + 1, lambda: self._die(process))

    async def last_words(self, name: str, frames: int) -> None:
        """Kills a process after this number of further frames."""
        self.processes[name].frames_to_live = frames

    def _die(self, process: Process) -> None:
        self.loop.kill(process)

    async def restart(self) -> None:
        """Stops the hub as an operator does."""
        process = self.processes["hub"]
        if self.network.hub is not None and process.alive:
            self.loop.deliver(process, self.loop.time(), self.stop.set)

    async def cut(self, name: str, silently: bool) -> None:
        for line in [line for line in self.network.lines if line.name == name]:
            line.cut(silently=silently)

    async def stall(self, name: str, seconds: float) -> None:
        """A process gets no processor time."""
        self.processes[name].stalled_until = self.loop.time() + seconds

    async def lag(self, who: str, events: int) -> None:
        self.readers[who].lags = events

    async def twice(self, name: str) -> None:
        """The next call of this client arrives twice."""
        self.network.twice.add(name)

    async def trouble(self, what: Trouble, times: int) -> None:
        """The disk's next operations fail."""
        self.disk.troubles += [what] * times

    async def endpoint_is(self, mood: Mood, times: int) -> None:
        """The model endpoint's next requests have this outcome."""
        self.endpoint.moods += [mood] * times

    async def backup(self) -> None:
        """Copies the store while the hub runs."""
        image = self.disk.image()
        if image:
            self.backups.append((self.head(), image))

    async def jump(self, seconds: float) -> None:
        """Sets the clock."""
        self.stepped += seconds
        self.jumps.append(self._moment())

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def steps(self, count: int) -> None:
        """Lets the processes take `count` steps."""
        until = self.loop.steps + count
        while self.loop.steps < until:  # noqa: ASYNC110  steps have no event
            await asyncio.sleep(0)

    # The end ------------------------------------------------------------------------------------

    @property
    def end(self) -> Moment:
        return self._moment()

    def _moment(self) -> Moment:
        return Moment(self.loop.steps, self.head())

    def head(self) -> int:
        """The end of the log, as it would be after a crash."""
        [(head,)] = self.disk.sql("SELECT coalesce(max(seq), 0) FROM message")
        return int(str(head))

    async def calm(self) -> None:
        """Ends all mishaps, resumes what was stopped, and waits until everything has finished."""
        self.disk.troubles.clear()
        self.endpoint.moods.clear()
        for process in self.processes.values():
            process.frames_to_live = None
        self.network.twice.clear()
        for reader in self.readers.values():
            reader.lags = 0
        until = self.loop.time() + CALM_S
        await asyncio.sleep(60)
        for asked in list(self.asked):
            if asked.name == "stop":
                await self.resume("ann", str(asked.args["target"]))
            elif asked.name == "take_over":
                await self.hand_back("ann", str(asked.args["agent"]))
        for asked in self.asked:
            if not (asked.answers or asked.refusals):
                self._ask(asked.who, asked)
        while not await self._quiet():
            if self.loop.time() > until:
                raise AssertionError(f"it never ends: {self._unfinished}")
            await self.decide("ann", "deny")
            await asyncio.sleep(20)
        await asyncio.sleep(20)  # until the last messages have reached their readers

    async def _quiet(self) -> bool:
        if self.network.hub is None:
            return False
        waiting = [a for a in self.asked if not (a.answers or a.refusals)]
        wakes = [
            (agent, row.seq)
            for agent in AGENTS
            for row in await self.hub.store.read(PendingWakes(agent, self.head()))
        ]
        self._unfinished = waiting, wakes
        return not (waiting or wakes)


def _openai_client(
    client: type[openai.AsyncOpenAI], endpoint: Endpoint, **options: Any
) -> openai.AsyncOpenAI:
    """An agent's client, connected to the endpoint."""
    http = openai.DefaultAsyncHttpxClient(transport=endpoint, trust_env=False)
    return client(**options | {"http_client": http})


def _nothing(guard: Guard) -> None:
    """Mods are not watched for blocking the hub, since no real time passes."""


async def _unchecked(world: World) -> None:
    """Accepts any outcome."""


@cache
def _warm() -> None:
    """Runs one-time initialization, so that every history starts from the same state."""
    World("warm", Weather())._run([("say", "ann", "bot", "t1 echo")], _unchecked)
    gc.freeze()  # speeds up the collection after each history
