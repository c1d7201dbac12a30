"""The page that says how to join."""

from __future__ import annotations

import ast
from html.parser import HTMLParser

from hubbub.web.page import joining_page


def text_of(page: bytes) -> str:
    """What a reader sees of the page."""
    pieces: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            pieces.append(data)

    Reader().feed(page.decode())
    return "".join(pieces)


def test_it_names_the_network_and_how_to_get_in() -> None:
    text = text_of(joining_page("town", "ws://127.0.0.1:5000", tokens=False))
    assert "town" in text
    assert "hubbub chat --address 127.0.0.1:5000\n" in text
    assert "Connect to ws://127.0.0.1:5000 with" in text


def test_at_the_usual_address_no_option_is_needed() -> None:
    text = text_of(joining_page("town", "ws://127.0.0.1:4820", tokens=False))
    assert "hubbub chat\n" in text


def test_a_token_is_mentioned_where_one_is_needed() -> None:
    for tokens in (
        True,
        False,
    ):
        text = text_of(joining_page("town", "ws://h:1", tokens=tokens))
        assert ('"token"' in text) is tokens
        assert ("HUBBUB_TOKEN" in text) is tokens


def test_a_name_is_text_never_markup() -> None:
    page = joining_page("<script>alert('x')</script>$url", "ws://h:1", tokens=False)
    assert b"<script>" not in page
    assert "<script>alert('x')</script>$url" in text_of(page)


def test_it_needs_nothing_but_itself() -> None:
    """The hub sends it with a policy that allows no script, no picture and no other place."""
    page = joining_page("town", "ws://h:1", tokens=True).decode()
    for needing in ("<script", "src=", "@import", "url(", "onclick", "<link", "<img", "<iframe"):
        assert needing not in page


def test_a_narrow_screen_scrolls_code_and_does_not_break_its_lines() -> None:
    page = joining_page("town", "ws://h:1", tokens=False).decode()
    style = page[page.index("  pre {") :].partition("}")[0]
    assert "overflow-x: auto" in style
    assert "white-space" not in style


def test_the_agent_that_it_shows_is_python() -> None:
    text = text_of(joining_page("town", "ws://h:1", tokens=False))
    code = text[text.index("from hubbub import") : text.index("hubbub agent run")]
    ast.parse(code)
