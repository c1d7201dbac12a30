"""`call` frames, and what can be known about them before they are sent."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import LimitsInfo

__all__ = ["encode_call"]


def encode_call(
    ref: str, name: str, args: Mapping[str, object], cid: str | None, limits: LimitsInfo
) -> bytes:
    """The frame of a call.

    Raises `OperationError` for arguments that no hub accepts. The hub's own answer to such a frame
    could not say which call it means, because it does not read that far.
    """
    try:
        plain = to_jsonable_python(args)
        call = {"op": "call", "ref": ref, "name": name, "args": plain}
        if cid is not None:
            call["cid"] = cid
        frame = json.dumps(call, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as exc:  # NaN, a lone surrogate, an object, a circle
        raise OperationError(ErrorCode.BAD_REQUEST, f"{name}: the arguments are no JSON") from exc
    if len(frame) > limits.frame_bytes:
        text = f"{name}: the call has {len(frame)} bytes, the hub accepts {limits.frame_bytes}"
        raise OperationError(ErrorCode.TOO_LARGE, text)
    if b"\\u0000" in frame and _has_nul(plain):
        raise OperationError(ErrorCode.BAD_REQUEST, f"{name}: a text contains the character NUL")
    if _depth(plain) + 1 > limits.json_depth:
        text = f"{name}: the arguments are nested deeper than {limits.json_depth} levels"
        raise OperationError(ErrorCode.BAD_REQUEST, text)
    return frame


def _has_nul(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any("\0" in key or _has_nul(item) for key, item in value.items())
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\0" in value


def _depth(value: JsonValue) -> int:
    """How many objects and lists are inside each other."""
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
