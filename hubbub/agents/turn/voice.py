"""How an agent speaks: writes that name their cause, repeat without effect, and are remembered."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import JsonValue, ValidationError

from hubbub.agents.inbox import Inbox
from hubbub.client import Client
from hubbub.clock import Clock
from hubbub.errors import OperationError
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import SendResult

__all__ = ["Voice"]


class Voice:
    """Calls the hub for the agent, and adds what the agent says to its own threads: the hub sends
    a message to everyone but its sender.
    """

    def __init__(self, client: Client, inbox: Inbox, clock: Clock):
        self._client, self._inbox, self._clock = client, inbox, clock

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
        self._remember(args, value)
        return value

    async def activity(self, thread_id: str, data: JsonValue) -> None:
        """Show the others in the thread what the agent is at."""
        await self._client.signal("activity", thread_id, data)

    def _remember(self, args: dict[str, JsonValue], value: JsonValue) -> None:
        content = args.get("text", args.get("content"))
        if content is None:
            return
        try:
            sent = SendResult.model_validate(value)
        except ValidationError:
            return  # an operation that sends nothing
        self._inbox.note(self._message(args, content, sent))

    def _message(self, args: dict[str, JsonValue], content: JsonValue, sent: SendResult) -> Message:
        told, cause = args.get("text_representation"), args.get("cause")
        me = self._inbox.me
        members = thread_ids.members_of(sent.thread_id)
        return Message(
            id=sent.id,
            seq=sent.seq,
            thread_id=sent.thread_id,
            tseq=sent.tseq,
            sender_id=me,
            sender_kind="agent",
            type=thread_ids.kind_of(sent.thread_id),
            recipients=tuple(m for m in members if m != me),
            content=content,
            text_representation=told if isinstance(told, str) else None,
            interaction_id="",  # the hub's to know; nothing here asks for it
            cause_id=cause if isinstance(cause, str) else None,
            hop=0,
            sent_at=datetime.fromtimestamp(self._clock.now(), UTC),
        )
