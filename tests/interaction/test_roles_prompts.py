"""What the models of roles read: the agent's own prompt, and no more than their windows hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.errors import ConfigError
from hubbub.testing.model_script import Rule, When
from hubbub.testing.model_server import Answer, ModelServer, Script, Usage
from tests.interaction import trade
from tests.interaction.agent_rig import call, rig, says
from tests.interaction.peers import Networks, Peer, config
from tests.interaction.role_rig import (
    BOTH,
    fresh_shop,
    judge,
    plan,
    playing,
    roles,
    route,
    start,
    told,
)
from tests.interaction.test_agents_window import LONG, layers, size_of

DESK = config(channels={"desk": {"members": "all"}})


@pytest.fixture(autouse=True)
def shop() -> trade.Shop:
    return fresh_shop()


async def chatter(person: Peer, times: int) -> None:
    for n in range(times):
        await person.call("post_to_channel", channel="desk", text=f"{n} {LONG * 40}")


@pytest.mark.behaviour("A-21", "O-13")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_every_role_fits_the_window_of_its_model_and_the_record_says_what_was_cut(
    in_memory: Networks, dialect: str
) -> None:
    answers = [route("make_plan"), plan(BOTH), judge("accept", answer="$step_3_result")]
    async with playing(*answers) as model, rig(in_memory, DESK) as net:
        ann, bob = await net.person(), await net.person("bob")
        await start(net, model, dialect=dialect, endpoint={"context_window": "6k"})
        await chatter(bob, 10)
        await ann.say("bot", "what do a lamp and a clock cost?")
        turn = await net.turn("bot-m11")
        assert turn.end is not None
        assert (turn.end.outcome, turn.end.reason) == ("finished", "answered")
        asked = [step for step in turn.steps if step.window is not None]
        assert len(asked) == len(model.requests) == 3
        for step, request in zip(asked, model.requests, strict=True):
            assert size_of(request) <= 6144 - 1536
            assert layers(step)["history"][1] > 500
            assert "what do a lamp and a clock cost?" in request.prompt
        assert turn.start.prompt == model.requests[0].prompt
        assert turn.start.system_prompt == model.requests[0].system
        assert 'id="m1"' not in model.requests[0].prompt


@pytest.mark.behaviour("A-21")
async def test_a_role_whose_window_has_no_room_for_what_must_stay_ends_the_turn_unasked(
    in_memory: Networks,
) -> None:
    async with playing() as model, rig(in_memory) as net:
        ann = await net.person()
        small: JsonValue = {"router": "small"}
        await start(net, model, models=small, endpoint={"context_window": 600})
        await ann.say("bot", "hello")
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert turn.end.outcome == "model_error"
        assert "the context window of 600 tokens is too small" in turn.end.reason
        assert "raise models.small.context_window if the model has more" in turn.end.reason
        assert model.requests == []
        assert "hello" in (turn.start.prompt or "")


@pytest.mark.behaviour("O-14")
async def test_the_agents_prompt_is_that_of_its_roles(in_memory: Networks, tmp_path: Path) -> None:
    (tmp_path / "buyer").mkdir()
    (tmp_path / "buyer" / "1.0.j2").write_text(
        "You buy for {{ shop }} in {{ threads | join }} with {{ model }}."
    )
    prompt: JsonValue = {
        "name": "buyer",
        "folder": str(tmp_path),
        "variables": {"shop": "Acme"},
        "components": {"add": {"style": {"text": "Be brief.", "priority": 97}}},
        "reminder": ["Never guess a price."],
    }
    answers = [route("make_plan"), plan([BOTH[0]]), judge("accept", answer="$step_1_result")]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model, prompt=prompt, permission_mode="ask", card={"skills": ["prices"]})
        await ann.say("bot", "the lamp?")
        await net.turn("bot-m1")
        for request in model.requests:
            for words in (
                "You buy for Acme in direct_ann with m.",
                "Be brief.",
                "that you can do this: prices",
            ):
                assert words in request.system
            assert "approve" in request.system, "its permission mode is told"
            assert request.system.endswith("Above all:\n- Never guess a price.")
            assert "call `finish` when you are done" not in request.system
        turn = await net.turn("bot-m1")
        assert (turn.start.prompt_id or "").startswith("buyer@1.0#")
        assert turn.start.components[:3] == ("role:router", "identity", "style")


async def test_a_prompt_that_does_not_exist_is_told_at_the_start(
    in_memory: Networks, tmp_path: Path
) -> None:
    async with playing() as model, rig(in_memory) as net:
        await start(net, model, prompt={"name": "buyer", "folder": str(tmp_path)})
        died = await net.death("bot")
        assert isinstance(died, ConfigError)
        assert "buyer" in str(died)


@pytest.mark.behaviour("O-14")
async def test_thoughts_of_a_role_are_kept_and_sent_to_nobody(in_memory: Networks) -> None:
    aloud = "<scratchpad>she is polite</scratchpad>"
    answer = says(
        call("route", target="answer", confidence=1, request=f"{aloud}Hello!"),
        text="<scratchpad>a greeting</scratchpad>",
    )
    async with playing(answer) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model, prompt={"scratchpad": True})
        await ann.say("bot", "hi")
        assert await told(ann) == "Hello!"
        turn = await net.turn("bot-m1")
        assert "a greeting" in (turn.steps[0].reasoning or "")
        assert "<scratchpad>" in model.requests[0].system


@pytest.mark.behaviour("O-7")
async def test_wrong_arguments_of_an_executor_are_corrected_before_anything_runs(
    in_memory: Networks, shop: trade.Shop
) -> None:
    answers = [
        route("price_of", request="the lamp"),
        says(call("price_of", artikel="lamp")),
        says(call("price_of", article="lamp")),
        judge("accept", answer="$step_1_result"),
    ]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "the lamp?")
        assert await told(ann) == "24.5"
        assert "did you mean article?" in model.requests[2].messages[-1].text
        assert shop.asked == ["lamp"]


@pytest.mark.behaviour("Y-10")
async def test_a_turn_of_roles_ends_when_its_tokens_are_used_up(in_memory: Networks) -> None:
    spent = Usage(prompt_tokens=900, completion_tokens=200)
    rules = [
        Rule(when=When(tools=["route"]), answer=_costing(route("make_plan"), spent)),
        Rule(when=When(tools=["submit_plan"]), answer=_costing(plan([BOTH[0]]), spent)),
    ]
    async with ModelServer(Script(rules=rules)) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model, max_tokens=2000)
        await ann.say("bot", "the lamp?")
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert turn.end.outcome == "max_steps"
        assert turn.end.reason == "not finished after 2200 tokens (at most 2000)"
        assert roles(turn)[-1].startswith("runs: step 1"), "what was planned has run"
        assert len(model.requests) == 2


def _costing(answer: Answer, usage: Usage) -> Answer:
    return answer.model_copy(update={"usage": usage})
