"""Trials of a recorded turn with another prompt or model: one request, nothing run or stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub import Agent
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import OperationError
from hubbub.protocol.agents import TriedTurn
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer, ScriptedUsage
from hubbub.testing.model_server import Breakdown, ModelServer, Refusal, Script, ScriptRule, When
from tests.interaction.agent_harness import (
    Harness,
    call,
    finish,
    harness,
    held,
    model_config,
    one_person,
    playing,
    says,
    send,
)
from tests.interaction.peers import Networks, Peer, config, soon
from tests.unit.agents.raw_endpoint import Reply, endpoint

pytestmark = pytest.mark.behaviour("U-8")

FILE = config(humans={"ann": {"roles": ["owner"]}})


async def run_turn(
    net: Harness, server: ModelServer, *, prompt: JsonValue = None, **more: ModelConfig
) -> tuple[Peer, Turn]:
    """Ann, and a turn of the bot, which has the models `default` (small), `big` and `more`."""
    models = {
        "default": model_config(server, model="small"),
        "big": model_config(server, model="large", price={"input": 1.0, "output": 10.0}),
        **more,
    }
    ann = await net.person()
    settings = {"instruction": "You are the bot.", "prompt": prompt or {}}
    await net.configured("bot", AgentConfig.model_validate(settings), Path(), models)
    await ann.say("bot", "go")
    return ann, await net.turn("bot-m1")


async def try_turn(ann: Peer, **args: Any) -> TriedTurn:
    return TriedTurn.model_validate(await ann.call("try_turn", turn="bot-m1", **args))


async def trial_error(person: Peer, **args: Any) -> OperationError:
    with pytest.raises(OperationError) as caught:
        await person.call("try_turn", **{"turn": "bot-m1", **args})
    return caught.value


FIRST = says(send("ann", "one"))
LAST = says(finish())


async def test_a_trial_repeats_the_recorded_request(networks: Networks) -> None:
    again = says(
        send("ann", "two"),
        call("nonsense"),
        text="<scratchpad>Should I?</scratchpad>Yes.",
        usage=ScriptedUsage(prompt_tokens=1000, completion_tokens=100),
    )
    async with playing(FIRST, LAST, again, again, LAST) as model, harness(networks, FILE) as net:
        ann, turn = await run_turn(net, model, prompt={"scratchpad": True})
        head = net.network.hub.kernel.log.head
        trial = await try_turn(ann)
        first, _, last = model.requests
        assert (trial.turn, trial.model) == ("bot-m1", "small")
        assert last.body == first.body
        step = trial.step
        assert (step.n, step.tokens_in, step.tokens_out) == (1, 1000, 100)
        assert (step.text, step.reasoning) == ("Yes.", "Should I?")
        sent, unknown = step.calls
        assert (sent.name, sent.result) == ("send_text_message", None)
        assert sent.arguments == {"to": "ann", "text": "two"}
        assert unknown.error == "unknown_tool"
        assert step.duration_ms is not None
        assert step.window == turn.steps[0].window
        assert turn.steps[0].calls[0].arguments == {"to": "ann", "text": "one"}
        trial = await try_turn(ann, model="big")
        assert (trial.model, model.requests[-1].body.model) == ("large", "large")
        assert trial.step.cost_usd == pytest.approx(0.002)
        await try_turn(ann, system_prompt="You are somebody else.")
        messages = model.requests[-1].body.messages
        assert (messages[0].role, messages[0].content) == ("system", "You are somebody else.")
        assert messages[1] == first.body.messages[1]
        await net.network.quiet()
        assert net.network.hub.kernel.log.head == head
        assert Turn.model_validate(await ann.call("read_turn", id="bot-m1")) == turn
        turns = (await ann.call("list_turns"))["turns"]
        assert [each["id"] for each in turns] == ["bot-m1"]


async def test_a_trial_in_a_text_dialect_repeats_the_recorded_request(in_memory: Networks) -> None:
    async with (
        playing(FIRST, LAST, says(send("ann", "two"))) as model,
        harness(in_memory, FILE) as net,
    ):
        ann = await net.person()
        models = {"default": model_config(model, model="small", dialect="tool_call")}
        await net.configured("bot", AgentConfig(), Path(), models)
        await ann.say("bot", "go")
        await net.turn("bot-m1")
        trial = await try_turn(ann)
        first, *_, last = model.requests
        assert last.body == first.body
        assert trial.step.window is not None
        assert trial.step.calls[0].arguments == {"to": "ann", "text": "two"}


async def test_a_failing_model_ends_only_the_trial(in_memory: Networks) -> None:
    bad: list[AnyAnswer] = [Refusal(status=500), Breakdown(breakdown="reset")]
    deep = says(call("nonsense", value=[[[[[[[[["x" * 300_000]]]]]]]]]))
    shallow = config(humans={"ann": {"roles": ["owner"]}}, network={"limits": {"json_depth": 8}})
    odd: JsonValue = {"choices": [{"message": {"tool_calls": "x"}}]}
    async with (
        playing(FIRST, LAST, *bad, LAST, deep) as model,
        endpoint(Reply(b"null")) as null,
        endpoint(Reply(odd)) as odd_calls,
        harness(in_memory, shallow) as net,
    ):
        ann, _turn = await run_turn(
            net,
            model,
            null=ModelConfig(model="odd", base_url=null, retries=0),
            calls=ModelConfig(model="odd", base_url=odd_calls, retries=0),
            nowhere=ModelConfig(model="odd").model_copy(
                update={"base_url": "http://[no-address/v1"}
            ),
        )
        errors = [
            ({}, "model endpoint"),
            ({}, "model endpoint"),
            ({"model": "null"}, "other than a chat completion"),
            ({"model": "calls"}, "tool_calls are not a list"),
            ({"model": "nowhere"}, "the trial failed: "),
            ({"model": "bigg"}, "'bigg': did you mean 'big'?"),
        ]
        for args, message in errors:
            error = await trial_error(ann, **args)
            assert error.code == "not_tried"
            assert all(part in error.message for part in message.split(": ")), error.message
        assert (await try_turn(ann)).step.calls[0].name == "finish"  # the agent still works
        step = (await try_turn(ann)).step
        assert step.calls[0].name == "nonsense", "cut to the hub's limits"


async def test_a_trial_fails_when_its_agent_is_disconnected(in_memory: Networks) -> None:
    async with (
        playing(FIRST, LAST, says(finish(), hold="on")) as model,
        harness(in_memory, FILE) as net,
    ):
        ann, _turn = await run_turn(net, model)
        ref = await ann.post("try_turn", turn="bot-m1")
        await held(model, "on")
        await net.kill("bot")
        answer = await ann.answer(ref)
        assert (answer["op"], answer["code"]) == ("error", "not_tried")
        assert "disconnected" in answer["message"]
        await net.network.gone("bot")
        assert "is not connected" in (await trial_error(ann)).message


async def test_a_trial_fails_at_its_deadline(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.network.services.trials.DEADLINE_S", 0.05)
    later = ScriptRule(when=When(system="^now$"), answer=LAST)
    script = Script(rules=[later], answers=[FIRST, LAST, says(finish(), hold="on")])
    async with ModelServer(script) as model, harness(in_memory, FILE) as net:
        ann, _turn = await run_turn(net, model)
        assert "not answer within 0.05 s" in (await trial_error(ann)).message
        monkeypatch.undo()
        step = (await try_turn(ann, system_prompt="now")).step
        assert step.calls[0].name == "finish"  # the agent still works


async def test_turns_continue_while_trials_run(in_memory: Networks) -> None:
    slow = says(finish(), hold="on")
    async with (
        playing(FIRST, LAST, slow, slow, FIRST, LAST) as model,
        harness(in_memory, FILE) as net,
    ):
        ann, _turn = await run_turn(net, model)
        prompts = "One.", "Two."
        refs = [await ann.post("try_turn", turn="bot-m1", system_prompt=p) for p in prompts]
        async with soon():
            await model.held("on", 2)
        assert (await trial_error(ann)).code == "limit"
        sent = await ann.say("bot", "and now?")
        assert (await net.turn(f"bot-{sent['id']}")).end is not None
        model.release("on")
        assert {(await ann.answer(ref))["op"] for ref in refs} == {"result"}


async def test_a_repeated_request_joins_the_running_trial(in_memory: Networks) -> None:
    slow, late = says(send("ann", "two"), hold="on"), says(send("ann", "three"))
    async with playing(FIRST, LAST, slow, late) as model, harness(in_memory, FILE) as net:
        ann, _turn = await run_turn(net, model)
        calls = net.network.hub.services.trials.calls
        calls.patience_s = 0.0
        error = await trial_error(ann)
        assert "ask again" in error.message
        assert error.temporary, "so the page asks again"
        await held(model, "on")
        calls.patience_s = 10.0
        await ann.close()
        back = await net.person()
        ref = await back.post("try_turn", turn="bot-m1")
        model.release("on")
        sent = (await back.answer(ref))["value"]["step"]["calls"][0]
        assert sent["arguments"] == {"to": "ann", "text": "two"}
        assert len(model.requests) == 3
        step = (await try_turn(back)).step  # an answered trial is not reused
        assert step.calls[0].arguments == {"to": "ann", "text": "three"}


async def test_only_owners_try_turns_and_list_models(in_memory: Networks) -> None:
    models = {"default": {"model": "small"}, "big": {"model": "large"}}
    async with harness(
        in_memory, config(models=models, humans={"ann": {"roles": ["owner"]}})
    ) as net:
        eve = await net.network.join("eve", "agent")
        assert (await trial_error(eve)).code == "forbidden"
        with pytest.raises(OperationError, match="owner"):
            await eve.call("list_models")
        operator = await net.network.join("operator", "service")
        trial = (await operator.call("list_models"))["models"]
        assert [(each["name"], each["model"]) for each in trial] == [
            ("default", "small"),
            ("big", "large"),
        ]


START = {"id": "bot-m1", "thread_id": "dm.ann.bot", "messages": ["m1"], "model": "small"}


async def test_agents_with_roles_or_without_a_model_cannot_run_trials(in_memory: Networks) -> None:
    async with playing(LAST) as model, one_person(in_memory, FILE) as (net, ann):
        await net.python("bot", Agent())
        await ann.say("bot", "go")
        await net.turn("bot-m1")
        assert "did not ask a model" in (await trial_error(ann)).message
        assert (await trial_error(ann, turn="bot-m99")).code == "unknown_turn"
        await net.kill("bot")
        await net.network.gone("bot")
        second = await ann.say("bot", "and now?")
        bench = await net.network.join("bot", "agent", turns=True)
        turn = f"bot-{second['id']}"
        await bench.call("begin_turn", start={**START, "id": turn, "messages": [second["id"]]})
        await bench.close()
        await net.network.gone("bot")
        router = AgentConfig.model_validate({"kind": "router"})
        await net.configured("bot", router, Path(), {"default": model_config(model, model="small")})
        assert "of this kind" in (await trial_error(ann, turn=turn)).message


async def test_only_the_agent_of_the_turn_can_answer_a_trial(in_memory: Networks) -> None:
    async with one_person(in_memory, FILE) as (net, ann):
        bot = await net.network.join("bot", "agent", turns=True)
        other = await net.network.join("eve", "agent", turns=True)
        await ann.say("bot", "go")
        await bot.call("begin_turn", start=START)
        ref = await ann.post("try_turn", turn="bot-m1", system_prompt="x")
        asked = (await bot.signal("try_turn"))["data"]
        assert (asked["turn"], asked["system_prompt"], asked["within_s"]) == ("bot-m1", "x", 120.0)
        step = {"n": 1, "text": "mine"}
        with pytest.raises(OperationError, match="no trial waits"):
            await other.call("turn_tried", request=asked["request"], step=step)
        with pytest.raises(OperationError, match="either step or error"):
            await bot.call("turn_tried", request=asked["request"])
        await bot.call("turn_tried", request=asked["request"], step=step, model="m")
        assert (await ann.answer(ref))["value"]["step"]["text"] == "mine"
        with pytest.raises(OperationError, match="no trial waits"):
            await bot.call("turn_tried", request=asked["request"], step=step)
