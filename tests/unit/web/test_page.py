"""The page that says how to join."""

from __future__ import annotations

import ast
from html.parser import HTMLParser

from hubbub.web.site import joining_page


def text_of(page: bytes) -> str:
    """What a reader sees of the page."""
    pieces: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            pieces.append(data)

    Reader().feed(page.decode())
    return "".join(pieces)


def test_it_names_the_network_and_how_to_get_in() -> None:
    for port, option in ((5000, " --address 127.0.0.1:5000"), (4820, "")):
        for tokens in (True, False):  # the last shows how to do without
            text = text_of(joining_page("town", f"ws://127.0.0.1:{port}", tokens=tokens))
            assert "town" in text
            assert f"hubbub chat{option}" in text
            assert tokens or f"hubbub chat{option}\n" in text
            assert f"Connect to ws://127.0.0.1:{port} with" in text
            assert ('"token"' in text) is ("HUBBUB_TOKEN" in text) is tokens
    ast.parse(text[text.index("from hubbub import") : text.index("hubbub agents run")])


def test_a_name_is_text_never_markup() -> None:
    page = joining_page("<script>alert('x')</script>$url", "ws://h:1", tokens=False)
    assert b"<script>" not in page
    assert "<script>alert('x')</script>$url" in text_of(page)


def test_it_needs_nothing_but_itself_and_scrolls_code_on_a_narrow_screen() -> None:
    """The hub sends it with a policy that allows no script, no picture and no other place."""
    page = joining_page("town", "ws://h:1", tokens=True).decode()
    for needing in ("<script", "src=", "@import", "url(", "onclick", "<link", "<img", "<iframe"):
        assert needing not in page
    style = page[page.index("  pre {") :].partition("}")[0]
    assert ("overflow-x: auto" in style, "white-space" in style) == (True, False)
