"""The page with instructions for joining."""

from __future__ import annotations

import ast
from html.parser import HTMLParser

from hubbub.web.site import joining_page


def text_of(page: bytes) -> str:
    """The visible text of the page."""
    pieces: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            pieces.append(data)

    Reader().feed(page.decode())
    return "".join(pieces)


def test_the_page_names_the_network_and_how_to_join() -> None:
    for port, option in ((5000, " --address 127.0.0.1:5000"), (4820, "")):
        for tokens in (True, False):  # the last text is parsed below
            text = text_of(joining_page("town", f"ws://127.0.0.1:{port}", tokens=tokens))
            assert "town" in text
            assert f"hubbub chat{option}" in text
            assert tokens or f"hubbub chat{option}\n" in text
            assert f"Connect to ws://127.0.0.1:{port} with" in text
            assert ('"token"' in text) is ("HUBBUB_TOKEN" in text) is tokens
    ast.parse(text[text.index("from hubbub import") : text.index("hubbub agents run")])


def test_the_network_name_is_escaped() -> None:
    page = joining_page("<script>alert('x')</script>$url", "ws://h:1", tokens=False)
    assert b"<script>" not in page
    assert "<script>alert('x')</script>$url" in text_of(page)


def test_the_page_loads_nothing_and_scrolls_code_on_a_narrow_screen() -> None:
    """The hub's policy for it allows no script, no image and no other origin."""
    page = joining_page("town", "ws://h:1", tokens=True).decode()
    for external in ("<script", "src=", "@import", "url(", "onclick", "<link", "<img", "<iframe"):
        assert external not in page
    style = page[page.index("  pre {") :].partition("}")[0]
    assert ("overflow-x: auto" in style, "white-space" in style) == (True, False)
