"""Catching up after a start or reconnect: no wake starts a turn before the backlog is complete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Set

from hubbub.agents.inbox import MAX_THREAD_MESSAGES, Inbox, StillOpenWakes, WakingMessage
from hubbub.client import Client
from hubbub.errors import ConnectionLost, OperationError
from hubbub.logs import get_logger
from hubbub.protocol.frames import Ready
from hubbub.protocol.operations import ThreadList, ThreadPage

__all__ = ["CatchUp"]

log = get_logger(__name__)

QUIET_S = 0.2
"""Seconds without an event after which the backlog counts as complete, in case the hub does not say
so."""
MOST_GAPS = 50
"""Threads that are checked for gaps and read again."""


async def fill_gaps(client: Client, inbox: Inbox, after: int) -> None:
    """Read the agent's own messages sent after `after`, which the hub does not deliver to their
    sender.

    Positions within a thread have no gaps, so missing messages are noticed. Raises
    `OperationError`.
    """
    listed = ThreadList.model_validate(await client.call("list_threads", limit=MOST_GAPS))
    for summary in listed.threads:
        thread = inbox.thread(summary.id)
        if summary.last_seq > after and not (thread and thread.is_complete(summary.head, after)):
            page = await client.call("read_thread", thread=summary.id, limit=MAX_THREAD_MESSAGES)
            inbox.note(*ThreadPage.model_validate(page).messages)


class CatchUp:
    """Holds wakes back from one connection to the next, until the events between `ready.cursor` and
    `ready.head` are here.

    The hub signals the end (`caught_up`); signals may be dropped, so silence counts as the end,
    too. `over` receives the held wakes then; `spawn` runs background work.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        spawn: Callable[[Coroutine[object, object, None]], object],
        over: Callable[[Iterable[WakingMessage]], None],
    ):
        self._client, self._inbox = client, inbox
        self._spawn, self._over = spawn, over
        self._held: list[WakingMessage] = []
        self._ready: Ready | None = None
        """What the connection began with, once the inbox has taken it in."""
        self._timer: asyncio.TimerHandle | None = None
        """Runs while further events are expected."""
        self._fresh = True
        self.done = False
        """Whether the backlog is complete, so that nothing has to be held."""

    def begin(self, ready: Ready) -> None:
        """A connection was established. Held wakes that are still open stay held."""
        self._fresh = self._fresh or not ready.resumed
        self.done = False
        still = StillOpenWakes.at(ready)
        self._held = [w for w in self._held if ready.resumed and still.has(w.message)]
        self.close()
        self._ready = None  # what the last connection has begun must not release anything

    def expect_events(self, ready: Ready) -> None:
        """The inbox has taken in the connection's state; wait for further events, if any."""
        self._ready = ready
        if ready.cursor < ready.head:
            self._wait()
        else:
            self._release()

    def hold(self, woken: WakingMessage) -> None:
        """Hold this wake until the backlog is complete."""
        self._held.append(woken)

    def drop(self, turns: Set[str]) -> None:
        """Forget wakes whose turns the hub has ended."""
        self._held = [w for w in self._held if w.wake.turn not in turns]

    def note(self, position: int) -> None:
        """An event has arrived."""
        if self._timer is None or self._ready is None:
            return
        if position >= self._ready.head:
            self.end()
        else:
            self._wait()

    def end(self) -> None:
        """Everything was sent."""
        if self._timer is not None and self._ready is not None:
            self.close()
            self._spawn(self._fill_gaps(self._ready))

    def close(self) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self.close()
        self._timer = asyncio.get_running_loop().call_later(QUIET_S, self.end)

    async def _fill_gaps(self, ready: Ready) -> None:
        if self._fresh:
            try:
                await fill_gaps(self._client, self._inbox, ready.cursor)
            except (OperationError, ConnectionLost) as exc:
                log.warning("own messages could not be read again", error=str(exc))
        if ready is self._ready:  # otherwise a newer connection has replaced it
            self._release()

    def _release(self) -> None:
        self._fresh, self.done = False, True
        held, self._held = self._held, []
        self._over(held)
