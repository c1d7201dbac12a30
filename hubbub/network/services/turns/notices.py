"""Unanswered messages (a reply was required, none came), and the notices for ended turns: one in a
stopped thread, and one in each thread where someone was waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from pydantic import JsonValue

from hubbub.errors import LogDamaged
from hubbub.ids import message_id, parse_message_id
from hubbub.network.kernel import Kernel
from hubbub.network.ports import Store
from hubbub.network.queries import LatestApprovals, TurnsById, WakeOf, WakesAt
from hubbub.network.standing_stops import BREAKER
from hubbub.network.stored import StoredStop, StoredTurn, StoredWake
from hubbub.network.wakes import Reason
from hubbub.protocol import thread_ids
from hubbub.protocol.control import Approval
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.turns import Step, TurnEnd, TurnStart

__all__ = [
    "EndReason",
    "Silence",
    "TurnNotices",
    "handled_messages",
    "joined_names",
    "reaches",
    "shown_end",
    "silences",
    "unanswered",
    "without_response",
]

MAX_NAMED = 50
"""Ids that a notice lists; the records of the turns have all of them."""


@dataclass(frozen=True)
class EndReason:
    """Why turns are ended."""

    code: str
    """`stopped` or `taken_over`, as agents receive it."""
    scope: str
    """`turn`, `thread`, `agent`, `all`, `breaker`, `takeover` or `removed`."""
    target: str
    by: str
    reason: str
    """The reason that `by` gave, or an empty string."""
    record_reason: str
    """The reason in the turn's record."""
    at: float = 0.0
    thread_id: str | None = None
    """The thread that gets a notice even if no one is waiting there."""
    headline: str = ""
    """The text of that notice."""

    @classmethod
    def of(cls, stop: StoredStop, *, within_s: float = 0.0, again: bool = False) -> Self:
        """For a stop set by a person or the breaker; `again` if the thread already has its
        notice."""
        scope, target, by, reason, at, turns = stop
        suffix = f": {reason}" if reason else ""
        if scope == BREAKER:
            record_reason = f"stopped by the breaker: {turns} turns began in this thread"
            headline = (
                f"Stopped by the breaker: {turns} turns began in this thread within {within_s:g} s."
                f" No agent is woken here until an owner releases it: "
                f"hubbub resume thread {target}"
            )
        else:
            record_reason = f"stopped by {by}{suffix}"
            headline = (
                f"{by} stopped this thread{suffix}. No agent is woken here until an owner resumes "
                f"it: hubbub resume thread {target}"
            )
        in_thread = target if scope in ("thread", BREAKER) and not again else None
        return cls("stopped", scope, target, by, reason, record_reason, at, in_thread, headline)

    @classmethod
    def turn(cls, turn: str, agent: str, by: str, reason: str, at: float, thread_id: str) -> Self:
        """For the stop of one turn."""
        suffix = f": {reason}" if reason else ""
        headline = f"{by} stopped what {agent} was doing here{suffix}."
        record_reason = f"stopped by {by}{suffix}"
        return cls("stopped", "turn", turn, by, reason, record_reason, at, thread_id, headline)

    @classmethod
    def taken_over(cls, agent: str, by: str, at: float = 0.0) -> Self:
        """For a takeover."""
        return cls("taken_over", "takeover", agent, by, "", f"taken over by {by}", at)

    @classmethod
    def removed(cls, at: float) -> Self:
        """For agents that the network no longer has."""
        return cls("stopped", "removed", "", "hub", "", "it no longer exists", at)

    def unanswered(self, agents: Sequence[str]) -> str:
        """The notice to people whom these agents leave without an answer."""
        one, names = len(agents) == 1, joined_names(agents)
        if self.scope == "removed":
            exist, do = ("exists", "it does") if one else ("exist", "they do")
            return f"{names} no longer {exist}, so {do} not answer."
        who = "the breaker" if self.scope == BREAKER else self.by
        verb = "took over" if self.code == "taken_over" else "stopped"
        suffix = f" ({self.reason})" if self.reason else ""
        return f"{who} {verb} {names} before {'it' if one else 'they'} answered{suffix}."


class TurnNotices:
    """Posts the notices for ended turns."""

    def __init__(self, kernel: Kernel):
        self._kernel = kernel

    def post(
        self,
        why: EndReason,
        agents: Sequence[str],
        waiting: Sequence[tuple[str, Message]],
        undone: Callable[[], bool],
    ) -> None:
        """Queue the notices for the next commit.

        `waiting` pairs each stopped agent with a message that it left unanswered. `undone` returns
        whether that commit was refused, in which case the notices no longer hold.
        """
        by_thread: dict[str, list[tuple[str, Message]]] = {}
        for agent, message in waiting:
            by_thread.setdefault(message.thread_id, []).append((agent, message))
        if why.thread_id is not None:
            own = by_thread.pop(why.thread_id, [])
            self._post(why, why.thread_id, why.headline, agents, own, undone)
        for thread_id, waits in by_thread.items():
            stopped = list(dict.fromkeys(agent for agent, _ in waits))
            self._post(why, thread_id, why.unanswered(stopped), stopped, waits, undone)

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
        messages = list(dict.fromkeys(message.id for _, message in waits))[:MAX_NAMED]
        details: dict[str, JsonValue] = {
            "code": why.code,
            "scope": why.scope,
            "target": why.target,
            "by": why.by,
            "reason": why.reason,
            "agents": list[JsonValue](dict.fromkeys(agents))[:MAX_NAMED],
            "messages": list[JsonValue](messages),
        }
        # Ids can be longer than a cid allows. The time distinguishes two stops of the same target.
        once = f"{why.scope}:{why.at * 1000:.0f}:{thread.no}:{messages[:1]}:{why.target}"[:200]
        people = dict.fromkeys(message.author for _, message in waits)
        self._kernel.writes.notice(thread_id, text, details, once, to=people, unless=undone)


