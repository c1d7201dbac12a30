"""Who is in the network."""

from __future__ import annotations

from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.protocol.operations import ListParticipants, Participants

__all__ = ["list_participants"]


@operation()
def list_participants(call: Caller, args: ListParticipants) -> Participants:
    """List everybody in the network: agents and people, what they can do, and who is present."""
    state = call.hub.state
    people = sorted(state.everybody(), key=lambda known: (known.kind, known.id))
    return Participants(participants=tuple(map(state.describe, people)))
