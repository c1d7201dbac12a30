"""Odd responses of endpoints: readable ones are read, the rest is a `ModelError`."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.agents.models.base import Completion
from hubbub.agents.models.responses import Assembly, UnreadableResponse, read_answer
from hubbub.agents.turn.steps import step_of
from hubbub.errors import ModelError, ToolsRefused
from tests.examples import examples
from tests.unit.agents.raw_endpoint import asked, chunk, completion, piece

CALL: JsonValue = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


def calling(*calls: JsonValue, content: JsonValue = None) -> dict[str, JsonValue]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def function(**function: JsonValue) -> JsonValue:
    return {"id": "c1", "type": "function", "function": function}


def seen(answer: Completion) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in answer.calls]


async def error(
    body: JsonValue | bytes, status: int = 200, base_url: str = "http://{url}", **config: object
) -> str:
    with pytest.raises(ModelError) as caught:
        await asked(body, status, base_url=base_url, **config)
    return str(caught.value)


async def test_odd_contents_calls_and_finish_reasons_are_read() -> None:
    contents: list[tuple[JsonValue, str | None]] = [
        ("hi", "hi"), ([{"type": "text", "text": "hi"}, {"type": "text", "text": "!"}], "hi!"),
        (["hi", None, {"type": "image"}], "hi"), ({"type": "text", "text": "hi"}, "hi"), ([], None),
        (None, None),
    ]  # fmt: skip
    for content, text in contents:
        answer = read_answer(completion(calling(CALL, content=content)))
        assert (answer.text, seen(answer)) == (text, [("c1", "add", "{}")])
    calls: list[tuple[JsonValue, tuple[str, str, str]]] = [
        (function(name="add", arguments={"a": 1}), ("c1", "add", '{"a": 1}')),
        (function(name="add", arguments=None), ("c1", "add", "")),
        (function(name="add", arguments=[1]), ("c1", "add", "[1]")),
        (function(name=5, arguments="{}"), ("c1", "5", "{}")),
        ({"id": 7, "function": {"name": "add", "arguments": "{}"}}, ("7", "add", "{}")),
        ({"function": {"name": "add"}}, ("", "add", "")),
        ({"id": [], "type": None, "function": {"name": None}}, ("", "", "")),
    ]
    for call, expected in calls:
        answer = read_answer(completion(calling(call)))
        assert seen(answer) == [expected]
        assert step_of(answer, 1, ["add"]).calls
    reasons: list[tuple[JsonValue, str | None]] = [(3, "3"), (None, None), ({}, None)]
    for reason, read in (*reasons, (True, None)):
        assert read_answer(completion(calling(CALL), None, reason)).finish_reason == read
    long = read_answer(completion(calling(CALL), None, "y" * 10**5 + "\ud800"))
    assert len(long.finish_reason or "") < 200


def test_a_refusal_is_the_text_of_an_answer_without_content() -> None:
    refused: dict[str, JsonValue] = {"content": None, "refusal": "I can't help."}
    assert read_answer(completion(refused)).text == "I can't help."
    assert read_answer(completion({**refused, "content": "hi"})).text == "hi"
    assembly = Assembly()
    assembly.add(chunk({"content": None, "refusal": "I can't "}))
    assembly.add(chunk({"refusal": "help."}))
    assert assembly.answer().text == "I can't help."


def test_reasoning_is_read_from_either_of_its_usual_fields() -> None:
    cases: list[tuple[dict[str, JsonValue], str | None]] = [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"reasoning_content": "", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": {"a": 1}, "reasoning": None}, None),
        ({}, None),
    ]
    for fields, reasoning in cases:
        assert read_answer(completion({"content": "hi", **fields})).reasoning == reasoning
        assembly = Assembly()
        for _ in range(2):
            assembly.add(chunk({"content": "hi", **fields}))
        assert assembly.answer().reasoning == (reasoning and reasoning * 2)


async def test_odd_token_counts_are_read_and_missing_ones_estimated() -> None:
    unusable: list[JsonValue] = [
        None, "12", [1], {}, {"prompt_tokens": "many"},
        {"prompt_tokens": -5, "completion_tokens": -1},
        {"prompt_tokens": 10**30, "completion_tokens": True},
    ]  # fmt: skip
    for usage in unusable:
        answer, _ = await asked(completion(calling(CALL), usage), price={"input": 1, "output": 1})
        assert 5 < answer.tokens_in < 200
        assert 2 < answer.tokens_out < 50
        assert answer.cost_usd == (answer.tokens_in + answer.tokens_out) / 1e6, "limits need it"
        (note,) = answer.notes
        estimated = r"the endpoint does not count tokens; estimated \d+ in, \d+ out"
        assert re.fullmatch(estimated, note)
        step_of(answer, 1, ["add"])
    odd: list[JsonValue] = [
        {"prompt_tokens": 12.5, "completion_tokens": 3.0},
        {"prompt_tokens": "12", "completion_tokens": "3"},
    ]
    for usage in odd:
        answer, _ = await asked(completion(calling(CALL), usage))
        assert (answer.tokens_in, answer.tokens_out, answer.notes) == (12, 3, ())
    assembly = Assembly()
    assembly.add({"usage": {"prompt_tokens": 9, "completion_tokens": 1}})
    assembly.add({"usage": {"completion_tokens": 4}})
    assert (assembly.answer().tokens_in, assembly.answer().tokens_out) == (9, 4)
    details: list[JsonValue] = [
        {"cached_tokens": 8},
        {"cached_tokens": 20},
        {"cached_tokens": None},
        8,
    ]
    for cached, cost in zip(details, [5, 1, 13, 13], strict=True):
        counts = {"prompt_tokens": 12, "completion_tokens": 1, "prompt_tokens_details": cached}
        price = {"input": 1e6, "output": 1e6, "cached_input": 0}
        answer, _ = await asked(completion(calling(CALL), counts), price=price)
        assert answer.cost_usd == cost
    half, _ = await asked(completion(calling(CALL), {"prompt_tokens": 12}))
    assert half.tokens_in == 12
    assert half.tokens_out > 0
    assert "estimated" in half.notes[0]


async def test_an_endpoint_that_does_not_stream_is_read_all_the_same() -> None:
    answer, _ = await asked(completion(calling(CALL)), stream=True)
    assert seen(answer) == seen(read_answer(completion(calling(CALL))))


def test_a_stream_of_many_pieces_or_calls_is_assembled_in_linear_time() -> None:
    text = json.dumps({"text": "w" * 800_000})  # quadratic time would be minutes
    pieces = [piece(None, None, "add", text[n : n + 16]) for n in range(0, len(text), 16)]
    calls = [piece(n, f"id_{n}", "add", "{}") for n in range(40_000)]
    for sent, expected in ((pieces, [text]), (calls, ["{}"] * len(calls))):
        assembly = Assembly()
        for one in sent:
            assembly.add(chunk({"tool_calls": [one]}))
        assert [call.arguments for call in assembly.answer().calls] == expected


async def test_an_unreadable_response_is_reported_in_one_sentence() -> None:
    cases: list[tuple[JsonValue, str]] = [
        (completion(None), "without a message"),
        ({"choices": [{"index": 0, "finish_reason": "stop"}]}, "without a message"),
        *((1, "a chat completion"), (None, "a chat completion")), ([1, 2], "a chat completion"),
        ({"choices": [None]}, "a chat completion"), ({"choices": "abc"}, "a chat completion"),
        ({"choices": {"0": 1}}, "a chat completion"), ({"choices": []}, "without choices"),
        (completion(calling({"id": "a", "type": "function"})), "call without a function"),
        (completion(calling({"id": "a", "function": None})), "call without a function"),
        (completion(calling("finish")), "call without a function"),
        (completion({"tool_calls": {"a": 1}}), "tool_calls are not a list"),
        (completion({"tool_calls": "finish"}), "tool_calls are not a list"),
        (completion({"content": 5}), "content is not text"),
        ({"error": {"message": "overloaded"}}, "an error instead of an answer: overloaded"),
        ({"error": "overloaded"}, "an error instead of an answer: overloaded"),
    ]  # fmt: skip
    for body, reason in cases:
        with pytest.raises(UnreadableResponse, match=reason):
            read_answer(body)
    for data, reason in (
        (b"[1, 2]", "a chat completion"),
        (b"[" * 200_000, "other than JSON"),
    ):
        text = await error(data)
        assert text.startswith("the model endpoint http://127.0.0.1:")
        assert reason in text
        assert "\n" not in text


async def test_empty_and_odd_chunks_are_ignored() -> None:
    last = chunk({"tool_calls": [piece(0, "a", "add", "{}")]}, "tool_calls")
    choices: list[JsonValue] = [[{"index": 0, "finish_reason": None}], None, [], [None]]
    odds: list[JsonValue] = [
        *({"choices": each} for each in choices),
        *(chunk(None), chunk({"content": []}), chunk({"tool_calls": None})), *(None, "hello"), [],
        {"usage": {"prompt_tokens": "a"}},
    ]  # fmt: skip
    answer, _ = await asked([*odds, last, *odds])
    assert seen(answer) == [("a", "add", "{}")]


async def test_streamed_calls_with_different_ids_stay_separate() -> None:
    for index in (0, None, "0"):
        answer, deltas = await asked(
            [
                chunk({"tool_calls": [piece(index, "a", "add", '{"a":')]}),
                chunk({"tool_calls": [piece(index, None, None, "1}")]}),
                chunk({"tool_calls": [piece(index, "b", "add", '{"a":2}')]}, "tool_calls"),
            ]
        )
        assert seen(answer) == [("a", "add", '{"a":1}'), ("b", "add", '{"a":2}')]
        assert [(d.call, d.text) for d in deltas] == [(0, '{"a":'), (0, "1}"), (1, '{"a":2}')]


def test_streamed_calls_are_separated_by_whatever_identifies_them() -> None:
    two = [("", "add", '{"a":1}'), ("", "add", '{"a":2}')]
    cases: list[tuple[str, list[list[JsonValue]], list[tuple[str, str, str]]]] = [
        ("no ids", [[piece(0, "", "add", '{"a":1}'), piece(0, "", "add", '{"a":2}')]], two),
        (
            "some indexes",
            [
                [piece(0, "a", "add", "{}"), piece(None, "b", "add", '{"b":')],
                [piece(None, "b", None, "1}")],
            ],
            [("a", "add", "{}"), ("b", "add", '{"b":1}')],
        ),
        (
            "alternating",
            [
                *([piece(0, "a", "add", "{")], [piece(1, "b", "add", "{")]),
                *([piece(0, None, None, "}")], [piece(1, None, None, "}")]),
            ],
            [("a", "add", "{}"), ("b", "add", "{}")],
        ),
        (
            "id and name with every piece",
            [[piece(0, *p)] for p in (("a", "add", "{"), ("a", "add", "}"), ("", "add", ""))],
            [("a", "add", "{}")],
        ),
        (
            "a name with every piece",
            [[piece(0, "", "add", '{"a"')], [piece(0, "", "add", ":1}")]],
            [("", "add", '{"a":1}')],
        ),
        (
            "a new id for every piece",
            [[piece(0, "a", "add", "{")], [piece(0, "b", None, "}")]],
            [("a", "add", "{}")],
        ),
    ]
    for case, chunks, calls in cases:
        assembly = Assembly()
        for made in chunks:
            assembly.add(chunk({"tool_calls": made}))
        assembly.add(chunk({}, "tool_calls"))
        assert seen(assembly.answer()) == calls, case


async def test_streamed_arguments_can_be_an_object_and_usage_missing() -> None:
    parts: JsonValue = [{"type": "text", "text": "hi"}]
    call = piece(0, "a", "add", {"a": 1})
    answer, deltas = await asked([chunk({"content": parts, "tool_calls": [call]}, 3)])
    assert (answer.text, seen(answer)) == ("hi", [("a", "add", '{"a": 1}')])
    assert answer.finish_reason == "3"
    assert [d.text for d in deltas] == ["hi", '{"a": 1}']
    assert min(answer.tokens_in, answer.tokens_out) > 0
    assert "estimated" in answer.notes[0]


async def test_an_unreadable_chunk_is_reported() -> None:
    cases: list[tuple[JsonValue, str]] = [
        (chunk({"tool_calls": {"a": 1}}, "stop"), "tool_calls are not a list"),
        (chunk({"tool_calls": ["x"]}, "stop"), "call without a function"),
        ({"choices": "x"}, "a chat completion"),
        (chunk({"content": 5}, "stop"), "content is not text"),
    ]
    for event, reason in cases:
        assembly = Assembly()
        with pytest.raises(UnreadableResponse, match=reason):
            assembly.add(event)
    begun = chunk({"content": "a"})
    assert "overloaded" in await error([begun, {"error": {"message": "overloaded"}}])
    assert "interrupted" in await error([begun])


KEYS = [
    *("choices", "message", "delta", "content", "text", "tool_calls", "function", "name"),
    *("arguments", "id", "index", "usage", "prompt_tokens", "finish_reason", "error"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=20,
)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(JSON, JSON)
def test_any_response_is_an_answer_or_unreadable(message: JsonValue, usage: JsonValue) -> None:
    bodies = [message, completion(message, usage), completion(calling(message), usage, message)]
    for body in bodies:
        with suppress(UnreadableResponse):
            answer = read_answer(body)
            json.dumps(step_of(answer, 1, ["add"]).model_dump(mode="json"), allow_nan=False)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(JSON, max_size=4), JSON)
def test_any_stream_is_an_answer_or_unreadable(deltas: list[JsonValue], usage: JsonValue) -> None:
    assembly = Assembly()
    with suppress(UnreadableResponse):
        for delta in deltas:
            for event in (delta, chunk(delta), chunk({"tool_calls": [delta]}, delta)):
                assembly.add(event)
        assembly.add({"usage": usage})
        answer = assembly.answer()
        json.dumps(step_of(answer, 1, ["add"]).model_dump(mode="json"), allow_nan=False)


async def test_an_endpoints_error_is_reported_without_the_secrets_in_it() -> None:
    key = "SECRETKEY6"

    def body(text: str) -> JsonValue:
        return {"error": {"message": text}}

    for status in (400, 500):
        text = await error(body(f"Authorization: Bearer {key} is malformed"), status, api_key=key)
        assert key not in text
    text = await error(body(f"{'x' * 250} Bearer {key} is malformed"), 400, api_key=key)
    assert "Bearer ***" in text
    assert "SECR" not in text
    text = await error(body("unexpected x in extra"), 400, api_key="x")
    assert "unexpected *** in extra" in text, "a short key is replaced only as a whole word"
    with pytest.raises(ToolsRefused) as caught:
        await asked(body(f"{key}: this model does not support tools"), 400, api_key=key)
    assert key not in str(caught.value)
    encoded = body("no bob:s3cr%20et, no s3cr et, no Ym9iOnMzY3IgZXQ=")
    text = await error(encoded, 400, base_url="http://bob:s3cr%20et@{url}?token=t0psecret")
    assert text.startswith("the model endpoint http://***@127.0.0.1:")
    for secret in ("s3cr", "Ym9iOnMzY3IgZXQ=", "t0psecret"):
        assert secret not in text


async def test_an_error_with_half_a_character_can_be_recorded() -> None:
    body: JsonValue = {"error": {"message": "a\ud800b"}}
    assert "a⟦U+D800⟧b" in await error(body, 400)
    assert "a⟦U+D800⟧b" in await error([body])
