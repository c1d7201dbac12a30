"""An agent whose turns spend a budget and ask for approvals, all of which can be accounted for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
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
# Arguments and results as the wire has them.
Told = dict[str, Any]


class Clerk:
    """`clerk` works for `eve`, a turn for each of her messages. She approves its calls while `fay`
    denies them: whoever is first decides."""

    def __init__(self, clerk: Client, eve: Client, fay: Client):
        self._clerk, self._eve, self._fay = clerk, eve, fay
        self.turns = 0
        self.runs: list[str] = []
        """Approvals whose calls have run."""
        self._started: list[str] = []

    async def work(self, stop: asyncio.Event) -> None:
        """A turn after the other until `stop`. Raises AssertionError if one is wrong."""
        for n in count(1):
            if stop.is_set():
                break
            asked = await _told(self._eve, "send_text_message", to="clerk", text=f"do {n}")
            turn = f"clerk-{asked['id']}"
            start = {"id": turn, "thread_id": asked["thread_id"], "messages": [asked["id"]]}
            await self._clerk.call("begin_turn", start=start)
            await self._spend(turn)
            await self._pay(turn)
            await self._clerk.call("end_turn", end={"id": turn, "outcome": "finished"})
            self.turns += 1
            self._started.append(f"i{asked['seq']}")

    async def _spend(self, turn: str) -> None:
        """A step is counted once, and what it has used is not there a second time."""
        await self._clerk.call("reserve_budget", turn=turn, key="1", tokens=SPENT + 10)
        step = {"n": 1, "tokens_in": SPENT // 2, "tokens_out": SPENT - SPENT // 2}
        await self._clerk.call("record_step", turn=turn, step=step, settles=["1"])
        with pytest.raises(OperationError, match="too little is left"):
            await self._clerk.call("reserve_budget", turn=turn, key="2", tokens=100 - SPENT + 1)

    async def _pay(self, turn: str) -> None:
        """One decides, and an approval lets its call run once."""
        wanted = {"turn": turn, "call": "1", "tool": "pay", "arguments": {"amount": 7}}
        id = (await _told(self._clerk, "request_approval", **wanted))["id"]
        words = (self._eve.call("approve", id=id), self._fay.call("deny", id=id))
        heard = await asyncio.gather(*words, return_exceptions=True)
        refused = [each for each in heard if isinstance(each, OperationError)]
        assert len(refused) == 1, f"one decides, and one is too late: {heard}"
        if heard[0] is refused[0]:
            await self._refused(id)
        else:
            await self._clerk.call("start_approved", id=id)
            self.runs.append(id)
            await self._refused(id)

    async def _refused(self, id: str) -> None:
        with pytest.raises(OperationError, match="not_pending"):
            await self._clerk.call("start_approved", id=id)

    async def check(self) -> None:
        """All that was spent is counted, once."""
        assert len(set(self.runs)) == len(self.runs)
        total = (await _told(self._eve, "read_spending"))["total"]
        assert total["tokens_in"] + total["tokens_out"] == SPENT * self.turns
        for interaction in self._started[-20:]:
            budget = await _told(self._eve, "read_budget", interaction=interaction)
            assert (budget["used"]["tokens"], budget["sums"]["turns"]) == (SPENT, 1)

    async def listen(self) -> None:
        """Acknowledge what comes to the three."""

        async def read(client: Client) -> None:
            async for item in client.events():
                if isinstance(item, Event):
                    await client.ack(item.seq)

        await asyncio.gather(*map(read, (self._clerk, self._eve, self._fay)))


async def _told(client: Client, name: str, **args: Any) -> Told:
    told = await client.call(name, **args)
    assert isinstance(told, dict)
    return told
