"""The record of one turn, written to the hub while the turn runs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

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
    args: _Args
    future: asyncio.Future[JsonValue]


_Args: TypeAlias = dict[str, object]
"""Of an operation: JSON, and models that become it when they are sent."""


class _Prompts(NamedTuple):
    """The first system and user message, if any."""

    system: str | None = None
    user: str | None = None


class TurnRecorder:
    """Records a turn at the hub without waiting for the hub. Exceptions: resuming an old turn, and
    calls that may crash the process, before which the turn's start must be durable (`flush_start`).

    Records that the hub refuses temporarily (rate limit, full disk) are sent again until they are
    stored. `plan` is the turn; `on_begin` is awaited once its start is sent, so that the events
    that woke the agent can be acknowledged. Offsets in the record are taken from `clock`. `life`
    identifies the process to the hub, which counts processes that crash in the same turn.
    `cautious`: an earlier process may have crashed in the turn.
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
        """The turn's end; None while it runs."""
        self.parked = False
        """Whether the turn stopped to wait for a person."""
        self.clock: TurnClock
        """Time since the turn's start."""
        self._hub_state = hub_state or HubState()
        self.reservations = Reservations(client, plan.id, self.flush, stop, self._hub_state)
        """The turn's budget reservations; recording a step settles those of that step."""
        self.before_end: Callable[[TurnEnd], Awaitable[tuple[str, ...]]] = _no_notes
        """Called before the end is recorded; returns notes to record with it."""
        self.is_followed = False
        """Whether a program follows the turn, and so learns how it ends."""
        self._client = client
        self._on_begin = on_begin
        self._backoff = backoff
        self._life, self._cautious = life, cautious or plan.resumed
        self._begun = False
        self._start_is_durable = False
        self._is_closed = False  # the hub accepts no more records
        self._recorded_steps: tuple[Step, ...] = ()
        self._posts: deque[_PendingPost] = deque()
        self._flush_lock = asyncio.Lock()
        """Several tasks can wait for the record; only one at a time processes it."""
        self._temporarily_refused = False

    async def prepare(self) -> TurnPlan:
        """Prepare to start or resume the turn. Returns its plan without the messages that steered
        it since, which are in its steps. Raises `OperationError` if the turn is unknown to the hub
        or has ended.

        If an earlier process may have crashed in the turn, this process first registers at the hub,
        because even building the prompt may crash it.
        """
        start, prompts = self._start(), _Prompts()
        if self.plan.resumed:
            turn = Turn.model_validate(
                await self._call_until_accepted("read_turn", {"id": self.plan.id})
            )
            if turn.end is not None:
                raise OperationError(ErrorCode.TURN_OVER, f"it has ended: {turn.end.reason}")
            self._recorded_steps = turn.steps
            steering = {s.message for step in turn.steps for s in step.steered}
            self.plan, start = self.plan.without(steering), turn.start
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
        """Record the turn's start. Returns the steps of an earlier process, if any.

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
        if self.plan.was_parked:  # it never left this process and is not started again
            self._begun = True
            steps = tuple(map(without_cut_calls, self._recorded_steps))
            self.clock = TurnClock(steps)
            return steps
        steps, prompts = (), _Prompts(system_prompt, prompt)
        if self.plan.resumed:
            steps = tuple(map(without_cut_calls, await self._begin_durably(start, prompts)))
        else:
            self._post_begin(start, prompts)
        self._begun = True
        self.clock = TurnClock(steps)
        if self._on_begin is not None:
            await self._on_begin()
        return steps

    async def flush_start(self) -> None:
        """Wait until the turn's start is durable, so that a later crash counts for this turn.

        Raises `ConnectionLost`.
        """
        if not self._start_is_durable:
            await self.flush()
            self._start_is_durable = True

    def step(self, step: Step) -> None:
        """Record or replace a step."""
        keys = self.reservations.recorded(step.n)
        records: _Args = {"turn": self.plan.id, "step": step}
        self._post("record_step", step.n, records | {"settles": list(keys)} if keys else records)

    async def flush(self) -> None:
        """Wait until all records so far are durable. Several tasks can wait at a time.

        Raises `ConnectionLost`.
        """
        async with self._flush_lock:
            # In order, because one temporary refusal can cause the next.
            while self._posts:
                await self._flush_post(self._posts[0])
                self._posts.popleft()
            self._temporarily_refused = False

    async def park(self) -> None:
        """Stop the turn to wait for a person, once its record is durable: the turn resumes from it.
        Raises `ConnectionLost`.
        """
        self.leave()
        await self.flush()
        self.parked = True

    def leave(self) -> None:
        """Record that this process stops working on the turn without a crash."""
        if self._life is not None:
            self._post("leave_turn", "leave", {"turn": self.plan.id, "life": self._life})

    async def end(self, outcome: Outcome, reason: str = "", text: str | None = None) -> None:
        """Record the turn's end; only the first call counts. Starts the turn first if necessary."""
        if self.end_record is not None:
            return
        if not self._begun:
            await self.begin()
        if outcome == "model_error" and not self.is_followed:
            # Usually a mistake in the config, which is seen where the agent was started.
            log.warning("no answer from the model", turn=self.plan.id, reason=reason)
        end = self.end_record = TurnEnd(id=self.plan.id, outcome=outcome, reason=reason, text=text)
        try:
            notes = await self.before_end(end)
            end = end.model_copy(update={"notes": notes})
        finally:  # even if cancelled: the turn has ended
            self._post("end_turn", "end", {"end": end})

    async def ended_by_hub(self, reason: str) -> None:
        """End the turn without a record, because the hub ended it."""
        if self.end_record is None:
            end = self.end_record = TurnEnd(id=self.plan.id, outcome="cancelled", reason=reason)
            self._is_closed = True
            await self.before_end(end)

    async def try_flush(self) -> None:
        """Wait until all records are durable or the connection is lost. In the latter case, the hub
        will offer the turn again.
        """
        try:
            await self.flush()
        except ConnectionLost:
            return

    async def _flush_post(self, post: _PendingPost) -> None:
        try:
            await asyncio.shield(post.future)  # cancelling the wait must not withdraw the record
        except OperationError as exc:
            self._temporarily_refused |= exc.temporary
            if not self._temporarily_refused:
                _log_refusal(self.plan.id, post.name, exc)
            elif not self._is_replaced(post):
                await self._retry(post)

    def _is_replaced(self, post: _PendingPost) -> bool:
        return any(later.key == post.key for later in islice(self._posts, 1, None))

    async def _retry(self, post: _PendingPost) -> None:
        try:
            await self._call_until_accepted(post.name, post.args)
        except OperationError as exc:
            _log_refusal(self.plan.id, post.name, exc)

    def _start(self) -> TurnStart:
        messages = tuple(m.id for m in self.plan.incoming)
        return TurnStart(id=self.plan.id, thread_id=self.plan.thread_id, messages=messages)

    @property
    def _life_argument(self) -> dict[str, str]:
        return {} if self._life is None else {"life": self._life}

    async def _begin_durably(self, start: TurnStart, prompts: _Prompts) -> tuple[Step, ...]:
        args, parts = self._begin_arguments(start, prompts, is_limited=True)
        begun = await self._call_until_accepted("begin_turn", args)
        self._start_is_durable, self._hub_state.parts = True, parts
        return BeginTurnResult.model_validate(begun).steps

    def _post_begin(self, start: TurnStart, prompts: _Prompts) -> None:
        if self._is_closed:
            return
        args, parts = self._begin_arguments(start, prompts)
        future = self._client.post("begin_turn", cid=None, **args)
        if _was_rejected(future):
            args, parts = self._begin_arguments(start, prompts, is_limited=True)
            future = self._client.post("begin_turn", cid=None, **args)
        self._posts.append(_PendingPost("begin_turn", "begin", args, future))

        def store_parts(answer: asyncio.Future[JsonValue]) -> None:
            begun = not answer.cancelled() and answer.exception() is None
            self._hub_state.parts = parts if begun else {}

        future.add_done_callback(store_parts)

    def _begin_arguments(
        self, start: TurnStart, prompts: _Prompts, *, is_limited: bool = False
    ) -> tuple[_Args, dict[str, str]]:
        """The arguments of `begin_turn`, and the ids of its parts by their texts. `is_limited`:
        cut to the hub's limits, with each prompt as one part if it is too large.
        """
        stored = self._hub_state.parts
        args, parts = self._part_arguments(
            start, [in_parts(text, stored) if text else [] for text in prompts]
        )
        if is_limited and self._cut(whole := to_jsonable_python(args)) != whole:
            cut: Any = self._cut({"start": whole["start"], "prompts": [*prompts]})
            in_one = [[text] if text else [] for text in cut["prompts"]]
            args, parts = self._part_arguments(TurnStart.model_validate(cut["start"]), in_one)
        return args, parts

    def _part_arguments(
        self, start: TurnStart, prompts: list[list[str]]
    ) -> tuple[_Args, dict[str, str]]:
        stored = self._hub_state.parts
        parts = {text: stored.get(text) or part_id(text) for texts in prompts for text in texts}
        system, user = ([parts[text] for text in texts] for texts in prompts)
        texts = [text for text in parts if text not in stored]
        args: _Args = {
            "start": start,
            "prompt": {"system": system, "user": user, "texts": texts},
            **self._life_argument,
        }
        return args, parts

    async def _call_until_accepted(self, name: str, args: _Args) -> JsonValue:
        return await call_until_accepted(self._client, name, args, self._backoff)

    def _post(self, name: str, key: object, args: _Args) -> None:
        if self._is_closed:
            return
        future = self._client.post(name, cid=None, **args)
        if _was_rejected(future):  # not checked before: measuring costs as much as sending
            args = {key: self._cut(to_jsonable_python(record)) for key, record in args.items()}
            future = self._client.post(name, cid=None, **args)
        self._posts.append(_PendingPost(name, key, args, future))

    def _cut(self, record: JsonValue) -> JsonValue:
        return within_limits(record, self._client.hello.limits)


def _was_rejected(answer: asyncio.Future[JsonValue]) -> bool:
    """Whether the client refused to send the call because of its size or depth."""
    if not answer.done() or answer.cancelled():
        return False
    refusal = answer.exception()
    refusals = (ErrorCode.TOO_LARGE, ErrorCode.BAD_REQUEST)
    return isinstance(refusal, OperationError) and refusal.code in refusals


def _log_refusal(turn: str, operation: str, exc: OperationError) -> None:
    # A turn ended by the hub is no fault; the hub's signal may arrive later.
    log_refusal = log.info if exc.code in TURN_ENDED else log.warning
    log_refusal("the hub refused a record", turn=turn, operation=operation, error=str(exc))


async def _no_notes(end: TurnEnd) -> tuple[str, ...]:
    return ()
