"""Expectations of cases, checked against runs."""

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
FIND: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"order": {"type": "integer"}},
    "required": ["order"],
    "additionalProperties": False,
}


def unmet(expectation: object, run: CaseRun) -> list[str]:
    return failures([Expectation.model_validate(expectation)], run)


def answering(*texts: str) -> CaseRun:
    return CaseRun(sent=texts)


def calling(*calls: ToolCallRecord) -> CaseRun:
    return CaseRun((Step(n=1, calls=calls),), schemas={"find": FIND})


def a_call(name: str, arguments: JsonValue, error: str | None = None) -> ToolCallRecord:
    return ToolCallRecord(id="c", name=name, arguments=arguments, error=error, result="r")


def failure_of(expectation: object, run: CaseRun) -> str:
    (failure,) = unmet(expectation, run)
    return failure


def test_an_unmet_expectation_of_an_answer_is_reported_with_the_actual_value() -> None:
    answer = answering(json.dumps(ORDER))
    met: list[object] = [
        *("valid_json", {"has_field": "queue"}, {"has_field": "order.items.0.name"}),
        *({"has_field": "order.note"}, {"has_field": "a.b"}, {"no_field": "secret"}),
        *({"no_field": "order.items.1"}, {"field": "queue", "in": ["billing", "tech"]}),
        *({"field": "urgent", "in": [True]}, {"field": "order.note", "in": [None]}),
        {"matches": "lamp"},
    ]
    for expectation in met:
        assert unmet(expectation, answer) == [], expectation
    for expectation, reason in [
        ({"has_field": "total"}, "has_field: total: it has no 'total'"),
        ({"has_field": "order.items.x"}, "it has no 'x'"),
        ({"has_field": "queue.name"}, "it has no 'name': \"billing\""),
        ({"no_field": "order"}, "no_field: order: it is there"),
        ({"field": "queue", "in": ["tech"]}, "field: queue in ['tech']: it is \"billing\""),
        ({"field": "urgent", "in": [1]}, "it is true"),
        ({"matches": "^lamp"}, "matches: ^lamp: it sent"),
    ]:
        assert reason in failure_of(expectation, answer)
    several = answering("One moment.", '{"a": 1}')
    assert unmet({"has_field": "a"}, several) == [], "the last message is the answer"
    assert unmet({"matches": "moment"}, several) == []
    assert failure_of({"matches": "x"}, CaseRun(lacking="find")).endswith(
        "it sent nothing; the case has no result for find: add one to `results`"
    )


def test_text_that_is_not_json_fails_every_field_expectation() -> None:
    for text in ("{", "Sure! {}", "NaN", "", "{}{}"):
        for expectation in ("valid_json", {"has_field": "a"}, {"no_field": "a"}):
            assert "it is not JSON" in failure_of(expectation, answering(text))
    assert "code fence" in failure_of("valid_json", answering("```json\n{}\n```"))
    assert len(failure_of("valid_json", answering("x" * 10_000))) < 200


@given(st.text(max_size=200), st.text(max_size=20))
def test_no_answer_crashes_a_check(text: str, path: str) -> None:
    for expectation in ("valid_json", {"has_field": path}, {"no_field": path}):
        assert len(unmet(expectation, answering(text))) <= 1


def test_tool_called_and_tool_not_called_check_the_calls() -> None:
    run = calling(a_call("find", {"order": 7}))
    assert unmet({"tool_called": "find"}, run) == []
    assert unmet({"tool_not_called": "send"}, run) == []
    called = {"tool_called": "send"}
    assert failure_of(called, run) == "tool_called: send: it called find"
    assert failure_of(called, CaseRun()) == "tool_called: send: it called no tool"
    not_called = {"tool_not_called": "find"}
    assert failure_of(not_called, run) == "tool_not_called: find: it was called"
    attempt = calling(a_call("fnd", {}, "unknown_tool"))
    assert unmet({"tool_called": "fnd"}, attempt) != []
    assert unmet({"tool_not_called": "fnd"}, attempt) != []


def test_arguments_match_validates_all_calls_as_the_tool_would() -> None:
    matches = {"arguments_match": "find"}
    valid = a_call("find", {"order": 7})
    assert unmet(matches, calling(valid, a_call("find", {"order": "7"}))) == []  # read as JSON
    assert "did you mean order?" in failure_of(matches, calling(a_call("find", {"oder": 7})))
    assert "order is missing" in failure_of(matches, calling(valid, a_call("find", {})))
    assert "not a JSON object: {oops" in failure_of(matches, calling(a_call("find", "{oops")))
    without_schema = {"arguments_match": "passing"}
    assert unmet(without_schema, calling(a_call("passing", {}))) == []
    assert unmet(without_schema, calling(a_call("passing", {}, "invalid_arguments"))) != []


def test_arguments_are_checked_strictly_against_a_schema_of_the_case() -> None:
    schema = {"properties": {"order": {"type": "integer", "minimum": 10}}}
    expectation = {"arguments_match": "find", "schema": schema}
    assert unmet(expectation, calling(a_call("find", {"order": 12}))) == []
    cases: list[tuple[JsonValue, str]] = [
        ("12", "order: '12' is not of type 'integer'"),
        (7, "order: 7 is less than the minimum of 10"),
    ]
    for order, reason in cases:
        assert reason in failure_of(expectation, calling(a_call("find", {"order": order})))


def test_max_tokens_and_ends_with_finish_check_the_run() -> None:
    counted = CaseRun((Step(n=1, tokens_out=30), Step(n=2, tokens_out=25)))
    assert unmet({"max_tokens": 55}, counted) == []
    assert failure_of({"max_tokens": 54}, counted) == "max_tokens: 54: it wrote 55"
    estimated = CaseRun((Step(n=1, text="word " * 100),))
    assert unmet({"max_tokens": 50}, estimated) != []
    assert unmet({"max_tokens": 500}, estimated) == []
    assert unmet("ends_with_finish", CaseRun(outcome="finished")) == []
    failure = failure_of("ends_with_finish", CaseRun(outcome="max_steps", reason="10 steps"))
    assert failure == "ends_with_finish: max_steps (10 steps)"


def test_invalid_expectations_and_cases_are_refused() -> None:
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


def test_plain_texts_become_messages_and_a_file_has_defaults_for_its_cases() -> None:
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
