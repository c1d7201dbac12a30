"""Agents that do not run and will not by themselves: their launcher has given them up.

Who waits for one is told, and who writes to it later; what they said waits all the same, and is
answered when it runs again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from pydantic import JsonValue

from hubbub.network.log import Entry
from hubbub.network.queries import PendingWakes
from hubbub.network.service import Service
from hubbub.network.services.turns.unanswered import asker
from hubbub.network.session import Session
from hubbub.protocol.messages import Message

__all__ = ["DownService"]


class DownService(Service):
    """Which they are, why, and who is told."""

    def put(self, agents: Sequence[str], reason: str) -> None:
        """These run no more; `reason` reads on from their name."""
        gone = [agent for agent in agents if agent not in self.state.presence]
        self.state.down.update(dict.fromkeys(gone, reason))
        self.kernel.notifications.down_changed(gone)
        for agent in gone:
            self.kernel.spawn(self.kernel.until_readable(partial(self._tell, agent, reason)))

    def joined(self, session: Session) -> None:
        """An agent runs again, whoever has started it."""
        if not session.is_person:
            self.state.down.pop(session.participant, None)

    def committed(self, entries: Sequence[Entry]) -> None:
        """Who waits for an agent that does not run is told."""
        for entry in entries if self.state.down else ():
            self._committed(entry)

    def _committed(self, entry: Entry) -> None:
        for agent, _, reply in entry.decisions:
            reason = self.state.down.get(agent) if reply == "required" else None
            if reason is not None:
                seq, draft = entry.seq, entry.draft
                self._notice(agent, reason, entry.thread.id, [f"m{seq}"], seq, [draft.said_by])

    async def _tell(self, agent: str, reason: str) -> None:
        """Tell those whose messages wait at the agent, once in each thread."""
        rows = await self.store.read(PendingWakes(agent, self.kernel.log.head))
        if agent not in self.state.down:
            return  # it runs again
        waiting = defaultdict[str, list[Message]](list)
        for row in rows:
            if row.reply == "required":
                message = Message.model_validate_json(row.body)
                waiting[message.thread_id].append(message)
        for thread_id, messages in waiting.items():
            ids, people = [m.id for m in messages], list(map(asker, messages))
            self._notice(agent, reason, thread_id, ids, messages[0].seq, people)

    def _notice(
        self,
        agent: str,
        reason: str,
        thread_id: str,
        messages: Sequence[str],
        seq: int,
        people: Sequence[str],
    ) -> None:
        text = f"{agent} {reason}. What it was asked waits until somebody starts it again."
        details: dict[str, JsonValue] = {
            "code": "agent_down",
            "agent": agent,
            "messages": list[JsonValue](messages),
        }
        once = f"down:{seq}:{agent}"[:200]
        to = dict.fromkeys(people)
        self.kernel.writes.notice(thread_id, text, details, once, to=to)
