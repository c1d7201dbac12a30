"""Agents that are models, on a real hub, with the real OpenAI client and a scripted endpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import ConfigError
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Answer, Breakdown, Call, ModelServer, Refusal, Script
from tests.interaction.agent_rig import Rig, call, finish, rig, says, send
from tests.interaction.peers import Networks, Peer, config

DESK = config(channels={"desk": {"members": "all"}})


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


async def told(ann: Peer) -> str:
    """The text of the next message that ann gets."""
    message = (await ann.event())["message"]
    return str(message.get("text_representation") or message["content"])


async def test_a_wake_becomes_a_turn_and_the_turn_a_reply(networks: Networks) -> None:
    script = [says(send("direct_ann", "hello ann")), says(finish("greeted"))]
    async with playing(*script) as model, rig(networks) as net:
        ann = await net.person()
        await net.llm("bot", model, instruction="Greet people.")
        await ann.say("bot", "hi <bot>")
        answer = (await ann.event())["message"]
        assert (answer["content"], answer["thread_id"]) == ("hello ann", "dm.ann.bot")
        assert (answer["cause_id"], answer["hop"]) == ("bot-m1", 1)
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert (turn.end.outcome, turn.end.reason) == ("finished", "greeted")
        assert turn.sent == ("m2",)
        first = model.requests[0]
        assert first.incoming == "hi <bot>"
        assert first.body.messages[0].text.startswith("Greet people.\n\nYou are `bot`")
        assert first.body.tool_choice == "required"


@pytest.mark.behaviour("T-1")
async def test_the_record_has_everything_that_a_turn_was(in_memory: Networks) -> None:
    script = [says(send("direct_ann", "hello"), text="I greet her"), says(finish())]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "hi")
        await ann.event()
        turn = await net.turn("bot-m1")
        assert turn.start.model == "m"
        assert turn.start.prompt == model.requests[0].body.messages[1].text
        assert turn.start.system_prompt == model.requests[0].body.messages[0].text
        assert "send_text_message" in turn.start.tools
        one, two = turn.steps
        assert (one.n, one.text, two.n) == (1, "I greet her", 2)
        assert one.calls[0].arguments == {"to": "direct_ann", "text": "hello"}
        assert json.loads(one.calls[0].result or "")["thread_id"] == "direct_ann"
        assert turn.tokens_in > 0
        assert turn.tokens_out > 0
        assert all(s.duration_ms is not None for s in turn.steps)


async def test_the_next_turn_shows_what_was_said_before(in_memory: Networks) -> None:
    script = [
        *(says(send("direct_ann", "first answer")), says(finish())),
        *(says(send("direct_ann", "second answer")), says(finish())),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model)
        await ann.say("bot", "first question")
        await ann.event()
        await net.turn("bot-m1")
        await ann.say("bot", "second question")
        await ann.event()
        prompt = model.requests[2].body.messages[1].text
        history = prompt.partition("<current_interaction>")[0]
        assert history.index("first question") < history.index("first answer")
        assert "second question" not in history


async def test_two_models_work_together(in_memory: Networks) -> None:
    coordinator = [
        says(send("writer", "write a haiku")),
        says(finish("asked the writer")),
        says(send("direct_ann", "the writer says: old pond")),
        says(finish()),
    ]
    writer = [says(send("direct_boss", "old pond")), says(finish())]
    async with playing(*coordinator) as one, playing(*writer) as two, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("boss", one)
        await net.llm("writer", two)
        await ann.say("boss", "a haiku, please")
        answer = (await ann.event())["message"]
        assert answer["content"] == "the writer says: old pond"
        assert (answer["interaction_id"], answer["hop"]) == ("i1", 3)


class TestToolOrFinish:
    async def turn(
        self, networks: Networks, *answers: AnyAnswer, hears: int = 1, **settings: JsonValue
    ) -> tuple[Turn, ModelServer, list[str]]:
        """What becomes of a person's message when the model answers so, and what the person hears:
        so many messages.
        """
        async with playing(*answers) as model, rig(networks) as net:
            ann = await net.person()
            await net.llm("bot", model, **settings)
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            heard = [await told(ann) for _ in range(hears)]
            await net.network.quiet()
            assert await ann.sync() == []
            return turn, model, heard

    @pytest.mark.behaviour("A-4")
    async def test_a_text_is_corrected_and_never_published(self, in_memory: Networks) -> None:
        talk = Answer(text="Hello there!", ignore_tool_choice=True)
        only: JsonValue = {"dialect": "native"}  # another one might make sense of it
        turn, model, heard = await self.turn(in_memory, talk, talk, endpoint=only)
        assert turn.end is not None
        assert (turn.end.outcome, turn.end.text) == ("no_action", "Hello there!")
        assert "Call a tool" in model.requests[1].body.messages[-1].text
        assert "no usable answer" in heard[0]

    @pytest.mark.behaviour("W-10")
    async def test_a_silent_finish_is_asked_about_once(self, in_memory: Networks) -> None:
        turn, model, heard = await self.turn(in_memory, says(finish()), says(finish("not my job")))
        assert turn.end is not None
        assert (turn.end.outcome, turn.end.reason) == ("finished", "not my job")
        assert "REPLY_REQUIRED" in model.requests[1].body.messages[-1].text
        assert "not my job" in heard[0]

    async def test_one_who_is_reminded_may_still_reply(self, in_memory: Networks) -> None:
        turn, _, heard = await self.turn(
            in_memory, says(finish()), says(send("direct_ann", "sorry!")), says(finish())
        )
        assert turn.end is not None
        assert turn.end.outcome == "finished"
        assert heard == ["sorry!"]

    async def test_finish_beside_a_message_sends_it_first(self, in_memory: Networks) -> None:
        turn, model, heard = await self.turn(in_memory, says(finish(), send("ann", "done")))
        assert turn.end is not None
        assert turn.end.outcome == "finished"
        assert heard == ["done"]
        assert len(model.requests) == 1

    @pytest.mark.behaviour("A-9")
    async def test_messages_of_one_step_keep_their_order(self, in_memory: Networks) -> None:
        many = [send("ann", str(n)) for n in range(5)]
        _, _, heard = await self.turn(in_memory, says(*many, finish()), hears=5)
        assert heard == ["0", "1", "2", "3", "4"]

    @pytest.mark.behaviour("A-5")
    @pytest.mark.parametrize(
        ("wrong", "error", "says_what"),
        [
            (call("send_mesage", to="ann"), "unknown_tool", "send_message"),
            (Call(tool="send_text_message", arguments="{oops"), "invalid_arguments", "JSON object"),
            (call("send_text_message", to="ann"), "invalid_arguments", "text"),
            (call("send_text_message", to="annn", text="x"), "unknown_participant", "ann"),
            (call("read_thread", thread="channel_desc"), "", "channel"),
        ],
    )
    async def test_a_wrong_call_is_told_to_the_model_which_goes_on(
        self, in_memory: Networks, wrong: Call, error: str, says_what: str
    ) -> None:
        right = says(send("ann", "there"), finish())
        turn, model, heard = await self.turn(in_memory, says(wrong), right)
        result = model.requests[1].body.messages[-1].text
        assert says_what in result
        assert error in result
        assert turn.steps[0].calls[0].error
        assert heard == ["there"]

    async def test_cut_arguments_are_told_to_be_cut(self, in_memory: Networks) -> None:
        cut = says(Call(tool="send_text_message", arguments='{"to": "a'), finish_reason="length")
        _, model, _ = await self.turn(in_memory, cut, says(send("ann", "x"), finish()))
        assert "cut off" in model.requests[1].body.messages[-1].text

    @pytest.mark.behaviour("A-6")
    async def test_a_turn_has_so_many_steps_and_no_more(self, in_memory: Networks) -> None:
        looking = [says(call("read_thread", thread="direct_ann", limit=n)) for n in (1, 2, 3)]
        turn, model, _ = await self.turn(in_memory, *looking, max_steps=3)
        assert turn.end is not None
        assert turn.end.outcome == "max_steps"
        assert len(model.requests) == 3

    @pytest.mark.behaviour("A-6")
    async def test_a_model_that_repeats_itself_is_stopped(self, in_memory: Networks) -> None:
        turn, model, heard = await self.turn(in_memory, *[says(send("ann", "again"))] * 3, hears=2)
        assert turn.end is not None
        assert turn.end.outcome == "loop_detected"
        assert len(model.requests) == 3
        assert heard == ["again", "again"]

    @pytest.mark.behaviour("A-7", "W-9")
    @pytest.mark.parametrize("failure", [Refusal(status=500), Breakdown(breakdown="reset")])
    async def test_a_model_that_fails_ends_the_turn_and_the_person_is_told(
        self, in_memory: Networks, failure: AnyAnswer
    ) -> None:
        turn, _, heard = await self.turn(in_memory, failure)
        assert turn.end is not None
        assert turn.end.outcome == "model_error"
        assert "http://127.0.0.1:" in turn.end.reason
        assert "got no answer from its model" in heard[0]
        assert ("scripted refusal" in heard[0]) == isinstance(failure, Refusal)
        assert ("cannot be reached" in heard[0]) == isinstance(failure, Breakdown)

    async def test_a_model_that_hangs_runs_out_of_time(self, in_memory: Networks) -> None:
        turn, _, _ = await self.turn(in_memory, Breakdown(breakdown="hang"), turn_timeout=0.05)
        assert turn.end is not None
        assert turn.end.outcome == "timeout"

    async def test_an_endpoint_that_streams_is_the_same(self, in_memory: Networks) -> None:
        script = (says(send("ann", "streamed")), says(finish()))
        turn, model, heard = await self.turn(in_memory, *script, endpoint={"stream": True})
        assert model.requests[0].body.stream
        assert heard == ["streamed"]
        assert turn.tokens_out > 0


class TestTools:
    @pytest.mark.behaviour("A-8")
    async def test_a_function_of_ones_own_is_a_tool(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        (tmp_path / "shop.py").write_text(
            "def price(item: str) -> float:\n    '''The price of an item.'''\n    return 9.5\n"
        )
        script = [says(call("price", item="tea")), says(send("ann", "9.5")), says(finish())]
        async with playing(*script) as model, rig(in_memory) as net:
            ann = await net.person()
            await self.start(net, model, tmp_path, ["shop.py:price", "send_text_message"])
            await ann.say("bot", "what does tea cost?")
            assert await told(ann) == "9.5"
            tools = [t.function.name for t in model.requests[0].body.tools]
            assert tools == ["price", "send_text_message", "ask_human", "decline", "finish"]
            assert model.requests[1].body.messages[-1].text == "9.5"

    async def start(
        self, net: Rig, model: ModelServer, base: Path, tools: list[str], **more: JsonValue
    ) -> None:
        agent = AgentConfig.model_validate({"tools": tools, **more})
        models = {"default": ModelConfig(model="m", base_url=model.base_url, retries=0)}
        await net.configured("bot", agent, base, models)

    async def test_without_a_list_the_tools_are_all_that_an_agent_may_use(
        self, in_memory: Networks
    ) -> None:
        async with playing(says(send("ann", "x"), finish())) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "go")
            await ann.event()
            tools = {t.function.name for t in model.requests[0].body.tools}
            assert {"send_text_message", "reply", "post_to_channel", "finish"} <= tools
            assert not tools & {"begin_turn", "record_step", "end_turn", "list_turns"}

    @pytest.mark.parametrize(
        ("settings", "says_what"),
        [
            ({"tools": ["send_text_mesage"]}, "did you mean 'send_text_message'?"),
            ({"tools": ["gone.py:f"]}, "does not exist"),
            ({"model": "defualt"}, "did you mean 'default'?"),
            ({"template": "gone.j2"}, "cannot be read"),
        ],
    )
    async def test_a_config_that_names_what_is_not_there_is_refused_at_the_start(
        self, in_memory: Networks, settings: dict[str, JsonValue], says_what: str
    ) -> None:
        async with playing() as model, rig(in_memory) as net:
            await net.llm("bot", model, **settings)
            error = await net.death("bot")
            assert isinstance(error, ConfigError)
            assert says_what in str(error)
