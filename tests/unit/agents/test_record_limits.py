"""Records of turns are cut to what the hub accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from pydantic_core import to_json

from hubbub.agents.turn.record_limits import (
    LEAST_RECORD,
    ROOM,
    cut_record,
    excerpt,
    without_cut_calls,
)
from hubbub.client.calls import encode_call
from hubbub.protocol.frames import LimitsInfo
from hubbub.protocol.turns import Compressed, Steering, Step, ToolCallRecord, TurnEnd, TurnStart
from tests.examples import examples

pytestmark = pytest.mark.behaviour("T-1")

LONG = st.sampled_from(["x" * 20_000, "é" * 300, "👩" * 6000, '"' * 3000])
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TEXTS = PLAIN | LONG
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from([[0] * 9000, [[]] * 3000, [{"a": [None]}] * 1000]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=6,
)
CALLS = st.builds(
    ToolCallRecord, id=TEXTS, name=TEXTS, arguments=JSON, result=st.none() | TEXTS, error=TEXTS
)
SMALL = st.builds(ToolCallRecord, id=TEXTS, name=st.just("work"), arguments=st.just({"n": 1}))
RECORDS = st.one_of(
    st.builds(
        Step,
        n=st.just(3),
        text=TEXTS,
        reasoning=TEXTS,
        calls=st.lists(CALLS, max_size=3) | SMALL.map(lambda call: [call] * 300),
        notes=st.lists(TEXTS, max_size=3) | st.just(["note"] * 3000),
        discards=st.just((1, 2)),
        compresses=st.lists(st.builds(Compressed, n=st.just(1), text=TEXTS), max_size=2),
        steered=st.lists(st.builds(Steering, message=st.just("m7"), text=TEXTS), max_size=2),
    ),
    st.builds(TurnEnd, id=st.just("bot-m1"), outcome=st.just("finished"), reason=TEXTS),
    st.builds(
        TurnStart,
        id=st.just("bot-m1"),
        thread_id=st.just("dm.ann.bot"),
        messages=st.just(("m1",)),
        model=TEXTS,
        tools=st.lists(TEXTS, max_size=3) | st.just(["tool"] * 9000),
    ),
)


def depth(value: JsonValue) -> int:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, inner), default=0)
    return 0


def nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(levels - 1):
        value = [value]
    return value


def limits(frame: int, levels: int = 32) -> LimitsInfo:
    return LimitsInfo(
        frame_bytes=frame,
        json_depth=levels,
        text_bytes=1,
        calls_per_second=1,
        burst=1,
        channels=1,
        thread_depth=1,
        unacknowledged=1,
    )


def recorded(arguments: JsonValue, frame: int = 256 * 1024, levels: int = 32) -> Any:
    """The recorded arguments of a call. Any: tests read parts of the JSON."""
    step = Step(n=1, calls=(ToolCallRecord(id="c", name="work", arguments=arguments),))
    cut = cut_record(step.model_dump(mode="json"), frame - ROOM, levels - 2)
    encode_call(
        "r", "record_step", {"turn": "bot-m1", "step": cut}, "c" * 26, limits(frame, levels)
    )
    return Step.model_validate(cut).calls[0].arguments


@settings(max_examples=examples(30), deadline=None)
@given(RECORDS, st.integers(LEAST_RECORD + ROOM, 40_000), st.integers(8, 40))
def test_every_record_is_cut_to_what_the_hub_accepts(
    record: Step | TurnStart | TurnEnd, frame: int, levels: int
) -> None:
    cut = cut_record(record.model_dump(mode="json"), frame - ROOM, levels - 2)
    args = {"turn": "bot-m1", "step": cut}
    encode_call("r" * 64, "record_step", args, "c" * 26, limits(frame, levels))
    assert type(record).model_validate(cut)


def test_long_texts_are_cut_in_the_middle_until_the_record_fits() -> None:
    for character in ["x", "é", "👩"]:
        record: JsonValue = {"prompt": character * 300_000, "steps": [character * 5000], "id": "m1"}
        cut = cut_record(record, 20_000)
        assert isinstance(cut, dict)
        assert len(json.dumps(cut, ensure_ascii=False).encode()) <= 20_000
        assert cut["id"] == "m1"
        prompt = cut["prompt"]
        assert isinstance(prompt, str)
        assert prompt.startswith(character)
        assert prompt.endswith(character)
        assert "(300000 characters)" in prompt


def test_the_first_of_many_items_or_members_are_recorded_and_the_rest_counted() -> None:
    items = recorded({"items": [0] * 150_000})["items"]
    assert len(items) > 10_000
    *first, note = items
    assert set(first) == {0}
    assert note == f"… {150_000 - len(first)} more"
    members = recorded({str(n): n for n in range(30_000)})
    assert members["7"] == 7
    assert members["…"] == f"{30_000 - len(members) + 1} more"
    ((key, value),) = recorded({"k" * 400_000: 1}).items()
    assert "(400000 characters)" in key
    assert value == 1


def test_values_nested_too_deeply_or_still_too_large_become_a_note() -> None:
    cut = recorded({"deep": nested(15), "flat": [1]}, levels=8)
    assert cut == {"deep": [["(nested too deep, left out)"]], "flat": [1]}
    assert excerpt(10**400, 64, 3) == "(401 bytes of JSON, left out)"
    assert excerpt([["x"] * 9] * 9, 64, 0) == "(nested too deep, left out)"


def test_characters_that_the_hub_refuses_are_made_visible() -> None:
    for character, shown in [("\0", "⟦U+0000⟧"), ("\ud800", "⟦U+D800⟧")]:
        whole: JsonValue = {"notes": [f"a{character}"], character: "⟦U+0000⟧"}
        assert cut_record(whole, 1000) == {"notes": [f"a{shown}"], shown: "⟦U+0000⟧"}


def cut_step(step: Step, limit: int = LEAST_RECORD) -> Step:
    return Step.model_validate(cut_record(step.model_dump(mode="json"), limit, 30))


def test_the_first_of_too_many_calls_are_recorded_with_a_note() -> None:
    calls = tuple(ToolCallRecord(id=f"c{n}", name="work", arguments={"n": n}) for n in range(2500))
    cut = cut_step(Step(n=1, calls=calls, notes=("first",)), 100_000)
    assert 100 <= len(cut.calls) < 2500
    assert cut.calls == calls[: len(cut.calls)]
    assert cut.notes[0] == "first"
    assert "at most" in cut.notes[-1]


def test_calls_of_a_step_with_cut_arguments_do_not_run_again() -> None:
    given = [{"text": "x" * 9000}, {"text": "short"}]
    made = [ToolCallRecord(id=str(n), name="work", arguments=g) for n, g in enumerate(given)]
    made.append(made[0].model_copy(update={"id": "2", "result": "done"}))
    cut = cut_step(Step(n=1, calls=tuple(made), notes=("first",)))
    assert cut.notes[0] == "first"
    resumed = without_cut_calls(cut)
    assert [call.error for call in resumed.calls] == ["interrupted", "interrupted", None]
    assert "may or may not have taken effect" in (resumed.calls[0].result or "")
    assert resumed.calls[2].result == "done"
    call = ToolCallRecord(id="c", name="work", arguments={"text": "short"})
    cut = cut_step(Step(n=1, calls=(call,), text="x" * 9000))
    assert cut.calls == (call,)
    assert without_cut_calls(cut) is cut


@settings(max_examples=examples(50), deadline=None)
@given(JSON, st.integers(64, 50_000), st.integers(0, 12))
def test_any_json_is_cut_to_any_limit(value: JsonValue, limit: int, levels: int) -> None:
    cut = excerpt(value, limit, levels)
    assert len(to_json(cut)) <= limit
    assert depth(cut) <= levels
    if len(to_json(value)) <= limit and depth(value) <= levels:
        assert cut is value
