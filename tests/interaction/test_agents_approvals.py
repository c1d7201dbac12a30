"""Turns that stop until a person has said whether a call may run."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptRule, When
from tests.interaction.agent_harness import (
    Harness,
    call,
    ended,
    finish,
    harness,
    heard,
    playing,
    says,
)
from tests.interaction.approval_harness import Shop, asked, parked, replies, script, the_call
from tests.interaction.injection import Points
from tests.interaction.peers import Networks, Peer, config, soon
from tests.interaction.role_harness import scores

PAY = says(call("pay", amount=7))
MOST_POINTS = 400
"""Far more than the turn has."""


def failure_of(turn: Turn, tool: str) -> dict[str, JsonValue]:
    """What the model was told of a call that did not succeed."""
    record = the_call(turn, tool)
    told: dict[str, JsonValue] = json.loads(record.result)
    assert told["error"] == record.error
    return told


async def waiting(
    net: Harness,
    model: ModelServer,
    folder: Path,
    *,
    dialect: str | None = None,
    **config: JsonValue,
) -> tuple[Peer, Shop, dict[str, Any]]:
    """Ann, the agent's tools, and the approval that a turn of the agent waits for."""
    ann = await net.person()
    shop = Shop(net, model, folder)
    shop.dialect = dialect
    await shop.start(**config)
    await ann.say("bot", "go")
    (approval,) = await parked(net, ann)
    return ann, shop, approval


@pytest.mark.behaviour("H-80")
async def test_a_call_that_needs_a_person_runs_when_one_has_approved_it(
    in_memory: Networks, tmp_path: Path
) -> None:
    publish = says(call("publish", text="hello"))
    model = ModelServer(script(publish, replies("done"), PAY, replies("paid")))
    async with model, harness(in_memory) as net:
        ann, shop, approval = await waiting(net, model, tmp_path, permission_mode="ask")
        assert "must ask first" in approval["reason"], "as its permission mode says"
        await ann.call("approve", id=approval["id"])
        await net.turn("bot-m1")
        assert shop.done == ["published hello"]
        turn_id = f"bot-{(await ann.say('bot', 'pay the bill'))['id']}"
        (approval,) = await parked(net, ann, turn_id)
        assert (approval["tool"], approval["arguments"]) == ("pay", {"amount": 7})
        assert "must be approved" in approval["reason"]
        assert approval["description"].startswith("Pay an amount")
        await ann.call("approve", id=approval["id"])
        turn = await net.turn(turn_id)
        assert shop.done[1:] == ["paid 7 to bob"]
        assert the_call(turn, "pay").result == "paid 7 to bob"
        assert turn.attempts == 1, "its process has never left it"
        assert len(model.requests) == 4, "the model is not asked again what it has said"
        every = (await ann.call("list_approvals", state="all"))["approvals"]
        assert [each["state"] for each in every] == ["started", "started"]


@pytest.mark.behaviour("H-84", "H-96")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_a_call_that_a_person_has_changed_is_told_as_it_ran_and_by_whom(
    in_memory: Networks, tmp_path: Path, dialect: str
) -> None:
    model = ModelServer(script(says(call("pay", amount="7")), replies("paid")))
    async with model, harness(in_memory) as net:
        ann, shop, approval = await waiting(net, model, tmp_path, dialect=dialect)
        await net.kill("bot")
        await ann.call("approve", id=approval["id"], arguments={"amount": 7, "to": "carl"})
        await shop.start()
        record = the_call(await net.turn("bot-m1"), "pay")
        assert shop.done == ["paid 7 to carl"]
        assert (record.arguments, record.result) == ({"amount": "7"}, "paid 7 to carl")
        assert record.changed.by == "ann"
        assert record.changed.arguments == {"amount": 7, "to": "carl"}
        assert record.changed.names == ("to",), '7 for "7" is the tool\'s own reading'
        told = model.requests[-1].body.messages[-1].text
        assert 'approved by ann with changes: to: (not given) -> "carl"\npaid 7 to carl' in told
        assert len(model.requests) == 2


