"""Which calls of a step are waited for, and what becomes of the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub import ToolFailed, tool
from hubbub.agents.tools.hub import HubTool
from hubbub.agents.tools.toolbox import Toolbox, required_successes
from hubbub.agents.turn.loop import CallResult
from hubbub.protocol.turns import ToolCallRecord, WaitStrategy
from tests.unit.agents.calling import POST, SENT, record

pytestmark = pytest.mark.behaviour("A-18")


class Bench:
    """Tools that end when they are told to, and a hub whose calls are held."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.posted: list[JsonValue] = []
        self.post_begun, self.post_go = asyncio.Event(), asyncio.Event()
        self.three_begun = asyncio.Event()

        @tool
        async def now(name: str) -> str:
            """Succeed."""
            self.begun.append(name)
            return name

        @tool
        async def fail(name: str) -> str:
            """Fail."""
            self.begun.append(name)
            raise ToolFailed("no")

        @tool
        async def never(name: str) -> str:
            """Wait for ever."""
            self.begun.append(name)
            if len(self.begun) == 3:
                self.three_begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.append(name)
            return name

        self.box = Toolbox([now, fail, never, HubTool(POST, self, "bot")])

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        self.post_begun.set()
        await self.post_go.wait()
        self.posted.append(args["text"])
        return SENT

    async def run(
        self, wait: WaitStrategy, *names: str, done: Iterable[ToolCallRecord] = ()
    ) -> list[CallResult]:
        made = [record(name, {"name": f"{name}{i}"}, f"{name}{i}") for i, name in enumerate(names)]
        async with asyncio.timeout(30):
            return await self.box.run("bot-m1", 1, [*done, *made], made, wait=wait)


def errors(results: Iterable[CallResult]) -> list[str | None]:
    return [result.error for result in results]


async def test_all_any_and_majority_wait_for_as_many_as_they_say() -> None:
    assert errors(await Bench().run("all", "now", "fail", "now")) == [None, "tool_failed", None]
    assert errors(await Bench().run("any", "fail", "fail")) == ["tool_failed"] * 2
    results = await Bench().run("majority", "never", "now", "now", "fail", "now")
    assert errors(results) == ["cancelled", None, None, "tool_failed", None]
    assert "more than half have" in results[0].result
    results = await Bench().run("majority", "now", "never", "now", done=[record("finish", id="f")])
    assert errors(results) == [None, "cancelled", None]


async def test_any_ends_with_the_first_success_and_cancels_the_rest() -> None:
    bench = Bench()
    results = await bench.run("any", "never", "fail", "now", "never")
    assert errors(results) == ["cancelled", "tool_failed", None, "cancelled"]
    assert bench.ended == ["never0"]  # the last one had not even begun
    told = json.loads(results[0].result)
    assert told["error"] == "cancelled"
    assert "one has succeeded" in told["message"]
    assert "may have taken effect" in told["message"]


async def test_results_from_before_a_crash_count() -> None:
    done = record("now", id="d").model_copy(update={"result": "ok"})
    bench = Bench()
    assert errors(await bench.run("any", "never", done=[done])) == ["cancelled"]
    assert bench.begun == []


async def test_a_write_under_way_is_finished_and_the_next_does_not_begin() -> None:
    bench = Bench()

    @tool
    async def meet() -> str:
        """Succeed when the post has begun, and let it end later."""
        await bench.post_begun.wait()
        asyncio.get_running_loop().call_soon(bench.post_go.set)
        return "met"

    made = [
        record("post_to_channel", {"channel": "desk", "text": "one"}, "a"),
        record("meet", id="b"),
        record("post_to_channel", {"channel": "desk", "text": "two"}, "c"),
    ]
    box = Toolbox([meet, HubTool(POST, bench, "bot")])
    async with asyncio.timeout(30):
        results = await box.run("bot-m1", 1, made, made, wait="any")
    assert errors(results) == [None, None, "cancelled"]
    assert bench.posted == ["one"]


async def test_cancelling_the_step_cancels_every_call() -> None:
    bench = Bench()
    task = asyncio.create_task(bench.run("majority", "never", "never", "never"))
    async with asyncio.timeout(30):
        await bench.three_begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(bench.ended) == 3


@given(st.lists(st.sampled_from(["now", "fail"]), min_size=1, max_size=6), st.booleans())
def test_every_call_has_one_result_in_its_place(names: list[str], most: bool) -> None:
    wait: WaitStrategy = "majority" if most else "any"
    results = asyncio.run(Bench().run(wait, *names))
    assert [r.id for r in results] == [f"{name}{i}" for i, name in enumerate(names)]
    succeeded = errors(results).count(None)
    assert succeeded == min(names.count("now"), required_successes(wait, len(names)))
    if succeeded < required_successes(wait, len(names)):
        assert "cancelled" not in errors(results)
