"""Approvals: an agent asks, a person decides, the call runs once."""

from __future__ import annotations

import hashlib
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hubbub.config.models import NetworkFile
from hubbub.network.log import Change
from hubbub.network.records import TurnEnded
from hubbub.protocol.turns import TurnEnd
from tests.interaction.peers import Frame, Network, Networks, Peer, config
from tests.interaction.stop_harness import HandClock, at_work, begin, let_in, notices
from tests.interaction.stores import MoodyStore

ARGUMENTS = {"path": "/tmp/x", "force": None}
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "force": {}},
    "required": ["path"],
    "additionalProperties": False,
}
CALL: dict[str, Any] = {"call": "1.c1", "tool": "delete_file", "arguments": ARGUMENTS}


async def ask(agent: Peer, turn: str, call: str = "1.c1", **more: Any) -> Any:
    """Ask whether a call may run."""
    args = {**CALL, "call": call, "schema": SCHEMA, "reason": "it deletes", **more}
    return await agent.call("request_approval", turn=turn, **args)


async def state(peer: Peer, id: str) -> str:
    return str((await peer.call("read_approval", id=id))["state"])


async def signalled(peer: Peer) -> Frame:
    """The approval in the next signal."""
    frame = await peer.signal("approval")
    assert frame["sender"] == "hub"
    data: Frame = frame["data"]
    assert None not in data.values(), "only what is known"
    return data


def people(**approvals: Any) -> NetworkFile:
    """A network with tokens: ann is an owner, bob and cat are not, and there are two agents."""
    humans = {"ann": {"roles": ["owner"]}, "bob": {}, "cat": {}}
    agents = {"calc": {"kind": "python"}, "spy": {"kind": "python"}}
    network = {"auth": "tokens", "approvals": approvals}
    return config(network=network, humans=humans, agents=agents)


async def working_for_bob(network: Network) -> tuple[Peer, str]:
    """An agent in the middle of a turn for bob, who has left."""
    bob = await let_in(network, "bob")
    calc = await let_in(network, "calc", "agent", turns=True)
    await bob.say("calc", "clean up")
    turn = await begin(calc)
    await bob.close()
    await network.gone("bob")
    return calc, turn


