"""How far one's own message has come, in a few words. Pure."""

from __future__ import annotations

from hubbub.cli.full.state import State
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message

__all__ = ["delivery", "readers"]

NAMED = 3
"""Participants who are named; more are counted."""


def readers(state: State, thread_id: str) -> tuple[str, ...]:
    """Who else is told what is said in a thread, as far as this client knows."""
    top = thread_ids.root(thread_id)
    match thread_ids.kind_of(thread_id):
        case "direct":
            found = thread_ids.members_of(top)
        case "channel":
            channel = state.channels.get(top.partition(".")[2])
            found = channel.members if channel is not None else ()
        case _:
            found = tuple(sorted(state.participants))
    return tuple(name for name in found if name != state.me)


def delivery(state: State, message: Message) -> str:
    """`✓` stored, `✓✓ bob` delivered to bob, `✓ waits for bob` who is away."""
    names = readers(state, message.thread_id)
    have = [name for name in names if state.delivered.has(name, message.seq)]
    if have:
        return f"✓✓ {_listed(have, len(names))}"
    people = state.participants
    away = [name for name in names if name in people and not people[name].present]
    if thread_ids.kind_of(message.thread_id) == "direct" and away:
        return f"✓ waits for {_listed(away, len(away))}"
    return "✓"


def _listed(names: list[str], of: int) -> str:
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{len(names)} of {of}"
