"""Leave to ask a model: before each question the hub reserves what it may cost.

    question -> estimate -> `reserve_budget` -> the model -> step, which settles the reservation

All questions of a turn pass here: its own, those of its roles and helpers, and those for a summary.
A hub of an older version has no budgets, and wants no reservations. Where a hub limits neither
tokens nor money (`Reservation.limited`), a question does not wait for its reservation to arrive.
What comes of a refusal:

    budget_exhausted                    `BudgetExhausted`: the question is not asked
    stopped, taken_over, turn_over      the turn is at its end, and is cancelled
    refused for now                     asked for again until there is an answer
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

from hubbub.agents.models.base import Answer, Model, OnDelta, Question
from hubbub.agents.prompt.tokens import Estimate, TokenCounter, question_tokens
from hubbub.client import Client
from hubbub.client.calls import Backoff
from hubbub.config.agents import ModelConfig, Price
from hubbub.errors import BudgetExhausted, ModelError, OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.spending import Left, Reservation, Whose
from hubbub.protocol.turns import Outcome

__all__ = [
    "ENDED",
    "RESERVATION_PATIENCE",
    "BudgetedModel",
    "Experience",
    "Reservations",
    "Terms",
    "insist",
    "outcome_of",
    "reminder",
]

# Calls that are made until the hub does them, or refuses for good.


async def insist(
    client: Client, name: str, args: Mapping[str, JsonValue], backoff: Backoff
) -> JsonValue:
    """The answer; `backoff` has the pauses after what was refused for now. Raises `OperationError`
    for what is refused for good, and `ConnectionLost`.
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


# What a model is told when little is left of a budget. Pure.


_FOR: dict[Whose, str] = {
    "interaction": "for this task",
    "agent": "for you today",
    "thread": "for this thread today",
    "network": "for all agents today",
}
_ITSELF = frozenset({"tokens", "usd", "wall_clock"})
"""Limits of the model's own work; the others are of how many it may involve."""
_FINISH = "Finish now with what you have."
_ALONE = "Involve no other agent unless you must."


def reminder(low: Sequence[Left]) -> str:
    """One or two lines in a row: what is left, and what follows from it. Empty without limits."""
    if not low:
        return ""
    order = list(_FOR)
    ranked = sorted(low, key=lambda left: order.index(left.whose))
    told = [
        f"Little is left {_FOR[whose]}: {', '.join(map(_amount, lefts))}."
        for whose, lefts in groupby(ranked, key=attrgetter("whose"))
    ]
    limits = {left.limit for left in low}
    told += [_FINISH] if limits & _ITSELF else []
    told += [_ALONE] if limits - _ITSELF else []
    return " ".join(told)


def _amount(left: Left) -> str:
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


ENDED = frozenset({ErrorCode.STOPPED, ErrorCode.TAKEN_OVER, ErrorCode.TURN_OVER})
"""Codes by which the hub says that a turn is at its end."""
RESERVATION_PATIENCE = Backoff(most_s=2.0)
"""The pauses between two tries to get what was refused for now."""
_WRITES = 1024
"""Tokens of an answer, where nothing bounds it: few are longer."""


@dataclass(frozen=True, slots=True)
class Terms:
    """By what a model's questions are estimated."""

    writes: int = _WRITES
    """Tokens of an answer."""
    price: Price | None = None
    counter: TokenCounter = field(default_factory=Estimate)
    """Counts questions of which nobody has told the size."""

    @classmethod
    def of(cls, model: ModelConfig, reserve: int = 0) -> Terms:
        """Those of a configured model; `reserve`: what its window keeps free for an answer."""
        return cls(model.max_output_tokens or reserve or _WRITES, model.price)

    def usd(self, reads: int) -> float:
        """What a question of so many tokens and its answer may cost; 0 without a price."""
        return 0.0 if self.price is None else self.price.of(reads, self.writes)


@dataclass(slots=True)
class Experience:
    """What an agent has learned from the hub in its turns."""

    limited: bool = True
    """Whether a question must wait for its reservation, as until the hub has said otherwise."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The texts of a prompt's parts that the hub has, each with its id: those of the latest turn
    that has begun, of which the next prompt repeats most."""


