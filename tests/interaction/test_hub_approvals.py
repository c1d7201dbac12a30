"""Approvals: an agent asks, a person decides, the call runs once."""

from __future__ import annotations

import hashlib
import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hubbub.config.models import NetworkFile
from hubbub.mods.api import Mod, ModConfig, Pass, Reject, Verdict
from hubbub.network.log import Change
from hubbub.network.records import TurnEnded
from hubbub.protocol.messages import Draft
from hubbub.protocol.turns import TurnEnd
from tests.interaction.hand_clock import HandClock
from tests.interaction.peers import Network, Networks, Peer, config, soon
from tests.interaction.stores import MoodyStore

ARGUMENTS = {"path": "/tmp/x", "force": None}
SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "force": {}},
    "required": ["path"],
    "additionalProperties": False,
}


async def working(network: Network, asker: str = "ann") -> tuple[Peer, Peer, str]:
    """A person, an agent that she has asked something, and its turn, which has begun."""
    person = await network.join(asker)
    agent = await network.join("calc", "agent", turns=True)
    sent = await person.say("calc", "clean up")
    event = await agent.event()
    turn = event["wake"]["turn"]
    start = {"id": turn, "thread_id": sent["thread_id"], "messages": [sent["id"]]}
    await agent.call("begin_turn", start=start)
    return person, agent, turn


async def ask(agent: Peer, turn: str, call: str = "1.c1", **more: Any) -> Any:
    """Ask whether a call may run."""
    args: dict[str, Any] = {
        "turn": turn,
        "call": call,
        "tool": "delete_file",
        "arguments": ARGUMENTS,
        "schema": SCHEMA,
        "reason": "it deletes",
        **more,
    }
    return await agent.call("request_approval", **args)


