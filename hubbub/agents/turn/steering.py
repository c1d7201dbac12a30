"""Steering: what people say while a turn runs reaches its model with the next question.

A message that waits for its thread's turn to end (`Inbox.steering`) is shown with the next question
of that turn. It belongs to the turn as soon as the answer is recorded, and not before: whatever
happens until then, it starts a turn of its own, as if nobody had let it in.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.agents.inbox import Inbox, Woken
from hubbub.agents.prompt.escape import escaped
from hubbub.agents.prompt.render import attributes
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Steering

__all__ = ["Helm", "shown"]

_TOLD = (
    "This has come in while you were at work. Take it into account in what you do next; what you "
    "have done is done."
)


class Helm:
    """How people steer one turn. With `on` false they do not: what they say is the next turn's."""

    def __init__(self, inbox: Inbox, thread_id: str, *, on: bool):
        self._inbox, self._thread_id, self._on = inbox, thread_id, on

    def waiting(self) -> tuple[Woken, ...]:
        """What the next question shows."""
        return tuple(self._inbox.steering(self._thread_id)) if self._on else ()

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
        f"<content>{escaped(message.text)}</content> </incoming_message>"
    )
