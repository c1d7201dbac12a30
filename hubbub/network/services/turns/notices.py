"""What people are told when turns are ended: one notice in a thread that was stopped, and in each
in which somebody waited for an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import JsonValue

from hubbub.network.kernel import Kernel
from hubbub.network.services.turns.unanswered import asker
from hubbub.network.standing_stops import BREAKER
from hubbub.network.stored import StoredStop
from hubbub.protocol.messages import Message

__all__ = ["Notices", "Why", "listed"]

MOST_NAMED = 50
"""Ids that a notice lists; the records of the turns have all of them."""


@dataclass(frozen=True)
class Why:
    """Why turns are ended."""

    code: str
    """`stopped` or `taken_over`: what agents are told."""
    scope: str
    """`turn`, `thread`, `agent`, `all`, `breaker` or `takeover`."""
    target: str
    by: str
    reason: str
    """In the words of whoever did it; empty if there are none."""
    told: str
    """As a turn's record says it."""
    at: float = 0.0
    thread_id: str | None = None
    """Where a notice is posted even if nobody waits."""
    headline: str = ""
    """That notice's text."""

    @classmethod
    def of(cls, stop: StoredStop, *, within_s: float = 0.0, again: bool = False) -> Self:
        """For a stop of people or of the breaker; `again`: the thread has had its notice."""
        scope, target, by, reason, at, turns = stop
        words = f": {reason}" if reason else ""
        if scope == BREAKER:
            told = f"stopped by the breaker: {turns} turns began in this thread"
            headline = (
                f"Stopped by the breaker: {turns} turns began in this thread within {within_s:g} s."
                f" Nobody is woken here until an owner releases it: "
                f"hubbub resume thread {target}"
            )
        else:
            told = f"stopped by {by}{words}"
            headline = (
                f"{by} has stopped this thread{words}. Nobody is woken here until an owner resumes "
                f"it: hubbub resume thread {target}"
            )
        in_thread = target if scope in ("thread", BREAKER) and not again else None
        return cls("stopped", scope, target, by, reason, told, at, in_thread, headline)

    @classmethod
    def turn(cls, turn: str, agent: str, by: str, reason: str, at: float, thread_id: str) -> Self:
        """For the stop of one turn."""
        words = f": {reason}" if reason else ""
        headline = f"{by} has stopped what {agent} was doing here{words}."
        told = f"stopped by {by}{words}"
        return cls("stopped", "turn", turn, by, reason, told, at, thread_id, headline)

    @classmethod
    def taken_over(cls, agent: str, by: str, at: float = 0.0) -> Self:
        """For a take-over."""
        return cls("taken_over", "takeover", agent, by, "", f"taken over by {by}", at)

    @property
    def verb(self) -> str:
        """What was done, between who did it and to whom."""
        return "has taken over" if self.code == "taken_over" else "has stopped"


class Notices:
    """Posts them."""

    def __init__(self, kernel: Kernel):
        self._kernel = kernel

    def post(
        self,
        why: Why,
        agents: Sequence[str],
        waiting: Sequence[tuple[str, Message]],
        undone: Callable[[], bool],
    ) -> None:
        """Queue the notices for the commit that is made next.

        `waiting` are the agents that were ended and the messages that they had not answered.
        `undone`: whether that commit was refused, so that what the notices say is not true.
        """
        by_thread: dict[str, list[tuple[str, Message]]] = {}
        for agent, message in waiting:
            by_thread.setdefault(message.thread_id, []).append((agent, message))
        if why.thread_id is not None:
            own = by_thread.pop(why.thread_id, [])
            self._post(why, why.thread_id, why.headline, agents, own, undone)
        for thread_id, waits in by_thread.items():
            stopped = list(dict.fromkeys(agent for agent, _ in waits))
            who = "the breaker" if why.scope == BREAKER else why.by
            words = f" ({why.reason})" if why.reason else ""
            they = "it" if len(stopped) == 1 else "they"
            text = f"{who} {why.verb} {listed(stopped)} before {they} answered{words}."
            self._post(why, thread_id, text, stopped, waits, undone)

    def _post(
        self,
        why: Why,
        thread_id: str,
        text: str,
        agents: Sequence[str],
        waits: Sequence[tuple[str, Message]],
        undone: Callable[[], bool],
    ) -> None:
        thread = self._kernel.state.threads.ensure(thread_id)
        messages = list(dict.fromkeys(message.id for _, message in waits))[:MOST_NAMED]
        details: dict[str, JsonValue] = {
            "code": why.code,
            "scope": why.scope,
            "target": why.target,
            "by": why.by,
            "reason": why.reason,
            "agents": list[JsonValue](dict.fromkeys(agents))[:MOST_NAMED],
            "messages": list[JsonValue](messages),
        }
        # Ids may be long, a cid may not: the moment tells two stops of the same apart.
        once = f"{why.scope}:{why.at * 1000:.0f}:{thread.no}:{messages[:1]}:{why.target}"[:200]
        people = dict.fromkeys(asker(message) for _, message in waits)
        self._kernel.writes.notice(thread_id, text, details, once, to=people, unless=undone)


def listed(names: Sequence[str], most: int = 3) -> str:
    """The names as a sentence has them, at most so many."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
