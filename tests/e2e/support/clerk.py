"""An agent whose turns spend a budget and request approvals, and that accounts for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.protocol.frames import Event

__all__ = ["BUDGET", "Clerk"]

BUDGET: Mapping[str, JsonValue] = {"tokens": 100}
"""Of one interaction."""
SPENT = 60
"""Tokens that each turn spends."""
# Results as JSON.
Result = dict[str, Any]


class Clerk:
    """`clerk` takes a turn for each message from `eve`. She approves its calls while `fay` denies
    them; the first decision counts."""

    def __init__(self, clerk: Client, eve: Client, fay: Client):
        self._clerk, self._eve, self._fay = clerk, eve, fay
        self.turns = 0
        self.runs: list[str] = []
        """Approvals whose calls ran."""
        self._started: list[str] = []

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Takes turns while the context lasts. Raises AssertionError if an accounting is wrong."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            listeners = [
                tasks.create_task(_acknowledge(client))
                for client in (self._clerk, self._eve, self._fay)
            ]
            turns = tasks.create_task(self._take_turns(stop))
            yield
            stop.set()
            await turns
            await self._check()
            for listener in listeners:
                listener.cancel()

    async def _take_turns(self, stop: asyncio.Event) -> None:
        for n in count(1):
            if stop.is_set():
                break
            asked = await _call(self._eve, "send_text_message", to="clerk", text=f"do {n}")
            turn = f"clerk-{asked['id']}"
            start = {"id": turn, "thread_id": asked["thread_id"], "messages": [asked["id"]]}
            await self._clerk.call("begin_turn", start=start)
            await self._spend(turn)
            await self._pay(turn)
            await self._clerk.call("end_turn", end={"id": turn, "outcome": "finished"})
            self.turns += 1
            self._started.append(f"i{asked['seq']}")

    async def _spend(self, turn: str) -> None:
        """A step's tokens count once and cannot be reserved again."""
        await self._clerk.call("reserve_budget", turn=turn, key="1", tokens=SPENT + 10)
        step = {"n": 1, "tokens_in": SPENT // 2, "tokens_out": SPENT - SPENT // 2}
        await self._clerk.call("record_step", turn=turn, step=step, settles=["1"])
        with pytest.raises(OperationError, match="too little is left"):
            await self._clerk.call("reserve_budget", turn=turn, key="2", tokens=100 - SPENT + 1)

    async def _pay(self, turn: str) -> None:
        """One decision counts, and an approval lets its call run once."""
        wanted = {"turn": turn, "call": "1", "tool": "pay", "arguments": {"amount": 7}}
        id = (await _call(self._clerk, "request_approval", **wanted))["id"]
        decisions = (self._eve.call("approve", id=id), self._fay.call("deny", id=id))
        results = await asyncio.gather(*decisions, return_exceptions=True)
        refused = [result for result in results if isinstance(result, OperationError)]
        assert len(refused) == 1, f"not exactly one decision was too late: {results}"
        if results[0] is not refused[0]:
            await self._clerk.call("start_approved", id=id)
            self.runs.append(id)
        with pytest.raises(OperationError, match="not_pending"):
            await self._clerk.call("start_approved", id=id)

    async def _check(self) -> None:
        """All spending is counted exactly once."""
        assert len(set(self.runs)) == len(self.runs)
        total = (await _call(self._eve, "read_spending"))["total"]
        assert total["tokens_in"] + total["tokens_out"] == SPENT * self.turns
        for interaction in self._started[-20:]:
            budget = await _call(self._eve, "read_budget", interaction=interaction)
            assert (budget["used"]["tokens"], budget["sums"]["turns"]) == (SPENT, 1)


async def _acknowledge(client: Client) -> None:
    async for item in client.events():
        if isinstance(item, Event):
            await client.ack(item.seq)


async def _call(client: Client, name: str, **args: Any) -> Result:
    result = await client.call(name, **args)
    assert isinstance(result, dict)
    return result
