"""Budget that turns reserve before a model call, and usage counted after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import pytest

from hubbub.errors import OperationError
from hubbub.network.queries import Query, TurnById
from tests.interaction.accounts import Worker, limited
from tests.interaction.peers import Networks, Peer, eventually
from tests.interaction.stop_harness import HandClock, kinds, notices, settled
from tests.interaction.stores import MoodyStore

T = TypeVar("T")


def exhausted(answer: Any) -> list[tuple[str, str, float, float]]:
    """The exhausted budgets that a refused reservation lists: limit, whose, used, of."""
    assert answer["op"] == "error", answer
    assert answer["code"] == "budget_exhausted"
    left = answer["details"]["left"]
    return [(each["limit"], each["whose"], each["used"], each["of"]) for each in left]


async def post_step(worker: Worker, tokens: int) -> str:
    """Send the first step without waiting for its result; the call's ref."""
    step = {"n": 1, "tokens_in": tokens}
    return await worker.peer.post("record_step", turn=worker.turn, step=step)


async def used(reader: Peer, worker: Worker) -> dict[str, float]:
    budget = await reader.call("read_budget", interaction=worker.interaction)
    amounts: dict[str, float] = budget["used"]
    return amounts


@pytest.mark.behaviour("H-7")
async def test_a_model_call_must_fit_into_the_interaction_budget(in_memory: Networks) -> None:
    file = limited(tokens=100, usd=0.5)
    async with in_memory.start(file) as network:
        ann = await network.join("ann")
        worker = await Worker.woken(network, "a", ann)
        await worker.step(1, 30, 0.1)
        assert (await worker.reserve("2", 30, 0.2))["op"] == "result"
        for key, tokens, usd in (("t", 40, 0.0), ("u", 0, 0.2)):
            assert (await worker.reserve(key, tokens, usd))["op"] == "result"
            await worker.reserve(key)  # released
        assert [limit for limit, *_ in exhausted(await worker.reserve("3", 1, 0.21))] == ["usd"]
        answer = await worker.reserve("3", 41)
        assert exhausted(answer) == [("tokens", "interaction", 60, 100)]
        left = "tokens of the interaction: 60 of 100 used or reserved"
        assert answer["message"] == f"too little is left for this model call ({left})"
        answer = await worker.reserve("3", 41, 0.21)
        assert answer["message"].endswith(
            f"({left}; usd of the interaction: $0.3 of $0.5 used or reserved)"
        )
        assert kinds(await notices(network, ann)) == ["budget_usd", "budget_tokens"]
        budget = await ann.call("read_budget", interaction=worker.interaction)
        assert sorted(budget["reached"]) == ["tokens", "usd"]


@pytest.mark.behaviour("H-7")
async def test_a_model_call_must_fit_into_each_daily_budget(in_memory: Networks) -> None:
    for whose in ("network", "thread", "agent"):
        clock = HandClock()
        file = limited(daily={whose: {"tokens": 100}})
        async with in_memory.start(file, clock=clock) as network:
            ann = await network.join("ann")
            worker = await Worker.woken(network, "a", ann)
            await worker.step(1, 30)
            answer = await worker.reserve("2", 71)
            assert exhausted(answer) == [("tokens", whose, 30, 100)]
            assert f"tokens of the {whose} today: 30 of 100" in answer["message"]
            (notice,) = await notices(network, ann)
            assert (notice["thread_id"], notice["content"]["day"]) == ("dm.a.ann", "2027-01-15")
            assert (await worker.reserve("2", 70))["op"] == "result"
            assert exhausted(await worker.reserve("3", 1)) == [("tokens", whose, 100, 100)]
            await worker.step(2, 10, settles=("2",))
            assert (await worker.reserve("3", 60))["op"] == "result"


@pytest.mark.behaviour("H-7")
async def test_turns_of_one_interaction_share_its_budget(in_memory: Networks) -> None:
    async with in_memory.start(limited(tokens=100)) as network:
        ann = await network.join("ann")
        second = await network.join("b", "agent", turns=True)
        first = await Worker.woken(network, "a", ann)
        other = Worker(second, "b", await first.peer.say("b", "on", cause=first.turn))
        await other.begin()
        assert (await first.reserve("1", 60))["op"] == "result"
        assert exhausted(await other.reserve("1", 41)) == [("tokens", "interaction", 60, 100)]
        assert (await other.reserve("1", 40))["op"] == "result"
        assert (await used(ann, first))["tokens"] == 100


