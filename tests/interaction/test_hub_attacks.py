"""A malicious or careless peer affects only its own budgets, turns and threads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Verdict
from hubbub.network.log import Change
from hubbub.network.queries import Query, TurnById
from hubbub.network.records import Record, TurnEnded
from hubbub.protocol.messages import Draft
from hubbub.protocol.turns import TurnEnd
from tests.interaction.accounts import limited
from tests.interaction.peers import Frame, Network, Networks, soon
from tests.interaction.stop_harness import at_work, begin, beginning, notices, settled, woken
from tests.interaction.stores import MoodyStore

T = TypeVar("T")


class SlowTurns(MoodyStore):
    """Reads of turns wait while `turns_gate` is closed. Everything else works."""

    def __init__(self, place: str = "sqlite::memory:") -> None:
        super().__init__(place)
        self.turns_gate = asyncio.Event()
        self.turns_gate.set()
        self.held = asyncio.Event()
        """Set when a read waits."""
        self.passing = 0
        """The number of reads that pass the closed gate."""

    async def read(self, query: Query[T]) -> T:
        if isinstance(query, TurnById) and not self.turns_gate.is_set():
            self.passing -= 1
            if self.passing < 0:
                self.held.set()
                await self.turns_gate.wait()
        return await super().read(query)


def start(agent: str, message: Frame) -> dict[str, Any]:
    """A turn of the agent for a message, whether or not the message woke it."""
    thread, id = message["thread_id"], message["id"]
    return {"id": f"{agent}-{id}", "thread_id": thread, "messages": [id]}


CALL: dict[str, Any] = {"call": "1", "tool": "pay", "arguments": {}}


@pytest.mark.behaviour("H-7", "H-27")
async def test_an_agent_gets_no_turn_or_budget_from_a_message_that_did_not_wake_it(
    in_memory: Networks,
) -> None:
    file = limited(tokens=100, breaker={"turns": 1, "within": 60})
    async with in_memory.start(file) as network:
        ann, eve = await network.join("ann"), await network.join("eve", "agent", turns=True)
        await network.join("bob")
        first, second = [await ann.say("bob", f"between us {n}") for n in range(2)]
        await ann.call("broadcast_text_message", text="hello", mentions=[])
        posted = await ann.call("post_to_channel", channel="desk", text="no one in particular")
        turn = f"eve-{first['id']}"
        errors = [
            await eve.ask("reserve_budget", turn=turn, key="1", tokens=99),
            await eve.ask("reserve_budget", turn=turn, key="2", tokens=10**9),
            await eve.ask("reserve_budget", turn=f"eve-{posted['id']}", key="1", tokens=1),
            await eve.ask("begin_turn", start=start("eve", first)),
            await eve.ask("begin_turn", start=start("eve", second)),
            await eve.ask("record_step", turn=turn, step={"n": 1, "tokens_in": 10**9}),
        ]
        assert [error.get("code") for error in errors] == ["unknown_turn"] * 6
        budget = await ann.call("read_budget", interaction=f"i{first['seq']}")
        assert (budget["used"]["tokens"], budget["reached"]) == (0, [])
        assert await notices(network, ann) == []
        assert (await ann.call("list_breakers"))["breakers"] == []


@pytest.mark.behaviour("H-47")
async def test_an_approval_is_announced_only_in_the_thread_that_woke_its_agent(
    in_memory: Networks,
) -> None:
    async with in_memory.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        eve = await network.join("eve", "agent", turns=True)
        await ann.say("bob", "between us")
        await bob.sync()
        for place in ("dm.ann.bob", "broadcast", "no thread at all"):
            await ann.say("eve", "go")
            event = await woken(eve)
            await eve.call("begin_turn", start=beginning(event) | {"thread_id": place})
            turn = event["wake"]["turn"]
            approval = await eve.call("request_approval", turn=turn, **CALL)
            assert approval["thread_id"] == "dm.ann.eve"
            assert await notices(network, bob) == []
            (notice,) = await notices(network, ann)
            assert notice["thread_id"] == "dm.ann.eve"


SCOPES = [
    {"scope": "turn", "target": "calc-m1"},
    {"scope": "agent", "target": "calc"},
    {"scope": "thread", "target": "direct_calc"},
    {"scope": "all"},
]


@pytest.mark.behaviour("H-24")
@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope["scope"])
async def test_a_stopped_turn_cannot_begin_however_slow_the_disk_is(
    in_memory: Networks, scope: dict[str, str]
) -> None:
    for reads in (0, 1):
        store = SlowTurns()
        async with in_memory.start(store=store) as network:
            ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
            await ann.say("calc", "2+2?")
            event = await woken(calc)
            store.passing = reads
            store.turns_gate.clear()
            begun = await calc.post("begin_turn", start=beginning(event))
            async with soon():
                await store.held.wait()
            await ann.call("stop", **scope)
            store.turns_gate.set()
            assert (await calc.answer(begun)).get("code") in ("turn_over", "stopped")
            await settled(network)
            assert list(network.hub.kernel.state.turns) == []
            (turn,) = (await ann.call("list_turns"))["turns"]
            assert turn["outcome"] == "cancelled"


@pytest.mark.behaviour("Y-3")
async def test_an_end_that_overtakes_its_beginning_is_refused(in_memory: Networks) -> None:
    """As when a rate limit delays the beginning and lets the end pass."""
    store = SlowTurns()
    async with in_memory.start(store=store) as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        await ann.say("calc", "2+2?")
        start = beginning(await woken(calc))
        end = {"id": start["id"], "outcome": "finished"}
        await calc.call("reserve_budget", turn=start["id"], key="1", tokens=1)
        store.gate.clear()
        ended = await calc.post("end_turn", end=end)
        await store.until_waiting()
        store.turns_gate.clear()
        begun = await calc.post("begin_turn", start=start)
        async with soon():
            await store.held.wait()
        store.passing = 1
        store.gate.set()
        early = await calc.answer(ended)
        assert early["code"] == "unknown_turn"
        store.turns_gate.set()
        assert (await calc.answer(begun))["op"] == "result"
        await calc.call("end_turn", end=end)
        assert (await calc.call("read_turn", id=start["id"]))["end"]["outcome"] == "finished"


@pytest.mark.behaviour("H-46")
@pytest.mark.parametrize("scope", ["turn", "agent"])
async def test_an_approved_call_cannot_start_while_its_turn_is_being_stopped(
    network: Network, moody: MoodyStore, scope: str
) -> None:
    ann, calc, turn = await at_work(network)
    approval = await calc.call("request_approval", turn=turn, **CALL)
    await ann.call("approve", id=approval["id"])
    moody.gate.clear()
    target = turn if scope == "turn" else "calc"
    stopping = await ann.post("stop", scope=scope, target=target)
    await moody.until_waiting()
    starting = await calc.post("start_approved", id=approval["id"])
    await calc.call("list_stops")  # the hub has read the call before it
    moody.gate.set()
    await ann.answer(stopping)
    error = await calc.answer(starting)
    assert error.get("code") in ("stopped", "turn_over", "not_pending"), error
    await settled(network)
    after = await ann.call("read_approval", id=approval["id"])
    assert after["state"] == "cancelled"


@pytest.mark.behaviour("H-20")
async def test_an_ended_turn_cannot_begin_again(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
        begun = {"id": turn, "thread_id": "dm.ann.calc", "messages": ["m1"]}
        await calc.ask("begin_turn", start=begun)
        await settled(network)
        assert list(network.hub.kernel.state.turns) == []
        done = await ann.call("stop", scope="agent", target="calc")
        assert (done["turns"], done["wakes"]) == (0, 0)


@pytest.mark.behaviour("H-55")
async def test_the_number_of_awaited_answers_is_limited(in_memory: Networks) -> None:
    async with in_memory.start(limited()) as network:
        await network.join("ann")
        eve = await network.join("eve", "agent")
        refs = [
            await eve.post("send_text_message", to="ann", text=str(n), awaits=True)
            for n in range(300)
        ]
        answers = [await eve.answer(ref) for ref in refs]
        assert answers[0]["op"] == "result"
        assert answers[-1].get("code") == "limit", answers[-1]
        assert len(network.hub.services.requests.waits.held) <= 256


class RejectsNotices(Mod):
    """Rejects the hub's own messages."""

    name = "hostile"

    def on_message(self, draft: Draft) -> Verdict:
        return Reject("no notices") if draft.sender_kind == "system" else PASS