def joined_names(names: Sequence[str], most: int = 3) -> str:
    """At most `most` names, as prose."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def shown_end(kernel: Kernel, end: TurnEnd, thread_id: str) -> TurnEnd:
    """The end as the thread's readers see it: errors of programs, which can name addresses and
    files, are for owners and agents only."""
    if end.outcome not in ("model_error", "handler_error"):
        return end
    readers = kernel.state.readers(kernel.state.threads.ensure(thread_id), "hub")
    people = readers - kernel.state.agents
    return end if all(map(kernel.file.is_owner, people)) else end.model_copy(update={"reason": ""})


async def unanswered(store: Store, stored: StoredTurn, *, finished: bool = False) -> list[Message]:
    """The messages that the turn should have answered and did not.

    A message from the turn answers what came before it. If the turn `finished` by itself, any
    message counts; otherwise only one that reaches the person waiting.
    """
    sent = [await _message(store, message_id(seq)) for seq in stored.sent if not finished]
    ids = handled_messages(stored) if sent else without_response(stored)
    unanswered_ = [await _awaits_reply(store, stored, id) for id in dict.fromkeys(ids)]
    return [
        message
        for message in unanswered_
        if message is not None and not any(_is_answer(each, message) for each in sent)
    ]


def _is_answer(sent: Message | None, to: Message) -> bool:
    if sent is None or sent.seq < to.seq:
        return False
    return reaches(sent, to.thread_id, to.author)


def reaches(message: Draft | Message, thread_id: str, person: str) -> bool:
    """Whether the message is in the thread where the person wrote, or addressed to the person."""
    same_thread = thread_ids.root(message.thread_id) == thread_ids.root(thread_id)
    return same_thread or person in message.recipients


async def _awaits_reply(store: Store, stored: StoredTurn, id: str) -> Message | None:
    """The message, if it requires a reply from the agent."""
    wake = await store.read(WakeOf(stored.agent, parse_message_id(id) or 0))
    return await _message(store, id) if wake is not None and wake.reply == "required" else None


def handled_messages(stored: StoredTurn) -> list[str]:
    """Ids of the messages that the turn handled, including those that steered it."""
    steps = map(Step.model_validate_json, stored.steps)
    steered = (steering.message for step in steps for steering in step.steered)
    return [*TurnStart.model_validate_json(stored.start).messages, *steered]


def without_response(stored: StoredTurn) -> list[str]:
    """Ids of the messages that the turn handled without sending anything after them."""
    start = TurnStart.model_validate_json(stored.start)
    unanswered_ = [] if stored.sent else list(start.messages)
    last = max(stored.sent, default=0)
    for step in map(Step.model_validate_json, stored.steps):
        unanswered_ += [
            s.message for s in step.steered if (parse_message_id(s.message) or 0) > last
        ]
    return list(dict.fromkeys(unanswered_))


_LATELY = 64
"""An agent's latest approvals that are searched for those of a turn that just ended."""


class Silence(NamedTuple):
    """A person's message that no agent responded to."""

    seq: int
    thread_id: str
    person: str
    ends: Sequence[tuple[str, TurnEnd]]
    """Each agent that the message woke, and how its turn ended."""
    refused: Sequence[tuple[str, Reason]] = ()
    """Agents that a message which follows from it did not wake, and why."""


async def silences(store: Store, stored: StoredTurn) -> list[Silence]:
    """The people's messages that are left without a response now that this turn has ended."""
    unanswered_ = [await _silence(store, id) for id in without_response(stored)]
    return [silence for silence in unanswered_ if silence is not None]


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
    if any(end.by is not None for _, end in ends):  # a person intervened and knows already
        return None
    for turn in turns:
        if message_id not in without_response(turn) or await _has_asked(store, turn):
            return None
        if await _goes_on(store, message, handled_messages(turn)):
            return None
    ends.sort(key=lambda end: end[0])
    return Silence(message.seq, message.thread_id, message.author, ends)


def _is_over(wake: StoredWake) -> bool:
    """Whether the wake required no reply and was taken by a recorded turn that has ended."""
    return wake.reply == "optional" and wake.state == "ended" and wake.taken is not None


async def _has_asked(store: Store, turn: StoredTurn) -> bool:
    approvals = map(
        Approval.model_validate_json, await store.read(LatestApprovals(turn.agent, _LATELY))
    )
    return any(approval.turn == turn.id for approval in approvals)


async def _goes_on(store: Store, message: Message, together: Iterable[str]) -> bool:
    """Whether the turn also handled a later message of the same person in the same thread. Only
    the last of them gets a notice.
    """
    later = (id for id in together if (parse_message_id(id) or 0) > message.seq)
    for id in later:
        other = await _message(store, id)
        same = other is not None and other.thread_id == message.thread_id
        if other is not None and same and other.author == message.author:
            return True
    return False


async def _message(store: Store, id: str) -> Message | None:
    """The message; None also if it is damaged, which must not hold up the end of a turn."""
    try:
        body = await store.message(parse_message_id(id) or 0)
    except LogDamaged:
        return None
    return None if body is None else Message.model_validate_json(body)
