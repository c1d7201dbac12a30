"""From the commit of a message to the request that the woken agent makes of its model.

Commit and request are seen from one process: the commit when the sender has its `result`, the
request when a model server has read it. Both cross a socket, so the figure is an upper bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pydantic import JsonValue

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Goal, at_most
from benchmarks.hubs import hub
from benchmarks.messages import direct
from benchmarks.servers import start
from benchmarks.sides import opened_side
from benchmarks.sockets import Socket
from benchmarks.stats import percentile
from hubbub.testing.model_server import (
    ModelServer,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptRule,
)

__all__ = ["run"]

WARM_UP = 10
_NAME, _SENDER = "thinker", "a0"
_SILENT = Script(
    rules=[
        ScriptRule(
            answer=ScriptedAnswer(
                calls=[ScriptedCall(tool="finish", arguments={"reason": "benchmark"})]
            )
        )
    ]
)


async def run(bench: Bench) -> Sequence[Figure]:
    bench.say("wake to model")
    rounds, bare = await _rounds(bench), await _rounds(bench, bare=True)
    return [
        _figure("p50", rounds, 0.5, at_most(5, of="value")),
        _figure("p99", rounds, 0.99, None),
        _figure("p50, bare hub", bare, 0.5, None),
    ]


async def _rounds(bench: Bench, *, bare: bool = False) -> list[float]:
    times = 50 if bench.quick else 300
    async with (
        ModelServer(_SILENT) as model,
        hub(bench, [_NAME, _SENDER], bare=bare) as server,
        start("benchmarks.agent_process", str(server.port), model.base_url, _NAME),
        opened_side(server) as side,
    ):
        sender = await side.join(_SENDER)
        template = direct(_NAME, side.run)
        found = [await _wake(sender, template.frame(n), model, n) for n in range(WARM_UP + times)]
    return found[WARM_UP:]


def _figure(name: str, rounds: list[float], share: float, goal: Goal | None) -> Figure:
    ours = percentile(rounds, share)
    return Figure(
        "wake", f"commit to model request, {name}", "ms", ours=ours, goal=goal, ours_rounds=rounds
    )


async def _wake(sender: Socket, frame: bytes, model: ModelServer, before: int) -> float:
    """Milliseconds from the answer to the message until the model's server has the request."""
    sender.write(frame)
    await _frame(sender, "result")
    committed = time.perf_counter()
    await model.received(before + 1)
    took = (time.perf_counter() - committed) * 1e3
    while not _is_end(await _frame(sender, "signal")):
        pass  # the turn is not over yet: its end is told as an activity
    return took


def _is_end(signal: dict[str, JsonValue]) -> bool:
    """Whether the agent says that its turn in the thread is over."""
    data = signal.get("data")
    return "thread_id" in signal and isinstance(data, dict) and data.get("state") == "idle"


async def _frame(socket: Socket, op: str) -> dict[str, JsonValue]:
    while (frame := await socket.next_frame())["op"] != op:
        if frame["op"] == "error":
            raise RuntimeError(f"the hub refused: {frame}")
    return frame