class FailsOnNotices(RejectsNotices):
    """Raises an exception at the hub's own messages."""

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind == "system":
            raise ValueError("broken")
        return PASS


HOSTILE_MODS = pytest.mark.parametrize("mod", [RejectsNotices, FailsOnNotices])


@HOSTILE_MODS
@pytest.mark.behaviour("H-20", "H-25", "H-47", "H-51")
async def test_approvals_stops_and_requests_work_when_a_mod_blocks_notices(
    in_memory: Networks, mod: type[Mod]
) -> None:
    async with in_memory.start(mods=[mod(ModConfig())]) as network:
        ann, calc, turn = await at_work(network)
        approval = await calc.call("request_approval", turn=turn, **CALL)
        assert (await ann.signal("approval"))["data"]["id"] == approval["id"]
        assert (await ann.call("approve", id=approval["id"]))["state"] == "approved"
        await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
        await ann.say("calc", "still there?")
        turn = await begin(calc)
        assert (await ann.call("stop", scope="turn", target=turn))["turns"] == 1
        # A verdict applies to the hub too. A defect of a mod does not suppress notices.
        codes = [message["content"]["code"] for message in await notices(network, ann)]
        assert ("stopped" in codes) if mod is FailsOnNotices else codes == []
        boss = await network.join("boss", "agent", turns=True)
        first = await boss.call("delegate", to="calc", task="do")
        turn = await begin(calc)
        await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
        await settled(network)
        late = await calc.ask("report", request=first["id"], status="result", text="42")
        assert late["code"] == "request_over"
        await ann.call("stop", scope="agent", target="calc")
        await boss.call("delegate", to="calc", task="do more")
        await settled(network)
        requests = (await ann.call("list_requests", state="all"))["requests"]
        states = [(request["state"], request["outcome"]) for request in requests]
        assert states == [("failed", "stopped"), ("failed", "no_report")]


