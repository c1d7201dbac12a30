"""Leave to ask a model, with a hub that answers when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import JsonValue, TypeAdapter

from hubbub.agents.models.base import Completion, CompletionRequest, OnDelta
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
    """A hub that knows nothing but reservations. Calls wait in `asked` for an answer."""

    def __init__(self, *, knows: bool = True):
        self.asked: asyncio.Queue[Call] = asyncio.Queue()
        self._knows = knows
        self._outlet: Outlet | None = None

    def attach(self, outlet: Outlet) -> Bank:
        self._outlet = outlet
        self._write(Hello(network="bank", epoch="1", heartbeat_s=25.0, limits=LIMITS))
        return self

    def receive(self, frame: bytes) -> None:
        match frames.validate_json(frame):
            case Identify():
                self._write(ready(operations=(OPERATION,) if self._knows else ()))
            case Call() as call:
                self.asked.put_nowait(call)

    def drained(self) -> None: ...

    def lost(self) -> None:
        self._outlet = None

    def _write(self, frame: Model) -> None:
        if self._outlet is not None:
            self._outlet.write(frame.model_dump_json().encode())

    async def give(
        self, *, low: tuple[RemainingBudget, ...] = (), limited: bool = True
    ) -> dict[str, JsonValue]:
        """Answer the next call with a reservation; what it asked for."""
        async with soon():
            call = await self.asked.get()
        reservation = Reservation(turn=TURN, key=str(call.args["key"]), low=low, limited=limited)
        self._write(Result(ref=call.ref, value=reservation.model_dump(mode="json")))
        return dict(call.args)

    async def refuse(
        self, code: ErrorCode, message: str = "no", *, temporary: bool = False
    ) -> None:
        async with soon():
            call = await self.asked.get()
        self._write(ErrorFrame(ref=call.ref, code=code, message=message, temporary=temporary))


class Scripted:
    """A model that answers at once, unless it is to fail."""

    name = "scripted"

    def __init__(self, failure: ModelError | None = None):
        self.questions: list[CompletionRequest] = []
        self._failure = failure

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        self.questions.append(question)
        if self._failure is not None:
            raise self._failure
        return Completion(text="yes", notes=("noted",))

    async def close(self) -> None: ...


class Desk:
    """A turn's reservations, and what has become of the turn."""

    def __init__(self, client: Client, bank: Bank):
        self.client, self.bank = client, bank
        self.inner = Scripted()
        self.stopped: asyncio.Queue[str] = asyncio.Queue()
        self.was_parked = 0
        quick = Backoff(first_s=0.0, most_s=0.0)
        stop = self.stopped.put_nowait
        self.reservations = Reservations(client, TURN, self._durable, stop, None, backoff=quick)

    async def _durable(self) -> None:
        self.was_parked += 1

    def ask(
        self,
        step: int = 1,
        what: CompletionRequest | None = None,
        *,
        inner: Scripted | None = None,
        tells: bool = True,
    ) -> asyncio.Task[Completion]:
        """Ask a model for this step, once the bank gives leave."""
        model = BudgetedModel(
            inner or self.inner, self.reservations, step, CostModel(writes=100), tells
        )
        return asyncio.create_task(asked(model, what or question()))

    async def granted(
        self,
        step: int = 1,
        what: CompletionRequest | None = None,
        **reservation: Any,  # as `Bank.give` takes it
    ) -> tuple[Completion, dict[str, JsonValue]]:
        """The answer to a question that gets its reservation, and what that was asked for."""
        asking = self.ask(step, what)
        args = await self.bank.give(**reservation)
        return await asking, args


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    bank = Bank()
    async with Client(MemoryTransport(bank.attach), ME, "agent", turns=True) as client:
        yield Desk(client, bank)


@pytest.fixture
async def unlimited(desk: Desk) -> Desk:
    """A turn that has heard with its first one that neither tokens nor money are limited."""
    await desk.granted(limited=False)
    desk.inner.questions.clear()
    return desk


def question(text: str = "well?", *, tokens: int | None = 50) -> CompletionRequest:
    said: list[ChatMessage] = [{"role": "system", "content": "s"}]
    return CompletionRequest([*said, {"role": "user", "content": text}], (), tokens)


async def asked(model: BudgetedModel, what: CompletionRequest) -> Completion:
    async with soon():
        return await model.answer(what)


async def heard(desk: Desk) -> None:
    """The client has read all that the bank has answered by now."""
    probe = desk.client.post("reserve_budget", turn=TURN, key="probe", tokens=0)
    await desk.bank.give()
    async with soon():
        await probe


@pytest.mark.behaviour("H-60")
async def test_the_estimate_is_what_is_read_and_may_be_written(desk: Desk) -> None:
    answer, args = await desk.granted(3)
    assert answer.text == "yes"
    assert args == {"turn": TURN, "key": "3", "tokens": 150, "usd": 0.0}
    _, args = await desk.granted(4, question("word " * 100, tokens=None))
    assert isinstance(args["tokens"], int)
    assert args["tokens"] > 200, "what nobody has counted is counted"


def test_money_is_estimated_by_the_models_price_and_its_longest_answer() -> None:
    price = Price(input=1.0, output=10.0)
    terms = CostModel.of(ModelConfig(model="m", max_output_tokens=500, price=price), 4096)
    assert terms.usd(1000) == pytest.approx(1000e-6 + 500 * 10e-6)
    assert CostModel.of(ModelConfig(model="m"), 4096).writes == 4096
    assert CostModel.of(ModelConfig(model="m")).usd(10**6) == 0.0


