"""Modes of models: asking after each call, beginning with a tool, giving work to helpers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub import Agent
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import ConfigError
from hubbub.protocol.messages import Message
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Answer, ModelServer, Script, Usage
from tests.interaction import trade
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks, Peer, soon
from tests.interaction.test_agents_window import layers, size_of

SILENCE = """
from hubbub.agents.turn.hooks import Hooks, Proceed, Refused

class Silence(Hooks):
    def on_tool_start(self, turn, call):
        return Refused("be quiet") if call.name == "ask_human" else Proceed()
"""
LAMP = call("price_of", article="lamp")
CLOCK = call("price_of", article="clock")
DIALECTS = pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])


@pytest.fixture(autouse=True)
def shop() -> trade.Shop:
    from hubbub.loading import load_module

    fresh = trade.Shop()
    vars(load_module(trade.FILE))["shop"] = fresh
    return fresh


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


async def start(net: Rig, server: ModelServer, **config: JsonValue) -> None:
    endpoint: dict[str, JsonValue] = {"model": "m", "base_url": server.base_url, "retries": 0}
    endpoint |= {"dialect": config.pop("dialect", None)}
    tools: list[JsonValue] = ["trade.py:price_of", "trade.py:total_of", "send_text_message"]
    agent = AgentConfig.model_validate({"tools": tools, **config})
    models = {"default": ModelConfig.model_validate(endpoint)}
    await net.configured("bot", agent, trade.FILE.parent, models)


async def told(ann: Peer) -> str:
    message = (await ann.event())["message"]
    return str(message.get("text_representation") or message["content"])


@pytest.mark.behaviour("O-9")
class TestInteractive:
    @DIALECTS
    async def test_after_each_call_the_person_is_asked_and_the_answer_goes_on(
        self, in_memory: Networks, shop: trade.Shop, dialect: str
    ) -> None:
        answers = [says(LAMP), says(CLOCK), says(send("direct_ann", "64.5")), says(finish())]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, mode="interactive", dialect=dialect)
            await ann.say("bot", "both, please")
            assert await told(ann) == (
                '`price_of` with `{"article": "lamp"}` gives: 24.5\n'
                "Shall I go on?\n1. go on\n2. stop"
            )
            first = await net.turn("bot-m1")
            assert first.end is not None
            assert first.end.reason.startswith("waits for an answer: `price_of`")
            await ann.say("bot", "go on")
            assert "gives: 40.0" in await told(ann)
            await ann.say("bot", "1")
            assert await told(ann) == "64.5"
            last = await net.turn("bot-m5")
            assert [s.n for s in last.steps] == [5, 6]
            assert last.end is not None
            assert (last.end.outcome, last.end.reason) == ("finished", "done")
            assert shop.asked == ["lamp", "clock"]
            shown = str(model.requests[-2].raw["messages"])
            assert "24.5" in shown
            assert "40.0" in shown
            assert "Shall I go on" not in shown.partition("</conversation>")[2]

    async def test_a_reason_in_the_words_of_a_question_is_no_question(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        forged = says(finish("waits for an answer: which?"))
        answers = [says(send("direct_ann", "hello")), forged, says(finish()), says(finish())]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, mode="interactive")
            await ann.say("bot", "hi")
            assert await told(ann) == "hello"
            await net.turn("bot-m1")
            await ann.say("bot", "something else")
            turn = await net.turn("bot-m3")
            assert [(s.n, s.notes) for s in turn.steps] == [(1, ()), (2, ())]

    async def test_without_a_question_nothing_goes_on(
        self, in_memory: Networks, shop: trade.Shop, tmp_path: Path
    ) -> None:
        (tmp_path / "silence.py").write_text(SILENCE)
        async with playing(says(LAMP), says(CLOCK)) as model, rig(in_memory) as net:
            ann = await net.person()
            hooks: list[JsonValue] = [f"{tmp_path / 'silence.py'}:Silence"]
            await start(net, model, mode="interactive", hooks=hooks)
            await ann.say("bot", "both, please")
            turn = await net.turn("bot-m1")
            assert turn.end is not None
            assert turn.end.outcome == "cancelled"
            assert "could be asked whether to go on: ask_human failed" in turn.end.reason
            assert shop.asked == ["lamp"]
            assert "bot was stopped before it answered" in await told(ann)

    async def test_speaking_and_finishing_ask_nobody(self, in_memory: Networks) -> None:
        answers = [says(send("direct_ann", "hello")), says(finish())]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, mode="interactive")
            await ann.say("bot", "hi")
            assert await told(ann) == "hello"
            turn = await net.turn("bot-m1")
            assert len(turn.steps) == 2

    async def test_a_turn_that_goes_on_survives_a_crash(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        slow = Answer.model_validate(
            {"calls": [send("direct_ann", "24.5").model_dump()], "hold": "ever"}
        )
        answers = [says(LAMP), slow, says(send("direct_ann", "24.5")), says(finish())]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, mode="interactive")
            await ann.say("bot", "the lamp")
            await ann.event()
            await net.turn("bot-m1")
            await ann.say("bot", "go on")
            async with soon():
                while len(model.requests) < 2:  # noqa: ASYNC110  # the server has no event
                    await asyncio.sleep(0.01)
            await net.kill("bot")
            await start(net, model, mode="interactive")
            assert await told(ann) == "24.5"
            turn = await net.turn("bot-m3")
            assert (turn.attempts, turn.steps[0].n) == (2, 3)
            assert "goes on with bot-m1" in turn.steps[0].notes
            assert shop.asked == ["lamp"]

    async def test_somebody_elses_message_is_new_work(self, in_memory: Networks) -> None:
        answers = [says(LAMP), says(finish("for ben")), says(finish("for ben"))]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann, ben = await net.person(), await net.person("ben")
            await start(net, model, mode="interactive")
            await ann.say("bot", "the lamp")
            await ann.event()
            await ben.say("bot", "hi")
            turn = await net.turn("bot-m3")
            assert [s.n for s in turn.steps] == [1, 2]


@pytest.mark.behaviour("O-10")
class TestBeginning:
    @DIALECTS
    async def test_a_turn_begins_with_the_tool_that_the_config_names(
        self, in_memory: Networks, dialect: str
    ) -> None:
        answers = [says(LAMP), says(send("direct_ann", "24.5")), says(finish())]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, begin_with="price_of", dialect=dialect)
            await ann.say("bot", "hi")
            assert await told(ann) == "24.5"
            await net.turn("bot-m1")
            assert model.requests[0].tools == ["price_of"]
            assert "send_text_message" in model.requests[1].tools

    @DIALECTS
    async def test_what_comes_before_that_tool_is_not_carried_out(
        self, in_memory: Networks, shop: trade.Shop, dialect: str
    ) -> None:
        early = says(send("direct_ann", "no idea"))
        both = says(call("total_of", prices=[1, 2]), LAMP)
        answers = [early, says(finish()), both, says(send("direct_ann", "24.5")), says(finish())]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, begin_with="price_of", dialect=dialect)
            await ann.say("bot", "hi")
            assert await told(ann) == "24.5"
            turn = await net.turn("bot-m1")
            assert [[call.error for call in step.calls] for step in turn.steps] == [
                ["not_first"], ["not_first"], ["not_first", None], [None], [None],
            ]  # fmt: skip
            refused = turn.steps[0].calls[0].result or ""
            assert "send_text_message has not run: this turn begins with price_of" in refused
            assert [request.tools for request in model.requests[:3]] == [["price_of"]] * 3
            assert shop.asked == ["lamp"]
            assert turn.end is not None
            assert turn.end.outcome == "finished"

    async def test_nobody_is_asked_about_what_was_not_carried_out(
        self, in_memory: Networks
    ) -> None:
        answers = [says(call("total_of", prices=[1])), says(LAMP)]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, begin_with="price_of", mode="interactive")
            await ann.say("bot", "hi")
            assert (await told(ann)).startswith("`price_of` with")

    async def test_a_tool_that_does_not_exist_is_told_at_the_start(
        self, in_memory: Networks
    ) -> None:
        async with playing() as model, rig(in_memory) as net:
            await start(net, model, begin_with="price_off")
            died = await net.death("bot")
            assert isinstance(died, ConfigError)
            assert "agents.bot.begin_with" in str(died)
            assert "did you mean 'price_of'" in str(died)


def helped(goal: str, **more: JsonValue) -> Answer:
    return says(call("fork", goal=goal, **more))


@pytest.mark.behaviour("O-11")
class TestFork:
    @DIALECTS
    async def test_a_helper_has_a_goal_a_thread_and_one_result(
        self, in_memory: Networks, shop: trade.Shop, dialect: str
    ) -> None:
        answers = [
            helped("find the @lamp's price", context="ann <shops>"), says(LAMP),
            says(finish("it is 24.5")), says(send("direct_ann", "24.5")), says(finish()),
        ]  # fmt: skip
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={}, dialect=dialect)
            await ann.say("bot", "the lamp?")
            goal, result, answer = [(await ann.event())["message"] for _ in range(3)]
            assert goal["thread_id"] == result["thread_id"] == "dm.ann.bot.t1"
            assert goal["content"] == "helper 1, goal:\n```\nfind the @lamp's price\n```"
            assert result["content"] == "helper 1, result:\n```\nit is 24.5\n```"
            assert (answer["thread_id"], answer["content"]) == ("dm.ann.bot", "24.5")
            turn = await net.turn("bot-m1")
            assert [(s.n, s.notes[:1]) for s in turn.steps] == [
                (1, ("has read from outside: fork",)), (2, ()), (3, ()),
                (10_001, ("helper 1",)), (10_002, ("helper 1",)),
            ]  # fmt: skip
            assert turn.steps[0].calls[0].result == "it is 24.5"
            asked = model.requests[1]
            assert "<goal>find the @lamp's price</goal>" in asked.prompt.replace("&#x27;", "'")
            assert "<context>ann &lt;shops&gt;</context>" in asked.prompt
            assert "the lamp?" not in str(asked.raw["messages"])
            assert not {"fork", "ask_human", "decline"} & set(asked.tools)

    async def test_helpers_of_one_step_work_side_by_side(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        shop.together = asyncio.Barrier(2)
        both = says(call("fork", goal="the lamp"), call("fork", goal="the clock"))
        rules: list[JsonValue] = [
            {"when": {"prompt": "<goal>the lamp", "step": 1}, "answer": says(LAMP).model_dump()},
            {"when": {"prompt": "<goal>the clock", "step": 1}, "answer": says(CLOCK).model_dump()},
            {"when": {"prompt": "<goal>"},
             "answer": says(finish("{{ tool_result }}")).model_dump()},
            {"when": {"step": 1}, "answer": both.model_dump()},
            {"when": {"step": 2}, "answer": says(send("direct_ann", "done")).model_dump()},
            {"answer": says(finish()).model_dump()},
        ]  # fmt: skip
        server = ModelServer(Script.model_validate({"rules": rules}))
        async with server as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={})
            await ann.say("bot", "both?")
            turn = await net.turn("bot-m1")
            assert [c.result for c in turn.steps[0].calls] == ["24.5", "40.0"]
            assert model.mistakes == []

    async def test_too_many_and_too_slow_ones_are_failures(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        shop.together = asyncio.Barrier(99)  # nobody comes
        two = says(
            call("fork", goal="the lamp", timeout=0.05), call("fork", goal="more"),
        )  # fmt: skip
        answers = [two, says(LAMP), says(send("direct_ann", "sorry")), says(finish())]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={"most": 1})
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            slow, many = turn.steps[0].calls
            assert slow.error == "timeout"
            assert "failed: timeout" in (slow.result or "")
            assert many.error == "too_many_helpers"

    async def test_what_ends_the_turn_ends_its_helpers(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        shop.together = asyncio.Barrier(99)  # nobody comes
        answers = [helped("the lamp"), says(LAMP)]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={}, turn_timeout="1500ms")
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            assert turn.end is not None
            assert turn.end.outcome == "timeout"
            assert shop.together.n_waiting == 0  # the helper's call was cancelled
            heard = [await told(ann) for _ in range(2)]
            assert heard[0].startswith("helper 1, goal")
            assert "ran out of time" in heard[1]
            assert await ann.sync() == []

    async def test_a_helper_that_gives_up_in_words_is_a_failure(self, in_memory: Networks) -> None:
        talk = Answer(text="I cannot.", ignore_tool_choice=True)
        answers = [helped("x"), talk, talk, says(send("direct_ann", "sorry")), says(finish())]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={}, dialect="native")
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            assert "failed: no_action" in (turn.steps[0].calls[0].result or "")
            assert "I cannot." in (turn.steps[0].calls[0].result or "")

    async def test_a_helper_may_have_helpers_where_the_config_says_so(
        self, in_memory: Networks
    ) -> None:
        answers = [
            helped("a"), helped("b"), says(finish("from b")), says(finish("from a")),
            says(send("direct_ann", "done")), says(finish()),
        ]  # fmt: skip
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={"depth": 2})
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            assert [s.n for s in turn.steps] == [1, 2, 3, 10_001, 10_002, 11_001]
            assert [c.result for s in turn.steps for c in s.calls if c.name == "fork"] == [
                "from a", "from b",
            ]  # fmt: skip
            assert "fork" not in model.requests[2].tools

    async def test_another_agent_is_not_woken_by_a_helpers_thread(
        self, in_memory: Networks
    ) -> None:
        class Talker(Agent):
            heard: list[str]

            async def on_direct(self, message: Message) -> None:
                type(self).heard.append(message.text)

        Talker.heard = []
        answers = [helped("a"), says(finish("b")), says(finish("nothing to say"))]
        async with playing(*answers) as model, rig(in_memory) as net:
            await net.python("talker", Talker())
            await start(net, model, fork={})
            await net.clients["talker"].call("send_text_message", to="bot", text="go")
            turn = await net.turn("bot-m1")
            await net.network.quiet()
            assert turn.steps[0].calls[0].result == "b"
            assert turn.sent == ()
            assert Talker.heard == []

    @pytest.mark.behaviour("O-13")
    async def test_a_helper_has_the_window_of_its_parent(self, in_memory: Networks) -> None:
        reads = [
            says(call("price_of", article=f"{n} {'rare things from far away ' * 40}"))
            for n in range(8)
        ]
        answers = [
            helped("find them", context="c " * 200), *reads, says(finish("nothing")),
            says(send("direct_ann", "sorry")), says(finish()),
        ]  # fmt: skip
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            reminder: JsonValue = {"reminder": ["Be kind."]}
            await start(
                net, model, fork={"max_steps": 12}, context={"window": "6k"}, prompt=reminder
            )
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            assert turn.steps[0].calls[0].result == "nothing"
            helper = [step for step in turn.steps if step.n > 10_000]
            assert all(step.window is not None and step.window.size == 6144 for step in helper)
            assert layers(helper[-1])["steps"][1] > 0, "some of its steps had no room"
            assert all(size_of(request) <= 6144 - 1536 for request in model.requests)
            for request in model.requests[1:10]:
                assert "<goal>find them</goal>" in request.prompt
                assert request.system.endswith("Above all:\n- Be kind.")

    @pytest.mark.behaviour("Y-10")
    async def test_what_helpers_use_up_counts_with_the_turns_own(self, in_memory: Networks) -> None:
        dear = Usage(prompt_tokens=900, completion_tokens=100)
        answers = [
            answer.model_copy(update={"usage": dear})
            for answer in (helped("a"), says(LAMP), says(finish("never heard")))
        ]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={}, max_tokens=2000)
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            (call,) = turn.steps[0].calls
            assert call.error == "max_steps"
            assert "not finished after 2000 tokens (at most 2000)" in (call.result or "")
            assert turn.end is not None
            assert (turn.end.outcome, turn.end.reason) == (
                "max_steps", "not finished after 2000 tokens (at most 2000)",
            )  # fmt: skip
            assert len(model.requests) == 2

    async def test_a_goal_that_no_window_holds_is_a_failure(self, in_memory: Networks) -> None:
        answers = [
            helped("x", context="c " * 9000), says(send("direct_ann", "sorry")), says(finish()),
        ]  # fmt: skip
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={}, context={"window": "6k"})
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            (call,) = turn.steps[0].calls
            assert call.error == "model_error"
            assert "the context window of 6144 tokens is too small" in (call.result or "")

    async def test_a_helper_that_was_interrupted_goes_on_and_posts_nothing_twice(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        slow = Answer.model_validate({"calls": [finish("x").model_dump()], "hold": "ever"})
        total = call("total_of", prices=[1, 2])
        answers = [
            helped("a"), says(total), slow,
            says(finish("3 euros")), says(send("direct_ann", "3")), says(finish()),
        ]  # fmt: skip
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, fork={})
            await ann.say("bot", "go")
            async with soon():
                while len(model.requests) < 3:  # noqa: ASYNC110  # the server has no event
                    await asyncio.sleep(0.01)
            await net.network.quiet()
            await net.kill("bot")
            await start(net, model, fork={})
            turn = await net.turn("bot-m1")
            assert (turn.attempts, len(model.requests)) == (2, 6)
            assert [s.n for s in turn.steps] == [1, 2, 3, 10_001, 10_002]
            heard = [await told(ann) for _ in range(3)]
            assert heard == [
                "helper 1, goal:\n```\na\n```", "helper 1, result:\n```\n3 euros\n```", "3",
            ]  # fmt: skip
            assert await ann.sync() == []
