"""Reservations of budget for questions to a model, with a hub that answers on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import JsonValue, TypeAdapter

from hubbub.agents.models.base import Completion, CompletionRequest
from hubbub.agents.turn.chat import ChatMessage
from hubbub.agents.turn.reservations import BudgetedModel, CostModel, Reservations
from hubbub.client import Client, MemoryTransport
from hubbub.client.calls import Backoff
from hubbub.config.models import ModelConfig, Price
from hubbub.errors import BudgetExhausted, ModelError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import (
    Call,
    ClientFrame,
    ErrorFrame,
    Hello,
    Identify,
    LimitsInfo,
    Result,
)
from hubbub.protocol.messages import Model, OperationInfo
from hubbub.protocol.spending import RemainingBudget, Reservation
from hubbub.protocol.wire import Outlet
from tests.interaction.peers import soon
from tests.unit.agents.builders import ME, ready
from tests.unit.agents.scripted_model import ScriptedModel

LIMITS = LimitsInfo(
    frame_bytes=10**6, json_depth=100, text_bytes=10**6, calls_per_second=1e6, burst=10**6,
    channels=1, thread_depth=1, unacknowledged=256,
)  # fmt: skip
OPERATION = OperationInfo(
    name="reserve_budget", permission="read", description="", input_schema={}, tool=False
)
TURN = "bot-m1"
frames: TypeAdapter[ClientFrame] = TypeAdapter(ClientFrame)
LOW = RemainingBudget(limit="tokens", whose="interaction", used=95, of=100)


class Bank:
    """A hub with reservations only. Calls wait in `calls` for an answer."""

    def __init__(self, *operations: OperationInfo):
        self.calls: asyncio.Queue[Call] = asyncio.Queue()
        self._operations = operations
        self._outlet: Outlet | None = None

    def attach(self, outlet: Outlet) -> Bank:
        self._outlet = outlet
        self._write(Hello(network="bank", epoch="1", heartbeat_s=25.0, limits=LIMITS))
        return self

    def receive(self, frame: bytes) -> None:
        match frames.validate_json(frame):
            case Identify():
                self._write(ready(operations=self._operations))
            case Call() as call:
                self.calls.put_nowait(call)

    def drained(self) -> None: ...

    def lost(self) -> None:
        self._outlet = None

    def _write(self, frame: Model) -> None:
        if self._outlet is not None:
            self._outlet.write(frame.model_dump_json().encode())

    async def give(
        self, *, low: tuple[RemainingBudget, ...] = (), limited: bool = True
    ) -> dict[str, JsonValue]:
        """Answer the next call with a reservation. Returns the call's arguments."""
        async with soon():
            call = await self.calls.get()
        reservation = Reservation(turn=TURN, key=str(call.args["key"]), low=low, limited=limited)
        self._write(Result(ref=call.ref, value=reservation.model_dump(mode="json")))
        return dict(call.args)

    async def refuse(
        self, code: ErrorCode, message: str = "no", *, temporary: bool = False
    ) -> None:
        async with soon():
            call = await self.calls.get()
        self._write(ErrorFrame(ref=call.ref, code=code, message=message, temporary=temporary))


class BudgetedTurn:
    """A turn with reservations, and its stops and flushes."""

    def __init__(self, client: Client, bank: Bank):
        self.client, self.bank = client, bank
        self.inner = ScriptedModel(Completion(text="yes", notes=("noted",)))
        self.stopped: asyncio.Queue[str] = asyncio.Queue()
        self.flushes = 0
        quick = Backoff(first_s=0.0, most_s=0.0)
        stop = self.stopped.put_nowait
        self.reservations = Reservations(client, TURN, self._durable, stop, None, backoff=quick)

    async def _durable(self) -> None:
        self.flushes += 1

    def ask(
        self,
        step: int = 1,
        what: CompletionRequest | None = None,
        *,
        inner: ScriptedModel | None = None,
        tells: bool = True,
    ) -> asyncio.Task[Completion]:
        """Ask a model for this step once the bank grants the reservation."""
        model = BudgetedModel(
            inner or self.inner, self.reservations, step, CostModel(writes=100), tells
        )
        return asyncio.create_task(answer_of(model, what or question()))

    async def granted(
        self,
        step: int = 1,
        what: CompletionRequest | None = None,
        **reservation: Any,  # as `Bank.give` takes it
    ) -> tuple[Completion, dict[str, JsonValue]]:
        """The answer to a question whose reservation is granted, and the call's arguments."""
        asking = self.ask(step, what)
        args = await self.bank.give(**reservation)
        return await asking, args


