"""Which hooks an event concerns, and what they are sent."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.mods.times import time_of
from hubbub.mods.webhooks.outbox import Row
from hubbub.mods.webhooks.settings import HookConfig
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Turn

__all__ = ["body_of", "concerns", "message_data", "reaches", "turn_data"]

_IDS = {
    "id", "seq", "thread_id", "tseq", "sender_id", "sender_kind", "type", "reply_to", "amends",
    "interaction_id", "cause_id", "sent_at",
}  # fmt: skip


def concerns(hook: HookConfig, message: Message) -> bool:
    """Whether the hook is told of a message."""
    return (
        "message" in hook.events
        and not message.imported  # that is history, and of another network
        and message.sender_id not in hook.exempt
        and reaches(hook, message.thread_id)
    )


def reaches(hook: HookConfig, thread: str) -> bool:
    """Whether the hook is told what happens in a thread."""
    top = thread_ids.root(thread)
    if thread_ids.kind_of(top) == "direct" and not hook.direct:
        return False
    return not hook.threads or top in hook.threads


def message_data(message: Message, *, content: bool) -> dict[str, JsonValue]:
    """What a hook is told of a message: all, or who, where and when."""
    data: dict[str, JsonValue] = message.model_dump(
        mode="json", exclude_none=True, include=None if content else _IDS
    )
    return data


def turn_data(turn: Turn) -> dict[str, JsonValue]:
    """What a hook is told of a turn that has ended; never what was said in it."""
    return {
        "id": turn.start.id,
        "agent": turn.agent,
        "thread_id": turn.start.thread_id,
        "outcome": turn.end.outcome if turn.end is not None else None,
    }


def body_of(row: Row, data: Mapping[str, JsonValue]) -> bytes:
    """The body of the request."""
    at = time_of(row.at).isoformat()
    told = {"id": row.id, "type": row.event, "timestamp": at, "data": data}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
