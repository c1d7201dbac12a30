"""Thoughts of a model in a scratchpad: recorded for the operator, never sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.agents.models.base import CallRequest, Completion, CompletionRequest, Delta
from hubbub.agents.prompt.scratchpad import ThinkingModel, without_thoughts
from hubbub.agents.turn.steps import step_of
from tests.unit.agents.scripted_model import ScriptedModel

SECRET = "SECRET"


def split(text: str) -> tuple[str, str]:
    """The text and the thoughts of an answer."""
    quiet = without_thoughts(Completion(text))
    return quiet.text or "", quiet.reasoning or ""


def test_thoughts_are_separated_from_the_text() -> None:
    for text, rest, thought in [
        ("hello", "hello", ""), ("  as it was ", "  as it was ", ""),
        ("<scratchpad>hm</scratchpad>hello", "hello", "hm"),
        ("a <scratchpad>x</scratchpad> b <scratchpad>y</scratchpad>", "a  b", "x\ny"),
        ("hello <scratchpad>never closed", "hello", "never closed"),
        ("never opened</scratchpad> hello", "hello", "never opened"),
        ("<scratchpad>a<scratchpad>b</scratchpad>c</scratchpad>d", "d", "a\nb\nc"),
        ("<SCRATCHPAD mood='x'>a</ Scratchpad >d", "d", "a"),
        ("&lt;scratchpad&gt;a&lt;/scratchpad&gt;d", "d", "a"),
        ("&#60;scratchpad&#x3E;a</scratchpad>d", "d", "a"), ("<scratchpad/>d", "d", ""),
        ("<scratchpads>d", "<scratchpads>d", ""),
        ("<<scratchpad></scratchpad>scratchpad>a", "", "a"),
        ("the scratchpad of x < y", "the scratchpad of x < y", ""),
    ]:  # fmt: skip
        assert split(text) == (rest, thought)


def call(arguments: JsonValue | str, id: str = "c1") -> CallRequest:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return CallRequest(id, "send_text_message", text)


def cleaned(arguments: JsonValue | str) -> JsonValue:
    """The arguments of a call, without thoughts."""
    quiet = without_thoughts(Completion(None, (call(arguments),)))
    result: JsonValue = json.loads(quiet.calls[0].arguments)
    return result


@pytest.mark.behaviour("Q-6")
class TestAnswers:
    def test_thoughts_move_from_the_text_to_the_reasoning(self) -> None:
        answer = Completion("<scratchpad>is it?</scratchpad>Yes", (call({"text": "x"}),), 5, 6)
        quiet = without_thoughts(answer)
        assert (quiet.text, quiet.reasoning) == ("Yes", "is it?")
        assert (quiet.calls, quiet.tokens_in, quiet.tokens_out) == (answer.calls, 5, 6)
        answer = Completion("<scratchpad>b</scratchpad>", reasoning="a")
        assert without_thoughts(answer).reasoning == "a\nb"
        answer = Completion(" hi ", (call({"text": " hi ", "n": [1, None, True, 1.5]}),))
        assert without_thoughts(answer) is answer

    def test_thoughts_are_removed_from_arguments_in_any_spelling(self) -> None:
        given: JsonValue = {
            "to": "ann",
            "text": f"<scratchpad>{SECRET}</scratchpad>hello",
            "content": {"deep": [f"a<scratchpad>{SECRET}</scratchpad>"], "n": 1},
        }
        quiet = without_thoughts(Completion(None, (call(given),)))
        assert json.loads(quiet.calls[0].arguments) == {
            "to": "ann",
            "text": "hello",
            "content": {"deep": ["a"], "n": 1},
        }
        assert quiet.reasoning == f"{SECRET}\n{SECRET}"
        assert quiet.notes == ("thoughts were taken out of the arguments of send_text_message",)
        text = '{"text": "\\u003cscratchpad\\u003eSECRET\\u003c/scratchpad\\u003ehello"}'
        assert cleaned(text) == {"text": "hello"}
        assert cleaned({"a<scratchpad>SECRET</scratchpad>": 1}) == {"a": 1}
        pieces: list[JsonValue] = ["<scratchpad>", SECRET, "</scratchpad>", "hello"]
        assert cleaned({"content": pieces}) == {"content": ["", "", "", "hello"]}
        calls = (call({"text": "<scratchpad>SECRET"}), call({"text": "hello"}, "c2"))
        quiet = without_thoughts(Completion("<scratchpad>x", calls))
        assert json.loads(quiet.calls[0].arguments) == {"text": ""}
        assert json.loads(quiet.calls[1].arguments) == {"text": "hello"}
        for text in ['{"text": "<scratchpad>SECRET', "<scratchpad>SECRET", "["]:
            quiet = without_thoughts(Completion(None, (call(text),)))
            assert SECRET not in quiet.calls[0].arguments

    def test_a_duplicate_key_is_still_refused(self) -> None:
        for text in [
            '{"to": "ann", "to": "bob", "text": "<scratchpad>SECRET</scratchpad>hello"}',
            '{"to": "ann", "<scratchpad>SECRET</scratchpad>to": "bob"}',
        ]:
            quiet = without_thoughts(Completion(None, (call(text),)))
            made = step_of(quiet, 1, [quiet.calls[0].name]).calls[0]
            assert made.error == "invalid_arguments"
            assert "the key 'to' is given twice" in (made.result or "")
            assert SECRET not in str(made.arguments)


PIECES = st.lists(
    st.sampled_from(
        ["<scratchpad>", "</scratchpad>", "&lt;scratchpad&gt;", "scratchpad>", "a", "<", "/", " "]
    ),
    max_size=12,
).map("".join)
ARGUMENTS = st.recursive(
    PIECES | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES, inner, max_size=3),
    max_leaves=8,
)


@given(PIECES, PIECES, PIECES)
@example("", "</scratchpad>", "")
def test_nothing_inside_a_scratchpad_stays_in_the_text(
    before: str, inside: str, after: str
) -> None:
    for text in (
        f"{before}<scratchpad>{SECRET}",
        f"{before}<scratchpad>{SECRET}</scratchpad>{after}",
        f"{inside}{SECRET}</scratchpad>{after}",
    ):
        rest, _ = split(text)
        assert SECRET not in rest


@given(PIECES, ARGUMENTS)
def test_removing_thoughts_again_changes_nothing(text: str, arguments: JsonValue) -> None:
    once = without_thoughts(Completion(text, (call(arguments),)))
    twice = without_thoughts(once)
    assert twice == once
    assert split(once.text or "") == (once.text or "", "")


def test_tags_inside_a_tag_cannot_hide_a_scratchpad() -> None:
    for levels in [1, 2, 3, 2000]:
        apart = "<" * levels + "<scratchpad/>" + "scratchpad/>" * (levels - 1)
        rest, thoughts = split(f"{apart}scratchpad>{SECRET}")
        assert SECRET not in rest
        assert SECRET in thoughts


async def test_the_deltas_of_a_model_with_a_scratchpad_have_no_text() -> None:
    streamed = [
        Delta(text="<scratchpad>SECRET"),
        Delta(text='{"text": "SECRET', call=0, name="reply"),
    ]
    thinking = Completion("<scratchpad>SECRET</scratchpad>", (call({"text": "hello"}),))
    inner = ScriptedModel(thinking, deltas=streamed)
    model, deltas = ThinkingModel(inner), list[Delta]()
    answer = await model.answer(CompletionRequest([]), deltas.append)
    assert (model.name, answer.text, answer.reasoning) == (inner.name, None, SECRET)
    assert [(delta.text, delta.name) for delta in deltas] == [("", ""), ("", "reply")]
    assert (await model.answer(CompletionRequest([]))).reasoning == SECRET
    await model.close()
    assert inner.closed
