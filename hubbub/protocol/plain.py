"""Fast decoding, without a model, of the frames that make up nearly all traffic: acknowledgements
and plain texts.

The result equals that of the models of `frames` and `operations`. Anything else (other operations,
mentions, quotes, escapes, mistakes) is left to the models, which also report errors. A property
test keeps the two consistent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from hubbub.protocol.frames import MAX_SEQ
from hubbub.protocol.operations import (
    BroadcastTextMessage,
    Input,
    PostToChannel,
    SendTextMessage,
)
from hubbub.protocol.thread_ids import MAX_LENGTH

__all__ = ["PlainAck", "PlainCall", "PlainReader", "PlainSpeech"]

_Ref = Annotated[str, Meta(min_length=1, max_length=64)]
_Text = Annotated[str, Meta(min_length=1)]
_Cause = Annotated[str, Meta(min_length=1, max_length=100)]
_CID = re.compile(r"[A-Za-z0-9_.:-]{1,64}").fullmatch


class PlainAck(Struct, tag_field="op", tag="ack", forbid_unknown_fields=True, frozen=True):
    """An `Ack`."""

    seq: Annotated[int, Meta(ge=0, le=MAX_SEQ)]
    op: ClassVar[Literal["ack"]] = "ack"


class PlainSpeech(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A `Speech` with only a text, and optionally a cause."""

    cause: _Cause | None = None
    mentions: ClassVar[tuple[str, ...]] = ()
    quote: ClassVar[None] = None
    attachments: ClassVar[tuple[()]] = ()
    on_behalf_of: ClassVar[None] = None
    untrusted: ClassVar[bool] = False
    awaits: ClassVar[bool] = False
    silent: ClassVar[bool] = False
    mode: ClassVar[None] = None


class _SendText(PlainSpeech, kw_only=True, frozen=True):
    to: Annotated[str, Meta(min_length=1, max_length=MAX_LENGTH)]
    text: _Text


class _Broadcast(PlainSpeech, kw_only=True, frozen=True):
    text: _Text


class _ChannelPost(PlainSpeech, kw_only=True, frozen=True):
    channel: _Ref
    text: _Text


class PlainCall(Struct, frozen=True):
    """A `TypedCall` whose arguments are a `PlainSpeech`."""

    ref: str
    name: str
    args: PlainSpeech
    cid: str | None
    op: ClassVar[Literal["call"]] = "call"


class _Envelope(Struct, tag_field="op", tag="call", forbid_unknown_fields=True):
    ref: _Ref
    name: str
    args: msgspec.Raw
    cid: str | None = None


_frame = msgspec.json.Decoder(PlainAck | _Envelope).decode
_SPEECHES: Mapping[str, tuple[type[Input], type[PlainSpeech]]] = {
    "send_text_message": (SendTextMessage, _SendText),
    "broadcast_text_message": (BroadcastTextMessage, _Broadcast),
    "post_to_channel": (PostToChannel, _ChannelPost),
}
_FRAME_KEYS = 4
"""Keys of a call without a `cid`."""


class PlainReader:
    """Reads plain frames, for a hub whose operations have these inputs."""

    def __init__(self, inputs: Mapping[str, type[Input]]):
        self._speeches = {
            name: _reader(speech)
            for name, (model, speech) in _SPEECHES.items()
            if inputs.get(name) is model
        }

    def read(self, data: bytes) -> PlainAck | PlainCall | None:
        """The frame in `data`; None if it is not a plain frame."""
        # Can be NUL, half a character, or an escaped colon. A single byte is faster to search for.
        if b"\\" in data and b"\\u" in data:
            return None
        try:
            frame = _frame(data)
            if type(frame) is PlainAck:
                return frame if data.count(b":") == 2 else None
            decode, keys = self._speeches[frame.name]
            speech = decode(frame.args)
        except (msgspec.MsgspecError, UnicodeError, KeyError, RecursionError):
            return None
        if frame.cid is not None:
            if _CID(frame.cid) is None:
                return None
            keys += 1
        if speech.cause is not None:
            keys += 1
        # Every key has a colon, and all keys are known: without an extra colon no key is repeated.
        call = PlainCall(frame.ref, frame.name, speech, frame.cid)
        colons = data.count(b":")
        return call if colons == keys or colons == keys + _colons(call, speech) else None


@cache  # the same for all hubs of a process
def _reader(speech: type[PlainSpeech]) -> tuple[Callable[[msgspec.Raw], PlainSpeech], int]:
    """The decoder of a call's arguments, and its minimum number of keys."""
    required = sum(field.required for field in msgspec.structs.fields(speech))
    return msgspec.json.Decoder(speech).decode, _FRAME_KEYS + required


def _colons(call: PlainCall, speech: PlainSpeech) -> int:
    texts = (call.ref, call.cid, *msgspec.structs.astuple(speech))
    return sum(text.count(":") for text in texts if text is not None)
