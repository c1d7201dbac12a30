"""Leave to ask a model, with a hub that answers when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import JsonValue, TypeAdapter

from hubbub.agents.models.base import Answer, OnDelta, Question
from hubbub.agents.turn.leasing import Experience, Leased, Leases, Terms
from hubbub.client import Client, MemoryTransport
from hubbub.client.backoff import Backoff
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
from hubbub.protocol.spending import Lease, Left
from hubbub.protocol.wire import Outlet
from tests.interaction.peers import eventually, soon
from tests.unit.agents.builders import ME, ready

LIMITS = LimitsInfo(
    frame_bytes=10**6,
    json_depth=100,
    text_bytes=10**6,
    calls_per_second=1e6,
    burst=10**6,
    channels=1,
    thread_depth=1,
    unacknowledged=256,
)
OPERATION = OperationInfo(
    name="lease_turn", permission="read", description="", input_schema={}, tool=False
)
TURN = "bot-m1"
frames: TypeAdapter[ClientFrame] = TypeAdapter(ClientFrame)
LOW = Left(limit="tokens", whose="interaction", used=95, of=100)


class Bank:
    """A hub that knows nothing but leases. Calls gather in `asked` until they are answered."""

    def __init__(self, *, knows: bool = True):
        self.asked: list[Call] = []
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
                self.asked.append(call)

    def drained(self) -> None: ...

    def lost(self) -> None:
        self._outlet = None

    def _write(self, frame: Model) -> None:
        if self._outlet is not None:
            self._outlet.write(frame.model_dump_json().encode())

    async def give(
        self, *, low: tuple[Left, ...] = (), limited: bool = True
    ) -> dict[str, JsonValue]:
        """Answer the next call with a lease; what it asked for."""
        call = await self._next()
        lease = Lease(turn=TURN, key=str(call.args["key"]), low=low, limited=limited)
        self._write(Result(ref=call.ref, value=lease.model_dump(mode="json")))
        return dict(call.args)

    async def refuse(
        self, code: ErrorCode, message: str = "no", *, temporary: bool = False
    ) -> None:
        call = await self._next()
        self._write(ErrorFrame(ref=call.ref, code=code, message=message, temporary=temporary))

    async def _next(self) -> Call:
        await eventually(lambda: bool(self.asked))
        return self.asked.pop(0)


class Scripted:
    """A model that answers at once, unless it is to fail."""

    name = "scripted"

    def __init__(self, failure: ModelError | None = None):
        self.questions: list[Question] = []
        self._failure = failure

    async def answer(self, question: Question, on_delta: OnDelta | None = None) -> Answer:
        self.questions.append(question)
        if self._failure is not None:
            raise self._failure
        return Answer(text="yes", notes=("noted",))

    async def close(self) -> None: ...


class Desk:
    """A turn's leases, and what has become of the turn."""

    def __init__(self, client: Client, experience: Experience | None = None):
        self.client = client
        self.halted: list[str] = []
        self.waited = 0
        quick = Backoff(first_s=0.0, most_s=0.0)
        self.leases = Leases(
            client, TURN, self._durable, self.halted.append, experience, backoff=quick
        )

    async def _durable(self) -> None:
        self.waited += 1

    def model(self, inner: Scripted, step: int = 1, *, tells: bool = True) -> Leased:
        return Leased(inner, self.leases, step, Terms(writes=100), tells)


@asynccontextmanager
async def opened(bank: Bank) -> AsyncIterator[Client]:
    async with Client(MemoryTransport(bank.attach), ME, "agent", turns=True) as client:
        yield client


def question(text: str = "well?", *, tokens: int | None = 50) -> Question:
    return Question(
        [{"role": "system", "content": "s"}, {"role": "user", "content": text}], (), tokens
    )


async def asked(model: Leased, what: Question | None = None) -> Answer:
    async with soon():
        return await model.answer(what or question())


async def heard(client: Client, bank: Bank) -> None:
    """The client has read all that the bank has answered by now."""
    probe = client.post("lease_turn", turn=TURN, key="probe", tokens=0)
    await bank.give()
    async with soon():
        await probe


