"""Recorded turns, and the notice to a waiting person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hubbub.network.records import CursorMoved
from hubbub.network.services.turns.turns import NO_ANSWER
from hubbub.protocol.turns import Turn, part_id
from tests.interaction.agent_harness import ended
from tests.interaction.peers import Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore


async def ask_agent(network: Network) -> tuple[Peer, Peer, Any, str]:
    """A person, an agent that records turns, a question, and the turn it starts."""
    ann = await network.join("ann")
    calc = await network.join("calc", "agent", turns=True)
    sent = await ann.say("calc", "2+2?")
    event = await calc.event()
    return ann, calc, sent, event["wake"]["turn"]


def start(turn: str, *messages: Any, **more: object) -> dict[str, object]:
    ids = [message["id"] for message in messages]
    return {"id": turn, "thread_id": "dm.ann.calc", "messages": ids, **more}


def parts(system: str, *user: str, sent: Sequence[str] = ()) -> dict[str, object]:
    """A prompt of these parts, with the texts of those not `sent` before."""
    texts = [text for text in (system, *user) if text and text not in sent]
    ids = {"system": [part_id(system)] if system else [], "user": list(map(part_id, user))}
    return {**ids, "texts": texts}


def finished(turn: str, outcome: str = "finished", reason: str = "") -> dict[str, str]:
    return {"id": turn, "outcome": outcome, "reason": reason}


async def restart_agent(network: Network, calc: Peer) -> Peer:
    """Replace the agent's process; its new connection."""
    await calc.close()
    await network.gone("calc")
    return await network.join("calc", "agent", turns=True)


STEP = {
    "n": 1,
    "text": "let me see",
    "calls": [{"id": "c1", "name": "add", "arguments": {"a": 2}, "result": "4"}],
    "tokens_in": 100,
    "tokens_out": 7,
}


