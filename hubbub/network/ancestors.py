"""Causes of messages: recent ones from memory, earlier ones from the store."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hubbub.ids import interaction_id
from hubbub.network.log import Entry, Log
from hubbub.network.ports import Store
from hubbub.network.routing import Router
from hubbub.network.state import NetworkState
from hubbub.network.trace_context import Ancestor

__all__ = ["Ancestors"]

REMEMBERED = 4096
"""Messages in memory; a cause is nearly always a recent one."""

Slot = tuple[int, int, str, str | None, int, int, bool]
"""Position, thread number, sender, interaction (None if the message opened it), hop, hop limit, and
whether it is from outside. A tuple, as every message is stored and few are looked up."""


class Ancestors:
    """Looks up the data of a message that is named as a cause."""

    def __init__(self, store: Store, log: Log, state: NetworkState, router: Router):
        self._store, self._log, self._state, self._router = store, log, state, router
        self._ring: list[Slot] = [(0, 0, "", None, 0, 0, False)] * REMEMBERED

    def committed(self, entries: Sequence[Entry]) -> None:
        """Add committed entries, which can be named as causes from now on."""
        ring = self._ring
        for e in entries:
            draft = e.draft
            ring[e.seq % REMEMBERED] = (
                e.seq,
                e.thread.no,
                draft.sender_id,
                e.interaction,
                e.hop,
                e.hop_limit,
                draft.untrusted,
            )

    def recent(self, seq: int) -> Ancestor | None:
        """The message at `seq`, if it is in memory."""
        at, thread_no, sender, interaction, hop, limit, untrusted = self._ring[seq % REMEMBERED]
        if at != seq or seq == 0:
            return None
        return Ancestor(
            thread_no, sender, interaction or interaction_id(seq), hop, limit, untrusted
        )

    async def ancestor(self, seq: int) -> Ancestor | None:
        """The message at `seq`; None if there is none. Raises `StoreUnavailable`."""
        recent = self.recent(seq)
        if recent is not None:
            return recent
        body = await self._store.message(seq) if seq <= self._log.head else None
        if body is None:
            return None
        message = json.loads(body)
        opened = int(message["interaction_id"][1:])
        opener = message if opened == seq else json.loads(await self._store.message(opened) or body)
        by_person = opener["sender_kind"] == "human" or "sent_by" in opener
        by_person = by_person or self._state.set_by_person(opener.get("timer_of"))
        limit = self._router.hop_limit("human" if by_person else opener["sender_kind"])
        thread = self._state.threads.ensure(message["thread_id"])
        return Ancestor(
            thread.no,
            message["sender_id"],
            message["interaction_id"],
            message["hop"],
            limit,
            message.get("untrusted", False),
        )
