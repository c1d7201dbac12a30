"""The caller of an operation, as the core's handlers receive it."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.mods.operation import forbidden
from hubbub.network.limits import TokenBucket
from hubbub.network.state import NetworkState
from hubbub.network.threads import Thread
from hubbub.protocol.messages import Kind, Permission

__all__ = ["OPERATOR", "Caller"]

OPERATOR = "operator"
"""The user that runs the network. It can do and read everything, and receives no messages."""


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
        """Whether the caller may read the thread on request, without receiving its messages: a
        thread that it reads anyway, one that an agent it took over reads, and for owners also the
        agents' direct threads."""
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
            raise forbidden("only an owner of the network can do that")
