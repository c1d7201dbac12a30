"""The hub's operations as tools, built from their descriptions in `ready`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Protocol

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, Confirm, ToolFailed, UntrustedText
from hubbub.agents.tools.schema import without_titles
from hubbub.errors import OperationError
from hubbub.protocol import thread_ids
from hubbub.protocol.messages import OperationInfo, Permission
from hubbub.protocol.operations import Speech

__all__ = [
    "HubCaller",
    "HubTool",
    "compact_result",
    "hub_refusal",
    "sends_message",
    "takes_untrusted_mark",
]

# Shortens the hub's results for a model, with thread ids in the model's form.


_EMPTY: tuple[JsonValue, ...] = (None, [], {}, "")
_NOISE = frozenset({"seq", "tseq", "interaction_id", "hop", "cause_id", "sender_kind", "last_seq"})


def compact_result(value: JsonValue, me: str) -> JsonValue:
    """`value` for the agent `me`: without empty fields, positions and the hub's notices, and with
    messages reduced to sender, time and content.
    """
    if isinstance(value, list):
        return [compact_result(item, me) for item in value if not _is_notice(item)]
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
            short[key] = item  # content is never shortened
        elif (compact := compact_result(item, me)) not in _EMPTY:
            short[key] = compact
    return short


def _is_notice(item: JsonValue) -> bool:
    """Whether a wire message is a notice, as defined by `Message.is_notice`."""
    if not isinstance(item, dict) or item.get("sender_kind") != "system":
        return False
    if item.get("timer_of") is not None or item.get("request") is not None:
        return False
    content = item.get("content")
    return not (isinstance(content, dict) and "mod" in content)


def _message(message: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The message with a single text instead of alternative representations."""
    text = message.get("text_representation")
    fields = ("reply_to", "quote", "mentions", "attachments", "sent_by", "request")
    rest = {key: message.get(key) for key in fields}
    if message.get("untrusted") is True:
        rest["untrusted"] = True
    return {
        "id": message.get("id"),
        "thread": message.get("thread_id"),
        "sender": message.get("sender_id"),
        "kind": message.get("sender_kind"),
        "sent_at": message.get("sent_at"),
        "content": text if isinstance(text, str) else message.get("content"),
        **rest,
    }


@lru_cache(4096)
def _shown(id: str, me: str) -> str:
    return thread_ids.relative(id, me) if thread_ids.canonical(id, me) == id else id


class HubCaller(Protocol):
    """Calls operations for hub tools; implemented by `hubbub.agents.turn.outbox.Outbox`."""

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue: ...


