"""A transcript for people: as Markdown, and as one HTML page.

What was said stands in blocks that end where it ends, whatever it says: a fence of Markdown that is
longer than any in the text, and text of HTML without any markup. There are no scripts, and nothing
is loaded from elsewhere.
"""

from __future__ import annotations

import re
from html import escape
from typing import Protocol

from hubbub.protocol.messages import Message

__all__ = ["Html", "Look", "Markdown"]

_TICKS = re.compile(r"`+")

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c1c1e; background: #fff; }
h1 { font-size: 1.3rem; }
article { border-top: 1px solid #d8d8dc; padding: .75rem 0; }
header { color: #55555a; font-size: .85rem; }
header b { color: #1c1c1e; font-size: 1rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .25rem 0 0;
  unicode-bidi: isolate; }
blockquote { margin: .25rem 0; padding-left: .75rem; border-left: 3px solid #d8d8dc; }
ul { margin: .25rem 0 0; font-size: .85rem; }
@media (prefers-color-scheme: dark) {
  body { color: #e8e8ea; background: #1c1c1e; }
  header { color: #a0a0a6; }
  header b { color: #e8e8ea; }
  article, blockquote { border-color: #3a3a3e; }
}
"""


class Look(Protocol):
    """How a transcript is written."""

    def head(self, title: str) -> str: ...

    def message(self, message: Message) -> str: ...

    def foot(self) -> str: ...


class Markdown:
    def head(self, title: str) -> str:
        return f"# {title}\n"

    def message(self, message: Message) -> str:
        facts = " · ".join(f"`{fact}`" for fact in _facts(message))
        parts = [f"\n---\n\n**`{message.sender_id}`** {facts}\n"]
        if message.quote is not None and message.quote.text:
            parts.append(_fenced("quote", message.quote.text))
        parts.append(_fenced("text", _said(message)))
        if message.attachments:
            names = "\n".join(_shown_attachments(message))
            parts.append(_fenced("attachments", names))
        return "\n".join(parts)

    def foot(self) -> str:
        return ""


def _fenced(kind: str, text: str) -> str:
    """A block that nothing in the text can end."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}\n"


class Html:
    def head(self, title: str) -> str:
        told = escape(title)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{told}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{told}</h1>\n"
        )

    def message(self, message: Message) -> str:
        facts = " · ".join(escape(fact) for fact in _facts(message))
        parts = [f'<article id="{escape(message.id)}">']
        parts.append(f"<header><b>{escape(message.sender_id)}</b> {facts}</header>")
        if message.quote is not None and message.quote.text:
            parts.append(f"<blockquote><pre>{_escaped(message.quote.text)}</pre></blockquote>")
        parts.append(f"<pre>{_escaped(_said(message))}</pre>")
        if message.attachments:
            items = "".join(f"<li>{_escaped(each)}</li>" for each in _shown_attachments(message))
            parts.append(f"<ul>{items}</ul>")
        return "\n".join([*parts, "</article>\n"])

    def foot(self) -> str:
        return "</body>\n</html>\n"


def _escaped(text: str) -> str:
    """Text of HTML. A line feed first: the one that follows <pre> would be lost."""
    return ("\n" if text.startswith("\n") else "") + escape(text)


def _facts(message: Message) -> list[str]:
    """Who, when and where, in words without any markup."""
    facts = [message.sender_kind, f"{message.sent_at:%Y-%m-%d %H:%M:%S} UTC", message.id]
    facts.append(message.thread_id)
    if message.spoken_by is not None:
        facts.append(f"said by {message.spoken_by}")
    if message.reply_to is not None:
        facts.append(f"reply to {message.reply_to}")
    if message.amends is not None:
        facts.append(f"{message.amends.kind} {message.amends.message_id}")
    elif message.amended is not None:
        facts.append(message.amended)
    if message.imported:
        facts.append("imported")
    elif message.outside:
        facts.append("from outside")
    return facts


def _said(message: Message) -> str:
    if message.amended == "deleted" or (message.amends and message.amends.kind == "deleted"):
        return "(deleted)"
    return message.text


def _shown_attachments(message: Message) -> list[str]:
    return [
        f"{each.name} ({each.media_type}{f', {each.size} bytes' if each.size else ''}) {each.uri}"
        for each in message.attachments
    ]