@pytest.mark.behaviour("H-7")
async def test_a_reservation_reports_budgets_that_run_low(in_memory: Networks) -> None:
    clock = HandClock()
    file = limited(tokens=100, wakes=10, daily={"agent": {"usd": 1.0}})
    async with in_memory.start(file, clock=clock) as network:
        worker = await Worker.woken(network, "a", await network.join("ann"))
        plenty = await worker.reserve("1", 80, 0.8)
        assert "low" not in plenty["value"] or plenty["value"]["low"] == []
        little = await worker.reserve("1", 81, 0.81)
        low = [(each["limit"], each["whose"], each["used"]) for each in little["value"]["low"]]
        assert low == [("tokens", "interaction", 81), ("usd", "agent", 0.81)]
        clock.wall += 1441  # of 30 minutes
        late = await worker.reserve("1", 1)
        assert [each["limit"] for each in late["value"]["low"]] == ["wall_clock"]


@pytest.mark.behaviour("H-7")
@pytest.mark.parametrize(
    ("budgets", "is_limited"),
    [
        ({"wakes": 9}, False),
        ({"tokens": 100}, True),
        ({"usd": 1.0}, True),
        ({"daily": {"agent": {"tokens": 100}}}, True),
    ],
)
async def test_a_reservation_reports_whether_tokens_or_money_are_limited(
    in_memory: Networks, budgets: dict[str, Any], is_limited: bool
) -> None:
    async with in_memory.start(limited(**budgets)) as network:
        worker = await Worker.woken(network, "a", await network.join("ann"))
        assert (await worker.reserve("1", 1))["value"]["limited"] is is_limited


@pytest.mark.behaviour("H-7", "H-8")
async def test_a_reservation_holds_until_replaced_settled_or_abandoned(in_memory: Networks) -> None:
    file = limited(tokens=100, daily={"network": {"tokens": 100}})
    async with in_memory.start(file) as network:
        ann = await network.join("ann")
        worker = await Worker.woken(network, "a", ann)
        await worker.reserve("1", 90)
        assert (await worker.reserve("1", 60))["op"] == "result", "it replaces the previous one"
        exhausted(await worker.reserve("1", 101))
        assert (await used(ann, worker))["tokens"] == 60, "a refusal keeps the previous reservation"
        await worker.reserve("1.1", 30)
        await worker.step(1, 25, settles=("1", "1.1", "unknown"))
        assert (await used(ann, worker))["tokens"] == 25
        await worker.reserve("2", 60)
        other = await network.join("b", "agent")
        for turn in (worker.turn, "b-m99"):
            answer = await other.ask("reserve_budget", turn=turn, key="1", tokens=1)
            assert answer["code"] == "bad_request"
        await worker.peer.close()
        await network.gone("a")
        assert (await used(ann, worker))["tokens"] == 25
        spent = await ann.call("read_spending")
        assert [each["used"] for each in spent["today"]] == [25]
        worker.peer = await network.join("a", "agent", turns=True)
        await worker.reserve("3", 60)
        await worker.end()
        assert (await used(ann, worker))["tokens"] == 25
        late = await worker.reserve("4", 1)
        assert late["code"] == "turn_over"
        worker = Worker(worker.peer, "a", await ann.say("a", "go"))
        await worker.begin()
        await worker.reserve("1", 60)
        await ann.call("stop", scope="turn", target=worker.turn)
        await settled(network)
        assert (await used(ann, worker))["tokens"] == 0


