"""Requests: work asked of another agent, and its one end."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.api import Mod, ModConfig, Pass, Reject, Verdict
from hubbub.network.log import Change
from hubbub.network.records import TurnEnded
from hubbub.protocol.messages import Draft
from hubbub.protocol.turns import TurnEnd
from tests.interaction.hand_clock import HandClock
from tests.interaction.peers import Frame, Network, Networks, Peer, config, soon
from tests.interaction.stores import MoodyStore


async def asked(network: Network, deadline_s: float = 600) -> tuple[Peer, Peer, str, str]:
    """A boss that has asked a worker for something: both, the request, the worker's turn."""
    boss = await network.join("boss", "agent", turns=True)
    worker = await network.join("worker", "agent", turns=True)
    sent = await boss.call("delegate", to="worker", task="count", deadline_s=deadline_s)
    task = await worker.event()
    return boss, worker, sent["id"], task["wake"]["turn"]


async def begin(agent: Peer, turn: str, *messages: str, thread: str = "dm.boss.worker") -> Any:
    start = {"id": turn, "thread_id": thread, "messages": list(messages)}
    return await agent.call("begin_turn", start=start)


async def end(agent: Peer, turn: str, outcome: str = "finished", reason: str = "") -> None:
    await agent.call("end_turn", end={"id": turn, "outcome": outcome, "reason": reason})


def mark(event: Frame) -> Any:
    return event["message"]["request"]


