"""JSON as models write it: which mistakes are tolerated and which are refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.agents.dialects.scan import read_value
from hubbub.strict_json import NotJson

SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


@given(OBJECTS, st.text(), st.text())
def test_a_value_is_read_at_its_position_and_the_rest_is_left(
    value: dict[str, JsonValue], before: str, after: str
) -> None:
    text = json.dumps(value)
    assert read_value(f"{before}{text}{after}", len(before)) == (value, len(before) + len(text))


@given(OBJECTS.filter(bool), st.sampled_from([",", ", ", ",\n  "]))
def test_a_trailing_comma_is_ignored(value: dict[str, JsonValue], comma: str) -> None:
    text = f"{json.dumps(value)[:-1]}{comma}}}"
    assert read_value(f"{text} and so on") == (value, len(text))


def test_unambiguous_mistakes_are_tolerated_and_all_others_refused(
    snapshot: SnapshotAssertion,
) -> None:
    cases: list[tuple[str, JsonValue]] = [
        ('{"a": [1, 2, ], }', {"a": [1, 2]}), ('{"a": ",]", }', {"a": ",]"}),
        ('{"a": "\\",}", }', {"a": '",}'}), ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
        ("[{}, {}]", [{}, {}]),
    ]  # fmt: skip
    for text, value in cases:
        assert read_value(f"[, {text} ]", 3) == (value, 3 + len(text))
    for text, reason in [
        ('{"a": 1, "a": 2}', "given twice"), ('{"a": {"b": 1, "b": 1, }}', "given twice"),
        ('{"a": NaN}', "NaN"), ('{"a": -Infinity}', "Infinity"), ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 5000 + "}", "too long"), ("{'a': 1}", "no JSON"), ('{"a": 1', "no JSON"),
        ('{"a": 1]', "no JSON"), ('{"a": [1,}', "no JSON"), ('{"a": 1,, }', "no JSON"),
        ('{"a" 1}', "near"), ("{", "no JSON"), ("", "no JSON"),
        ("[" * 100_000, "^it is nested too deep$"),
    ]:  # fmt: skip
        with pytest.raises(NotJson, match=reason):
            read_value(text)
    with pytest.raises(NotJson) as caught:
        read_value(f'{{"a": "{"b" * 30}",,, "c": "{"d" * 30}"}}')
    assert str(caught.value) == snapshot


@given(st.text(alphabet='{}[],:"\\ \na1', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        _, end = read_value(text)
    except NotJson:
        return
    assert 0 < end <= len(text)
