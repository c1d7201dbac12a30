"""Search texts as FTS expressions of SQLite."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.agents.knowledge.index import MOST_TERMS, Index, Passage, has_fts5, parse, spaced
from tests.examples import examples


def test_a_search_text_becomes_an_fts_expression() -> None:
    for text, exact in [
        ("refund lamp", '"refund" OR "lamp"'),
        ("refund refund", '"refund"'),
        ("refund*", '"refund"*'),
        ('"damaged goods"', '("damaged goods")'),
        ('"damaged goods', '("damaged goods")'),  # an open quote ends with the text
        ('"a b" c', '("a b") OR (("a b") AND ("c"))'),
        ("well-known", '"well known"'),
        ("NEAR(a b) AND NOT x:y ^z", '"NEAR a" OR "b" OR "AND" OR "NOT" OR "x y" OR "z"'),
        ("東京 駅", '"東 京" OR "駅"'),
        ("", ""),
        ('?! "" * ""', ""),
    ]:
        assert parse(text).exact == exact
    assert parse('"damaged goods" to refund').wider == (
        '"damaged"* OR "goods"* OR "to" OR "refund"*'
    )
    assert parse("").wider == ""
    query = parse(" ".join(f"w{n}" for n in range(5000)))
    assert query.exact.count('"') == query.wider.count('"') == 2 * MOST_TERMS
    assert spaced("in 東京 now").split() == ["in", "東", "京", "now"]
    assert spaced("cafe\u0301") == "café"
    assert has_fts5()


INDEX = Index()
INDEX.put("a.md", [Passage("Returns", 1, "Refunds for damaged goods take 3 days.")])


@pytest.mark.behaviour("E-5")
@settings(max_examples=examples(150))
@given(
    st.one_of(
        st.text(max_size=80),
        st.lists(
            st.sampled_from(
                ['"', "*", "(", ")", "AND", "OR", "NOT", "NEAR(a,2)", "^a", "a:b", "+", "-", "{a}",
                 "'", ";", "--", "\0", "\ud800", "é", "²", "refund", "東", "ﬁ", "\u0301"]
            ),
            max_size=12,
        ).map(" ".join),
    )
)  # fmt: skip
def test_any_text_is_a_valid_query(text: str) -> None:
    for expression in parse(text):
        if expression:
            assert len(INDEX.find(expression, 5)) in (0, 1)
