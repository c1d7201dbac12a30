"""Steps recorded from answers: ids of calls, and arguments that are read or refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.dialects.base import with_step_marks
from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.turn.steps import CallResult, step_of, with_result
from hubbub.protocol.turns import ToolCallRecord

IDS = st.sampled_from(["", "a", "call_1_0", "call_1_1", "call_1_1_", "call_1_2", "call_1_2_"])


def recorded(arguments: str) -> ToolCallRecord:
    return step_of(Completion(calls=(CallRequest("a", "add", arguments),)), 1, ["add"]).calls[0]


@given(st.lists(IDS, max_size=6))
def test_every_call_of_a_step_has_a_unique_id(ids: list[str]) -> None:
    calls = tuple(CallRequest(id, "add", "{}") for id in ids)
    step = step_of(Completion(calls=calls), 1, ["add"])
    made = [call.id for call in step.calls]
    assert len(set(made)) == len(made)
    assert all(made)
    for n, id in enumerate(ids):
        if id and id not in ids[:n] and id not in made[:n]:
            assert made[n] == id


def test_two_calls_with_the_same_id_get_their_own_results() -> None:
    twice = (CallRequest("call_1_1", "add", '{"a": 1}'), CallRequest("call_1_1", "add", '{"a": 2}'))
    first, second = step_of(Completion(calls=twice), 1, ["add"]).calls
    results = {c.id: CallResult(c.id, f"{c.arguments}") for c in (first, second)}
    assert with_result(first, results.get(first.id)).result == "{'a': 1}"
    assert with_result(second, results.get(second.id)).result == "{'a': 2}"


def test_arguments_with_duplicate_keys_or_other_than_an_object_are_refused() -> None:
    for arguments in [
        '{"to": "ann", "text": "one", "text": "two"}',
        '{"a": {"text": 1, "text": 2}}',
    ]:
        call = recorded(arguments)
        assert (call.arguments, call.error) == (arguments, "invalid_arguments")
        assert call.result is not None
        error = json.loads(call.result)
        assert "the key 'text' is given twice" in error["message"]
        assert error["retry"] is True
    for arguments, reason in [
        ("[1]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ("null", "not a JSON object"),
        ("{oops", "not a JSON object"),
        ('{"a": 1', "not a JSON object"),
        ('{"a": NaN}', "not a JSON object"),
        ('{"a": ' + "[" * 30 + "]" * 30 + "}", "nested too deep"),
        ("[" * 10**5, "nested too deep"),
    ]:
        call = recorded(arguments)
        assert (call.arguments, call.error) == (arguments, "invalid_arguments")
        error = json.loads(call.result or "")
        assert reason in error["message"]
        assert error["retry"] is True
    refused = CallRequest("a", "tidy_steps", '{"discard": [1], "discard": [2]}')
    fine = CallRequest("b", "tidy_steps", '{"discard": [3]}')
    assert with_step_marks(Completion(calls=(refused, fine))).discards == (3,)


NAMES = ["ask_human", "decline", "finish", "price_of", "send_text_message", "tidy_steps"]


def valid_names(called: str, tools: list[str]) -> object:
    """The names suggested for a call of an unknown tool."""
    call = step_of(Completion(calls=(CallRequest("a", called, "{}"),)), 1, tools).calls[0]
    error = json.loads(call.result or "")
    assert (call.error, error["error"], error["retry"]) == ("unknown_tool", "unknown_tool", False)
    return error["valid_names"]


@pytest.mark.behaviour("A-5")
def test_an_unknown_tool_is_answered_with_similar_names_or_the_agents_own() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("price", ["price_of"]), ("send_message", ["send_text_message"]),
        ("askhuman", ["ask_human"]), ("add_up", ["price_of", "send_text_message"]),
    ]  # fmt: skip
    for name, near in cases:
        assert valid_names(name, NAMES) == near
    many = [f"tool_{n:02}" for n in range(40)]
    assert valid_names("zzz", many) == many[:10]
    assert valid_names("zzz", ["finish"]) == ["finish"]
