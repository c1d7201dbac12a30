"""Threads and memberships in the hub's memory: numbering, and who receives which messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from hubbub.protocol import thread_ids
from hubbub.protocol.messages import MessageType

__all__ = ["Members", "Thread", "ThreadMarks", "Threads"]


ThreadMarks = tuple[int, int, str | None, bool]
"""`tseq`, `last_seq`, `last_agent` and `remembered` of a thread."""


class _Others(dict[str, tuple[str, ...]]):
    """Computed on first access, so that later messages pay only a lookup."""

    def __init__(self, members: frozenset[str]):
        self._members = members

    def __missing__(self, speaker: str) -> tuple[str, ...]:
        others = self[speaker] = tuple(sorted(self._members - {speaker}))
        return others


class Thread:
    """One thread. Its numbers advance when a batch is numbered, and revert if the commit fails."""

    __slots__ = (
        "id",
        "is_reply",
        "last_agent",
        "last_seq",
        "members",
        "no",
        "others",
        "remembered",
        "scope",
        "stored",
        "tseq",
        "type",
    )

    def __init__(self, no: int, id: str, scope: int | None, *, stored: bool):
        self.no, self.id = no, id
        self.type: MessageType = thread_ids.kind_of(id)
        self.members = frozenset(thread_ids.members_of(id))
        """The participants of a direct thread."""
        self.others: Mapping[str, tuple[str, ...]] = _Others(self.members)
        """The other participants of a direct thread, sorted, by speaker; empty for other kinds."""
        self.scope = scope
        """Number of the root thread whose members receive its messages; None if direct."""
        self.tseq = 0
        self.last_seq = 0
        self.is_reply = thread_ids.parent(id) is not None
        self.last_agent: str | None = None
        """The last agent to post in the thread."""
        self.remembered = True
        """Whether `last_agent` is loaded; False for a thread from an earlier run."""
        self.stored = stored

    def __repr__(self) -> str:
        return f"Thread({self.id!r}, tseq={self.tseq})"


class Threads:
    """All threads of the network, by id and by number."""

    def __init__(self) -> None:
        self.by_id: dict[str, Thread] = {}
        """Read only."""
        self._by_no: dict[int, Thread] = {}
        self._direct: dict[str, set[Thread]] = {}
        self._in_scope: dict[int, set[Thread]] = {}
        self._last_no = 0

    def __len__(self) -> int:
        return len(self.by_id)

    def get(self, thread_id: str) -> Thread | None:
        return self.by_id.get(thread_id)

    def by_no(self, no: int) -> Thread:
        return self._by_no[no]

    def restore(self, no: int, thread_id: str, tseq: int, last_seq: int) -> Thread:
        """Add a stored thread. Roots must come before their reply threads."""
        thread = self._add(no, thread_id, stored=True)
        thread.tseq, thread.last_seq = tseq, last_seq
        thread.remembered = False
        return thread

    def ensure(self, thread_id: str) -> Thread:
        """The thread, created if necessary along with its root."""
        thread = self.by_id.get(thread_id)
        if thread is None:
            root = thread_ids.root(thread_id)
            if root != thread_id:
                self.ensure(root)
            thread = self._add(self._last_no + 1, thread_id, stored=False)
        return thread

    def _add(self, no: int, thread_id: str, *, stored: bool) -> Thread:
        root = thread_ids.root(thread_id)
        direct = thread_ids.kind_of(thread_id) == "direct"
        scope = None if direct else (no if root == thread_id else self.by_id[root].no)
        thread = Thread(no, thread_id, scope, stored=stored)
        self.by_id[thread_id] = self._by_no[no] = thread
        # Numbers can have gaps: a thread whose only message was refused is never stored.
        self._last_no = max(self._last_no, no)
        for member in thread.members:
            self._direct.setdefault(member, set()).add(thread)
        if scope is not None:
            self._in_scope.setdefault(scope, set()).add(thread)
        return thread

    def in_scope(self, scope: int) -> Iterable[Thread]:
        """The threads whose messages reach the members of a scope."""
        return self._in_scope.get(scope, ())

    def visible(self, participant: str, scopes: Iterable[int]) -> Iterator[Thread]:
        """The threads that a participant with these memberships can read."""
        yield from self._direct.get(participant, ())
        for scope in scopes:
            yield from self.in_scope(scope)


class Members:
    """The members of each scope, with the seq from which they receive its messages."""

    def __init__(self) -> None:
        self._since: dict[int, dict[str, int]] = {}
        self._scopes: dict[str, set[int]] = {}
        self.changed: Callable[[str, int, bool], object] = lambda participant, scope, joined: None
        """Called with participant, scope, and whether it joined or left."""

    def join(self, participant: str, scope: int, since: int) -> None:
        self._since.setdefault(scope, {}).setdefault(participant, since)
        self._scopes.setdefault(participant, set()).add(scope)
        self.changed(participant, scope, True)

    def leave(self, participant: str, scope: int) -> None:
        self._since.get(scope, {}).pop(participant, None)
        self._scopes.get(participant, set()).discard(scope)
        self.changed(participant, scope, False)

    def of(self, scope: int) -> Set[str]:
        """The members of a scope."""
        return self._since.get(scope, {}).keys()

    def since(self, participant: str, scope: int) -> int | None:
        """Messages after this seq reach the participant; None if it is not a member."""
        return self._since.get(scope, {}).get(participant)

    def scopes(self, participant: str) -> Set[int]:
        return self._scopes.get(participant, set())