class Reservations:
    """The reservations of one turn.

    `durable` waits until the steps so far are recorded; `stop` is told, with the reason, that the
    turn is at its end.
    """

    def __init__(
        self,
        client: Client,
        turn: str,
        durable: Callable[[], Awaitable[None]],
        stop: Callable[[str], object],
        experience: Experience | None = None,
        *,
        backoff: Backoff = RESERVATION_PATIENCE,
    ):
        self._client, self._turn = client, turn
        self._durable, self._stop = durable, stop
        self._experience = experience or Experience()
        self._backoff = backoff
        self._keys: defaultdict[int, list[str]] = defaultdict(list)
        self._unused: list[str] = []
        self._recorded = self._settled = 0  # how many were posted, and are known to be durable
        self._last = Reservation(turn=turn, key="")

    def recorded(self, step: int) -> tuple[str, ...]:
        """A step is on its way to its record: the keys of the reservations that it settles."""
        self._recorded += 1
        return (*self._keys.get(step, ()), *self._unused)

    def give_back(self, reservation: Reservation) -> None:
        """Nothing has come of that question: the next step that is recorded settles it."""
        if reservation.key:
            self._unused.append(reservation.key)

    async def take(self, step: int, tokens: int, usd: float) -> Reservation:
        """Leave for a question whose answer becomes this step.

        Raises `BudgetExhausted`, `ModelError` and `ConnectionLost`. Does not return when the turn
        is at its end: whoever runs it is told, and cancels it.
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
        if not self._experience.limited:
            self._client.post("reserve_budget", cid=None, **args).add_done_callback(self._late)
            return self._last.model_copy(update={"key": keys[-1]})
        try:
            return self._given(await self._asked(args))
        except OperationError as exc:
            if exc.code not in ENDED:
                raise _refusal(exc) from exc
            self._stop(exc.message)
        await asyncio.get_running_loop().create_future()  # the turn is cancelled meanwhile
        raise AssertionError("nobody has this future")

    async def _asked(self, args: dict[str, JsonValue]) -> JsonValue:
        """Judged by what earlier steps really took: a reservation would overtake the records that
        are on their way, and what was reserved for them may have been too much or too little."""
        recorded = self._recorded
        if recorded > self._settled:
            await self._durable()
            self._settled = max(self._settled, recorded)
        return await insist(self._client, "reserve_budget", args, self._backoff)

    def _given(self, value: JsonValue) -> Reservation:
        self._last = Reservation.model_validate(value)
        self._experience.limited = self._last.limited
        return self._last

    def _late(self, answer: asyncio.Future[JsonValue]) -> None:
        """A reservation that no question has waited for has come, or was refused."""
        if answer.cancelled():
            return
        match answer.exception():
            case None:
                self._given(answer.result())
            case OperationError(code=code, message=message) if code in ENDED:
                self._stop(message)
            case _:
                self._experience.limited = True  # the next question waits, and is told


def outcome_of(exc: ModelError) -> Outcome:
    """How a turn ends whose model has given no answer."""
    return "budget_exhausted" if isinstance(exc, BudgetExhausted) else "model_error"


def _refusal(exc: OperationError) -> ModelError:
    if exc.code == ErrorCode.BUDGET_EXHAUSTED:
        return BudgetExhausted(exc.message)
    return ModelError(f"the hub gives no leave to ask the model: {exc.message}")


@dataclass(frozen=True, slots=True)
class BudgetedModel:
    """A model that is asked for one step of a turn, each time with a reservation.

    With `tells`, it is told when little is left of a budget; the answer's notes say so.
    """

    model: Model
    reservations: Reservations
    step: int
    terms: Terms
    tells: bool = True

    @property
    def name(self) -> str:
        return self.model.name

    async def answer(self, question: Question, on_delta: OnDelta | None = None) -> Answer:
        """As `Model.answer`. Raises `BudgetExhausted`, too, which is a `ModelError`."""
        terms, reads = self.terms, question.tokens
        if reads is None:
            reads = question_tokens(terms.counter, question)
        reservation = await self.reservations.take(
            self.step, reads + terms.writes, terms.usd(reads)
        )
        told = reminder(reservation.low) if self.tells and reservation.low else ""
        if told:
            question = _ending_with(question, told)
        try:
            answer = await self.model.answer(question, on_delta)
        except (ModelError, asyncio.CancelledError):
            self.reservations.give_back(reservation)
            raise
        notes = (f"the model was told: {told}",) if told else ()
        return replace(answer, notes=(*notes, *answer.notes)) if notes else answer

    async def close(self) -> None:
        """The model goes on to be used by others."""


def _ending_with(question: Question, line: str) -> Question:
    """The question with a line at its very end: what stands before it stays as it is, so that an
    endpoint which remembers prompts still knows it."""
    *before, last = question.messages
    if last["role"] == "user":  # some endpoints take no two messages of the user in a row
        last = {**last, "content": f"{last['content']}\n\n{line}"}
        return replace(question, messages=[*before, last])
    return replace(question, messages=[*before, last, {"role": "user", "content": line}])
