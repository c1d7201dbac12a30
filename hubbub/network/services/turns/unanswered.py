"""Who waits for an answer: the messages that required a reply and got none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hubbub.ids import message_id, parse_message_id
from hubbub.network.ports import Store
from hubbub.network.queries import LatestApprovals, TurnsById, WakeOf, WakesAt
from hubbub.network.stored import StoredTurn, StoredWake
from hubbub.protocol import thread_ids
from hubbub.protocol.control import Approval
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step, TurnEnd, TurnStart

__all__ = ["Silence", "asker", "said_nothing_after", "silences", "taken_up", "unanswered"]


def asker(message: Message) -> str:
    """The person who said it, in whoever's name."""
    return message.spoken_by or message.sender_id


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
    here = thread_ids.root(sent.thread_id) == thread_ids.root(to.thread_id)
    return here or asker(to) in sent.recipients


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
    """Nobody has said a word about a message."""

    message: Message
    ends: Sequence[tuple[str, TurnEnd]]
    """Each agent that it woke, and how its turn ended."""


async def silences(store: Store, stored: StoredTurn) -> list[Silence]:
    """The messages of people that are met with silence now that this turn has ended."""
    found = [await _silence(store, id) for id in said_nothing_after(stored)]
    return [silence for silence in found if silence is not None]


async def _silence(store: Store, message_id: str) -> Silence | None:
    message = await _message(store, message_id)
    if message is None or not _by_person(message):
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
    return Silence(message, sorted(ends, key=lambda end: end[0]))


def _is_over(wake: StoredWake) -> bool:
    """Whether it asked for nothing, and a turn with a record is over that had taken it."""
    return wake.reply == "optional" and wake.state == "ended" and wake.taken is not None


def _by_person(message: Message) -> bool:
    return message.sender_kind == "human" or message.spoken_by is not None


async def _has_asked(store: Store, turn: StoredTurn) -> bool:
    """Whether the turn has asked a person to approve something."""
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
        if other is not None and same and asker(other) == asker(message):
            return True
    return False


async def _message(store: Store, id: str) -> Message | None:
    body = await store.message(parse_message_id(id) or 0)
    return None if body is None else Message.model_validate_json(body)
