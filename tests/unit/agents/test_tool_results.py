"""Results within their budget: text, lists, lists in objects."""

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
from hubbub.agents.tools.conduct import Conduct
from hubbub.agents.tools.results import ByCharacters, fit
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.tuning import Tuning
from tests.unit.agents.calling import failed, text

COUNTER = ByCharacters()


class Words:
    """Another way to count."""

    def count(self, text: str) -> int:
        return len(text.split())


def records(n: int) -> list[JsonValue]:
    return [{"id": i, "text": "x" * 20} for i in range(n)]


json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=40,
)


class TestText:
    def test_what_fits_stays_as_it_is(self) -> None:
        assert fit("x" * 40, 10, COUNTER) == "x" * 40

    @pytest.mark.behaviour("K-7")
    def test_what_is_too_long_keeps_its_beginning_and_tells_its_length(self) -> None:
        assert fit("x" * 41, 10, COUNTER) == f"{'x' * 40}… (cut: the first 40 of 41 characters)"

    def test_the_counter_decides_what_is_long(self) -> None:
        assert fit("one two three four", 3, Words()).startswith("one two three ")
        assert "four" not in fit("one two three four", 3, Words()).partition("…")[0]

    def test_a_text_that_only_begins_like_json_is_text(self) -> None:
        assert fit("{" + "x" * 50, 5, COUNTER).startswith("{xxx")
        assert fit("[1, 2, oh" + "x" * 50, 5, COUNTER).startswith("[1, 2, oh")

    def test_an_enormous_text_is_not_counted_as_a_whole(self) -> None:
        class Bounded:
            def count(self, text: str) -> int:
                assert len(text) <= 1600
                return len(text) // 4

        assert fit("x" * 10**6, 100, Bounded()).endswith("of 1000000 characters)")

    @given(st.text(max_size=300), st.integers(1, 60))
    def test_the_beginning_always_fits(self, text: str, budget: int) -> None:
        told = fit(text, budget, COUNTER)
        cut = re.search(r"… \(cut: the first (\d+) of (\d+) characters\)\Z", told)
        if told == text:
            assert COUNTER.count(text) <= budget
        elif cut is not None and text[:1] not in ("[", "{"):
            assert text.startswith(told[: cut.start()])
            assert COUNTER.count(told[: cut.start()]) <= budget
            assert (int(cut[1]), int(cut[2])) == (cut.start(), len(text))


class TestJson:
    @pytest.mark.behaviour("K-7")
    def test_a_list_keeps_its_first_records_and_tells_how_many_there_were(self) -> None:
        told = json.loads(fit(json.dumps(records(100)), 100, COUNTER))
        kept = len(told["records"])
        assert 3 < kept < 100
        assert told["records"] == records(kept)
        assert told["records_cut"].startswith(f"the first {kept} of 100;")

    @pytest.mark.behaviour("K-7")
    def test_an_object_keeps_all_but_the_end_of_its_longest_list(self) -> None:
        value = {"thread": "direct_ann", "few": [1, 2], "messages": records(50), "more": True}
        told = json.loads(fit(json.dumps(value), 150, COUNTER))
        assert told["thread"] == "direct_ann"
        assert told["few"] == [1, 2]
        assert told["more"] is True
        kept = len(told["messages"])
        assert told["messages"] == records(kept)
        assert told["messages_cut"].startswith(f"the first {kept} of 50;")

    def test_as_many_records_are_kept_as_fit(self) -> None:
        text = json.dumps(records(100))
        told = json.loads(fit(text, 200, COUNTER))
        told["records"].append(records(100)[len(told["records"])])
        assert COUNTER.count(json.dumps(told)) > 200

    def test_what_was_only_written_with_much_space_is_whole(self) -> None:
        text = json.dumps(records(3), indent=20)
        assert json.loads(fit(text, 40, COUNTER)) == records(3)

    @pytest.mark.parametrize("value", [["x" * 1000], {"text": "x" * 1000}, {"a": []}, "x" * 500])
    def test_where_not_even_one_record_fits_it_is_cut_like_text(self, value: JsonValue) -> None:
        told = fit(json.dumps(value), 20, COUNTER)
        assert told == json.dumps(value) or "characters)" in told

    @given(json_values, st.integers(20, 200))
    def test_whatever_comes_out_is_near_its_budget(self, value: JsonValue, budget: int) -> None:
        told = fit(json.dumps(value), budget, COUNTER)
        assert COUNTER.count(told) <= budget + 20

    @given(st.lists(json_values, min_size=2, max_size=30), st.integers(25, 100))
    def test_records_that_are_kept_are_the_first_ones(
        self, value: list[JsonValue], budget: int
    ) -> None:
        text = fit(json.dumps(value), budget, COUNTER)
        if "(cut:" in text:
            return
        told = json.loads(text)
        if isinstance(told, dict):
            assert told["records"] == value[: len(told["records"])]
        else:
            assert told == value


