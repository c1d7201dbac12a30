"""Whether what a model did is what a case expects."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from hubbub.config.cases import Case, CaseFile, Expectation
from hubbub.lab.expectations import CaseRun, failures
from hubbub.protocol.turns import Step, ToolCallRecord

pytestmark = pytest.mark.behaviour("Q-10")

ORDER: JsonValue = {
    "queue": "billing",
    "urgent": True,
    "order": {"items": [{"name": "lamp"}], "note": None},
    "a.b": 1,
}
FIND = {
    "type": "object",
    "properties": {"order": {"type": "integer"}},
    "required": ["order"],
    "additionalProperties": False,
}


def told(expectation: object, performance: CaseRun) -> list[str]:
    return failures([Expectation.model_validate(expectation)], performance)


def saying(*texts: str, **more: object) -> CaseRun:
    return CaseRun(sent=texts, **more)  # type: ignore[arg-type]  # fields of each test's own


def calling(*calls: ToolCallRecord, **more: object) -> CaseRun:
    schemas = {"find": FIND}
    return CaseRun((Step(n=1, calls=calls),), schemas=schemas, **more)  # type: ignore[arg-type]


def a_call(name: str, arguments: JsonValue, error: str | None = None) -> ToolCallRecord:
    return ToolCallRecord(id="c", name=name, arguments=arguments, error=error, result="r")


def why(expectation: object, performance: CaseRun) -> str:
    """Why the one expectation is not met."""
    (failure,) = told(expectation, performance)
    return failure


def test_what_is_so_of_an_answer_holds_and_what_is_not_is_told_with_what_is() -> None:
    answer = saying(json.dumps(ORDER))
    so: list[object] = [
        *("valid_json", {"has_field": "queue"}, {"has_field": "order.items.0.name"}),
        *({"has_field": "order.note"}, {"has_field": "a.b"}, {"no_field": "secret"}),
        *({"no_field": "order.items.1"}, {"field": "queue", "in": ["billing", "tech"]}),
        *({"field": "urgent", "in": [True]}, {"field": "order.note", "in": [None]}),
        {"matches": "lamp"},
    ]
    for expectation in so:
        assert told(expectation, answer) == [], expectation
    for wrong, reason in [
        ({"has_field": "total"}, "has_field: total: it has no 'total'"),
        ({"has_field": "order.items.x"}, "it has no 'x'"),
        ({"has_field": "queue.name"}, "it has no 'name': \"billing\""),
        ({"no_field": "order"}, "no_field: order: it is there"),
        ({"field": "queue", "in": ["tech"]}, "field: queue in ['tech']: it is \"billing\""),
        ({"field": "urgent", "in": [1]}, "it is true"),
        ({"matches": "^lamp"}, "matches: ^lamp: it sent"),
    ]:
        assert reason in why(wrong, answer)
    several = saying("One moment.", '{"a": 1}')
    assert told({"has_field": "a"}, several) == [], "the last message is the answer"
    assert told({"matches": "moment"}, several) == []
    assert why({"matches": "x"}, CaseRun(lacking="find")).endswith(
        "it sent nothing; the case has no result for find: add one to `results`"
    )


def test_what_is_no_json_has_no_fields_and_lacks_none() -> None:
    for text in ("{", "Sure! {}", "NaN", "", "{}{}"):
        for expectation in ("valid_json", {"has_field": "a"}, {"no_field": "a"}):
            assert "it is not JSON" in why(expectation, saying(text))
    assert "code fence" in why("valid_json", saying("```json\n{}\n```"))
    assert len(why("valid_json", saying("x" * 10_000))) < 200


@given(st.text(max_size=200), st.text(max_size=20))
def test_no_answer_breaks_a_check(text: str, path: str) -> None:
    for expectation in ("valid_json", {"has_field": path}, {"no_field": path}):
        assert len(told(expectation, saying(text))) <= 1


def test_a_tool_was_called_or_not() -> None:
    performance = calling(a_call("find", {"order": 7}))
    assert told({"tool_called": "find"}, performance) == []
    assert told({"tool_not_called": "send"}, performance) == []
    called = {"tool_called": "send"}
    assert why(called, performance) == "tool_called: send: it called find"
    assert why(called, CaseRun()) == "tool_called: send: it called no tool"
    never = why({"tool_not_called": "find"}, performance)
    assert never == "tool_not_called: find: it was called"
    tried = calling(a_call("fnd", {}, "unknown_tool"))
    assert told({"tool_called": "fnd"}, tried) != []
    assert told({"tool_not_called": "fnd"}, tried) != []


def test_arguments_of_all_calls_are_judged_as_the_tool_would() -> None:
    fits = {"arguments_match": "find"}
    right = a_call("find", {"order": 7})
    assert told(fits, calling(right, a_call("find", {"order": "7"}))) == []  # read as JSON
    assert "did you mean order?" in why(fits, calling(a_call("find", {"oder": 7})))
    assert "order is missing" in why(fits, calling(right, a_call("find", {})))
    assert "not a JSON object: {oops" in why(fits, calling(a_call("find", "{oops")))
    gone = {"arguments_match": "passing"}
    assert told(gone, calling(a_call("passing", {}))) == []
    assert told(gone, calling(a_call("passing", {}, "invalid_arguments"))) != []


def test_a_schema_of_the_case_is_taken_at_its_word() -> None:
    schema = {"properties": {"order": {"type": "integer", "minimum": 10}}}
    expectation = {"arguments_match": "find", "schema": schema}
    assert told(expectation, calling(a_call("find", {"order": 12}))) == []
    text = why(expectation, calling(a_call("find", {"order": "12"})))
    assert "order: '12' is not of type 'integer'" in text
    small = why(expectation, calling(a_call("find", {"order": 7})))
    assert "order: 7 is less than the minimum of 10" in small


def test_tokens_are_counted_or_estimated_and_only_finish_ends_with_finish() -> None:
    counted = CaseRun((Step(n=1, tokens_out=30), Step(n=2, tokens_out=25)))
    assert told({"max_tokens": 55}, counted) == []
    assert why({"max_tokens": 54}, counted) == "max_tokens: 54: it wrote 55"
    estimated = CaseRun((Step(n=1, text="word " * 100),))
    assert told({"max_tokens": 50}, estimated) != []
    assert told({"max_tokens": 500}, estimated) == []
    assert told("ends_with_finish", CaseRun(outcome="finished")) == []
    ended = why("ends_with_finish", CaseRun(outcome="max_steps", reason="10 steps"))
    assert ended == "ends_with_finish: max_steps (10 steps)"


def test_an_expectation_says_one_thing_of_a_prompt_or_an_agent() -> None:
    for expectation, reason in [
        ({}, "exactly one of"), ({"has_field": "a", "matches": "b"}, "exactly one of"),
        ({"field": "a"}, "belong together"), ({"has_field": "a", "in": [1]}, "belong together"),
        ({"matches": "("}, "regular expression"),
        ({"tool_called": "a", "schema": {}}, "belongs to `arguments_match`"),
        ({"valid_json": False}, "Input should be True"),
    ]:  # fmt: skip
        with pytest.raises(ValidationError, match=reason):
            Expectation.model_validate(expectation)
    cases: list[tuple[dict[str, object], str]] = [
        ({}, "either `message`"),
        ({"message": "a", "incoming": "b"}, "either `message`"),
        ({"message": "a", "threads": {"direct_ann": ["x"]}}, "belong to `incoming`"),
        ({"message": "a", "results": {"find": "x"}}, "belong to `incoming`"),
        ({"message": "a", "expect": ["ends_with_finish"]}, "needs `incoming`"),
    ]
    for case, reason in cases:
        with pytest.raises(ValidationError, match=reason):
            Case.model_validate({"name": "c", "expect": ["valid_json"], **case})


def test_texts_are_short_for_messages_and_a_file_fills_in_what_a_case_leaves_out() -> None:
    ends = {"incoming": "well?", "expect": ["ends_with_finish"]}
    threads = {"direct_ann": ["hello", {"from": "bot", "text": "hi"}]}
    case = Case.model_validate({"name": "c", "threads": threads, **ends})
    assert [said.text for said in case.incoming or ()] == ["well?"]
    assert [said.sender for said in case.threads["direct_ann"]] == [None, "bot"]
    own = {"name": "b", "agent": "cook", "variables": {"tone": "curt"}, **ends}
    variables = {"shop": "Acme", "tone": "kind"}
    file = CaseFile.model_validate(
        {"agent": "clerk", "variables": variables, "cases": [{"name": "a", **ends}, own]}
    )
    first, second = (case.under(file) for case in file.cases)
    assert (first.agent, first.variables) == ("clerk", variables)
    assert (second.agent, second.variables) == ("cook", {"shop": "Acme", "tone": "curt"})
