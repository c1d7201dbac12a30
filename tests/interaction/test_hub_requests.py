"""Requests: work delegated to another agent, which ends exactly once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hubbub.network.log import Change
from hubbub.network.records import TurnEnded
from hubbub.protocol.turns import TurnEnd
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stop_harness import HandClock
from tests.interaction.stores import MoodyStore


async def pair(network: Network) -> tuple[Peer, Peer]:
    """A boss and a worker."""
    boss = await network.join("boss", "agent", turns=True)
    return boss, await network.join("worker", "agent", turns=True)


async def delegate_work(network: Network, deadline_s: float = 600) -> tuple[Peer, Peer, str, str]:
    """A boss delegates work to a worker: both peers, the request, the worker's turn."""
    boss, worker = await pair(network)
    sent = await boss.call("delegate", to="worker", task="count", deadline_s=deadline_s)
    task = await worker.event()
    return boss, worker, sent["id"], task["wake"]["turn"]


async def begin(agent: Peer, turn: str, *messages: str, thread: str = "dm.boss.worker") -> Any:
    start = {"id": turn, "thread_id": thread, "messages": list(messages)}
    return await agent.ask("begin_turn", start=start)


async def end(agent: Peer, turn: str, outcome: str = "finished", reason: str = "") -> None:
    await agent.call("end_turn", end={"id": turn, "outcome": outcome, "reason": reason})


def mark(event: Frame) -> Any:
    return event["message"]["request"]


def failed(request: str, outcome: str) -> dict[str, str]:
    return {"id": request, "kind": "failed", "outcome": outcome}


async def next_failure(peer: Peer) -> Frame:
    """The next event that fails a request, which wakes the requester."""
    while True:
        event = await peer.event()
        if event["message"].get("request", {}).get("kind") == "failed":
            assert event["wake"]["reason"] == "result"
            return event


async def list_requests(peer: Peer, **which: Any) -> list[str]:
    return [each["id"] for each in (await peer.call("list_requests", **which))["requests"]]