@pytest.mark.behaviour("H-60")
async def test_the_estimate_is_what_is_read_and_may_be_written() -> None:
    bank, inner = Bank(), Scripted()
    async with opened(bank) as client:
        asking = asyncio.create_task(asked(Desk(client).model(inner, 3)))
        args = await bank.give()
        assert args == {"turn": TURN, "key": "3", "tokens": 150, "usd": 0.0}
        assert (await asking).text == "yes"


async def test_a_question_that_nobody_has_counted_is_counted() -> None:
    bank = Bank()
    async with opened(bank) as client:
        what = question("word " * 100, tokens=None)
        asking = asyncio.create_task(asked(Desk(client).model(Scripted()), what))
        tokens = (await bank.give())["tokens"]
        await asking
        assert isinstance(tokens, int)
        assert tokens > 200


def test_money_is_estimated_by_the_models_price_and_its_longest_answer() -> None:
    price = Price(input=1.0, output=10.0)
    terms = Terms.of(ModelConfig(model="m", max_output_tokens=500, price=price), 4096)
    assert terms.usd(1000) == pytest.approx(1000e-6 + 500 * 10e-6)
    assert Terms.of(ModelConfig(model="m"), 4096).writes == 4096
    assert Terms.of(ModelConfig(model="m")).usd(10**6) == 0.0


@pytest.mark.behaviour("H-60")
async def test_several_questions_for_one_step_have_keys_of_their_own() -> None:
    bank = Bank()
    async with opened(bank) as client:
        desk = Desk(client)
        for _ in range(3):
            asking = asyncio.create_task(asked(desk.model(Scripted(), 2)))
            await bank.give()
            await asking
        assert desk.leases.recorded(2) == ("2", "2.1", "2.2")
        assert desk.leases.recorded(1) == ()


@pytest.mark.behaviour("H-60")
async def test_what_a_failed_question_had_reserved_is_given_back_with_the_next_step() -> None:
    bank = Bank()
    async with opened(bank) as client:
        desk = Desk(client)
        asking = asyncio.create_task(asked(desk.model(Scripted(ModelError("down")), 10_001)))
        await bank.give()
        with pytest.raises(ModelError, match="down"):
            await asking
        assert desk.leases.recorded(2) == ("10001",)


@pytest.mark.behaviour("H-61")
async def test_a_question_beyond_the_budget_is_not_asked() -> None:
    bank, inner = Bank(), Scripted()
    async with opened(bank) as client:
        desk = Desk(client)
        asking = asyncio.create_task(asked(desk.model(inner)))
        await bank.refuse(ErrorCode.BUDGET_EXHAUSTED, "tokens are used up")
        with pytest.raises(BudgetExhausted, match="tokens are used up"):
            await asking
        assert not inner.questions


@pytest.mark.behaviour("H-60")
async def test_a_lease_is_judged_by_what_the_steps_before_it_really_took() -> None:
    bank = Bank()
    async with opened(bank) as client:
        desk = Desk(client)
        for step, waited in ((1, 0), (2, 1), (3, 1)):
            asking = asyncio.create_task(asked(desk.model(Scripted(), step)))
            await bank.give()
            await asking
            assert desk.waited == waited
            if step == 1:
                desk.leases.recorded(1)  # it is recorded


@pytest.mark.behaviour("H-60")
async def test_what_is_refused_for_now_is_asked_for_again() -> None:
    bank = Bank()
    async with opened(bank) as client:
        asking = asyncio.create_task(asked(Desk(client).model(Scripted())))
        await bank.refuse(ErrorCode.RATE_LIMITED, temporary=True)
        await bank.refuse(ErrorCode.STORE_UNAVAILABLE, temporary=True)
        await bank.give()
        assert (await asking).text == "yes"


@pytest.mark.behaviour("H-63")
@pytest.mark.parametrize(
    "code", [ErrorCode.STOPPED, ErrorCode.TAKEN_OVER, ErrorCode.TURN_OVER], ids=str
)
async def test_a_turn_at_its_end_asks_nothing_and_is_told(code: ErrorCode) -> None:
    bank, inner = Bank(), Scripted()
    async with opened(bank) as client:
        desk = Desk(client)
        asking = asyncio.create_task(asked(desk.model(inner)))
        await bank.refuse(code, "stopped by ann")
        await eventually(lambda: desk.halted == ["stopped by ann"])
        assert not asking.done(), "whoever is told cancels it"
        asking.cancel()
        await asyncio.wait({asking})
        assert not inner.questions


