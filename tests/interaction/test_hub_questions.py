"""A worker asks back: what becomes of its request until the reply, and after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interaction.peers import Frame, Networks, Peer, config
from tests.interaction.stores import MoodyStore
from tests.interaction.test_hub_requests import (
    asked,
    begin,
    end,
    failed,
    listed,
    mark,
    next_failure,
    pair,
)

pytestmark = pytest.mark.behaviour("H-57")


async def asks_back(worker: Peer, turn: str, request: str, text: str = "which?") -> str:
    """The worker's question in its turn, which it ends."""
    await begin(worker, turn, request)
    args = {"request": request, "status": "question", "text": text}
    question = await worker.call("report", cause=turn, **args)
    await end(worker, turn)
    return str(question["id"])


async def request_of(peer: Peer, id: str) -> Any:
    return (await peer.call("list_requests", id=id))["requests"][0]


def about(event: Frame) -> tuple[str, str]:
    return mark(event)["kind"], mark(event)["id"]


@pytest.mark.parametrize("reports", [True, False])
async def test_a_question_leaves_a_request_open_and_the_turn_of_the_reply_ends_it(
    in_memory: Networks, reports: bool
) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await asked(network)
        question = await asks_back(worker, turn, request)
        event = await boss.event()
        assert (about(event), event["wake"]["reason"]) == (("question", request), "direct")
        assert (await request_of(boss, request))["question"] == question
        assert await listed(boss) == [request]

        said = await boss.say("worker", "the blue one", cause=f"boss-{question}")
        reply = await worker.event()
        assert about(reply) == ("reply", request)
        assert (await request_of(boss, request))["reply"] == said["id"]
        turn = reply["wake"]["turn"]
        await begin(worker, turn, said["id"])
        if reports:
            args = {"request": request, "status": "result", "text": "42"}
            await worker.call("report", cause=turn, **args)
        await end(worker, turn)
        ended = {"id": request, "kind": "result", "outcome": ""}
        assert mark(await boss.event()) == (ended if reports else failed(request, "no_report"))
        late = await worker.ask("report", request=request, status="question", text="and?")
        assert late["code"] == "request_over"


async def test_a_reply_means_the_question_that_it_quotes_or_the_first(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        worker = await network.join("worker", "agent", turns=True)
        first, second = [
            (await ann.call("delegate", to="worker", task=task))["id"] for task in ("one", "two")
        ]
        await asks_back(worker, f"worker-{first}", first)
        question = await asks_back(worker, f"worker-{second}", second)
        await worker.sync()
        await bob.say("worker", "neither is mine")
        await ann.say("worker", "that one", quote={"message_id": question})
        await ann.say("worker", "this one")
        await ann.say("worker", "nothing is asked any more")
        events = await worker.take(4)
        assert ["request" in event["message"] for event in events] == [False, True, True, False]
        assert [about(event) for event in events[1:3]] == [("reply", second), ("reply", first)]


@pytest.mark.parametrize("replied", [False, True])
async def test_who_asked_stops_a_request_that_waits_for_a_reply_or_works_on_it(
    in_memory: Networks, replied: bool
) -> None:
    async with in_memory.start() as network:
        ann, worker = await network.join("ann"), await network.join("worker", "agent", turns=True)
        request = (await ann.call("delegate", to="worker", task="count"))["id"]
        turn = (await worker.event())["wake"]["turn"]
        await asks_back(worker, turn, request)
        if replied:
            said = await ann.say("worker", "the blue one")
            turn = (await worker.event())["wake"]["turn"]
            await begin(worker, turn, said["id"])
        await ann.call("stop", scope="turn", target=turn, reason="enough")
        await network.quiet()
        told = await ann.sync()  # also that the turn was stopped, where one ran
        assert failed(request, "stopped") in [event["message"].get("request") for event in told]
        assert await listed(ann) == []


async def test_a_question_keeps_hops_for_its_reply_and_the_result(in_memory: Networks) -> None:
    async with in_memory.start(config(network={"budgets": {"hops": 8}})) as network:
        boss, worker, request, turn = await asked(network)
        await begin(worker, turn, request)
        args = {"request": request, "status": "question", "text": "which?"}
        question = await worker.call("report", cause=turn, **args)
        reply = await boss.say("worker", "the blue one", cause=f"boss-{question['id']}")
        cause = f"worker-{reply['id']}"
        assert (await worker.ask("report", cause=cause, **args))["code"] == "hop_limit"
        args |= {"status": "result"}
        assert (await worker.ask("report", cause=cause, **args))["op"] == "result"


async def test_a_question_that_wakes_nobody_fails_the_request(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await asked(network)
        ann = await network.join("ann")
        await ann.call("stop", scope="agent", target="boss")
        await asks_back(worker, turn, request)
        await network.quiet()
        assert (await request_of(boss, request))["outcome"] == "stopped"


@pytest.mark.parametrize("stage", ["asked", "replied", "worked"])
async def test_a_question_outlives_the_hub(in_memory: Networks, tmp_path: Path, stage: str) -> None:
    store = f"sqlite:{tmp_path / 'log.db'}"
    async with in_memory.start(store=store) as network:
        boss, worker, request, turn = await asked(network)
        await asks_back(worker, turn, request)
        if stage != "asked":
            await boss.say("worker", "the blue one")
    async with in_memory.start(store=store) as network:
        await network.quiet()
        boss, worker = await pair(network)
        assert await listed(boss) == [request]
        if stage == "asked":
            await boss.say("worker", "the blue one")
        reply = (await worker.take(2))[-1]
        assert about(reply) == ("reply", request)
        turn = reply["wake"]["turn"]
        await begin(worker, turn, reply["message"]["id"])
        if stage == "worked":
            await end(worker, turn)
            assert mark(await next_failure(boss)) == failed(request, "no_report")
        else:
            args = {"request": request, "status": "result", "text": "42"}
            assert (await worker.ask("report", cause=turn, **args))["op"] == "result"


async def test_a_disk_that_refuses_a_question_or_a_reply_leaves_the_request_as_it_was(
    in_memory: Networks,
) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        boss, worker, request, turn = await asked(network)
        await begin(worker, turn, request)
        args = {"request": request, "status": "question", "text": "which?", "cause": turn}
        store.failing = 1
        assert (await worker.ask("report", **args))["code"] == "store_unavailable"
        await boss.say("worker", "just talking")
        assert "request" not in (await worker.event())["message"]
        await worker.call("report", **args)
        store.failing = 1
        told = {"to": "worker", "text": "blue"}
        assert (await boss.ask("send_text_message", **told))["code"] == "store_unavailable"
        assert "reply" not in await request_of(boss, request)
        await boss.call("send_text_message", **told)
        assert about(await worker.event()) == ("reply", request)
