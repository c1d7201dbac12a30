"""Endpoints that answer in odd ways: what can be read is read, the rest is a `ModelError`."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.agents.models.base import Answer
from hubbub.agents.models.reading import Unreadable, read_answer
from hubbub.agents.models.streams import Assembly
from hubbub.agents.turn.recording import step_of
from hubbub.errors import ModelError, ToolsRefused
from tests.unit.agents.raw_endpoint import asked, chunk, completion, piece

CALL: JsonValue = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}


def calling(*calls: JsonValue, content: JsonValue = None) -> dict[str, JsonValue]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def function(**function: JsonValue) -> JsonValue:
    return {"id": "c1", "type": "function", "function": function}


def seen(answer: Answer) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in answer.calls]


async def error(
    body: JsonValue | bytes, status: int = 200, base_url: str = "http://{url}", **config: object
) -> str:
    with pytest.raises(ModelError) as caught:
        await asked(body, status, base_url=base_url, **config)
    return str(caught.value)


class TestWhole:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ("hi", "hi"),
            ([{"type": "text", "text": "hi"}, {"type": "text", "text": "!"}], "hi!"),
            (["hi", None, {"type": "image"}], "hi"),
            ({"type": "text", "text": "hi"}, "hi"),
            ([], None),
            (None, None),
        ],
    )
    async def test_content_may_be_a_text_or_parts(
        self, content: JsonValue, text: str | None
    ) -> None:
        answer, _ = await asked(completion(calling(CALL, content=content)))
        assert (answer.text, seen(answer)) == (text, [("c1", "add", "{}")])

    @pytest.mark.parametrize(
        ("call", "expected"),
        [
            (function(name="add", arguments={"a": 1}), ("c1", "add", '{"a": 1}')),
            (function(name="add", arguments=None), ("c1", "add", "")),
            (function(name="add", arguments=[1]), ("c1", "add", "[1]")),
            (function(name=5, arguments="{}"), ("c1", "5", "{}")),
            ({"id": 7, "function": {"name": "add", "arguments": "{}"}}, ("7", "add", "{}")),
            ({"function": {"name": "add"}}, ("", "add", "")),
            ({"id": [], "type": None, "function": {"name": None}}, ("", "", "")),
        ],
    )
    async def test_a_call_may_leave_out_its_type_and_have_an_object_for_arguments(
        self, call: JsonValue, expected: tuple[str, str, str]
    ) -> None:
        answer, _ = await asked(completion(calling(call)))
        assert seen(answer) == [expected]
        assert step_of(answer, 1, ["add"]).calls

    @pytest.mark.parametrize(
        "usage",
        [
            None,
            [1],
            "12",
            {},
            {"prompt_tokens": "many"},
            {"prompt_tokens": -5, "completion_tokens": -1},
            {"prompt_tokens": 10**30, "completion_tokens": True},
        ],
    )
    async def test_usage_that_tells_nothing_is_estimated_and_noted(self, usage: JsonValue) -> None:
        answer, _ = await asked(completion(calling(CALL), usage), price={"input": 1, "output": 1})
        assert 5 < answer.tokens_in < 200
        assert 2 < answer.tokens_out < 50
        assert answer.cost_usd is None
        (note,) = answer.notes
        assert re.fullmatch(r"the endpoint counts no tokens: \d+ in, \d+ out are estimates", note)
        step_of(answer, 1, ["add"])

    @pytest.mark.parametrize(
        ("usage", "counted"),
        [
            ({"prompt_tokens": 12.5, "completion_tokens": 3.0}, (12, 3)),
            ({"prompt_tokens": "12", "completion_tokens": "3"}, (12, 3)),
        ],
    )
    async def test_usage_in_odd_numbers_is_read(
        self, usage: JsonValue, counted: tuple[int, int]
    ) -> None:
        answer, _ = await asked(completion(calling(CALL), usage))
        assert (answer.tokens_in, answer.tokens_out, answer.notes) == (*counted, ())

    async def test_of_half_a_count_the_other_half_is_estimated(self) -> None:
        answer, _ = await asked(completion(calling(CALL), {"prompt_tokens": 12}))
        assert answer.tokens_in == 12
        assert answer.tokens_out > 0
        assert "are estimates" in answer.notes[0]

    @pytest.mark.parametrize(("reason", "told"), [(3, "3"), (None, None), ({}, None), (True, None)])
    async def test_a_finish_reason_may_be_anything(
        self, reason: JsonValue, told: str | None
    ) -> None:
        answer, _ = await asked(completion(calling(CALL), finish_reason=reason))
        assert answer.finish_reason == told

    async def test_a_long_finish_reason_is_cut(self) -> None:
        answer, _ = await asked(completion(calling(CALL), finish_reason="y" * 100_000 + "\ud800"))
        assert len(answer.finish_reason or "") < 200

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (completion(None), "without a message"),
            ({"choices": [{"index": 0, "finish_reason": "stop"}]}, "without a message"),
            ({"choices": [None]}, "no chat completion"),
            ({"choices": "abc"}, "no chat completion"),
            ({"choices": {"0": 1}}, "no chat completion"),
            ({"choices": []}, "no chat completion"),
            (1, "no chat completion"),
            (b"[1, 2]", "no chat completion"),
            (b"null", "no chat completion"),
            (b"[" * 200_000, "no JSON"),
            (completion(calling({"id": "a", "type": "function"})), "call without a function"),
            (completion(calling({"id": "a", "function": None})), "call without a function"),
            (completion(calling("finish")), "call without a function"),
            (completion({"tool_calls": {"a": 1}}), "tool_calls that are no list"),
            (completion({"tool_calls": "finish"}), "tool_calls that are no list"),
            (completion({"content": 5}), "content that is no text"),
            ({"error": {"message": "overloaded"}}, "an error instead of an answer: overloaded"),
            ({"error": "overloaded"}, "an error instead of an answer: overloaded"),
        ],
    )
    async def test_what_cannot_be_read_is_told_in_one_sentence(
        self, body: JsonValue | bytes, says: str
    ) -> None:
        told = await error(body)
        assert told.startswith("the model endpoint http://127.0.0.1:")
        assert says in told
        assert "\n" not in told


class TestStreams:
    @pytest.mark.parametrize(
        "odd",
        [
            {"choices": [{"index": 0, "finish_reason": None}]},
            {"choices": None},
            {"choices": []},
            {"choices": [None]},
            chunk(None),
            chunk({"content": []}),
            chunk({"tool_calls": None}),
            None,
            "hello",
            [],
            {"usage": {"prompt_tokens": "a"}},
        ],
    )
    async def test_a_chunk_that_says_nothing_does_no_harm(self, odd: JsonValue) -> None:
        last = chunk({"tool_calls": [piece(0, "a", "add", "{}")]}, "tool_calls")
        answer, _ = await asked([odd, last, odd])
        assert seen(answer) == [("a", "add", "{}")]

    @pytest.mark.parametrize("index", [0, None, "0"])
    async def test_calls_with_different_ids_stay_apart(self, index: JsonValue) -> None:
        answer, heard = await asked(
            [
                chunk({"tool_calls": [piece(index, "a", "add", '{"a":')]}),
                chunk({"tool_calls": [piece(index, None, None, "1}")]}),
                chunk({"tool_calls": [piece(index, "b", "add", '{"a":2}')]}, "tool_calls"),
            ]
        )
        assert seen(answer) == [("a", "add", '{"a":1}'), ("b", "add", '{"a":2}')]
        assert [(d.call, d.text) for d in heard] == [(0, '{"a":'), (0, "1}"), (1, '{"a":2}')]

    async def test_calls_without_ids_stay_apart_when_the_first_is_whole(self) -> None:
        first, second = (piece(0, "", "add", f'{{"a":{n}}}') for n in (1, 2))
        answer, _ = await asked([chunk({"tool_calls": [first, second]}, "tool_calls")])
        assert seen(answer) == [("", "add", '{"a":1}'), ("", "add", '{"a":2}')]

    async def test_indexes_of_some_calls_are_enough(self) -> None:
        both = [piece(0, "a", "add", "{}"), piece(None, "b", "add", '{"b":')]
        more = chunk({"tool_calls": [piece(None, "b", None, "1}")]}, "tool_calls")
        answer, _ = await asked([chunk({"tool_calls": both}), more])
        assert seen(answer) == [("a", "add", "{}"), ("b", "add", '{"b":1}')]

    async def test_pieces_of_calls_may_come_in_turns(self) -> None:
        pieces = [(0, "a", "add", "{"), (1, "b", "add", "{"), (0, None, None, "}")]
        deltas = [chunk({"tool_calls": [piece(*p)]}) for p in pieces]
        last = chunk({"tool_calls": [piece(1, None, None, "}")]}, "tool_calls")
        answer, _ = await asked([*deltas, last])
        assert seen(answer) == [("a", "add", "{}"), ("b", "add", "{}")]

    async def test_an_endpoint_may_repeat_id_and_name_with_every_piece(self) -> None:
        pieces = [("a", "add", "{"), ("a", "add", "}"), ("a", "add", ""), ("", "add", "")]
        deltas = [chunk({"tool_calls": [piece(0, *p)]}) for p in pieces]
        answer, _ = await asked([*deltas, chunk({}, "tool_calls")])
        assert seen(answer) == [("a", "add", "{}")]

    async def test_an_endpoint_may_make_a_new_id_for_every_piece(self) -> None:
        pieces = [("a", "add", "{"), ("b", None, "}")]
        deltas = [chunk({"tool_calls": [piece(0, *p)]}) for p in pieces]
        answer, _ = await asked([*deltas, chunk({}, "tool_calls")])
        assert seen(answer) == [("a", "add", "{}")]

    async def test_arguments_may_be_an_object_and_content_parts(self) -> None:
        call = piece(0, "a", "add", {"a": 1})
        parts: JsonValue = [{"type": "text", "text": "hi"}]
        answer, heard = await asked([chunk({"content": parts, "tool_calls": [call]}, 3)])
        assert (answer.text, seen(answer)) == ("hi", [("a", "add", '{"a": 1}')])
        assert answer.finish_reason == "3"
        assert [d.text for d in heard] == ["hi", '{"a": 1}']

    async def test_usage_that_is_missing_is_estimated_here_too(self) -> None:
        answer, _ = await asked([chunk({"content": "hi"}, "stop")])
        assert min(answer.tokens_in, answer.tokens_out) > 0
        assert "estimates" in answer.notes[0]

    @pytest.mark.parametrize(
        ("events", "says"),
        [
            ([chunk({"content": "a"}), {"error": {"message": "overloaded"}}], "overloaded"),
            ([chunk({"content": "a"})], "broke off"),
            ([chunk({"tool_calls": {"a": 1}}, "stop")], "tool_calls that are no list"),
            ([chunk({"tool_calls": ["x"]}, "stop")], "call without a function"),
            ([{"choices": "x"}], "no chat completion"),
            ([chunk({"content": 5}, "stop")], "content that is no text"),
        ],
    )
    async def test_what_cannot_be_read_is_told_too(
        self, events: list[JsonValue], says: str
    ) -> None:
        assert says in await error(events)


KEYS = [
    *("choices", "message", "delta", "content", "text", "tool_calls", "function", "name"),
    *("arguments", "id", "index", "usage", "prompt_tokens", "finish_reason", "error"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(JSON, JSON)
def test_whatever_comes_is_an_answer_or_unreadable(message: JsonValue, usage: JsonValue) -> None:
    bodies = [message, completion(message, usage), completion(calling(message), usage, message)]
    for body in bodies:
        with suppress(Unreadable):
            answer = read_answer(body)
            json.dumps(step_of(answer, 1, ["add"]).model_dump(mode="json"), allow_nan=False)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(JSON, max_size=4), JSON)
def test_so_is_whatever_is_streamed(deltas: list[JsonValue], usage: JsonValue) -> None:
    assembly = Assembly()
    with suppress(Unreadable):
        for delta in deltas:
            for said in (delta, chunk(delta), chunk({"tool_calls": [delta]}, delta)):
                assembly.add(said)
        assembly.add({"usage": usage})
        answer = assembly.answer()
        json.dumps(step_of(answer, 1, ["add"]).model_dump(mode="json"), allow_nan=False)


@pytest.mark.parametrize(
    ("body", "status"),
    [({"error": {"message": "a\ud800b"}}, 400), ([{"error": {"message": "a\ud800b"}}], 200)],
)
async def test_what_an_error_says_can_be_recorded(body: JsonValue, status: int) -> None:
    assert "a⟦U+D800⟧b" in await error(body, status)


class TestSecrets:
    KEY = "SECRETKEY6"

    @pytest.mark.parametrize("status", [400, 418, 500])
    async def test_a_key_that_the_endpoint_repeats_is_not_told(self, status: int) -> None:
        repeated = f"header Authorization: Bearer {self.KEY} is malformed"
        told = await error({"error": {"message": repeated}}, status, api_key=self.KEY)
        assert self.KEY not in told

    async def test_the_rest_of_what_it_says_is(self) -> None:
        body: JsonValue = {"error": {"message": f"{'x' * 250} Bearer {self.KEY} is malformed"}}
        told = await error(body, 400, api_key=self.KEY)
        assert "Bearer ***" in told
        assert "SECR" not in told

    async def test_a_password_in_the_address_is_not_told(self) -> None:
        body: JsonValue = {
            "error": {"message": "no bob:s3cr%20et, no s3cr et, no Ym9iOnMzY3IgZXQ="}
        }
        told = await error(body, 400, base_url="http://bob:s3cr%20et@{url}?token=t0psecret")
        assert told.startswith("the model endpoint http://***@127.0.0.1:")
        for secret in ("s3cr", "Ym9iOnMzY3IgZXQ=", "t0psecret"):
            assert secret not in told

    async def test_a_refusal_of_tools_hides_it_too(self) -> None:
        body: JsonValue = {"error": {"message": f"{self.KEY}: this model does not support tools"}}
        with pytest.raises(ToolsRefused) as caught:
            await asked(body, 400, api_key=self.KEY)
        assert self.KEY not in str(caught.value)

    async def test_a_short_key_does_not_take_words_apart(self) -> None:
        told = await error({"error": {"message": "unexpected x in extra"}}, 400, api_key="x")
        assert "unexpected *** in extra" in told