@pytest.fixture
async def turn() -> AsyncIterator[BudgetedTurn]:
    bank = Bank(OPERATION)
    async with Client(MemoryTransport(bank.attach), ME, "agent", turns=True) as client:
        yield BudgetedTurn(client, bank)


@pytest.fixture
async def unlimited(turn: BudgetedTurn) -> BudgetedTurn:
    """A turn whose first reservation shows that neither tokens nor money are limited."""
    await turn.granted(limited=False)
    turn.inner.questions.clear()
    return turn


def question(text: str = "well?", *, tokens: int | None = 50) -> CompletionRequest:
    messages: list[ChatMessage] = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": text},
    ]
    return CompletionRequest(messages, (), tokens)


async def answer_of(model: BudgetedModel, what: CompletionRequest) -> Completion:
    async with soon():
        return await model.answer(what)


async def wait_until_read(turn: BudgetedTurn) -> None:
    """Wait until the client has read all earlier answers of the bank."""
    probe = turn.client.post("reserve_budget", turn=TURN, key="probe", tokens=0)
    await turn.bank.give()
    async with soon():
        await probe


@pytest.mark.behaviour("H-60")
async def test_a_reservation_covers_the_question_and_the_longest_answer(turn: BudgetedTurn) -> None:
    answer, args = await turn.granted(3)
    assert answer.text == "yes"
    assert args == {"turn": TURN, "key": "3", "tokens": 150, "usd": 0.0}
    _, args = await turn.granted(4, question("word " * 100, tokens=None))
    assert isinstance(args["tokens"], int)
    assert args["tokens"] > 200, "an uncounted question is counted"


def test_money_is_estimated_from_the_models_price_and_its_longest_answer() -> None:
    price = Price(input=1.0, output=10.0)
    terms = CostModel.of(ModelConfig(model="m", max_output_tokens=500, price=price), 4096)
    assert terms.usd(1000) == pytest.approx(1000e-6 + 500 * 10e-6)
    assert CostModel.of(ModelConfig(model="m"), 4096).writes == 4096
    assert CostModel.of(ModelConfig(model="m")).usd(10**6) == 0.0


@pytest.mark.behaviour("H-60")
async def test_several_questions_for_one_step_have_keys_of_their_own(turn: BudgetedTurn) -> None:
    for _ in range(3):
        await turn.granted(2)
    assert turn.reservations.recorded(2) == ("2", "2.1", "2.2")
    assert turn.reservations.recorded(1) == ()


@pytest.mark.behaviour("H-60")
async def test_the_reservation_of_a_failed_question_is_returned_with_the_next_step(
    turn: BudgetedTurn,
) -> None:
    asking = turn.ask(10_001, inner=ScriptedModel(ModelError("down")))
    await turn.bank.give()
    with pytest.raises(ModelError, match="down"):
        await asking
    assert turn.reservations.recorded(2) == ("10001",)


@pytest.mark.behaviour("H-60")
async def test_a_recorded_step_is_durable_before_the_next_reservation(turn: BudgetedTurn) -> None:
    await turn.granted(1)
    assert turn.flushes == 0
    turn.reservations.recorded(1)
    for step in (2, 3):
        await turn.granted(step)
        assert turn.flushes == 1


