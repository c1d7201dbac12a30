"""Messages of people that woke agents of which none has said a word.

Where a reply was required the person is told of each turn that gave none (`unanswered`). Where it
was optional, one agent's silence means nothing; that of all of them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hubbub.ids import parse_message_id
from hubbub.network.ports import Store
from hubbub.network.queries import LatestApprovals, TurnsById, WakesAt
from hubbub.network.services.turns.unanswered import asker, said_nothing_after, taken_up
from hubbub.network.stored import StoredTurn, StoredWake
from hubbub.protocol.control import Approval
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import TurnEnd

__all__ = ["Silence", "silences"]

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
