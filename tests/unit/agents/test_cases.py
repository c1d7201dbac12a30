"""Whether what a model did is what a case expects."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from hubbub.agents.prompt.cases import Performance, failures
from hubbub.config.cases import Case, CaseFile, Expectation
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


def told(expectation: object, performance: Performance) -> list[str]:
    return failures([Expectation.model_validate(expectation)], performance)


def saying(*texts: str, **more: object) -> Performance:
    return Performance(said=texts, **more)  # type: ignore[arg-type]  # fields of each test's own


def calling(*calls: ToolCallRecord, **more: object) -> Performance:
    schemas = {"find": FIND}
    return Performance((Step(n=1, calls=calls),), schemas=schemas, **more)  # type: ignore[arg-type]


def a_call(name: str, arguments: JsonValue, error: str | None = None) -> ToolCallRecord:
    return ToolCallRecord(id="c", name=name, arguments=arguments, error=error, result="r")


class TestTheAnswer:
    @pytest.mark.parametrize(
        "expectation",
        [
            "valid_json",
            {"has_field": "queue"},
            {"has_field": "order.items.0.name"},
            {"has_field": "order.note"},
            {"has_field": "a.b"},
            {"no_field": "secret"},
            {"no_field": "order.items.1"},
            {"field": "queue", "in": ["billing", "tech"]},
            {"field": "urgent", "in": [True]},
            {"field": "order.note", "in": [None]},
            {"matches": "lamp"},
        ],
    )
    def test_what_is_so_holds(self, expectation: object) -> None:
        assert told(expectation, saying(json.dumps(ORDER))) == []

    @pytest.mark.parametrize(
        ("expectation", "why"),
        [
            ({"has_field": "total"}, "has_field: total: it has no 'total'"),
            ({"has_field": "order.items.x"}, "it has no 'x'"),
            ({"has_field": "queue.name"}, "it has no 'name': \"billing\""),
            ({"no_field": "order"}, "no_field: order: it is there"),
            ({"field": "queue", "in": ["tech"]}, "field: queue in ['tech']: it is \"billing\""),
            ({"field": "urgent", "in": [1]}, "it is true"),
            ({"matches": "^lamp"}, "matches: ^lamp: it said"),
        ],
    )
    def test_what_is_not_so_is_told_with_what_is(self, expectation: object, why: str) -> None:
        (failure,) = told(expectation, saying(json.dumps(ORDER)))
        assert why in failure

    @pytest.mark.parametrize("text", ["{", "Sure! {}", "NaN", "", "{}{}"])
    def test_what_is_no_json_has_no_fields_and_lacks_none(self, text: str) -> None:
        for expectation in ("valid_json", {"has_field": "a"}, {"no_field": "a"}):
            (failure,) = told(expectation, saying(text))
            assert "it is no JSON" in failure

    def test_json_in_a_code_fence_is_none_and_the_fence_is_named(self) -> None:
        (failure,) = told("valid_json", saying("```json\n{}\n```"))
        assert "code fence" in failure

    def test_of_an_agent_the_last_message_is_its_answer_and_any_may_match(self) -> None:
        performance = saying("One moment.", '{"a": 1}')
        assert told({"has_field": "a"}, performance) == []
        assert told({"matches": "moment"}, performance) == []

    def test_silence_is_told_as_such(self) -> None:
        (failure,) = told({"matches": "x"}, Performance(lacking="find"))
        assert failure.endswith("it said nothing; the case has no result of find: give it one in "
                                "`results`")  # fmt: skip

    def test_long_answers_are_quoted_in_part(self) -> None:
        (failure,) = told("valid_json", saying("x" * 10_000))
        assert len(failure) < 200


class TestWhatItDid:
    def test_a_tool_was_called_or_not(self) -> None:
        performance = calling(a_call("find", {"order": 7}))
        assert told({"tool_called": "find"}, performance) == []
        assert told({"tool_not_called": "send"}, performance) == []
        assert told({"tool_called": "send"}, performance) == ["tool_called: send: called were find"]
        assert told({"tool_not_called": "find"}, performance) == [
            "tool_not_called: find: it was called"
        ]

    def test_a_tool_that_there_is_not_was_not_called_but_tried(self) -> None:
        performance = calling(a_call("fnd", {}, "unknown_tool"))
        assert told({"tool_called": "fnd"}, performance) != []
        assert told({"tool_not_called": "fnd"}, performance) != []

    def test_nothing_called_is_told_as_such(self) -> None:
        assert told({"tool_called": "find"}, Performance()) == [
            "tool_called: find: nothing was called"
        ]

    def test_arguments_are_judged_as_the_tool_would(self) -> None:
        expectation = {"arguments_match": "find"}
        assert told(expectation, calling(a_call("find", {"order": 7}))) == []
        assert told(expectation, calling(a_call("find", {"order": "7"}))) == []  # read as JSON
        (failure,) = told(expectation, calling(a_call("find", {"oder": 7})))
        assert "did you mean order?" in failure

    def test_all_calls_must_match(self) -> None:
        calls = a_call("find", {"order": 7}), a_call("find", {})
        (failure,) = told({"arguments_match": "find"}, calling(*calls))
        assert "order is missing" in failure

    def test_arguments_that_do_not_parse_match_nothing(self) -> None:
        (failure,) = told({"arguments_match": "find"}, calling(a_call("find", "{oops")))
        assert "no JSON object: {oops" in failure

    def test_a_schema_of_the_case_is_taken_at_its_word(self) -> None:
        schema = {"properties": {"order": {"type": "integer", "minimum": 10}}}
        expectation = {"arguments_match": "find", "schema": schema}
        assert told(expectation, calling(a_call("find", {"order": 12}))) == []
        (text,) = told(expectation, calling(a_call("find", {"order": "12"})))
        assert "order: '12' is not of type 'integer'" in text
        (small,) = told(expectation, calling(a_call("find", {"order": 7})))
        assert "order: 7 is less than the minimum of 10" in small

    def test_where_the_tool_is_gone_its_own_verdict_counts(self) -> None:
        expectation = {"arguments_match": "passing"}
        assert told(expectation, calling(a_call("passing", {}))) == []
        assert told(expectation, calling(a_call("passing", {}, "invalid_arguments"))) != []

    def test_tokens_of_all_steps_count_together(self) -> None:
        performance = Performance((Step(n=1, tokens_out=30), Step(n=2, tokens_out=25)))
        assert told({"max_tokens": 55}, performance) == []
        assert told({"max_tokens": 54}, performance) == ["max_tokens: 54: it wrote 55"]

    def test_tokens_are_estimated_where_the_endpoint_counts_none(self) -> None:
        performance = Performance((Step(n=1, text="word " * 100),))
        assert told({"max_tokens": 50}, performance) != []
        assert told({"max_tokens": 500}, performance) == []

    def test_only_finish_ends_with_finish(self) -> None:
        assert told("ends_with_finish", Performance(outcome="finished")) == []
        (failure,) = told("ends_with_finish", Performance(outcome="max_steps", reason="10 steps"))
        assert failure == "ends_with_finish: max_steps (10 steps)"


@given(st.text(max_size=200), st.text(max_size=20))
def test_no_answer_breaks_a_check(text: str, path: str) -> None:
    for expectation in ("valid_json", {"has_field": path}, {"no_field": path}):
        assert len(told(expectation, saying(text))) <= 1


class TestCases:
    @pytest.mark.parametrize(
        ("expectation", "why"),
        [
            ({}, "exactly one of"),
            ({"has_field": "a", "matches": "b"}, "exactly one of"),
            ({"field": "a"}, "belong together"),
            ({"has_field": "a", "in": [1]}, "belong together"),
            ({"matches": "("}, "regular expression"),
            ({"tool_called": "a", "schema": {}}, "belongs to `arguments_match`"),
            ({"valid_json": False}, "Input should be True"),
        ],
    )
    def test_an_expectation_says_one_thing(self, expectation: object, why: str) -> None:
        with pytest.raises(ValidationError, match=why):
            Expectation.model_validate(expectation)

    @pytest.mark.parametrize(
        ("case", "why"),
        [
            ({}, "either `message`"),
            ({"message": "a", "incoming": "b"}, "either `message`"),
            ({"message": "a", "threads": {"direct_ann": ["x"]}}, "belong to `incoming`"),
            ({"message": "a", "results": {"find": "x"}}, "belong to `incoming`"),
        ],
    )
    def test_a_case_is_about_a_prompt_or_an_agent(self, case: dict[str, object], why: str) -> None:
        with pytest.raises(ValidationError, match=why):
            Case.model_validate({"name": "c", "expect": ["valid_json"], **case})

    def test_a_prompt_alone_calls_no_tools(self) -> None:
        with pytest.raises(ValidationError, match="'ends_with_finish' needs `incoming`"):
            Case.model_validate({"name": "c", "message": "a", "expect": ["ends_with_finish"]})

    def test_texts_are_short_for_messages(self) -> None:
        case = Case.model_validate(
            {
                "name": "c",
                "threads": {"direct_ann": ["hello", {"from": "bot", "text": "hi"}]},
                "incoming": "well?",
                "expect": ["ends_with_finish"],
            }
        )
        assert [said.text for said in case.incoming or ()] == ["well?"]
        assert [said.sender for said in case.threads["direct_ann"]] == [None, "bot"]

    def test_what_a_file_says_holds_where_a_case_says_nothing(self) -> None:
        file = CaseFile.model_validate(
            {
                "agent": "clerk",
                "variables": {"shop": "Acme", "tone": "kind"},
                "cases": [
                    {"name": "a", "incoming": "x", "expect": ["ends_with_finish"]},
                    {
                        "name": "b",
                        "agent": "cook",
                        "variables": {"tone": "curt"},
                        "incoming": "x",
                        "expect": ["ends_with_finish"],
                    },
                ],
            }
        )
        first, second = (case.under(file) for case in file.cases)
        assert (first.agent, first.variables) == ("clerk", {"shop": "Acme", "tone": "kind"})
        assert (second.agent, second.variables) == ("cook", {"shop": "Acme", "tone": "curt"})
