"""Calls in flight: frames out, answers in, in the order of the calls; and the delays of retries."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from pydantic import JsonValue
from pydantic_core import to_json

from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import LimitsInfo
from hubbub.strict_json import STRICT
from hubbub.waiting import settle

__all__ = [
    "Backoff",
    "PendingCall",
    "PendingCalls",
    "encode",
    "encode_call",
]


@dataclass(eq=False)
class PendingCall:
    """A call that is not answered yet."""

    frame: bytes
    answer: asyncio.Future[JsonValue]


class PendingCalls:
    """The calls in flight, by the `ref` of their answers."""

    def __init__(self) -> None:
        self._waiting: dict[str, PendingCall] = {}
        self._made = 0
        self._end: ConnectionLost | None = None

    @property
    def waiting(self) -> list[PendingCall]:
        """The unanswered calls, in order."""
        return list(self._waiting.values())

    def make(
        self, name: str, args: Mapping[str, object], cid: str | None, limits: LimitsInfo
    ) -> PendingCall:
        """A new call. If it cannot be sent, its answer is already an error."""
        self._made += 1
        ref = str(self._made)
        call = PendingCall(b"", asyncio.get_running_loop().create_future())
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
        """Set the answer of a call; ignored if no such call is open."""
        if (call := self._waiting.get(ref)) is not None:
            settle(call.answer, answer)

    def finish(self, end: ConnectionLost) -> None:
        """Fail all open calls, and any new ones."""
        self._end = end
        for call in self.waiting:
            settle(call.answer, ConnectionLost(end.code, end.reason))

    def _forget(self, ref: str, answer: asyncio.Future[JsonValue]) -> None:
        self._waiting.pop(ref, None)
        if not answer.cancelled():
            answer.exception()  # marks it as retrieved, as a future from `post` can be dropped


def encode_call(
    ref: str, name: str, args: Mapping[str, object], cid: str | None, limits: LimitsInfo
) -> bytes:
    """The frame of a call. Raises what `encode` raises."""
    call = {"op": "call", "ref": ref, "name": name, "args": args}
    if cid is not None:
        call["cid"] = cid
    return encode(name, call, limits)


def encode(what: str, content: Mapping[str, object], limits: LimitsInfo) -> bytes:
    """The frame with this content; errors call it `what`.

    Raises `OperationError` for content that no hub accepts. The hub could not identify a call in
    its own answer, as it does not read such a frame that far.
    """
    try:
        frame = to_json(content)  # several times as fast as `json`
        opened = frame.count(b"{") + frame.count(b"[")
        # Texts can contain these as well, so a match only means that a closer check is needed.
        is_suspect = any(text in frame for text in _SUSPECT)
        plain = json.loads(frame, **STRICT) if is_suspect else None
    except ValueError as exc:  # NaN, a lone surrogate, an object, a cycle
        raise OperationError(ErrorCode.BAD_REQUEST, f"{what}: the data is not JSON") from exc
    if len(frame) > limits.frame_bytes:
        text = f"{what}: {len(frame)} bytes are too many, the hub accepts {limits.frame_bytes}"
        raise OperationError(ErrorCode.TOO_LARGE, text)
    if plain is not None and _has_nul(plain):
        raise OperationError(ErrorCode.BAD_REQUEST, f"{what}: a text contains the character NUL")
    if opened > limits.json_depth and _depth(frame) > limits.json_depth:
        text = f"{what}: the data is nested deeper than {limits.json_depth} levels"
        raise OperationError(ErrorCode.BAD_REQUEST, text)
    return frame


_SUSPECT = (rb"\u0000", b"NaN", b"Infinity")
_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^\[\]{}"]+')


def _has_nul(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any("\0" in key or _has_nul(item) for key, item in value.items())
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\0" in value


def _depth(frame: bytes) -> int:
    """The nesting depth of objects and lists."""
    depths = accumulate(1 if each in b"[{" else -1 for each in _BRACKETS.sub(b"", frame))
    return max(depths, default=0)


@dataclass(frozen=True)
class Backoff:
    """Exponential delays with jitter, so that clients of a restarted hub do not all return at
    once."""

    first_s: float = 0.1
    most_s: float = 10.0
    retries: int = 8
    """Retries of a call that failed with a temporary error. With the delays above, the last retry
    is about 20 s after the first attempt."""
    steady_s: float = 10.0
    """A connection that lasted this long resets the delay."""
    random: Callable[[], float] = random.random
    """Returns numbers in [0, 1)."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits for a number of seconds."""

    def delay(self, attempt: int) -> float:
        """Seconds before attempt number `attempt` (from 0): half fixed, half random."""
        longest = min(self.most_s, self.first_s * 2.0 ** min(attempt, 32))
        return longest * (0.5 + 0.5 * self.random())

    def after(self, requested_s: float, attempt: int) -> float:
        """Seconds to wait if the hub requested a delay: at least that, at most half as much
        again."""
        return max(requested_s * (1 + 0.5 * self.random()), self.delay(attempt))
