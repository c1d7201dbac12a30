"""Frames as bytes: strict decoding, and encoding that reuses existing bytes.

Plain frames are read without a model (`hubbub.protocol.plain`), all others directly into models.
Things that JSON parsers accept (a repeated key, NaN, 1e999, NUL) are refused; the second pass for
that is skipped for frames that provably have none of them.

A message is encoded only once: results and events contain the bytes of `encode_message`, and events
a few more per recipient. The models of `hubbub.protocol.frames` define the format; property tests
keep the two consistent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Generic, Literal, TypeVar, assert_never

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder as JsonDecoder
from msgspec.json import Encoder
from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic_core import to_json

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frame_errors import (
    FrameError,
    check_values,
    place_of,
    reason_of,
    sentence_of,
    shown,
    too_deep,
    usable_ref,
)
from hubbub.protocol.frames import Ack, Cid, ErrorFrame, Identify, Ref, Signal
from hubbub.protocol.messages import (
    Amendment,
    Draft,
    Model,
    Purpose,
    RequestMark,
    TimerMark,
    TranscriptMark,
)
from hubbub.protocol.operations import Input
from hubbub.protocol.plain import PlainAck, PlainCall, PlainReader
from hubbub.strict_json import STRICT, outside_texts
from hubbub.wording import did_you_mean

__all__ = [
    "Call",
    "Decoder",
    "Frame",
    "PlainSendResult",
    "SharedEvent",
    "TypedCall",
    "encode_error",
    "encode_message",
    "encode_result",
    "encode_wake",
]

encode_json = Encoder(enc_hook=lambda model: model.model_dump(mode="json")).encode

Args = TypeVar("Args", bound=Input)

MAX_CONTAINERS = 16 * 1024
"""Objects and lists in a frame; each one costs more than a hundred bytes of text."""


class TypedCall(Model, Generic[Args]):
    """A `call` frame whose arguments are validated as the operation's input."""

    op: Literal["call"]
    ref: Ref
    name: str
    args: Args
    cid: Cid | None = None


_Model = TypedCall[Input] | Ack | Signal | Identify
Call = TypedCall[Input] | PlainCall
Frame = _Model | PlainCall | PlainAck
"""The frames that clients send."""


# Reading -------------------------------------------------------------------------------------


class Decoder:
    """Reads client frames for a given set of operations."""

    def __init__(self, inputs: Mapping[str, type[Input]], *, max_bytes: int, max_depth: int):
        self._max_bytes, self._max_depth = max_bytes, max_depth
        self._inputs = inputs
        self._plain = PlainReader(inputs).read

    def decode(self, data: bytes) -> Frame:
        """The frame in `data`. Raises `FrameError` with the field's name."""
        if len(data) > self._max_bytes:
            text = f"a frame has at most {self._max_bytes} bytes, this one {len(data)}"
            raise FrameError(ErrorCode.TOO_LARGE, text, _first_ref(data))
        plain = self._plain(data)
        if plain is not None:
            return plain
        return self._decode(data)

    def _decode(self, data: bytes) -> _Model:
        if len(data) > MAX_CONTAINERS and _containers(data) > MAX_CONTAINERS:
            text = f"a frame has at most {MAX_CONTAINERS} objects and lists in all"
            raise FrameError(ErrorCode.TOO_LARGE, text, _first_ref(data))
        frame = self._read(data)
        if frame.op == "ack":
            if data.count(b":") == 2:
                return frame
        elif frame.op == "call":
            keys = len(frame.__pydantic_fields_set__) + len(frame.args.__pydantic_fields_set__)
            # Every key has a colon. With no extra colon there is no repeated key, unknown field or
            # nested object, and a flat input has no number that could overflow.
            if (
                _is_flat(type(frame.args))
                and (data.count(b":") == keys or _keys(data) == keys)
                and b"\\u0000" not in data
            ):
                return frame
        try:
            self._look_twice(data)
        except FrameError as error:
            error.ref = usable_ref(getattr(frame, "ref", None))
            raise
        return frame

    def _read(self, data: bytes) -> _Model:
        """The frame as its model. The model is built on first use, as building those of all
        operations would take longer than the hub's start."""
        try:
            head = _head(data)
        except (MsgspecError, UnicodeError, RecursionError):
            raise self._no_frame(data) from None
        model: type[_Model] | None = None
        if head.op != "call":
            model = _OTHERS.get(head.op) if isinstance(head.op, str) else None
        elif isinstance(head.name, str) and head.name in self._inputs:
            model = _call_model(head.name, self._inputs[head.name])
        if model is None:
            raise self._unknown(head.op, head.name, self._look_twice(data).get("ref"))
        try:
            frame: _Model = model.__pydantic_validator__.validate_json(data, strict=True)
        except ValidationError as error:
            raise self._explain(data, error) from None
        return frame

    def _no_frame(self, data: bytes) -> FrameError:
        try:
            self._look_twice(data)
        except FrameError as error:
            error.ref = error.ref or _first_ref(data)
            return error
        return FrameError(ErrorCode.BAD_FRAME, "not valid JSON", _first_ref(data))

    def _look_twice(self, data: bytes) -> dict[str, object]:
        """Refuse input that the validator accepts but should not. Returns the frame as plain
        JSON."""
        try:
            value = json.loads(
                data.decode(),  # given bytes, it would also accept UTF-16
                **STRICT,
            )
        except RecursionError:
            raise FrameError(ErrorCode.BAD_FRAME, too_deep(self._max_depth)) from None
        except ValueError as error:
            raise FrameError(ErrorCode.BAD_FRAME, f"not valid JSON: {reason_of(error)}") from None
        if not isinstance(value, dict):
            raise FrameError(ErrorCode.BAD_FRAME, "a frame is a JSON object")
        try:
            check_values(value, self._max_depth)
        except FrameError as error:
            error.ref = usable_ref(value.get("ref"))
            raise
        return value

    def _explain(self, data: bytes, error: ValidationError) -> FrameError:
        try:
            frame = self._look_twice(data)
        except FrameError as worse:
            return worse
        ref = usable_ref(frame.get("ref"))
        errors = error.errors(include_url=False)
        first = errors[0]
        if first["type"] == "missing":  # a misspelled argument is one missing and one extra
            first = next((e for e in errors if e["type"] == "extra_forbidden"), first)
        place = place_of(first, frame)
        return FrameError(ErrorCode.BAD_REQUEST, sentence_of(first, place), ref, place)

    def _unknown(self, op: object, name: object, given: object) -> FrameError:
        """The error for an unknown `op` or operation."""
        ref = usable_ref(given)
        if op != "call":
            given_op = shown(op)
            text = f"op: expected identify, call, ack or signal, got {given_op}"
            return FrameError(ErrorCode.BAD_FRAME, text, ref, "op")
        if not isinstance(name, str):
            return FrameError(ErrorCode.BAD_REQUEST, "name: expected text", ref, "name")
        hint = did_you_mean(name, sorted(self._inputs), "; `ready` lists the operations")
        text = f"no operation is named {shown(name)}{hint}"
        return FrameError(ErrorCode.UNKNOWN_OPERATION, text, ref, "name")


