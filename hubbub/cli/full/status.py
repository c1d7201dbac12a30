"""The line above the conversation and the one below everything. Pure."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from hubbub.cli.chat.text import one_line
from hubbub.cli.full.delivery import readers
from hubbub.cli.full.state import State
from hubbub.protocol import thread_ids

__all__ = ["header", "status"]

NAMED = 4
"""Participants who are named; more are counted."""
_QUIET = Style(color="#878787")


def header(state: State) -> Text:
    """What the open thread is called and about, and who reads it."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(state.shown(state.current), style="bold")
    top = thread_ids.root(state.current)
    channel = state.channels.get(top.partition(".")[2]) if top.startswith("channel.") else None
    if channel is not None and channel.description:
        text.append(f"  {one_line(channel.description)}", style=_QUIET)
    names = readers(state, state.current)
    if thread_ids.kind_of(state.current) == "channel" and names:
        shown = ", ".join(names) if len(names) <= NAMED else f"{len(names)} others"
        text.append(f"  with {shown}", style=_QUIET)
    return text


def status(state: State, now: float) -> Text:
    """The connection, what is unread elsewhere, who does something in this thread."""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{one_line(state.network)} as {state.me}", style=_QUIET)
    if lost := state.connection.words(now):
        text.append(f"  {one_line(lost)}", style="bold #d75f5f")
    for kind, told in state.charge.status():
        text.append(f"  {one_line(told)}", style="bold #d75f5f" if kind == "lost" else "#af8700")
    if state.charge.mine:
        text.append(" (F2)", style=_QUIET)
    if state.carrying:
        text.append(f"  {one_line(state.carrying)}", style="#af8700")
    if waiting := state.outbox.under_way:
        text.append(f"  {waiting} to send", style="#af8700")
    unread = sum(thread.unread for thread in state.threads.values())
    mentions = sum(thread.unread_mentions for thread in state.threads.values())
    if unread:
        text.append(f"  {unread} unread", style="#af8700")
    if mentions:
        text.append(f", {mentions} mention{'s' if mentions > 1 else ''} of you", style="#af8700")
    for name, doing in sorted(state.activities.in_thread(state.current, now).items()):
        text.append(f"  {name} is {doing.text}", style="italic")
    return text.append("  F1 help  F4 stop  Ctrl-K go to", style=_QUIET)
