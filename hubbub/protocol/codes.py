"""Error codes of frames and close codes of sockets.

The range of a close code is the verdict: 4000-4499 says come back, 4500-4999 says do not.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum

__all__ = ["CloseCode", "ErrorCode", "may_reconnect"]


class ErrorCode(StrEnum):
    """The `code` of an `error` frame."""

    BAD_FRAME = "bad_frame"
    """Not a frame: not JSON, not UTF-8, a forbidden number, nested too deep, an unknown `op`."""
    BAD_REQUEST = "bad_request"
    """A frame whose fields are wrong; the message names them."""
    TOO_LARGE = "too_large"
    NOT_IDENTIFIED = "not_identified"
    ALREADY_IDENTIFIED = "already_identified"
    AUTH_FAILED = "auth_failed"
    UNSUPPORTED_VERSION = "unsupported_version"
    UNKNOWN_OPERATION = "unknown_operation"
    UNKNOWN_PARTICIPANT = "unknown_participant"
    UNKNOWN_THREAD = "unknown_thread"
    UNKNOWN_CHANNEL = "unknown_channel"
    UNKNOWN_MESSAGE = "unknown_message"
    UNKNOWN_TURN = "unknown_turn"
    CHANNEL_EXISTS = "channel_exists"
    FORBIDDEN = "forbidden"
    REJECTED = "rejected"
    """A mod refused the message; the reason is its own."""
    THREAD_DEPTH = "thread_depth"
    HOP_LIMIT = "hop_limit"
    LIMIT = "limit"
    RATE_LIMITED = "rate_limited"
    CID_CONFLICT = "cid_conflict"
    STORE_UNAVAILABLE = "store_unavailable"
    DRAINING = "draining"
    INTERNAL = "internal"


class CloseCode(IntEnum):
    """The close codes of `hubbub.v1`."""

    INTERNAL = 4001
    SLOW = 4002
    HEARTBEAT = 4003
    STATE_LOST = 4004
    RATE = 4005
    DRAIN = 4006
    AUTH = 4500
    BAD_FRAME = 4501
    VERSION = 4502
    REPLACED = 4503
    REVOKED = 4504


def may_reconnect(code: int) -> bool:
    """Whether a client that was closed with `code` should try again.

    Codes of the WebSocket protocol itself (1000-1015) count as come back, except 1009: the same
    oversized frame would be refused again.
    """
    return code != 1009 and not 4500 <= code <= 4999
