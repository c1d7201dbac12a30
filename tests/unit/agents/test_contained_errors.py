"""Exceptions and side effects of a tool that must not reach beyond its own call."""

from __future__ import annotations

import asyncio

import pytest

from hubbub import ToolFailed, tool
from hubbub.agents.tools.base import Tool
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.protocol.turns import ToolCallRecord, WaitStrategy
from hubbub.user_code import Escape, contained, describe_error
from tests.unit.agents.calling import Pauses, failed


class Odd(BaseException):
    """Not an `Exception`."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


ESCAPES = [
    SystemExit("bye"), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError("mine"),
    Odd("odd"),
]  # fmt: skip


def raising(exc: BaseException, *, in_loop: bool) -> Tool:
    @tool(idempotent=True, name="escape")
    async def in_the_loop() -> str:
        """Raise something."""
        raise exc

    @tool(idempotent=True, name="escape")
    def in_a_thread() -> str:
        """Raise something."""
        raise exc

    return in_the_loop if in_loop else in_a_thread


@pytest.mark.behaviour("A-5")
@pytest.mark.parametrize("in_loop", [True, False], ids=["async", "thread"])
async def test_an_exception_that_would_end_the_process_fails_only_its_call(in_loop: bool) -> None:
    for exc in (*ESCAPES, Unprintable()):
        answer = await failed(Toolbox([raising(exc, in_loop=in_loop)]), "escape")
        assert answer["error"] == "tool_failed"
        assert str(answer["message"]).startswith(type(exc).__name__)


@pytest.mark.behaviour("A-5")
@pytest.mark.parametrize("wait", ["all", "any", "majority"])
async def test_a_tool_that_cancels_itself_leaves_other_calls_alone(wait: WaitStrategy) -> None:
    @tool
    async def work() -> str:
        """Work."""
        await asyncio.sleep(0)
        return "done"

    box = Toolbox([raising(asyncio.CancelledError(), in_loop=True), work])
    calls = [ToolCallRecord(id=n, name=n, arguments={}) for n in ("escape", "work")]
    results = await box.run("bot-m1", 1, calls, calls, wait=wait)
    assert [result.error for result in results] == ["tool_failed", None]


async def test_a_tool_cannot_change_its_recorded_call_or_its_next_attempt() -> None:
    seen: list[object] = []

    @tool(idempotent=True, retry=2)
    def meddle(payload: dict[str, list[int]]) -> object:
        """Change the arguments, and fail: first with an exception, then with the result."""
        seen.append(list(payload["n"]))
        payload["n"].append(1)
        if len(seen) == 1:
            raise ToolFailed("once more", retry=True)
        return Unprintable()

    call = ToolCallRecord(id="c", name="meddle", arguments={"payload": {"n": []}})
    before = call.model_copy(deep=True)
    (result,) = await Toolbox([meddle], ToolPolicy(pause=Pauses())).run("bot-m1", 1, [call], [call])
    assert "ValueError: no words" in result.result
    assert (call, seen) == (before, [[], []])


async def test_a_base_exception_is_wrapped_in_an_exception() -> None:
    with pytest.raises(KeyError), contained():
        raise KeyError("x")
    for exc in ESCAPES:
        with pytest.raises(Escape) as caught, contained():
            raise exc
        assert caught.value.__cause__ is exc
        assert str(caught.value) == describe_error(exc) == describe_error(caught.value)


async def test_cancellation_and_timeouts_are_not_contained() -> None:
    reached = asyncio.Event()

    async def wait() -> None:
        with contained():
            reached.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wait(), 0.01)


async def test_a_cancelled_error_is_contained_even_after_an_earlier_cancellation() -> None:
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.Event().wait()
        with contained():
            raise asyncio.CancelledError

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    with pytest.raises(Escape):
        await task


async def test_closing_a_coroutine_is_not_contained() -> None:
    async def work() -> None:
        with contained():
            await asyncio.Event().wait()

    coroutine = work()

    async def begin() -> None:
        coroutine.send(None)

    await asyncio.create_task(begin())
    coroutine.close()


def test_a_group_is_described_by_its_exceptions() -> None:
    group = ExceptionGroup("g", [ValueError("x"), ExceptionGroup("inner", [KeyError("y")])])
    assert describe_error(group) == "ValueError: x; KeyError: 'y'"
