"""Who waits for an answer (messages that required a reply and got none), and what people are told
when turns are ended: one notice in a thread that was stopped, and in each in which somebody waited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from pydantic import JsonValue

from hubbub.ids import message_id, parse_message_id
from hubbub.network.kernel import Kernel
from hubbub.network.ports import Store
from hubbub.network.queries import LatestApprovals, TurnsById, WakeOf, WakesAt
from hubbub.network.standing_stops import BREAKER
from hubbub.network.stored import StoredStop, StoredTurn, StoredWake
from hubbub.protocol import thread_ids
from hubbub.protocol.control import Approval
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.turns import Step, TurnEnd, TurnStart

__all__ = [
    "EndReason",
    "Silence",
    "TurnNotices",
    "is_with",
    "listed",
    "said_nothing_after",
    "silences",
    "taken_up",
    "unanswered",
]

MOST_NAMED = 50
"""Ids that a notice lists; the records of the turns have all of them."""


@dataclass(frozen=True)
class EndReason:
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


class TurnNotices:
    """Posts them."""

    def __init__(self, kernel: Kernel):
        self._kernel = kernel

    def post(
        self,
        why: EndReason,
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
        why: EndReason,
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
        people = dict.fromkeys(message.said_by for _, message in waits)
        self._kernel.writes.notice(thread_id, text, details, once, to=people, unless=undone)


def listed(names: Sequence[str], most: int = 3) -> str:
    """The names as a sentence has them, at most so many."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


async def unanswered(store: Store, stored: StoredTurn, *, finished: bool = False) -> list[Message]:
    """The messages that the turn should have answered and did not.

    What it has sent counts as the answer to what had come before: all of it if it has `finished`
    by itself, else what it has sent to those who wait.
    """
    sent = [await _message(store, message_id(seq)) for seq in stored.sent if not finished]
    ids = taken_up(stored) if sent else said_nothing_after(stored)
    found = [await _awaits_reply(store, stored, id) for id in dict.fromkeys(ids)]
    return [
        message
        for message in found
        if message is not None and not any(_is_answer(each, message) for each in sent)
    ]


def _is_answer(sent: Message | None, to: Message) -> bool:
    if sent is None or sent.seq < to.seq:
        return False
    return is_with(sent, to.thread_id, to.said_by)


def is_with(said: Draft | Message, thread_id: str, person: str) -> bool:
    """Whether it is said where the person has spoken, or to the person."""
    here = thread_ids.root(said.thread_id) == thread_ids.root(thread_id)
    return here or person in said.recipients


async def _awaits_reply(store: Store, stored: StoredTurn, id: str) -> Message | None:
    """The message, if somebody waits for what the agent says to it."""
    wake = await store.read(WakeOf(stored.agent, parse_message_id(id) or 0))
    return await _message(store, id) if wake is not None and wake.reply == "required" else None


def taken_up(stored: StoredTurn) -> list[str]:
    """Ids of the messages that the turn was about, those that steered it included."""
    steps = map(Step.model_validate_json, stored.steps)
    steered = (steering.message for step in steps for steering in step.steered)
    return [*TurnStart.model_validate_json(stored.start).messages, *steered]


def said_nothing_after(stored: StoredTurn) -> list[str]:
    """The messages that the turn was about and said nothing after."""
    start = TurnStart.model_validate_json(stored.start)
    found = [] if stored.sent else list(start.messages)
    last = max(stored.sent, default=0)
    for step in map(Step.model_validate_json, stored.steps):
        found += [s.message for s in step.steered if (parse_message_id(s.message) or 0) > last]
    return list(dict.fromkeys(found))


_LATELY = 64
"""Approvals of an agent among which those of a turn that has just ended are looked for."""


class Silence(NamedTuple):
    """Nobody has said a word about a message of a person."""

    seq: int
    thread_id: str
    person: str
    ends: Sequence[tuple[str, TurnEnd]]
    """Each agent that it woke, and how its turn ended."""


async def silences(store: Store, stored: StoredTurn) -> list[Silence]:
    """The messages of people that are met with silence now that this turn has ended."""
    found = [await _silence(store, id) for id in said_nothing_after(stored)]
    return [silence for silence in found if silence is not None]


async def _silence(store: Store, message_id: str) -> Silence | None:
    message = await _message(store, message_id)
    if message is None or not message.by_person:
        return None
    delivered = await store.read(WakesAt([message.seq]))
    wakes = [wake for wake in delivered.values() if wake.reply is not None]
    if not wakes or not all(map(_is_over, wakes)):
        return None
    turns = await store.read(TurnsById(sorted({wake.taken or "" for wake in wakes})))
    ends = [(turn.agent, TurnEnd.model_validate_json(turn.end)) for turn in turns if turn.end]
    if any(end.by is not None for _, end in ends):  # a person has stepped in, and knows
        return None
    for turn in turns:
        if message_id not in said_nothing_after(turn) or await _has_asked(store, turn):
            return None
        if await _goes_on(store, message, taken_up(turn)):
            return None
    ends.sort(key=lambda end: end[0])
    return Silence(message.seq, message.thread_id, message.said_by, ends)


def _is_over(wake: StoredWake) -> bool:
    """Whether it asked for nothing, and a turn with a record is over that had taken it."""
    return wake.reply == "optional" and wake.state == "ended" and wake.taken is not None


async def _has_asked(store: Store, turn: StoredTurn) -> bool:
    approvals = map(
        Approval.model_validate_json, await store.read(LatestApprovals(turn.agent, _LATELY))
    )
    return any(approval.turn == turn.id for approval in approvals)


async def _goes_on(store: Store, message: Message, together: Iterable[str]) -> bool:
    """Whether the same person has said more there that was taken up together with the message:
    they are told of the last.
    """
    later = (id for id in together if (parse_message_id(id) or 0) > message.seq)
    for id in later:
        other = await _message(store, id)
        same = other is not None and other.thread_id == message.thread_id
        if other is not None and same and other.said_by == message.said_by:
            return True
    return False


async def _message(store: Store, id: str) -> Message | None:
    body = await store.message(parse_message_id(id) or 0)
    return None if body is None else Message.model_validate_json(body)
