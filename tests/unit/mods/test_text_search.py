"""Queries as people type them into a search field."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress

from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.mods.text_search import indexable, words_of

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=80)


def matches(text: str, query: str) -> bool:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='unicode61 remove_diacritics 2')")
        db.execute("INSERT INTO t VALUES (?)", (indexable(text),))
        return bool(db.execute("SELECT 1 FROM t WHERE t MATCH ?", (query,)).fetchall())


def test_a_query_is_translated_to_a_match_expression() -> None:
    for query, match in (
        ("a b", '"a" AND "b"'),
        ('"a b" c', '"a b" AND "c"'),
        ("a -b", '("a") NOT ("b")'),
        ('a -"b c" -d', '("a") NOT ("b c" OR "d")'),
        ("begin*", '"begin"*'),
        ("some-thing.py", '"some-thing.py"'),
        ("„schön“", '("schon" OR "schön")'),
        ('say "open', '"say" AND "open"'),
        ("NOT OR", '"NOT" AND "OR"'),
        ("a - b", '"a" AND "b"'),
    ):
        assert words_of(query).match == match


def test_case_and_accents_are_ignored_in_every_script_and_spaces_are_not_needed_where_unused() -> (
    None
):
    for text, query in (
        ("ЁЖИК", "ежик"),
        ("σίσυφος", "ΣΙΣΥΦΟΣ"),
        ("Straße", "STRASSE"),
        ("ﬁnance in Ⅷ", "finance viii"),
        ("שָׁלוֹם", "שלום"),
        ("cafe\u0301s", "cafés"),
        ("naïve", "NAIV*"),
        ("ไทยภาษาที่ดี", "ภาษา"),
        ("日本語テキスト", "テキ"),
        ("한국어", "국"),
    ):
        assert matches(text, words_of(query).match), (text, query)
        assert not matches(text, words_of(f"{query} -{query}").match)
    for text, query in (("かき", "がき"), ("각", "가"), ("ไทยภาษา", "ษาภา")):
        assert not matches(text, words_of(query).match), (text, query)


@given(query=TEXT, text=TEXT)
def test_no_query_is_a_syntax_error_in_sqlite(query: str, text: str) -> None:
    with suppress(OperationError):
        matches(text, words_of(query).match)


@given(TEXT)
def test_a_text_matches_itself_as_a_query(text: str) -> None:
    try:
        words = words_of(f'"{text}"')
    except OperationError:
        return
    if len(words.wanted) > 1 or words.excluded:
        return  # the text contains quotes
    assert matches(text, words.match)


@given(TEXT.filter(str.strip), st.text(max_size=2000))
def test_a_snippet_is_one_short_line(query: str, text: str) -> None:
    try:
        words = words_of(query)
    except OperationError:
        return
    snippet = words.snippet(text)
    assert len(snippet) <= 202
    assert snippet.split() == snippet.replace("\n", " ").split()
    assert "\n" not in snippet
