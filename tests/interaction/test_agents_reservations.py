"""Budget reservations: made before each model call, and replaced by its real cost after it."""

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
    """The used part of an interaction's budget, including reservations."""
    state = await ann.call("read_budget", interaction=interaction)
    used: dict[str, float] = state["used"]
    return used


@pytest.mark.behaviour("H-60")
async def test_a_model_call_is_reserved_before_it_and_charged_after_it(in_memory: Networks) -> None:
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
        assert first["tokens"] > 500, "the largest output and the input"
        assert first["usd"] > 500 * 10e-6
        s.model.release("one")
        await s.held("two")
        await s.net.network.quiet()
        second = await spent(s.ann)
        assert second["tokens"] > 710 + 500, "the cost of the first, the estimate of the second"
        s.model.release("two")
        turn = await s.net.turn("bot-m1")
        last = await spent(s.ann)
        assert last["tokens"] == turn.tokens_in + turn.tokens_out == 1520
        assert last["usd"] == pytest.approx(1500e-6 + 200e-6)


@pytest.mark.behaviour("H-61")
async def test_a_turn_that_exhausts_its_budget_ends(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), usage=used(59_000)),
        says(send("ann", "here again"), finish()),
    ]
    async with scene(in_memory, *script, file=limited(tokens=60_000)) as s:
        end = ended(await s.turn())
        assert end.outcome == "budget_exhausted"
        assert "tokens of the interaction" in end.reason
        assert len(s.model.requests) == 1
        message = await notice(s.ann, "budget_exhausted")
        assert message["text_representation"].startswith("bot used up its budget")
        assert message["content"]["messages"] == ["m1"]
        assert ended(await s.turn("go on")).outcome == "finished"


@pytest.mark.behaviour("H-61")
async def test_no_kind_of_agent_calls_its_model_beyond_the_budget(in_memory: Networks) -> None:
    async with playing(says(finish())) as model, harness(in_memory, limited(tokens=1)) as net:
        ann = await net.person()
        for kind in ("llm", "router", "planner", "executor", "reflector", "pipeline"):
            await net.llm(kind, model, kind=kind)
            turn = await net.turn(await net.ask(ann, "go", kind))
            assert ended(turn).outcome == "budget_exhausted", kind
        assert not model.requests


@pytest.mark.behaviour("H-61")
async def test_helpers_use_the_budget_of_their_turn(in_memory: Networks) -> None:
    script = [says(call("fork", goal="look"), usage=used(59_000)), says(finish())]
    async with scene(in_memory, *script, file=limited(tokens=60_000), fork={}) as s:
        turn = await s.turn()
        (helper,) = turn.steps[0].calls
        assert helper.error == "budget_exhausted"
        assert ended(turn).outcome == "budget_exhausted"
        assert len(s.model.requests) == 1


@pytest.mark.behaviour("H-62")
async def test_the_model_is_asked_to_finish_when_little_of_the_budget_remains(
    in_memory: Networks,
) -> None:
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
        assert turn.steps[1].notes[-1] == f"the model was warned: {second[-1].text}"
        assert [m.text for m in second[:2]] == [m.text for m in first[:2]]
        assert await heard(s.net, s.ann) == ["that is all"]


@pytest.mark.behaviour("H-60")
async def test_the_unused_part_of_a_reservation_is_released(in_memory: Networks) -> None:
    script = [
        says(call("list_channels"), usage=used(10)),
        says(call("list_participants"), usage=used(10)),
        says(finish("enough")),
    ]
    async with scene(
        in_memory, *script, file=limited(tokens=40_000), endpoint={"max_output_tokens": 15_000}
    ) as s:
        await s.ann.call("broadcast_text_message", text="go")
        turn = await s.net.turn("bot-m1")
        assert ended(turn).outcome == "finished", turn.end


@pytest.mark.behaviour("H-60")
async def test_a_resumed_turn_reserves_again(in_memory: Networks) -> None:
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
