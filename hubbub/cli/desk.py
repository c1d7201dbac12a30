"""What commands for the operations of mods have in common: who asks, where, and in which words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from hubbub.cli.asking import Asking
from hubbub.cli.joining import Target, default_person, joined, run_async
from hubbub.cli.naming import find_thread

if TYPE_CHECKING:
    from hubbub.client import Client

__all__ = ["Desk", "day_time"]

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Desk:
    """A person in a shell, and the network that is asked."""

    target: Target
    person: str

    @classmethod
    def of(cls, as_: str | None, address: str | None, token: str | None) -> Desk:
        """Raises `UserError` for what cannot be a name."""
        target = Target(address, token)
        return cls(target, default_person(target, as_))

    def ask(self, shape: type[M], name: str, *, thread: str | None = None, **args: object) -> M:
        """Join, call one operation, leave. `thread` may be in any form that people type; arguments
        that are None are left out. Raises `OperationError`, `UserError`."""
        return run_async(self._ask(shape, name, thread, args))

    async def _ask(
        self, shape: type[M], name: str, thread: str | None, args: dict[str, object]
    ) -> M:
        async with joined(self.target, self.person) as client:
            return await Asking(client).ask(shape, name, thread=self.place(client, thread), **args)

    def place(self, client: Client, thread: str | None) -> str | None:
        """The thread that is meant, as the hub calls it. Raises `UserError`."""
        if thread is None:
            return None
        people = {known.id for known in client.ready.participants}
        channels = {channel.name for channel in client.ready.channels}
        return find_thread(thread, self.person, people, channels)


def day_time(moment: datetime | None) -> str:
    """The local day and time; empty for None."""
    return "" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M")
