"""Error codes of frames and close codes of sockets.

The range of a close code determines whether to reconnect: yes for 4000-4499, no for 4500-4999.
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
    """A frame, text or value exceeds the limits in `hello`."""
    NOT_IDENTIFIED = "not_identified"
    """`identify` first, and wait for `ready`."""
    ALREADY_IDENTIFIED = "already_identified"
    """A socket belongs to one participant permanently."""
    AUTH_FAILED = "auth_failed"
    """The token does not prove the participant, or the name or kind is not available."""
    UNSUPPORTED_VERSION = "unsupported_version"
    """The hub does not support this version; `hello` lists the supported ones."""
    UNKNOWN_OPERATION = "unknown_operation"
    """The message names the nearest operation that exists."""
    UNKNOWN_PARTICIPANT = "unknown_participant"
    """No participant ever had that name."""
    UNKNOWN_THREAD = "unknown_thread"
    """The thread does not exist or is not visible to you."""
    UNKNOWN_CHANNEL = "unknown_channel"
    """The channel does not exist."""
    UNKNOWN_MESSAGE = "unknown_message"
    """The message does not exist or is not visible to you."""
    UNKNOWN_INTERACTION = "unknown_interaction"
    """The interaction does not exist or is not visible to you."""
    UNKNOWN_TURN = "unknown_turn"
    """The turn does not exist or is not visible to you."""
    NOT_TRIED = "not_tried"
    """The trial was not possible; the message has the reason."""
    UNKNOWN_KEY = "unknown_key"
    """You remember nothing under that key."""
    CHANNEL_EXISTS = "channel_exists"
    """The name is taken."""
    FORBIDDEN = "forbidden"
    """You are not allowed to do that."""
    REJECTED = "rejected"
    """A mod rejected the message, with its own reason."""
    THREAD_DEPTH = "thread_depth"
    """Reply threads do not nest deeper; answer in the thread itself."""
    HOP_LIMIT = "hop_limit"
    """The interaction reached its limit of messages in a row."""
    BUDGET_EXHAUSTED = "budget_exhausted"
    """A budget is used up: `details.left` has the limit and its owner. No model may be called. For
    a message: nothing woke you in its interaction, which is past a limit."""
    STOPPED = "stopped"
    """A person stopped this turn, thread or agent, or everything; or the breaker did."""
    TAKEN_OVER = "taken_over"
    """A person has taken over the agent."""
    TURN_OVER = "turn_over"
    """The turn has ended. After an end by a person or the hub, nothing more is recorded or sent."""
    WAIT_CYCLE = "wait_cycle"
    """Waiting for this answer would close a cycle of waits, which is in `details.cycle`."""
    NOT_FOUND = "not_found"
    """A mod's item does not exist or is not visible to you; the message has a hint."""
    CONFLICT = "conflict"
    """It has changed meanwhile: read it again and retry."""
    UNKNOWN_APPROVAL = "unknown_approval"
    """The approval does not exist or is not visible to you."""
    NOT_PENDING = "not_pending"
    """The approval was decided, has expired, or has been used."""
    UNKNOWN_REQUEST = "unknown_request"
    """The request does not exist or is not visible to you."""
    REQUEST_OVER = "request_over"
    """The request has ended: by a report, its deadline or a stop."""
    LIMIT = "limit"
    """A limit of the network is reached, for example of channels."""
    RATE_LIMITED = "rate_limited"
    """Too many calls per second; retry after `retry_after_s`."""
    CID_CONFLICT = "cid_conflict"
    """The cid was used for another write; `details.first` has its result."""
    STORE_UNAVAILABLE = "store_unavailable"
    """The disk refused; nothing was written."""
    LOG_DAMAGED = "log_damaged"
    """The requested log entry is damaged; `details.seq` is its position. The stream continues after
    it."""
    DRAINING = "draining"
    """The hub is stopping; reconnect."""
    INTERNAL = "internal"
    """The hub failed; its log has the details."""


class CloseCode(IntEnum):
    """The close codes of `hubbub.v1`."""

    INTERNAL = 4001
    """The hub failed."""
    SLOW = 4002
    """The peer does not read."""
    HEARTBEAT = 4003
    """The peer did not answer a ping."""
    STATE_LOST = 4004
    """Client and hub disagree about the stream."""
    RATE = 4005
    """The peer keeps calling despite `rate_limited`."""
    DRAIN = 4006
    """The hub is stopping."""
    AUTH = 4500
    """The peer did not identify, or not in time."""
    BAD_FRAME = 4501
    """The peer sends mostly bad frames."""
    VERSION = 4502
    """The hub does not support the version."""
    REPLACED = 4503
    """The agent has connected again."""
    REVOKED = 4504
    """The token was revoked."""


def may_reconnect(code: int) -> bool:
    """Whether a client that was closed with `code` should try again.

    Codes of the WebSocket protocol itself (1000-1015) allow reconnecting, except 1007 and 1009: the
    same frame, which is not text or is too large, would be refused again.
    """
    return code not in (1007, 1009) and not 4500 <= code <= 4999
