"""Leave to ask a model: taken before each question, settled by what it really cost."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.testing.model_script import ScriptedUsage
from tests.interaction.agent_harness import (
    call,
    ended,
    finish,
    harness,
    heard,
    notice,
    playing,
    says,
    send,
)
from tests.interaction.peers import Networks, Peer, config
from tests.interaction.scripted import scene

PRICE: dict[str, JsonValue] = {"input": 1.0, "output": 10.0}


def limited(**budgets: JsonValue) -> Any:  # as `config` returns it
    return config(network={"budgets": budgets})


def used(tokens_in: int, tokens_out: int = 10) -> ScriptedUsage:
    return ScriptedUsage(prompt_tokens=tokens_in, completion_tokens=tokens_out)


async def spent(ann: Peer, interaction: str = "i1") -> dict[str, float]:
    """What is used of an interaction's budget, reservations included."""
    state = await ann.call("read_budget", interaction=interaction)
    told: dict[str, float] = state["used"]
    return told


@pytest.mark.behaviour("H-60")
async def test_a_question_is_paid_for_before_and_settled_after(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), usage=used(700), hold="one"),
        says(send("ann", "done"), finish(), usage=used(800), hold="two"),
    ]
    endpoint: JsonValue = {"max_output_tokens": 500, "price": PRICE}
    async with scene(
        in_memory, *script, file=limited(tokens=100_000, usd=1.0), endpoint=endpoint
    ) as s:
        await s.say()
        await s.held("one")
        first = await spent(s.ann)
        assert first["tokens"] > 500, "what may be written counts, and what is read"
        assert first["usd"] > 500 * 10e-6
        s.model.release("one")
        await s.held("two")
        await s.net.network.quiet()
        second = await spent(s.ann)
        assert second["tokens"] > 710 + 500, "the real figures of one, the estimate of the other"
        s.model.release("two")
        turn = await s.net.turn("bot-m1")
        last = await spent(s.ann)
        assert last["tokens"] == turn.tokens_in + turn.tokens_out == 1520
        assert last["usd"] == pytest.approx(1500e-6 + 200e-6)


@pytest.mark.behaviour("H-61")
async def test_a_turn_whose_budget_is_used_up_ends(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), usage=used(59_000)),
        says(send("ann", "here again"), finish()),
    ]
    async with scene(in_memory, *script, file=limited(tokens=60_000)) as s:
        await s.say()
        end = ended(await s.net.turn("bot-m1"))
        assert end.outcome == "budget_exhausted"
        assert "tokens of the interaction" in end.reason
        assert len(s.model.requests) == 1
        told = await notice(s.ann, "budget_exhausted")
        assert told["text_representation"].startswith("bot used up its budget")
        assert told["content"]["messages"] == ["m1"]
        again = await s.ann.say("bot", "go on")
        assert ended(await s.net.turn(f"bot-{again['id']}")).outcome == "finished"


@pytest.mark.behaviour("H-61")
async def test_no_kind_of_agent_asks_without_leave(in_memory: Networks) -> None:
    async with playing(says(finish())) as model, harness(in_memory, limited(tokens=1)) as net:
        ann = await net.person()
        for kind in ("llm", "router", "planner", "executor", "reflector", "pipeline"):
            await net.llm(kind, model, kind=kind)
            said = await ann.say(kind, "go")
            turn = await net.turn(f"{kind}-{said['id']}")
            assert ended(turn).outcome == "budget_exhausted", kind
        assert not model.requests


@pytest.mark.behaviour("H-61")
async def test_helpers_ask_out_of_the_same_budget(in_memory: Networks) -> None:
    script = [says(call("fork", goal="look"), usage=used(59_000)), says(finish())]
    async with scene(in_memory, *script, file=limited(tokens=60_000), fork={}) as s:
        turn = await s.turn()
        (helper,) = turn.steps[0].calls
        assert helper.error == "budget_exhausted"
        assert ended(turn).outcome == "budget_exhausted"
        assert len(s.model.requests) == 1


@pytest.mark.behaviour("H-62")
async def test_a_model_is_told_when_little_is_left(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), usage=used(170_000)),
        says(send("ann", "that is all"), finish(), usage=used(700)),
    ]
    async with scene(in_memory, *script, file=limited(tokens=200_000)) as s:
        turn = await s.turn()
        first, second = (request.body.messages for request in s.model.requests)
        assert "Little is left" not in first[-1].text
        assert second[-1].role == "user"
        assert second[-1].text.startswith("Little is left for this task: ")
        assert second[-1].text.endswith("of 200,000 tokens. Finish now with what you have.")
        assert turn.steps[1].notes[-1] == f"the model was told: {second[-1].text}"
        assert [m.text for m in second[:2]] == [m.text for m in first[:2]]
        assert await heard(s.net, s.ann) == ["that is all"]


@pytest.mark.behaviour("H-60")
async def test_what_was_reserved_and_not_used_is_free_again(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), usage=used(10)),
        says(call("list_participants"), usage=used(10)),
        says(finish("enough")),
    ]
    async with scene(
        in_memory, *script, file=limited(tokens=40_000), endpoint={"max_output_tokens": 15_000}
    ) as s:
        await s.ann.call("broadcast_text_message", text="to whom it may concern")
        turn = await s.net.turn("bot-m1")
        assert ended(turn).outcome == "finished", turn.end


@pytest.mark.behaviour("H-60")
async def test_a_turn_taken_up_again_asks_for_leave_again(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), usage=used(700)),
        says(finish("never heard"), hold="dying"),
        says(send("ann", "done"), finish(), usage=used(800)),
    ]
    async with scene(in_memory, *script, file=limited(tokens=100_000)) as s:
        await s.say()
        await s.held("dying")
        await s.restart()
        turn = await s.net.turn("bot-m1")
        assert turn.attempts == 2
        assert (await spent(s.ann))["tokens"] == turn.tokens_in + turn.tokens_out
