"""Models that call tools in other ways, on a real hub: the same steps, falling back, ways out."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from hubbub.cli.turns import _lines
from hubbub.protocol.operations import Turns
from hubbub.protocol.turns import Step, ToolCallRecord, Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import (
    Answer,
    Call,
    ModelServer,
    Refusal,
    Rule,
    Script,
    Usage,
    When,
)
from tests.interaction.agent_rig import call, finish, rig, says, send
from tests.interaction.peers import Networks, config
from tests.unit.agents.dialects.malformed import DIALECT_NAMES, KINDS, answer_text

each_dialect = pytest.mark.parametrize("dialect", DIALECT_NAMES)
TALK = Answer(text="Hello there!", ignore_tool_choice=True)
_numbers = itertools.count()


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


def unheard_of() -> dict[str, JsonValue]:
    """An endpoint's model that nothing has been learned about: the process remembers names."""
    return {"model": f"unheard-of-{next(_numbers)}"}


async def turn_of(
    networks: Networks, server: ModelServer, hears: int, /, **endpoint: JsonValue
) -> tuple[Turn, list[str]]:
    """The turn that a person's message starts, and so many messages that the person gets."""
    async with rig(networks) as net:
        ann = await net.person()
        await net.llm("bot", server, endpoint=endpoint)
        await ann.say("bot", "go")
        turn = await net.turn("bot-m1")
        return turn, [(await ann.event())["message"]["content"] for _ in range(hears)]


def told(steps: Sequence[Step]) -> list[Step]:
    """The steps, without what time, tokens and the endpoint's ids make of them."""
    blank = {"at_ms": None, "duration_ms": None, "tokens_in": 0, "tokens_out": 0}
    return [
        step.model_copy(
            update={**blank, "finish_reason": None, "window": None, "calls": _plain(step)}
        )
        for step in steps
    ]


def _plain(step: Step) -> tuple[ToolCallRecord, ...]:
    own = {"id": "c", "at_ms": None, "duration_ms": None}
    return tuple(
        call.model_copy(update={**own, "result": _OWN.sub("", call.result or "")})
        for call in step.calls
    )


_OWN = re.compile(r', "(show_plan|tidy_steps)"|"sent_at": "[^"]*"')
"""What tells dialects apart in results: the tools that each has other means for. And the time."""


CONVERSATIONS: dict[str, tuple[int, list[Answer]]] = {
    "a reply": (1, [says(send("direct_ann", "hello <b>"), text="I greet her"), says(finish())]),
    "several calls and finish at once": (
        2,
        [says(send("ann", "1"), send("ann", "2"), finish("x"))],
    ),
    "wrong calls": (
        1,
        [
            says(call("send_mesage", to="ann")),
            says(Call(tool="send_text_message", arguments="{oops")),
            says(Call(tool="send_text_message", arguments='["ann"]')),
            says(call("send_text_message", to="annn", text="x")),
            says(call("read_thread", thread="direct_ann", limit=3), call("fly", high=True)),
            says(send("ann", "there"), finish()),
        ],
    ),
    "a silent finish": (1, [says(finish("nothing")), says(send("ann", "sorry")), says(finish())]),
    "a question": (
        1,
        [says(call("ask_human", question="Which?", options=["a", "b"])), says(finish("asked"))],
    ),
    "a refusal": (1, [says(call("decline", reason="no")), says(finish())]),
    "no helper": (
        1,
        [says(call("fork", goal="g", timeout=5)), says(call("decline", reason="no"), finish())],
    ),
    "mere words, then a call": (1, [TALK, says(send("ann", "x"), finish())]),
    "mere words twice": (1, [TALK, TALK]),
    "a thought": (1, [says(send("ann", "x"), finish(), text="<think>hm</think>Well.")]),
    "many steps": (
        1,
        [
            *(says(call("read_thread", thread="direct_ann", limit=n)) for n in range(1, 8)),
            says(send("ann", "read"), finish()),
        ],
    ),
    "the same again and again": (2, [says(send("ann", "again"))] * 3),
}


