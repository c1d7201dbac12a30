"""A worker answers a request with a question: the request before and after the reply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interaction.peers import Frame, Networks, Peer, config
from tests.interaction.stores import MoodyStore
from tests.interaction.test_hub_requests import (
    begin,
    delegate_work,
    end,
    failed,
    list_requests,
    mark,
    next_failure,
    pair,
)

pytestmark = pytest.mark.behaviour("H-57")


async def ask_back(worker: Peer, turn: str, request: str, text: str = "which?") -> str:
    """The worker posts a question and ends its turn; the id of the question."""
    await begin(worker, turn, request)
    args = {"request": request, "status": "question", "text": text}
    question = await worker.call("report", cause=turn, **args)
    await end(worker, turn)
    return str(question["id"])


async def read_request(peer: Peer, id: str) -> Any:
    return (await peer.call("list_requests", id=id))["requests"][0]


def request_mark(event: Frame) -> tuple[str, str]:
    return mark(event)["kind"], mark(event)["id"]


@pytest.mark.parametrize("reports", [True, False])
async def test_a_question_keeps_the_request_open_until_the_turn_of_its_reply(
    in_memory: Networks, reports: bool
) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await delegate_work(network)
        question = await ask_back(worker, turn, request)
        event = await boss.event()
        assert (request_mark(event), event["wake"]["reason"]) == (("question", request), "direct")
        assert (await read_request(boss, request))["question"] == question
        assert await list_requests(boss) == [request]

        sent = await boss.say("worker", "the blue one", cause=f"boss-{question}")
        reply = await worker.event()
        assert request_mark(reply) == ("reply", request)
        assert (await read_request(boss, request))["reply"] == sent["id"]
        turn = reply["wake"]["turn"]
        await begin(worker, turn, sent["id"])
        if reports:
            args = {"request": request, "status": "result", "text": "42"}
            await worker.call("report", cause=turn, **args)
        await end(worker, turn)
        ended = {"id": request, "kind": "result", "outcome": ""}
        assert mark(await boss.event()) == (ended if reports else failed(request, "no_report"))
        late = await worker.ask("report", request=request, status="question", text="and?")
        assert late["code"] == "request_over"


async def test_a_reply_answers_the_quoted_question_or_else_the_oldest(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        worker = await network.join("worker", "agent", turns=True)
        first, second = [
            (await ann.call("delegate", to="worker", task=task))["id"] for task in ("one", "two")
        ]
        await ask_back(worker, f"worker-{first}", first)
        question = await ask_back(worker, f"worker-{second}", second)
        await worker.sync()
        await bob.say("worker", "neither question is for bob")
        await ann.say("worker", "that one", quote={"message_id": question})
        await ann.say("worker", "this one")
        await ann.say("worker", "no question is left")
        events = await worker.take(4)
        assert ["request" in event["message"] for event in events] == [False, True, True, False]
        marks = [request_mark(event) for event in events[1:3]]
        assert marks == [("reply", second), ("reply", first)]


async def test_a_silent_message_is_no_reply_to_a_question(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await delegate_work(network)
        question = await ask_back(worker, turn, request)
        await boss.event()
        await boss.say("worker", "for later", silent=True, cause=f"boss-{question}")
        assert "request" not in (await worker.event())["message"]
        assert (await read_request(boss, request)).get("reply") is None
        sent = await boss.say("worker", "the blue one", cause=f"boss-{question}")
        assert request_mark(await worker.event()) == ("reply", request)
        assert (await read_request(boss, request))["reply"] == sent["id"]


@pytest.mark.parametrize("replied", [False, True])
async def test_the_requester_can_stop_a_request_before_and_after_replying(
    in_memory: Networks, replied: bool
) -> None:
    async with in_memory.start() as network:
        ann, worker = await network.join("ann"), await network.join("worker", "agent", turns=True)
        request = (await ann.call("delegate", to="worker", task="count"))["id"]
        turn = (await worker.event())["wake"]["turn"]
        await ask_back(worker, turn, request)
        if replied:
            sent = await ann.say("worker", "the blue one")
            turn = (await worker.event())["wake"]["turn"]
            await begin(worker, turn, sent["id"])
        await ann.call("stop", scope="turn", target=turn, reason="enough")
        await network.quiet()
        events = await ann.sync()  # after the reply, a notice of the stopped turn comes as well
        assert failed(request, "stopped") in [event["message"].get("request") for event in events]
        assert await list_requests(ann) == []


async def test_a_question_needs_hops_left_for_its_reply_and_the_result(in_memory: Networks) -> None:
    async with in_memory.start(config(network={"budgets": {"hops": 8}})) as network:
        boss, worker, request, turn = await delegate_work(network)
        await begin(worker, turn, request)
        args = {"request": request, "status": "question", "text": "which?"}
        question = await worker.call("report", cause=turn, **args)
        reply = await boss.say("worker", "the blue one", cause=f"boss-{question['id']}")
        cause = f"worker-{reply['id']}"
        assert (await worker.ask("report", cause=cause, **args))["code"] == "hop_limit"
        args |= {"status": "result"}
        assert (await worker.ask("report", cause=cause, **args))["op"] == "result"


async def test_a_question_to_a_stopped_agent_fails_the_request(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        boss, worker, request, turn = await delegate_work(network)
        ann = await network.join("ann")
        await ann.call("stop", scope="agent", target="boss")
        await ask_back(worker, turn, request)
        await network.quiet()
        assert (await read_request(boss, request))["outcome"] == "stopped"


@pytest.mark.parametrize("stage", ["asked", "replied", "worked"])
async def test_an_open_question_survives_a_restart_of_the_hub(
    in_memory: Networks, tmp_path: Path, stage: str
) -> None:
    store = f"sqlite:{tmp_path / 'log.db'}"
    async with in_memory.start(store=store) as network:
        boss, worker, request, turn = await delegate_work(network)
        await ask_back(worker, turn, request)
        if stage != "asked":
            await boss.say("worker", "the blue one")
    async with in_memory.start(store=store) as network:
        await network.quiet()
        boss, worker = await pair(network)
        assert await list_requests(boss) == [request]
        if stage == "asked":
            await boss.say("worker", "the blue one")
        reply = (await worker.take(2))[-1]
        assert request_mark(reply) == ("reply", request)
        turn = reply["wake"]["turn"]
        await begin(worker, turn, reply["message"]["id"])
        if stage == "worked":
            await end(worker, turn)
            assert mark(await next_failure(boss)) == failed(request, "no_report")
        else:
            args = {"request": request, "status": "result", "text": "42"}
            assert (await worker.ask("report", cause=turn, **args))["op"] == "result"


async def test_a_question_or_reply_that_cannot_be_stored_changes_nothing(
    in_memory: Networks,
) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        boss, worker, request, turn = await delegate_work(network)
        await begin(worker, turn, request)
        args = {"request": request, "status": "question", "text": "which?", "cause": turn}
        store.failing = 1
        assert (await worker.ask("report", **args))["code"] == "store_unavailable"
        await boss.say("worker", "not a reply")
        assert "request" not in (await worker.event())["message"]
        await worker.call("report", **args)
        store.failing = 1
        reply = {"to": "worker", "text": "blue"}
        assert (await boss.ask("send_text_message", **reply))["code"] == "store_unavailable"
        assert "reply" not in await read_request(boss, request)
        await boss.call("send_text_message", **reply)
        assert request_mark(await worker.event()) == ("reply", request)
