"""The record of one turn, written at the hub as the turn goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import BaseModel, JsonValue

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.timing import TurnClock
from hubbub.client import Client
from hubbub.errors import ConnectionLost, OperationError
from hubbub.logs import get_logger
from hubbub.protocol.operations import BeginTurnResult
from hubbub.protocol.turns import Outcome, Step, TurnEnd, TurnStart

__all__ = ["Journal", "fitted"]

_ROOM = 1024
"""Bytes of a frame that are not the record itself."""

log = get_logger(__name__)


@dataclass(slots=True)
class _Post:
    name: str
    key: object
    """A later post with the same key replaces what this one wrote."""
    args: dict[str, JsonValue]
    future: asyncio.Future[JsonValue]


class Journal:
    """What the hub is told about a turn. Nothing waits for the hub, except taking up an old turn.

    `plan` is the turn; `on_begin` is awaited when its beginning is on its way, so that the events
    that woke the agent may be acknowledged. `clock` starts when the turn begins: the offsets in its
    record are taken from it.
    """

    def __init__(
        self, client: Client, plan: TurnPlan, on_begin: Callable[[], Awaitable[None]] | None = None
    ):
        self.plan = plan
        self.ended = False
        self.clock = TurnClock()
        self._client = client
        self._on_begin = on_begin
        self._begun = False
        self._posts: list[_Post] = []

    async def begin(
        self,
        *,
        model: str | None = None,
        system_prompt: str | None = None,
        prompt: str | None = None,
        tools: tuple[str, ...] = (),
    ) -> tuple[Step, ...]:
        """The turn begins. Returns the steps of an earlier process; a new turn has none.

        Only a turn that is taken up again waits for the hub. Raises `OperationError` if the hub
        refuses it then.
        """
        start = TurnStart(
            id=self.plan.id,
            thread_id=self.plan.thread_id,
            messages=tuple(m.id for m in self.plan.incoming),
            model=model,
            system_prompt=system_prompt,
            prompt=prompt,
            tools=tools,
        )
        self._begun = True
        self.clock = TurnClock()
        steps: tuple[Step, ...] = ()
        if self.plan.resumed:
            told = await self._client.call("begin_turn", start=self._fitted(start))
            steps = BeginTurnResult.model_validate(told).steps
            self.clock = TurnClock(steps)
        else:
            self._post("begin_turn", "begin", {"start": self._fitted(start)})
        if self._on_begin is not None:
            await self._on_begin()
        return steps

    def step(self, step: Step) -> asyncio.Future[JsonValue]:
        """Record a step, or replace it. The future is done when it is durable."""
        args: dict[str, JsonValue] = {"turn": self.plan.id, "step": self._fitted(step)}
        return self._post("record_step", step.n, args)

    async def end(self, outcome: Outcome, reason: str = "", text: str | None = None) -> None:
        """The turn is over. One that never began is recorded as begun, too."""
        if not self._begun:
            await self.begin()
        self.ended = True
        end = TurnEnd(id=self.plan.id, outcome=outcome, reason=reason, text=text)
        self._post("end_turn", "end", {"end": self._fitted(end)})

    async def settled(self) -> None:
        """Wait until everything is durable; what was refused for now is sent again.

        A hub that is gone for good is no error here: it will offer the turn again.
        """
        try:
            await self._settle()
        except ConnectionLost:
            return

    async def _settle(self) -> None:
        last = {post.key: post for post in self._posts}
        again = False  # what follows something that was refused for now was refused for its sake
        for post in self._posts:
            try:
                await post.future
            except OperationError as exc:
                again = again or exc.temporary
                if not again:
                    _refused(self.plan.id, post, exc)
                elif last[post.key] is post:
                    await self._again(post)

    async def _again(self, post: _Post) -> None:
        try:
            await self._client.call(post.name, cid=None, **post.args)
        except OperationError as exc:
            _refused(self.plan.id, post, exc)

    def _post(
        self, name: str, key: object, args: dict[str, JsonValue]
    ) -> asyncio.Future[JsonValue]:
        future = self._client.post(name, cid=None, **args)
        self._posts.append(_Post(name, key, args, future))
        return future

    def _fitted(self, record: BaseModel) -> JsonValue:
        return fitted(record.model_dump(mode="json"), self._client.hello.limits.frame_bytes - _ROOM)


def fitted(value: JsonValue, limit: int) -> JsonValue:
    """`value`, with its long texts cut as far as needed for at most `limit` bytes of JSON."""
    most, short = limit, value
    while len(json.dumps(short, ensure_ascii=False).encode()) > limit and most > 64:
        most //= 2
        short = _shortened(value, most)
    return short


def _shortened(value: JsonValue, most: int) -> JsonValue:
    if isinstance(value, str) and len(value) > most:
        half = most // 2
        return f"{value[:half]}… ({len(value)} characters) …{value[-half:]}"
    if isinstance(value, list):
        return [_shortened(item, most) for item in value]
    if isinstance(value, dict):
        return {key: _shortened(item, most) for key, item in value.items()}
    return value


def _refused(turn: str, post: _Post, exc: OperationError) -> None:
    log.warning("the hub refused a record", turn=turn, operation=post.name, error=str(exc))
