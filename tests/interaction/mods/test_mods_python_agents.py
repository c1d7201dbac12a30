"""Calls of Python agents to the operations of mods."""

from __future__ import annotations

import pytest

from hubbub import Agent, Message
from hubbub.errors import OperationError
from hubbub.mods.tasks.mod import TasksConfig, TasksMod
from hubbub.mods.tasks.schemas import Task, Tasks
from tests.interaction.agent_harness import Gate, harness
from tests.interaction.peers import Networks, config

DESK = config(channels={"desk": {"members": "all"}})


class Planner(Agent):
    """Creates a task for each message; waits at the gate, if any, before it answers."""

    def __init__(self, gate: Gate | None = None):
        self.gate = gate

    async def on_direct(self, message: Message) -> str:
        if message.text == "misspelled":
            try:
                await self.call("creat_task")
            except OperationError as refused:
                return refused.code
        answer = await self.call("create_task", thread="channel_desk", title=message.text)
        task = Task.model_validate(answer)
        if self.gate is not None:
            await self.gate.wait()
        listed = Tasks.model_validate(await self.call("list_tasks", thread="channel_desk"))
        return f"{task.id} of {len(listed.tasks)}"


@pytest.mark.behaviour("M-303")
async def test_a_python_agent_can_call_the_operations_of_a_mod(networks: Networks) -> None:
    async with harness(networks, DESK, mods=[TasksMod(TasksConfig())]) as net:
        ann = await net.person()
        await net.python("planner", Planner())
        asked = await ann.say("planner", "water the flowers")
        assert (await ann.event())["message"]["content"] == "t1 of 1"
        turn = await net.turn(f"planner-{asked['id']}")
        assert [call.name for call in turn.steps[0].calls] == ["create_task", "send_text_message"]
        await ann.say("planner", "misspelled")
        assert (await ann.event())["message"]["content"] == "unknown_operation"


@pytest.mark.behaviour("M-303")
async def test_a_handlers_call_of_a_mod_is_not_repeated_after_a_crash(in_memory: Networks) -> None:
    async with harness(in_memory, DESK, mods=[TasksMod(TasksConfig())]) as net:
        ann = await net.person()
        gate = Gate()
        await net.python("planner", Planner(gate))
        await ann.say("planner", "water the flowers")
        await gate.until_reached()
        await net.kill("planner")
        await net.python("planner", Planner())
        assert (await ann.event())["message"]["content"] == "t1 of 1"