@pytest.mark.behaviour("H-7")
async def test_a_reservation_does_not_wait_for_the_disk(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(limited(tokens=100), store=store) as network:
        worker = await Worker.woken(network, "a", await network.join("ann"))
        store.gate.clear()
        step = await post_step(worker, 10)
        assert (await worker.reserve("2", 90))["op"] == "result", "the step being written counts"
        assert exhausted(await worker.reserve("3", 1)) == [("tokens", "interaction", 100, 100)]
        store.gate.set()
        assert (await worker.peer.answer(step))["op"] == "result"


@pytest.mark.behaviour("H-9")
async def test_turns_and_steps_count_once_and_only_if_stored(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(limited(tokens=100), store=store) as network:
        ann = await network.join("ann")
        peer = await network.join("a", "agent", turns=True)
        worker = Worker(peer, "a", await ann.say("a", "go"))
        store.failing = 1
        with pytest.raises(OperationError, match="disk is full"):
            await worker.begin()
        await worker.begin()
        for tokens in (10, 50, 20):
            await worker.step(1, tokens)
        await worker.reserve("2", 60)
        store.failing = 1
        assert (await worker.step(2, 50, settles=("2",)))["code"] == "store_unavailable"
        assert (await used(ann, worker))["tokens"] == 80, "reserved until the step is stored"
        await worker.step(2, 50, settles=("2",))
        assert (await used(ann, worker))["tokens"] == 70
        budget = await ann.call("read_budget", interaction=worker.interaction)
        assert budget["sums"]["turns"] == 1
        total = (await ann.call("read_spending"))["total"]
        assert total["tokens_in"] + total["tokens_out"] == 70
        await worker.end()
        await worker.step(2, 51)
        assert (await used(ann, worker))["tokens"] == 71, "late steps count"


@pytest.mark.behaviour("H-9")
async def test_a_step_replaced_before_its_write_fails_counts_once(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(limited(), store=store) as network:
        ann = await network.join("ann")
        worker = await Worker.woken(network, "a", ann)
        await worker.step(1, 10)
        store.gate.clear()
        store.waiting.clear()
        first = await post_step(worker, 70)
        await store.until_waiting()
        second = await post_step(worker, 30)
        await eventually(lambda: network.hub.kernel.log.waiting > 0)
        store.failing = 1
        store.gate.set()
        assert (await worker.peer.answer(first))["code"] == "store_unavailable"
        assert (await worker.peer.answer(second))["op"] == "result"
        total = (await ann.call("read_spending"))["total"]
        assert (total["tokens_in"], total["tokens_out"]) == (30, 0)
        budget = await ann.call("read_budget", interaction=worker.interaction)
        assert budget["sums"]["tokens_in"] == 30


class ReorderingStore(MoodyStore):
    """The first reader of a turn queues again, so the next reader is answered first."""

    slow = True

    async def read(self, query: Query[T]) -> T:
        slow = self.slow and isinstance(query, TurnById)
        self.slow = self.slow and not slow
        result = await super().read(query)
        for _ in range(3 if slow else 0):
            result = await super().read(query)
        return result


@pytest.mark.behaviour("H-9")
async def test_the_later_of_two_reservations_with_one_key_holds_on_a_slow_store(
    in_memory: Networks, tmp_path: Path
) -> None:
    path, file = f"sqlite:{tmp_path / 'hub.db'}", limited(tokens=100)
    async with in_memory.start(file, store=path) as network:
        worker = await Worker.woken(network, "a", await network.join("ann"))
    async with in_memory.start(file, store=ReorderingStore(path)) as network:
        ann = await network.join("ann")
        worker.peer = await network.join("a", "agent", turns=True)
        refs = [
            await worker.peer.post("reserve_budget", turn=worker.turn, key="1", tokens=tokens)
            for tokens in (10, 60)
        ]
        for ref in refs:
            assert (await worker.peer.answer(ref))["op"] == "result"
        assert (await used(ann, worker))["tokens"] == 60


@pytest.mark.behaviour("H-9")
async def test_the_usage_of_a_turn_survives_a_restart_of_the_hub(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, file = f"sqlite:{tmp_path / 'hub.db'}", limited(tokens=100)
    async with in_memory.start(file, store=store) as network:
        worker = await Worker.woken(network, "a", await network.join("ann"))
        await worker.step(1, 40)
    async with in_memory.start(file, store=store) as network:
        ann = await network.join("ann")
        worker.peer = await network.join("a", "agent", turns=True)
        exhausted(await worker.reserve("2", 61))
        assert (await worker.reserve("2", 60))["op"] == "result"
        await worker.step(1, 50)
        assert (await worker.begin())["attempts"] == 2
        await worker.step(2, 10, settles=("2",))
        budget = await ann.call("read_budget", interaction=worker.interaction)
        assert (budget["used"]["tokens"], budget["sums"]["turns"]) == (60, 1)
    async with in_memory.start(file, store=store) as network:
        ann = await network.join("ann")
        budget = await ann.call("read_budget", interaction=worker.interaction)
        assert budget["reached"] == ["tokens"], "by the refused reservation"
