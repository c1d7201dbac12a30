"""The text of an HTML page. Pure.

The standard library's parser takes time that grows with the square of some broken inputs, and a
thread cannot be stopped. This one goes over the page once, whatever is in it.
"""

from __future__ import annotations

import re
from html import unescape

__all__ = ["text_of_html"]

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})")
_UNREAD = {
    name: re.compile(rf"</{name}\b", re.IGNORECASE)
    for name in ("script", "style", "template", "noscript", "svg", "iframe", "object")
}
_LINES = frozenset(
    {
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset"),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li"),
        *("main", "nav", "ol", "p", "pre", "section", "table", "title", "tr", "ul"),
    }
)
_BLANK = re.compile(r"[ \t\r\n\f\u00a0]+")


def text_of_html(source: str) -> str:
    """What a reader of the page sees, line by line; scripts and styles are left out."""
    pieces: list[str] = []
    at, end = 0, len(source)
    while at < end:
        start = source.find("<", at)
        pieces.append(_said(source[at : start if start >= 0 else end]))
        if start < 0:
            break
        at = _past(source, start, pieces)
    lines = (line.strip() for line in "".join(pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _past(source: str, start: int, pieces: list[str]) -> int:
    """Where the text goes on after what begins with `<` here."""
    end = len(source)
    if source.startswith("<!--", start):
        return _after(source.find("-->", start + 4), 3, end)
    tag = _TAG.match(source, start)
    if tag is None:
        if source.startswith(("<!", "<?"), start):
            return _after(source.find(">", start), 1, end)
        pieces.append("<")
        return start + 1
    name = tag[2].lower()
    if name in _UNREAD and not tag[1]:
        closing = _UNREAD[name].search(source, tag.end())
        return end if closing is None else _after(source.find(">", closing.end()), 1, end)
    if name in _LINES:
        pieces.append("\n- " if name == "li" and not tag[1] else "\n")
    elif name in ("td", "th"):
        pieces.append("\t" if tag[1] else "")
    return _after(source.find(">", tag.end()), 1, end)


def _after(found: int, length: int, end: int) -> int:
    return end if found < 0 else found + length


def _said(text: str) -> str:
    return _BLANK.sub(" ", unescape(text)) if text else ""
