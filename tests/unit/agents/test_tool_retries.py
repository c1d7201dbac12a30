"""Retries of calls, idempotency keys and cancel tokens."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import ToolFailed, tool
from hubbub.agents.tools.base import CallSite
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.policy import Retry, ToolOverrides
from hubbub.agents.tools.runtime_arguments import Cancelled, CancelToken, IdempotencyKey
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.ids import write_id
from tests.unit.agents.calling import Pauses, call, failed, text

SITE = CallSite("bot-m1", 1, 0)


class Flaky:
    """Fails `failures` times, then works."""

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
    return Toolbox([fetch], ToolPolicy(pause=pauses)), pauses


@pytest.mark.behaviour("K-4")
async def test_a_temporary_failure_is_retried_before_the_model_sees_it() -> None:
    stays = [{"retry": False}, {"error": "invalid_arguments"}, {"error": "unknown_tool"}]
    cases: list[tuple[Flaky, dict[str, Any], int, list[float]]] = [
        (Flaky(2), {}, 3, [0.5, 1.0]),
        (Flaky(9), {}, 3, [0.5, 1.0]),
        (Flaky(1), {"idempotent": False}, 1, []),
        *[(Flaky(1, **how), {}, 1, []) for how in stays],  # type: ignore[arg-type]  # by name
        (Flaky(9), {"retry": Retry(attempts=5, backoff=10, longest=25)}, 5, [10, 20, 25, 25]),
        (Flaky(9), {"retry": 2}, 2, [0.5]),
    ]
    for work, how, attempts, waited in cases:
        box, pauses = box_of(work, **how)
        result = await call(box, "fetch")
        assert (result.attempts, work.ran, pauses.seconds) == (attempts, attempts, waited)
        assert result.error == (work.error if work.left or attempts == 1 else None)
    tool_policy = ToolPolicy(
        overrides={"fetch": ToolOverrides(retry=Retry(attempts=5))}, pause=Pauses()
    )

    @tool
    def fetch() -> str:
        """Fetch it."""
        raise ToolFailed("busy", retry=True)

    result = await call(Toolbox([fetch], tool_policy), "fetch")
    assert result.attempts == 1, "the operator cannot override it either"
    with pytest.raises(TypeError, match="only an idempotent tool"):
        tool(retry=3)(never)


def never() -> None:
    """Run once at most."""


async def test_a_timed_out_call_is_retried_only_if_so_configured() -> None:
    for retry, attempts in ((Retry(), 1), (Retry(attempts=2, timeouts=True), 2)):

        @tool(idempotent=True, timeout=0.01, retry=retry)
        async def hang() -> str:
            """Hang."""
            await asyncio.Event().wait()
            return "never"

        result = await call(Toolbox([hang], ToolPolicy(pause=Pauses())), "hang")
        assert result.attempts == attempts


@given(st.integers(1, 10_000), st.floats(0.001, 100), st.floats(0.001, 1000))
def test_pauses_grow_up_to_a_limit(attempt: int, backoff: float, longest: float) -> None:
    retry = Retry(backoff=backoff, longest=longest)
    assert 0 < retry.pause(attempt) <= retry.pause(attempt + 1) <= longest


@pytest.mark.behaviour("K-5")
async def test_a_repeated_call_gets_the_same_idempotency_key() -> None:
    keys = []

    @tool(permission="write", idempotent=True)
    def pay(amount: int, key: IdempotencyKey) -> str:
        """Pay an amount."""
        keys.append(key)
        if len(keys) == 1:
            raise ToolFailed("busy", retry=True)
        return "paid"

    box = Toolbox([pay], ToolPolicy(pause=Pauses()))
    await call(box, "pay", {"amount": 1})
    await call(box, "pay", {"amount": 1}, again=True)
    assert keys == [write_id("bot-m1", 1, 0)] * 3
    assert isinstance(keys[0], IdempotencyKey)


@pytest.mark.behaviour("K-5")
async def test_an_annotated_key_is_neither_shown_to_nor_set_by_the_model() -> None:
    @tool
    def pay(key: Annotated[str, IdempotencyKey], stop: CancelToken, amount: int = 1) -> str:
        """Pay an amount.

        Args:
            key: for readers of the code
        """
        return key

    assert await text(Toolbox([pay]), "pay") == SITE.cid
    assert list(pay.spec.parameters["properties"]) == ["amount"]  # type: ignore[arg-type]
    error = await failed(Toolbox([pay]), "pay", key="mine")
    assert "there is no argument key" in str(error["message"])


@pytest.mark.behaviour("K-6")
async def test_a_thread_can_see_that_its_call_timed_out_and_its_result_is_lost() -> None:
    stopped = threading.Event()

    @tool(timeout=0.01)
    def dig(stop: CancelToken) -> str:
        """Dig."""
        if stop.wait(30):
            stopped.set()
        return "late"

    assert (await failed(Toolbox([dig]), "dig"))["error"] == "timeout"
    assert await asyncio.to_thread(stopped.wait, 10)


async def test_a_cancel_token_is_set_only_by_cancelling_and_its_check_raises() -> None:
    tokens = []

    @tool
    async def look(stop: CancelToken) -> str:
        """Look."""
        tokens.append(stop)
        return "seen"

    await look.run({}, SITE)
    (token,) = tokens
    token.check()
    assert not token.cancelled
    assert not token.wait(0)
    token.cancel()
    assert token.cancelled
    with pytest.raises(Cancelled):
        token.check()


async def test_cancelling_during_a_pause_between_attempts_ends_the_call() -> None:
    waiting, work = asyncio.Event(), Flaky(5)

    async def pause(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    @tool(idempotent=True)
    async def fetch() -> str:
        """Fetch it."""
        return work()

    task = asyncio.create_task(call(Toolbox([fetch], ToolPolicy(pause=pause)), "fetch"))
    await asyncio.wait_for(waiting.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.ran == 1
