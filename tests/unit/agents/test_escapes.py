"""What a tool raises or does that would reach beyond its own call: it does not."""

from __future__ import annotations

import asyncio

import pytest

from hubbub import ToolFailed, tool
from hubbub.agents.tools.base import Tool
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.protocol.turns import ToolCallRecord, WaitStrategy
from hubbub.user_code import Escape, contained, told
from tests.unit.agents.calling import failed, text


class Odd(BaseException):
    """Neither an `Exception` nor known to anybody."""


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


ESCAPES = [
    SystemExit("bye"),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError("mine"),
    Odd("odd"),
]


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


class TestTools:
    @pytest.mark.behaviour("A-5")
    @pytest.mark.parametrize("in_loop", [True, False], ids=["async", "thread"])
    @pytest.mark.parametrize("exc", ESCAPES, ids=lambda exc: type(exc).__name__)
    async def test_what_would_end_the_process_fails_the_call(
        self, exc: BaseException, in_loop: bool
    ) -> None:
        answer = await failed(Toolbox([raising(exc, in_loop=in_loop)]), "escape")
        assert answer["error"] == "tool_failed"
        assert str(answer["message"]).startswith(type(exc).__name__)

    @pytest.mark.behaviour("A-5")
    @pytest.mark.parametrize("wait", ["all", "any", "majority"])
    async def test_one_that_cancels_itself_leaves_the_others_alone(
        self, wait: WaitStrategy
    ) -> None:
        @tool
        async def work() -> str:
            """Work."""
            await asyncio.sleep(0)
            return "done"

        box = Toolbox([raising(asyncio.CancelledError(), in_loop=True), work])
        calls = [ToolCallRecord(id=n, name=n, arguments={}) for n in ("escape", "work")]
        results = await box.run("bot-m1", 1, calls, calls, wait=wait)
        assert [result.error for result in results] == ["tool_failed", None]

    @pytest.mark.behaviour("A-5")
    async def test_an_exception_that_says_nothing_is_told_by_its_type(self) -> None:
        answer = await failed(Toolbox([raising(Unspeakable(), in_loop=False)]), "escape")
        assert str(answer["message"]).startswith("Unspeakable")

    async def test_a_result_that_says_nothing_fails_the_call(self) -> None:
        class Mute:
            def __str__(self) -> str:
                raise ValueError("no words")

        @tool
        def make() -> object:
            """Make something."""
            return Mute()

        answer = await failed(Toolbox([make]), "make")
        assert answer["message"] == "ValueError: no words"

    async def test_a_tool_cannot_change_its_call(self) -> None:
        @tool
        def meddle(payload: dict[str, object], items: list[dict[str, object]]) -> str:
            """Change what was given."""
            inner = payload["inner"]
            assert isinstance(inner, dict)
            inner["secret"] = items[0]["secret"] = "changed"
            return "done"

        call = ToolCallRecord(
            id="c", name="meddle", arguments={"payload": {"inner": {"a": 1}}, "items": [{"b": 2}]}
        )
        before = call.model_copy(deep=True)
        (result,) = await Toolbox([meddle]).run("bot-m1", 1, [call], [call])
        assert result.error is None
        assert call == before

    async def test_nor_what_its_next_attempt_is_given(self) -> None:
        seen: list[object] = []

        @tool(idempotent=True, retry=2)
        def meddle(payload: dict[str, list[int]]) -> str:
            """Change what was given, and fail the first time."""
            seen.append(list(payload["n"]))
            payload["n"].append(1)
            if len(seen) == 1:
                raise ToolFailed("once more", retry=True)
            return "done"

        assert await text(Toolbox([meddle]), "meddle", payload={"n": []}) == "done"
        assert seen == [[], []]


class TestContained:
    async def test_what_is_an_exception_passes(self) -> None:
        with pytest.raises(KeyError), contained():
            raise KeyError("x")

    @pytest.mark.parametrize("exc", ESCAPES, ids=lambda exc: type(exc).__name__)
    async def test_what_is_none_becomes_one(self, exc: BaseException) -> None:
        with pytest.raises(Escape) as caught, contained():
            raise exc
        assert caught.value.__cause__ is exc
        assert str(caught.value) == told(exc) == told(caught.value)

    async def test_a_task_that_is_cancelled_stays_cancelled(self) -> None:
        reached = asyncio.Event()

        async def work() -> None:
            with contained():
                reached.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_also_one_that_was_cancelled_once_before(self) -> None:
        async def work() -> None:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()
            with contained():
                raise asyncio.CancelledError

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(Escape):
            await task

    async def test_time_that_is_up_is_up(self) -> None:
        async def wait() -> None:
            with contained():
                await asyncio.Event().wait()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait(), 0.01)

    async def test_a_coroutine_that_is_closed_is_closed(self) -> None:
        async def work() -> None:
            with contained():
                await asyncio.sleep(0)

        coroutine = work()

        async def begin() -> None:
            coroutine.send(None)

        await asyncio.create_task(begin())
        coroutine.close()
