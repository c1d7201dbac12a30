"""Whether a turn has read something from outside the network, as its record tells.

What comes from outside: messages that say so of themselves, results of the agent's own functions
and of MCP servers (unless the operator says otherwise), files. The first step that has read such a
thing has a note of it, which is the runtime's own: so a turn that is taken up again knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hubbub.agents.turn.recording import CallResult
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["Taint", "carriers"]

_NOTE = "has read from outside: "


class Taint:
    """Of one turn, or of one helper in it: once there, it stays.

    outside    whether something from outside has been read
    """

    def __init__(self, outside: bool = False, steps: Iterable[Step] = ()):
        """`outside`: what it began with was from outside. `steps` are those of an earlier process,
        and of turns before that it goes on with.
        """
        self.outside = outside or any(n.startswith(_NOTE) for s in steps for n in s.notes)

    def read(self, what: Iterable[str]) -> tuple[str, ...]:
        """These are from outside, and have been read; gives the notes that the step is to have."""
        names = ", ".join(dict.fromkeys(what))
        if self.outside or not names:
            return ()
        self.outside = True
        return (f"{_NOTE}{names}",)

    def results(
        self, calls: Sequence[ToolCallRecord], results: Iterable[CallResult]
    ) -> tuple[str, ...]:
        """The same for results of these calls."""
        names = {call.id: call.name for call in calls}
        return self.read(names.get(r.id, r.id) for r in results if r.outside)


def carriers(messages: Iterable[Message]) -> list[str]:
    """The ids of those messages that carry content from outside."""
    return [message.id for message in messages if message.outside]
