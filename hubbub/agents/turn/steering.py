"""Steering: what people say while a turn runs reaches its model with the next question.

A message that waits for its thread's turn to end (`Inbox.steering`) is shown with the next question
of that turn, unless its sender or the agent's config wants it otherwise (`wished`). It belongs to
the turn as soon as the answer is recorded, and not before: whatever happens until then, it starts a
turn of its own, as if nobody had let it in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hubbub.agents.inbox import Inbox, Woken, by_person
from hubbub.agents.prompt.escape import escaped
from hubbub.agents.prompt.render import attachments, attributes
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Steering

__all__ = ["Helm", "Steer", "shown", "wished"]

Steer = Literal["steer", "queue", "interrupt"]
"""What becomes of what a person says in the thread of a turn that runs."""

_TOLD = (
    "This has come in while you were at work. Take it into account in what you do next; what you "
    "have done is done."
)


def wished(message: Message, config: Steer) -> Steer:
    """What is to become of a message that comes while a turn runs: as its sender says, if that is a
    person, else as the agent's config does. What agents say waits for the next turn.
    """
    if not by_person(message):
        return "queue"
    return message.mode or config


class Helm:
    """How people steer one turn, unless they say it otherwise."""

    def __init__(self, inbox: Inbox, thread_id: str, steer: Steer):
        self._inbox, self._thread_id, self._steer = inbox, thread_id, steer

    def waiting(self) -> tuple[Woken, ...]:
        """What the next question shows."""
        return tuple(self._inbox.steering(self._thread_id, self._enters))

    def _enters(self, message: Message) -> bool:
        return wished(message, self._steer) == "steer"

    def taken(self, woken: Sequence[Woken]) -> None:
        """An answer to them is about to be recorded."""
        self._inbox.steered(self._thread_id, woken)


def shown(woken: Sequence[Woken]) -> tuple[Steering, ...]:
    """The messages as a model is shown them: as incoming ones are in the first prompt."""
    last = len(woken) - 1
    return tuple(
        Steering(
            message=w.message.id,
            reply=w.wake.reply,
            text=_element(w.message) + (f"\n\n{_TOLD}" if n == last else ""),
        )
        for n, w in enumerate(woken)
    )


def _element(message: Message) -> str:
    return (
        f"<incoming_message {attributes(message)}> "
        f"<content>{escaped(message.text)}</content>{attachments(message)} </incoming_message>"
    )
