"""A person's client as commands use it: it calls operations and resolves names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, JsonValue

from hubbub.errors import UserError
from hubbub.people.names import find_thread
from hubbub.people.text import one_line
from hubbub.protocol.operations import ThreadList
from hubbub.wording import did_you_mean

if TYPE_CHECKING:
    from hubbub.client import Client
    from hubbub.people.figures import CommandSyntax
    from hubbub.people.state import ClientState
    from hubbub.protocol.control import Approval
    from hubbub.protocol.messages import Kind, ThreadSummary

__all__ = ["PersonClient", "Progress"]

MOST_REPLIES = 1000
"""Threads to fetch with reply threads among them."""
M = TypeVar("M", bound=BaseModel)
Progress = Callable[[str], None]
"""Called with the progress of a transfer: `photo.png 40 %`; with an empty text at its end."""


class PersonClient:
    """A client, its view of the network, and the syntax of its commands.

    Methods that take names raise `UserError` with the nearest match.
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
        """`here`: whether this person has a thread open, which is the default thread."""
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
        # `cid` is not an argument of an operation: each call gets a new one.
        given = {key: value for key, value in args.items() if value is not None}
        return await self._client.call(operation, cid=None, **given)

    async def ask(self, shape: type[M], operation: str, /, **args: JsonValue) -> M:
        """Call an operation and validate its result as a model."""
        return shape.model_validate(await self.call(operation, **args))

    async def threads_before(self, position: int) -> list[ThreadSummary]:
        """The threads whose last message is before this position, most recently active first;
        beyond `MOST_REPLIES` threads without reply threads."""
        threads: list[ThreadSummary] = []
        more = True
        while more:
            few = len(threads) >= MOST_REPLIES
            args = {"before": position, "limit": 200, "without_replies": few}
            page = await self.ask(ThreadList, "list_threads", **args)
            threads += page.threads
            if more := page.more and bool(page.threads):
                position = threads[-1].last_seq
        return threads

    def shown(self, thread_id: str) -> str:
        """A thread's name for this person."""
        return self.state.shown(thread_id)

    # Names ------------------------------------------------------------------------------------

    def is_agent(self, name: str) -> bool:
        return name.lstrip("@") in self._of_kinds("agent")

    def _of_kinds(self, *kinds: Kind) -> list[str]:
        return [p.id for p in self.state.participants.values() if p.kind in kinds]

    def agent(self, name: str, *, or_service: bool = False) -> str:
        """The id of an agent, or with `or_service` of a service, such as a bridge."""
        agents = self._of_kinds("agent", "service") if or_service else self._of_kinds("agent")
        if (agent := name.lstrip("@")) in agents:
            return agent
        raise UserError(f"there is no agent {one_line(name)!r}{did_you_mean(agent, agents)}")

    def thread(self, name: str) -> str:
        """The canonical id of a thread."""
        state = self.state
        return find_thread(name, state.me, state.names, state.channels)

    def approval(self, name: str, approvals: Sequence[Approval]) -> Approval:
        """An approval by its id or an unambiguous part of it."""
        exact = [approval for approval in approvals if approval.id == name]
        near = exact or [approval for approval in approvals if name in approval.id]
        if len(near) == 1:
            return near[0]
        ids = [approval.id for approval in approvals]
        if near:
            listed = ", ".join(approval.id for approval in near)
            raise UserError(f"{name!r} is ambiguous: {listed}")
        raise UserError(f"there is no pending approval {one_line(name)!r}{did_you_mean(name, ids)}")
