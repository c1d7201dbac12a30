"""Results cut to their budget: text, lists, and lists in objects."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub import tool
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.results import fit_result
from hubbub.agents.tools.toolbox import Toolbox
from tests.unit.agents.calling import text


class Quarters:
    """Four characters for each token."""

    exact = False

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


COUNTER = Quarters()


class Words:
    """One token for each word."""

    exact = False

    def count(self, text: str) -> int:
        return len(text.split())


def records(n: int) -> list[JsonValue]:
    return [{"id": i, "text": "x" * 20} for i in range(n)]


json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=40,
)

records_ = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=30), max_size=3)


@pytest.mark.behaviour("K-7")
def test_a_long_text_is_cut_to_its_beginning_with_its_length() -> None:
    assert fit_result("x" * 41, 10, COUNTER) == f"{'x' * 40}… (cut: the first 40 of 41 characters)"
    assert fit_result("x" * 40, 10, COUNTER) == "x" * 40
    assert fit_result("one two three four", 3, Words()).startswith("one two three ")
    assert "four" not in fit_result("one two three four", 3, Words()).partition("…")[0]
    for no_json in ("{" + "x" * 50, "[1, 2, oh" + "x" * 50):
        assert fit_result(no_json, 5, COUNTER).startswith(no_json[:20])
    result = fit_result("[" + "1," * 3_000_000 + "1]", 100, COUNTER)
    assert result.startswith("[1,1,1,")
    assert "characters)" in result


@given(st.text(max_size=300), st.integers(1, 60))
def test_the_beginning_always_fits_its_budget(text: str, budget: int) -> None:
    result = fit_result(text, budget, COUNTER)
    cut = re.search(r"… \(cut: the first (\d+) of (\d+) characters\)\Z", result)
    if result == text:
        assert COUNTER.count(text) <= budget
    elif cut is not None and text[:1] not in ("[", "{"):
        assert text.startswith(result[: cut.start()])
        assert COUNTER.count(result[: cut.start()]) <= budget
        assert (int(cut[1]), int(cut[2])) == (cut.start(), len(text))


@pytest.mark.behaviour("K-7")
def test_a_list_is_cut_to_its_first_records_with_their_number() -> None:
    result = json.loads(fit_result(json.dumps(records(100)), 100, COUNTER))
    count = len(result["records"])
    assert 3 < count < 100
    assert result["records"] == records(count)
    assert result["records_cut"].startswith(f"the first {count} of 100;")
    value = {"thread": "direct_ann", "few": [1, 2], "messages": records(50), "more": True}
    result = json.loads(fit_result(json.dumps(value), 150, COUNTER))
    assert result["thread"] == "direct_ann"
    assert result["few"] == [1, 2]
    assert result["more"] is True
    count = len(result["messages"])
    assert result["messages"] == records(count)
    assert result["messages_cut"].startswith(f"the first {count} of 50;")
    text = json.dumps(records(100))
    result = json.loads(fit_result(text, 200, COUNTER))
    result["records"].append(records(100)[len(result["records"])])
    assert COUNTER.count(json.dumps(result)) > 200
    text = json.dumps(records(3), indent=20)
    assert json.loads(fit_result(text, 40, COUNTER)) == records(3)
    cases: list[JsonValue] = [["x" * 1000], {"text": "x" * 1000}, {"a": []}, "x" * 500]
    for small in cases:
        result = fit_result(json.dumps(small), 20, COUNTER)
        assert result == json.dumps(small) or "characters)" in result


@given(json_values, st.integers(20, 200))
def test_any_result_is_cut_to_about_its_budget(value: JsonValue, budget: int) -> None:
    result = fit_result(json.dumps(value), budget, COUNTER)
    assert COUNTER.count(result) <= budget + 20


@given(st.lists(records_, min_size=2, max_size=30), st.integers(25, 100))
def test_the_retained_records_are_the_first_ones(value: list[JsonValue], budget: int) -> None:
    text = fit_result(json.dumps(value), budget, COUNTER)
    if "(cut:" in text:
        return
    result = json.loads(text)
    if isinstance(result, dict):
        assert result["records"] == value[: len(result["records"])]
    else:
        assert result == value


@pytest.mark.behaviour("K-7")
async def test_an_endless_iterator_is_read_up_to_a_limit() -> None:
    @tool
    async def counting() -> object:
        """Count in the loop."""
        return itertools.count()

    @tool
    def numbers() -> object:
        """Count in a thread."""
        return itertools.count()

    box = Toolbox([counting, numbers], ToolPolicy(budget=50))
    for endless in (await text(box, "counting"), await text(box, "numbers")):
        result = json.loads(endless)
        assert (result["items"][:3], result["more"]) == ([0, 1, 2], True)

    @tool
    def three() -> object:
        """Count to three."""
        return iter([1, 2, 3])

    assert await text(Toolbox([three]), "three") == "[1,2,3]"


@pytest.mark.behaviour("K-7")
def test_only_a_part_that_may_fit_is_counted_and_serialised_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases: list[JsonValue] = [
        [{"n": n, "text": "x" * 20} for n in range(20_000)],
        {f"k{n}": ["x" * 20] * 3 for n in range(10_000)}, [["x" * 500_000], *range(10_000)],
        {"rest": "x" * 500_000, "list": list(range(10_000))}, {"list": list(range(10_000))},
    ]  # fmt: skip
    written, dumps = 0, json.dumps

    class Bounded:
        exact = False

        def count(self, text: str) -> int:
            assert len(text) <= 1600
            return len(text) // 4

    def recording(value: object, **how: Any) -> str:
        nonlocal written
        result = dumps(value, **how)
        written += len(result)
        return result

    monkeypatch.setattr(json, "dumps", recording)
    for value in cases:
        text, written = dumps(value), 0
        assert len(fit_result(text, 100, Bounded())) < 2000
        assert written < 5 * len(text)