class HubTool:
    """One operation of the hub or of a mod.

    Fills in a message's cause, `cid` and untrusted mark, which the model cannot set.
    """

    confirm: Confirm = False
    timeout = None

    def __init__(self, operation: OperationInfo, caller: HubCaller, me: str):
        self._caller, self._me = caller, me
        self.speaks = sends_message(operation)
        self.permission: Permission = operation.permission
        self.ordered = operation.permission != "read"
        self.idempotent = True  # a read, or a write with a cid
        self._hidden_arguments = _hidden_arguments(operation)
        self._marked = takes_untrusted_mark(operation)
        self.name = operation.name
        self._to_is_optional = self.name in _WITHOUT_RECIPIENT
        schema = _without(self._hidden_arguments, operation.input_schema)
        if self._to_is_optional:
            required = schema["required"]
            assert isinstance(required, list)
            schema["required"] = [name for name in required if name != "to"]
        rare = _RARE if _takes_message(operation) and self.name != "send_message" else ()
        shown = _shown_schema(schema, rare, answers=self._to_is_optional)
        self.spec = ToolSpec(self.name, operation.description, schema, shown)

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Call the operation. A write that an earlier run of the turn made is not repeated."""
        args = {key: value for key, value in arguments.items() if key not in self._hidden_arguments}
        if self._to_is_optional and not args.get("to"):
            args["to"] = site.thread_id
        if "cid" in args:
            raise ToolFailed("there is no argument cid", error="invalid_arguments", retry=True)
        cid, cause = site.cid if self.ordered else None, site.turn if self.speaks else None
        if site.untrusted and self._marked:
            args["untrusted"] = True
        try:
            value = await self._caller.call(self.name, cid=cid, cause=cause, **args)
        except OperationError as exc:
            raise hub_refusal(exc) from exc
        if isinstance(value, dict) and _is_sent(value):
            value = {key: item for key, item in value.items() if key != "message"}  # its own text
        text = json.dumps(compact_result(value, self._me), ensure_ascii=False)
        return UntrustedText(text) if _is_untrusted(value) else text


def _is_sent(value: Mapping[str, JsonValue]) -> bool:
    """Whether a result is a `SendResult`."""
    message = value.get("message")
    return isinstance(message, dict) and message.get("seq") == value.get("seq")


def sends_message(operation: OperationInfo) -> bool:
    """Whether the operation sends a message, the only kind with a cause."""
    return "cause" in _properties(operation.input_schema)


def takes_untrusted_mark(operation: OperationInfo) -> bool:
    """Whether the operation has an argument that marks content as untrusted."""
    untrusted = _properties(operation.input_schema).get("untrusted")
    return untrusted is not None and (sends_message(operation) or _is_for_runtime(untrusted))


def _properties(schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def hub_refusal(exc: OperationError) -> ToolFailed:
    """The failure shown to a model when the hub rejects its call."""
    near = exc.details.get("near")
    return ToolFailed(
        exc.message,
        error=exc.code,
        retry=exc.temporary,
        near=[str(name) for name in near] if isinstance(near, list) else (),
    )


_WITHOUT_RECIPIENT = frozenset({"send_text_message", "send_message"})
"""Operations that write to the thread that woke the agent if `to` is omitted."""
_RARE = frozenset({"attachments", "mentions", "quote"})
"""Arguments common to all messages, shown only for `send_message`."""
_TO = "A participant, or the id of one of your threads. Left out: the sender."


def _shown_schema(
    schema: Mapping[str, JsonValue], rare: Collection[str], *, answers: bool
) -> dict[str, JsonValue]:
    """The schema of an operation's arguments that models see."""
    properties = {k: v for k, v in _properties(schema).items() if k not in rare}
    if answers:
        properties["to"] = {"type": "string", "description": _TO}
    return {**schema, "properties": properties}


_MESSAGE_FIELDS = frozenset(Speech.model_fields) - {"mentions", "quote", "attachments"}
"""Arguments of messages that models cannot set: the runtime does, or only people can."""


def _hidden_arguments(operation: OperationInfo) -> frozenset[str]:
    """The arguments hidden from the model: those common to all messages, and those marked for the
    runtime. A mod's own argument is shown even if its name is that of a message's.
    """
    properties = _properties(operation.input_schema)
    hidden = _MESSAGE_FIELDS if _takes_message(operation) else frozenset({"cause"})
    return hidden.union(name for name, schema in properties.items() if _is_for_runtime(schema))


def _takes_message(operation: OperationInfo) -> bool:
    """Whether the operation takes the arguments common to all messages."""
    return _properties(operation.input_schema).keys() >= _MESSAGE_FIELDS


def _is_for_runtime(schema: JsonValue) -> bool:
    """Whether the runtime fills in the argument: `Untrusted` (hubbub.protocol.operations)."""
    return isinstance(schema, dict) and schema.get("x-runtime") is True


def _without(names: Collection[str], schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    result = without_titles(schema)
    result["properties"] = {k: v for k, v in _properties(result).items() if k not in names}
    return result


def _is_untrusted(value: JsonValue) -> bool:
    """Whether a result, or a message in it, is marked as untrusted."""
    if isinstance(value, dict) and value.get("untrusted") is True:
        return True
    return _has_untrusted_message(value)


def _has_untrusted_message(value: JsonValue) -> bool:
    """Whether any message in the value is marked as untrusted."""
    if isinstance(value, list):
        return any(map(_has_untrusted_message, value))
    if not isinstance(value, dict):
        return False
    if value.get("untrusted") is True and "sender_id" in value:
        return True
    return any(map(_has_untrusted_message, value.values()))
