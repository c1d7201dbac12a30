"""A thread with a session that reconnects when the server is back, and raises errors of our
tree."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg

from hubbub.errors import StoreUnavailable
from hubbub.network.store.postgres.session import PostgresSession
from hubbub.waiting import settle

__all__ = ["DatabaseConnectionLost", "Link", "OwnerSuperseded", "line_of"]

P = ParamSpec("P")
T = TypeVar("T")
Work = tuple[Callable[[], Any], Callable[[Any], None]]

_SUPERSEDED = "HB001"
_TROUBLE = ("08", "40", "53", "55", "57", "58", "XX")
"""SQLSTATE classes that are not caused by the statement."""
_CLOSING_S = 5.0


class DatabaseConnectionLost(StoreUnavailable):
    """The connection ended; it is unknown whether the work in progress was committed."""


class OwnerSuperseded(StoreUnavailable):
    """This hub must never write again: another hub owns the store now, or the log is an older copy
    of the one that this hub wrote."""

    def __init__(
        self, why: str = "another hub has taken over this store, and this one writes nothing more"
    ):
        super().__init__(why)


class Link:
    """One session in one thread. `connect` opens it, initially and after each loss."""

    def __init__(self, connect: Callable[[], PostgresSession]):
        self._connect = connect
        self.runs_again = False
        """Whether work is repeated after its session was lost; only for reads."""
        self._session: PostgresSession | None = None
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        # A daemon, so that a hanging server does not keep the program from exiting.
        self._thread = threading.Thread(target=self._run, daemon=True, name="postgres")
        self._thread.start()

    async def run(
        self, function: Callable[Concatenate[PostgresSession, P], T], *args: P.args, **kw: P.kwargs
    ) -> T:
        """The result of `function(session, ...)`. Raises what it raises, `DatabaseConnectionLost`
        or `StoreUnavailable`."""
        if self._thread is None:
            raise StoreUnavailable("the store is closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def done(outcome: T | BaseException) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, answer, outcome)

        self._work.put((lambda: self._in_session(function, *args, **kw), done))
        return await answer

    def cut(self) -> None:
        """Shut down the connection, whose thread may be waiting for an unreachable server."""
        session = self._session
        with suppress(OSError, psycopg.Error):
            if session is not None:
                with socket.socket(fileno=os.dup(session.connection.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)

    async def close(self, last: Callable[[], None] | None = None) -> None:
        """End the thread, after calling `last` in it; a thread blocked by the server is
        abandoned."""
        thread, self._thread = self._thread, None
        if thread is not None:
            if last is not None:
                self._work.put((last, lambda outcome: None))
            self._work.put(None)
            await asyncio.to_thread(thread.join, _CLOSING_S)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            function, done = work
            try:
                done(function())
            except BaseException as error:  # noqa: BLE001  raised in the caller
                done(error)
            del work, function, done
        if self._session is not None:
            self._session.close()
            self._session = None

    def _in_session(
        self, function: Callable[Concatenate[PostgresSession, P], T], *args: P.args, **kw: P.kwargs
    ) -> T:
        if self._session is not None and self._session.closed:
            self._session = None
        fresh = self._session is None
        try:
            if self._session is None:
                self._session = self._connect()
            return function(self._session, *args, **kw)
        except psycopg.Error as error:
            if error.sqlstate == _SUPERSEDED:
                raise OwnerSuperseded from error
            if self._session is not None and (
                self._session.closed or isinstance(error, psycopg.InterfaceError)
            ):
                self._session.close()
                if self.runs_again and not fresh:
                    return self._in_session(function, *args, **kw)
                raise DatabaseConnectionLost(
                    f"the connection to Postgres was lost: {line_of(error)}"
                ) from error
            if (error.sqlstate or "XX")[:2] in _TROUBLE:
                raise StoreUnavailable(f"Postgres cannot work now: {line_of(error)}") from error
            raise


def line_of(error: psycopg.Error) -> str:
    """The first line of Postgres' message."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
