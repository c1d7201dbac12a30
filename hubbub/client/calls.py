"""Calls on their way: frames out, answers in, in the order they were made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from pydantic import JsonValue
from pydantic_core import to_json, to_jsonable_python

from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import LimitsInfo

__all__ = ["Call", "Calls", "encode_call"]


@dataclass(eq=False)
class Call:
    """A call whose answer has not come."""

    frame: bytes
    answer: asyncio.Future[JsonValue]


class Calls:
    """The calls in flight, by the `ref` that their answers carry."""

    def __init__(self) -> None:
        self._waiting: dict[str, Call] = {}
        self._made = 0
        self._end: ConnectionLost | None = None

    @property
    def waiting(self) -> list[Call]:
        """Those without an answer, in the order they were made."""
        return list(self._waiting.values())

    def make(
        self, name: str, args: Mapping[str, object], cid: str | None, limits: LimitsInfo
    ) -> Call:
        """A new call. If it cannot be sent, its answer says so already."""
        self._made += 1
        ref = str(self._made)
        call = Call(b"", asyncio.get_running_loop().create_future())
        call.answer.add_done_callback(lambda done: self._forget(ref, done))
        try:
            if self._end is not None:
                raise ConnectionLost(self._end.code, self._end.reason)
            call.frame = encode_call(ref, name, args, cid, limits)
        except HubbubError as exc:
            call.answer.set_exception(exc)
        else:
            self._waiting[ref] = call
        return call

    def settle(self, ref: str, answer: JsonValue | OperationError) -> None:
        """The hub has answered. An answer to nobody is passed over."""
        call = self._waiting.get(ref)
        if call is None or call.answer.done():
            return
        if isinstance(answer, OperationError):
            call.answer.set_exception(answer)
        else:
            call.answer.set_result(answer)

    def finish(self, end: ConnectionLost) -> None:
        """No answer comes any more, and no call can be made."""
        self._end = end
        for call in self.waiting:
            if not call.answer.done():
                call.answer.set_exception(ConnectionLost(end.code, end.reason))

    def _forget(self, ref: str, answer: asyncio.Future[JsonValue]) -> None:
        self._waiting.pop(ref, None)
        if not answer.cancelled():
            answer.exception()  # marks it as seen: a post may be dropped


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
        depth = _depth(plain)
        frame = to_json(call)  # several times as fast as `json`
    except ValueError as exc:  # NaN, a lone surrogate, an object, a circle
        raise OperationError(ErrorCode.BAD_REQUEST, f"{name}: the arguments are no JSON") from exc
    if len(frame) > limits.frame_bytes:
        text = f"{name}: the call has {len(frame)} bytes, the hub accepts {limits.frame_bytes}"
        raise OperationError(ErrorCode.TOO_LARGE, text)
    if _has_nul(plain):
        raise OperationError(ErrorCode.BAD_REQUEST, f"{name}: a text contains the character NUL")
    if depth + 1 > limits.json_depth:
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
    """How many objects and lists are inside each other. Raises ValueError for NaN and its like."""
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} is no JSON")
    return 0
