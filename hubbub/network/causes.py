"""The messages that others descend from: the last ones from memory, earlier ones from the store."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hubbub.network.log import Entry, Log
from hubbub.network.ports import Store
from hubbub.network.routing import Router
from hubbub.network.state import NetworkState
from hubbub.network.trace_context import Ancestor, Recent

__all__ = ["Causes"]


class Causes:
    """Finds what must be known of a message to name it as a cause."""

    def __init__(self, store: Store, log: Log, state: NetworkState, router: Router):
        self._store, self._log, self._state, self._router = store, log, state, router
        self._recent = Recent()

    def committed(self, entries: Sequence[Entry]) -> None:
        """The entries are durable, and may be named from now on."""
        self._recent.add(
            [
                (
                    e.seq,
                    e.thread.no,
                    e.draft.sender_id,
                    e.interaction,
                    e.hop,
                    e.hop_limit,
                    e.draft.outside,
                )
                for e in entries
            ]
        )

    def recent(self, seq: int) -> Ancestor | None:
        """The message at `seq`, if it is among the last ones."""
        return self._recent.get(seq)

    async def ancestor(self, seq: int) -> Ancestor | None:
        """The message at `seq`; None: there is none. Raises `StoreUnavailable`."""
        known = self._recent.get(seq)
        if known is not None:
            return known
        body = await self._store.message(seq) if seq <= self._log.head else None
        if body is None:
            return None
        message = json.loads(body)
        opened = int(message["interaction_id"][1:])
        opener = message if opened == seq else json.loads(await self._store.message(opened) or body)
        by_person = opener["sender_kind"] == "human" or "spoken_by" in opener
        by_person = by_person or self._state.set_by_person(opener.get("timer_of"))
        limit = self._router.hop_limit("human" if by_person else opener["sender_kind"])
        thread = self._state.threads.ensure(message["thread_id"])
        return Ancestor(
            thread.no,
            message["sender_id"],
            message["interaction_id"],
            message["hop"],
            limit,
            message.get("outside", False),
        )
