"""What the hub answers as a model should read it: short, with the thread ids that it knows."""

from __future__ import annotations

from pydantic import JsonValue

from hubbub.protocol import thread_ids

__all__ = ["compact"]

_EMPTY: tuple[JsonValue, ...] = (None, [], {}, "")
_NOISE = frozenset({"seq", "tseq", "interaction_id", "hop", "cause_id", "sender_kind", "last_seq"})


def compact(value: JsonValue, me: str) -> JsonValue:
    """`value` for the reader `me`: no empty fields, no positions, messages as who, when, what;
    those of a list without the notices of the hub.
    """
    if isinstance(value, list):
        return [compact(item, me) for item in value if not _is_notice(item)]
    if not isinstance(value, dict):
        return value
    if "sender_id" in value and "content" in value:
        value = _message(value)
    short: dict[str, JsonValue] = {}
    for key, item in value.items():
        if key in _NOISE:
            continue
        if key in ("id", "thread", "thread_id") and isinstance(item, str):
            short[key] = _shown(item, me)
        elif key == "content" or (key == "value" and item is not None):
            short[key] = item  # not ours to shorten
        elif (slim := compact(item, me)) not in _EMPTY:
            short[key] = slim
    return short


def _is_notice(item: JsonValue) -> bool:
    """Whether it is a message that `Message.is_notice`, as the wire has it."""
    if not isinstance(item, dict) or item.get("sender_kind") != "system":
        return False
    if item.get("timer_of") is not None or item.get("request") is not None:
        return False
    content = item.get("content")
    return not (isinstance(content, dict) and "mod" in content)


def _message(message: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """A message with its text in place of all the ways to say it."""
    told = message.get("text_representation")
    kept = ("reply_to", "quote", "mentions", "attachments", "spoken_by", "request")
    rest = {key: message.get(key) for key in kept}
    if message.get("outside") is True:
        rest["outside"] = True
    return {
        "id": message.get("id"),
        "thread": message.get("thread_id"),
        "sender": message.get("sender_id"),
        "kind": message.get("sender_kind"),
        "sent_at": message.get("sent_at"),
        "content": told if isinstance(told, str) else message.get("content"),
        **rest,
    }


def _shown(id: str, me: str) -> str:
    return thread_ids.relative(id, me) if thread_ids.canonical(id, me) == id else id