@pytest.mark.behaviour("H-40")
async def test_a_call_is_asked_for_approved_and_started(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        asked = await ask(calc, turn)
        assert (asked["state"], asked["may_decide"]) == ("pending", False)
        assert asked["arguments"] == ARGUMENTS
        told = (await ann.signal("approval"))["data"]
        assert (told["id"], told["state"], told["may_decide"]) == (asked["id"], "pending", True)
        assert told["schema"] == SCHEMA
        approved = await ann.call("approve", id=asked["id"], hash=asked["hash"][:12], reason="ok")
        assert (approved["state"], approved["decided_by"]) == ("approved", "ann")
        heard = [await calc.signal("approval"), await calc.signal("approval")]
        assert [signal["data"]["state"] for signal in heard] == ["pending", "approved"]
        started = await calc.call("start_approved", id=asked["id"])
        assert (started["state"], started["final"]) == ("started", ARGUMENTS)
        again = await calc.ask("start_approved", id=asked["id"])
        assert again["code"] == "not_pending"
        stands = await ask(calc, turn)
        assert (stands["state"], stands["decided_by"], stands["verdict"]) == (
            "started",
            "ann",
            "ok",
        )


def people(**sections: Any) -> NetworkFile:
    """A network with tokens: ann is an owner, bob and cat are not, and there are two agents."""
    humans = {"ann": {"roles": ["owner"]}, "bob": {}, "cat": {}}
    agents = {"calc": {"kind": "python"}, "spy": {"kind": "python"}}
    return config(network={"auth": "tokens", **sections}, humans=humans, agents=agents)


async def enter(network: Network, name: str, kind: str = "human", **more: Any) -> Peer:
    """A participant of a network with tokens."""
    network.hub.joining.add_token(name, f"{name}-token")
    return await network.join(name, kind, token=f"{name}-token", **more)


async def at_work(network: Network) -> tuple[Peer, str]:
    """The agent in the middle of a turn that bob has asked for."""
    bob = await enter(network, "bob")
    calc = await enter(network, "calc", "agent", turns=True)
    sent = await bob.say("calc", "clean up")
    turn = (await calc.event())["wake"]["turn"]
    start = {"id": turn, "thread_id": sent["thread_id"], "messages": [sent["id"]]}
    await calc.call("begin_turn", start=start)
    await bob.close()
    await network.gone("bob")
    return calc, turn


@pytest.mark.behaviour("H-41")
async def test_the_approvers_of_the_config_decide_and_nobody_else(networks: Networks) -> None:
    async with networks.start(people(approvals={"approvers": ["cat"]})) as network:
        calc, turn = await at_work(network)
        asked = await ask(calc, turn)
        assert asked["approvers"] == ["cat"]
        ann, bob, cat = [await enter(network, name) for name in ("ann", "bob", "cat")]
        spy = await enter(network, "spy", "agent")
        program = await enter(network, "sly", "service")
        id = asked["id"]
        for name in ("approve", "deny"):
            for outsider in (bob, spy, program):
                assert (await outsider.ask(name, id=id))["code"] == "unknown_approval"
            for seen in (ann, calc):
                error = await seen.ask(name, id=id)
                assert error["code"] == "forbidden"
                assert "cat" in error["message"]
        assert (await ann.call("read_approval", id=id))["may_decide"] is False
        assert (await cat.call("read_approval", id=id))["may_decide"] is True
        assert (await cat.call("approve", id=id))["decided_by"] == "cat"


@pytest.mark.behaviour("H-41")
async def test_where_nobody_is_named_owners_decide(networks: Networks) -> None:
    async with networks.start(people()) as network:
        calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
        ann, cat = await enter(network, "ann"), await enter(network, "cat")
        assert (await cat.ask("approve", id=id))["code"] == "unknown_approval"
        assert (await ann.call("approve", id=id))["state"] == "approved"


@pytest.mark.behaviour("H-41")
async def test_an_agent_may_have_approvers_of_its_own(networks: Networks) -> None:
    file = people(approvals={"approvers": ["cat"]})
    file.agents["calc"].approvers.append("bob")
    async with networks.start(file) as network:
        calc, turn = await at_work(network)
        assert (await ask(calc, turn))["approvers"] == ["bob"]


@pytest.mark.behaviour("H-41")
async def test_an_agent_of_an_open_network_cannot_consent(networks: Networks) -> None:
    async with networks.start() as network:
        _ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        spy = await network.join("spy", "agent")
        program = await network.join("sly", "service")
        assert (await calc.ask("approve", id=id))["code"] == "forbidden"
        assert (await spy.ask("approve", id=id))["code"] == "unknown_approval"
        assert (await program.ask("approve", id=id))["code"] == "forbidden"
        assert (await calc.call("read_approval", id=id))["state"] == "pending"


async def test_none_of_it_is_offered_to_models(networks: Networks) -> None:
    async with networks.start() as network:
        calc = await network.join("calc", "agent")
        offered = {op["name"]: op["tool"] for op in calc.ready["operations"]}
        names = ["request_approval", "approve", "deny", "start_approved", "list_approvals"]
        assert [offered[name] for name in names] == [False] * 5


@pytest.mark.behaviour("H-42")
async def test_a_denied_call_is_not_started(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        await ann.call("deny", id=id, reason="not today")
        assert (await calc.signal("approval"))["data"]["state"] == "pending"
        told = (await calc.signal("approval"))["data"]
        assert (told["state"], told["verdict"]) == ("denied", "not today")
        error = await calc.ask("start_approved", id=id)
        assert error["code"] == "not_pending"
        assert "ann has denied it (not today)" in error["message"]
        assert (await ask(calc, turn))["state"] == "denied"


@pytest.mark.behaviour("H-42")
async def test_arguments_are_edited_within_the_schema(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        wrong = await ann.ask("approve", id=id, arguments={"path": 3, "more": 1})
        assert wrong["code"] == "bad_request"
        assert "$.path" in wrong["message"]
        assert "more" in wrong["message"]
        approved = await ann.call("approve", id=id, arguments={"path": "/tmp/y"})
        assert approved["final"] == {"path": "/tmp/y"}
        assert approved["arguments"] == ARGUMENTS
        started = await calc.call("start_approved", id=id)
        assert started["final"] == {"path": "/tmp/y"}


async def test_arguments_without_a_schema_are_edited_freely(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn, schema=None))["id"]
        approved = await ann.call("approve", id=id, arguments={"any": [1]})
        assert approved["final"] == {"any": [1]}


@pytest.mark.parametrize("schema", [{"type": 3}, {"$ref": "#"}, {"$ref": "http://h/x"}])
async def test_a_schema_that_is_none_lets_nobody_edit(networks: Networks, schema: Any) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn, schema=schema))["id"]
        error = await ann.ask("approve", id=id, arguments={"path": "x"})
        assert (error["code"], "schema" in error["message"]) == ("bad_request", True)
        assert (await ann.call("approve", id=id))["final"] == ARGUMENTS


