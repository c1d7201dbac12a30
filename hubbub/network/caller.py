"""Who calls: what the handlers of the core are given."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.mods.operation import forbidden
from hubbub.network.limits import TokenBucket
from hubbub.network.state import NetworkState
from hubbub.network.threads import Thread
from hubbub.protocol.messages import Kind, Permission

__all__ = ["OPERATOR", "Caller"]

OPERATOR = "operator"
"""Whoever runs the network: may do and read everything, and is nobody's recipient."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The `Calling` of the core's handlers: the participant and its rights."""

    state: NetworkState
    participant: str
    kind: Kind
    bucket: TokenBucket
    owner: bool
    """Whether admin operations are allowed."""

    def may(self, permission: Permission) -> bool:
        return self.owner or permission != "admin"

    def may_look(self, thread: Thread) -> bool:
        """Whether the caller may read the thread when it asks for it: one that it reads anyway, or
        that an agent reads for which it speaks; as an owner, also what agents say among themselves.
        Nothing of that is delivered to it."""
        state = self.state
        return (
            self.participant == OPERATOR
            or state.may_read(thread, self.participant)
            or (self.owner and state.is_talk_of_agents(thread))
            or any(
                state.may_read(thread, agent) for agent in state.takeovers.held_by(self.participant)
            )
        )

    def require_owner(self) -> None:
        if not self.owner:
            raise forbidden("only an owner of the network may do that")