@pytest.mark.behaviour("H-40")
async def test_a_call_is_requested_approved_and_started_once(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await at_work(network)
        approval = await ask(calc, turn)
        assert (approval["state"], approval["may_decide"]) == ("pending", False)
        assert approval["arguments"] == ARGUMENTS
        pending = await signalled(ann)
        assert (pending["id"], pending["state"]) == (approval["id"], "pending")
        assert (pending["may_decide"], pending["schema"]) == (True, SCHEMA)
        approved = await ann.call(
            "approve", id=approval["id"], hash=approval["hash"][:12], reason="ok"
        )
        assert (approved["state"], approved["decided_by"]) == ("approved", "ann")
        assert [(await signalled(calc))["state"] for _ in "12"] == ["pending", "approved"]
        started = await calc.call("start_approved", id=approval["id"])
        assert (started["state"], started["final"]) == ("started", ARGUMENTS)
        assert approved["decided_at"] <= started["started_at"]
        assert (await calc.ask("start_approved", id=approval["id"]))["code"] == "not_pending"
        again = await ask(calc, turn)
        assert (again["state"], again["decided_by"], again["verdict"]) == ("started", "ann", "ok")
        is_tool = {op["name"]: op["tool"] for op in calc.ready["operations"]}
        for name in ("request_approval", "approve", "deny", "start_approved", "list_approvals"):
            assert not is_tool[name], "models cannot call it"


@pytest.mark.behaviour("H-41", "H-47")
async def test_only_the_configured_approvers_can_decide(in_memory: Networks) -> None:
    async with in_memory.start(people(approvers=["cat"])) as network:
        calc, turn = await working_for_bob(network)
        ids = [(await ask(calc, turn, f"{n}"))["id"] for n in range(4)]
        id = ids[-1]
        ann, bob, cat = [await let_in(network, name) for name in ("ann", "bob", "cat")]
        signals = [await signalled(cat) for _ in ids]
        assert {(each["id"], each["may_decide"]) for each in signals} == {(id, True) for id in ids}
        spy = await let_in(network, "spy", "agent")
        program = await let_in(network, "sly", "service")
        for name in ("approve", "deny"):
            for outsider in (bob, spy, program):
                assert (await outsider.ask(name, id=id))["code"] == "unknown_approval"
            for reader in (ann, calc):
                error = await reader.ask(name, id=id)
                assert error["code"] == "forbidden"
                assert error["message"] == "only cat can decide this, never an agent"
        assert (await ann.call("read_approval", id=id))["may_decide"] is False
        read = await cat.call("read_approval", id=id)
        assert (read["may_decide"], read["approvers"]) == (True, ["cat"])
        await cat.call("deny", id=ids[0])
        assert (await signalled(ann))["state"] == "denied", "not of the pending state"
        for peer in (ann, cat, calc):
            page = await peer.call("list_approvals")
            assert ([each["id"] for each in page["approvals"]], page["more"]) == (ids[:0:-1], False)
            page = await peer.call("list_approvals", state="all", limit=2)
            assert ([each["id"] for each in page["approvals"]], page["more"]) == (ids[:1:-1], True)
            page = await peer.call("list_approvals", state="all", agent="calc")
            assert (len(page["approvals"]), page["more"]) == (4, False)
            none = await peer.call("list_approvals", agent="spy")
            assert (none["approvals"], none["more"]) == ([], False)
        for peer in (bob, spy):
            for which in ("pending", "all"):
                assert (await peer.call("list_approvals", state=which))["approvals"] == []
        await calc.close()
        await network.gone("calc")
        assert (await cat.call("approve", id=id))["decided_by"] == "cat"
        back = await let_in(network, "calc", "agent", turns=True)
        await back.sync()
        states = {
            s["data"]["id"]: s["data"]["state"] for s in back.signals if s["type"] == "approval"
        }
        assert states == {id: "approved", ids[0]: "denied"}


@pytest.mark.behaviour("H-41")
async def test_without_approvers_owners_decide_but_never_programs(in_memory: Networks) -> None:
    async with in_memory.start(people()) as network:
        calc, turn = await working_for_bob(network)
        id = (await ask(calc, turn))["id"]
        ann, cat = await let_in(network, "ann"), await let_in(network, "cat")
        assert (await cat.ask("approve", id=id))["code"] == "unknown_approval"
        assert (await ann.call("approve", id=id))["state"] == "approved"
    file = people(approvers=["cat"])
    file.agents["calc"].approvers.append("bob")
    async with in_memory.start(file) as network:
        calc, turn = await working_for_bob(network)
        assert (await ask(calc, turn))["approvers"] == ["bob"]
    async with in_memory.start() as network:  # not even in an open network
        _ann, calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
        spy, program = await network.join("spy", "agent"), await network.join("sly", "service")
        error = await calc.ask("approve", id=id)
        assert error["message"].startswith("only the owners can decide")
        codes = [(await peer.ask("approve", id=id))["code"] for peer in (calc, spy, program)]
        assert codes == ["forbidden", "unknown_approval", "forbidden"]
        assert await state(calc, id) == "pending"


@pytest.mark.behaviour("H-42")
async def test_a_denied_or_pending_call_cannot_be_started(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
        await ann.call("deny", id=id, reason="not today")
        assert (await signalled(calc))["state"] == "pending"
        denied = await signalled(calc)
        assert (denied["state"], denied["verdict"]) == ("denied", "not today")
        error = await calc.ask("start_approved", id=id)
        assert error["code"] == "not_pending"
        assert error["message"] == f"approval {id} is denied: ann denied it (not today)"
        keys = ("state", "decided_by", "decided_at", "verdict")
        assert error["details"] == {key: denied[key] for key in keys}
        pending = (await ask(calc, turn, "2"))["id"]
        error = await calc.ask("start_approved", id=pending)
        assert error["message"] == f"approval {pending} is pending: no one has decided yet"
        assert (await ask(calc, turn))["state"] == "denied"


@pytest.mark.behaviour("H-42")
async def test_edited_arguments_must_fit_the_schema_and_the_hash(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        approval = await ask(calc, turn)
        canonical = '{"force":null,"path":"/tmp/x"}'
        assert approval["hash"] == hashlib.sha256(canonical.encode()).hexdigest()
        error = await ann.ask("approve", id=approval["id"], hash="0" * 64)
        assert (error["code"], "hash" in error["message"]) == ("bad_request", True)
        wrong = await ann.ask("approve", id=approval["id"], arguments={"path": 3, "more": 1})
        assert wrong["code"] == "bad_request"
        assert "$.path" in wrong["message"]
        assert "more" in wrong["message"]
        edited = {"arguments": {"path": "/tmp/y"}, "hash": approval["hash"]}
        approved = await ann.call("approve", id=approval["id"], **edited)
        assert (approved["final"], approved["arguments"]) == ({"path": "/tmp/y"}, ARGUMENTS)
        started = await calc.call("start_approved", id=approval["id"])
        assert started["final"] == {"path": "/tmp/y"}
        free = (await ask(calc, turn, "2", schema=None))["id"]
        approved = await ann.call("approve", id=free, arguments={"any": [1]})
        assert approved["final"] == {"any": [1]}
        for schema in ({"type": 3}, {"$ref": "#"}, {"$ref": "http://h/x"}):  # invalid ones
            id = (await ask(calc, turn, str(schema)[:20], schema=schema))["id"]
            error = await ann.ask("approve", id=id, arguments={"path": "x"})
            assert (error["code"], "schema" in error["message"]) == ("bad_request", True)
            assert (await ann.call("approve", id=id))["final"] == ARGUMENTS


@pytest.mark.behaviour("H-40")
async def test_only_a_running_turn_can_request_approval_once_per_call(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        spy = await network.join("spy", "agent")
        first = await ask(calc, turn)
        assert (await ask(calc, turn))["id"] == first["id"]
        assert (await ask(calc, turn, "1.c2"))["id"] != first["id"]
        for other in ({"arguments": {"path": "/"}}, {"tool": "format"}):
            error = await calc.ask("request_approval", turn=turn, **{**CALL, **other})
            assert error["code"] == "bad_request"
        assert len((await ann.call("list_approvals"))["approvals"]) == 2
        for peer, named in ((spy, turn), (calc, "calc-m77"), (ann, turn)):
            error = await peer.ask("request_approval", turn=named, **CALL)
            assert error["code"] in ("unknown_turn", "bad_request"), named
        await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
        assert (await calc.ask("request_approval", turn=turn, **CALL))["code"] == "turn_over"


@pytest.mark.behaviour("H-40")
async def test_an_agent_cannot_keep_its_owners_out_by_very_large_approvals(
    in_memory: Networks,
) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        large: dict[str, Any] = {"tool": "pay", "arguments": {"text": "x" * 200_000}}
        refs = [
            await calc.post("request_approval", turn=turn, call=f"{n}", **large) for n in range(9)
        ]
        answers = [await calc.answer(ref) for ref in refs]
        assert [answer.get("code") for answer in answers] == [None] * 5 + ["limit"] * 4
        await ann.call("deny", id=answers[0]["value"]["id"])
        await calc.call("request_approval", turn=turn, call="9", **large)


@pytest.mark.behaviour("H-40")
async def test_two_simultaneous_requests_for_a_call_are_one_approval(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        refs = [await calc.post("request_approval", turn=turn, **CALL) for _ in "12"]
        first, second = [(await calc.answer(ref))["value"] for ref in refs]
        assert first == second
        await ann.sync()
        assert [each["data"]["id"] for each in ann.signals if each["type"] == "approval"] == [
            first["id"]
        ]


async def test_an_owner_can_list_the_approvals_of_one_agent(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        spy = await network.join("spy", "agent", turns=True)
        await ann.say("spy", "look")
        own, other = (await ask(calc, turn))["id"], (await ask(spy, await begin(spy)))["id"]
        for state in ("pending", "all"):
            for agent, ids in (("calc", [own]), ("spy", [other]), (None, [other, own])):
                page = await ann.call("list_approvals", state=state, agent=agent, limit=2)
                assert ([each["id"] for each in page["approvals"]], page["more"]) == (ids, False)
            page = await calc.call("list_approvals", state=state, limit=1)
            assert [each["id"] for each in page["approvals"]] == [own], "not of other agents"


@pytest.mark.behaviour("H-43")
async def test_two_simultaneous_decisions_count_once(network: Network, moody: MoodyStore) -> None:
    ann, calc, turn = await at_work(network)
    bob = await network.join("bob")
    id = (await ask(calc, turn))["id"]
    moody.gate.clear()
    first = await ann.post("approve", cid="c1", id=id)
    await moody.until_waiting()
    second = await bob.post("deny", id=id, reason="no")
    third = await calc.post("start_approved", cid="c2", id=id)
    await bob.call("list_channels")  # the hub has read what came before it
    moody.gate.set()
    approved = (await ann.answer(first))["value"]
    assert approved["state"] == "approved"
    error = await bob.answer(second)
    assert error["code"] == "not_pending"
    assert "ann approved it" in error["message"] or "started" in error["message"]
    assert error["details"]["decided_by"] == "ann"
    started = (await calc.answer(third))["value"]
    assert started["state"] == "started"
    again = await ann.ask("approve", cid="c1", id=id)
    assert (again["value"], again["duplicate"]) == (approved, True)
    again = await calc.ask("start_approved", cid="c2", id=id)
    assert (again["value"], again["duplicate"]) == (started, True)
    assert (await calc.ask("start_approved", cid="c3", id=id))["code"] == "not_pending"


@pytest.mark.behaviour("H-44")
async def test_an_approval_expires_when_no_one_decides_in_time(in_memory: Networks) -> None:
    file = config(network={"approvals": {"expire": "20ms"}})
    async with in_memory.start(file) as network:
        ann, calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
        assert [(await signalled(calc))["state"] for _ in "12"] == ["pending", "expired"]
        error = await ann.ask("approve", id=id)
        assert (error["code"], error["details"]["state"]) == ("not_pending", "expired")
        assert (await calc.ask("start_approved", id=id))["code"] == "not_pending"
        assert (await ask(calc, turn))["state"] == "expired"


@pytest.mark.behaviour("H-44")
async def test_a_decision_after_expiry_is_refused_whatever_the_clock_was_set_to(
    in_memory: Networks,
) -> None:
    clock = HandClock()
    async with in_memory.start(clock=clock) as network:
        ann, calc, turn = await at_work(network)
        clock.set(3_000_000)
        approval, other = await ask(calc, turn), await ask(calc, turn, "2")
        id, expires = approval["id"], datetime.fromisoformat(approval["expires_at"])
        assert expires.timestamp() == clock.wall + 86400, "by the wall clock"
        clock.set(-1_000_000)  # does not extend the wait
        clock.wall += 86399
        assert (await ann.call("approve", id=other["id"]))["state"] == "approved"
        clock.wall += 1
        error = await ann.ask("approve", id=id)
        assert (error["code"], error["details"]["state"]) == ("not_pending", "expired")
        assert await state(ann, id) == "expired"
        assert network.hub.services.approvals.due(clock.wall) is None, "no other can expire"


@pytest.mark.behaviour("H-44")
async def test_a_clock_set_back_while_the_hub_is_down_does_not_extend_the_wait(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, clock = f"sqlite:{tmp_path / 'log.db'}", HandClock()
    async with in_memory.start(store=store, clock=clock) as network:
        _ann, calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
    clock.set(-1_000_000)
    async with in_memory.start(store=store, clock=clock) as network:
        ann = await network.join("ann", latest=True)
        clock.wall += 86400
        assert (await ann.ask("approve", id=id))["details"]["state"] == "expired"


@pytest.mark.behaviour("H-46")
@pytest.mark.parametrize("how", ["end", "stop"])
async def test_the_end_of_a_turn_cancels_its_approvals(in_memory: Networks, how: str) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        pending, approved, denied = [(await ask(calc, turn, call))["id"] for call in "123"]
        await ann.call("approve", id=approved)
        await ann.call("deny", id=denied)
        if how == "end":
            await calc.call("end_turn", end={"id": turn, "outcome": "cancelled"})
        else:
            await ann.call("stop", scope="turn", target=turn, reason="enough")
            assert (await calc.ask("request_approval", turn=turn, **CALL))["code"] == "turn_over"
        await network.quiet()
        for id in (pending, approved):
            assert await state(ann, id) == "cancelled"
            assert (await ann.ask("approve", id=id))["code"] == "not_pending"
            error = await calc.ask("start_approved", id=id)
            assert error["code"] == ("not_pending" if how == "end" else "turn_over")
        assert (await ann.call("list_approvals"))["approvals"] == []
        assert await state(ann, denied) == "denied"
        await calc.close()
        await network.gone("calc")
        back = await network.join("calc", "agent", turns=True)
        await back.sync()
        assert not [each for each in back.signals if each["type"] == "approval"]


@pytest.mark.behaviour("H-46")
async def test_a_turn_that_ends_during_a_decision_about_its_approval_cancels_it_afterwards(
    network: Network, moody: MoodyStore
) -> None:
    ann, calc, turn = await at_work(network)
    id = (await ask(calc, turn))["id"]
    moody.gate.clear()
    ended = await calc.post("end_turn", end={"id": turn, "outcome": "finished"})
    await moody.until_waiting()
    approved = await ann.post("approve", id=id)
    await ann.call("list_channels")  # the hub has read what came before it
    moody.gate.set()
    assert (await calc.answer(ended))["op"] == "result"
    assert (await ann.answer(approved))["value"]["state"] == "approved"
    await network.quiet()
    assert await state(ann, id) == "cancelled"


@pytest.mark.behaviour("H-47")
async def test_one_notice_announces_an_approval_in_its_thread_and_wakes_no_one(
    in_memory: Networks,
) -> None:
    async with in_memory.start(people(approvers=["bob", "cat"])) as network:
        calc, turn = await working_for_bob(network)
        id = (await ask(calc, turn))["id"]
        await ask(calc, turn)
        await network.quiet()
        bob = await let_in(network, "bob")
        page = await bob.call("read_thread", thread="dm.bob.calc")
        (notice,) = [m for m in page["messages"] if m["sender_kind"] == "system"]
        about = {"approval": id, "agent": "calc", "turn": turn, "tool": "delete_file"}
        assert notice["content"] == {"notice": "approval", "code": "approval", **about}
        assert notice["mentions"] == ["bob"]
        assert notice["text_representation"] == (
            "calc asks to run delete_file. Needs approval by bob or cat."
        )
        assert "/tmp/x" not in str(notice)
        assert "wake" not in str(await calc.sync())


@pytest.mark.behaviour("H-47")
async def test_who_asked_is_told_in_their_thread_that_delegated_work_waits_for_approval(
    in_memory: Networks,
) -> None:
    async with in_memory.start(people()) as network:
        ann, bob = [await let_in(network, name) for name in ("ann", "bob")]
        calc = await let_in(network, "calc", "agent", turns=True)
        spy = await let_in(network, "spy", "agent", turns=True)
        for person, told in ((bob, True), (ann, False)):
            question = await person.say("calc", "clean up")
            request = await calc.call("delegate", to="spy", task="clean", cause=await begin(calc))
            turn = await begin(spy)
            ids = [(await ask(spy, turn, f"{n}"))["id"] for n in range(2)]
            found = await notices(network, person)
            assert [each["thread_id"] for each in found] == ["dm.bob.calc"] * told
            for notice in found:
                about = {
                    "approval": ids[0],
                    "agent": "spy",
                    "turn": turn,
                    "message": question["id"],
                }
                assert notice["content"] == {"notice": "approval", "code": "approval", **about}
                assert notice["text_representation"] == (
                    "spy, who works on this, waits for approval by ann."
                )
            await spy.call("report", request=request["id"], status="result", text="done")
            await calc.sync()


# Restarts and disks -------------------------------------------------------------------------


@pytest.mark.behaviour("H-48")
async def test_approvals_survive_a_restart_at_each_stage(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, clock = f"sqlite:{tmp_path / 'log.db'}", HandClock()
    stages = ["pending", "approved", "denied", "started"]
    async with in_memory.start(store=store, clock=clock) as network:
        ann, calc, turn = await at_work(network)
        ids = {stage: (await ask(calc, turn, stage))["id"] for stage in stages}
        for stage in ("approved", "started"):
            await ann.call("approve", id=ids[stage], arguments={"path": "/tmp/z"})
        await ann.call("deny", id=ids["denied"], reason="no")
        await calc.call("start_approved", id=ids["started"])
        late = (await ask(calc, turn, "late"))["id"]
    async with in_memory.start(store=store, clock=clock) as network:
        ann = await network.join("ann", latest=True)
        calc = await network.join("calc", "agent", turns=True)
        assert {(await signalled(ann))["id"] for _ in "12"} == {ids["pending"], late}
        for stage, id in ids.items():
            again = await ask(calc, turn, stage)
            assert (again["id"], again["state"]) == (id, stage)
            if stage == "pending":
                await ann.call("approve", id=id)
            assert (await ann.ask("approve", id=id))["code"] == "not_pending"
            start = await calc.ask("start_approved", id=id)
            assert start["op"] == ("result" if stage in ("pending", "approved") else "error")
            assert (await calc.ask("start_approved", id=id))["code"] == "not_pending"
        await network.quiet()
        page = await ann.call("read_thread", thread="dm.ann.calc", limit=50)
        assert len([m for m in page["messages"] if m["sender_kind"] == "system"]) == 5
    clock.wall += 90000
    async with in_memory.start(store=store, clock=clock) as network:
        ann = await network.join("ann", latest=True)
        assert (await ann.ask("approve", id=late))["code"] == "not_pending"
        assert await state(ann, late) == "expired"


@pytest.mark.behaviour("H-41", "H-48")
async def test_after_a_restart_the_approvers_of_the_new_config_decide(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'log.db'}"
    async with in_memory.start(store=store) as network:
        _ann, calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
    file = config(network={"approvals": {"approvers": ["bob"]}})
    async with in_memory.start(file, store=store) as network:
        ann, bob = [await network.join(name, latest=True) for name in ("ann", "bob")]
        assert (await ann.ask("approve", id=id))["code"] == "forbidden"
        assert (await bob.call("approve", id=id))["decided_by"] == "bob"


@pytest.mark.behaviour("H-48")
async def test_a_notice_that_could_not_be_stored_is_posted_at_the_next_start(
    in_memory: Networks, tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path / 'log.db'}"
    store = MoodyStore(url)
    async with in_memory.start(store=store) as network:
        ann, calc, turn = await at_work(network)
        store.gate.clear()
        ref = await calc.post("request_approval", turn=turn, **CALL)
        await store.hold_second_commit()
        id = (await calc.answer(ref))["value"]["id"]
        store.failing = 1
        store.gate.set()
        await network.quiet()
        store.gate.clear()
        store.waiting.clear()
        ref = await calc.post("request_approval", turn=turn, **{**CALL, "call": "2"})
        await store.hold_second_commit()
        approve = await ann.post("approve", id=(await calc.answer(ref))["value"]["id"])
        store.failing = 1
        store.gate.set()
        assert (await ann.answer(approve))["op"] == "result", "it needs no notice any more"
        await network.quiet()
    async with in_memory.start(store=url) as network:
        ann = await network.join("ann", latest=True)
        await network.quiet()
        page = await ann.call("read_thread", thread="dm.ann.calc")
        (notice,) = [m for m in page["messages"] if m["sender_kind"] == "system"]
        assert notice["content"]["approval"] == id
        assert notice["text_representation"].endswith("Needs approval by an owner.")


@pytest.mark.behaviour("H-48")
async def test_an_approval_of_an_ended_turn_is_cancelled_at_the_next_start(
    in_memory: Networks, tmp_path: Path
) -> None:
    path = f"sqlite:{tmp_path / 'log.db'}"
    async with in_memory.start(store=path) as network:
        _ann, calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
        over = TurnEnd(id=turn, outcome="finished").model_dump_json()
        end = Change(lambda head: [TurnEnded(turn, 1.0, over)], lambda error: None)
        network.hub.kernel.log.change(end)  # as if the hub died right after the turn's end
        await network.quiet()
    async with in_memory.start(store=path) as network:
        ann = await network.join("ann", latest=True)
        while await state(ann, id) == "pending":
            assert (await signalled(ann))["id"] == id
        assert await state(ann, id) == "cancelled"


@pytest.mark.behaviour("H-48")
async def test_a_failed_commit_leaves_an_approval_in_its_stage(
    network: Network, moody: MoodyStore
) -> None:
    ann, calc, turn = await at_work(network)
    moody.failing = 1
    error = await calc.ask("request_approval", turn=turn, **CALL)
    assert (error["code"], error["temporary"]) == ("store_unavailable", True)
    assert (await ann.call("list_approvals"))["approvals"] == []
    id = (await ask(calc, turn))["id"]
    for name in ("approve", "deny"):
        moody.failing = 1
        assert (await ann.ask(name, id=id))["code"] == "store_unavailable"
        assert await state(ann, id) == "pending"
    await ann.call("approve", id=id)
    moody.failing = 1
    assert (await calc.ask("start_approved", id=id))["code"] == "store_unavailable"
    assert (await calc.call("start_approved", id=id))["state"] == "started"
    # The turn's end is stored, the cancellation of its approvals is refused.
    id, pending = [(await ask(calc, turn, call))["id"] for call in "23"]
    await ann.call("approve", id=id)
    moody.gate.clear()
    ended = await calc.post("end_turn", end={"id": turn, "outcome": "finished"})
    await moody.hold_second_commit()
    assert (await calc.answer(ended))["op"] == "result"
    moody.failing = 1
    late = await calc.post("start_approved", id=id)
    decided = await ann.post("approve", id=pending)
    moody.gate.set()
    assert (await calc.answer(late))["code"] == "not_pending"
    error = await ann.answer(decided)
    assert (error["code"], error["details"]["state"]) == ("not_pending", "cancelled")


@pytest.mark.behaviour("H-43")
@pytest.mark.parametrize("seed", range(3))
async def test_random_simultaneous_decisions_and_starts_each_count_once(
    network: Network, moody: MoodyStore, seed: int
) -> None:
    chance = random.Random(seed)
    ann, calc, turn = await at_work(network)
    bob = await network.join("bob")
    ids = [(await ask(calc, turn, f"{n}"))["id"] for n in range(3)]
    posted: list[tuple[Peer, str, str, str]] = []
    for _ in range(60):
        peer, name = chance.choice(
            [(ann, "approve"), (ann, "deny"), (bob, "approve"), (calc, "start_approved")]
        )
        id = chance.choice(ids)
        moody.failing = chance.choice([0, 0, 1])
        posted.append((peer, name, id, await peer.post(name, id=id)))
        if chance.random() < 0.3:
            await network.quiet()
    moody.failing = 0
    done = {id: list[str]() for id in ids}
    for peer, name, id, ref in posted:
        answer = await peer.answer(ref)
        if answer["op"] == "result":
            done[id].append(name)
        else:
            assert answer["code"] in ("not_pending", "store_unavailable")
    expected = {
        "pending": [],
        "approved": ["approve"],
        "denied": ["deny"],
        "started": ["approve", "start_approved"],
    }
    for id in ids:
        assert sorted(done[id]) == expected[await state(ann, id)]