class _FrameHead(Struct):
    op: object = None
    name: object = None


_head = JsonDecoder(_FrameHead).decode
_OTHERS: Mapping[str, type[Ack | Signal | Identify]] = {
    "ack": Ack,
    "signal": Signal,
    "identify": Identify,
}


@lru_cache(maxsize=512)  # hubs whose mods differ share most operations
def _call_model(name: str, model: type[Input]) -> type[TypedCall[Input]]:
    return create_model(
        f"Call_{name}",
        __base__=TypedCall[model],  # type: ignore[valid-type]  # a type created at run time
        name=(Literal[name], ...),  # type: ignore[arg-type]
        args=(model, Field(default_factory=dict, validate_default=True)),
    )


@lru_cache(maxsize=512)  # used for each call that is not plain
def _is_flat(model: type[BaseModel]) -> bool:
    """Whether no field can contain 1e999 or NaN, as none takes arbitrary JSON or a fraction, and
    none must be an object, whose keys are not counted."""
    schema = model.model_json_schema()
    objects = {f"#/$defs/{n}" for n, d in schema.get("$defs", {}).items() if "properties" in d}
    return all(
        any(key in field for key in ("type", "anyOf", "$ref"))
        and field.get("$ref") not in objects
        and not any(word in str(field) for word in ("number", "JsonValue"))
        for field in schema.get("properties", {}).values()
    )


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"\s*(:?)', re.DOTALL)


def _keys(data: bytes) -> int:
    """The total number of keys in a JSON text: strings followed by a colon."""
    return _STRING.findall(data).count(b":")


_BEGIN = re.compile(rb'\s*\{\s*"op"\s*:\s*"call"\s*,\s*"ref"\s*:\s*"([^"\\]{1,64})"')


def _first_ref(data: bytes) -> str | None:
    """The ref of a call that is not decoded, if it is at the front, as its caller waits for it."""
    match = _BEGIN.match(data)
    return usable_ref(match[1].decode(errors="replace")) if match else None


def _containers(data: bytes) -> int:
    """An upper bound for the number of objects and lists."""
    count = data.count(b"[") + data.count(b"{")
    if count <= MAX_CONTAINERS:  # texts have brackets, too
        return count
    bare = outside_texts(data)
    return bare.count(b"[") + bare.count(b"{")


# Writing -------------------------------------------------------------------------------------