async def test_any_other_refusal_is_the_models_failure() -> None:
    bank = Bank()
    async with opened(bank) as client:
        asking = asyncio.create_task(asked(Desk(client).model(Scripted())))
        await bank.refuse(ErrorCode.UNKNOWN_TURN, "there is no such turn")
        with pytest.raises(ModelError, match="no leave to ask the model: there is no such turn"):
            await asking


async def test_a_hub_that_knows_no_leases_is_not_asked() -> None:
    bank, inner = Bank(knows=False), Scripted()
    async with opened(bank) as client:
        desk = Desk(client)
        await asked(desk.model(inner))
        assert (len(inner.questions), desk.leases.recorded(1), bank.asked) == (1, (), [])


@pytest.mark.behaviour("H-62")
async def test_what_is_left_stands_at_the_end_of_the_question() -> None:
    bank, inner = Bank(), Scripted()
    async with opened(bank) as client:
        asking = asyncio.create_task(asked(Desk(client).model(inner)))
        await bank.give(low=(LOW,))
        answer = await asking
        system, user = inner.questions[0].messages
        assert system["content"] == "s"
        head, _, line = (user["content"] or "").partition("\n\n")
        assert (head, line[:28]) == ("well?", "Little is left for this task")
        assert answer.notes == (f"the model was told: {line}", "noted")


async def test_who_makes_a_summary_is_not_told() -> None:
    bank, inner = Bank(), Scripted()
    async with opened(bank) as client:
        asking = asyncio.create_task(asked(Desk(client).model(inner, tells=False)))
        await bank.give(low=(LOW,))
        await asking
        assert inner.questions[0] == question()


class TestWithoutLimits:
    """Where neither tokens nor money are limited."""

    @asynccontextmanager
    async def desk(self, bank: Bank) -> AsyncIterator[Desk]:
        """A turn that has heard so with its first lease."""
        async with opened(bank) as client:
            desk = Desk(client)
            asking = asyncio.create_task(asked(desk.model(Scripted())))
            await bank.give(limited=False)
            await asking
            yield desk

    @pytest.mark.behaviour("H-60")
    async def test_a_question_takes_its_lease_and_does_not_wait_for_it(self) -> None:
        bank = Bank()
        async with self.desk(bank) as desk:
            await asked(desk.model(Scripted(), 2))
            assert desk.leases.recorded(2) == ("2",)
            assert (await bank.give(limited=False))["key"] == "2"

    @pytest.mark.behaviour("H-63")
    async def test_a_refusal_that_comes_late_ends_the_turn_all_the_same(self) -> None:
        bank = Bank()
        async with self.desk(bank) as desk:
            await asked(desk.model(Scripted(), 2))
            await bank.refuse(ErrorCode.STOPPED, "stopped by ann")
            await eventually(lambda: desk.halted == ["stopped by ann"])

    async def test_what_it_learns_late_is_told_with_the_next_question(self) -> None:
        bank, inner = Bank(), Scripted()
        async with self.desk(bank) as desk:
            await asked(desk.model(inner, 2))
            await bank.give(low=(LOW,), limited=False)
            await heard(desk.client, bank)
            await asked(desk.model(inner, 3))
            assert "Little is left" not in str(inner.questions[0].messages)
            assert "Little is left" in str(inner.questions[1].messages)

    async def test_a_limit_that_is_there_after_all_is_waited_for(self) -> None:
        bank = Bank()
        async with self.desk(bank) as desk:
            await asked(desk.model(Scripted(), 2))
            await bank.refuse(ErrorCode.BUDGET_EXHAUSTED)
            await heard(desk.client, bank)
            asking = asyncio.create_task(asked(desk.model(Scripted(), 3)))
            await bank.refuse(ErrorCode.BUDGET_EXHAUSTED)
            with pytest.raises(BudgetExhausted):
                await asking
