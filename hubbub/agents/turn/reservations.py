"""Budget reservations: before each question to a model, the hub reserves what it may cost.

    question -> estimate -> `reserve_budget` -> the model -> step, which settles the reservation

This applies to every question of a turn: its own, those of its roles and helpers, and summaries. A
hub of an older version has no budgets and needs no reservations. If a hub limits neither tokens nor
money (`Reservation.limited`), a question does not wait for its reservation. Refusals:

    budget_exhausted                    `BudgetExhausted`: the question is not asked
    stopped, taken_over, turn_over      the turn has ended, and is cancelled
    temporary refusal                   tried again until there is an answer
    anything else                       `ModelError`
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter

from pydantic import JsonValue

from hubbub.agents.models.base import ChatModel, Completion, CompletionRequest, OnDelta
from hubbub.agents.prompt.tokens import TokenCounter, TokenEstimate, question_tokens
from hubbub.client import Client
from hubbub.client.calls import Backoff
from hubbub.config.agents import ModelConfig, Price
from hubbub.errors import BudgetExhausted, ModelError, OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.spending import RemainingBudget, Reservation, Whose
from hubbub.protocol.turns import Outcome

__all__ = [
    "TURN_ENDED",
    "BudgetedModel",
    "CostModel",
    "HubState",
    "Reservations",
    "call_until_accepted",
    "outcome_of",
    "reminder",
]

# Calls that are repeated until they succeed or are refused for good.


async def call_until_accepted(
    client: Client, name: str, args: Mapping[str, object], backoff: Backoff
) -> JsonValue:
    """Call an operation, with `backoff` between temporary refusals. Raises `OperationError` for a
    permanent refusal, and `ConnectionLost`.
    """
    attempt = 0
    while True:
        try:
            return await client.post(name, cid=None, **args)
        except OperationError as exc:
            if not exc.temporary:
                raise
            await backoff.sleep(backoff.after(exc.retry_after_s or 0, attempt))
        attempt += 1


# Telling a model that a budget is running low. Pure.


_FOR: dict[Whose, str] = {
    "interaction": "for this task",
    "agent": "for you today",
    "thread": "for this thread today",
    "network": "for all agents today",
}
_ITSELF = frozenset({"tokens", "usd", "wall_clock"})
"""Limits of the model's own work; the others limit how many agents it may involve."""
_FINISH = "Finish now with what you have."
_ALONE = "Involve no other agent unless you must."


def reminder(low: Sequence[RemainingBudget]) -> str:
    """One or two sentences: what is left, and what to do about it. Empty without limits."""
    if not low:
        return ""
    order = list(_FOR)
    ranked = sorted(low, key=lambda left: order.index(left.whose))
    lines = [
        f"Little is left {_FOR[whose]}: {', '.join(map(_amount, lefts))}."
        for whose, lefts in groupby(ranked, key=attrgetter("whose"))
    ]
    limits = {left.limit for left in low}
    lines += [_FINISH] if limits & _ITSELF else []
    lines += [_ALONE] if limits - _ITSELF else []
    return " ".join(lines)


def _amount(left: RemainingBudget) -> str:
    rest, of = max(left.of - left.used, 0.0), left.of
    match left.limit:
        case "tokens":
            return f"{rest:,.0f} of {of:,.0f} tokens"
        case "usd":
            return f"${rest:,.4f} of ${of:,.4f}"
        case "wall_clock":
            return f"{rest:,.0f} of {of:,.0f} seconds"
        case "wakes":
            return f"{rest:,.0f} of {of:,.0f} turns that messages may start"
        case "agents":
            return f"{rest:,.0f} of {of:,.0f} agents that may be woken"
        case "hops":
            return f"{rest:,.0f} of {of:,.0f} messages in a row"
        case "fan_out":
            return f"{rest:,.0f} of {of:,.0f} agents at a time"


TURN_ENDED = frozenset({ErrorCode.STOPPED, ErrorCode.TAKEN_OVER, ErrorCode.TURN_OVER})
"""Error codes by which the hub says that a turn has ended."""
RESERVATION_BACKOFF = Backoff(most_s=2.0)
"""Pauses between retries after a temporary refusal."""
_WRITES = 1024
"""Assumed output tokens where nothing limits them: few answers are longer."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """For estimating the tokens and the cost of a model's questions."""

    writes: int = _WRITES
    """Output tokens."""
    price: Price | None = None
    counter: TokenCounter = field(default_factory=TokenEstimate)
    """Counts questions whose size is not known yet."""

    @classmethod
    def of(cls, model: ModelConfig, reserve: int = 0) -> CostModel:
        """For a configured model; `reserve`: tokens that its window reserves for the completion."""
        return cls(model.max_output_tokens or reserve or _WRITES, model.price)

    def usd(self, reads: int) -> float:
        """Estimated cost of a question of `reads` tokens and its answer; 0 without a price."""
        return 0.0 if self.price is None else self.price.of(reads, self.writes)


@dataclass(slots=True)
class HubState:
    """State shared by all turns of an agent: what the hub limits and what it already has."""

    limited: bool = True
    """Whether a question must wait for its reservation; true until the hub says otherwise."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Texts of prompt parts that the hub has, each with its id: those of the latest turn, most of
    which the next prompt repeats."""


