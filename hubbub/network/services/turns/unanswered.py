"""Who waits for an answer: the messages that required a reply and got none."""

from __future__ import annotations

from hubbub.ids import parse_message_id
from hubbub.network.ports import Store
from hubbub.network.queries import WakeOf
from hubbub.network.stored import StoredTurn
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step, TurnStart

__all__ = ["asker", "said_nothing_after", "taken_up", "unanswered"]


def asker(message: Message) -> str:
    """The person who said it, in whoever's name."""
    return message.spoken_by or message.sender_id


async def unanswered(store: Store, stored: StoredTurn) -> list[Message]:
    """The messages that the turn should have answered and did not.

    What it has sent counts as the answer to what woke it, and to what it was steered by before it
    was sent.
    """
    found = [await _awaits_reply(store, stored, id) for id in said_nothing_after(stored)]
    return [message for message in found if message is not None]


async def _awaits_reply(store: Store, stored: StoredTurn, message_id: str) -> Message | None:
    """The message, if somebody waits for what the agent says to it."""
    seq = parse_message_id(message_id) or 0
    wake = await store.read(WakeOf(stored.agent, seq))
    body = await store.message(seq)
    if wake is None or wake.reply != "required" or body is None:
        return None
    return Message.model_validate_json(body)


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
