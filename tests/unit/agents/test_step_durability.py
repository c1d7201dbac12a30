"""Records that must be durable before the calls of a step run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from hubbub import tool
from hubbub.agents.inbox import TurnPlan
from hubbub.agents.tools.hub import HubTool
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.driver import StepCalls
from hubbub.agents.turn.loop import CallResult, RunTools
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.agents.turn.steps import TurnClock
from hubbub.mods.operation import Operation
from hubbub.network.services.messages import MessageService
from hubbub.protocol.turns import Step, ToolCallRecord


class CallLog:
    """A recorder and a hub that list their calls in order."""

    plan = TurnPlan("bot-m1", "dm.ann.bot", (), (), reply_required=True)
    clock = TurnClock()

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def flush_start(self) -> None:
        self.lines.append("begin")

    async def flush(self) -> None:
        self.lines.append("record")

    async def call(self, name: str, /, **args: JsonValue) -> JsonValue:
        self.lines.append(name)
        return {}


async def order_of(*names: str) -> list[str]:
    """The order of events when these tools are called in one step."""
    log = CallLog()

    @tool
    async def weigh() -> str:
        """Weigh it."""
        log.lines.append("weigh")
        return "3 kg"

    operation: Operation = MessageService.send_text_message
    box = Toolbox([HubTool(operation.info(), log, "bot"), weigh])
    arguments: Mapping[str, dict[str, JsonValue]] = {
        "send_text_message": {"to": "ann", "text": "hello"}
    }
    calls = tuple(
        ToolCallRecord(id=name, name=name, arguments=arguments.get(name, {})) for name in names
    )
    run = RunTools(Step(n=1, calls=calls), calls, again=False)
    results: list[CallResult] = await StepCalls(box, cast(TurnRecorder, log)).run(run)
    assert all(result.error is None for result in results)
    return log.lines


async def test_the_turns_start_and_step_are_durable_before_a_local_tool_runs() -> None:
    assert await order_of("weigh") == ["begin", "record", "weigh"]
    both = await order_of("send_text_message", "weigh")
    assert both == ["begin", "record", "send_text_message", "weigh"]


async def test_a_step_with_hub_calls_only_waits_for_no_commit() -> None:
    assert await order_of("send_text_message") == ["send_text_message"]