@pytest.mark.behaviour("H-81")
@pytest.mark.parametrize("how", ["denied", "expired"])
async def test_a_no_or_no_word_in_time_is_told_to_the_model(
    in_memory: Networks, tmp_path: Path, how: str
) -> None:
    expire = config(network={"approvals": {"expire": "20ms" if how == "expired" else "1h"}})
    model = ModelServer(script(PAY, replies("not paid")))
    async with model, harness(in_memory, expire) as net:
        ann = await net.person()
        shop = Shop(net, model, tmp_path)
        await shop.start()
        await ann.say("bot", "pay the bill")
        if how == "denied":
            (approval,) = await parked(net, ann)
            await ann.call("deny", id=approval["id"], reason="far too much")
        told = failure_of(await net.turn("bot-m1"), "pay")
        assert (told["error"], shop.done) == (how, [])
        because = "far too much" if how == "denied" else "in time"
        assert because in str(told["message"])
        assert because in model.requests[-1].body.messages[-1].text
        assert await heard(net, ann) == ["not paid"]


@pytest.mark.behaviour("H-82")
async def test_all_calls_of_a_step_are_asked_about_at_once_and_the_others_run(
    in_memory: Networks, tmp_path: Path
) -> None:
    three = says(
        call("pay", amount=1), call("add", a=1, b=2), call("pay", amount=2), finish("paid")
    )
    async with ModelServer(script(three, replies("done"))) as model, harness(in_memory) as net:
        ann = await net.person()
        shop = Shop(net, model, tmp_path)
        await shop.start()
        await ann.say("bot", "pay both")
        one, two = await parked(net, ann, calls=2)
        assert {one["arguments"]["amount"], two["arguments"]["amount"]} == {1, 2}
        running = Turn.model_validate(await ann.call("read_turn", id="bot-m1"))
        assert [c.result for c in running.steps[0].calls] == [None, "3", None, None]
        first, second = sorted((one, two), key=lambda a: a["arguments"]["amount"])
        await ann.call("approve", id=second["id"])
        await shop.until_done(1)
        (left,) = await parked(net, ann)
        assert left["id"] == first["id"]
        await ann.call("deny", id=first["id"])
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 2 to bob"]
        assert [c.error for c in turn.steps[0].calls[:3]] == ["denied", None, None]


@pytest.mark.behaviour("H-82")
async def test_a_call_that_nobody_waits_for_any_more_is_not_run_when_it_is_approved(
    in_memory: Networks, tmp_path: Path
) -> None:
    either = says(call("pay", amount=1), call("add", a=1, b=2), wait="any")
    async with ModelServer(script(either, replies("ok"))) as model, harness(in_memory) as net:
        ann = await net.person()
        shop = Shop(net, model, tmp_path)
        shop.dialect = "final_output"
        await shop.start()
        await ann.say("bot", "one of them")
        turn = await net.turn("bot-m1")
        assert (failure_of(turn, "pay")["error"], shop.done) == ("cancelled", [])
        (approval,) = (await ann.call("list_approvals", state="all"))["approvals"]
        assert approval["state"] == "cancelled", "its turn is over"


@pytest.mark.behaviour("H-83")
async def test_a_turn_that_waits_for_a_person_holds_up_nobody_and_may_be_stopped(
    in_memory: Networks, tmp_path: Path
) -> None:
    played = script(PAY, replies("paid"), time=replies("noon"), again=PAY)
    async with ModelServer(played) as model, harness(in_memory) as net:
        ann, shop, approval = await waiting(net, model, tmp_path, concurrency=1)
        for answer in ("approved", "stopped"):
            turn_id = approval["turn"]
            second = (await ann.say("bot", "what time is it?"))["seq"]
            await net.turn(f"bot-m{second}")
            assert await heard(net, ann) == ["noon"]
            if answer == "approved":
                await ann.call("approve", id=approval["id"])
                await net.turn(turn_id)
                assert await heard(net, ann) == ["paid"]
                said = await ann.say("bot", "pay again")
                (approval,) = await parked(net, ann, f"bot-{said['id']}")
            else:
                await ann.call("stop", scope="turn", target=turn_id, reason="too dear")
                assert ended(await net.turn(turn_id)).outcome == "cancelled"
                late = await ann.ask("approve", id=approval["id"])
                assert late["code"] == "not_pending"
        assert shop.done == ["paid 7 to bob"]
        assert len(model.requests) == 5, "the turn that was stopped has asked nothing more"