@pytest.mark.behaviour("A-15")
@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_the_same_conversation_leads_to_the_same_steps(
    in_memory: Networks, name: str
) -> None:
    hears, script = CONVERSATIONS[name]
    turns: list[Turn] = []
    for dialect in DIALECT_NAMES:
        async with playing(*script) as model:
            turn, _ = await turn_of(in_memory, model, hears, dialect=dialect)
            assert model.mistakes == []
            assert turn.start.dialect == dialect
            assert bool(model.requests[0].body.tools) == (dialect == "native")
            turns.append(turn)
    native, *others = turns
    for other in others:
        assert told(other.steps) == told(native.steps)
        assert other.end == native.end
        assert len(other.sent) == len(native.sent)


@each_dialect
async def test_the_record_has_the_system_message_that_the_model_read(
    in_memory: Networks, dialect: str
) -> None:
    async with playing(says(send("ann", "x"), finish())) as model:
        turn, _ = await turn_of(in_memory, model, 1, dialect=dialect)
        assert turn.start.system_prompt == model.requests[0].system
        assert set(turn.start.tools) >= {"send_text_message", "ask_human", "decline", "finish"}
        assert f"dialect   {dialect}" in _lines(turn)


@each_dialect
async def test_an_endpoint_that_streams_is_the_same(in_memory: Networks, dialect: str) -> None:
    script = (says(send("ann", "streamed")), says(finish()))
    async with playing(*script) as model:
        turn, heard = await turn_of(in_memory, model, 1, dialect=dialect, stream=True)
        assert heard == ["streamed"]
        assert [c.name for s in turn.steps for c in s.calls] == ["send_text_message", "finish"]


@pytest.mark.behaviour("A-19")
@each_dialect
async def test_a_question_comes_with_its_options_and_the_answer_starts_a_turn(
    in_memory: Networks, dialect: str
) -> None:
    script = [
        says(call("ask_human", question="Which one?", options=["red", "blue"]), finish("asked")),
        says(send("ann", "red it is"), finish()),
    ]
    async with playing(*script) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.llm("bot", model, endpoint={"dialect": dialect})
        await ann.say("bot", "paint it")
        asked = (await ann.event())["message"]
        assert asked["content"] == "Which one?\n1. red\n2. blue"
        assert (asked["thread_id"], asked["cause_id"]) == ("dm.ann.bot", "bot-m1")
        await ann.say("bot", "1")
        assert (await ann.event())["message"]["content"] == "red it is"
        assert "Which one?" in model.requests[-1].prompt


@pytest.mark.behaviour("A-19")
async def test_a_plan_is_shown_to_the_one_who_asked(in_memory: Networks) -> None:
    plan = {"action": "Plan", "message_to_user": "1. look\n2. tell"}
    script = [
        Answer(text=f"<final_output>{json.dumps(plan)}</final_output>"),
        says(send("ann", "found"), finish()),
    ]
    async with playing(*script) as model:
        turn, heard = await turn_of(in_memory, model, 2, dialect="final_output")
        assert heard == ["1. look\n2. tell", "found"]
        assert turn.steps[0].calls[0].name == "show_plan"


@pytest.mark.behaviour("A-18")
async def test_a_model_may_wait_for_any_of_its_calls(in_memory: Networks) -> None:
    looks = [call("read_thread", thread="direct_ann", limit=n) for n in (1, 2, 3)]
    script = [
        Answer(calls=looks, wait="any", dialect="final_output"),
        says(send("ann", "x"), finish()),
    ]
    async with playing(*script) as model:
        turn, _ = await turn_of(in_memory, model, 1, dialect="final_output")
        first = turn.steps[0]
        assert first.wait == "any"
        assert "cancelled" in [c.error for c in first.calls]
        assert None in [c.error for c in first.calls]
        assert "waits for any of its calls" in _lines(turn)
        assert "cancelled" in model.requests[1].messages[-1].text