@pytest.mark.behaviour("H-60")
async def test_several_questions_for_one_step_have_keys_of_their_own(desk: Desk) -> None:
    for _ in range(3):
        await desk.granted(2)
    assert desk.reservations.recorded(2) == ("2", "2.1", "2.2")
    assert desk.reservations.recorded(1) == ()


@pytest.mark.behaviour("H-60")
async def test_what_a_failed_question_had_reserved_is_given_back_with_the_next_step(
    desk: Desk,
) -> None:
    asking = desk.ask(10_001, inner=Scripted(ModelError("down")))
    await desk.bank.give()
    with pytest.raises(ModelError, match="down"):
        await asking
    assert desk.reservations.recorded(2) == ("10001",)


@pytest.mark.behaviour("H-60")
async def test_a_reservation_is_judged_by_what_the_steps_before_it_really_took(desk: Desk) -> None:
    for step, was_parked in ((1, 0), (2, 1), (3, 1)):
        await desk.granted(step)
        assert desk.was_parked == was_parked
        if step == 1:
            desk.reservations.recorded(1)  # it is recorded


@pytest.mark.behaviour("H-60")
async def test_what_is_refused_for_now_is_asked_for_again(desk: Desk) -> None:
    asking = desk.ask()
    await desk.bank.refuse(ErrorCode.RATE_LIMITED, temporary=True)
    await desk.bank.refuse(ErrorCode.STORE_UNAVAILABLE, temporary=True)
    await desk.bank.give()
    assert (await asking).text == "yes"


@pytest.mark.behaviour("H-61")
async def test_a_question_without_leave_is_not_asked(desk: Desk) -> None:
    asking = desk.ask()
    await desk.bank.refuse(ErrorCode.BUDGET_EXHAUSTED, "tokens are used up")
    with pytest.raises(BudgetExhausted, match="tokens are used up"):
        await asking
    asking = desk.ask()
    await desk.bank.refuse(ErrorCode.UNKNOWN_TURN, "there is no such turn")
    with pytest.raises(ModelError, match="not let the agent ask the model: there is no such turn"):
        await asking
    assert not desk.inner.questions


@pytest.mark.behaviour("H-63")
async def test_a_turn_at_its_end_asks_nothing_and_is_told(desk: Desk) -> None:
    for code in (ErrorCode.STOPPED, ErrorCode.TAKEN_OVER, ErrorCode.TURN_OVER):
        asking = desk.ask()
        await desk.bank.refuse(code, "stopped by ann")
        async with soon():
            assert await desk.stopped.get() == "stopped by ann"
        assert not asking.done(), "whoever is told cancels it"
        asking.cancel()
        await asyncio.wait({asking})
        assert not desk.inner.questions


async def test_a_hub_that_knows_no_reservations_is_not_asked() -> None:
    bank = Bank(knows=False)
    async with Client(MemoryTransport(bank.attach), ME, "agent", turns=True) as client:
        desk = Desk(client, bank)
        await desk.ask()
        assert (len(desk.inner.questions), desk.reservations.recorded(1)) == (1, ())
        assert bank.asked.empty()


@pytest.mark.behaviour("H-62")
async def test_what_is_left_stands_at_the_end_of_the_question(desk: Desk) -> None:
    answer, _ = await desk.granted(low=(LOW,))
    system, user = desk.inner.questions[0].messages
    assert system["content"] == "s"
    head, _, line = (user["content"] or "").partition("\n\n")
    assert (head, line[:28]) == ("well?", "Little is left for this task")
    assert answer.notes == (f"the model was warned: {line}", "noted")
    asking = desk.ask(2, tells=False)
    await desk.bank.give(low=(LOW,))
    await asking
    assert desk.inner.questions[1] == question(), "who makes a summary is not told"


@pytest.mark.behaviour("H-60")
async def test_without_limits_a_question_does_not_wait_for_its_reservation(unlimited: Desk) -> None:
    await unlimited.ask(2)
    assert unlimited.reservations.recorded(2) == ("2",)
    assert (await unlimited.bank.give(low=(LOW,), limited=False))["key"] == "2"
    await heard(unlimited)
    await unlimited.ask(3)
    before, after = unlimited.inner.questions
    assert "Little is left" not in str(before.messages)
    assert "Little is left" in str(after.messages), "what comes late is told with the next one"


@pytest.mark.behaviour("H-63")
async def test_a_refusal_that_comes_late_ends_the_turn_all_the_same(unlimited: Desk) -> None:
    await unlimited.ask(2)
    await unlimited.bank.refuse(ErrorCode.STOPPED, "stopped by ann")
    async with soon():
        assert await unlimited.stopped.get() == "stopped by ann"


async def test_a_limit_that_is_there_after_all_is_waited_for(unlimited: Desk) -> None:
    await unlimited.ask(2)
    await unlimited.bank.refuse(ErrorCode.BUDGET_EXHAUSTED)
    await heard(unlimited)
    asking = unlimited.ask(3)
    await unlimited.bank.refuse(ErrorCode.BUDGET_EXHAUSTED)
    with pytest.raises(BudgetExhausted):
        await asking