@pytest.mark.slow
@pytest.mark.behaviour("H-83", "Y-10")
async def test_the_time_that_a_person_takes_is_not_the_turns(
    in_memory: Networks, tmp_path: Path
) -> None:
    played = script(PAY, replies("paid"), slow=says(call("dig", depth=1)))
    async with ModelServer(played) as model, harness(in_memory) as net:
        free: dict[str, JsonValue] = {"dig": {"confirm": False}}
        ann, _, approval = await waiting(
            net, model, tmp_path, turn_timeout="4s", tool_settings=free
        )
        later = (await ann.say("bot", "be slow"))["seq"]
        turn = await net.turn(f"bot-m{later}")  # a whole turn's time has passed since
        found = ended(turn).outcome, ended(turn).reason, the_call(turn, "dig").result
        assert found == ("timeout", "not finished after 4 s", None)
        await ann.call("approve", id=approval["id"])
        assert ended(await net.turn("bot-m1")).outcome == "finished"


@pytest.mark.behaviour("H-84")
@pytest.mark.parametrize("how", ["killed", "cut"])
async def test_an_agent_that_was_away_while_it_waited_goes_on_when_it_is_back(
    in_memory: Networks, tmp_path: Path, how: str
) -> None:
    async with ModelServer(script(PAY, replies("paid"))) as model, harness(in_memory) as net:
        ann, shop, approval = await waiting(net, model, tmp_path)
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
        assert len(model.requests) == 2
        assert (await asked(ann, 0)) == []


@pytest.mark.behaviour("H-85")
async def test_a_call_that_was_running_when_the_agent_died_is_not_run_again(
    in_memory: Networks, tmp_path: Path
) -> None:
    dig = says(call("dig", depth=3))
    async with ModelServer(script(dig, replies("who knows"))) as model, harness(in_memory) as net:
        ann, shop, approval = await waiting(net, model, tmp_path)
        await ann.call("approve", id=approval["id"])
        await shop.until_done(1)
        await net.kill("bot")
        await shop.start()
        told = failure_of(await net.turn("bot-m1"), "dig")
        assert told["error"] == "interrupted"
        assert "may or may not have taken effect" in str(told["message"])
        assert shop.done == ["digging 3"]


