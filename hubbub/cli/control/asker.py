"""How a person's client asks the hub, and what it knows when it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.cli.asking import Asking
from hubbub.cli.control.names import Names

if TYPE_CHECKING:
    from hubbub.cli.chat.known import Known
    from hubbub.cli.control.words import Typed
    from hubbub.client import Client

__all__ = ["Asker"]


class Asker(Asking):
    """A client, what it knows of the network, and how commands are typed there."""

    def __init__(self, client: Client, known: Known, typed: Typed, *, here: bool):
        """`here`: whether this person has a thread open, which is meant where none is named."""
        super().__init__(client)
        self.known, self.typed, self.here = known, typed, here
        self.names = Names(known)

    def shown(self, thread_id: str) -> str:
        """A thread as this person is shown it."""
        return self.known.shown(thread_id)
