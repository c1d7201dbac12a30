"""The record of one turn, written to the hub while the turn runs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel, JsonValue

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.prompt.escape import in_parts
from hubbub.agents.turn.record_limits import within_limits, without_cut_calls
from hubbub.agents.turn.reservations import TURN_ENDED, HubState, Reservations, call_until_accepted
from hubbub.agents.turn.steps import TurnClock
from hubbub.client import Client
from hubbub.client.calls import Backoff
from hubbub.errors import ConnectionLost, OperationError
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import BeginTurnResult
from hubbub.protocol.turns import (
    Outcome,
    PromptParts,
    Step,
    Turn,
    TurnEnd,
    TurnStart,
    part_id,
)

__all__ = ["TurnRecorder"]

RECORD_BACKOFF = Backoff(most_s=2.0)
"""Pauses between retries after a temporary refusal."""

log = get_logger(__name__)


@dataclass(slots=True)
class _PendingPost:
    name: str
    key: object
    """A later post with the same key replaces this one."""
    args: dict[str, JsonValue]
    future: asyncio.Future[JsonValue]


_Args: TypeAlias = dict[str, JsonValue]


class _Prompts(NamedTuple):
    """The first system and user message; None: none."""

    system: str | None = None
    user: str | None = None


class TurnRecorder:
    """Records a turn at the hub without waiting for it. Exceptions: resuming an old turn, and calls
    that may crash the process, before which the turn's start must be durable (`begun`).

    Records that the hub refuses temporarily (rate limit, full disk) are sent again until they are
    stored. `plan` is the turn; `on_begin` is awaited once its start has been sent, so that the
    events that woke the agent can be acknowledged. Offsets in the record are taken from `clock`.
    `life` identifies the process to the hub, which counts processes that crash in the same turn.
    `cautious`: an earlier process may have crashed in it.
    """

    def __init__(
        self,
        client: Client,
        plan: TurnPlan,
        on_begin: Callable[[], Awaitable[None]] | None = None,
        stop: Callable[[str], object] = lambda reason: None,
        *,
        life: str | None = None,
        cautious: bool = False,
        hub_state: HubState | None = None,
        backoff: Backoff = RECORD_BACKOFF,
    ):
        self.plan = plan
        self.end_record: TurnEnd | None = None
        """How the turn ended; None while it runs."""
        self.parked = False
        """Whether it has stopped to wait for a person."""
        self.clock: TurnClock
        """Time since the turn's start."""
        self._hub_state = hub_state or HubState()
        self.reservations = Reservations(client, plan.id, self.durable, stop, self._hub_state)
        """The turn's budget reservations; recording a step settles those of that step."""
        self.before_end: Callable[[TurnEnd], Awaitable[tuple[str, ...]]] = _no_notes
        """Called before the end is recorded; returns notes to be recorded with it."""
        self._client = client
        self._on_begin = on_begin
        self._backoff = backoff
        self._life, self._cautious = life, cautious or plan.resumed
        self._begun = False
        self._durably = False
        self._over = False  # the hub accepts no more of it
        self._known: tuple[Step, ...] = ()
        self._posts: deque[_PendingPost] = deque()
        self._settling = asyncio.Lock()
        """Several tasks may wait for the record; one of them at a time processes it."""
        self._refused_for_now = False

    async def take_up(self) -> TurnPlan:
        """Start or resume the turn. Returns its plan without the messages that have steered it
        since, which are in its steps. Raises `OperationError` if the hub does not know the turn, or
        it has ended.

        If an earlier process may have crashed in the turn, the hub is told first who runs it now:
        even making the prompt may be what crashes.
        """
        start, prompts = self._start(), _Prompts()
        if self.plan.resumed:
            turn = Turn.model_validate(
                await self._call_until_accepted("read_turn", {"id": self.plan.id})
            )
            if turn.end is not None:
                raise OperationError(ErrorCode.TURN_OVER, f"it has ended: {turn.end.reason}")
            self._known = turn.steps
            taken = {s.message for step in turn.steps for s in step.steered}
            self.plan, start = self.plan.without(taken), turn.start
            prompts = _Prompts(turn.system_prompt, turn.prompt)
        if self._cautious:
            await self._begin_durably(start, prompts)
        return self.plan

    async def other(self, turn: str) -> Turn:
        """The record of another turn of the agent. Raises `OperationError` if there is none."""
        return Turn.model_validate(await self._call_until_accepted("read_turn", {"id": turn}))

    async def begin(
        self,
        *,
        continues: str | None = None,
        model: str | None = None,
        system_prompt: str | None = None,
        prompt: str | None = None,
        prompt_id: str | None = None,
        components: tuple[str, ...] = (),
        dialect: str | None = None,
        tools: tuple[str, ...] = (),
    ) -> tuple[Step, ...]:
        """Record the turn's start. Returns the steps of an earlier process; none for a new turn.

        Only a resumed turn waits for the hub. Raises `OperationError` if the hub refuses it.
        """
        fields = {
            "continues": continues,
            "model": model,
            "prompt_id": prompt_id,
            "components": components,
            "dialect": dialect,
            "tools": tools,
        }
        start = self._start().model_copy(update=fields)
        if self.plan.was_parked:  # a parked turn never left this process, and is not started again
            self._begun = True
            steps = tuple(map(without_cut_calls, self._known))
            self.clock = TurnClock(steps)
            return steps
        steps, prompts = (), _Prompts(system_prompt, prompt)
        if self.plan.resumed:
            steps = tuple(map(without_cut_calls, await self._begin_durably(start, prompts)))
        else:
            self._begin_soon(start, prompts)
        self._begun = True
        self.clock = TurnClock(steps)
        if self._on_begin is not None:
            await self._on_begin()
        return steps

    async def begun(self) -> None:
        """Wait until the hub has the turn's start, so that a crash from here on is counted for this
        turn.

        Raises `ConnectionLost`.
        """
        if not self._durably:
            await self._settle()
            self._durably = True

    def step(self, step: Step) -> None:
        """Record a step, or replace it."""
        keys = self.reservations.recorded(step.n)
        records: dict[str, BaseModel | JsonValue] = {"turn": self.plan.id, "step": step}
        self._post("record_step", step.n, records | {"settles": list(keys)} if keys else records)

    async def durable(self) -> None:
        """Wait until everything recorded so far is durable. Several tasks may wait at a time.

        Raises `ConnectionLost`.
        """
        await self._settle()

    async def park(self) -> None:
        """The turn stops to wait for a person. Its record is durable and has everything needed to
        continue. Raises `ConnectionLost`.
        """
        self.leave()
        await self.durable()
        self.parked = True

    def leave(self) -> None:
        """This process stops working on the turn without having crashed in it."""
        if self._life is not None:
            self._post("leave_turn", "leave", {"turn": self.plan.id, "life": self._life})

    async def end(self, outcome: Outcome, reason: str = "", text: str | None = None) -> None:
        """End the turn; the first end counts. A turn that never started is started first."""
        if self.end_record is not None:
            return
        if not self._begun:
            await self.begin()
        end = self.end_record = TurnEnd(id=self.plan.id, outcome=outcome, reason=reason, text=text)
        try:
            notes = await self.before_end(end)
            end = end.model_copy(update={"notes": notes})
        finally:  # even when cancelled: the turn has ended
            self._post("end_turn", "end", {"end": end})

    async def ended_by_hub(self, reason: str) -> None:
        """The hub has ended the turn: it is over here, too, and nothing more is recorded."""
        if self.end_record is None:
            end = self.end_record = TurnEnd(id=self.plan.id, outcome="cancelled", reason=reason)
            self._over = True
            await self.before_end(end)

    async def settled(self) -> None:
        """Wait until everything is durable.

        A lost connection is no error here: the hub will offer the turn again.
        """
        try:
            await self._settle()
        except ConnectionLost:
            return

    async def _settle(self) -> None:
        """In order, because a temporary refusal may be the cause of the next one."""
        async with self._settling:
            while self._posts:
                await self._settle_one(self._posts[0])
                self._posts.popleft()
            self._refused_for_now = False

    async def _settle_one(self, post: _PendingPost) -> None:
        try:
            await asyncio.shield(post.future)  # cancelling the wait must not withdraw the record
        except OperationError as exc:
            self._refused_for_now |= exc.temporary
            if not self._refused_for_now:
                _refused(self.plan.id, post.name, exc)
            elif not self._replaced(post):
                await self._retry(post)

    def _replaced(self, post: _PendingPost) -> bool:
        return any(later.key == post.key for later in islice(self._posts, 1, None))

    async def _retry(self, post: _PendingPost) -> None:
        try:
            await self._call_until_accepted(post.name, post.args)
        except OperationError as exc:
            _refused(self.plan.id, post.name, exc)

    def _start(self) -> TurnStart:
        messages = tuple(m.id for m in self.plan.incoming)
        return TurnStart(id=self.plan.id, thread_id=self.plan.thread_id, messages=messages)

    @property
    def _life_argument(self) -> dict[str, str]:
        return {} if self._life is None else {"life": self._life}

    async def _begin_durably(self, start: TurnStart, prompts: _Prompts) -> tuple[Step, ...]:
        args, parts = self._beginning(start, prompts, measured=True)
        begun = await self._call_until_accepted("begin_turn", args)
        self._durably, self._hub_state.parts = True, parts
        return BeginTurnResult.model_validate(begun).steps

    def _begin_soon(self, start: TurnStart, prompts: _Prompts) -> None:
        if self._over:
            return
        args, parts = self._beginning(start, prompts)
        future = self._client.post("begin_turn", cid=None, **args)
        if _unsent(future):
            args, parts = self._beginning(start, prompts, measured=True)
            future = self._client.post("begin_turn", cid=None, **args)
        self._posts.append(_PendingPost("begin_turn", "begin", args, future))

        def answered(answer: asyncio.Future[JsonValue]) -> None:
            begun = not answer.cancelled() and answer.exception() is None
            self._hub_state.parts = parts if begun else {}

        future.add_done_callback(answered)

    def _beginning(
        self, start: TurnStart, prompts: _Prompts, *, measured: bool = False
    ) -> tuple[_Args, dict[str, str]]:
        """The arguments of `begin_turn`, and the texts of its parts with their ids. `measured`: cut
        to the hub's limits, with each prompt as one part if it is too large.
        """
        args, parts = self._arguments(start, [in_parts(text) if text else [] for text in prompts])
        if measured and self._cut(args) != args:
            short: Any = self._cut({"start": args["start"], "prompts": [*prompts]})
            whole = [[text] if text else [] for text in short["prompts"]]
            args, parts = self._arguments(TurnStart.model_validate(short["start"]), whole)
        return args, parts

    def _arguments(
        self, start: TurnStart, prompts: list[list[str]]
    ) -> tuple[_Args, dict[str, str]]:
        stored = self._hub_state.parts
        parts = {text: stored.get(text) or part_id(text) for texts in prompts for text in texts}
        system, user = (tuple(parts[text] for text in texts) for texts in prompts)
        prompt = PromptParts(
            system=system, user=user, texts=tuple(t for t in parts if t not in stored)
        )
        args = {"start": start.model_dump(mode="json"), "prompt": prompt.model_dump(mode="json")}
        return {**args, **self._life_argument}, parts

    async def _call_until_accepted(self, name: str, args: Mapping[str, JsonValue]) -> JsonValue:
        return await call_until_accepted(self._client, name, args, self._backoff)

    def _post(self, name: str, key: object, records: Mapping[str, BaseModel | JsonValue]) -> None:
        if self._over:
            return
        args: dict[str, JsonValue] = {
            key: record.model_dump(mode="json") if isinstance(record, BaseModel) else record
            for key, record in records.items()
        }
        future = self._client.post(name, cid=None, **args)
        if _unsent(future):  # not checked before: measuring costs as much as sending
            args = {key: self._cut(value) for key, value in args.items()}
            future = self._client.post(name, cid=None, **args)
        self._posts.append(_PendingPost(name, key, args, future))

    def _cut(self, record: JsonValue) -> JsonValue:
        return within_limits(record, self._client.hello.limits)


def _unsent(answer: asyncio.Future[JsonValue]) -> bool:
    """Whether the client has refused to send it because of its size or depth."""
    if not answer.done() or answer.cancelled():
        return False
    refusal = answer.exception()
    refusals = (ErrorCode.TOO_LARGE, ErrorCode.BAD_REQUEST)
    return isinstance(refusal, OperationError) and refusal.code in refusals


def _refused(turn: str, operation: str, exc: OperationError) -> None:
    # A turn ended at the hub is no fault; the hub's notification may arrive later.
    tell = log.info if exc.code in TURN_ENDED else log.warning
    tell("the hub refused a record", turn=turn, operation=operation, error=str(exc))


async def _no_notes(end: TurnEnd) -> tuple[str, ...]:
    return ()
