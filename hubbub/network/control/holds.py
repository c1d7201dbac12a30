"""What people have stopped or taken over, as the judge asks for it."""

from __future__ import annotations

from typing import Protocol

from hubbub.network.wakes import Reason

__all__ = ["Holds"]


class Holds(Protocol):
    """Whoever knows what is stopped, latched or taken over."""

    @property
    def any(self) -> bool:
        """Whether anything is: asked for every message."""
        ...

    def of(self, agent: str, thread_id: str) -> Reason | None:
        """Why nothing may wake the agent in the thread; None if nothing is in the way."""
        ...

    def refuse(self, agent: str, thread_id: str) -> None:
        """Raises `OperationError` if nothing may be done by the agent in the thread."""
        ...
