"""Trying a recorded turn with another prompt or model: asked once, nothing run, nothing kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import OperationError
from hubbub.protocol.trials import TriedTurn
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer, Usage
from hubbub.testing.model_server import Breakdown, ModelServer, Refusal, Rule, Script, When
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks, Peer, config, soon
from tests.unit.agents.raw_endpoint import Reply, endpoint

pytestmark = pytest.mark.behaviour("U-8")

FILE = config(humans={"ann": {"roles": ["owner"]}})


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


def scripted(server: ModelServer, name: str, **more: JsonValue) -> ModelConfig:
    given = {"model": name, "base_url": server.base_url, "retries": 0, **more}
    return ModelConfig.model_validate(given)


async def a_turn(
    net: Rig, server: ModelServer, broken: ModelConfig | None = None, **settings: JsonValue
) -> tuple[Peer, Turn]:
    """Ann, and a turn of the bot's, which has two models: `default` (small) and `big`; and a third
    one, `broken`, if it is given.
    """
    models = {
        "default": scripted(server, "small"),
        "big": scripted(server, "large", price={"input": 1.0, "output": 10.0}),
    }
    if broken is not None:
        models["broken"] = broken
    ann = await net.person()
    bot = AgentConfig.model_validate({"instruction": "You are the bot.", **settings})
    await net.configured("bot", bot, Path(), models)
    await ann.say("bot", "go")
    return ann, await net.turn("bot-m1")


async def tried(ann: Peer, **args: Any) -> TriedTurn:
    return TriedTurn.model_validate(await ann.call("try_turn", turn="bot-m1", **args))


async def refused(person: Peer, **args: Any) -> OperationError:
    with pytest.raises(OperationError) as caught:
        await person.call("try_turn", **{"turn": "bot-m1", **args})
    return caught.value


FIRST = says(send("ann", "one"))
LAST = says(finish())


async def test_the_model_is_asked_again_what_the_record_says(networks: Networks) -> None:
    again = says(
        send("ann", "two"),
        call("nonsense"),
        text="Hm.",
        usage=Usage(prompt_tokens=7, completion_tokens=3),
    )
    async with playing(FIRST, LAST, again) as model, rig(networks, FILE) as net:
        ann, turn = await a_turn(net, model)
        found = await tried(ann)
        assert (found.turn, found.model) == ("bot-m1", "small")
        first, *_, last = model.requests
        assert last.body == first.body
        step = found.step
        assert (step.n, step.text, step.tokens_in, step.tokens_out) == (1, "Hm.", 7, 3)
        said, unknown = step.calls
        assert (said.name, said.arguments, said.result) == (
            "send_text_message",
            {"to": "ann", "text": "two"},
            None,
        )
        assert unknown.error == "unknown_tool"
        assert step.duration_ms is not None
        assert step.window == turn.steps[0].window
        assert turn.steps[0].calls[0].arguments == {"to": "ann", "text": "one"}


async def test_nothing_of_a_trial_is_sent_run_or_recorded(networks: Networks) -> None:
    async with playing(FIRST, LAST, says(send("ann", "two"))) as model, rig(networks, FILE) as net:
        ann, turn = await a_turn(net, model)
        head = net.network.hub.log.head
        await tried(ann)
        await net.network.quiet()
        assert net.network.hub.log.head == head
        assert Turn.model_validate(await ann.call("read_turn", id="bot-m1")) == turn
        turns = (await ann.call("list_turns"))["turns"]
        assert [each["id"] for each in turns] == ["bot-m1"]


async def test_another_system_prompt_takes_the_place_of_the_recorded_one(
    networks: Networks,
) -> None:
    async with playing(FIRST, LAST, LAST) as model, rig(networks, FILE) as net:
        ann, _turn = await a_turn(net, model)
        await tried(ann, system_prompt="You are somebody else.")
        first, *_, last = [request.body.messages for request in model.requests]
        assert (last[0].role, last[0].content) == ("system", "You are somebody else.")
        assert last[1] == first[1]


async def test_another_model_is_asked_by_its_name(networks: Networks) -> None:
    cheap = says(finish(), usage=Usage(prompt_tokens=1000, completion_tokens=100))
    async with playing(FIRST, LAST, cheap) as model, rig(networks, FILE) as net:
        ann, _turn = await a_turn(net, model)
        found = await tried(ann, model="big")
        assert found.model == "large"
        assert model.requests[-1].body.model == "large"
        assert found.step.cost_usd == pytest.approx(0.002)


async def test_a_model_that_does_not_exist_is_told_with_the_nearest(networks: Networks) -> None:
    async with playing(FIRST, LAST) as model, rig(networks, FILE) as net:
        ann, _turn = await a_turn(net, model)
        error = await refused(ann, model="bigg")
        assert error.code == "not_tried"
        assert "'bigg'" in error.message
        assert "did you mean 'big'?" in error.message


async def test_a_record_in_a_dialect_of_words_is_asked_as_it_stands(networks: Networks) -> None:
    async with playing(FIRST, LAST, says(send("ann", "two"))) as model, rig(networks, FILE) as net:
        ann = await net.person()
        words = {"default": scripted(model, "small", dialect="tool_call")}
        await net.configured("bot", AgentConfig(), Path(), words)
        await ann.say("bot", "go")
        await net.turn("bot-m1")
        found = await tried(ann)
        first, *_, last = model.requests
        assert last.body == first.body
        assert found.step.window is not None
        assert found.step.calls[0].arguments == {"to": "ann", "text": "two"}


async def test_thoughts_are_kept_apart_as_in_a_turn(networks: Networks) -> None:
    thinks = says(finish(), text="<scratchpad>Should I?</scratchpad>Yes.")
    async with playing(FIRST, LAST, thinks) as model, rig(networks, FILE) as net:
        ann, _turn = await a_turn(net, model, prompt={"scratchpad": True})
        step = (await tried(ann)).step
        assert (step.text, step.reasoning) == ("Yes.", "Should I?")


@pytest.mark.parametrize(
    ("answer", "told"),
    [(Refusal(status=500), "model endpoint"), (Breakdown(breakdown="reset"), "model endpoint")],
)
async def test_what_goes_wrong_with_the_model_is_told(
    in_memory: Networks, answer: AnyAnswer, told: str
) -> None:
    async with playing(FIRST, LAST, answer) as model, rig(in_memory, FILE) as net:
        ann, _turn = await a_turn(net, model)
        error = await refused(ann)
        assert error.code == "not_tried"
        assert told in error.message


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"null", "no chat completion"),
        ({"choices": [{"message": {"tool_calls": "x"}}]}, "tool_calls that are no list"),
    ],
)
async def test_a_model_that_answers_with_nonsense_ends_nothing_but_the_trial(
    in_memory: Networks, body: JsonValue | bytes, told: str
) -> None:
    async with (
        playing(FIRST, LAST, LAST) as model,
        endpoint(Reply(body)) as url,
        rig(in_memory, FILE) as net,
    ):
        broken = ModelConfig(model="odd", base_url=url, retries=0)
        ann, _turn = await a_turn(net, model, broken=broken)
        assert told in (await refused(ann, model="broken")).message
        assert (await tried(ann)).step.calls[0].name == "finish"  # the agent goes on


async def test_a_trial_that_fails_unforeseen_ends_nothing_but_itself(in_memory: Networks) -> None:
    async with playing(FIRST, LAST, LAST) as model, rig(in_memory, FILE) as net:
        broken = ModelConfig(model="odd", base_url="http://[no-address/v1")
        ann, _turn = await a_turn(net, model, broken=broken)
        assert "the trial failed: " in (await refused(ann, model="broken")).message
        assert (await tried(ann)).step.calls[0].name == "finish"


async def test_a_step_that_the_hub_would_not_take_is_cut(in_memory: Networks) -> None:
    deep = says(call("nonsense", value=[[[[[[[[["x" * 300_000]]]]]]]]]))
    shallow = config(humans={"ann": {"roles": ["owner"]}}, network={"limits": {"json_depth": 8}})
    async with playing(FIRST, LAST, deep) as model, rig(in_memory, shallow) as net:
        ann, _turn = await a_turn(net, model)
        assert (await tried(ann)).step.calls[0].name == "nonsense"


async def test_an_agent_that_is_away_cannot_be_asked(in_memory: Networks) -> None:
    async with playing(FIRST, LAST) as model, rig(in_memory, FILE) as net:
        ann, _turn = await a_turn(net, model)
        await net.kill("bot")
        await net.network.gone("bot")
        assert "is not here" in (await refused(ann)).message


async def test_an_agent_that_goes_away_meanwhile_is_not_waited_for(in_memory: Networks) -> None:
    async with (
        playing(FIRST, LAST, says(finish(), hold="on")) as model,
        rig(in_memory, FILE) as net,
    ):
        ann, _turn = await a_turn(net, model)
        ref = await ann.post("try_turn", turn="bot-m1")
        async with soon():
            await model.held("on")
        await net.kill("bot")
        answer = await ann.answer(ref)
        assert (answer["op"], answer["code"]) == ("error", "not_tried")
        assert "went away" in answer["message"]


async def test_an_answer_that_takes_too_long_is_given_up(
    in_memory: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.network.operations.trials.DEADLINE_S", 0.05)
    later = Rule(when=When(system="^now$"), answer=LAST)
    script = Script(rules=[later], answers=[FIRST, LAST, says(finish(), hold="on")])
    async with ModelServer(script) as model, rig(in_memory, FILE) as net:
        ann, _turn = await a_turn(net, model)
        assert "not answered within 0.05 s" in (await refused(ann)).message
        monkeypatch.undo()
        step = (await tried(ann, system_prompt="now")).step
        assert step.calls[0].name == "finish"  # the agent is none the worse for it


async def test_while_a_trial_runs_everything_else_goes_on(in_memory: Networks) -> None:
    held = says(finish(), hold="on")
    async with playing(FIRST, LAST, held, held, FIRST, LAST) as model, rig(in_memory, FILE) as net:
        ann, _turn = await a_turn(net, model)
        refs = [await ann.post("try_turn", turn="bot-m1") for _ in range(2)]
        async with soon():
            await model.held("on", 2)
        assert (await refused(ann)).code == "limit"
        sent = await ann.say("bot", "and now?")
        assert (await net.turn(f"bot-{sent['id']}")).end is not None
        model.release("on")
        assert {(await ann.answer(ref))["op"] for ref in refs} == {"result"}


async def test_only_owners_may_try_turns(in_memory: Networks) -> None:
    async with playing(FIRST, LAST) as model, rig(in_memory, FILE) as net:
        await a_turn(net, model)
        eve = await net.network.join("eve", "agent")
        assert (await refused(eve)).code == "forbidden"
        with pytest.raises(OperationError, match="owner"):
            await eve.call("list_models")


class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return message.text


async def test_an_agent_without_a_model_has_nothing_to_try(in_memory: Networks) -> None:
    async with rig(in_memory, FILE) as net:
        ann = await net.person()
        await net.python("bot", Echo())
        await ann.say("bot", "go")
        await net.turn("bot-m1")
        assert "no model" in (await refused(ann)).message
        assert (await refused(ann, turn="bot-m99")).code == "unknown_turn"


async def test_an_agent_of_roles_says_that_it_cannot(in_memory: Networks) -> None:
    async with playing(LAST) as model, rig(in_memory, FILE) as net:
        ann = await net.person()
        bench = await net.network.join("bot", "agent", turns=True)
        await ann.say("bot", "go")
        start: dict[str, Any] = {
            "id": "bot-m1", "thread_id": "dm.ann.bot", "messages": ["m1"], "model": "small",
        }  # fmt: skip
        await bench.call("begin_turn", start=start)
        await bench.close()
        await net.network.gone("bot")
        router = AgentConfig.model_validate({"kind": "router"})
        await net.configured("bot", router, Path(), {"default": scripted(model, "small")})
        assert "of this kind" in (await refused(ann)).message


async def test_nobody_but_the_agent_that_was_asked_may_answer(in_memory: Networks) -> None:
    async with rig(in_memory, FILE) as net:
        ann = await net.person()
        bot = await net.network.join("bot", "agent", turns=True)
        other = await net.network.join("eve", "agent", turns=True)
        await ann.say("bot", "go")
        start = {"id": "bot-m1", "thread_id": "dm.ann.bot", "messages": ["m1"], "model": "small"}
        await bot.call("begin_turn", start=start)
        ref = await ann.post("try_turn", turn="bot-m1", system_prompt="x")
        asked = (await bot.signal("try_turn"))["data"]
        assert (asked["turn"], asked["system_prompt"], asked["within_s"]) == ("bot-m1", "x", 120.0)
        step = {"n": 1, "text": "mine"}
        with pytest.raises(OperationError, match="nobody waits"):
            await other.call("turn_tried", request=asked["request"], step=step)
        with pytest.raises(OperationError, match="either step or error"):
            await bot.call("turn_tried", request=asked["request"])
        await bot.call("turn_tried", request=asked["request"], step=step, model="m")
        assert (await ann.answer(ref))["value"]["step"]["text"] == "mine"
        with pytest.raises(OperationError, match="nobody waits"):
            await bot.call("turn_tried", request=asked["request"], step=step)


async def test_owners_are_told_which_models_there_are(in_memory: Networks) -> None:
    file = config(models={"default": {"model": "small"}, "big": {"model": "large"}})
    async with rig(in_memory, file) as net:
        operator = await net.network.join("operator", "service")
        found = (await operator.call("list_models"))["models"]
        assert found == [{"name": "default", "model": "small"}, {"name": "big", "model": "large"}]
