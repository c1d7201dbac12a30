"""Work that a handler has handed on and waits for, and who gets its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from hubbub.protocol.messages import Message

__all__ = ["Delegation", "Delegations", "ends"]


def ends(message: Message, request: str) -> bool:
    """Whether the message says how that request has ended."""
    mark = message.request
    return mark is not None and mark.kind != "task" and mark.id == request


@dataclass(eq=False)
class Delegation:
    """One request; `id` is empty until the hub has said what it is called."""

    end: asyncio.Future[Message]
    id: str = ""
    early: list[tuple[Message, asyncio.Future[bool]]] = field(default_factory=list)
    """Ends of requests that came while the id was not known."""

    def take(self, message: Message) -> bool:
        """Whether the message is the request's end; then it is handed over."""
        if self.end.done() or not ends(message, self.id):
            return False
        self.end.set_result(message)
        return True


class Delegations:
    """The requests that handlers wait for."""

    def __init__(self) -> None:
        self._open: list[Delegation] = []

    @contextlib.contextmanager
    def begun(self) -> Iterator[Delegation]:
        """Within, a handler waits; what has not found its request by the end is news."""
        delegation = Delegation(asyncio.get_running_loop().create_future())
        self._open.append(delegation)
        try:
            yield delegation
        finally:
            self._open.remove(delegation)
            delegation.end.cancel()
            self._judge(delegation)

    def named(self, delegation: Delegation, id: str) -> None:
        """The hub has said what the request is called."""
        delegation.id = id
        self._judge(delegation)

    def claim(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether somebody waits for the message; the verdict may come later. None: certainly
        not.
        """
        if message.request is None or message.request.kind == "task":
            return None
        verdict: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if any(delegation.take(message) for delegation in self._open):
            verdict.set_result(True)
            return verdict
        nameless = [delegation for delegation in self._open if not delegation.id]
        for delegation in nameless:
            delegation.early.append((message, verdict))
        return verdict if nameless else None

    def _judge(self, delegation: Delegation) -> None:
        """Whose is what came early: this one's, perhaps that of another one without a name yet, or
        nobody's.
        """
        early, delegation.early = delegation.early, []
        held = [verdict for other in self._open for _, verdict in other.early]
        for message, verdict in early:
            if delegation.take(message):
                verdict.set_result(True)
            elif not verdict.done() and not any(verdict is other for other in held):
                verdict.set_result(False)
