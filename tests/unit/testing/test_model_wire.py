from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import JsonValue

from hubbub.testing.model_request import ChatRequest, parse_request
from hubbub.testing.model_script import Answer, Call, Usage
from hubbub.testing.model_wire import chunks, completion, error_body, model_list


def request(**more: JsonValue) -> ChatRequest:
    messages: JsonValue = [{"role": "user", "content": "four letters"}]
    return parse_request({"model": "m", "messages": messages, **more}, {}, 0.0)


texts = st.text(max_size=40)
calls = st.builds(
    Call,
    tool=st.sampled_from(["add", "finish"]),
    arguments=texts | st.dictionaries(st.text(max_size=4), st.integers(), max_size=3),
)
answers = st.builds(
    Answer,
    text=st.none() | texts,
    calls=st.lists(calls, max_size=3),
    piece=st.integers(1, 20),
    finish_reason=st.sampled_from([None, "length"]),
)


def assembled(answer: Answer, number: int) -> tuple[str, list[tuple[str, str, str]], str | None]:
    """A stream as a client puts it together: text, calls (id, name, arguments), finish reason."""
    text, reason = "", None
    made: list[tuple[str, str, str]] = []
    for raw in chunks(request(stream=True), answer, number):
        chunk = ChatCompletionChunk.model_validate(raw)
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for part in choice.delta.tool_calls or []:
                assert part.function is not None
                if part.id is not None:
                    made.append((part.id, part.function.name or "", ""))
                id, name, arguments = made[part.index]
                made[part.index] = (id, name, arguments + (part.function.arguments or ""))
    return text, made, reason


@given(answers, st.integers(1, 99))
def test_a_stream_says_what_the_whole_answer_says(answer: Answer, number: int) -> None:
    whole = ChatCompletion.model_validate(completion(request(), answer, number)).choices[0]
    said = [
        (c.id, c.function.name, c.function.arguments)
        for c in whole.message.tool_calls or []
        if c.type == "function"
    ]
    assert assembled(answer, number) == (whole.message.content or "", said, whole.finish_reason)


def test_calls_have_ids_that_differ_between_requests() -> None:
    answer = Answer(calls=[Call(tool="a"), Call(tool="b")])
    first, second = assembled(answer, 1)[1], assembled(answer, 2)[1]
    assert len({id for id, _, _ in [*first, *second]}) == 4


def test_usage_is_counted_roughly_unless_it_is_given() -> None:
    counted = completion(request(), Answer(text="x" * 40), 1)["usage"]
    assert counted == {"prompt_tokens": 4, "completion_tokens": 11, "total_tokens": 15}
    given_ = Answer(text="x", usage=Usage(prompt_tokens=7, completion_tokens=0))
    usage = completion(request(), given_, 1)["usage"]
    assert usage == {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}


def test_usage_ends_a_stream_that_asks_for_it() -> None:
    asked = request(stream=True, stream_options={"include_usage": True})
    *others, last = chunks(asked, Answer(text="hi"), 1)
    assert last["choices"] == []
    assert "usage" in last
    assert all("usage" not in chunk for chunk in others)


def test_two_runs_of_a_script_give_the_same_bytes() -> None:
    answer = Answer(text="hi", calls=[Call(tool="a", arguments={"x": 1})])
    first, second = (json.dumps(completion(request(), answer, 1)) for _ in range(2))
    assert first == second


def test_errors_and_model_lists_have_the_endpoints_form() -> None:
    assert error_body("no", "t", "c") == {
        "error": {"message": "no", "type": "t", "param": None, "code": "c"}
    }
    assert [m["id"] for m in model_list(["a", "b"])["data"]] == ["a", "b"]  # type: ignore[union-attr,call-overload,index]
