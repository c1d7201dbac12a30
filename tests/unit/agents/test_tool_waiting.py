"""Wait strategies: the calls that a step waits for, and what happens to the others."""

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


class Tools:
    """Tools that succeed, fail or hang, and a hub whose calls are held."""

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


async def test_all_any_and_majority_wait_for_that_many_successes() -> None:
    assert errors(await Tools().run("all", "now", "fail", "now")) == [None, "tool_failed", None]
    assert errors(await Tools().run("any", "fail", "fail")) == ["tool_failed"] * 2
    results = await Tools().run("majority", "never", "now", "now", "fail", "now")
    assert errors(results) == ["cancelled", None, None, "tool_failed", None]
    assert "more than half have" in results[0].result
    results = await Tools().run("majority", "now", "never", "now", done=[record("finish", id="f")])
    assert errors(results) == [None, "cancelled", None]


async def test_any_ends_with_the_first_success_and_cancels_the_rest() -> None:
    tools = Tools()
    results = await tools.run("any", "never", "fail", "now", "never")
    assert errors(results) == ["cancelled", "tool_failed", None, "cancelled"]
    assert tools.ended == ["never0"]  # the last one had not begun
    error = json.loads(results[0].result)
    assert error["error"] == "cancelled"
    assert "one has succeeded" in error["message"]
    assert "may have taken effect" in error["message"]


async def test_results_from_before_a_crash_count_as_successes() -> None:
    done = record("now", id="d").model_copy(update={"result": "ok"})
    tools = Tools()
    assert errors(await tools.run("any", "never", done=[done])) == ["cancelled"]
    assert tools.begun == []


async def test_a_write_in_progress_is_finished_and_the_next_one_does_not_begin() -> None:
    tools = Tools()

    @tool
    async def meet() -> str:
        """Succeed when the post has begun, and release it later."""
        await tools.post_begun.wait()
        asyncio.get_running_loop().call_soon(tools.post_go.set)
        return "met"

    made = [
        record("post_to_channel", {"channel": "desk", "text": "one"}, "a"),
        record("meet", id="b"),
        record("post_to_channel", {"channel": "desk", "text": "two"}, "c"),
    ]
    box = Toolbox([meet, HubTool(POST, tools, "bot")])
    async with asyncio.timeout(30):
        results = await box.run("bot-m1", 1, made, made, wait="any")
    assert errors(results) == [None, None, "cancelled"]
    assert tools.posted == ["one"]


async def test_cancelling_the_step_cancels_every_call() -> None:
    tools = Tools()
    task = asyncio.create_task(tools.run("majority", "never", "never", "never"))
    async with asyncio.timeout(30):
        await tools.three_begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(tools.ended) == 3


@given(st.lists(st.sampled_from(["now", "fail"]), min_size=1, max_size=6), st.booleans())
def test_every_call_has_one_result_in_its_position(names: list[str], most: bool) -> None:
    wait: WaitStrategy = "majority" if most else "any"
    results = asyncio.run(Tools().run(wait, *names))
    assert [r.id for r in results] == [f"{name}{i}" for i, name in enumerate(names)]
    succeeded = errors(results).count(None)
    assert succeeded == min(names.count("now"), required_successes(wait, len(names)))
    if succeeded < required_successes(wait, len(names)):
        assert "cancelled" not in errors(results)
