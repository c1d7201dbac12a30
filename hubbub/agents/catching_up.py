"""An agent that begins, or is back: nothing that has accumulated wakes it before all is here."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Set

from hubbub.agents.backlog import Backlog, fill_gaps
from hubbub.agents.inbox import Inbox, StillOpen, Woken
from hubbub.client import Client
from hubbub.errors import ConnectionLost, OperationError
from hubbub.logs import get_logger
from hubbub.protocol.frames import Ready

__all__ = ["CatchingUp"]

log = get_logger(__name__)


class CatchingUp:
    """From connection to connection. `over` is given what has been held, each time that all is
    here; `spawn` runs what takes a while.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        spawn: Callable[[Coroutine[object, object, None]], object],
        over: Callable[[Iterable[Woken]], None],
    ):
        self._client, self._inbox = client, inbox
        self._spawn, self._over = spawn, over
        self._held: list[Woken] = []
        self._backlog = _nothing()
        self._fresh = True
        self.done = False
        """Whether all is here: there is nothing to hold."""

    def begin(self, ready: Ready) -> None:
        """A connection stands. What has been held and is still open stays so."""
        self._fresh = self._fresh or not ready.resumed
        self.done = False
        still = StillOpen.at(ready)
        self._held = [w for w in self._held if ready.resumed and still.has(w.message)]
        self.close()
        self._backlog = _nothing()  # what belonged to the last connection lets nothing go

    def taken_in(self, ready: Ready) -> None:
        """The inbox has what the connection began with: the rest comes now, if there is any."""
        self._backlog = Backlog(ready.cursor, ready.head, self._caught_up)
        if not self._backlog.active:
            self._let_go()

    def hold(self, woken: Woken) -> None:
        """It waits until all is here."""
        self._held.append(woken)

    def drop(self, turns: Set[str]) -> None:
        """The hub has ended these turns before they began."""
        self._held = [w for w in self._held if w.wake.turn not in turns]

    def note(self, position: int) -> None:
        """An event has come."""
        self._backlog.note(position)

    def end(self) -> None:
        """The hub says that all is sent."""
        self._backlog.end()

    def close(self) -> None:
        """Wait no longer."""
        self._backlog.close()

    def _caught_up(self) -> None:
        self._spawn(self._fill_gaps(self._backlog))

    async def _fill_gaps(self, backlog: Backlog) -> None:
        if self._fresh:
            try:
                await fill_gaps(self._client, self._inbox, backlog.cursor)
            except (OperationError, ConnectionLost) as exc:
                log.warning("own messages could not be read again", error=str(exc))
        if backlog is self._backlog:  # or another connection has brought another one
            self._let_go()

    def _let_go(self) -> None:
        self._fresh, self.done = False, True
        held, self._held = self._held, []
        self._over(held)


def _nothing() -> Backlog:
    return Backlog(0, 0, lambda: None)
