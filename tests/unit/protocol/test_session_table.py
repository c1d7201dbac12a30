from __future__ import annotations

from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.session import WELCOME, SessionState, complaint

OPS = ("identify", "call", "ack", "signal")
CONNECTED, IDENTIFYING = SessionState.CONNECTED, SessionState.IDENTIFYING
READY, CLOSED = SessionState.READY, SessionState.CLOSED

TABLE = [
    (CONNECTED, "identify", None),
    (CONNECTED, "call", ErrorCode.NOT_IDENTIFIED),
    (CONNECTED, "ack", ErrorCode.NOT_IDENTIFIED),
    (CONNECTED, "signal", ErrorCode.NOT_IDENTIFIED),
    (IDENTIFYING, "identify", ErrorCode.ALREADY_IDENTIFIED),
    (IDENTIFYING, "call", ErrorCode.NOT_IDENTIFIED),
    (IDENTIFYING, "ack", ErrorCode.NOT_IDENTIFIED),
    (IDENTIFYING, "signal", ErrorCode.NOT_IDENTIFIED),
    (READY, "identify", ErrorCode.ALREADY_IDENTIFIED),
    (READY, "call", None),
    (READY, "ack", None),
    (READY, "signal", None),
    (CLOSED, "identify", ErrorCode.ALREADY_IDENTIFIED),
    (CLOSED, "call", ErrorCode.NOT_IDENTIFIED),
    (CLOSED, "ack", ErrorCode.NOT_IDENTIFIED),
    (CLOSED, "signal", ErrorCode.NOT_IDENTIFIED),
]


def test_a_frame_is_welcome_or_the_table_says_why_not() -> None:
    for state, op, code in TABLE:
        found = complaint(state, op)
        assert (found[0] if found else None) == code


def test_the_table_has_a_row_for_every_state_and_frame() -> None:
    assert {(state, op) for state, op, _ in TABLE} == {(s, op) for s in SessionState for op in OPS}
    assert set(WELCOME) == set(SessionState)


def test_who_is_too_early_is_told_what_to_wait_for() -> None:
    assert complaint(CONNECTED, "call") == (
        ErrorCode.NOT_IDENTIFIED,
        "send `identify` before `call`",
    )
    assert complaint(IDENTIFYING, "call") == (
        ErrorCode.NOT_IDENTIFIED,
        "wait for `ready` before `call`",
    )
