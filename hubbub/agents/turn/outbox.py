"""How an agent speaks: writes that name their cause, repeat without effect, and are remembered."""

from __future__ import annotations

from pydantic import JsonValue, ValidationError

from hubbub.agents.inbox import Inbox
from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import SendResult

__all__ = ["Outbox", "marks"]


def marks(outside: bool) -> dict[str, JsonValue]:
    """What a message says of itself: nothing, or that it carries content from outside the network.
    A hub of an older version does not know it."""
    return {"outside": True} if outside else {}


class Outbox:
    """Calls the hub for the agent, and adds what the agent says to its own threads: the hub answers
    a message's sender with it, and sends it to everybody else.
    """

    def __init__(self, client: Client, inbox: Inbox):
        self._client, self._inbox = client, inbox

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        """Call an operation; with `cause` or `cid`, one that writes.

        A write with this `cid` that was made before, even with other words, counts as made: its
        first result is returned. Raises `OperationError` for every other refusal.
        """
        if cause is not None:
            args["cause"] = cause
        try:
            value = await self._client.call(name, cid=cid, **args)
        except OperationError as exc:
            first = exc.details.get("first")
            if exc.code != ErrorCode.CID_CONFLICT or not isinstance(first, dict):
                raise
            return first  # what was said then is not what `args` says now: not remembered
        self._remember(value)
        return value

    def tell(self, name: str, /, **args: JsonValue) -> None:
        """Call an operation without waiting for it; what comes of it does not matter."""
        self._client.post(name, cid=None, **args)

    async def activity(self, thread_id: str, data: JsonValue) -> None:
        """Show the others in the thread what the agent is at."""
        await self._client.signal("activity", thread_id, data)

    def _remember(self, value: JsonValue) -> None:
        try:
            sent = SendResult.model_validate(value)
        except ValidationError:
            return  # an operation that sends nothing
        self._inbox.note(sent.message)