@pytest.mark.behaviour("A-20")
@each_dialect
async def test_steps_that_the_model_discards_are_not_shown_again(
    in_memory: Networks, dialect: str
) -> None:
    looks = [says(call("read_thread", thread="direct_ann", limit=n)) for n in range(1, 8)]
    marks: JsonValue = {"discard": [1], "compress": [{"step": 2, "text": "nothing new"}]}
    if dialect == "final_output":
        shorter = [{"step_id": 2, "compressed": "nothing new"}]
        output = {"action": "CallTool", "selected_tool": "list_channels", "discardable_steps": [1]}
        text = json.dumps({**output, "compressed_steps": shorter})
        tidy = Answer(text=f"<final_output>{text}</final_output>")
    else:
        tidy = says(Call(tool="tidy_steps", arguments=marks))
    async with playing(*looks, tidy, says(send("ann", "x"), finish())) as model:
        turn, _ = await turn_of(in_memory, model, 1, dialect=dialect)
        assert turn.steps[7].discards == (1,)
        everything = "\n".join(str(m.model_dump()) for m in model.requests[-1].messages[2:])
        assert "nothing new" in everything
        assert "'limit': 3" in everything.replace('"', "'").replace("\\'", "'")
        for gone in ("'limit': 1}", "'limit': 2}"):
            assert gone not in everything.replace('"', "'").replace("\\'", "'")
        offered = [("tidy_steps" in request.tools) for request in model.requests[:8]]
        assert offered == [False] * 6 + [dialect != "final_output"] * 2


