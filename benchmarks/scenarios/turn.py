"""What the runtime adds to a turn: from the wake to the turn's end, without model and tools.

The agent runs here, its hub in a process of its own. The model answers at once, and the time in
which it is asked and tools run is subtracted: what is left is rendering, counting, checking,
recording, and the library around them. The agent has 50 threads with 10 messages each in view.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, cycle
from pathlib import Path

from pydantic import JsonValue

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Goal, at_most
from benchmarks.hubs import hub
from benchmarks.messages import direct
from benchmarks.scenarios.prompt import CHARACTERS, MESSAGES, THREADS, conversation
from benchmarks.servers import Server
from benchmarks.sides import opened_side, token_of
from benchmarks.sockets import Socket
from benchmarks.stats import percentile
from hubbub.agents.inbox import Inbox, Received, TurnPlan
from hubbub.agents.llm import LlmBackend
from hubbub.agents.models.base import CallRequest, Completion, CompletionRequest, OnDelta
from hubbub.agents.parts import AgentModel, AgentParts, context_rules, with_token_budget
from hubbub.agents.prompt.render import ConversationTemplate
from hubbub.agents.prompt_client import DialectChoice
from hubbub.agents.runner import AgentRunner
from hubbub.agents.system_prompt import Memory
from hubbub.agents.tools.assembly import tool_policy_of
from hubbub.agents.tools.base import CallSite, Tool
from hubbub.agents.turn.outbox import Outbox
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.client import Client, WebSocketTransport
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.protocol.frames import Event, Ready
from hubbub.protocol.messages import Message, PendingWake, Wake

__all__ = ["AGENT_AND_SENDER", "run", "taking_turns"]

WARM_UP = 10
_NAME, _SENDER = AGENT_AND_SENDER = ("thinker", "asker")
Clock = Callable[[], float]
_WINDOW = 256_000
_SCENARIO = f"turn with {THREADS} threads x {MESSAGES} x {CHARACTERS} characters"


async def run(bench: Bench) -> Sequence[Figure]:
    bench.say("turn")
    times = 50 if bench.quick else 300
    figures = []
    for model, how in (("scripted", "tokens estimated"), ("gpt-5-mini", "tokens counted exactly")):
        async with (
            hub(bench, AGENT_AND_SENDER) as server,
            taking_turns(bench, server, model) as take,
        ):
            figures += _figures(await take(WARM_UP + times), how)
    return figures


def _figures(overheads: list[float], how: str) -> list[Figure]:
    rounds = overheads[WARM_UP:]
    return [
        _figure(f"overhead, {how}, p50", percentile(rounds, 0.5), at_most(3, of="value"), rounds),
        _figure(f"overhead, {how}, p99", percentile(rounds, 0.99), None, rounds),
        _figure(f"the first turn, {how}", overheads[0], None, overheads[:1]),
    ]


def _figure(name: str, ours: float, goal: Goal | None, rounds: list[float]) -> Figure:
    return Figure(_SCENARIO, name, "ms", ours=ours, goal=goal, ours_rounds=rounds)


@asynccontextmanager
async def taking_turns(
    bench: Bench, server: Server, model: str, clock: Clock = time.perf_counter
) -> AsyncIterator[Callable[[int], Awaitable[list[float]]]]:
    """An agent at the hub that takes so many turns when asked to, one after the other: milliseconds
    of each, by `clock`, that were neither the model's nor a tool's.
    """
    watch = _Watch(clock)
    async with _agent(server, bench.scratch, model, watch), opened_side(server) as side:
        sender = await side.join(_SENDER, "human")
        template, numbers = direct(_NAME, side.run), count()

        async def take(times: int) -> list[float]:
            before = len(watch.overheads)
            for _ in range(times):
                sender.write(template.frame(next(numbers)))
                await _idle(sender)
            taken = watch.overheads[before:]
            if len(taken) != times:
                raise RuntimeError(f"{times} turns were woken, {len(taken)} have ended")
            return taken

        yield take


async def _idle(socket: Socket) -> None:
    """Wait until the agent says that its turn is over."""
    while True:
        frame = await socket.next_frame()
        if frame["op"] == "error":
            raise RuntimeError(f"the hub refused: {frame}")
        data = frame.get("data")
        if "thread_id" in frame and isinstance(data, dict) and data.get("state") == "idle":
            return


@asynccontextmanager
async def _agent(server: Server, folder: Path, name: str, watch: _Watch) -> AsyncIterator[None]:
    """The agent as `run_agent` puts it together, with a watch at its ends."""
    config = AgentConfig(instruction="You answer what you are asked.")
    model = ModelConfig(model=name, context_window=_WINDOW)
    transport = WebSocketTransport(f"ws://127.0.0.1:{server.port}")
    async with Client(transport, _NAME, token=token_of(_NAME), turns=True) as client:
        inbox = _WatchedInbox(_NAME, watch)
        outbox = Outbox(client, inbox)
        rules = await context_rules(config, _NAME, model)
        tool_policy = with_token_budget(
            replace(tool_policy_of(config), perform=watch.perform), rules
        )
        parts = AgentParts(
            config=config,
            name=_NAME,
            base_dir=folder,
            models={name: model},
            client=client,
            inbox=inbox,
            outbox=outbox,
            memory=Memory(outbox),
            template=ConversationTemplate.shipped(),
            tool_policy=tool_policy,
        )
        prompt_builder, tools = (
            parts.prompt_builder(parts.prompts(), name),
            parts.tools(tool_policy),
        )
        asked = AgentModel(_Script(name, watch), DialectChoice(), rules)
        backend = _WatchedBackend(parts, asked, prompt_builder, tools, None)
        backend.watch = watch
        runner = AgentRunner(client, inbox, backend, grace_s=0)
        work = asyncio.create_task(runner.run())
        try:
            yield
        finally:
            work.cancel()
            await asyncio.wait({work})


@dataclass(slots=True)
class _Watch:
    """Takes the time of turns, one after the other."""

    clock: Clock
    overheads: list[float] = field(default_factory=list)
    """Milliseconds of each turn that were neither the model's nor a tool's."""
    _woken: float = 0.0
    _elsewhere: float = 0.0

    def wake(self) -> None:
        self._woken, self._elsewhere = self.clock(), 0.0

    def end(self) -> None:
        took = self.clock() - self._woken - self._elsewhere
        self.overheads.append(took * 1e3)

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Within, the time is not the runtime's."""
        began = self.clock()
        try:
            yield
        finally:
            self._elsewhere += self.clock() - began

    async def perform(self, tool: Tool, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """As `Tool.run`."""
        with self.elsewhere():
            return await tool.run(arguments, site)


class _Script:
    """A model that answers the sender and finishes."""

    def __init__(self, name: str, watch: _Watch):
        self.name, self._watch = name, watch
        send = {"to": _SENDER, "text": "It is done."}
        self._calls = cycle(
            [
                CallRequest("", "send_text_message", json.dumps(send)),
                CallRequest("", "finish", json.dumps({"reason": "done"})),
            ]
        )

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        with self._watch.elsewhere():
            shown = (question.messages[1]["content"] or "").count("<thread ")
            if shown not in (THREADS - 1, THREADS):  # the question's own has no history at first
                raise RuntimeError(f"the prompt shows {shown} threads, not {THREADS}")
            await asyncio.sleep(0)  # what else there is to do is done meanwhile, as with a real one
        return Completion(calls=(next(self._calls),), tokens_in=1, tokens_out=1)

    async def close(self) -> None:
        """There is nothing to close."""


class _WatchedInbox(Inbox):
    """Knows the conversation, and tells when a message wakes the agent: as soon as it has been read
    from the socket.
    """

    def __init__(self, me: str, watch: _Watch):
        super().__init__(me)
        self._watch = watch

    def begin(
        self, ready: Ready, claims: Callable[[Message, Wake], bool] = lambda message, wake: False
    ) -> list[PendingWake]:
        pending = super().begin(ready, claims)
        # Before all positions of the hub's log, which knows nothing of it.
        earlier = conversation(-2 * THREADS * MESSAGES)
        self.note(*(message for thread in earlier for message in thread.messages))
        return pending

    def receive(self, event: Event, *, claimed: bool = False) -> Received:
        if event.wake is not None:
            self._watch.wake()
        return super().receive(event, claimed=claimed)


class _WatchedBackend(LlmBackend):
    """Tells when a turn has ended."""

    watch: _Watch

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        await super().take_turn(plan, recorder)
        self.watch.end()