@pytest.mark.behaviour("H-42")
async def test_the_hash_binds_a_decision_to_what_was_looked_at(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        asked = await ask(calc, turn)
        canonical = '{"force":null,"path":"/tmp/x"}'
        assert asked["hash"] == hashlib.sha256(canonical.encode()).hexdigest()
        error = await ann.ask("approve", id=asked["id"], hash="0" * 64)
        assert (error["code"], "hash" in error["message"]) == ("bad_request", True)
        assert (await ann.call("approve", id=asked["id"], hash=asked["hash"]))["state"]


@pytest.mark.behaviour("H-40")
async def test_a_call_that_is_asked_for_again_must_be_the_same(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        first = await ask(calc, turn)
        assert (await ask(calc, turn))["id"] == first["id"]
        assert (await ask(calc, turn, call="1.c2"))["id"] != first["id"]
        for other in ({"arguments": {"path": "/"}}, {"tool": "format"}):
            args: dict[str, Any] = {"tool": "delete_file", "arguments": ARGUMENTS, **other}
            error = await calc.ask("request_approval", turn=turn, call="1.c1", **args)
            assert error["code"] == "bad_request"
        assert len((await ann.call("list_approvals"))["approvals"]) == 2


async def test_only_a_turn_that_runs_asks(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        spy = await network.join("spy", "agent")
        args: dict[str, Any] = {"call": "1", "tool": "t", "arguments": {}}
        for peer, named in ((spy, turn), (calc, "calc-m77"), (ann, turn)):
            error = await peer.ask("request_approval", turn=named, **args)
            assert error["code"] in ("unknown_turn", "bad_request"), named
        await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
        assert (await calc.ask("request_approval", turn=turn, **args))["code"] == "turn_over"


@pytest.mark.behaviour("H-43")
async def test_two_who_decide_at_once_decide_once(networks: Networks) -> None:
    store = MoodyStore()
    async with networks.start(store=store) as network:
        ann, calc, turn = await working(network)
        bob = await network.join("bob")
        id = (await ask(calc, turn))["id"]
        store.gate.clear()
        first = await ann.post("approve", id=id)
        async with soon():
            await store.waiting.wait()
        second = await bob.post("deny", id=id, reason="no")
        third = await calc.post("start_approved", id=id)
        await bob.call("list_channels")  # the hub has read what came before it
        store.gate.set()
        assert (await ann.answer(first))["value"]["state"] == "approved"
        error = await bob.answer(second)
        assert error["code"] == "not_pending"
        assert "ann has approved it" in error["message"] or "started" in error["message"]
        assert error["details"]["decided_by"] == "ann"
        assert (await calc.answer(third))["value"]["state"] == "started"


@pytest.mark.behaviour("H-43")
async def test_a_decision_that_is_repeated_with_its_cid_is_the_same_decision(
    networks: Networks,
) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        first = await ann.call("approve", cid="c1", id=id)
        again = await ann.ask("approve", cid="c1", id=id)
        assert (again["value"], again["duplicate"]) == (first, True)
        started = await calc.call("start_approved", cid="c2", id=id)
        again = await calc.ask("start_approved", cid="c2", id=id)
        assert (again["value"], again["duplicate"]) == (started, True)
        assert (await calc.ask("start_approved", cid="c3", id=id))["code"] == "not_pending"


@pytest.mark.behaviour("H-44")
async def test_what_nobody_decides_in_time_is_a_no(networks: Networks) -> None:
    file = config(network={"approvals": {"expire": "50ms"}})
    async with networks.start(file) as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        await calc.until(lambda: states(calc)[-1:] == ["expired"])
        error = await ann.ask("approve", id=id)
        assert (error["code"], error["details"]["state"]) == ("not_pending", "expired")
        assert (await calc.ask("start_approved", id=id))["code"] == "not_pending"
        assert (await ask(calc, turn))["state"] == "expired"


@pytest.mark.behaviour("H-44")
async def test_a_decision_that_comes_too_late_counts_for_nothing(networks: Networks) -> None:
    clock = HandClock()
    async with networks.start(clock=clock) as network:
        ann, calc, turn = await working(network)
        clock.set(3_000_000)
        asked = await ask(calc, turn)
        id, expires = asked["id"], datetime.fromisoformat(asked["expires_at"])
        assert expires.timestamp() == clock.wall + 86400, "a date is one of the time of day"
        clock.set(-1_000_000)  # which makes the wait no longer
        clock.wall += 86400
        error = await ann.ask("approve", id=id)
        assert (error["code"], error["details"]["state"]) == ("not_pending", "expired")
        assert (await ann.call("read_approval", id=id))["state"] == "expired"


def states(peer: Peer) -> list[str]:
    """How the approvals stood that a socket has heard of."""
    return [s["data"]["state"] for s in peer.signals if s["type"] == "approval"]


@pytest.mark.behaviour("H-46")
async def test_the_end_of_its_turn_cancels_what_waits(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        pending = (await ask(calc, turn, "1"))["id"]
        approved = (await ask(calc, turn, "2"))["id"]
        await ann.call("approve", id=approved)
        await calc.call("end_turn", end={"id": turn, "outcome": "cancelled"})
        await network.quiet()
        for id in (pending, approved):
            assert (await ann.call("read_approval", id=id))["state"] == "cancelled"
            assert (await ann.ask("approve", id=id))["code"] == "not_pending"
            assert (await calc.ask("start_approved", id=id))["code"] == "not_pending"
        assert (await ann.call("list_approvals"))["approvals"] == []


@pytest.mark.behaviour("H-46")
async def test_a_stop_cancels_what_waits(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        await ann.call("stop", scope="turn", target=turn, reason="enough")
        await network.quiet()
        assert (await ann.call("read_approval", id=id))["state"] == "cancelled"
        args: dict[str, Any] = {"tool": "t", "arguments": {}, "call": "9", "turn": turn}
        assert (await calc.ask("request_approval", **args))["code"] == "turn_over"


@pytest.mark.behaviour("H-47")
async def test_one_notice_tells_those_in_the_thread_and_wakes_nobody(networks: Networks) -> None:
    async with networks.start(people(approvals={"approvers": ["bob", "cat"]})) as network:
        calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
        await ask(calc, turn)
        await network.quiet()
        bob = await enter(network, "bob")
        page = await bob.call("read_thread", thread="dm.bob.calc")
        (notice,) = [m for m in page["messages"] if m["sender_kind"] == "system"]
        assert notice["content"]["approval"] == id
        assert notice["mentions"] == ["bob"]
        assert "delete_file" in notice["text_representation"]
        assert "/tmp/x" not in str(notice)
        assert "wake" not in str(await calc.sync())


@pytest.mark.behaviour("H-47")
async def test_who_may_decide_is_told_what_waits_when_it_joins(networks: Networks) -> None:
    async with networks.start(people(approvals={"approvers": ["cat"]})) as network:
        calc, turn = await at_work(network)
        id = (await ask(calc, turn))["id"]
        ann, cat = await enter(network, "ann"), await enter(network, "cat")
        told = (await cat.signal("approval"))["data"]
        assert (told["id"], told["may_decide"]) == (id, True)
        await calc.close()
        await network.gone("calc")
        await cat.call("approve", id=id)
        assert (await ann.signal("approval"))["data"]["state"] == "approved"  # of the change only
        back = await enter(network, "calc", "agent", turns=True)
        assert (await back.signal("approval"))["data"]["state"] == "approved"


async def test_approvals_are_listed_for_those_whom_they_concern(networks: Networks) -> None:
    async with networks.start(people(approvals={"approvers": ["cat"]})) as network:
        calc, turn = await at_work(network)
        ids = [(await ask(calc, turn, f"{n}"))["id"] for n in range(4)]
        ann, bob, cat = [await enter(network, name) for name in ("ann", "bob", "cat")]
        spy = await enter(network, "spy", "agent")
        await cat.call("deny", id=ids[0])
        for peer in (ann, cat, calc):
            page = await peer.call("list_approvals")
            assert [each["id"] for each in page["approvals"]] == ids[:0:-1]
            assert page["more"] is False
            page = await peer.call("list_approvals", state="all", limit=2)
            assert [each["id"] for each in page["approvals"]] == ids[:1:-1]
            assert page["more"] is True
            page = await peer.call("list_approvals", state="all", agent="calc")
            assert len(page["approvals"]) == 4
            assert (await peer.call("list_approvals", agent="spy"))["approvals"] == []
        for peer in (bob, spy):
            for state in ("pending", "all"):
                assert (await peer.call("list_approvals", state=state))["approvals"] == []


@pytest.mark.behaviour("H-48")
@pytest.mark.parametrize("stage", ["requested", "approved", "denied", "started"])
async def test_approvals_survive_a_restart_at_each_stage(
    networks: Networks, tmp_path: Path, stage: str
) -> None:
    store = f"sqlite:{tmp_path / 'log.db'}"
    async with networks.start(store=store) as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        if stage in ("approved", "started"):
            await ann.call("approve", id=id, arguments={"path": "/tmp/z"})
        if stage == "denied":
            await ann.call("deny", id=id, reason="no")
        if stage == "started":
            await calc.call("start_approved", id=id)
    async with networks.start(store=store) as network:
        ann = await network.join("ann", latest=True)
        calc = await network.join("calc", "agent", turns=True)
        stands = await ask(calc, turn)
        expected = "pending" if stage == "requested" else stage
        assert (stands["id"], stands["state"]) == (id, expected)
        if stage == "requested":
            assert (await ann.signal("approval"))["data"]["id"] == id
            await ann.call("approve", id=id)
        error = await ann.ask("approve", id=id)
        assert error["code"] == "not_pending"
        start = await calc.ask("start_approved", id=id)
        assert start["op"] == ("result" if stage in ("requested", "approved") else "error")
        assert (await calc.ask("start_approved", id=id))["code"] == "not_pending"
        await network.quiet()
        page = await ann.call("read_thread", thread="dm.ann.calc", limit=50)
        notices = [m for m in page["messages"] if m["sender_kind"] == "system"]
        assert len(notices) == 1


@pytest.mark.behaviour("H-48")
async def test_what_expired_while_the_hub_was_down_is_a_no(
    networks: Networks, tmp_path: Path
) -> None:
    store, clock = f"sqlite:{tmp_path / 'log.db'}", HandClock()
    async with networks.start(store=store, clock=clock) as network:
        _ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
    clock.wall += 90000
    async with networks.start(store=store, clock=clock) as network:
        ann = await network.join("ann", latest=True)
        assert (await ann.ask("approve", id=id))["code"] == "not_pending"
        assert (await ann.call("read_approval", id=id))["state"] == "expired"


@pytest.mark.behaviour("H-48")
async def test_what_waits_for_a_turn_that_is_over_is_cancelled_at_the_start(
    networks: Networks, tmp_path: Path
) -> None:
    path = f"sqlite:{tmp_path / 'log.db'}"
    store = MoodyStore(path)
    async with networks.start(store=store) as network:
        _ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        over = TurnEnd(id=turn, outcome="finished").model_dump_json()
        end = Change(lambda head: [TurnEnded(turn, 1.0, over)], lambda error: None)
        network.hub.log.change(end)  # as a hub that dies right after the turn's end
        await network.quiet()
    async with networks.start(store=path) as network:
        ann = await network.join("ann", latest=True)
        async with soon():
            while (await ann.call("read_approval", id=id))["state"] == "pending":
                await network.quiet()
        assert (await ann.call("read_approval", id=id))["state"] == "cancelled"


@pytest.mark.behaviour("H-48")
async def test_a_disk_that_refuses_leaves_every_stage_as_it_was(networks: Networks) -> None:
    store = MoodyStore()
    async with networks.start(store=store) as network:
        ann, calc, turn = await working(network)
        args: dict[str, Any] = {
            "turn": turn,
            "call": "1.c1",
            "tool": "delete_file",
            "arguments": ARGUMENTS,
        }
        store.failing = 1
        error = await calc.ask("request_approval", **args)
        assert (error["code"], error["temporary"]) == ("store_unavailable", True)
        assert (await ann.call("list_approvals"))["approvals"] == []
        id = (await ask(calc, turn))["id"]
        for name in ("approve", "deny"):
            store.failing = 1
            assert (await ann.ask(name, id=id))["code"] == "store_unavailable"
            assert (await ann.call("read_approval", id=id))["state"] == "pending"
        await ann.call("approve", id=id)
        store.failing = 1
        assert (await calc.ask("start_approved", id=id))["code"] == "store_unavailable"
        assert (await calc.call("start_approved", id=id))["state"] == "started"


class Silencer(Mod):
    """Lets the hub say nothing."""

    name = "silencer"

    def on_message(self, draft: Draft) -> Verdict:
        return Reject("hush") if draft.sender_kind == "system" else Pass()


async def test_an_approval_waits_even_where_a_mod_lets_nobody_say_so(networks: Networks) -> None:
    async with networks.start(mods=[Silencer(ModConfig())]) as network:
        ann, calc, turn = await working(network)
        id = (await ask(calc, turn))["id"]
        assert (await ann.signal("approval"))["data"]["id"] == id
        assert (await ann.call("approve", id=id))["state"] == "approved"


@pytest.mark.behaviour("H-43")
@pytest.mark.parametrize("seed", range(8))
async def test_whatever_comes_at_once_each_call_is_decided_and_started_once(
    networks: Networks, seed: int
) -> None:
    chance, store = random.Random(seed), MoodyStore()
    async with networks.start(store=store) as network:
        ann, calc, turn = await working(network)
        bob = await network.join("bob")
        ids = [(await ask(calc, turn, f"{n}"))["id"] for n in range(3)]
        posted: list[tuple[Peer, str, str, str]] = []
        for _ in range(60):
            peer, name = chance.choice(
                [(ann, "approve"), (ann, "deny"), (bob, "approve"), (calc, "start_approved")]
            )
            id = chance.choice(ids)
            store.failing = chance.choice([0, 0, 1])
            posted.append((peer, name, id, await peer.post(name, id=id)))
            if chance.random() < 0.3:
                await network.quiet()
        store.failing = 0
        done = dict[str, list[str]]()
        for peer, name, id, ref in posted:
            answer = await peer.answer(ref)
            if answer["op"] == "result":
                done.setdefault(id, []).append(name)
            else:
                assert answer["code"] in ("not_pending", "store_unavailable")
        for id in ids:
            names = sorted(done.get(id, []))
            stands = (await ann.call("read_approval", id=id))["state"]
            told = {
                "pending": [],
                "approved": ["approve"],
                "denied": ["deny"],
                "started": ["approve", "start_approved"],
            }
            assert names == told[stands]