@pytest.mark.behaviour("H-60")
async def test_a_temporarily_refused_reservation_is_requested_again(turn: BudgetedTurn) -> None:
    asking = turn.ask()
    await turn.bank.refuse(ErrorCode.RATE_LIMITED, temporary=True)
    await turn.bank.refuse(ErrorCode.STORE_UNAVAILABLE, temporary=True)
    await turn.bank.give()
    assert (await asking).text == "yes"


@pytest.mark.behaviour("H-61")
async def test_the_model_is_not_asked_when_the_reservation_is_refused(turn: BudgetedTurn) -> None:
    asking = turn.ask()
    await turn.bank.refuse(ErrorCode.BUDGET_EXHAUSTED, "tokens are used up")
    with pytest.raises(BudgetExhausted, match="tokens are used up"):
        await asking
    asking = turn.ask()
    await turn.bank.refuse(ErrorCode.UNKNOWN_TURN, "there is no such turn")
    with pytest.raises(ModelError, match="not let the agent ask the model: there is no such turn"):
        await asking
    assert not turn.inner.questions


@pytest.mark.behaviour("H-63")
async def test_a_turn_that_ended_at_the_hub_is_stopped_and_asks_nothing(turn: BudgetedTurn) -> None:
    for code in (ErrorCode.STOPPED, ErrorCode.TAKEN_OVER, ErrorCode.TURN_OVER):
        asking = turn.ask()
        await turn.bank.refuse(code, "stopped by ann")
        async with soon():
            assert await turn.stopped.get() == "stopped by ann"
        assert not asking.done(), "the owner of the turn cancels it"
        asking.cancel()
        await asyncio.wait({asking})
        assert not turn.inner.questions


async def test_a_hub_without_reservations_is_not_called() -> None:
    bank = Bank()
    async with Client(MemoryTransport(bank.attach), ME, "agent", turns=True) as client:
        turn = BudgetedTurn(client, bank)
        await turn.ask()
        assert (len(turn.inner.questions), turn.reservations.recorded(1)) == (1, ())
        assert bank.calls.empty()


@pytest.mark.behaviour("H-62")
async def test_a_low_budget_is_stated_at_the_end_of_the_question(turn: BudgetedTurn) -> None:
    answer, _ = await turn.granted(low=(LOW,))
    system, user = turn.inner.questions[0].messages
    assert system["content"] == "s"
    head, _, line = (user["content"] or "").partition("\n\n")
    assert (head, line[:28]) == ("well?", "Little is left for this task")
    assert answer.notes == (f"the model was warned: {line}", "noted")
    asking = turn.ask(2, tells=False)
    await turn.bank.give(low=(LOW,))
    await asking
    assert turn.inner.questions[1] == question(), "a question for a summary has no notice"


@pytest.mark.behaviour("H-60")
async def test_without_limits_a_question_does_not_wait_for_its_reservation(
    unlimited: BudgetedTurn,
) -> None:
    await unlimited.ask(2)
    assert unlimited.reservations.recorded(2) == ("2",)
    assert (await unlimited.bank.give(low=(LOW,), limited=False))["key"] == "2"
    await wait_until_read(unlimited)
    await unlimited.ask(3)
    before, after = unlimited.inner.questions
    assert "Little is left" not in str(before.messages)
    assert "Little is left" in str(after.messages), "a late notice comes with the next question"


@pytest.mark.behaviour("H-63")
async def test_a_late_refusal_still_ends_the_turn(unlimited: BudgetedTurn) -> None:
    await unlimited.ask(2)
    await unlimited.bank.refuse(ErrorCode.STOPPED, "stopped by ann")
    async with soon():
        assert await unlimited.stopped.get() == "stopped by ann"


async def test_a_question_waits_for_its_reservation_again_after_a_late_refusal(
    unlimited: BudgetedTurn,
) -> None:
    await unlimited.ask(2)
    await unlimited.bank.refuse(ErrorCode.BUDGET_EXHAUSTED)
    await wait_until_read(unlimited)
    asking = unlimited.ask(3)
    await unlimited.bank.refuse(ErrorCode.BUDGET_EXHAUSTED)
    with pytest.raises(BudgetExhausted):
        await asking
