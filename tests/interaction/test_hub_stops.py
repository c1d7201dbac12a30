"""Stops: they end turns and wakes for good and notify the people who waited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interaction.peers import Frame, Network, Networks, config, eventually
from tests.interaction.stop_harness import (
    DESK,
    at_work,
    begin,
    beginning,
    kinds,
    let_in,
    notices,
    settled,
    woken,
)
from tests.interaction.stores import MoodyStore

SCOPES: list[dict[str, str]] = [
    {"scope": "agent", "target": "calc"},
    {"scope": "thread", "target": "dm.ann.calc"},
    {"scope": "thread", "target": "direct_calc"},
    {"scope": "all"},
]
LASTING = pytest.mark.parametrize("stop", SCOPES, ids=lambda stop: "-".join(stop.values()))
TURN = {"scope": "turn", "target": "calc-m1"}


def wakes(events: list[Frame]) -> list[str]:
    """The contents of the events that wake the agent."""
    return [event["message"]["content"] for event in events if event.get("wake")]


@pytest.mark.behaviour("H-20")
async def test_a_stopped_turn_stays_ended_whatever_its_agent_sends(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, turn = await at_work(network)
        await ann.say("calc", "3+3?")
        following = await woken(calc)
        done = await ann.call("stop", scope="turn", target=turn, reason="wrong question")
        assert (done["scope"], done["target"], done["by"]) == ("turn", turn, "ann")
        assert (done["turns"], done["wakes"]) == (1, 0)
        ended = (await ann.signal("turn_ended"))["data"]
        assert ended == {"turn": turn, "agent": "calc", "outcome": "cancelled"}
        stop = {"turns": [turn], "code": "stopped", "by": "ann", "reason": "wrong question"}
        assert (await calc.signal("stop_turns"))["data"] == stop
        records: dict[str, dict[str, Any]] = {
            "begin_turn": {"start": {"id": turn, "thread_id": "dm.ann.calc", "messages": ["m1"]}},
            "record_step": {"turn": turn, "step": {"n": 1}},
            "end_turn": {"end": {"id": turn, "outcome": "finished"}},
        }
        for name, args in records.items():
            error = await calc.ask(name, **args)
            assert error["code"] == "turn_over", name
            assert error["details"]["by"] == "ann"
        for late in (turn, following["wake"]["turn"]):  # as if it had not known yet
            data = {"turn": late, "step": 1, "text": "2+"}
            await calc.send(op="signal", type="partial", thread_id="dm.ann.calc", data=data)
        assert (await ann.signal("partial"))["data"]["turn"] == following["wake"]["turn"]
        for cause in (turn, "m1"):
            error = await calc.ask("send_text_message", to="ann", text="4", cause=cause)
            assert error["code"] == "stopped"
        record = await ann.call("read_turn", id=turn)
        assert (record["end"]["outcome"], record["end"]["by"]) == ("cancelled", "ann")
        assert record["end"]["reason"] == "stopped by ann: wrong question"
        assert record["sent"] == []
        # Nothing else is affected.
        await calc.call("begin_turn", start=beginning(following))
        await calc.say("ann", "6", cause=following["wake"]["turn"])
        assert (await ann.call("list_stops"))["stops"] == []
        await ann.say("calc", "4+4?")
        assert (await woken(calc))["wake"]["reply"] == "required"


@pytest.mark.behaviour("H-20")
async def test_a_turn_can_be_stopped_before_it_begins(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        sent = await ann.say("calc", "2+2?")
        event = await woken(calc)
        done = await ann.call("stop", scope="turn", target=event["wake"]["turn"])
        assert (done["turns"], done["wakes"]) == (0, 1)
        assert (await calc.ask("begin_turn", start=beginning(event)))["code"] == "turn_over"
        why = await ann.call("explain_wake", agent="calc", message_id=sent["id"])
        assert (why["woken"], why["state"]) == (True, "ended")
        (turn,) = (await ann.call("list_turns"))["turns"]
        assert (turn["outcome"], turn["reason"]) == ("cancelled", "stopped by ann")


@pytest.mark.behaviour("H-20")
async def test_stopping_a_wake_merged_into_a_turn_stops_that_turn(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        for text in ("2+2?", "3+3?"):
            await ann.say("calc", text)
        first, second = await woken(calc), await woken(calc)
        start = {**beginning(first), "messages": ["m1", "m2"]}
        await calc.call("begin_turn", start=start)
        done = await ann.call("stop", scope="turn", target=second["wake"]["turn"])
        assert (done["target"], done["turns"]) == (first["wake"]["turn"], 1)
        assert (await calc.signal("stop_turns"))["data"]["turns"] == ["calc-m1", "calc-m2"]
        assert (await calc.ask("record_step", turn="calc-m1", step={"n": 1}))["op"] == "error"


@pytest.mark.behaviour("H-20", "H-21")
@LASTING
async def test_a_stop_ends_everything_in_its_scope_until_it_is_resumed(
    in_memory: Networks, stop: dict[str, str]
) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        await ann.say("calc", "3+3?")
        waiting = await woken(calc)
        done = await ann.call("stop", **stop, reason="enough")
        assert (done["turns"], done["wakes"]) == (1, 1)
        stopped = [turn, waiting["wake"]["turn"]]
        assert (await calc.signal("stop_turns"))["data"]["turns"] == stopped
        assert (await calc.ask("begin_turn", start=beginning(waiting)))["code"] == "turn_over"
        assert (await calc.ask("record_step", turn=turn, step={"n": 1}))["code"] == "turn_over"
        sent = await ann.say("calc", "still there?")
        assert sent["not_woken"] == {"calc": "stopped"}
        error = await calc.ask("send_text_message", to="ann", text="I am")
        assert (error["code"], error["details"]["by"]) == ("stopped", "ann")
        stops = (await ann.call("list_stops"))["stops"]
        assert [(each["scope"], each["by"]) for each in stops] == [(stop["scope"], "ann")]
        await calc.close()
        await network.gone("calc")
        back = await network.join("calc", "agent", turns=True)
        assert back.ready["pending"] == []
        assert wakes(await back.sync()) == []
        # The signal is repeated in case the agent missed it.
        assert (await back.signal("stop_turns"))["data"]["turns"] == stopped
        await ann.call("resume", **stop)
        assert (await ann.call("list_stops"))["stops"] == []
        await ann.say("calc", "and now?")
        event = await woken(back)
        assert event["message"]["content"] == "and now?"
        await back.call("begin_turn", start=beginning(event))
        await back.say("ann", "yes", cause=event["wake"]["turn"])


@pytest.mark.behaviour("H-21")
async def test_a_stop_does_not_affect_anything_outside_its_scope(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        calc = await network.join("calc", "agent", turns=True)
        bot = await network.join("bot", "agent", turns=True)
        await ann.call("post_to_channel", channel="desk", text="@calc @bot hello")
        turns = {name: await begin(peer) for name, peer in (("calc", calc), ("bot", bot))}
        await ann.call("stop", scope="agent", target="calc")
        await bot.call("record_step", turn=turns["bot"], step={"n": 1})
        await bot.call("post_to_channel", channel="desk", text="hi", cause=turns["bot"])
        await ann.call("resume", scope="agent", target="calc")
        await ann.call("stop", scope="thread", target="channel.desk")
        assert (await bot.ask("record_step", turn=turns["bot"], step={"n": 2}))["op"] == "error"
        sent = await ann.say("calc", "2+2?")
        assert "not_woken" not in sent
        await calc.call("begin_turn", start=beginning(await woken(calc)))
        await calc.say("ann", "4")
        error = await bot.ask("post_to_channel", channel="desk", text="@calc hello")
        assert error["code"] == "stopped"
        await bob.call("post_to_channel", channel="desk", text="what happened?")
        assert "what happened?" in await ann.texts(), "people can still post"


@pytest.mark.behaviour("H-21")
async def test_stopping_a_thread_also_stops_its_reply_threads(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        root = await ann.call("post_to_channel", channel="desk", text="a plan")
        await ann.call("reply", message_id=root["id"], text="@calc what do you think?")
        turn = await begin(calc)
        done = await ann.call("stop", scope="thread", target="channel.desk")
        assert done["turns"] == 1
        assert (await calc.ask("reply", message_id=root["id"], text="x"))["code"] == "stopped"
        sent = await ann.call("reply", message_id=root["id"], text="@calc well?")
        assert sent["not_woken"] == {"calc": "stopped"}
        ended = await calc.ask("end_turn", end={"id": turn, "outcome": "finished"})
        assert ended["op"] == "error"


# Permissions --------------------------------------------------------------------------------

CLOSED = config(
    network={"auth": "tokens"},
    humans={"ann": {"roles": ["owner"]}, "bob": {}, "eve": {}},
    agents={"calc": {"kind": "python", "class": "x.py:X"}},
    channels={"desk": {"members": ["ann", "bob", "calc"]}},
)


@pytest.mark.behaviour("H-22")
async def test_readers_can_stop_their_threads_and_owners_everything(in_memory: Networks) -> None:
    async with in_memory.start(CLOSED) as network:
        bob, eve = await let_in(network, "bob"), await let_in(network, "eve")
        calc = await let_in(network, "calc", "agent", turns=True)
        await bob.call("post_to_channel", channel="desk", text="@calc 2+2?")
        turn = await begin(calc)
        assert (await eve.ask("stop", scope="turn", target=turn))["code"] == "unknown_turn"
        error = await eve.ask("stop", scope="thread", target="channel.desk")
        assert error["code"] == "unknown_thread"
        for stop in ({"scope": "agent", "target": "calc"}, {"scope": "all"}):
            assert (await bob.ask("stop", **stop))["code"] == "forbidden"
        assert (await bob.call("stop", scope="turn", target=turn))["turns"] == 1
        assert (await bob.call("stop", scope="thread", target="channel.desk"))["by"] == "bob"
        resume = {"scope": "thread", "target": "channel.desk"}
        assert (await bob.ask("resume", **resume))["code"] == "forbidden"
        assert (await eve.call("list_stops"))["stops"] == [], "eve cannot read the thread"
        assert len((await bob.call("list_stops"))["stops"]) == 1
        ann = await let_in(network, "ann")
        await ann.call("resume", **resume)
        assert (await bob.call("list_stops"))["stops"] == []
        await bob.say("calc", "2+2?")
        turn = await begin(calc)
        assert (await ann.ask("read_thread", thread="dm.bob.calc"))["code"] == "unknown_thread"
        assert (await ann.call("stop", scope="turn", target=turn))["turns"] == 1
        await ann.call("stop", scope="thread", target="dm.bob.calc")
        await ann.call("resume", scope="thread", target="dm.bob.calc")


@pytest.mark.behaviour("H-22")
async def test_only_people_and_the_operator_can_stop_or_resume(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        _ann, calc, turn = await at_work(network)
        bots = await network.join("bot", "agent"), await network.join("robot", "service")
        for peer in (calc, *bots):
            for stop in ({"scope": "turn", "target": turn}, *SCOPES):
                assert (await peer.ask("stop", **stop))["code"] == "forbidden", stop
            assert (await peer.ask("resume", scope="all"))["code"] == "forbidden"
            error = await peer.ask("release_breaker", thread="channel.desk")
            assert error["code"] == "forbidden"
        tools = {op["name"] for op in calc.ready["operations"] if op["tool"]}
        assert tools.isdisjoint({"stop", "resume", "release_breaker", "take_over", "hand_back"})
        operator = await network.join("operator", "service")
        done = await operator.call("stop", scope="turn", target=turn)
        assert (done["by"], done["turns"]) == ("operator", 1)
        await operator.call("stop", scope="all")
        await operator.call("resume", scope="all")


async def test_stopping_an_unknown_target_is_refused(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann = await network.join("ann")
        wrong: list[tuple[str, dict[str, str]]] = [
            ("unknown_turn", {"scope": "turn", "target": "calc-m9"}),
            ("unknown_turn", {"scope": "turn", "target": "nonsense"}),
            ("unknown_thread", {"scope": "thread", "target": "channel.nowhere"}),
            ("unknown_participant", {"scope": "agent", "target": "ann"}),
            ("bad_request", {"scope": "agent"}),
        ]
        for code, args in wrong:
            assert (await ann.ask("stop", **args))["code"] == code
        assert (await ann.ask("resume", scope="thread"))["code"] == "bad_request"
        await ann.call("resume", scope="all")  # no error if nothing is stopped


# Notices ------------------------------------------------------------------------------------


@pytest.mark.behaviour("H-23")
async def test_each_waiting_person_is_notified_of_a_stop_once(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, bob, cat = [await network.join(name) for name in ("ann", "bob", "cat")]
        calc = await network.join("calc", "agent", turns=True)
        await cat.say("calc", "1+1?")
        await calc.say("cat", "2", cause=await begin(calc))
        first = await ann.say("calc", "2+2?")
        turn = await begin(calc)
        second = await ann.say("calc", "quick")
        third = await bob.say("calc", "3+3?")
        for _ in range(2):
            await bob.call("stop", scope="agent", target="calc", reason="lunch")
        await calc.ask("end_turn", end={"id": turn, "outcome": "cancelled"})
        (notice,) = await notices(network, ann)
        assert notice["thread_id"] == "dm.ann.calc"
        assert notice["content"]["messages"] == [first["id"], second["id"]]
        assert notice["mentions"] == ["ann"]
        assert notice["text_representation"] == "bob stopped calc before it answered (lunch)."
        (notice,) = await notices(network, bob)
        assert notice["content"]["messages"] == [third["id"]]
        assert await notices(network, cat) == [], "cat got an answer"


@pytest.mark.behaviour("H-23")
@pytest.mark.parametrize("scope", ["turn", "thread"])
async def test_a_repeated_stop_posts_one_notice(in_memory: Networks, scope: str) -> None:
    async with in_memory.start(DESK) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        calc = await network.join("calc", "agent", turns=True)
        await bob.call("post_to_channel", channel="desk", text="@calc 2+2?")
        turn = await begin(calc)
        target = turn if scope == "turn" else "channel_desk"
        for _ in range(2):
            await ann.call("stop", scope=scope, target=target, reason="later")
        (notice,) = await notices(network, bob)
        assert (notice["thread_id"], notice["mentions"]) == ("channel.desk", ["bob"])
        assert "ann stopped" in notice["text_representation"]
        assert "later" in notice["text_representation"]
        assert notice["content"]["agents"] == ["calc"]
        assert wakes(await calc.sync()) == []


@pytest.mark.behaviour("H-31")
async def test_people_are_signalled_the_current_stops(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, _turn = await at_work(network)
        await ann.call("stop", scope="agent", target="calc", reason="lunch")
        state = (await ann.signal("stops"))["data"]
        (stop,) = state["stops"]
        assert (stop["scope"], stop["target"], stop["reason"]) == ("agent", "calc", "lunch")
        assert state["breakers"] == []
        bob = await network.join("bob")
        assert (await bob.signal("stops"))["data"] == state
        await ann.call("resume", scope="agent", target="calc")
        assert (await bob.signal("stops"))["data"]["stops"] == []
        await calc.sync()
        assert not any(signal["type"] == "stops" for signal in calc.signals)


# Races --------------------------------------------------------------------------------------


async def await_stop(network: Network, store: MoodyStore) -> None:
    """Wait until a commit is held at the closed gate and the hub has received the stop of calc."""
    await store.until_waiting()
    await eventually(lambda: network.hub.kernel.state.stops.get("agent", "calc") is not None)


@pytest.mark.behaviour("H-24")
async def test_a_wake_that_is_written_during_a_stop_is_dropped(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        calc = await network.join("calc", "agent", turns=True)
        store.gate.clear()
        message = await ann.post("send_text_message", to="calc", text="2+2?")
        stop = await bob.post("stop", scope="agent", target="calc")
        await await_stop(network, store)
        store.gate.set()
        sent = (await ann.answer(message))["value"]
        assert (await bob.answer(stop))["op"] == "result"
        await settled(network)
        assert wakes(await calc.sync()) == []
        why = await bob.call("explain_wake", agent="calc", message_id=sent["id"])
        assert why["state"] == "ended"
        assert [n["content"]["messages"] for n in await notices(network, ann)] == [[sent["id"]]]


class FailingAfter(MoodyStore):
    """Once armed, the next `succeed` commits succeed and all others fail."""

    succeed = 0
    armed = False

    async def append(self, batch: Any) -> None:
        if self.armed and self.succeed:
            self.succeed -= 1
        elif self.armed:
            self.failing = 1
        await super().append(batch)


@pytest.mark.behaviour("H-25")
async def test_a_wake_held_back_by_a_stop_that_failed_is_delivered(in_memory: Networks) -> None:
    store = FailingAfter()
    store.succeed = 2  # the message, and the check for turns that have begun
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        calc = await network.join("calc", "agent", turns=True)
        store.gate.clear()
        store.armed = True
        message = await ann.post("send_text_message", to="calc", text="2+2?")
        stop = await bob.post("stop", scope="agent", target="calc")
        await await_stop(network, store)
        store.gate.set()
        assert (await ann.answer(message))["op"] == "result"
        assert (await bob.answer(stop))["code"] == "store_unavailable"
        store.armed = False
        assert await calc.closed() == 4004
        back = await network.join("calc", "agent", turns=True)
        assert (await woken(back))["message"]["content"] == "2+2?"


@pytest.mark.behaviour("H-24")
async def test_a_stop_ends_a_turn_whose_start_is_being_written(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        await ann.say("calc", "2+2?")
        event = await woken(calc)
        store.gate.clear()
        begun = await calc.post("begin_turn", start=beginning(event))
        await store.until_waiting()
        stop = await ann.post("stop", scope="agent", target="calc")
        await await_stop(network, store)
        late = await calc.post("record_step", turn=event["wake"]["turn"], step={"n": 1})
        store.gate.set()
        assert (await calc.answer(begun))["op"] == "result"
        assert (await ann.answer(stop))["value"]["turns"] == 1
        assert (await calc.answer(late))["code"] == "turn_over"
        record = await ann.call("read_turn", id=event["wake"]["turn"])
        assert record["steps"] == []
        assert record["end"]["by"] == "ann"


@pytest.mark.behaviour("H-24")
async def test_an_answer_being_written_when_a_stop_arrives_counts(in_memory: Networks) -> None:
    store = MoodyStore()
    async with in_memory.start(store=store) as network:
        ann, calc, turn = await at_work(network)
        store.gate.clear()
        answer = await calc.post("send_text_message", to="ann", text="4", cause=turn)
        end = await calc.post("end_turn", end={"id": turn, "outcome": "finished"})
        await store.until_waiting()
        stop = await ann.post("stop", scope="turn", target=turn)
        store.gate.set()
        assert (await calc.answer(answer))["op"] == "result"
        assert (await calc.answer(end))["op"] == "result"
        assert (await ann.answer(stop))["value"]["turns"] == 0
        assert await notices(network, ann) == []
        record = await ann.call("read_turn", id=turn)
        assert record["end"].get("by") is None


@pytest.mark.behaviour("H-24")
async def test_simultaneous_stops_of_a_turn_take_effect_once(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, turn = await at_work(network)
        bob = await network.join("bob")
        posts = [(peer, await peer.post("stop", scope="turn", target=turn)) for peer in (ann, bob)]
        answers = [(await peer.answer(ref))["value"]["turns"] for peer, ref in posts]
        assert sorted(answers) == [0, 1]
        assert kinds(await notices(network, ann)) == ["stopped"]
        await calc.sync()
        assert [s["type"] for s in calc.signals].count("stop_turns") == 1


# Failing stores -----------------------------------------------------------------------------


@pytest.mark.behaviour("H-25")
async def test_a_stop_that_cannot_be_stored_changes_nothing(in_memory: Networks) -> None:
    store = FailingAfter()
    async with in_memory.start(store=store) as network:
        ann, calc, turn = await at_work(network)
        for scope in (TURN, *SCOPES):
            for succeed in (0, 1):
                store.succeed, store.armed = succeed, True
                error = await ann.ask("stop", **scope)
                assert (error["code"], error["temporary"]) == ("store_unavailable", True)
                store.armed = False
                assert (await ann.call("list_stops"))["stops"] == []
                await calc.call("record_step", turn=turn, step={"n": 1})
            store.deaf = True
            assert (await ann.ask("stop", **scope))["temporary"]
            store.deaf = False
        assert (await ann.call("list_stops"))["stops"] == []
        await calc.say("ann", "4", cause=turn)
        await calc.call("end_turn", end={"id": turn, "outcome": "finished"})
        assert await notices(network, ann) == []
        assert not any(signal["type"] == "stop_turns" for signal in calc.signals)
        assert [(await ann.call("stop", **scope))["turns"] for scope in (TURN, *SCOPES)] == [0] * 5
        for scope in SCOPES[:2]:
            await ann.call("resume", **scope)
        store.failing = 1
        again = await ann.ask("stop", scope="all", reason="again")
        assert again["code"] == "store_unavailable"
        assert [stop["reason"] for stop in (await ann.call("list_stops"))["stops"]] == [""]
        store.failing = 1
        assert (await ann.ask("resume", scope="all"))["code"] == "store_unavailable"
        assert len((await ann.call("list_stops"))["stops"]) == 1
        assert (await ann.say("calc", "?"))["not_woken"] == {"calc": "stopped"}
        await ann.call("resume", scope="all")
        assert "not_woken" not in await ann.say("calc", "?")


# Restarts -----------------------------------------------------------------------------------


@pytest.mark.behaviour("H-26")
@pytest.mark.parametrize(
    "stop", [TURN, *SCOPES[:2], SCOPES[3]], ids=["turn", "agent", "thread", "all"]
)
async def test_a_stop_survives_a_restart_until_it_is_resumed(
    in_memory: Networks, tmp_path: Path, stop: dict[str, str]
) -> None:
    store = f"sqlite:{tmp_path / 'hub.db'}"
    async with in_memory.start(store=store) as network:
        ann, _calc, turn = await at_work(network)
        await ann.call("stop", **stop, reason="lunch")
    async with in_memory.start(store=store) as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        assert calc.ready["pending"] == []
        assert wakes(await calc.take(2)) == []
        assert (await calc.signal("stop_turns"))["data"]["turns"] == [turn]
        records: dict[str, dict[str, Any]] = {
            "record_step": {"turn": turn, "step": {"n": 1}},
            "end_turn": {"end": {"id": turn, "outcome": "finished"}},
        }
        for name, args in records.items():
            assert (await calc.ask(name, **args))["code"] == "turn_over"
        error = await calc.ask("send_text_message", to="ann", text="4", cause=turn)
        assert error["code"] == "stopped"
        if stop == TURN:
            return
        (stored,) = (await ann.call("list_stops"))["stops"]
        assert (stored["scope"], stored["reason"]) == (stop["scope"], "lunch")
        assert (await ann.say("calc", "?"))["not_woken"] == {"calc": "stopped"}
        await ann.call("resume", **stop)
    async with in_memory.start(store=store) as network:
        ann = await network.join("ann")
        assert (await ann.call("list_stops"))["stops"] == []
        assert "not_woken" not in await ann.say("calc", "?")


@pytest.mark.behaviour("H-26")
async def test_a_wake_dropped_by_a_stop_never_reaches_an_absent_agent(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
        await calc.close()
        await network.gone("calc")
        await ann.say("calc", "2+2?")
        assert (await ann.call("stop", scope="agent", target="calc"))["wakes"] == 1
        await ann.call("resume", scope="agent", target="calc")
        await ann.say("calc", "3+3?")
        back = await network.join("calc", "agent", turns=True)
        assert wakes(await back.take(3)) == ["3+3?"]