@pytest.mark.behaviour("H-50")
async def test_a_result_wakes_who_asked_and_ends_the_request(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, turn = await asked(network)
        await begin(worker, turn, request)
        told = await worker.call("report", request=request, status="result", text="42", cause=turn)
        event = await boss.event()
        assert event["message"]["id"] == told["id"]
        assert event["message"]["content"] == "42"
        assert mark(event) == {"id": request, "kind": "result", "outcome": ""}
        assert (event["wake"]["reason"], event["wake"]["reply"]) == ("result", "optional")
        again = await worker.ask("report", request=request, status="failed", text="no")
        assert again["code"] == "request_over"
        assert again["details"]["answer"] == told["id"]
        await end(worker, turn)
        assert await boss.sync() == []


@pytest.mark.behaviour("H-51")
async def test_a_deadline_that_passes_wakes_who_asked(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, _turn = await asked(network, deadline_s=0.05)
        event = await boss.event()
        assert event["message"]["sender_kind"] == "system"
        assert mark(event) == {"id": request, "kind": "failed", "outcome": "timeout"}
        assert event["wake"]["reason"] == "result"
        late = await worker.ask("report", request=request, status="result", text="42")
        assert late["code"] == "request_over"
        (seen,) = await worker.sync()
        assert "wake" not in seen


async def handed_on(network: Network) -> tuple[Peer, Peer, str, str]:
    """A worker that has handed a task on, and has its result before its own turn ends: the boss,
    the worker, the request, the turn that is to take the result up."""
    boss, worker, request, turn = await asked(network)
    helper = await network.join("helper", "agent", turns=True)
    await begin(worker, turn, request)
    part = await worker.call("delegate", to="helper", task="count for me", cause=turn)
    await helper.event()
    await helper.call("report", request=part["id"], status="result", text="42", cause=part["id"])
    result = await worker.event()
    await end(worker, turn)
    await begin(worker, result["wake"]["turn"], result["message"]["id"])
    return boss, worker, request, result["wake"]["turn"]


@pytest.mark.behaviour("H-51")
async def test_a_result_that_waits_to_be_taken_up_keeps_the_request_open(
    networks: Networks,
) -> None:
    async with networks.start() as network:
        boss, worker, request, turn = await handed_on(network)
        await worker.call("report", request=request, status="result", text="42", cause=turn)
        event = await boss.event()
        assert mark(event) == {"id": request, "kind": "result", "outcome": ""}


@pytest.mark.behaviour("H-51")
async def test_who_takes_up_the_result_and_reports_nothing_has_failed(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, turn = await handed_on(network)
        await end(worker, turn)
        event = await boss.event()
        assert mark(event) == {"id": request, "kind": "failed", "outcome": "no_report"}


@pytest.mark.behaviour("H-51")
async def test_a_turn_that_ends_without_a_report_has_failed(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, turn = await asked(network)
        await begin(worker, turn, request)
        await end(worker, turn, reason="too hard")
        event = await boss.event()
        assert mark(event) == {"id": request, "kind": "failed", "outcome": "no_report"}
        assert "too hard" in event["message"]["text_representation"]
        assert event["wake"]["reason"] == "result"


async def test_a_person_may_ask_too_and_is_told(networks: Networks) -> None:
    async with networks.start() as network:
        ann = await network.join("ann")
        worker = await network.join("worker", "agent", turns=True)
        sent = await ann.call("delegate", to="worker", task="count")
        task = await worker.event()
        assert task["wake"]["reply"] == "required"
        request = task["message"]["request"]
        assert (request["id"], request["kind"]) == ("", "task")
        assert request["deadline"]
        await worker.call("report", request=sent["id"], status="failed", text="cannot")
        event = await ann.event()
        assert mark(event) == {"id": sent["id"], "kind": "failed", "outcome": "reported"}
        assert "wake" not in event


async def test_only_agents_are_asked(networks: Networks) -> None:
    async with networks.start() as network:
        boss = await network.join("boss", "agent")
        await network.join("ann")
        await network.join("worker", "agent")
        wrong = {"workr": "unknown_participant", "ann": "bad_request", "boss": "bad_request"}
        for to, code in wrong.items():
            assert (await boss.ask("delegate", to=to, task="x"))["code"] == code, to
        unknown = await boss.ask("delegate", to="workr", task="x")
        assert "'worker'" in unknown["message"] or "worker?" in unknown["message"]
        for wrong_deadline in (0, -1, 10**9):
            error = await boss.ask("delegate", to="worker", task="x", deadline_s=wrong_deadline)
            assert error["code"] == "bad_request"
        offered = {op["name"]: op["tool"] for op in boss.ready["operations"]}
        assert [offered["delegate"], offered["report"]] == [True, True]
        assert [offered["list_requests"], offered["stop_waiting"]] == [False, False]


@pytest.mark.behaviour("H-50")
async def test_only_the_worker_reports_and_once(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, _turn = await asked(network)
        spy = await network.join("spy", "agent")
        args = {"request": request, "status": "result", "text": "x"}
        assert (await spy.ask("report", **args))["code"] == "unknown_request"
        assert (await boss.ask("report", **args))["code"] == "forbidden"
        assert (await worker.ask("report", **{**args, "request": "m99"}))["code"] == (
            "unknown_request"
        )
        first = await worker.call("report", cid="c1", **args)
        again = await worker.ask("report", cid="c1", **args)
        assert (again["value"]["id"], again["duplicate"]) == (first["id"], True)
        assert (await worker.ask("report", cid="c2", **args))["code"] == "request_over"
        assert len([e for e in await boss.sync() if e["message"].get("request")]) == 1


@pytest.mark.behaviour("H-50")
async def test_a_report_and_a_deadline_at_once_wake_once(networks: Networks) -> None:
    store, clock = MoodyStore(), HandClock()
    async with networks.start(store=store, clock=clock) as network:
        boss, worker, request, _turn = await asked(network)
        store.gate.clear()
        said = await worker.post("report", request=request, status="result", text="42")
        async with soon():
            await store.waiting.wait()
        clock.set(-1_000_000)  # which makes the wait no longer
        clock.wall += 700
        network.hub.requests.look()
        late = await worker.post("report", request=request, status="result", text="43")
        store.gate.set()
        assert (await worker.answer(said))["op"] == "result"
        assert (await worker.answer(late))["code"] == "request_over"
        await network.quiet()
        network.hub.requests.look()
        await network.quiet()
        (event,) = await boss.sync()
        assert mark(event)["kind"] == "result"


@pytest.mark.behaviour("H-51")
async def test_what_a_stop_drops_has_failed(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, turn = await asked(network)
        ann = await network.join("ann")
        await ann.call("stop", scope="agent", target="worker", reason="enough")
        event = await next_failure(boss)
        assert mark(event) == {"id": request, "kind": "failed", "outcome": "stopped"}
        assert event["wake"]["reason"] == "result"
        assert (await begin_error(worker, turn, request)) in ("stopped", "turn_over")


@pytest.mark.behaviour("H-51")
async def test_a_turn_that_is_stopped_has_failed(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, turn = await asked(network)
        ann = await network.join("ann")
        await begin(worker, turn, request)
        await ann.call("stop", scope="turn", target=turn, reason="enough")
        event = await next_failure(boss)
        assert mark(event)["outcome"] == "stopped"
        assert "enough" in event["message"]["text_representation"]


@pytest.mark.behaviour("H-51")
async def test_who_cannot_be_woken_has_failed_at_once(networks: Networks) -> None:
    async with networks.start() as network:
        boss = await network.join("boss", "agent", turns=True)
        await network.join("worker", "agent", turns=True)
        ann = await network.join("ann")
        await ann.call("stop", scope="agent", target="worker")
        sent = await boss.call("delegate", to="worker", task="count")
        assert sent["not_woken"] == {"worker": "stopped"}
        event = await next_failure(boss)
        assert mark(event)["outcome"] == "stopped"
        assert event["wake"]["reason"] == "result"


async def next_failure(peer: Peer) -> Frame:
    """The next event that ends a request."""
    while True:
        event = await peer.event()
        if event["message"].get("request", {}).get("kind") == "failed":
            return event


async def begin_error(agent: Peer, turn: str, *messages: str) -> str:
    start = {"id": turn, "thread_id": "dm.boss.worker", "messages": list(messages)}
    code: str = (await agent.ask("begin_turn", start=start))["code"]
    return code


@pytest.mark.behaviour("H-52")
async def test_a_request_needs_hops_for_its_way_back(networks: Networks) -> None:
    file = config(network={"budgets": {"hops": 4}})
    async with networks.start(file) as network:
        ann = await network.join("ann")
        boss = await network.join("boss", "agent", turns=True)
        worker = await network.join("worker", "agent", turns=True)
        asked = await ann.say("boss", "go")  # hop 0
        first = await boss.call("delegate", to="worker", task="1", cause=asked["id"])  # hop 1
        answer = await worker.call("report", request=first["id"], status="result", text="1")
        again = await boss.call("delegate", to="worker", task="2", cause=first["id"])  # hop 2
        assert again["id"]
        late = await boss.ask("delegate", to="worker", task="3", cause=answer["id"])  # hop 3
        assert (late["code"], "result" in late["message"]) == ("hop_limit", True)
        done = await worker.call("report", request=again["id"], status="result", text="2")
        last = await boss.say("ann", "2", cause=done["id"])  # hop 4, the last one
        message = await ann.call("read_message", id=last["id"])
        assert message["hop"] == 4


@pytest.mark.behaviour("H-52")
async def test_a_report_belongs_to_its_request_whatever_the_worker_did_meanwhile(
    networks: Networks,
) -> None:
    async with networks.start() as network:
        boss, worker, request, turn = await asked(network)
        helper = await network.join("helper", "agent")
        await begin(worker, turn, request)
        question = await worker.say("helper", "?", cause=turn)
        answer = await helper.say("worker", "!", cause=question["id"])
        for cause in (turn, answer["id"], "m1", None):
            more = {} if cause is None else {"cause": cause}
            error = await worker.ask("report", request="m77", status="result", text="42", **more)
            assert error["code"] == "unknown_request"
        told = await worker.call(
            "report", request=request, status="result", text="42", cause=answer["id"]
        )
        message = await boss.call("read_message", id=told["id"])
        task = await boss.call("read_message", id=request)
        assert (message["hop"], message["interaction_id"]) == (1, task["interaction_id"])


@pytest.mark.behaviour("H-52")
async def test_results_wake_where_other_messages_would_be_dampened(networks: Networks) -> None:
    file = config(network={"wake": {"dampener": {"wakes": 1}}, "budgets": {"wakes": 1}})
    async with networks.start(file) as network:
        boss, worker, request, turn = await asked(network)
        dampened = await worker.say("boss", "hello", cause=turn)
        assert dampened["not_woken"]["boss"]
        await worker.call("report", request=request, status="result", text="42", cause=turn)
        woken = [event for event in await boss.sync() if "wake" in event]
        assert [event["wake"]["reason"] for event in woken] == ["result"]


@pytest.mark.behaviour("H-53")
async def test_requests_are_listed_for_those_whom_they_concern(networks: Networks) -> None:
    async with networks.start() as network:
        boss, worker, request, _turn = await asked(network)
        ann, spy = await network.join("ann"), await network.join("spy", "agent")
        second = await boss.call("delegate", to="worker", task="more")
        await worker.call("report", request=request, status="result", text="42")
        for peer in (ann, boss, worker):
            open_ones = (await peer.call("list_requests"))["requests"]
            assert [each["id"] for each in open_ones] == [second["id"]]
            every = (await peer.call("list_requests", state="all"))["requests"]
            assert [each["state"] for each in every] == ["open", "result"]
            assert every[1]["answer"]
            assert every[1]["task"] == "count"
        assert (await spy.call("list_requests", state="all"))["requests"] == []


@pytest.mark.behaviour("H-54")
@pytest.mark.parametrize("passed", [False, True])
async def test_open_requests_survive_a_restart(
    networks: Networks, tmp_path: Path, passed: bool
) -> None:
    store, clock = f"sqlite:{tmp_path / 'log.db'}", HandClock()
    async with networks.start(store=store, clock=clock) as network:
        _boss, _worker, request, _turn = await asked(network)
    clock.wall += 700 if passed else 100
    async with networks.start(store=store, clock=clock) as network:
        await network.quiet()
        boss = await network.join("boss", "agent", turns=True)
        worker = await network.join("worker", "agent", turns=True)
        said = await worker.ask("report", request=request, status="result", text="42")
        assert said.get("code") == ("request_over" if passed else None)
        event = await boss.event()
        assert mark(event)["kind"] == ("failed" if passed else "result")
        assert mark(event)["outcome"] == ("timeout" if passed else "")
    clock.wall += 1000
    async with networks.start(store=store, clock=clock) as network:
        await network.quiet()
        boss = await network.join("boss", "agent", turns=True)
        (event,) = await boss.take(1)  # it was never acknowledged; there is no second one
        assert mark(event)["id"] == request


@pytest.mark.behaviour("H-54")
async def test_a_turn_that_had_ended_when_the_hub_died_has_failed(
    networks: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'log.db'}"
    async with networks.start(store=store) as network:
        _boss, worker, request, turn = await asked(network)
        await begin(worker, turn, request)
        end = TurnEnd(id=turn, outcome="max_steps").model_dump_json()
        change = Change(lambda head: [TurnEnded(turn, 1.0, end)], lambda error: None)
        network.hub.log.change(change)  # as a hub that dies right after the turn's end
        await network.quiet()
    async with networks.start(store=store) as network:
        boss = await network.join("boss", "agent", turns=True)
        event = await boss.event()
        assert mark(event) == {"id": request, "kind": "failed", "outcome": "no_report"}
        assert event["wake"]["reason"] == "result"


@pytest.mark.behaviour("H-54")
async def test_a_disk_that_refuses_leaves_requests_as_they_were(networks: Networks) -> None:
    store = MoodyStore()
    async with networks.start(store=store) as network:
        boss = await network.join("boss", "agent", turns=True)
        worker = await network.join("worker", "agent", turns=True)
        store.failing = 1
        error = await boss.ask("delegate", to="worker", task="count")
        assert error["code"] == "store_unavailable"
        assert (await boss.call("list_requests"))["requests"] == []
        request = (await boss.call("delegate", to="worker", task="count"))["id"]
        args = {"request": request, "status": "result", "text": "42"}
        store.failing = 1
        assert (await worker.ask("report", **args))["code"] == "store_unavailable"
        assert [r["id"] for r in (await boss.call("list_requests"))["requests"]] == [request]
        assert (await worker.ask("report", **args))["op"] == "result"


@pytest.mark.behaviour("H-54")
async def test_a_failure_that_the_disk_refuses_is_told_later(networks: Networks) -> None:
    store, clock = MoodyStore(), HandClock()
    async with networks.start(store=store, clock=clock) as network:
        boss, _worker, request, _turn = await asked(network)
        store.failing = 1
        clock.wall += 700
        network.hub.requests.look()
        await network.quiet()
        assert store.failing == 0
        assert [r["id"] for r in (await boss.call("list_requests"))["requests"]] == [request]
        clock.wall += 2
        network.hub.requests.look()
        event = await boss.event()
        assert mark(event)["outcome"] == "timeout"
        assert await boss.sync() == []


class Silencer(Mod):
    """Lets the hub say nothing."""

    name = "silencer"

    def on_message(self, draft: Draft) -> Verdict:
        return Reject("hush") if draft.sender_kind == "system" else Pass()


async def test_a_request_ends_even_where_a_mod_lets_nobody_say_so(networks: Networks) -> None:
    async with networks.start(mods=[Silencer(ModConfig())]) as network:
        boss, worker, request, turn = await asked(network)
        await begin(worker, turn, request)
        await end(worker, turn)
        await network.quiet()
        (ended,) = (await boss.call("list_requests", state="all"))["requests"]
        assert (ended["state"], ended["outcome"]) == ("failed", "no_report")
        late = await worker.ask("report", request=request, status="result", text="42")
        assert late["code"] == "request_over"


@pytest.mark.behaviour("H-54")
@pytest.mark.parametrize("seed", range(8))
async def test_whatever_comes_at_once_each_request_ends_once(networks: Networks, seed: int) -> None:
    chance, store, clock = random.Random(seed), MoodyStore(), HandClock()
    async with networks.start(store=store, clock=clock) as network:
        ann = await network.join("ann")
        boss = await network.join("boss", "agent", turns=True)
        worker = await network.join("worker", "agent", turns=True)
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
                    network.hub.requests.look()
            if chance.random() < 0.3:
                await network.quiet()
        for peer, ref in posted:
            await peer.answer(ref)
        store.failing = 0
        for _ in range(3):  # what was refused is tried again after a while
            clock.wall += 300
            network.hub.requests.look()
            await network.quiet()
        assert (await ann.call("list_requests"))["requests"] == []
        events = [*await ann.sync(), *await boss.sync()]
        ended = [mark(event)["id"] for event in events if event["message"].get("request")]
        assert sorted(ended) == sorted(turns)
        woken = [event for event in events if event.get("wake", {}).get("reason") == "result"]
        assert len(woken) == 4  # of the agent's; a person is not woken
