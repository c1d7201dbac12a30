"""What whoever runs a network asks of its hub: tokens, and how it is doing."""

from __future__ import annotations

from hubbub.protocol.messages import Model, Name, Participant
from hubbub.protocol.operations import Input

__all__ = [
    "ListTokens",
    "NetworkStatus",
    "NewToken",
    "ReadStatus",
    "TokenCount",
    "TokenCounts",
    "TokenFor",
]


class TokenFor(Input):
    participant: Name


class NewToken(Model):
    participant: str
    token: str
    """Shown this once."""


class ListTokens(Input):
    pass


class TokenCount(Model):
    participant: str
    tokens: int


class TokenCounts(Model):
    participants: tuple[TokenCount, ...]
    """Those who have any, by name."""


class ReadStatus(Input):
    pass


class NetworkStatus(Model):
    """How the hub is doing."""

    network: str
    epoch: str
    head: int
    """The last position of the log."""
    sessions: int
    present: int
    """Participants who are connected."""
    participants: int
    threads: int
    channels: int
    commit_queue: int
    """Messages and changes waiting for the next commit."""
    draining: bool
    down: tuple[Participant, ...] = ()
    """Agents that do not run and will not by themselves."""
