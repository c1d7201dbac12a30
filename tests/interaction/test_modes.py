"""Modes of an agent: asking after each call, a fixed first tool, and helpers (`fork`)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub import Agent
from hubbub.protocol.messages import Message
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Script, ScriptedAnswer, ScriptedUsage
from tests.interaction import trade
from tests.interaction.agent_harness import call, finish, says, send
from tests.interaction.peers import Networks, eventually
from tests.interaction.scripted import TALK, Config, Scene, ending, scene
from tests.interaction.windows import layers, size_of

LAMP = call("price_of", article="lamp")
CLOCK = call("price_of", article="clock")
SORRY = says(send("direct_ann", "sorry"), finish())
DIALECTS = pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])


@pytest.fixture(autouse=True)
def shop() -> trade.Shop:
    return trade.fresh_shop()


def trading(
    networks: Networks,
    *answers: AnyAnswer,
    dialect: str | None = None,
    script: Script | None = None,
    worded: ScriptedAnswer | None = None,
    **config: Any,
) -> AbstractAsyncContextManager[Scene]:
    """An agent with the tools of the shop."""
    config.setdefault("tools", [*trade.TOOLS, "send_text_message"])
    if config.get("mode") == "interactive":  # by default the model words no question
        when: JsonValue = {"system": "the one who wrote to you is asked"}
        rule = {"when": when, "answer": (worded or TALK).model_dump()}
        script = Script.model_validate({"rules": [rule], "answers": [*answers]})
    endpoint: JsonValue = {"dialect": dialect}
    base = trade.FILE.parent
    return scene(networks, *answers, script=script, base=base, endpoint=endpoint, **config)


@pytest.mark.behaviour("O-9")
class TestInteractive:
    @DIALECTS
    async def test_the_person_is_asked_after_each_call_and_can_continue(
        self, in_memory: Networks, shop: trade.Shop, dialect: str
    ) -> None:
        answers = [says(LAMP), says(CLOCK), says(send("direct_ann", "64.5")), says(finish())]
        async with trading(in_memory, *answers, mode="interactive", dialect=dialect) as s:
            first = await s.turn("both, please")
            assert await s.heard() == (
                '`price_of` with `{"article": "lamp"}` gives: 24.5\n'
                "Shall I go on?\n1. go on\n2. stop"
            )
            assert ending(first)[1].startswith("waits for an answer: `price_of`")
            await s.turn("go on")
            assert "gives: 40.0" in await s.heard()
            last = await s.turn("1")
            assert await s.heard() == "64.5"
            assert [step.n for step in last.steps] == [5, 6]
            assert ending(last) == ("finished", "done")
            assert shop.asked == ["lamp", "clock"]
            messages = str(s.model.requests[-2].raw["messages"])
            assert "24.5" in messages
            assert "40.0" in messages
            assert "Shall I go on" not in messages.partition("</conversation>")[2]

    async def test_the_model_can_word_the_question(self, in_memory: Networks) -> None:
        question = call("ask_human", question="24.5 for it. Buy?", options=["buy it", "stop"])
        answers = [says(LAMP), says(finish(), send("direct_ann", "bought"))]
        async with trading(in_memory, *answers, mode="interactive", worded=says(question)) as s:
            turn = await s.turn("the lamp")
            assert await s.heard() == "24.5 for it. Buy?\n1. buy it\n2. stop"
            assert ending(turn) == ("finished", "waits for an answer: 24.5 for it. Buy?")
            assert [(step.made, step.tokens_in > 0) for step in turn.steps] == [
                (None, True), ("confirm", True),
            ]  # fmt: skip
            await s.turn("1")
            assert await s.heard() == "bought"

    async def test_sending_and_finishing_ask_no_question(self, in_memory: Networks) -> None:
        forged = says(finish("waits for an answer: which?"))
        answers = [says(send("direct_ann", "hello")), forged, says(finish()), says(finish())]
        async with trading(in_memory, *answers, mode="interactive") as s:
            assert len((await s.turn("hi")).steps) == 2
            assert await s.heard() == "hello"
            turn = await s.turn("something else")
            assert [(step.n, step.notes) for step in turn.steps] == [(1, ()), (2, ())]

    async def test_a_continued_turn_survives_a_crash(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        price = says(send("direct_ann", "24.5"))
        answers = [says(LAMP), price.model_copy(update={"hold": "dying"}), price, says(finish())]
        async with trading(in_memory, *answers, mode="interactive") as s:
            await s.turn("the lamp")
            await s.heard()
            id = await s.say("go on")
            await s.held("dying")
            await s.restart()
            assert await s.heard() == "24.5"
            turn = await s.net.turn(id)
            assert (turn.attempts, turn.steps[0].n) == (2, 3)
            assert turn.start.continues == "bot-m1"
            assert shop.asked == ["lamp"]

    async def test_steps_tidied_in_one_turn_stay_tidied_in_the_next(
        self, in_memory: Networks
    ) -> None:
        tidy = call("tidy_steps", discard=[1], compress=[{"step": 3, "text": "a clock: 40"}])
        answers = [says(LAMP), says(CLOCK), says(tidy), says(LAMP), says(finish()), says(finish())]
        context: JsonValue = {"protect": ["errors"]}
        async with trading(in_memory, *answers, mode="interactive", context=context) as s:
            for text in ("both", "go on", "go on"):
                await s.turn(text)
                await s.heard()
            turn = await s.turn("go on")
            assert turn.steps[0].n == 8
            chat = str(s.model.requests[-1].raw["messages"]).partition("</conversation>")[2]
            assert "[my step 3, in fewer words] a clock: 40" in chat
            assert ("40.0" in chat, chat.count("24.5")) == (False, 1)


@pytest.mark.behaviour("O-10")
class TestBeginning:
    async def test_a_turn_must_begin_with_the_configured_tool(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        early = says(send("direct_ann", "no idea"), call("fly"))
        both = says(call("total_of", prices=[1, 2]), call("price_of", article="boat"))
        answers = [early, says(finish()), both, says(send("direct_ann", "24.5")), says(finish())]
        async with trading(in_memory, *answers, begin_with="price_of") as s:
            turn = await s.turn("hi")
            assert await s.heard() == "24.5"
            assert [[call.error for call in step.calls] for step in turn.steps] == [
                ["not_first", "unknown_tool"], ["not_first"], ["not_first", "unknown_article"],
                [None], [None],
            ]  # fmt: skip
            refused = turn.steps[0].calls[0].result or ""
            assert "send_text_message has not run: this turn begins with price_of" in refused
            assert [request.tools for request in s.model.requests[:3]] == [["price_of"]] * 3
            assert "send_text_message" in s.model.requests[3].tools
            assert shop.asked == ["boat"], "a failed first call counts"
            assert ending(turn)[0] == "finished"


def fork_call(goal: str, **more: Any) -> ScriptedAnswer:
    return says(call("fork", goal=goal, **more))


@pytest.mark.behaviour("O-11")
class TestFork:
    @DIALECTS
    async def test_a_helper_has_a_goal_a_thread_and_one_result(
        self, in_memory: Networks, dialect: str
    ) -> None:
        answers = [
            fork_call("find the @lamp's price", context="ann <shops>"), says(LAMP),
            says(finish("it is 24.5")), says(send("direct_ann", "24.5")), says(finish()),
        ]  # fmt: skip
        async with trading(in_memory, *answers, fork={}, dialect=dialect) as s:
            turn = await s.turn("the lamp?")
            got = [(await s.ann.event())["message"] for _ in range(3)]
            assert [(m["thread_id"], m["content"]) for m in got] == [
                ("dm.ann.bot.t1", "helper 1, goal:\n```\nfind the @lamp's price\n```"),
                ("dm.ann.bot.t1", "helper 1, result:\n```\nit is 24.5\n```"),
                ("dm.ann.bot", "24.5"),
            ]
            assert {m["cause_id"] for m in got[:2]} == {"m1"}, "not answers to the person"
            first, *others = turn.steps
            assert first.untrusted == ("fork",)
            assert [step.n for step in others] == [2, 3, 10_001, 10_002]
            assert turn.steps[0].calls[0].result == "it is 24.5"
            asked = s.model.requests[1]
            assert "<goal>find the @lamp's price</goal>" in asked.prompt.replace("&#x27;", "'")
            assert "<context>ann &lt;shops&gt;</context>" in asked.prompt
            assert "the lamp?" not in str(asked.raw["messages"])
            assert not {"fork", "ask_human", "decline"} & set(asked.tools)

    async def test_helpers_of_one_step_run_concurrently(
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
            {"answer": says(send("direct_ann", "done"), finish()).model_dump()},
        ]  # fmt: skip
        script = Script.model_validate({"rules": rules})
        async with trading(in_memory, script=script, fork={}) as s:
            turn = await s.turn("both?")
            assert [c.result for c in turn.steps[0].calls] == ["24.5", "40.0"]
            assert s.model.mistakes == []

    async def test_too_many_or_too_slow_helpers_fail(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        shop.together = asyncio.Barrier(99)  # never passes
        two = says(call("fork", goal="the lamp", timeout=0.05), call("fork", goal="more"))
        async with trading(in_memory, two, says(LAMP), SORRY, fork={"most": 1}) as s:
            slow, many = (await s.turn()).steps[0].calls
            assert slow.error == "timeout"
            assert "failed: timeout" in (slow.result or "")
            assert many.error == "too_many_helpers"

    async def test_stopping_a_turn_stops_its_helpers(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        shop.together = asyncio.Barrier(99)  # never passes
        answers = [fork_call("the lamp"), says(LAMP)]
        async with trading(in_memory, *answers, fork={}) as s:
            id, counter = await s.say(), shop.together
            await eventually(lambda: counter.n_waiting == 1)
            await s.ann.call("stop", scope="turn", target=id)
            assert ending(await s.net.turn(id))[0] == "cancelled"
            assert counter.n_waiting == 0  # the helper's call was cancelled
            assert (await s.heard()).startswith("helper 1, goal")
            assert "ann stopped" in await s.heard()
            await s.silence()

    @pytest.mark.behaviour("Y-10")
    async def test_helpers_without_a_result_fail(self, in_memory: Networks) -> None:
        usage = ScriptedUsage(prompt_tokens=900, completion_tokens=100)
        spent = [
            answer.model_copy(update={"usage": usage})
            for answer in (fork_call("a"), says(LAMP), says(finish("never reached")))
        ]
        talk = TALK.model_copy(update={"text": "I cannot."})
        async with trading(
            in_memory, fork_call("x"), talk, talk, SORRY, fork={}, dialect="native"
        ) as s:
            (silent,) = (await s.turn()).steps[0].calls
            assert "failed: no_action" in (silent.result or "")
            assert "I cannot." in (silent.result or "")
        large = fork_call("x", context="c " * 9000)
        async with trading(in_memory, large, SORRY, fork={}, context={"window": "6k"}) as s:
            (large_call,) = (await s.turn()).steps[0].calls
            assert large_call.error == "model_error"
            assert "the context window of 6144 tokens is too small" in (large_call.result or "")

        # The tokens of helpers count towards the limit of the turn.
        limit = "not finished after 2000 tokens (at most 2000)"
        async with trading(in_memory, *spent, fork={}, max_tokens=2000) as s:
            turn = await s.turn()
            (limited,) = turn.steps[0].calls
            assert limited.error == "max_steps"
            assert limit in (limited.result or "")
            assert ending(turn) == ("max_steps", limit)
            assert len(s.model.requests) == 2

    async def test_helpers_can_have_helpers_to_a_configured_depth(
        self, in_memory: Networks
    ) -> None:
        answers = [
            fork_call("a"), fork_call("b"), says(finish("from b")), says(finish("from a")), SORRY,
        ]  # fmt: skip
        async with trading(in_memory, *answers, fork={"depth": 2}) as s:
            turn = await s.turn()
            assert [step.n for step in turn.steps] == [1, 2, 10_001, 10_002, 11_001]
            forks = [c for step in turn.steps for c in step.calls if c.name == "fork"]
            assert [c.result for c in forks] == ["from a", "from b"]
            assert "fork" not in s.model.requests[2].tools

    async def test_a_helpers_thread_wakes_no_other_agent(self, in_memory: Networks) -> None:
        class Talker(Agent):
            def __init__(self) -> None:
                self.received: list[str] = []

            async def on_direct(self, message: Message) -> None:
                self.received.append(message.text)

        talker = Talker()
        answers = [fork_call("a"), says(finish("b")), says(finish("nothing to say"))]
        async with trading(in_memory, *answers, fork={}) as s:
            await s.net.python("talker", talker)  # joins after the agent
            await s.net.clients["talker"].call("send_text_message", to="bot", text="go")
            turn = await s.net.turn("bot-m1")
            await s.net.network.quiet()
            assert (turn.steps[0].calls[0].result, turn.sent) == ("b", ())
            assert talker.received == []

    @pytest.mark.behaviour("O-13")
    async def test_a_helper_has_the_context_window_of_its_parent(self, in_memory: Networks) -> None:
        reads = [
            says(call("price_of", article=f"{n} {'rare things from far away ' * 40}"))
            for n in range(8)
        ]
        answers = [
            fork_call("find them", context="c " * 200),
            *reads,
            says(finish("nothing")),
            SORRY,
        ]
        config: Config = {
            "fork": {"max_steps": 12},
            "context": {"window": "6k"},
            "prompt": {"reminder": ["Be kind."]},
        }
        async with trading(in_memory, *answers, **config) as s:
            turn = await s.turn()
            assert turn.steps[0].calls[0].result == "nothing"
            helper = [step for step in turn.steps if step.n > 10_000]
            assert all(step.window is not None and step.window.size == 6144 for step in helper)
            assert layers(helper[-1])["steps"][1] > 0, "some of its steps were cut"
            assert all(size_of(request) <= 6144 - 1536 for request in s.model.requests)
            for request in s.model.requests[1:10]:
                assert "<goal>find them</goal>" in request.prompt
                assert request.system.endswith("Above all:\n- Be kind.")

    async def test_an_interrupted_helper_resumes_without_repeats(self, in_memory: Networks) -> None:
        answers = [
            fork_call("a"), says(call("total_of", prices=[1, 2])), says(finish("x"), hold="dying"),
            says(finish("3 euros")), says(send("direct_ann", "3")), says(finish()),
        ]  # fmt: skip
        async with trading(in_memory, *answers, fork={}) as s:
            id = await s.say()
            await s.held("dying")
            await s.restart()
            turn = await s.net.turn(id)
            assert (turn.attempts, len(s.model.requests)) == (2, 6)
            assert [step.n for step in turn.steps] == [1, 2, 3, 10_001, 10_002]
            assert [await s.heard() for _ in range(3)] == [
                "helper 1, goal:\n```\na\n```", "helper 1, result:\n```\n3 euros\n```", "3",
            ]  # fmt: skip
            await s.silence()