class _StoredMessage(Struct, omit_defaults=True):
    """A `Message` for encoding, which takes one step for a struct."""

    id: str
    seq: int
    thread_id: str
    tseq: int
    sender_id: str
    sender_kind: str
    type: str
    content: str | Raw
    interaction_id: str
    hop: int
    sent_at: str
    recipients: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    cause_id: str | None = None
    reply_to: str | None = None
    text_representation: str | None = None
    # Rarely set.
    quote: Raw | None = None
    attachments: Raw | None = None
    untrusted: bool = False
    sent_by: str | None = None
    mode: str | None = None
    request: Raw | None = None
    amends: Raw | None = None
    timer_of: str | None = None
    imported: bool = False


def encode_message(
    draft: Draft, seq: int, tseq: int, interaction_id: str, hop: int, sent_at: str
) -> bytes:
    """A message as JSON."""
    content = draft.content
    message = _StoredMessage(
        f"m{seq}",
        seq,
        draft.thread_id,
        tseq,
        draft.sender_id,
        draft.sender_kind,
        draft.type,
        content if isinstance(content, str) else Raw(to_json(content)),
        interaction_id,
        hop,
        sent_at,
        draft.recipients,
        draft.mentions,
        draft.cause_id,
        draft.reply_to,
        draft.text_representation,
    )
    if draft.sent_by or draft.untrusted or draft.mode:
        message.sent_by, message.untrusted = draft.sent_by, draft.untrusted
        message.mode = draft.mode
    if draft.quote is not None:
        message.quote = Raw(draft.quote.model_dump_json())
    if draft.attachments:
        message.attachments = Raw(to_json(draft.attachments, exclude_none=True))
    if draft.purpose is not None:
        _add_purpose(message, draft.purpose)
    return encode_json(message)


def _add_purpose(message: _StoredMessage, purpose: Purpose) -> None:
    match purpose:
        case RequestMark():
            message.request = Raw(purpose.model_dump_json(exclude_none=True))
        case Amendment():
            message.amends = Raw(purpose.model_dump_json())
        case TimerMark(of):
            message.timer_of = of
        case TranscriptMark(sent_at, amends, timer_of):
            message.sent_at, message.imported = sent_at, True
            message.timer_of = timer_of
            if amends is not None:
                _add_purpose(message, amends)
        case _:
            assert_never(purpose)


def encode_wake(reason: str, reply: str, turn: str) -> bytes:
    """The wake part of an event."""
    # Without `!s`, formatting an enum member takes as long as everything else.
    return f',"wake":{{"reason":"{reason!s}","reply":"{reply}","turn":"{turn}"}}'.encode()


class SharedEvent(Struct):
    """A message for all its recipients. Those with the same previous event, as in a channel, share
    one frame."""

    seq: int
    tseq: int
    body: bytes
    _prev: int = -1
    _wake: bytes = b""
    _frame: bytes = b""

    def frame(self, prev: int, wake: bytes = b"") -> bytes:
        """The `event` frame for a recipient whose last event was at `prev`."""
        if prev != self._prev or wake != self._wake:
            self._prev, self._wake = prev, wake
            self._frame = b'{"op":"event","prev":%d,"seq":%d,"tseq":%d,"message":%b%b}' % (
                prev,
                self.seq,
                self.tseq,
                self.body,
                wake,
            )
        return self._frame


class PlainSendResult(Struct, omit_defaults=True):
    """A `SendResult` for encoding, with the message as JSON."""

    id: str
    seq: int
    thread_id: str
    tseq: int
    message: Raw
    present: list[str] = []
    absent: list[str] = []
    queued: dict[str, int] = {}
    not_woken: dict[str, str] = {}
    unresolved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    amends: Amendment | None = None


class _PlainResult(Struct, tag_field="op", tag="result", omit_defaults=True):
    ref: str
    value: Raw | PlainSendResult
    duplicate: bool = False


def encode_result(ref: str, value: bytes | PlainSendResult, *, duplicate: bool = False) -> bytes:
    """A `result` frame with a value, which can already be JSON."""
    encoded = Raw(value) if isinstance(value, bytes) else value
    return encode_json(_PlainResult(ref, encoded, duplicate))


def encode_error(error: OperationError, ref: str | None = None) -> bytes:
    """An `error` frame. What JSON cannot carry, which a mod's error can have, is escaped in the
    message; details with it are left out."""
    message = str(error.message).encode(errors="backslashreplace").decode()

    def encoded(details: Mapping[str, object]) -> bytes:
        frame = ErrorFrame(
            ref=ref,
            code=error.code,
            message=message,
            temporary=error.temporary,
            retry_after_s=error.retry_after_s,
            details=details,
        )
        return frame.model_dump_json(exclude_none=True).encode()

    try:
        return encoded(error.details)
    except ValueError:
        return encoded({})