@pytest.mark.behaviour("H-86")
async def test_a_helper_waits_for_a_person_as_its_turn_does(
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
    async with ModelServer(played) as model, harness(in_memory) as net:
        ann, shop, approval = await waiting(net, model, tmp_path, fork={})
        await ann.call("approve", id=approval["id"])
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 3 to bob"]
        assert the_call(turn, "fork").result == "it is paid"
        assert len(model.requests) == 4

    # In the background, too: the turn goes on until it has to wait.
    begins = says(call("fork", goal="pay it", background=True))
    waits = says(call("wait_for", helper=1))
    played = Script(
        rules=rules, answers=[begins, says(call("add", a=1, b=1)), waits, replies("ok")]
    )
    async with ModelServer(played) as model, harness(in_memory) as net:
        ann, shop, approval = await waiting(net, model, tmp_path, fork={})
        await ann.call("approve", id=approval["id"])
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 3 to bob"]
        assert "it is paid" in [c.result for s in turn.steps for c in s.calls]
        assert ended(turn).outcome == "finished"
        assert len(model.requests) == 6


@pytest.mark.behaviour("H-86")
async def test_the_steps_of_a_plan_wait_for_a_person(in_memory: Networks, tmp_path: Path) -> None:
    steps: list[JsonValue] = [
        {"id": 1, "goal": "pay", "executor": "pay", "arguments": {"amount": 4}},
        {"id": 2, "goal": "sum", "executor": "add", "arguments": {"a": 1, "b": 2}},
    ]
    played = [
        says(call("route", target="make_plan", confidence=0.9)),
        says(call("submit_plan", steps=steps)),
        says(
            call(
                "judge",
                verdict="accept",
                scores=scores(5),
                reasoning="fine",
                answer="$step_1_result",
            )
        ),
    ]
    async with playing(*played) as model, harness(in_memory) as net:
        ann, shop, approval = await waiting(net, model, tmp_path, kind="pipeline")
        await net.kill("bot")
        await shop.start(kind="pipeline")
        await parked(net, ann)
        await ann.call("approve", id=approval["id"], arguments={"amount": 4, "to": "carl"})
        turn = await net.turn("bot-m1")
        assert shop.done == ["paid 4 to carl"]
        assert ended(turn).outcome == "finished"
        assert await heard(net, ann) == ["paid 4 to carl"], "the result, and nothing else"
        judged = model.requests[-1].body.messages[-1].text
        assert "approved by ann with changes: to: (not given) -&gt;" in judged


ROOMY = config(
    network={
        "limits": {"burst": 100_000, "calls_per_second": 100_000},
        "breaker": {"enabled": False},  # more turns in one thread than any person would start
        "budgets": {"wakes": None},
    }
)


async def approve_all(person: Peer) -> None:
    """Say yes to whatever is asked, until cancelled."""
    seen: set[str] = set()
    while True:
        await person.until(lambda: any(s["type"] == "approval" for s in person.signals))
        signals, person.signals[:] = [s["data"] for s in person.signals], []
        for told in signals:
            if told and told.get("state") == "pending" and told["id"] not in seen:
                seen.add(told["id"])
                await person.ask("approve", id=told["id"])  # which may be too late


PAYS = Script(
    rules=[
        ScriptRule(
            when=When.model_validate({"step": 1}),
            answer=says(call("add", a=1, b=2), call("pay", amount=7)),
        ),
        ScriptRule(when=When.model_validate({"step": 2}), answer=replies("over")),
    ]
)


@pytest.mark.slow
@pytest.mark.behaviour("H-83")
async def test_a_turn_that_is_stopped_at_any_await_around_an_approval_ends_once(
    in_memory: Networks, tmp_path: Path
) -> None:
    points, outcomes = Points(), Counter[str]()
    async with ModelServer(PAYS) as model, harness(in_memory, ROOMY) as net:
        ann, boss = await net.person(), await net.person("boss")
        shop = Shop(net, model, tmp_path)
        saying = asyncio.create_task(approve_all(boss))
        with points.watching():
            await shop.start()
            for point in range(MOST_POINTS):
                points.strike_at(point, lambda turn: turn.cancel())
                before = len(shop.done)
                turn = await net.turn(f"bot-{(await ann.say('bot', 'pay'))['id']}")
                async with soon():
                    await asyncio.gather(*points.tasks, return_exceptions=True)
                assert all(task.done() for task in points.tasks), points.where
                outcomes[ended(turn).outcome] += 1
                assert len(shop.done) - before <= 1, points.where
                assert len(await heard(net, ann)) <= 1, points.where
                if not points.struck:
                    break
        saying.cancel()
    assert outcomes["finished"] > 0, "the last one was not struck"
    assert outcomes["cancelled"] > 15, outcomes


@pytest.mark.slow
@pytest.mark.behaviour("H-84", "H-85")
async def test_a_turn_whose_process_dies_at_any_await_runs_an_approved_call_once_at_most(
    in_memory: Networks, tmp_path: Path
) -> None:
    points, ends = Points(), Counter[str]()
    async with ModelServer(PAYS) as model, harness(in_memory, ROOMY) as net:
        ann, boss = await net.person(), await net.person("boss")
        shop = Shop(net, model, tmp_path)
        saying = asyncio.create_task(approve_all(boss))
        with points.watching():
            for point in range(MOST_POINTS):
                await shop.start()
                dead = asyncio.Event()
                points.strike_at(point, lambda turn, dead=dead: dead.set())  # type: ignore[misc]
                before = len(shop.done)
                turn_id = f"bot-{(await ann.say('bot', 'pay'))['id']}"
                recorded = asyncio.create_task(net.turn(turn_id))
                dying = asyncio.create_task(dead.wait())
                async with soon():
                    await asyncio.wait({recorded, dying}, return_when=asyncio.FIRST_COMPLETED)
                dying.cancel()
                await net.kill("bot")
                if points.struck:
                    await net.network.gone("bot")
                    await shop.start()
                turn: Turn = await recorded
                runs, record = len(shop.done) - before, the_call(turn, "pay")
                assert ended(turn).outcome == "finished", points.where
                assert runs <= 1, points.where
                assert record.error == "interrupted" or (record.error, runs) == (None, 1)
                ends[record.error or "paid"] += 1
                assert await heard(net, ann) == ["over"], points.where
                if not points.struck:
                    break
                await net.kill("bot")
        saying.cancel()
    assert ends["paid"] > 10, ends
