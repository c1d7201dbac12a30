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
from hubbub.protocol.control import Delegate
from hubbub.protocol.messages import Message, RequestMark
from hubbub.protocol.operations import SendResult

__all__ = ["DEFAULT_DEADLINE_S", "Voice", "marks"]

DEFAULT_DEADLINE_S: float = Delegate.model_fields["deadline_s"].default
"""Seconds after which work that was handed on has failed, unless its asker says otherwise."""


def marks(outside: bool) -> dict[str, JsonValue]:
    """What a message says of itself: nothing, or that it carries content from outside the network.
    A hub of an older version does not know it."""
    return {"outside": True} if outside else {}


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
        self._remember(name, args, value)
        return value

    def tell(self, name: str, /, **args: JsonValue) -> None:
        """Call an operation without waiting for it; what comes of it does not matter."""
        self._client.post(name, cid=None, **args)

    async def activity(self, thread_id: str, data: JsonValue) -> None:
        """Show the others in the thread what the agent is at."""
        await self._client.signal("activity", thread_id, data)

    def _remember(self, name: str, args: dict[str, JsonValue], value: JsonValue) -> None:
        content = args.get("text", args.get("content", args.get("task")))
        if content is None and not (isinstance(value, dict) and "amends" in value):
            return
        try:
            sent = SendResult.model_validate(value)
        except ValidationError:
            return  # an operation that sends nothing
        self._inbox.note(self._message(args, content, sent, self._mark(name, args)))

    def _mark(self, name: str, args: dict[str, JsonValue]) -> RequestMark | None:
        """What it means for a request."""
        request, status, seconds = args.get("request"), args.get("status"), args.get("deadline_s")
        if name == "delegate":
            within = seconds if isinstance(seconds, int | float) else DEFAULT_DEADLINE_S
            at = datetime.fromtimestamp(self._clock.now() + within, UTC)
            return RequestMark(id="", kind="task", deadline=at)
        if name != "report" or not isinstance(request, str):
            return None
        return RequestMark(id=request, kind="result" if status == "result" else "failed")

    def _message(
        self,
        args: dict[str, JsonValue],
        content: JsonValue,
        sent: SendResult,
        mark: RequestMark | None,
    ) -> Message:
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
            content="" if content is None else content,
            text_representation=told if isinstance(told, str) else None,
            interaction_id="",  # the hub's to know; nothing here asks for it
            cause_id=cause if isinstance(cause, str) else None,
            hop=0,
            outside=args.get("outside") is True,
            request=mark,
            amends=sent.amends,
            sent_at=datetime.fromtimestamp(self._clock.now(), UTC),
        )
