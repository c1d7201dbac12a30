"""A state of the full-screen client for its tests, and looks at what it draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC

from rich.segment import Segment

from hubbub.cli.full.draw import Painter
from hubbub.cli.full.state import State
from hubbub.cli.full.timeline import Block
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Message, ThreadSummary
from tests.unit.cli.chatting import event, ready


def state_of(*threads: ThreadSummary, current: str = "channel.general") -> State:
    """Ann's state in a network with bob, concierge, #general (joined, open) and #desk (not)."""
    state = State("ann")
    state.apply(ready(*threads), 0)
    state.open(current)
    return state


def arrive(state: State, *messages: Message) -> State:
    """The messages arrive as events."""
    for message in messages:
        state.apply(event(message), 0)
    return state


def signal(type: str, data: object, sender: str = "hub", thread: str | None = None) -> Signal:
    return Signal.model_validate(
        {"type": type, "data": data, "sender": sender, "thread_id": thread}
    )


def text_of(lines: Iterable[Sequence[Segment]]) -> list[str]:
    """Drawn lines as plain text, without the padding."""
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def drawn(block: Block, width: int = 60, *, dark: bool = True) -> list[str]:
    """A block as ann sees it."""
    return text_of(Painter("ann", UTC, dark=dark).lines(block, width))
