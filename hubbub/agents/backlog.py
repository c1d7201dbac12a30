"""What had accumulated while an agent was away: when all of it is here, and what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hubbub.agents.inbox import KEPT_MESSAGES, Inbox
from hubbub.client import Client
from hubbub.protocol.operations import ThreadPage, Threads

__all__ = ["Backlog", "fill_gaps"]

QUIET_S = 0.2
"""Seconds without an event after which the backlog counts as over, should the hub not say so."""
MOST_GAPS = 50
"""Threads that are read again: as many as a prompt shows, unless its agent wants more."""


class Backlog:
    """The wait for the events between `ready.cursor` and `ready.head`.

    The hub says when it is over (`caught_up`); signals may be dropped, so silence counts, too.
    `over` is called once, when it is.
    """

    def __init__(self, cursor: int, head: int, over: Callable[[], None]):
        self.active = cursor < head
        self.cursor = cursor
        self._head, self._over = head, over
        self._timer: asyncio.TimerHandle | None = None
        if self.active:
            self.note(cursor)

    def note(self, position: int) -> None:
        """An event has come."""
        if not self.active:
            return
        self.close()
        if position >= self._head:
            self.end()
        else:
            self._timer = asyncio.get_running_loop().call_later(QUIET_S, self.end)

    def end(self) -> None:
        """All is here."""
        self.close()
        if self.active:
            self.active = False
            self._over()

    def close(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def fill_gaps(client: Client, inbox: Inbox, after: int) -> None:
    """Read what the agent itself had said after `after`: the hub sends it to the others only.

    Positions in a thread are dense, so that what is missing shows. Raises `OperationError`.
    """
    told = Threads.model_validate(await client.call("list_threads", limit=MOST_GAPS))
    for summary in told.threads:
        thread = inbox.thread(summary.id)
        if summary.last_seq > after and not (thread and thread.is_whole(summary.head, after)):
            page = await client.call("read_thread", thread=summary.id, limit=KEPT_MESSAGES)
            inbox.note(*ThreadPage.model_validate(page).messages)