@pytest.mark.behaviour("A-17")
class TestFallback:
    REFUSED = Refusal(status=400, message="this model does not support tools")

    @pytest.mark.parametrize(
        "refusal",
        [
            REFUSED,
            Refusal(status=400, message="tool_choice 'required' is not supported"),
            Refusal(status=500, message="tools param requires --jinja flag"),
            Refusal(status=404, message="No endpoints found that support tool use"),
            Refusal(status=422, message="body.tools: Extra inputs are not permitted"),
        ],
    )
    async def test_an_endpoint_that_refuses_tools_is_asked_in_words(
        self, in_memory: Networks, refusal: Refusal
    ) -> None:
        async with playing(refusal, says(send("ann", "hi"), finish())) as model:
            turn, heard = await turn_of(in_memory, model, 1, **unheard_of())
            assert heard == ["hi"]
            assert turn.start.dialect == "native"
            (note,) = turn.steps[0].notes
            assert "refuses tools" in note
            assert note.endswith("asked again in tool_call")
            assert any(line.startswith("note: ") for line in _lines(turn))
            assert turn.steps[0].dialect == "tool_call"
            assert "dialect   native, tool_call from step 1 on" in _lines(turn)
            assert model.requests[1].body.tools == []

    async def test_it_is_remembered_for_other_turns_and_agents(self, in_memory: Networks) -> None:
        answers = [says(send("ann", "hi"), finish())] * 3
        async with playing(self.REFUSED, *answers) as model, rig(in_memory) as net:
            ann = await net.person()
            endpoint = unheard_of()
            for turn, name in enumerate(("bot", "bot", "other")):
                if turn != 1:
                    await net.llm(name, model, endpoint=dict(endpoint))
                await ann.say(name, "go")
                await ann.event()
            assert [bool(r.body.tools) for r in model.requests] == [True, False, False, False]
            second = await net.turn("bot-m3")
            assert second.start.dialect == "tool_call"
            assert "refuses tools" in second.steps[0].notes[0]

    async def test_one_that_ignores_that_a_call_is_required_is_asked_in_words(
        self, in_memory: Networks
    ) -> None:
        talk = TALK.model_copy(update={"usage": Usage(prompt_tokens=100, completion_tokens=7)})
        right = says(
            send("ann", "hi"), finish(), usage=Usage(prompt_tokens=10, completion_tokens=3)
        )
        async with playing(talk, talk, right) as model:
            turn, heard = await turn_of(in_memory, model, 1, **unheard_of())
            assert heard == ["hi"]
            assert turn.end is not None
            assert turn.end.outcome == "finished"
            text, calls = turn.steps
            assert (text.calls, text.notes) == ((), ())
            assert "although it is told that one is required" in calls.notes[0]
            assert (calls.tokens_in, calls.tokens_out) == (110, 10)  # the wasted answer counts

    async def test_two_answers_without_calls_that_are_not_in_a_row_are_no_sign(
        self, in_memory: Networks
    ) -> None:
        looking = says(call("read_thread", thread="direct_ann"))
        async with playing(TALK, looking, TALK) as model:
            turn, _ = await turn_of(in_memory, model, 1, **unheard_of())
            assert turn.end is not None
            assert turn.end.outcome == "no_action"

    async def test_a_model_that_may_answer_in_words_is_not_taken_for_one_that_cannot_call(
        self, in_memory: Networks
    ) -> None:
        async with playing(TALK, TALK) as model:
            turn, _ = await turn_of(in_memory, model, 1, tool_choice="auto", **unheard_of())
            assert turn.end is not None
            assert turn.end.outcome == "no_action"

    async def test_a_configured_dialect_is_kept(self, in_memory: Networks) -> None:
        async with playing(self.REFUSED) as model:
            turn, _ = await turn_of(in_memory, model, 1, dialect="native", **unheard_of())
            assert turn.end is not None
            assert turn.end.outcome == "model_error"
            assert turn.end.reason.endswith("set models.default.dialect to tool_call")

    async def test_another_refusal_is_none_of_tools(self, in_memory: Networks) -> None:
        refusal = Refusal(status=400, message="the prompt is too long for this model")
        async with playing(refusal) as model:
            turn, _ = await turn_of(in_memory, model, 1, **unheard_of())
            assert turn.end is not None
            assert turn.end.outcome == "model_error"

    async def test_words_that_lead_nowhere_end_the_turn(self, in_memory: Networks) -> None:
        async with playing(TALK, TALK, TALK) as model:
            turn, _ = await turn_of(in_memory, model, 1, **unheard_of())
            assert turn.end is not None
            assert (turn.end.outcome, turn.end.text) == ("no_action", "Hello there!")


@pytest.mark.slow
@pytest.mark.behaviour("A-16")
@each_dialect
async def test_no_malformed_answer_crashes_an_agent(in_memory: Networks, dialect: str) -> None:
    kinds = list(KINDS)[::2]
    wrong = [
        Rule(
            when=When.model_validate({"incoming": f"^kind {n}$", "step": 1}),
            times=1,
            answer=Answer(text=answer_text(kind, dialect), ignore_tool_choice=True),  # type: ignore[arg-type]  # one of the three
        )
        for n, kind in enumerate(kinds)
    ]
    script = Script(rules=[*wrong, Rule(answer=says(send("ann", "well"), finish()))])
    limits: JsonValue = {"calls_per_second": 10_000, "burst": 10_000}
    fast = config(network={"limits": limits, "breaker": {"enabled": False}})
    async with ModelServer(script) as model, rig(in_memory, fast) as net:
        ann = await net.person()
        await net.llm("bot", model, endpoint={"dialect": dialect})
        for n, kind in enumerate(kinds):
            await ann.say("bot", f"kind {n}")
            assert (await ann.event())["message"]["content"] == "well", kind
        await net.turn(f"bot-m{2 * len(kinds) - 1}")
        operator = await net.network.join("operator", "service")
        found = Turns.model_validate(await operator.call("list_turns", limit=200))
        assert [turn.outcome for turn in found.turns] == ["finished"] * len(kinds)
        assert model.mistakes == []
