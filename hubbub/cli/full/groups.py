"""The list of threads: groups, reply threads under their parents, what is unread. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.chat.thread import Thread
from hubbub.cli.full.state import State
from hubbub.protocol import thread_ids

__all__ = ["Heading", "Row", "groups", "neighbour"]

REPLIES = 5
"""Reply threads under one parent that are listed though nothing in them is unread."""
PREVIEW = 40
"""Columns of the message that a reply thread hangs under."""


@dataclass(frozen=True)
class Heading:
    """The beginning of a group."""

    title: str


@dataclass(frozen=True)
class Row:
    """A thread in the list."""

    thread_id: str
    label: str
    depth: int = 0
    unread: int = 0
    mentions: int = 0
    draft: bool = False
    current: bool = False
    present: bool | None = None
    """Of a conversation between two: whether the other is here."""


def groups(state: State) -> list[Heading | Row]:
    """All threads in the order in which they are listed; the open one is always among them."""
    tree = _Tree(state)
    found: list[Heading | Row] = []
    for title, kinds, by_name in _GROUPS:
        members = [t for t in tree.below(None) if thread_ids.kind_of(t.id) in kinds]
        members.sort(key=lambda t: (t.id if by_name else "", -t.last_seq, t.id))
        if members:
            found.append(Heading(title))
        for thread in members:
            found += _with_replies(state, tree, thread, 0)
    return found


_GROUPS = (
    ("Network", ("broadcast", "mod"), True),
    ("Channels", ("channel",), True),
    ("Direct", ("direct",), False),
)
"""Titles, kinds of threads, and whether they are sorted by name."""


class _Tree:
    """Threads under those that they hang in: the ones that are known, the open one, and all above
    them."""

    def __init__(self, state: State):
        self._threads = dict(state.threads)
        self.wanted: set[str] = set()
        """Threads in which, or below which, something is new or open."""
        for thread_id in (*state.threads, state.current):
            above: str | None = thread_id
            new = thread_id == state.current or state.threads[thread_id].unread > 0
            while above is not None:
                self._threads.setdefault(above, Thread(above))
                if new:
                    self.wanted.add(above)
                above = thread_ids.parent(above)
        self._children: dict[str | None, list[Thread]] = {}
        for thread in self._threads.values():
            self._children.setdefault(thread_ids.parent(thread.id), []).append(thread)

    def below(self, thread_id: str | None) -> list[Thread]:
        """Those that hang in a thread; None: those that hang in none."""
        return self._children.get(thread_id, [])


def _with_replies(state: State, tree: _Tree, thread: Thread, depth: int) -> Iterator[Row]:
    yield _row(state, thread, depth)
    children = sorted(tree.below(thread.id), key=lambda t: -t.last_seq)
    for n, child in enumerate(children):
        if n < REPLIES or child.id in tree.wanted:
            yield from _with_replies(state, tree, child, depth + 1)


def _row(state: State, thread: Thread, depth: int) -> Row:
    others = [name for name in thread_ids.members_of(thread.id) if name != state.me]
    other = state.participants.get(others[0]) if len(others) == 1 and depth == 0 else None
    return Row(
        thread.id,
        _reply_label(state, thread.id) if depth else state.shown(thread.id),
        depth,
        thread.unread,
        thread.unread_mentions,
        thread.id in state.drafts and thread.id != state.current,
        thread.id == state.current,
        None if other is None else other.present,
    )


def _reply_label(state: State, thread_id: str) -> str:
    """`m42 what it says`."""
    seq = thread_id.rpartition(".t")[2]
    parent = state.threads.get(thread_ids.parent(thread_id) or "")
    said = (
        next((m for m in parent.messages.values() if m.seq == int(seq)), None) if parent else None
    )
    return f"m{seq} {clip(one_line(said.text), PREVIEW)}" if said else f"m{seq}"


def neighbour(
    rows: Iterable[Heading | Row], current: str, step: int, *, unread: bool = False
) -> str | None:
    """The thread before (-1) or after (1) the current one, from the end on again at the start;
    with `unread` the next one with something unread. None if there is no other.
    """
    listed = [row for row in rows if isinstance(row, Row)]
    here = next((n for n, row in enumerate(listed) if row.thread_id == current), 0)
    for distance in range(1, len(listed)):
        row = listed[(here + step * distance) % len(listed)]
        if row.unread or not unread:
            return row.thread_id
    return None
