"""An agent that a test controls step by step, over the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import expect
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.control import Approval
from hubbub.protocol.frames import Event, Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import SendResult
from hubbub.protocol.turns import Step, TurnEnd, TurnStart
from tests.browser.support.desk import PATIENCE_S, Desk, Desks
from tests.browser.support.room import Room

__all__ = ["ARGUMENTS", "SCHEMA", "Worker", "at_work", "worker"]

ARGUMENTS: Mapping[str, JsonValue] = {"path": "/srv/old.md", "times": 3}
SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "times": {"type": "integer", "maximum": 5},
        "price": {"type": "number"},
        "lines": {"type": "array"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


class Worker:
    """Wraps a connected client of kind agent."""

    def __init__(self, client: Client):
        self.client = client
        self.turn = ""
        """The turn that began last."""
        self.thread = ""
        """The thread of that turn."""
        self._events = client.events()
        self._asked = 0

    async def _next(self, matches: Callable[[object], bool]) -> Any:
        """The next matching event or signal."""
        async with asyncio.timeout(PATIENCE_S):
            while not matches(item := await anext(self._events)):
                pass
            return item

    async def woken(self) -> Event:
        """The next event that wakes it."""
        event = await self._next(lambda it: isinstance(it, Event) and it.wake is not None)
        assert isinstance(event, Event)
        return event

    async def hears(self, text: str) -> Message:
        """The next message with this text."""
        event = await self._next(lambda it: isinstance(it, Event) and it.message.text == text)
        assert isinstance(event, Event)
        return event.message

    async def begins(self) -> str:
        """Wait for a wake, begin its turn, and show `thinking`. Returns the turn's id."""
        event = await self.woken()
        assert event.wake is not None
        self.turn, self.thread = event.wake.turn, event.message.thread_id
        start = TurnStart(id=self.turn, thread_id=self.thread, messages=(event.message.id,))
        await self.client.call("begin_turn", start=start)
        await self.does("thinking")
        return self.turn

    async def does(self, state: str) -> None:
        """Show this activity in the thread of the turn."""
        await self.client.signal("activity", self.thread, {"state": state, "turn": self.turn})

    async def asks(
        self, tool: str = "delete_file", arguments: Mapping[str, JsonValue] = ARGUMENTS
    ) -> str:
        """Request approval for a call. Returns the approval's id."""
        self._asked += 1
        approval = await self.client.call(
            "request_approval", turn=self.turn, call=f"1.{self._asked}", tool=tool,
            description="Deletes a file for good.", arguments=dict(arguments), schema=dict(SCHEMA),
            reason="it cannot be taken back",
        )  # fmt: skip
        return Approval.model_validate(approval).id

    async def decision(self, approval: str) -> Approval:
        """The approval once it is decided."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = await self.client.call("read_approval", id=approval)
                if (current := Approval.model_validate(answer)).state != "pending":
                    return current

    async def spends(self, tokens_in: int, tokens_out: int, usd: float) -> None:
        """Record a step with this cost."""
        step = Step(n=1, tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=usd)
        await self.client.call("record_step", turn=self.turn, step=step)

    async def says(self, to: str, text: str, *, untrusted: bool = False) -> SendResult:
        """Send a message that the turn causes."""
        sent = await self.client.call(
            "send_text_message", to=to, text=text, cause=self.turn, untrusted=untrusted
        )
        return SendResult.model_validate(sent)

    async def ends(self) -> None:
        await self.client.call("end_turn", end=TurnEnd(id=self.turn, outcome="finished"))
        await self.does("idle")

    async def works_again(self, desk: Desk) -> None:
        """After the end of its turn: the person at the desk wakes it again, and it begins."""
        await self.does("idle")
        await expect(desk.main).not_to_contain_text("thinking")
        await desk.says("once more")
        await self.begins()
        await expect(desk.main).to_contain_text("thinking")

    async def stopped(self) -> Mapping[str, JsonValue]:
        """The data of the hub's signal when it ends the agent's turns."""
        signal = await self._next(lambda it: isinstance(it, Signal) and it.type == "stop_turns")
        assert isinstance(signal.data, dict)
        return signal.data


@asynccontextmanager
async def worker(room: Room, name: str = "clerk") -> AsyncIterator[Worker]:
    """A connected agent."""
    async with Client(WebSocketTransport(room.url), name, "agent", turns=True) as client:
        yield Worker(client)


@asynccontextmanager
async def at_work(desks: Desks, room: Room) -> AsyncIterator[tuple[Desk, Worker]]:
    """Ann's desk, and the clerk at work on her request."""
    async with worker(room) as clerk:
        desk = await desks.sit(room, "ann")
        await desk.talk_to("clerk")
        await desk.says("tidy up")
        await clerk.begins()
        await expect(desk.main).to_contain_text("thinking")
        yield desk, clerk
        await desks.leave()