@pytest.mark.behaviour("H-50", "H-53")
async def test_a_result_wakes_the_requester_and_closes_the_request(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, turn = await delegate_work(network)
        ann, spy = await network.join("ann"), await network.join("spy", "agent")
        args = {"request": request, "status": "result", "text": "42"}
        assert (await spy.ask("report", **args))["code"] == "unknown_request"
        assert (await boss.ask("report", **args))["code"] == "forbidden"
        unknown = await worker.ask("report", **{**args, "request": "m99"})
        assert unknown["code"] == "unknown_request"
        await begin(worker, turn, request)
        report = await worker.call("report", cid="c1", cause=turn, **args)
        event = await boss.event()
        assert (event["message"]["id"], event["message"]["content"]) == (report["id"], "42")
        assert mark(event) == {"id": request, "kind": "result", "outcome": ""}
        assert (event["wake"]["reason"], event["wake"]["reply"]) == ("result", "optional")
        again = await worker.ask("report", cid="c1", cause=turn, **args)
        assert (again["value"]["id"], again["duplicate"]) == (report["id"], True)
        again = await worker.ask("report", request=request, status="failed", text="no")
        assert (again["code"], again["details"]["answer"]) == ("request_over", report["id"])
        await end(worker, turn)
        assert await boss.sync() == []
        second = await boss.call("delegate", to="worker", task="more")
        for peer in (ann, boss, worker):
            assert await list_requests(peer) == [second["id"]]
            every = (await peer.call("list_requests", state="all"))["requests"]
            assert [each["state"] for each in every] == ["open", "result"]
            assert (every[1]["answer"], every[1]["task"]) == (report["id"], "count")
        assert await list_requests(spy, state="all") == []
        # The latest of everyone can be others' only, so an owner can ask for its own.
        own = await ann.call("delegate", to="worker", task="mine")
        await boss.call("delegate", to="worker", task="even more")
        assert await list_requests(ann, own=True, limit=1) == [own["id"]]
        assert await list_requests(spy, own=True) == []


@pytest.mark.behaviour("H-51")
async def test_a_missed_deadline_wakes_the_requester(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        boss, worker, request, _turn = await delegate_work(network, deadline_s=0.02)
        event = await next_failure(boss)
        assert event["message"]["sender_kind"] == "system"
        assert mark(event) == failed(request, "timeout")
        late = await worker.ask("report", request=request, status="result", text="42")
        assert late["code"] == "request_over"
        (seen,) = await worker.sync()
        assert "wake" not in seen


@pytest.mark.behaviour("H-51")
@pytest.mark.parametrize("reports", [True, False])
async def test_an_unprocessed_result_of_a_subrequest_keeps_the_request_open(
    in_memory: Networks, reports: bool
) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await delegate_work(network)
        helper = await network.join("helper", "agent", turns=True)
        await begin(worker, turn, request)
        part = await worker.call("delegate", to="helper", task="count for me", cause=turn)
        await helper.event()
        args = {"status": "result", "text": "42"}
        await helper.call("report", request=part["id"], cause=part["id"], **args)
        result = await worker.event()
        await end(worker, turn)
        assert await list_requests(boss) == [request]
        turn = result["wake"]["turn"]
        await begin(worker, turn, result["message"]["id"])
        if reports:
            await worker.call("report", request=request, cause=turn, **args)
            expected = {"id": request, "kind": "result", "outcome": ""}
        else:
            await end(worker, turn)
            expected = failed(request, "no_report")
        assert mark(await boss.event()) == expected


@pytest.mark.behaviour("H-51")
async def test_a_turn_that_ends_without_a_report_fails_the_request(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await delegate_work(network)
        await begin(worker, turn, request)
        await end(worker, turn, reason="too hard")
        event = await next_failure(boss)
        assert mark(event) == failed(request, "no_report")
        assert "too hard" in event["message"]["text_representation"]


@pytest.mark.behaviour("H-51")
async def test_a_deadline_waits_while_people_decide_about_the_work(
    in_memory: Networks, tmp_path: Path
) -> None:
    file = config(network={"budgets": {"wall_clock": "10h"}})
    store, clock = f"sqlite:{tmp_path / 'log.db'}", HandClock()
    async with in_memory.start(file, store=store, clock=clock) as network:
        boss, worker, request, turn = await delegate_work(network, deadline_s=600)
        helper = await network.join("helper", "agent", turns=True)
        await begin(worker, turn, request)
        part = await worker.call("delegate", to="helper", task="1", cause=turn, deadline_s=500)
        turn = (await helper.event())["wake"]["turn"]
        await begin(helper, turn, part["id"], thread="dm.helper.worker")
        clock.wall += 100
        call: dict[str, Any] = {"call": "1.c1", "tool": "pay", "arguments": {}}
        approval = await helper.call("request_approval", turn=turn, **call)
        clock.wall += 3000
        network.hub.look()
        await network.quiet()
        assert await list_requests(boss) == [request], "as its part waits for a person"
    async with in_memory.start(file, store=store, clock=clock) as network:
        await network.quiet()
        ann = await network.join("ann")
        boss, worker = await pair(network)
        clock.wall += 3000
        network.hub.look()
        await network.quiet()
        assert await list_requests(ann) == [part["id"], request]
        await ann.call("approve", id=approval["id"])
        await network.quiet()
    async with in_memory.start(file, store=store, clock=clock) as network:
        await network.quiet()
        boss, worker = await pair(network)
        clock.wall += 399
        network.hub.look()
        await network.quiet()
        assert await list_requests(worker) == [part["id"], request]
        clock.wall += 2
        network.hub.look()
        assert mark(await next_failure(worker)) == failed(part["id"], "timeout")
        await network.quiet()
        assert await list_requests(boss) == [request]
        clock.wall += 100
        network.hub.look()
        event = await next_failure(boss)
        assert mark(event) == failed(request, "timeout")
        assert "6600 s passed" in event["message"]["text_representation"]


async def test_a_person_can_delegate_and_receives_the_report(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann = await network.join("ann")
        worker = await network.join("worker", "agent", turns=True)
        sent = await ann.call("delegate", to="worker", task="count")
        task = await worker.event()
        assert task["wake"]["reply"] == "required"
        assert (mark(task)["id"], mark(task)["kind"]) == ("", "task")
        assert mark(task)["deadline"]
        await worker.call("report", request=sent["id"], status="failed", text="cannot")
        event = await ann.event()
        assert mark(event) == failed(sent["id"], "reported")
        assert "wake" not in event


async def test_work_can_only_be_delegated_to_another_agent(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        boss, _worker = await pair(network)
        await network.join("ann")
        wrong = {"workr": "unknown_participant", "ann": "bad_request", "boss": "bad_request"}
        for to, code in wrong.items():
            assert (await boss.ask("delegate", to=to, task="x"))["code"] == code, to
        unknown = await boss.ask("delegate", to="workr", task="x")
        assert "'worker'" in unknown["message"] or "worker?" in unknown["message"]
        for wrong_deadline in (0, -1, 10**9):
            error = await boss.ask("delegate", to="worker", task="x", deadline_s=wrong_deadline)
            assert error["code"] == "bad_request"
        offered = {op["name"]: op["tool"] for op in boss.ready["operations"]}
        names = ["delegate", "report", "list_requests", "stop_waiting"]
        assert [offered[name] for name in names] == [True, True, False, False]


@pytest.mark.behaviour("H-50")
async def test_a_simultaneous_report_and_deadline_wake_only_once(in_memory: Networks) -> None:
    store, clock = MoodyStore(), HandClock()
    async with in_memory.start(store=store, clock=clock) as network:
        boss, worker, request, _turn = await delegate_work(network)
        store.gate.clear()
        report = await worker.post("report", request=request, status="result", text="42")
        await store.until_waiting()
        clock.set(-1_000_000)  # setting the clock does not extend the deadline
        clock.wall += 700
        network.hub.look()
        late = await worker.post("report", request=request, status="result", text="43")
        store.gate.set()
        assert (await worker.answer(report))["op"] == "result"
        assert (await worker.answer(late))["code"] == "request_over"
        await network.quiet()
        network.hub.look()
        await network.quiet()
        (event,) = await boss.sync()
        assert mark(event)["kind"] == "result"


@pytest.mark.behaviour("H-51")
async def test_a_request_fails_when_stopped_or_its_worker_is_not_woken(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await delegate_work(network)
        ann = await network.join("ann")
        await begin(worker, turn, request)
        await ann.call("stop", scope="turn", target=turn, reason="enough")
        event = await next_failure(boss)
        assert mark(event) == failed(request, "stopped")
        assert "enough" in event["message"]["text_representation"]
        dropped = await boss.call("delegate", to="worker", task="count")
        await ann.call("stop", scope="agent", target="worker", reason="enough")
        assert mark(await next_failure(boss)) == failed(dropped["id"], "stopped")
        turn = f"worker-{dropped['id']}"
        assert (await begin(worker, turn, dropped["id"]))["code"] in ("stopped", "turn_over")
        sent = await boss.call("delegate", to="worker", task="count")
        assert sent["not_woken"] == {"worker": "stopped"}
        assert mark(await next_failure(boss)) == failed(sent["id"], "stopped")


@pytest.mark.behaviour("H-52")
async def test_a_request_needs_hops_left_for_its_result(in_memory: Networks) -> None:
    file = config(network={"budgets": {"hops": 4}})
    async with in_memory.start(file) as network:
        ann = await network.join("ann")
        boss, worker = await pair(network)
        opening = await ann.say("boss", "go")  # hop 0
        first = await boss.call("delegate", to="worker", task="1", cause=opening["id"])  # hop 1
        answer = await worker.call("report", request=first["id"], status="result", text="1")
        again = await boss.call("delegate", to="worker", task="2", cause=first["id"])  # hop 2
        late = await boss.ask("delegate", to="worker", task="3", cause=answer["id"])  # hop 3
        assert (late["code"], "result" in late["message"]) == ("hop_limit", True)
        done = await worker.call("report", request=again["id"], status="result", text="2")
        last = await boss.say("ann", "2", cause=done["id"])  # hop 4, the last one
        message = await ann.call("read_message", id=last["id"])
        assert message["hop"] == 4


@pytest.mark.behaviour("H-52")
async def test_a_report_belongs_to_its_request_whatever_its_cause(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await delegate_work(network)
        helper = await network.join("helper", "agent")
        await begin(worker, turn, request)
        question = await worker.say("helper", "?", cause=turn)
        answer = await helper.say("worker", "!", cause=question["id"])
        for cause in (turn, answer["id"], "m1", None):
            more = {} if cause is None else {"cause": cause}
            error = await worker.ask("report", request="m77", status="result", text="42", **more)
            assert error["code"] == "unknown_request"
        args = {"request": request, "status": "result", "text": "42", "cause": answer["id"]}
        report = await worker.call("report", **args)
        message = await boss.call("read_message", id=report["id"])
        task = await boss.call("read_message", id=request)
        assert (message["hop"], message["interaction_id"]) == (1, task["interaction_id"])


# Restarts and failing stores ----------------------------------------------------------------


@pytest.mark.behaviour("H-54")
async def test_open_requests_survive_a_restart(in_memory: Networks, tmp_path: Path) -> None:
    store, clock = f"sqlite:{tmp_path / 'log.db'}", HandClock()
    async with in_memory.start(store=store, clock=clock) as network:
        boss, _worker, first, _turn = await delegate_work(network)
        second = (await boss.call("delegate", to="worker", task="late", deadline_s=300))["id"]
    clock.wall += 400
    async with in_memory.start(store=store, clock=clock) as network:
        await network.quiet()
        boss, worker = await pair(network)
        args = {"status": "result", "text": "42"}
        late = await worker.ask("report", request=second, **args)
        assert late["code"] == "request_over"
        await worker.call("report", request=first, **args)
        marks = [mark(event) for event in await boss.take(2)]
        assert marks == [failed(second, "timeout"), {"id": first, "kind": "result", "outcome": ""}]
    clock.wall += 1000
    async with in_memory.start(store=store, clock=clock) as network:
        await network.quiet()
        boss = await network.join("boss", "agent", turns=True)
        events = await boss.take(2)  # not acknowledged before, and there is no third
        assert [mark(event)["id"] for event in events] == [second, first]


@pytest.mark.behaviour("H-54")
async def test_a_request_fails_after_a_crash_if_its_turn_had_ended(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'log.db'}"
    async with in_memory.start(store=store) as network:
        _boss, worker, request, turn = await delegate_work(network)
        await begin(worker, turn, request)
        end = TurnEnd(id=turn, outcome="max_steps").model_dump_json()
        change = Change(lambda head: [TurnEnded(turn, 1.0, end)], lambda error: None)
        network.hub.kernel.log.change(change)  # as if the hub died right after the turn's end
        await network.quiet()
    async with in_memory.start(store=store) as network:
        boss = await network.join("boss", "agent", turns=True)
        assert mark(await next_failure(boss)) == failed(request, "no_report")


@pytest.mark.behaviour("H-54")
async def test_failed_writes_leave_requests_unchanged(in_memory: Networks) -> None:
    store, clock = MoodyStore(), HandClock()
    async with in_memory.start(store=store, clock=clock) as network:
        boss, worker = await pair(network)
        store.failing = 1
        error = await boss.ask("delegate", to="worker", task="count")
        assert error["code"] == "store_unavailable"
        assert await list_requests(boss) == []
        request = (await boss.call("delegate", to="worker", task="count"))["id"]
        args = {"request": request, "status": "result", "text": "42"}
        store.failing = 1
        assert (await worker.ask("report", **args))["code"] == "store_unavailable"
        assert await list_requests(boss) == [request]
        assert (await worker.ask("report", **args))["op"] == "result"
        await boss.sync()
        request = (await boss.call("delegate", to="worker", task="more", deadline_s=600))["id"]
        store.failing = 1
        clock.wall += 700
        network.hub.look()
        await network.quiet()
        assert store.failing == 0
        assert await list_requests(boss) == [request]
        clock.wall += 2
        network.hub.look()
        assert mark(await next_failure(boss)) == failed(request, "timeout"), "on the next try"
        assert await boss.sync() == []


@pytest.mark.behaviour("H-54")
@pytest.mark.parametrize("seed", range(3))
async def test_each_request_ends_once_under_random_events(in_memory: Networks, seed: int) -> None:
    chance, store, clock = random.Random(seed), MoodyStore(), HandClock()
    async with in_memory.start(store=store, clock=clock) as network:
        ann = await network.join("ann")
        boss, worker = await pair(network)
        turns = dict[str, str]()
        for n in range(4):
            sent = await ann.call("delegate", to="worker", task=f"{n}", deadline_s=60 * (n + 1))
            turn = (await worker.event())["wake"]["turn"]
            await begin(worker, turn, sent["id"], thread="dm.ann.worker")
            turns[sent["id"]] = turn
            sent = await boss.call("delegate", to="worker", task=f"{n}", deadline_s=60 * (n + 1))
            turns[sent["id"]] = f"worker-{sent['id']}"
        posted: list[tuple[Peer, str]] = []
        for _ in range(30):
            store.failing = chance.choice([0, 0, 1])
            id, turn = chance.choice(list(turns.items()))
            match chance.randrange(4):
                case 0:
                    args = {"request": id, "status": chance.choice(["result", "failed"])}
                    posted.append((worker, await worker.post("report", text="x", **args)))
                case 1:
                    end = {"id": turn, "outcome": "finished"}
                    posted.append((worker, await worker.post("end_turn", end=end)))
                case 2:
                    stop = {"scope": "turn", "target": turn}
                    posted.append((ann, await ann.post("stop", **stop)))
                case _:
                    clock.wall += chance.choice([1, 30])
                    network.hub.look()
            if chance.random() < 0.3:
                await network.quiet()
        for peer, ref in posted:
            await peer.answer(ref)
        store.failing = 0
        for _ in range(3):  # refused writes are tried again later
            clock.wall += 300
            network.hub.look()
            await network.quiet()
        assert await list_requests(ann) == []
        events = [*await ann.sync(), *await boss.sync()]
        ended = [mark(event)["id"] for event in events if event["message"].get("request")]
        assert sorted(ended) == sorted(turns)
        woken = [event for event in events if event.get("wake", {}).get("reason") == "result"]
        assert len(woken) == 4  # the agent's requests; people are not woken
