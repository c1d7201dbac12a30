"""What must be durable before the calls of a step run."""

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


class Diary:
    """A recorder and a hub that note in which order they are asked for what."""

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


async def lines(*names: str) -> list[str]:
    """What happens, in order, when these tools are called in one step."""
    diary = Diary()

    @tool
    async def weigh() -> str:
        """Weigh it."""
        diary.lines.append("weigh")
        return "3 kg"

    operation: Operation = MessageService.send_text_message
    box = Toolbox([HubTool(operation.info(), diary, "bot"), weigh])
    arguments: Mapping[str, dict[str, JsonValue]] = {
        "send_text_message": {"to": "ann", "text": "hello"}
    }
    calls = tuple(
        ToolCallRecord(id=name, name=name, arguments=arguments.get(name, {})) for name in names
    )
    run = RunTools(Step(n=1, calls=calls), calls, again=False)
    results: list[CallResult] = await StepCalls(box, cast(TurnRecorder, diary)).run(run)
    assert all(result.error is None for result in results)
    return diary.lines


async def test_a_turn_has_durably_begun_before_a_tool_runs_in_its_process() -> None:
    assert await lines("weigh") == ["begin", "record", "weigh"]
    both = await lines("send_text_message", "weigh")
    assert both == ["begin", "record", "send_text_message", "weigh"]


async def test_what_only_asks_the_hub_waits_for_no_commit() -> None:
    assert await lines("send_text_message") == ["send_text_message"]
