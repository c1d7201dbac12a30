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

__all__ = ["Backlog", "CatchUp"]

# The backlog: events that accumulated while the agent was away.


QUIET_S = 0.2
"""Seconds without an event after which the backlog counts as complete, in case the hub does not say
so."""
MOST_GAPS = 50
"""Threads that are checked for gaps and read again."""


class Backlog:
    """Waits for the events between `ready.cursor` and `ready.head`.

    The hub signals the end (`caught_up`); signals may be dropped, so silence counts as the end,
    too. `over` is called once.
    """

    def __init__(self, cursor: int, head: int, over: Callable[[], None]):
        self.active = cursor < head
        self.cursor = cursor
        self._head, self._over = head, over
        self._timer: asyncio.TimerHandle | None = None
        if self.active:
            self.note(cursor)

    def note(self, position: int) -> None:
        """An event has arrived."""
        if not self.active:
            return
        self.close()
        if position >= self._head:
            self.end()
        else:
            self._timer = asyncio.get_running_loop().call_later(QUIET_S, self.end)

    def end(self) -> None:
        """The backlog is complete."""
        self.close()
        if self.active:
            self.active = False
            self._over()

    def close(self) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def fill_gaps(client: Client, inbox: Inbox, after: int) -> None:
    """Read the agent's own messages sent after `after`, which the hub does not deliver to their
    sender.

    Positions within a thread have no gaps, so missing messages are noticed. Raises
    `OperationError`.
    """
    found = ThreadList.model_validate(await client.call("list_threads", limit=MOST_GAPS))
    for summary in found.threads:
        thread = inbox.thread(summary.id)
        if summary.last_seq > after and not (thread and thread.is_complete(summary.head, after)):
            page = await client.call("read_thread", thread=summary.id, limit=MAX_THREAD_MESSAGES)
            inbox.note(*ThreadPage.model_validate(page).messages)


log = get_logger(__name__)


class CatchUp:
    """Holds wakes back from one connection to the next. `over` receives the held wakes whenever the
    backlog is complete; `spawn` runs background work.
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
        self._backlog = _no_backlog()
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
        self._backlog = _no_backlog()  # the timer of the last connection must not release anything

    def expect_events(self, ready: Ready) -> None:
        """The inbox has taken in the connection's state; wait for further events, if any."""
        self._backlog = Backlog(ready.cursor, ready.head, self._caught_up)
        if not self._backlog.active:
            self._release()

    def hold(self, woken: WakingMessage) -> None:
        """Hold this wake until the backlog is complete."""
        self._held.append(woken)

    def drop(self, turns: Set[str]) -> None:
        """Forget wakes whose turns the hub has ended."""
        self._held = [w for w in self._held if w.wake.turn not in turns]

    def note(self, position: int) -> None:
        """An event has arrived."""
        self._backlog.note(position)

    def end(self) -> None:
        """The hub says that everything was sent."""
        self._backlog.end()

    def close(self) -> None:
        """Stop waiting."""
        self._backlog.close()

    def _caught_up(self) -> None:
        self._spawn(self._fill_gaps(self._backlog))

    async def _fill_gaps(self, backlog: Backlog) -> None:
        if self._fresh:
            try:
                await fill_gaps(self._client, self._inbox, backlog.cursor)
            except (OperationError, ConnectionLost) as exc:
                log.warning("own messages could not be read again", error=str(exc))
        if backlog is self._backlog:  # otherwise a newer connection has replaced it
            self._release()

    def _release(self) -> None:
        self._fresh, self.done = False, True
        held, self._held = self._held, []
        self._over(held)


def _no_backlog() -> Backlog:
    return Backlog(0, 0, lambda: None)
