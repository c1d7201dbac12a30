from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from hubbub.testing.model_playbook import Playbook
from hubbub.testing.model_request import ChatRequest, parse_request
from hubbub.testing.model_script import Answer, Call, Refusal, Rule, Script, ScriptMistake, When


def request(text: str = "hi", model: str = "m", **more: JsonValue) -> ChatRequest:
    messages: JsonValue = [{"role": "system", "content": "You add."}, *_user(text)]
    return parse_request({"model": model, "messages": messages, **more}, {}, 0.0)


def _user(text: str) -> list[JsonValue]:
    return [{"role": "user", "content": text}]


def after_tool(text: str, answer: str) -> ChatRequest:
    call: JsonValue = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    messages: JsonValue = [
        *_user(text),
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": answer},
    ]
    return parse_request({"model": "m", "messages": messages}, {}, 0.0)


def tool(name: str) -> JsonValue:
    return {"type": "function", "function": {"name": name}}


def says(playbook: Playbook, asked: ChatRequest) -> str | None:
    answer = playbook.choose(asked).answer
    assert isinstance(answer, Answer)
    return answer.text


def when(**conditions: object) -> When:
    return When.model_validate(conditions)


def test_the_first_rule_that_matches_answers() -> None:
    playbook = Playbook(
        Script(
            rules=[
                Rule(when=when(prompt="^bye"), answer=Answer(text="1")),
                Rule(when=when(prompt="hi"), answer=Answer(text="2")),
                Rule(answer=Answer(text="3")),
            ]
        )
    )
    assert says(playbook, request("hi")) == "2"
    assert says(playbook, request("so, hi")) == "2"
    assert says(playbook, request("bye hi")) == "1"
    assert says(playbook, request("well")) == "3"


@pytest.mark.parametrize(
    ("conditions", "holds"),
    [
        ({"model": "^m$"}, True),
        ({"model": "gpt"}, False),
        ({"system": "add"}, True),
        ({"system": "subtract"}, False),
        ({"incoming": "h(i|o)"}, True),
        ({"sender": "alice"}, False),
        ({"thread": "x"}, False),
        ({"step": 1}, True),
        ({"step": 2}, False),
        ({"tool_result": ""}, False),
        ({"tools": ["f"]}, True),
        ({"tools": ["f", "g"]}, True),
        ({"tools": ["f", "h"]}, False),
    ],
)
def test_every_condition_counts(conditions: dict[str, object], holds: bool) -> None:
    script = Script(
        rules=[
            Rule(when=when(**conditions), answer=Answer(text="holds")),
            Rule(answer=Answer(text="does not")),
        ]
    )
    said = says(Playbook(script), request(tools=[tool("f"), tool("g")]))
    assert said == ("holds" if holds else "does not")


def test_the_nth_matching_request_is_counted_apart_from_others() -> None:
    playbook = Playbook(
        Script(
            rules=[
                Rule(when=when(prompt="hi", nth=2), answer=Answer(text="second hi")),
                Rule(answer=Answer(text="other")),
            ]
        )
    )
    asked = [request("hi"), request("no"), request("hi"), request("hi")]
    assert [says(playbook, a) for a in asked] == ["other", "other", "second hi", "other"]


def test_the_nth_is_counted_whichever_rule_answers_the_others() -> None:
    rules = [
        Rule(when=when(prompt="hi", nth=n), answer=Answer(text=f"number {n}")) for n in (1, 2, 3)
    ]
    playbook = Playbook(Script(rules=rules))
    assert [says(playbook, request()) for _ in range(3)] == ["number 1", "number 2", "number 3"]


def test_a_list_is_used_in_order_and_then_the_rule_is_spent() -> None:
    playbook = Playbook(
        Script(
            rules=[
                Rule(name="row", answer=[Refusal(status=500), Answer(text="a")]),
                Rule(answer=Answer(text="rest")),
            ]
        )
    )
    first = playbook.choose(request())
    assert first.rule == "row"
    assert first.answer == Refusal(status=500)
    assert [says(playbook, request()) for _ in range(3)] == ["a", "rest", "rest"]


def test_times_spends_a_rule() -> None:
    playbook = Playbook(
        Script(rules=[Rule(answer=Answer(text="once"), times=1)], answers=[Answer(text="then")])
    )
    assert [says(playbook, request()) for _ in range(2)] == ["once", "then"]


def test_a_recorded_list_is_played_in_order_until_it_is_used_up() -> None:
    playbook = Playbook(Script(answers=[Answer(text="a"), Answer(text="b")]))
    assert [says(playbook, request()) for _ in range(2)] == ["a", "b"]
    with pytest.raises(ScriptMistake, match="no answers are left"):
        playbook.choose(request("what now"))


def test_groups_and_words_fill_text_and_arguments() -> None:
    rule = Rule(
        when=when(incoming=r"(?P<a>\d+) plus (?P<b>\d+)"),
        answer=Answer(
            text="{{ a }}+{{ b }}", calls=[Call(tool="f", arguments={"x": ["{{ incoming }}"]})]
        ),
    )
    answer = Playbook(Script(rules=[rule])).choose(request('2 plus 3 "now"')).answer
    assert isinstance(answer, Answer)
    assert answer.text == "2+3"
    assert json.loads(str(answer.calls[0].arguments)) == {"x": ['2 plus 3 "now"']}


def test_raw_arguments_go_out_as_written() -> None:
    script = Script(answers=[Answer(calls=[Call(tool="f", arguments='{"x": {{ incoming }}')])])
    answer = Playbook(script).choose(request("hi")).answer
    assert isinstance(answer, Answer)
    assert answer.calls[0].arguments == '{"x": hi'


def test_a_tool_result_can_be_matched_and_repeated() -> None:
    rule = Rule(when=when(tool_result=r"sum=(?P<n>\d+)", step=2), answer=Answer(text="so {{ n }}"))
    playbook = Playbook(Script(rules=[rule]))
    assert says(playbook, after_tool("add", "sum=4")) == "so 4"
    with pytest.raises(ScriptMistake, match="no rule matches step 2"):
        playbook.choose(after_tool("add", "failed"))


def test_text_where_a_call_is_required_must_be_meant() -> None:
    asked = request(tools=[tool("f")], tool_choice="required")
    with pytest.raises(ScriptMistake, match="ignore_tool_choice"):
        Playbook(Script(answers=[Answer(text="no")])).choose(asked)
    meant = Playbook(Script(answers=[Answer(text="no", ignore_tool_choice=True)]))
    assert says(meant, asked) == "no"
    calls = Playbook(Script(answers=[Answer(calls=[Call(tool="f")])]))
    assert calls.choose(asked).rule == "answers[0]"
