"""How an agent sends messages: with a cause, idempotently, and added to its own threads."""

from __future__ import annotations

from pydantic import JsonValue, ValidationError

from hubbub.agents.inbox import Inbox
from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import SendResult

__all__ = ["Outbox", "untrusted_mark"]


def untrusted_mark(untrusted: bool) -> dict[str, JsonValue]:
    """The argument that marks a message as untrusted (content from outside the network); empty if
    it is trusted. Omitted rather than false, because older hubs do not accept it.
    """
    return {"untrusted": True} if untrusted else {}


class Outbox:
    """Calls the hub for the agent, and adds sent messages to the agent's own threads: the hub
    returns a message to its sender as the result and delivers it to all other recipients.
    """

    def __init__(self, client: Client, inbox: Inbox):
        self._client, self._inbox = client, inbox

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        """Call an operation; a write has a `cause` or a `cid`.

        If this `cid` was already used, even with other arguments, returns the result of the first
        write. Raises `OperationError` for every other refusal.
        """
        if cause is not None:
            args["cause"] = cause
        try:
            value = await self._client.call(name, cid=cid, **args)
        except OperationError as exc:
            first = exc.details.get("first")
            if exc.code != ErrorCode.CID_CONFLICT or not isinstance(first, dict):
                raise
            return first  # the first message may differ from `args`, so it is not added
        self._add_sent(value)
        return value

    def post(self, name: str, /, **args: JsonValue) -> None:
        """Call an operation without waiting for its result."""
        self._client.post(name, cid=None, **args)

    async def activity(self, thread_id: str, data: JsonValue) -> None:
        """Show the agent's activity to the other participants of the thread."""
        await self._client.signal("activity", thread_id, data)

    def _add_sent(self, value: JsonValue) -> None:
        try:
            sent = SendResult.model_validate(value)
        except ValidationError:
            return  # an operation that sends no message
        self._inbox.note(sent.message)