@pytest.mark.behaviour("T-1", "T-2", "T-4", "W-9")
async def test_a_turn_is_recorded_in_full_and_resumed_by_a_new_process(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, sent, turn = await ask_agent(network)
        model = {"model": "small", "tools": ["add"]}
        prompt = parts("Be brief.", "<conversation/>")
        begun = await calc.call("begin_turn", start=start(turn, sent, **model), prompt=prompt)
        assert (begun["attempts"], begun.get("steps", [])) == (1, [])
        await calc.call("record_step", turn=turn, step={"n": 1, "text": "draft"})
        await calc.call("record_step", turn=turn, step=STEP)
        calc = await restart_agent(network, calc)
        begun = await calc.call("begin_turn", start=start(turn, sent, **model), prompt=prompt)
        assert begun["attempts"] == 2
        (step,) = begun["steps"]
        assert (step["n"], step["text"]) == (1, "let me see")
        await calc.call("record_step", turn=turn, step={"n": 2, "finish_reason": "stop"})
        reply = await calc.say("ann", "4", cause=turn)
        for _ in range(2):
            await calc.call("end_turn", end=finished(turn, reason="done"))
        record = Turn.model_validate(await calc.call("read_turn", id=turn))
        assert (record.agent, record.prompt) == ("calc", "<conversation/>")
        assert record.system_prompt == "Be brief."
        assert [step.n for step in record.steps] == [1, 2]
        assert record.steps[0].calls[0].result == "4"
        assert (record.tokens_in, record.tokens_out) == (100, 7)
        assert record.sent == (reply["id"],)
        assert ended(record).outcome == "finished"
        assert record.ended_at is not None
        assert record.ended_at >= record.started_at
        (summary,) = (await ann.call("list_turns", agent="calc"))["turns"]
        assert (summary["id"], summary["outcome"], summary["steps"]) == (turn, "finished", 2)
        assert (summary["model"], summary["tokens_in"]) == ("small", 100)
        assert await ann.texts() == ["4"], "no notice follows an answer"
        signal = await ann.signal("turn_ended")
        assert (signal["thread_id"], signal["sender"]) == ("dm.ann.calc", "hub")
        assert signal["data"] == {"turn": turn, "agent": "calc", "outcome": "finished"}
        metrics = network.hub.kernel.metrics
        assert metrics.turns == {"finished": 1}
        assert (metrics.tokens_in, metrics.tokens_out) == (100, 7)
        assert metrics.wakes == {"direct": 1}


@pytest.mark.behaviour("T-2")
async def test_a_message_whose_turn_ended_does_not_wake_again(networks: Networks) -> None:
    async with networks.start() as network:
        ann, calc, sent, turn = await ask_agent(network)
        more = await ann.say("calc", "and 3+3?")
        await calc.call("begin_turn", start=start(turn, sent), prompt=parts(""))
        await calc.call("end_turn", end=finished(turn))
        calc = await restart_agent(network, calc)  # nothing was acknowledged
        assert (await calc.event()).get("wake") is None
        assert (await calc.event())["wake"]["turn"] == f"calc-{more['id']}"


@pytest.mark.behaviour("T-3")
async def test_turns_are_closed_to_other_agents_and_open_to_owners(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, sent, turn = await ask_agent(network)
        spy = await network.join("spy", "agent")
        await calc.call("begin_turn", start=start(turn, sent), prompt=parts("", "secret"))
        assert (await spy.ask("read_turn", id=turn))["code"] == "unknown_turn"
        assert (await spy.call("list_turns", agent="calc"))["turns"] == []
        assert (await spy.ask("list_turns", before=turn))["code"] == "unknown_turn"
        assert (await spy.ask("begin_turn", start=start(turn, sent)))["code"] == "bad_request"
        assert (await spy.ask("record_step", turn=turn, step=STEP))["code"] == "bad_request"
        assert (await spy.ask("end_turn", end=finished(turn)))["code"] == "bad_request"
        assert (await ann.call("read_turn", id=turn))["prompt"] == "secret"
        for peer in (ann, calc):
            assert [t["id"] for t in (await peer.call("list_turns"))["turns"]] == [turn]


@pytest.mark.behaviour("T-5")
async def test_a_recorded_prompt_can_refer_to_parts_its_agent_sent_before(
    networks: Networks,
) -> None:
    async with networks.start() as network:
        ann, calc, sent, turn = await ask_agent(network)
        first = parts("Be brief.", "one, ", "two, ", "one, ")
        await calc.call("begin_turn", start=start(turn, sent), prompt=first)
        await calc.call("end_turn", end=finished(turn))
        calc = await restart_agent(network, calc)
        more = await ann.say("calc", "and now?")
        later = f"calc-{more['id']}"
        prompt = parts("Be brief.", "two, ", "three", sent=["Be brief.", "two, "])
        unknown = parts("Be brief.", "four", sent=["Be brief.", "four"])
        refused = await calc.ask("begin_turn", start=start(later, more), prompt=unknown)
        assert (refused["code"], "texts" in refused["message"]) == ("bad_request", True)
        assert (await calc.ask("read_turn", id=later))["code"] == "unknown_turn"
        await calc.call("begin_turn", start=start(later, more), prompt=prompt)
        for id, user in ((turn, "one, two, one, "), (later, "two, three")):
            record = Turn.model_validate(await ann.call("read_turn", id=id))
            assert (record.system_prompt, record.prompt) == ("Be brief.", user)
        spy = await network.join("spy", "agent", turns=True)
        asked = await ann.say("spy", "what was calc told?")
        beginning = start(f"spy-{asked['id']}", asked, thread_id="dm.ann.spy")
        refused = await spy.ask("begin_turn", start=beginning, prompt=prompt)
        assert refused["code"] == "bad_request"


async def test_a_turn_needs_a_valid_id_and_known_messages(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        _ann, calc, sent, turn = await ask_agent(network)
        for wrong in ("calc-m99", "calc", "m1", "calc-x1", ""):
            error = await calc.ask("begin_turn", start=start(wrong, sent))
            assert error["code"] == "bad_request", wrong
            assert "cause" not in error["message"]
        for messages in ([], [{"id": "m99"}], [{"id": "hello"}]):
            error = await calc.ask("begin_turn", start=start(turn, *messages))
            assert error["code"] == "bad_request", messages
        assert (await calc.ask("end_turn", end=finished(turn)))["code"] == "unknown_turn"
        assert (await calc.ask("read_turn", id=turn))["code"] == "unknown_turn"
        error = await calc.ask("end_turn", end=finished(turn, "bored"))
        assert "outcome" in error["message"]
        await calc.call("begin_turn", start=start(turn, sent))
        for name in ("m99", "x", "m0"):
            step = {**STEP, "steered": [{"message": name, "reply": "required", "text": "…"}]}
            refused = await calc.ask("record_step", turn=turn, step=step)
            assert refused["code"] == "bad_request"


@pytest.mark.behaviour("W-9")
async def test_a_waiting_person_is_notified_once_of_a_missing_answer(in_memory: Networks) -> None:
    fast = {"limits": {"calls_per_second": 10_000, "burst": 10_000}}
    async with in_memory.start(config(network=fast)) as network:
        ann = await network.join("ann")
        calc = await network.join("calc", "agent", turns=True)
        for outcome in sorted(NO_ANSWER):
            sent = [await ann.say("calc", text) for text in ("2+2?", "hello?")]
            await calc.take(2)
            turn = f"calc-{sent[0]['id']}"
            await calc.call("begin_turn", start=start(turn, *sent))
            for _ in range(2):
                await calc.call("end_turn", end=finished(turn, outcome, "because"))
            await network.quiet()
            (event,) = await ann.sync()
            notice = event["message"]
            assert (notice["sender_id"], notice["sender_kind"]) == ("hub", "system")
            assert notice["thread_id"] == "dm.ann.calc"
            assert notice["text_representation"].startswith("calc ")
            assert "(`because`)" in notice["text_representation"]
            assert notice["content"]["code"] == outcome
            assert notice["content"]["messages"] == [each["id"] for each in sent]
            (seen,) = await calc.sync()
            assert seen.get("wake") is None  # a notice wakes no agent
            why = await ann.call("explain_wake", agent="calc", message_id=notice["id"])
            assert (why["woken"], why["reason"]) == (False, "system")
        # A notice truncates a long reason; the record has all of it.
        more = await ann.say("calc", "and this?")
        turn, reason = f"calc-{more['id']}", "no " * 50_000
        await calc.call("begin_turn", start=start(turn, more))
        await calc.call("end_turn", end=finished(turn, reason=reason))
        assert len((await ann.event())["message"]["text_representation"]) < 1000
        assert (await calc.call("read_turn", id=turn))["end"]["reason"] == reason


@pytest.mark.behaviour("R-2", "S-3")
async def test_beginning_a_turn_makes_the_ack_of_its_wake_durable(in_memory: Networks) -> None:
    store = MoodyStore()
    desk = config(channels={"desk": {"members": "all"}})
    async with in_memory.start(desk, store=store) as network:
        ann, calc, sent, turn = await ask_agent(network)

        def cursor() -> int:
            records = [record for batch in store.batches for record in batch.records]
            moved = [r.seq for r in records if isinstance(r, CursorMoved)]
            return max(moved, default=0)

        begin = await calc.post("begin_turn", start=start(turn, sent))
        await calc.ack(sent["seq"])
        await calc.answer(begin)
        await calc.call("record_step", turn=turn, step=STEP)
        assert cursor() == sent["seq"]
        notice = await ann.call("post_to_channel", channel="desk", text="nobody in particular")
        assert (await calc.event())["seq"] == notice["seq"]
        await calc.ack(notice["seq"])  # wakes no agent, so it is written later with others
        await calc.call("end_turn", end=finished(turn))
        assert cursor() == sent["seq"]


@pytest.mark.behaviour("T-1", "T-3")
async def test_turns_are_listed_in_pages(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann = await network.join("ann")
        calc = await network.join("calc", "agent", turns=True)
        other = await network.join("other", "agent", turns=True)
        begun = []
        for n in range(7):
            agent = other if n == 3 else calc
            name = "other" if n == 3 else "calc"
            sent = await ann.say(name, str(n))
            begun.append(f"{name}-{sent['id']}")
            await agent.call("begin_turn", start=start(begun[-1], sent))
        ids = list[str]()
        page: dict[str, Any] = {"more": True}
        while page["more"]:
            before = {"before": ids[-1]} if ids else {}
            page = await ann.call("list_turns", limit=3, **before)
            ids += [turn["id"] for turn in page["turns"]]
            if len(ids) == 3:  # a turn that begins meanwhile does not shift the pages
                sent = await ann.say("calc", "one more")
                await calc.call("begin_turn", start=start(f"calc-{sent['id']}", sent))
        assert ids == begun[::-1]
        mine = await calc.call("list_turns", before=begun[4], limit=3)
        assert [turn["id"] for turn in mine["turns"]] == [begun[2], begun[1], begun[0]]
        assert not mine["more"]
        assert (await ann.ask("list_turns", before="calc-m99"))["code"] == "unknown_turn"
        assert await calc.call("list_turns", before=begun[0]) == {"turns": [], "more": False}


async def test_wakes_steered_into_a_turn_are_settled_with_it(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, sent, turn = await ask_agent(network)
        more = await ann.say("calc", "and 3+3?")
        steered = {**STEP, "steered": [{"message": more["id"], "reply": "required", "text": "…"}]}
        await calc.call("begin_turn", start=start(turn, sent))
        for _ in range(2):
            await calc.call("record_step", turn=turn, step=steered)
        await calc.ack(more["seq"])
        await calc.sync()
        calc = await restart_agent(network, calc)
        assert [p["started"] for p in calc.ready["pending"]] == [turn, turn]
        begun = await calc.call("begin_turn", start=start(turn, sent))
        assert begun["steps"][0]["steered"][0]["message"] == more["id"]
        await calc.say("ann", "4 and 6", cause=turn)
        last = await ann.say("calc", "and 5+5?")
        steered["steered"] = [{"message": last["id"], "reply": "required", "text": "…"}]
        await calc.call("record_step", turn=turn, step={**steered, "n": 2})
        await calc.ack(last["seq"])
        await calc.call("end_turn", end=finished(turn, "max_steps"))
        calc = await restart_agent(network, calc)
        assert calc.ready.get("pending", []) == []
        await network.quiet()
        answer, *notices = [event["message"]["content"] for event in await ann.sync()]
        assert answer == "4 and 6"
        unanswered = [notice["messages"] for notice in notices]
        assert unanswered == [[last["id"]]], "an answer does not cover later messages"


# Processes that die during a turn ----------------------------------------------------------


@pytest.mark.behaviour("R-7")
async def test_a_turn_is_ended_after_three_processes_died_in_it(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        ann, calc, sent, turn = await ask_agent(network)
        for life in "abc":
            await calc.call("begin_turn", start=start(turn, sent), life=life)
            calc = await restart_agent(network, calc)
        error = await calc.ask("begin_turn", start=start(turn, sent), life="d")
        assert error["code"] == "turn_over"
        notice = (await ann.event())["message"]
        assert notice["content"]["notice"] == "handler_error"
        assert "died 3 times" in notice["text_representation"]
        record = Turn.model_validate(await ann.call("read_turn", id=turn))
        assert record.attempts == 3
        assert (ended(record).outcome, ended(record).by) == ("handler_error", "hub")
        calc = await restart_agent(network, calc)
        assert calc.ready["pending"] == []


@pytest.mark.behaviour("R-8")
async def test_a_turn_that_posts_or_is_left_survives_many_restarts(in_memory: Networks) -> None:
    async with in_memory.start() as network:
        _ann, calc, sent, turn = await ask_agent(network)
        for n in range(5):
            await calc.call("begin_turn", start=start(turn, sent), life=f"spoke{n}")
            await calc.say("ann", f"part {n}", cause=turn)
            calc = await restart_agent(network, calc)
        for n in range(5):
            await calc.call("begin_turn", start=start(turn, sent), life=f"left{n}")
            await calc.call("leave_turn", turn=turn, life=f"left{n}")
        for _ in range(2):  # the same process, as after a lost connection
            begun = await calc.call("begin_turn", start=start(turn, sent), life="last")
            assert begun["attempts"] == 11
