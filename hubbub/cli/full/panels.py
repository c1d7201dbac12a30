"""Which side panels are open, and the one on the right."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widgets import Static

__all__ = ["NARROW", "WIDE", "DetailsPanel", "Panels"]

NARROW = 90
"""Columns below which the panels fold away; opened, they lie over the conversation."""
WIDE = 130
"""Columns from which there is room for the details beside the rest."""


@dataclass
class Panels:
    """What the person has opened or closed, and what the width allows. Pure."""

    width: int = 0
    left: bool = True
    right: bool = False

    def resized(self, width: int) -> None:
        """The terminal has this many columns now."""
        if width < NARROW <= self.width or (self.width == 0 and width < NARROW):
            self.left = self.right = False
        elif self.width < NARROW <= width:
            self.left = True
        self.width = width

    def toggle_left(self) -> None:
        self.left = not self.left
        if self.left and self.width < NARROW:
            self.right = False

    def toggle_right(self) -> None:
        self.right = not self.right
        if self.right and self.width < WIDE:
            self.left = self.left and self.width >= NARROW

    def chosen(self) -> None:
        """A thread was chosen: what lies over the conversation goes away."""
        if self.width < NARROW:
            self.left = self.right = False

    def close(self) -> bool:
        """Close what lies nearest; whether there was anything to close."""
        if self.right:
            self.right = False
        elif self.left and self.width < NARROW:
            self.left = False
        else:
            return False
        return True


class DetailsPanel(VerticalScroll):
    """Details of what is selected."""

    DEFAULT_CSS = """
    DetailsPanel { width: 44; padding: 0 1; border-left: solid $panel; scrollbar-size-vertical: 1; }
    """

    def __init__(self) -> None:
        super().__init__(id="right")
        self._told = Static("Nothing is selected.")
        self._shown = Text()

    def compose(self) -> list[Static]:
        return [self._told]

    def show(self, text: Text) -> None:
        """Show this, from its beginning if it is about something else than before."""
        before, self._shown = self._shown, text
        if text == before:
            return
        self._told.update(text)
        if text.plain.partition("\n")[0] != before.plain.partition("\n")[0]:
            self.scroll_home(animate=False)