@pytest.mark.behaviour("H-50")
async def test_a_report_cannot_name_a_cause_that_its_worker_never_received(
    in_memory: Networks,
) -> None:
    async with in_memory.start() as network:
        ann, _ = await network.join("ann"), await network.join("bob")
        await ann.say("bob", "between us")
        a, b = await network.join("a", "agent"), await network.join("b", "agent")
        request = await a.call("delegate", to="b", task="do")
        report = {"request": request["id"], "status": "result", "text": "4"}
        for cause in ("m999", "m1", "b-m999", "b-m1"):
            error = await b.ask("report", cause=cause, **report)
            assert error.get("code") == "unknown_message", error


@pytest.mark.behaviour("H-54")
async def test_a_report_during_the_start_of_a_hub_does_not_affect_other_requests(
    in_memory: Networks, tmp_path: Path
) -> None:
    place = f"sqlite:{tmp_path / 'log.db'}"
    async with in_memory.start(store=place) as network:
        a = await network.join("a", "agent")
        ends: list[Record] = []
        for name in ("b", "c"):
            worker = await network.join(name, "agent", turns=True)
            await a.call("delegate", to=name, task="do")
            turn = await begin(worker)
            end = TurnEnd(id=turn, outcome="finished").model_dump_json()
            ends.append(TurnEnded(turn, 1.0, end))
        # As if the hub died right after the turns' ends.
        network.hub.kernel.log.change(Change(lambda head: ends, lambda error: None))
        await network.quiet()
    slow = SlowTurns(place)
    slow.turns_gate.clear()
    async with in_memory.start(store=slow) as network:
        async with soon():
            await slow.held.wait()
        b = await network.join("b", "agent")
        await b.call("report", request="m1", status="result", text="late")
        slow.turns_gate.set()
        a = await network.join("a", "agent")
        assert (await a.event())["message"]["request"]["kind"] == "result"
        failed = {"id": "m2", "kind": "failed", "outcome": "no_report"}
        assert (await a.event())["message"]["request"] == failed


@HOSTILE_MODS
@pytest.mark.behaviour("H-1", "H-7")
async def test_limits_hold_when_a_mod_blocks_notices(in_memory: Networks, mod: type[Mod]) -> None:
    cases: dict[str, dict[str, Any]] = {
        "budget_wakes": {"wakes": 1},
        "daily_network": {"daily": {"network": {"wakes": 1}}},
        "loop_limit": {"loop_limit": {"wakes": 1, "within": 60}},
        "budget_exhausted": {"tokens": 1},
    }
    for code, limits in cases.items():
        async with in_memory.start(limited(**limits), mods=[mod(ModConfig())]) as network:
            ann, calc, turn = await at_work(network)
            bot = await network.join("bot", "agent")
            codes = [(await calc.ask("reserve_budget", turn=turn, key="1", tokens=2)).get("code")]
            for _ in range(3):
                codes += (await calc.say("bot", "?", cause=turn)).get("not_woken", {}).values()
                codes += (await bot.say("calc", "?")).get("not_woken", {}).values()
            assert code in codes, (code, codes)
            await ann.say("calc", "still there?")


async def test_the_sum_of_huge_costs_stays_a_number(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        for n in range(1, 4):
            await calc.ask("record_step", turn=turn, step={"n": n, "cost_usd": 1.7e308})
        spent = await ann.call("read_spending")
        assert isinstance(spent["total"]["usd"], float), spent


async def test_only_the_asker_of_an_awaited_answer_is_exempt_from_the_loop_limit(
    in_memory: Networks,
) -> None:
    async with in_memory.start(limited(loop_limit={"wakes": 3, "within": 60})) as network:
        a, b, _ = [await network.join(name, "agent") for name in "abc"]
        woke = 0
        for n in range(6):
            await a.say("b", "?", awaits=True)
            sent = await b.say(["a", "c"], str(n))
            woke += "c" not in sent.get("not_woken", {})
        assert woke == 3


async def test_turns_that_never_end_do_not_block_other_agents(in_memory: Networks) -> None:
    async with in_memory.start(limited(tokens=1000)) as network:
        network.hub.services.budgets.book._size = 2
        ann = await network.join("ann")
        eve = await network.join("eve", "agent", turns=True)
        for _ in range(4):
            await ann.say("eve", "go")
            await begin(eve)
        good = await network.join("good", "agent", turns=True)
        sent = await ann.say("good", "go")
        answer = await good.ask("send_text_message", to="eve", text="x", cause=sent["id"])
        assert answer["op"] == "result", answer


async def test_a_stopped_agent_cannot_stream_text(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, _ = await at_work(network)
        await ann.call("stop", scope="agent", target="calc")
        partial = {"type": "partial", "thread_id": "dm.ann.calc", "data": {"text": "I speak"}}
        await calc.send(op="signal", **partial)
        await calc.call("list_stops")
        await ann.sync()
        assert not any(signal["type"] == "partial" for signal in ann.signals)