class Reservations:
    """The reservations of one turn.

    `durable` waits until the steps so far are recorded; `stop` is called with the reason when the
    hub says that the turn has ended.
    """

    def __init__(
        self,
        client: Client,
        turn: str,
        durable: Callable[[], Awaitable[None]],
        stop: Callable[[str], object],
        hub_state: HubState | None = None,
        *,
        backoff: Backoff = RESERVATION_BACKOFF,
    ):
        self._client, self._turn = client, turn
        self._durable, self._stop = durable, stop
        self._hub_state = hub_state or HubState()
        self._backoff = backoff
        self._keys: defaultdict[int, list[str]] = defaultdict(list)
        self._unused: list[str] = []
        self._recorded = self._settled = 0  # steps posted, and steps known to be durable
        self._last = Reservation(turn=turn, key="")

    def recorded(self, step: int) -> tuple[str, ...]:
        """A step is being recorded: the keys of the reservations that it settles."""
        self._recorded += 1
        return (*self._keys.get(step, ()), *self._unused)

    def release(self, reservation: Reservation) -> None:
        """The question failed: the next recorded step settles its reservation."""
        if reservation.key:
            self._unused.append(reservation.key)

    async def take(self, step: int, tokens: int, usd: float) -> Reservation:
        """Reserve the cost of a question whose answer becomes this step.

        Raises `BudgetExhausted`, `ModelError` and `ConnectionLost`. Does not return if the turn has
        ended: `stop` is called, which cancels it.
        """
        if not self._client.offers("reserve_budget"):
            return self._last
        keys = self._keys[step]
        keys.append(f"{step}.{len(keys)}" if keys else f"{step}")
        args: dict[str, JsonValue] = {
            "turn": self._turn,
            "key": keys[-1],
            "tokens": tokens,
            "usd": usd,
        }
        if not self._hub_state.limited:
            self._client.post("reserve_budget", cid=None, **args).add_done_callback(
                self._on_response
            )
            return self._last.model_copy(update={"key": keys[-1]})
        try:
            return self._accept(await self._reserve(args))
        except OperationError as exc:
            if exc.code not in TURN_ENDED:
                raise _refusal(exc) from exc
            self._stop(exc.message)
        await asyncio.get_running_loop().create_future()  # `stop` cancels the turn meanwhile
        raise AssertionError("the future is never resolved")

    async def _reserve(self, args: dict[str, JsonValue]) -> JsonValue:
        """Wait for the records of earlier steps first: otherwise the hub would judge by their
        estimates instead of what they really used.
        """
        recorded = self._recorded
        if recorded > self._settled:
            await self._durable()
            self._settled = max(self._settled, recorded)
        return await call_until_accepted(self._client, "reserve_budget", args, self._backoff)

    def _accept(self, value: JsonValue) -> Reservation:
        self._last = Reservation.model_validate(value)
        self._hub_state.limited = self._last.limited
        return self._last

    def _on_response(self, answer: asyncio.Future[JsonValue]) -> None:
        """The response to a reservation that no question waited for."""
        if answer.cancelled():
            return
        match answer.exception():
            case None:
                self._accept(answer.result())
            case OperationError(code=code, message=message) if code in TURN_ENDED:
                self._stop(message)
            case _:
                self._hub_state.limited = True  # the next question waits and gets the error


def outcome_of(exc: ModelError) -> Outcome:
    """The outcome of a turn whose model gave no answer."""
    return "budget_exhausted" if isinstance(exc, BudgetExhausted) else "model_error"


def _refusal(exc: OperationError) -> ModelError:
    if exc.code == ErrorCode.BUDGET_EXHAUSTED:
        return BudgetExhausted(exc.message)
    return ModelError(f"the hub does not let the agent ask the model: {exc.message}")


@dataclass(frozen=True, slots=True)
class BudgetedModel:
    """A model that is asked for one step of a turn, each time under a reservation.

    With `warns`, the prompt warns when a budget is running low; the answer's notes record that.
    """

    model: ChatModel
    reservations: Reservations
    step: int
    cost_model: CostModel
    warns: bool = True

    @property
    def name(self) -> str:
        return self.model.name

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        """As `ChatModel.answer`. Also raises `BudgetExhausted`, which is a `ModelError`."""
        cost_model, reads = self.cost_model, question.tokens
        if reads is None:
            reads = question_tokens(cost_model.counter, question)
        reservation = await self.reservations.take(
            self.step, reads + cost_model.writes, cost_model.usd(reads)
        )
        warning = reminder(reservation.low) if self.warns and reservation.low else ""
        if warning:
            question = _with_last_line(question, warning)
        try:
            answer = await self.model.answer(question, on_delta)
        except (ModelError, asyncio.CancelledError):
            self.reservations.release(reservation)
            raise
        notes = (f"the model was warned: {warning}",) if warning else ()
        return replace(answer, notes=(*notes, *answer.notes)) if notes else answer

    async def close(self) -> None:
        """Do nothing: other turns still use the model."""


def _with_last_line(question: CompletionRequest, line: str) -> CompletionRequest:
    """The question with a line at its very end. The rest stays unchanged, so that an endpoint's
    prompt cache still applies.
    """
    *before, last = question.messages
    if last["role"] == "user":  # some endpoints accept no two user messages in a row
        last = {**last, "content": f"{last['content']}\n\n{line}"}
        return replace(question, messages=[*before, last])
    return replace(question, messages=[*before, last, {"role": "user", "content": line}])
