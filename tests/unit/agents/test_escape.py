"""Hostile text as data: it cannot close an element or hide characters."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.prompt.escape import escaped, reveal, unreveal

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=[])) | st.lists(
    st.sampled_from(["⟦U+0000⟧", "⟦", "U+", "⟧", "\0", "\ud800", "&", "<", "\r\n", "\u202e", "a"])
).map("".join)


def parsed(text: str) -> str:
    return ElementTree.fromstring(f"<c>{escaped(text)}</c>").text or ""


@given(ANY_TEXT)
def test_reveal_can_be_undone(text: str) -> None:
    assert unreveal(reveal(text)) == text


@pytest.mark.behaviour("A-3")
@given(ANY_TEXT)
def test_escaped_text_is_valid_xml_and_can_be_restored(text: str) -> None:
    assert unreveal(parsed(text)) == text


@given(ANY_TEXT.filter(lambda text: reveal(text) == text))
def test_text_that_xml_can_carry_is_parsed_back_unchanged(text: str) -> None:
    assert parsed(text) == text


@given(ANY_TEXT)
def test_escaped_text_has_no_invisible_characters(text: str) -> None:
    unprintable = [
        c for c in str(escaped(text)) if not c.isprintable() and c not in "\n\t\u200c\u200d"
    ]
    # Spaces of all widths, unassigned and private-use characters are visible as gaps or boxes.
    assert all(c.isspace() or ord(c) > 0xA0 for c in unprintable)
    assert not set(unprintable) & set("\r\u202e\u2066\u200b\ufeff\u061c\U000e0041")


def test_each_kind_of_character_has_its_escaped_form() -> None:
    for text, expected in [
        ("plain", "plain"), ("a & b < c > d", "a &amp; b &lt; c &gt; d"), ("\"'", "&quot;&#x27;"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"), ("\r\n", "&#xD;\n"),
        ("abc\u202edef", "abc&#x202E;def"), ("\u200b", "&#x200B;"), ("\U000e0041", "&#xE0041;"),
        ("\0", "⟦U+0000⟧"), ("\x1b[31m", "⟦U+001B⟧[31m"), ("\ud800", "⟦U+D800⟧"),
        ("⟦U+0000⟧", "⟦U+27E6⟧U+0000⟧"), ("⟦a⟧", "⟦a⟧"), ("👩\u200d🚀 🏳️", "👩\u200d🚀 🏳️"),
    ]:  # fmt: skip
        assert str(escaped(text)) == expected
