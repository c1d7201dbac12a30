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
    """A frame, text or value beyond the limits that `hello` tells."""
    NOT_IDENTIFIED = "not_identified"
    """`identify` first, and wait for `ready`."""
    ALREADY_IDENTIFIED = "already_identified"
    """A socket belongs to one participant for good."""
    AUTH_FAILED = "auth_failed"
    """The token does not prove the participant, or the name or kind cannot be had."""
    UNSUPPORTED_VERSION = "unsupported_version"
    """The hub does not speak this version; `hello` lists those it does."""
    UNKNOWN_OPERATION = "unknown_operation"
    """The message names the nearest operation that exists."""
    UNKNOWN_PARTICIPANT = "unknown_participant"
    """No participant ever had that name."""
    UNKNOWN_THREAD = "unknown_thread"
    """There is no such thread for you."""
    UNKNOWN_CHANNEL = "unknown_channel"
    """There is no such channel."""
    UNKNOWN_MESSAGE = "unknown_message"
    """There is no such message for you."""
    UNKNOWN_INTERACTION = "unknown_interaction"
    """There is no such interaction for you."""
    UNKNOWN_TURN = "unknown_turn"
    """There is no such turn for you."""
    NOT_TRIED = "not_tried"
    """What happened could not be tried again; the message says why."""
    UNKNOWN_KEY = "unknown_key"
    """You remember nothing under that key."""
    CHANNEL_EXISTS = "channel_exists"
    """The name is taken."""
    FORBIDDEN = "forbidden"
    """You may not do that here."""
    REJECTED = "rejected"
    """A mod refused the message; the reason is its own."""
    THREAD_DEPTH = "thread_depth"
    """Reply threads do not nest deeper; answer in the thread itself."""
    HOP_LIMIT = "hop_limit"
    """The interaction has gone through as many messages in a row as it may."""
    BUDGET_EXHAUSTED = "budget_exhausted"
    """A budget is used up: `details.left` names limit and whose it is. No model may be asked. Of a
    message: nothing has woken you in its interaction, which is past a limit."""
    STOPPED = "stopped"
    """A person has stopped this turn, thread or agent, or everything; or the breaker has."""
    TAKEN_OVER = "taken_over"
    """A person speaks for the agent at present."""
    TURN_OVER = "turn_over"
    """The turn has ended; nothing more is recorded or said in it."""
    WAIT_CYCLE = "wait_cycle"
    """Waiting for this answer would close a circle of waits; `details.cycle` names it."""
    NOT_FOUND = "not_found"
    """What a mod keeps is not there for you; the message says where to look."""
    CONFLICT = "conflict"
    """Somebody else has changed it meanwhile: read it again, and decide anew."""
    UNKNOWN_APPROVAL = "unknown_approval"
    """There is no such approval for you."""
    NOT_PENDING = "not_pending"
    """The approval was decided, has expired, or has been used."""
    UNKNOWN_REQUEST = "unknown_request"
    """There is no such request for you."""
    REQUEST_OVER = "request_over"
    """The request has ended: by a report, its deadline or a stop."""
    LIMIT = "limit"
    """A number that the network limits is reached, for example of channels."""
    RATE_LIMITED = "rate_limited"
    """Too many calls a second; `retry_after_s` says when."""
    CID_CONFLICT = "cid_conflict"
    """The cid was used for another write; `details.first` has its result."""
    STORE_UNAVAILABLE = "store_unavailable"
    """The disk refuses; nothing was written."""
    LOG_DAMAGED = "log_damaged"
    """What was asked for cannot be proven to be what was written; `details.seq` is its position. In
    the stream: it goes on after that."""
    DRAINING = "draining"
    """The hub is stopping; come back."""
    INTERNAL = "internal"
    """The hub failed; its log says how."""


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
    """The peer goes on calling in spite of `rate_limited`."""
    DRAIN = 4006
    """The hub is stopping."""
    AUTH = 4500
    """The peer did not prove who it is, or not in time."""
    BAD_FRAME = 4501
    """The peer sends little but bad frames."""
    VERSION = 4502
    """The hub does not speak the version."""
    REPLACED = 4503
    """The agent has connected again."""
    REVOKED = 4504
    """The token was revoked."""


def may_reconnect(code: int) -> bool:
    """Whether a client that was closed with `code` should try again.

    Codes of the WebSocket protocol itself (1000-1015) count as come back, except 1007 and 1009: the
    same frame, which is no text or too large, would be refused again.
    """
    return code not in (1007, 1009) and not 4500 <= code <= 4999
