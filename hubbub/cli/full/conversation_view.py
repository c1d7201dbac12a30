"""The widget in the middle: the open thread, line by line, however long it is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message as Notice
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hubbub.cli.full.draw import Line, Painter
from hubbub.cli.full.timeline import Block, NewLine, Post, key
from hubbub.protocol.messages import Message

__all__ = ["ConversationView"]

GUTTER = 2
"""Columns on the left: what is selected, what mentions the reader."""


@dataclass
class Layout:
    """Blocks drawn at one width, and the line each begins at."""

    blocks: Sequence[Block] = ()
    drawn: list[list[Line]] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])

    @property
    def height(self) -> int:
        return self.starts[-1]

    def at(self, line: int) -> int | None:
        """The index of the block that a line belongs to."""
        return bisect_right(self.starts, line) - 1 if 0 <= line < self.height else None

    def start_of(self, seq: int) -> int | None:
        """The first line of a message."""
        for n, block in enumerate(self.blocks):
            if isinstance(block, Post) and block.message.seq == seq:
                return self.starts[n]
        return None


class ConversationView(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows blocks of the timeline: draws what has changed, paints what is in sight."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"conversation--selected", "conversation--mention"}
    DEFAULT_CSS = """
    ConversationView { overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    ConversationView > .conversation--selected { background: $boost; color: $accent; }
    ConversationView > .conversation--mention { color: $warning; }
    """

    class Top(Notice):
        """The beginning of what is known has come in sight."""

    class End(Notice):
        """The end is in sight."""

    class Chosen(Notice):
        """A message was clicked on."""

    def __init__(self) -> None:
        super().__init__()
        self.selected: int | None = None
        """`seq` of the selected message."""
        self._layout = Layout()
        self._cache: dict[tuple[object, ...], list[Line]] = {}
        self._cached_for: tuple[Painter, int] | None = None
        self._thread = ""
        self._settling = False  # it shows a thread of which messages are on their way
        self._moving = False  # it scrolls by itself

    # What is shown ----------------------------------------------------------------------------

    def show(
        self, thread_id: str, blocks: Sequence[Block], painter: Painter, *, opening: bool = False
    ) -> None:
        """Show these blocks. What is in sight stays where it is; the end stays the end; a thread
        that was not shown before begins at what is new in it, else at its end, and does so again
        while it is `opening`, until somebody scrolls.
        """
        width = max(1, self.scrollable_content_region.width - GUTTER)
        if (painter, width) != self._cached_for:
            self._cache, self._cached_for = {}, (painter, width)
        elif thread_id == self._thread and [*map(key, blocks)] == [*map(key, self._layout.blocks)]:
            self._settling &= opening
            self._tell()
            return
        was_end, anchor = self.at_end, self._anchor()
        if thread_id != self._thread:
            self._thread, self.selected, self._settling = thread_id, None, True
        self._lay_out(blocks, painter, width)
        if self._settling:
            self.jump_new()
        elif was_end:
            self.to_end()
        elif anchor is not None and (start := self._layout.start_of(anchor[0])) is not None:
            self._to(start + anchor[1])
        self._settling &= opening
        self.refresh()
        self.call_after_refresh(self._tell)

    def _lay_out(self, blocks: Sequence[Block], painter: Painter, width: int) -> None:
        cache: dict[tuple[object, ...], list[Line]] = {}
        for block in blocks:
            name = key(block)
            cache[name] = self._cache.get(name) or painter.lines(block, width)
        self._cache = cache  # what is not shown any more is forgotten
        drawn = [cache[key(block)] for block in blocks]
        starts = list(accumulate(map(len, drawn), initial=0))
        self._layout = Layout(blocks, drawn, starts)
        self.virtual_size = Size(width + GUTTER, starts[-1])

    def _anchor(self) -> tuple[int, int] | None:
        """The first message in sight and how far it has been scrolled past."""
        top = round(self.scroll_y)
        for n, block in enumerate(self._layout.blocks):
            if isinstance(block, Post) and self._layout.starts[n + 1] > top:
                return block.message.seq, top - self._layout.starts[n]
        return None

    def render_line(self, y: int) -> Strip:
        line = y + round(self.scroll_y)
        n = self._layout.at(line)
        width, base = self.size.width, self.rich_style
        if n is None:
            return Strip.blank(width, base)
        block, row = self._layout.blocks[n], line - self._layout.starts[n]
        drawn = self._layout.drawn[n][row]
        gutter = Segment("  ")
        if isinstance(block, Post) and (row or block.together):  # the first row may be a gap
            if block.message.seq == self.selected:
                selected = self.get_component_rich_style("conversation--selected")
                gutter = Segment("▌ ", Style(color=selected.color))
                base += Style(bgcolor=selected.bgcolor)
            elif block.mentions_me:
                mark = self.get_component_rich_style("conversation--mention", partial=True)
                gutter = Segment("▎ ", mark)
        return Strip([gutter, *drawn]).adjust_cell_length(width).apply_style(base)

    # Where it is scrolled to ------------------------------------------------------------------

    @property
    def at_end(self) -> bool:
        return self.scroll_y >= self.max_scroll_y - 1

    def to_end(self) -> None:
        self._to(self._layout.height)

    def jump_new(self) -> None:
        """To the first line of what is new, else to the end."""
        for n, block in enumerate(self._layout.blocks):
            if isinstance(block, NewLine):
                self._to(max(0, self._layout.starts[n] - 2))
                return
        self.to_end()

    def page(self, step: int) -> None:
        """Scroll by most of a screen."""
        self._settling = False
        self._to(round(self.scroll_y) + step * max(1, self.size.height - 3))

    def _to(self, line: int) -> None:
        self._moving = True
        self.scroll_to(y=line, animate=False, force=True, immediate=True)
        self._moving = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._settling &= self._moving
        self._tell()

    def _tell(self) -> None:
        if not self._layout.blocks:
            return
        if round(self.scroll_y) == 0:
            self.post_message(self.Top())
        if self.at_end:
            self.post_message(self.End())

    # What is selected -------------------------------------------------------------------------

    def message(self) -> Message | None:
        """The selected message."""
        return next((m for m in self._messages() if m.seq == self.selected), None)

    def _messages(self) -> list[Message]:
        return [block.message for block in self._layout.blocks if isinstance(block, Post)]

    def select(self, step: int) -> None:
        """Select the next (1) or previous (-1) message; the first time, the last one in sight."""
        seqs = [message.seq for message in self._messages()]
        if not seqs:
            return
        if self.selected not in seqs:
            self.choose(seqs[-1])
            return
        at = seqs.index(self.selected) + step
        self.choose(seqs[min(max(at, 0), len(seqs) - 1)])

    def choose(self, seq: int | None) -> None:
        """Select a message and bring it into sight; None selects nothing."""
        self.selected = seq
        self._settling = False
        start = None if seq is None else self._layout.start_of(seq)
        if start is not None:
            n = self._layout.at(start)
            end = self._layout.starts[(n or 0) + 1]
            top, height = round(self.scroll_y), self.size.height
            if start < top or end - start >= height:
                self._to(start)
            elif end > top + height:
                self._to(end - height)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        n = self._layout.at(event.y + round(self.scroll_y))
        block = self._layout.blocks[n] if n is not None else None
        if isinstance(block, Post):
            self.choose(block.message.seq)
            self.post_message(self.Chosen())
