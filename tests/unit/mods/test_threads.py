"""Default titles of threads, and quotes compared with their message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.mods.threads.mod import MAX_TITLE, excerpt_of, is_quoted_from, title_of


@pytest.mark.behaviour("M-95")
def test_a_title_is_the_first_sentence_without_markup() -> None:
    for text, title in (
        ("Shall we ship it? I think so.", "Shall we ship it?"),
        ("# Plan for **Monday**\n\nFirst", "Plan for Monday"),
        ("\n\n- one\n- two", "one"),
        ("1. first. 2. second", "first."),
        ("see [the page](https://example.com/a.b c) now", "see the page now"),
        ("version 1.5 is out", "version 1.5 is out"),
        ("今日は。明日も", "今日は。"),
        ("```\n***", None),
        ("", None),
        ("x" * 200, "x" * (MAX_TITLE - 1) + "…"),
        ("many words " * 20, " ".join(["many words"] * 7) + "…"),
    ):
        assert title_of(text) == title


@given(st.text(max_size=300))
def test_a_title_is_one_short_line_or_none(text: str) -> None:
    title = title_of(text)
    assert title is None or (0 < len(title) <= MAX_TITLE and title == " ".join(title.split()))


@pytest.mark.behaviour("M-100")
@given(st.text(max_size=400), st.integers(1, 100))
def test_an_excerpt_is_quoted_from_its_text(text: str, longest: int) -> None:
    excerpt = excerpt_of(text, longest)
    assert len(excerpt) <= longest
    assert not excerpt or is_quoted_from(excerpt, text)


@pytest.mark.behaviour("M-100")
def test_a_quote_matches_by_its_words_without_markup() -> None:
    text = "I tell [you](https://example.com): *do not* do it."
    for quote in ("do not do it", "do **not** do it", "you: do not", "do it", "not"):
        assert is_quoted_from(quote, text), quote
    for quote in ("do it not", "I tell you to", "***"):
        assert not is_quoted_from(quote, text), quote


@pytest.mark.behaviour("M-100")
@pytest.mark.parametrize("piece", ["[", "![", "[a](", "[a](b(c)", "[a]((", "[](()"])
def test_text_full_of_unfinished_links_is_compared_in_linear_time(piece: str) -> None:
    assert not is_quoted_from("quote", piece * 500_000)  # quadratic time would be hours
