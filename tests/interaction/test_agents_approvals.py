"""Turns that wait until a person approves or denies a call."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptRule, When
from tests.interaction.agent_harness import Harness, call, ended, finish, harness, heard, says
from tests.interaction.approval_harness import (
    Shop,
    asked,
    at_shop,
    parked,
    replies,
    script,
    the_call,
)
from tests.interaction.injection import Points
from tests.interaction.peers import Networks, Peer, config
from tests.interaction.role_harness import judge, plan, route

PAY = says(call("pay", amount=7))
MOST_POINTS = 400
"""Far more than the turn has."""


def failure_of(turn: Turn, tool: str) -> dict[str, JsonValue]:
    """The error that the model sees of a failed call."""
    record = the_call(turn, tool)
    error: dict[str, JsonValue] = json.loads(record.result)
    assert error["error"] == record.error
    return error


@asynccontextmanager
async def waiting(
    networks: Networks, folder: Path, played: Script, **config: Any
) -> AsyncIterator[tuple[Harness, Peer, Shop, dict[str, Any]]]:
    """An agent whose first turn, started by Ann, waits for an approval."""
    async with at_shop(networks, folder, played, **config) as (net, ann, shop):
        await ann.say("bot", "go")
        (approval,) = await parked(net, ann)
        yield net, ann, shop, approval


@pytest.mark.behaviour("H-80")
async def test_a_call_that_needs_approval_runs_once_a_person_approves_it(
    in_memory: Networks, tmp_path: Path
) -> None:
    publish = says(call("publish", text="hello"))
    played = script(publish, replies("done"), PAY, replies("paid"))
    mode = {"permission_mode": "ask"}
    async with waiting(in_memory, tmp_path, played, **mode) as (net, ann, shop, approval):
        assert "must ask first" in approval["reason"], "due to its permission mode"
        await ann.call("approve", id=approval["id"])
        await net.turn("bot-m1")
        assert shop.done == ["published hello"]
        turn_id = await net.ask(ann, "pay the bill")
        (approval,) = await parked(net, ann, turn_id)
        assert (approval["tool"], approval["arguments"]) == ("pay", {"amount": 7})
        assert "must be approved" in approval["reason"]
        assert approval["description"].startswith("Pay an amount")
        await ann.call("approve", id=approval["id"])
        turn = await net.turn(turn_id)
        assert shop.done[1:] == ["paid 7 to bob"]
        assert the_call(turn, "pay").result == "paid 7 to bob"
        assert turn.attempts == 1, "the process keeps the waiting turn"
        assert len(shop.model.requests) == 4, "the model is not asked again for the call"
        approvals = (await ann.call("list_approvals", state="all"))["approvals"]
        assert [each["state"] for each in approvals] == ["started", "started"]


@pytest.mark.behaviour("H-84", "H-96")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_the_record_and_the_model_show_how_and_by_whom_a_call_was_changed(
    in_memory: Networks, tmp_path: Path, dialect: str
) -> None:
    played = script(says(call("pay", amount="7")), replies("paid"))
    shop_at = waiting(in_memory, tmp_path, played, dialect=dialect)
    async with shop_at as (net, ann, shop, approval):
        await net.kill("bot")
        await ann.call("approve", id=approval["id"], arguments={"amount": 7, "to": "carl"})
        await shop.start()
        record = the_call(await net.turn("bot-m1"), "pay")
        assert shop.done == ["paid 7 to carl"]
        assert (record.arguments, record.result) == ({"amount": "7"}, "paid 7 to carl")
        assert record.changed.by == "ann"
        assert record.changed.arguments == {"amount": 7, "to": "carl"}
        assert record.changed.names == ("to",), '"7" is coerced to 7: no change'
        result = shop.model.requests[-1].body.messages[-1].text
        assert 'approved by ann with changes: to: (not given) -> "carl"\npaid 7 to carl' in result
        assert len(shop.model.requests) == 2


@pytest.mark.behaviour("H-81")
@pytest.mark.parametrize("how", ["denied", "expired"])
async def test_the_model_sees_that_an_approval_was_denied_or_expired(
    in_memory: Networks, tmp_path: Path, how: str
) -> None:
    file = config(network={"approvals": {"expire": "20ms" if how == "expired" else "1h"}})
    played = script(PAY, replies("not paid"))
    async with at_shop(in_memory, tmp_path, played, file=file) as (net, ann, shop):
        await ann.say("bot", "pay the bill")
        if how == "denied":
            (approval,) = await parked(net, ann)
            await ann.call("deny", id=approval["id"], reason="far too much")
        error = failure_of(await net.turn("bot-m1"), "pay")
        assert (error["error"], shop.done) == (how, [])
        reason = "far too much" if how == "denied" else "in time"
        assert reason in str(error["message"])
        assert reason in shop.model.requests[-1].body.messages[-1].text
        assert await heard(net, ann) == ["not paid"]


@pytest.mark.behaviour("H-82")
async def test_a_step_asks_for_all_its_approvals_at_once_and_runs_its_other_calls(
    in_memory: Networks, tmp_path: Path
) -> None:
    three = says(
        call("pay", amount=1), call("add", a=1, b=2), call("pay", amount=2), finish("paid")
    )
    async with at_shop(in_memory, tmp_path, script(three, replies("done"))) as (net, ann, shop):
        await ann.say("bot", "pay both")
        both = await parked(net, ann, calls=2)
        first, second = sorted(both, key=lambda approval: approval["arguments"]["amount"])
        assert (first["arguments"]["amount"], second["arguments"]["amount"]) == (1, 2)
        running = Turn.model_validate(await ann.call("read_turn", id="bot-m1"))
        assert [c.result for c in running.steps[0].calls] == [None, "3", None, None]
        await ann.call("approve", id=second["id"])
        await shop.until_done(1)
        (pending,) = await parked(net, ann)
        assert pending["id"] == first["id"]
        await ann.call("deny", id=first["id"])
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 2 to bob"]
        assert [c.error for c in turn.steps[0].calls[:3]] == ["denied", None, None]


@pytest.mark.behaviour("H-82")
async def test_an_approval_is_cancelled_when_its_step_no_longer_waits_for_the_call(
    in_memory: Networks, tmp_path: Path
) -> None:
    either = says(call("pay", amount=1), call("add", a=1, b=2), wait="any")
    shop_at = at_shop(in_memory, tmp_path, script(either, replies("ok")), dialect="final_output")
    async with shop_at as (net, ann, shop):
        turn = await net.turn(await net.ask(ann, "one of them"))
        assert (failure_of(turn, "pay")["error"], shop.done) == ("cancelled", [])
        (approval,) = (await ann.call("list_approvals", state="all"))["approvals"]
        assert approval["state"] == "cancelled"


@pytest.mark.behaviour("H-83")
async def test_a_turn_that_waits_for_approval_blocks_no_other_turn_and_can_be_stopped(
    in_memory: Networks, tmp_path: Path
) -> None:
    played = script(PAY, replies("paid"), time=replies("noon"), again=PAY)
    async with waiting(in_memory, tmp_path, played, concurrency=1) as (net, ann, shop, approval):
        for answer in ("approved", "stopped"):
            turn_id = approval["turn"]
            await net.turn(await net.ask(ann, "what time is it?"))
            assert await heard(net, ann) == ["noon"]
            if answer == "approved":
                await ann.call("approve", id=approval["id"])
                await net.turn(turn_id)
                assert await heard(net, ann) == ["paid"]
                (approval,) = await parked(net, ann, await net.ask(ann, "pay again"))
            else:
                await ann.call("stop", scope="turn", target=turn_id, reason="too dear")
                assert ended(await net.turn(turn_id)).outcome == "cancelled"
                late = await ann.ask("approve", id=approval["id"])
                assert late["code"] == "not_pending"
        assert shop.done == ["paid 7 to bob"]
        assert len(shop.model.requests) == 5, "the stopped turn asks nothing more"


@pytest.mark.slow
@pytest.mark.behaviour("H-83", "Y-10")
async def test_time_spent_waiting_for_approval_does_not_count_as_turn_time(
    in_memory: Networks, tmp_path: Path
) -> None:
    played = script(PAY, replies("paid"), slow=says(call("dig", depth=1)))
    short: dict[str, JsonValue] = {
        "turn_timeout": "4s",
        "tool_settings": {"dig": {"confirm": False}},
    }
    async with waiting(in_memory, tmp_path, played, **short) as (net, ann, _, approval):
        turn = await net.turn(await net.ask(ann, "be slow"))  # takes the whole time of a turn
        assert (ended(turn).outcome, ended(turn).reason) == ("timeout", "not finished after 4 s")
        assert the_call(turn, "dig").result is None
        await ann.call("approve", id=approval["id"])
        assert ended(await net.turn("bot-m1")).outcome == "finished"


@pytest.mark.behaviour("H-84")
@pytest.mark.parametrize("how", ["killed", "cut"])
async def test_a_waiting_turn_resumes_after_a_crash_or_a_lost_connection(
    in_memory: Networks, tmp_path: Path, how: str
) -> None:
    played = script(PAY, replies("paid"))
    async with waiting(in_memory, tmp_path, played) as (net, ann, shop, approval):
        if how == "killed":
            await net.kill("bot")
            await shop.start()
            await parked(net, ann)
        else:
            await net.cut("bot")
        await ann.call("approve", id=approval["id"])
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 7 to bob"]
        assert the_call(turn, "pay").error is None
        assert len(shop.model.requests) == 2
        assert (await asked(ann, 0)) == []


@pytest.mark.behaviour("H-85")
async def test_an_approved_call_that_was_running_at_a_crash_does_not_run_again(
    in_memory: Networks, tmp_path: Path
) -> None:
    played = script(says(call("dig", depth=3)), replies("who knows"))
    async with waiting(in_memory, tmp_path, played) as (net, ann, shop, approval):
        await ann.call("approve", id=approval["id"])
        await shop.until_done(1)
        await net.kill("bot")
        await shop.start()
        error = failure_of(await net.turn("bot-m1"), "dig")
        assert error["error"] == "interrupted"
        assert "may or may not have taken effect" in str(error["message"])
        assert shop.done == ["digging 3"]


@pytest.mark.behaviour("H-86")
async def test_a_helper_waits_for_approval_like_its_turn(
    in_memory: Networks, tmp_path: Path
) -> None:
    def helper(step: int, answer: ScriptedAnswer) -> ScriptRule:
        when = When.model_validate({"prompt": "<goal>pay it", "step": step})
        return ScriptRule(when=when, answer=answer)

    rules = [helper(1, says(call("pay", amount=3))), helper(2, says(finish("it is paid")))]
    played = Script(
        rules=rules,
        answers=[says(call("fork", goal="pay it"), call("add", a=1, b=1)), replies("ok")],
    )
    async with waiting(in_memory, tmp_path, played, fork={}) as (net, ann, shop, approval):
        await ann.call("approve", id=approval["id"])
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 3 to bob"]
        assert the_call(turn, "fork").result == "it is paid"
        assert len(shop.model.requests) == 4

    # In the background, the turn continues until it waits for its helper.
    forks = says(call("fork", goal="pay it", background=True))
    waits = says(call("wait_for", helper=1))
    played = Script(rules=rules, answers=[forks, says(call("add", a=1, b=1)), waits, replies("ok")])
    async with waiting(in_memory, tmp_path, played, fork={}) as (net, ann, shop, approval):
        await ann.call("approve", id=approval["id"])
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 3 to bob"]
        assert "it is paid" in [c.result for s in turn.steps for c in s.calls]
        assert ended(turn).outcome == "finished"
        assert len(shop.model.requests) == 6


@pytest.mark.behaviour("H-86")
async def test_the_steps_of_a_plan_wait_for_approval(in_memory: Networks, tmp_path: Path) -> None:
    steps: list[JsonValue] = [
        {"id": 1, "goal": "pay", "executor": "pay", "arguments": {"amount": 4}},
        {"id": 2, "goal": "sum", "executor": "add", "arguments": {"a": 1, "b": 2}},
    ]
    played = script(route("make_plan"), plan(steps), judge("accept", answer="$step_1_result"))
    async with waiting(in_memory, tmp_path, played, kind="pipeline") as (net, ann, shop, approval):
        await net.kill("bot")
        await shop.start(kind="pipeline")
        await parked(net, ann)
        await ann.call("approve", id=approval["id"], arguments={"amount": 4, "to": "carl"})
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 4 to carl"]
        assert ended(turn).outcome == "finished"
        assert await heard(net, ann) == ["paid 4 to carl"], "the result, and nothing else"
        judged = shop.model.requests[-1].body.messages[-1].text
        assert "approved by ann with changes: to: (not given) -&gt;" in judged


ROOMY = config(
    network={
        "limits": {"burst": 100_000, "calls_per_second": 100_000},
        "breaker": {"enabled": False},  # more turns in one thread than any person would start
        "budgets": {"wakes": None},
    }
)


async def approve_all(person: Peer) -> None:
    """Approve everything until cancelled."""
    seen: set[str] = set()
    while True:
        await person.until(lambda: any(s["type"] == "approval" for s in person.signals))
        signals, person.signals[:] = [s["data"] for s in person.signals], []
        for data in signals:
            if data and data.get("state") == "pending" and data["id"] not in seen:
                seen.add(data["id"])
                await person.ask("approve", id=data["id"])  # possibly too late


@asynccontextmanager
async def approving(networks: Networks, folder: Path) -> AsyncIterator[tuple[Harness, Peer, Shop]]:
    """An agent that pays once in each turn, and a boss who approves everything."""
    pays = says(call("add", a=1, b=2), call("pay", amount=7))
    rules = [
        ScriptRule(when=When(step=1), answer=pays),
        ScriptRule(when=When(step=2), answer=replies("over")),
    ]
    async with ModelServer(Script(rules=rules)) as model, harness(networks, ROOMY) as net:
        ann, boss = await net.person(), await net.person("boss")
        approvals = asyncio.create_task(approve_all(boss))
        yield net, ann, Shop(net, model, folder)
        approvals.cancel()


@pytest.mark.slow
@pytest.mark.behaviour("H-83")
async def test_a_turn_stopped_at_any_await_around_an_approval_ends_once(
    in_memory: Networks, tmp_path: Path
) -> None:
    points, outcomes = Points(), Counter[str]()
    async with approving(in_memory, tmp_path) as (net, ann, shop):
        with points.watching():
            await shop.start()
            for point in range(MOST_POINTS):
                points.strike_at(point, lambda turn: turn.cancel())
                before = len(shop.done)
                turn = await points.ended(net, await net.ask(ann, "pay"))
                outcomes[ended(turn).outcome] += 1
                assert len(shop.done) - before <= 1, points.where
                assert len(await heard(net, ann)) <= 1, points.where
                if not points.struck:
                    break
    assert outcomes["finished"] > 0, "the last one was not struck"
    assert outcomes["cancelled"] > 15, outcomes


@pytest.mark.slow
@pytest.mark.behaviour("H-84", "H-85")
async def test_a_crash_at_any_await_runs_an_approved_call_at_most_once(
    in_memory: Networks, tmp_path: Path
) -> None:
    points, results = Points(), Counter[str]()
    async with approving(in_memory, tmp_path) as (net, ann, shop):
        with points.watching():
            for point in range(MOST_POINTS):
                await shop.start()
                before = len(shop.done)
                turn = await points.crashed(net, point, partial(net.ask, ann, "pay"), shop.start)
                runs, record = len(shop.done) - before, the_call(turn, "pay")
                assert ended(turn).outcome == "finished", points.where
                assert runs <= 1, points.where
                assert record.error == "interrupted" or (record.error, runs) == (None, 1)
                results[record.error or "paid"] += 1
                assert await heard(net, ann) == ["over"], points.where
                if not points.struck:
                    break
                await net.kill("bot")
    assert results["paid"] > 10, results
