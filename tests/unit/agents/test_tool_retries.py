"""Calls that are repeated, keys and tokens that functions are given, what is given up."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import ToolFailed, tool
from hubbub.agents.tools.base import CallSite
from hubbub.agents.tools.conduct import Conduct
from hubbub.agents.tools.given import Cancelled, CancelToken, IdempotencyKey
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.tuning import Retry, Tuning
from hubbub.ids import write_id
from tests.unit.agents.calling import Pauses, call, failed, text

SITE = CallSite("bot-m1", 1, 0)


class Flaky:
    """Fails so many times, then works."""

    def __init__(self, failures: int, *, error: str = "busy", retry: bool = True):
        self.left, self.error, self.retry = failures, error, retry
        self.ran = 0

    def __call__(self) -> str:
        self.ran += 1
        if self.left:
            self.left -= 1
            raise ToolFailed("come back later", error=self.error, retry=self.retry)
        return "done at last"


def box_of(
    work: Flaky, *, idempotent: bool = True, retry: int | Retry | None = None
) -> tuple[Toolbox, Pauses]:
    @tool(idempotent=idempotent, retry=retry)
    def fetch() -> str:
        """Fetch it."""
        return work()

    pauses = Pauses()
    return Toolbox([fetch], Conduct(pause=pauses)), pauses


class TestRetries:
    @pytest.mark.behaviour("K-4")
    async def test_a_failure_that_passes_is_not_told_to_the_model(self) -> None:
        box, pauses = box_of(Flaky(2))
        result = await call(box, "fetch")
        assert (result.result, result.error, result.attempts) == ("done at last", None, 3)
        assert pauses.seconds == [0.5, 1.0]

    async def test_after_the_last_attempt_it_is_told(self) -> None:
        box, pauses = box_of(Flaky(3))
        result = await call(box, "fetch")
        assert (result.error, result.attempts) == ("busy", 3)
        assert len(pauses.seconds) == 2

    @pytest.mark.behaviour("K-4")
    async def test_what_is_not_idempotent_runs_once(self) -> None:
        work = Flaky(1)
        box, pauses = box_of(work, idempotent=False)
        result = await call(box, "fetch")
        assert (result.error, result.attempts) == ("busy", 1)
        assert (work.ran, pauses.seconds) == (1, [])

    async def test_the_operator_cannot_make_it_run_twice_either(self) -> None:
        work = Flaky(1)

        @tool
        def fetch() -> str:
            """Fetch it."""
            return work()

        conduct = Conduct(tuning={"fetch": Tuning(retry=Retry(attempts=5))}, pause=Pauses())
        await call(Toolbox([fetch], conduct), "fetch")
        assert work.ran == 1

    @pytest.mark.parametrize(
        "work",
        [
            Flaky(1, retry=False),
            Flaky(1, error="invalid_arguments"),
            Flaky(1, error="unknown_tool"),
        ],
    )
    async def test_a_failure_that_stays_is_told_at_once(self, work: Flaky) -> None:
        box, _ = box_of(work)
        assert (await call(box, "fetch")).attempts == 1

    async def test_a_tool_says_how_often(self) -> None:
        box, pauses = box_of(Flaky(9), retry=Retry(attempts=5, backoff=10, longest=25))
        assert (await call(box, "fetch")).attempts == 5
        assert pauses.seconds == [10, 20, 25, 25]
        box, _ = box_of(Flaky(9), retry=2)
        assert (await call(box, "fetch")).attempts == 2

    async def test_a_call_that_took_too_long_is_repeated_only_where_that_is_said(self) -> None:
        async def attempts(retry: Retry) -> int:
            @tool(idempotent=True, timeout=0.01, retry=retry)
            async def hang() -> str:
                """Hang."""
                await asyncio.Event().wait()
                return "never"

            return (await call(Toolbox([hang], Conduct(pause=Pauses())), "hang")).attempts

        assert await attempts(Retry()) == 1
        assert await attempts(Retry(attempts=2, timeouts=True)) == 2

    def test_a_tool_that_is_never_repeated_cannot_say_how_often(self) -> None:
        def fetch() -> None:
            """Fetch it."""

        with pytest.raises(TypeError, match="only an idempotent tool"):
            tool(retry=3)(fetch)

    @given(st.integers(1, 10_000), st.floats(0.001, 100), st.floats(0.001, 1000))
    def test_pauses_grow_up_to_a_bound(self, attempt: int, backoff: float, longest: float) -> None:
        retry = Retry(backoff=backoff, longest=longest)
        assert 0 < retry.pause(attempt) <= retry.pause(attempt + 1) <= longest


class TestKeys:
    @pytest.mark.behaviour("K-5")
    async def test_a_function_gets_the_same_key_whenever_the_call_is_made_again(self) -> None:
        keys = []

        @tool(permission="write", idempotent=True)
        def pay(amount: int, key: IdempotencyKey) -> str:
            """Pay an amount."""
            keys.append(key)
            if len(keys) == 1:
                raise ToolFailed("busy", retry=True)
            return "paid"

        box = Toolbox([pay], Conduct(pause=Pauses()))
        await call(box, "pay", {"amount": 1})
        await call(box, "pay", {"amount": 1}, again=True)
        assert keys == [write_id("bot-m1", 1, 0)] * 3
        assert isinstance(keys[0], IdempotencyKey)

    async def test_a_key_may_be_asked_for_beside_its_type(self) -> None:
        @tool
        async def pay(key: Annotated[str, IdempotencyKey], amount: int = 1) -> str:
            """Pay an amount."""
            return key

        assert await text(Toolbox([pay]), "pay") == SITE.cid

    @pytest.mark.behaviour("K-5")
    async def test_a_model_can_neither_see_nor_fill_it(self) -> None:
        @tool
        def pay(key: IdempotencyKey, stop: CancelToken, amount: int = 1) -> str:
            """Pay an amount.

            Args:
                key: said for people who read the code
            """
            return key

        assert list(pay.spec.parameters["properties"]) == ["amount"]  # type: ignore[arg-type]
        told = await failed(Toolbox([pay]), "pay", key="mine")
        assert "there is no argument key" in str(told["message"])


class TestCancelling:
    @pytest.mark.behaviour("K-6")
    async def test_a_thread_can_see_that_its_call_was_given_up(self) -> None:
        over = threading.Event()

        @tool(timeout=0.01)
        def dig(stop: CancelToken) -> str:
            """Dig."""
            if stop.wait(30):
                over.set()
            return "late"

        told = await failed(Toolbox([dig]), "dig")
        assert told["error"] == "timeout"
        assert await asyncio.to_thread(over.wait, 10)

    async def test_what_a_thread_returns_too_late_is_thrown_away(self) -> None:
        returned, go = threading.Event(), threading.Event()

        @tool(timeout=0.01)
        def dig() -> str:
            """Dig."""
            go.wait(30)
            returned.set()
            return "late"

        result = await call(Toolbox([dig]), "dig")
        go.set()
        assert await asyncio.to_thread(returned.wait, 10)
        assert result.error == "timeout"

    def test_a_token_tells_and_raises(self) -> None:
        token = CancelToken()
        token.check()
        assert not token.cancelled
        assert not token.wait(0)
        token.cancel()
        assert token.cancelled
        with pytest.raises(Cancelled):
            token.check()

    async def test_a_call_that_ends_by_itself_cancels_nothing(self) -> None:
        tokens = []

        @tool
        async def look(stop: CancelToken) -> str:
            """Look."""
            tokens.append(stop)
            return "seen"

        await look.run({}, SITE)
        assert not tokens[0].cancelled

    async def test_cancelling_while_it_waits_for_another_attempt_ends_the_call(self) -> None:
        waiting = asyncio.Event()

        async def pause(seconds: float) -> None:
            waiting.set()
            await asyncio.Event().wait()

        work = Flaky(5)

        @tool(idempotent=True)
        async def fetch() -> str:
            """Fetch it."""
            return work()

        task = asyncio.create_task(call(Toolbox([fetch], Conduct(pause=pause)), "fetch"))
        await asyncio.wait_for(waiting.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.ran == 1
