"""Calling the tools of a toolbox as the loop does, one at a time."""

from __future__ import annotations

import json

from pydantic import JsonValue

from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.loop import CallResult
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["Pauses", "call", "called", "failed", "text"]


class Pauses:
    """Waits nowhere, and notes how long it was asked to."""

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
    """What a model is told of a call that fails."""
    result = await call(box, name, arguments)
    told: dict[str, JsonValue] = json.loads(result.result)
    assert result.error is not None
    assert told["error"] == result.error
    return told


def called(n: int, name: str, result: str | None = "ok", **arguments: JsonValue) -> Step:
    """A recorded step with one call."""
    record = ToolCallRecord(id=f"c{n}", name=name, arguments=arguments, result=result)
    return Step(n=n, calls=(record,))
