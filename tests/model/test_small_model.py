"""A real model behind the real HTTP client, real agents and a real hub.

A model as small as this one understands little. What must hold is that nothing it does breaks the
protocol: every step and every outcome is recorded, and no call is carried out that the schema of
its tool does not accept. How often it makes sense is printed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
from pydantic import JsonValue

from hubbub.agents.launch import run_agent
from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.validation import ArgumentCheck
from hubbub.client import Client
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import OperationError
from hubbub.loading import load_attribute
from hubbub.protocol.operations import ThreadPage
from hubbub.protocol.turns import Outcome, Turn
from hubbub.testing.network import LocalNetwork
from tests.model.llama import CONTEXT, Llama, llama
from tests.model.tasks import TASKS, Task

HERE = Path(__file__).parent
CHORES = ("add", "weather", "switch_light")
WITHIN_S = 300.0
"""For one turn, on a machine that has other things to do."""


@pytest.fixture(scope="module")
def model() -> Iterator[Llama]:
    with llama() as server:
        yield server


@dataclass(frozen=True, slots=True)
class Tried:
    """A task, and what came of it."""

    task: Task
    turn: Turn
    said: Sequence[str]

    @property
    def sensible(self) -> bool:
        return self.task.sensible(self.turn, self.said)


@pytest.mark.parametrize(("dialect", "tasks"), [("native", TASKS), ("tool_call", TASKS[:4])])
async def test_whatever_a_small_model_does_its_turns_are_valid(
    model: Llama, dialect: str, tasks: Sequence[Task], capsys: pytest.CaptureFixture[str]
) -> None:
    done = load_attribute("chores.py:DONE", HERE)
    assert isinstance(done, list)
    tried: list[Tried] = []
    async with LocalNetwork() as network, agent(network, model, dialect) as name:
        operator = await network.join("operator", "service")
        schemas = offered(operator)
        for n, task in enumerate(tasks):
            before = len(done)
            one = await ask(network, operator, name, f"person{n}", task)
            tried.append(one)
            assert_valid(one.turn, schemas, done[before:])
    with capsys.disabled():
        print(told(model, dialect, tried))
    assert sum(bool(one.turn.steps) for one in tried) > len(tried) / 2, "the endpoint fails"


@asynccontextmanager
async def agent(network: LocalNetwork, model: Llama, dialect: str) -> AsyncIterator[str]:
    """An agent with the model, for as long as the block lasts; its name."""
    config = AgentConfig.model_validate(
        {
            "instruction": "You help people. Answer them with send_text_message, then call finish.",
            "tools": ["send_text_message", *(f"chores.py:{chore}" for chore in CHORES)],
            "history": {"threads": 1},
            "max_steps": 4,
        }
    )
    endpoint: dict[str, JsonValue] = {
        "model": model.weights.stem,
        "base_url": model.base_url,
        "timeout": WITHIN_S,
        "retries": 0,
        "temperature": 0.6,
        "max_output_tokens": 120,
        "context_window": CONTEXT,
    }
    if dialect != "native":  # left out, an endpoint that does not listen is asked in words
        endpoint["dialect"] = dialect
    models = {"default": ModelConfig.model_validate(endpoint)}
    client = Client(network.transport(), "helper", "agent", turns=True)
    async with client:
        work = asyncio.create_task(run_agent(config, "helper", client, HERE, models, grace_s=0))
        try:
            yield "helper"
            assert not work.done(), "the agent has died"
        finally:
            work.cancel()
            await asyncio.wait({work})


async def ask(network: LocalNetwork, operator: Client, name: str, person: str, task: Task) -> Tried:
    """A person of the task's own asks, and waits until the turn is over."""
    client = await network.join(person, "human")
    sent = await client.call("send_text_message", to=name, text=task.message)
    assert isinstance(sent, dict)
    async with asyncio.timeout(WITHIN_S):
        turn = await ended(operator, f"{name}-{sent['id']}")
    return Tried(task, turn, await received(client, turn))


async def ended(operator: Client, id: str) -> Turn:
    """The record of the turn, when it is complete."""
    while True:
        try:
            turn = Turn.model_validate(await operator.call("read_turn", id=id))
        except OperationError:
            turn = None  # it has not begun
        if turn is not None and turn.end is not None:
            return turn
        await asyncio.sleep(0.2)


async def received(client: Client, turn: Turn) -> list[str]:
    """What the person got from the turn."""
    page = await client.call("read_thread", thread=turn.start.thread_id, limit=50)
    messages = ThreadPage.model_validate(page).messages
    return [message.text for message in messages if message.id in turn.sent]


def offered(client: Client) -> dict[str, Mapping[str, JsonValue]]:
    """The schemas of the hub's operations and of the chores."""
    found: dict[str, Mapping[str, JsonValue]] = {
        operation.name: operation.input_schema for operation in client.ready.operations
    }
    for chore in CHORES:
        tool = load_attribute(f"chores.py:{chore}", HERE)
        assert isinstance(tool, FunctionTool)
        found[chore] = tool.spec.parameters
    return found


def assert_valid(
    turn: Turn,
    schemas: Mapping[str, Mapping[str, JsonValue]],
    done: Sequence[tuple[str, Mapping[str, JsonValue]]],
) -> None:
    """Everything is recorded, and nothing was done that was not valid."""
    assert turn.end is not None
    assert turn.end.outcome in set(get_args(Outcome)) - {"handler_error"}, turn.end.reason
    assert [step.n for step in turn.steps] == list(range(1, len(turn.steps) + 1))
    calls = [call for step in turn.steps for call in step.calls]
    last = turn.steps[-1].calls if turn.steps else ()
    for call in calls:
        if call.result is None:  # nobody ran it: the turn was ended first
            assert call in last
            assert turn.end.outcome in ("loop_detected", "timeout", "max_steps")
        elif call.error is None:
            assert call.name in turn.start.tools
            assert isinstance(call.arguments, dict)
            if call.name in schemas:
                ArgumentCheck(schemas[call.name]).check(call.arguments)
    ran = [call.name for call in calls if call.name in CHORES and call.result and not call.error]
    assert [name for name, _ in done] == ran, "something ran that is not recorded as run"
    if turn.end.outcome == "finished":
        assert any(call.name == "finish" and call.error is None for call in calls)


def told(model: Llama, dialect: str, tried: Sequence[Tried]) -> str:
    """The rate of sensible answers, and what came of each task."""
    lines = [
        f"    {'ok ' if one.sensible else ' . '} {one.task.name:8} {one.turn.end.outcome:13} "
        f"{len(one.turn.steps)} steps  {one.said[-1][:60] if one.said else ''!r}"
        for one in tried
        if one.turn.end is not None
    ]
    rate = sum(one.sensible for one in tried)
    head = f"\n{model.weights.name}, {dialect}: {rate} of {len(tried)} answers are sensible"
    return "\n".join((head, *lines))
