"""How a person's client asks the hub, and what it knows when it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from hubbub.cli.control.names import Names

if TYPE_CHECKING:
    from hubbub.cli.chat.known import Known
    from hubbub.cli.control.words import Typed
    from hubbub.client import Client

__all__ = ["Asker"]

M = TypeVar("M", bound=BaseModel)


class Asker:
    """A client, what it knows of the network, and how commands are typed there."""

    def __init__(self, client: Client, known: Known, typed: Typed, *, here: bool):
        """`here`: whether this person has a thread open, which is meant where none is named."""
        self.known, self.typed, self.here = known, typed, here
        self.names = Names(known)
        self._client = client

    async def ask(self, shape: type[M], name: str, /, **args: object) -> M:
        """Call an operation; arguments that are None are left out. Raises `OperationError`."""
        # `cid` is no argument of any operation: each call gets a fresh one.
        given = {key: value for key, value in args.items() if value is not None}
        return shape.model_validate(await self._client.call(name, cid=None, **given))

    def shown(self, thread_id: str) -> str:
        """A thread as this person is shown it."""
        return self.known.shown(thread_id)
