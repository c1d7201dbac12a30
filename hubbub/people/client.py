"""A person's client as commands use it: calls operations, and knows what names stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, JsonValue

from hubbub.errors import UserError
from hubbub.people.names import find_thread
from hubbub.people.text import one_line
from hubbub.wording import did_you_mean

if TYPE_CHECKING:
    from hubbub.client import Client
    from hubbub.people.figures import CommandSyntax
    from hubbub.people.state import ClientState
    from hubbub.protocol.control import Approval

__all__ = ["PersonClient", "Progress"]

M = TypeVar("M", bound=BaseModel)
Progress = Callable[[str], None]
"""Called with the progress of a file: `photo.png 40 %`; with nothing at its end."""


class PersonClient:
    """A client, what it knows of the network, and how commands are typed there.

    Methods that take names raise `UserError`, which says the nearest one there is.
    """

    def __init__(
        self,
        client: Client,
        state: ClientState,
        typed: CommandSyntax,
        *,
        here: bool,
        progress: Progress = lambda so_far: None,
    ):
        """`here`: whether this person has a thread open, which is meant where none is named."""
        self._client = client
        self.state, self.typed, self.here, self.progress = state, typed, here, progress
        self.next_search: tuple[str, str] | None = None
        """The last search and its cursor, if there is a next page."""
        self.digested: int | None = None
        """The position that the last digest reached."""

    @property
    def me(self) -> str:
        return self.state.me

    async def call(self, operation: str, **args: JsonValue) -> JsonValue:
        """Call an operation; arguments that are None are left out. Raises `OperationError`."""
        # `cid` is no argument of any operation: each call gets a fresh one.
        given = {key: value for key, value in args.items() if value is not None}
        return await self._client.call(operation, cid=None, **given)

    async def ask(self, shape: type[M], operation: str, /, **args: JsonValue) -> M:
        """Call an operation, and read its answer as a model."""
        return shape.model_validate(await self.call(operation, **args))

    def shown(self, thread_id: str) -> str:
        """A thread as this person is shown it."""
        return self.state.shown(thread_id)

    # Names ------------------------------------------------------------------------------------

    def is_agent(self, name: str) -> bool:
        return name.lstrip("@") in self._agents()

    def _agents(self) -> list[str]:
        return [p.id for p in self.state.participants.values() if p.kind == "agent"]

    def agent(self, name: str) -> str:
        """The id of an agent."""
        agents = self._agents()
        if (found := name.lstrip("@")) in agents:
            return found
        raise UserError(f"there is no agent {one_line(name)!r}{did_you_mean(found, agents)}")

    def thread(self, name: str) -> str:
        """The canonical id of a thread."""
        known = self.state
        return find_thread(name, known.me, {*known.participants, known.me}, known.channels)

    def approval(self, name: str, found: Sequence[Approval]) -> Approval:
        """An approval by its id, or by a part of it that is no other's."""
        exact = [approval for approval in found if approval.id == name]
        near = exact or [approval for approval in found if name in approval.id]
        if len(near) == 1:
            return near[0]
        ids = [approval.id for approval in found]
        if near:
            listed = ", ".join(approval.id for approval in near)
            raise UserError(f"{name!r} may be any of {listed}")
        raise UserError(f"there is no pending approval {one_line(name)!r}{did_you_mean(name, ids)}")
