"""Blocks of the timeline as styled lines of a given width. Pure."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from datetime import tzinfo
from typing import assert_never

from rich.console import Console, Group, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from hubbub.cli.chat.colours import colour_of
from hubbub.cli.chat.text import clip, one_line, visible
from hubbub.cli.control.marks import marks, speaker
from hubbub.cli.full.markdown import SafeMarkdown
from hubbub.cli.full.timeline import (
    Beginning,
    Block,
    DayLine,
    Earlier,
    NewLine,
    Pending,
    Post,
)
from hubbub.cli.workplace.attached import attachment_words
from hubbub.protocol.messages import Message, Quote

__all__ = ["MOST_MARKDOWN", "Painter"]

MOST_MARKDOWN = 16384
"""Characters of a message that is read as Markdown; a longer one is shown as it is."""
QUOTED = 300
"""Columns of a quotation."""
Line = list[Segment]

_STYLES = {
    "quiet": "#878787",
    "warn": "#d75f5f",
    "new": "bold #d75f5f",
    "good": "#00875f",
    "mention": "bold reverse",
    "markdown.code": "bold",
    "markdown.code_block": "none",
    "markdown.block_quote": "italic",
    "markdown.h1": "bold underline",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold italic",
    "markdown.list": "none",
    "markdown.item.bullet": "bold",
    "markdown.item.number": "bold",
    "markdown.link": "underline",
    "markdown.link_url": "#878787",
    "markdown.table.border": "#878787",
    "markdown.table.header": "bold",
}
"""Readable on dark and on light, as all colours of the chat are."""


class Painter:
    """Draws for one reader, on a dark or a light ground."""

    def __init__(self, me: str, zone: tzinfo | None = None, *, dark: bool = True):
        self._me, self._zone = me, zone
        self._code = "monokai" if dark else "default"
        self._console = Console(
            file=io.StringIO(),
            force_terminal=True,
            color_system="truecolor",
            legacy_windows=False,
            theme=Theme(_STYLES),
            highlight=False,
            markup=False,
            emoji=False,
        )
        self._mention = re.compile(rf"(@{re.escape(me)})(?![A-Za-z0-9_-])")

    def lines(self, block: Block, width: int) -> list[Line]:
        """The block in lines of exactly `width` columns."""
        lines = self.render(self._block(block), width)
        if isinstance(block, Post) and block.mentions_me:
            return [list(self._highlighted(line)) for line in lines]
        return lines

    def render(self, what: RenderableType, width: int) -> list[Line]:
        """Anything of rich in lines of `width` columns."""
        options = self._console.options.update(width=max(width, 8), height=None)
        lines = self._console.render_lines(what, options, pad=True)
        return [[_groundless(segment) for segment in line] for line in lines]

    def _block(self, block: Block) -> RenderableType:
        match block:
            case Beginning(thread, above):
                start = Text(f"This is the beginning of {thread}.", style="quiet")
                said = clip(one_line(above), QUOTED)
                return start.append(f"\n▎{said}", style="italic") if above else start
            case Earlier():
                return Text("↑ earlier messages", style="quiet", justify="center")
            case DayLine(day):
                return Text(f"── {day:%A, %d %B %Y} ──", style="quiet", justify="center")
            case NewLine():
                return Text("── new ──", style="new", justify="center")
            case Post():
                return self._post(block)
            case Pending(sending):
                return self._pending(sending.text, sending.failed)
            case _:
                assert_never(block)

    def _post(self, post: Post) -> RenderableType:
        message = post.message
        parts: list[RenderableType] = [] if post.together else [Text("")]
        if message.sender_kind == "system":
            line = Text(f"{self._time(message)} {message.id} ", style="quiet")
            return Group(*parts, line.append(visible(message.text)))
        parts.append(self._head(post))
        if message.quote is not None:
            parts.append(_quote(message.quote))
        if message.amended != "deleted":  # its head says so
            parts.append(self.body(message))
        parts += [
            Text(attachment_words(item), style="quiet", overflow="fold")
            for item in message.attachments
        ]
        if post.reactions:
            parts.append(Text(post.reactions, style="quiet"))
        if post.replies:
            new = f", {post.new_replies} new" if post.new_replies else ""
            many = "reply" if post.replies == 1 else "replies"
            parts.append(Text(f"↳ {post.replies} {many}{new}", style="new" if new else "quiet"))
        return Group(*parts)

    def _head(self, post: Post) -> Text:
        message = post.message
        head = Text(no_wrap=True, overflow="ellipsis")
        if not post.together:
            colour = Style(bold=True, color=colour_of(message.sender_id))
            head.append(f"{speaker(message)}  ", style=colour)
        head.append(f"{self._time(message)}  {message.id}", style="quiet")
        if known := marks(message, self._zone):
            head.append(f"  {known}", style="bold")
        if post.state:
            head.append(f"  {visible(post.state)}", style="good" if "✓✓" in post.state else "quiet")
        return head

    def body(self, message: Message) -> RenderableType:
        """What a message says."""
        if message.text_representation is None and not isinstance(message.content, str):
            text = json.dumps(message.content, ensure_ascii=False, indent=2)
            return SafeMarkdown(f"```json\n{text.replace('```', '`​``')}\n```", self._code)
        return self._text(message.text)

    def _text(self, text: str) -> RenderableType:
        if len(text) > MOST_MARKDOWN:
            return Text(visible(text), overflow="fold")
        return SafeMarkdown(text, self._code)

    def _pending(self, text: str, failed: str | None) -> RenderableType:
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(self._me, style=Style(bold=True, color=colour_of(self._me)))
        if failed is None:
            head.append("  sending…", style="quiet")
            return Group(Text(""), head, self._text(text))
        why = Text(f"✗ not sent: {visible(failed)}", style="warn")
        return Group(Text(""), head, self._text(text), why)

    def _time(self, message: Message) -> str:
        return f"{message.sent_at.astimezone(self._zone):%H:%M}"

    def _highlighted(self, line: Iterable[Segment]) -> Iterator[Segment]:
        """The line with each @me set off."""
        mention = self._console.get_style("mention")
        for text, style, control in line:
            for n, piece in enumerate(self._mention.split(text)):
                marked = (style or Style.null()) + mention if n % 2 else style
                if piece:
                    yield Segment(piece, marked, control)


def _groundless(segment: Segment) -> Segment:
    """What rich calls the default ground is the terminal's, not that of the theme."""
    style = segment.style
    if style is None or style.bgcolor is None or not style.bgcolor.is_default:
        return segment
    return Segment(segment.text, style.without_color + Style(color=style.color))


def _quote(quote: Quote) -> Text:
    said = clip(one_line(quote.text), QUOTED)
    return Text(f"▎{one_line(quote.message_id)}: {said}", style="quiet italic")
