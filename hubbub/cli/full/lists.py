"""The widgets on the left: threads, and below them people with what they do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from hubbub.cli.chat.colours import colour_of
from hubbub.cli.chat.text import one_line
from hubbub.cli.full.about import doing
from hubbub.cli.full.groups import Heading, Row
from hubbub.cli.full.state import State

__all__ = ["PeopleList", "ThreadList", "person_line", "row_line"]

_QUIET = Style(color="#878787")


def row_line(row: Row) -> Text:
    """`  #general 3 @1`."""
    text = Text("  " * row.depth, no_wrap=True, overflow="ellipsis")
    if row.present is not None:
        text.append("● " if row.present else "○ ", style="#00875f" if row.present else _QUIET)
    elif row.depth:
        text.append("↳ ", style=_QUIET)
    counts = (f" @{row.mentions}" if row.mentions else "") + (
        f" {row.unread}" if row.unread else ""
    )
    text.append(one_line(row.label), style="bold" if row.unread or row.current else "")
    if row.draft:
        text.append(" ✎", style=_QUIET)
    return text.append(counts, style="bold #d75f5f" if row.mentions else "bold #af8700")


def person_line(state: State, name: str, now: float) -> Text:
    """`● concierge  thinking 12 s`."""
    person = state.participants[name]
    here = person.present
    text = Text("● " if here else "○ ", style="#00875f" if here else _QUIET, no_wrap=True)
    text.overflow = "ellipsis"
    text.append(name, style=Style(color=colour_of(name), bold=here))
    if name == state.me:
        text.append(" (you)", style=_QUIET)
    elif here and (what := doing(state, person, now)):
        text.append(f"  {what}", style=_QUIET)
    return text


class ThreadList(OptionList):
    """All threads; the open one is highlighted."""

    def show(self, rows: Sequence[Heading | Row]) -> None:
        """Show these rows."""
        options: list[Option | None] = []
        for row in rows:
            if isinstance(row, Heading):
                options.append(Option(Text(row.title, style=_QUIET), disabled=True))
            else:
                options.append(Option(row_line(row), id=row.thread_id))
        _replace(self, options)
        if not self.has_focus:
            current = [row.thread_id for row in rows if isinstance(row, Row) and row.current]
            self.highlighted = self.get_option_index(current[0]) if current else None


class PeopleList(OptionList):
    """Everybody, those who are here first."""

    def show(self, state: State, now: float) -> None:
        """Show the participants of the network."""
        everybody = sorted(state.participants.values(), key=lambda p: (not p.present, p.kind, p.id))
        _replace(self, [Option(person_line(state, p.id, now), id=p.id) for p in everybody])


def _replace(shown: OptionList, options: Sequence[Option | None]) -> None:
    """New options, with the same one highlighted as far as it is still there, if anything has
    changed at all."""
    before = shown.highlighted_option
    if [(o.id, o.prompt) for o in shown.options] == [(o.id, o.prompt) for o in options if o]:
        return
    top = shown.scroll_y
    shown.set_options(options)
    ids = [option.id for option in shown.options]
    if before is not None and before.id in ids:
        shown.highlighted = ids.index(before.id)
    shown.scroll_to(y=top, animate=False)
