"""Calls tools of a toolbox as the loop does, with a hub for the tools that need one."""

from __future__ import annotations

import asyncio
import json

from pydantic import BaseModel, JsonValue

from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.loop import CallResult
from hubbub.protocol.messages import OperationInfo, Permission
from hubbub.protocol.operations import PostToChannel, ReadThread
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = [
    *("POST", "READ", "SENT", "Pauses", "ScriptedHub"),
    *("call", "called", "failed", "operation", "record", "text"),
]

SENT: JsonValue = {"id": "m7", "seq": 7, "thread_id": "dm.ann.bot", "tseq": 3, "absent": ["ann"]}


def operation(name: str, permission: Permission, model: type[BaseModel]) -> OperationInfo:
    schema = model.model_json_schema()
    about = f"what {name} does"
    return OperationInfo(name=name, description=about, permission=permission, input_schema=schema)


POST = operation("post_to_channel", "write", PostToChannel)
READ = operation("read_thread", "read", ReadThread)


class ScriptedHub:
    """A hub that records its calls and returns `answer`; calls wait while `go` is cleared."""

    def __init__(self, answer: JsonValue | Exception = SENT):
        self.answer = answer
        self.calls: list[tuple[str, str | None, str | None, dict[str, JsonValue]]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.was_called = asyncio.Event()

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        self.calls.append((name, cid, cause, args))
        self.was_called.set()
        await self.go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def record(name: str, arguments: JsonValue = None, id: str = "c") -> ToolCallRecord:
    return ToolCallRecord(id=id, name=name, arguments=arguments or {})


class Pauses:
    """Returns at once, and records the requested pauses."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def call(
    box: Toolbox, name: str, arguments: dict[str, JsonValue] | None = None, *, again: bool = False
) -> CallResult:
    """The result of the first call of step 1 in turn bot-m1."""
    record = ToolCallRecord(id="c", name=name, arguments=arguments or {})
    (result,) = await box.run("bot-m1", 1, [record], [record], again=again)
    return result


async def text(box: Toolbox, name: str, /, **arguments: JsonValue) -> str:
    """The result of a call that succeeds."""
    result = await call(box, name, arguments)
    assert result.error is None, result.result
    return result.result


async def failed(box: Toolbox, name: str, /, **arguments: JsonValue) -> dict[str, JsonValue]:
    """The error that the model gets for a call that fails."""
    result = await call(box, name, arguments)
    error: dict[str, JsonValue] = json.loads(result.result)
    assert result.error is not None
    assert error["error"] == result.error
    return error


def called(n: int, name: str, result: str | None = "ok", **arguments: JsonValue) -> Step:
    """A recorded step with one call."""
    record = ToolCallRecord(id=f"c{n}", name=name, arguments=arguments, result=result)
    return Step(n=n, calls=(record,))