class TestMuch:
    """What takes no end, or as good as none."""

    @pytest.mark.behaviour("K-7")
    @pytest.mark.parametrize("in_loop", [True, False], ids=["async", "thread"])
    async def test_an_iterator_without_an_end_is_read_to_some_point(self, in_loop: bool) -> None:
        if in_loop:

            @tool
            async def numbers() -> object:
                """Count."""
                return itertools.count()
        else:

            @tool
            def numbers() -> object:
                """Count."""
                return itertools.count()

        told = json.loads(await text(Toolbox([numbers], Conduct(budget=50)), "numbers"))
        assert told["items"][:3] == [0, 1, 2]
        assert told["more"] is True

    async def test_one_that_ends_is_a_list(self) -> None:
        @tool
        def numbers() -> object:
            """Count."""
            return (n for n in range(3))

        assert await text(Toolbox([numbers]), "numbers") == "[0,1,2]"

    @pytest.mark.behaviour("K-7")
    @pytest.mark.parametrize(
        "value",
        [
            [{"n": n, "text": "x" * 20} for n in range(20_000)],
            {f"k{n}": ["x" * 20] * 3 for n in range(10_000)},
            [["x" * 500_000], *range(10_000)],
            {"rest": "x" * 500_000, "list": list(range(10_000))},
            {"list": list(range(10_000))},
        ],
        ids=["list", "many lists", "large first", "large rest", "one list"],
    )
    def test_only_what_may_fit_is_counted_and_written_again(
        self, value: JsonValue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text, written, dumps = json.dumps(value), 0, json.dumps

        class Bounded:
            def count(self, text: str) -> int:
                assert len(text) <= 1600
                return len(text) // 4

        def noted(value: object, **how: Any) -> str:
            nonlocal written
            told = dumps(value, **how)
            written += len(told)
            return told

        monkeypatch.setattr(json, "dumps", noted)
        assert len(fit(text, 100, Bounded())) < 2000
        assert written < 5 * len(text)

    @pytest.mark.behaviour("K-7")
    def test_what_is_enormous_is_not_read_as_json_but_cut_as_text(self) -> None:
        told = fit("[" + "1," * 3_000_000 + "1]", 100, COUNTER)
        assert told.startswith("[1,1,1,")
        assert "characters)" in told


class TestBudgets:
    async def test_a_tool_may_have_a_budget_of_its_own(self) -> None:
        @tool(result_budget=5)
        def much() -> str:
            """Much."""
            return "x" * 100

        assert (await text(Toolbox([much]), "much")).startswith("x" * 20 + "…")
        conduct = Conduct(tuning={"much": Tuning(budget=10)})
        assert (await text(Toolbox([much], conduct), "much")).startswith("x" * 40 + "…")

    async def test_an_agent_has_one_for_all_its_tools(self) -> None:
        @tool
        def much() -> list[int]:
            """Much."""
            return list(range(1000))

        told = json.loads(await text(Toolbox([much], Conduct(budget=50)), "much"))
        assert told["records"][:3] == [0, 1, 2]
        assert "of 1000" in told["records_cut"]

    async def test_what_went_wrong_is_cut_too(self) -> None:
        @tool
        def fail() -> str:
            """Fail."""
            raise ValueError("x" * 1000)

        told = await failed(Toolbox([fail], Conduct(budget=10)), "fail")
        assert str(told["message"]).endswith("… (cut: the first 800 of 1012 characters)")
