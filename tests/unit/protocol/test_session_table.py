from __future__ import annotations

from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.session import WELCOME, SessionState, complaint

EARLY, AGAIN = ErrorCode.NOT_IDENTIFIED, ErrorCode.ALREADY_IDENTIFIED
OPS = ("identify", "call", "ack", "signal")
TABLE = {
    SessionState.CONNECTED: (None, EARLY, EARLY, EARLY),
    SessionState.IDENTIFYING: (AGAIN, EARLY, EARLY, EARLY),
    SessionState.READY: (AGAIN, None, None, None),
    SessionState.CLOSED: (AGAIN, EARLY, EARLY, EARLY),
}


def test_a_frame_is_welcome_or_the_table_says_why_not() -> None:
    assert set(TABLE) == set(WELCOME) == set(SessionState)
    for state, codes in TABLE.items():
        for op, code in zip(OPS, codes, strict=True):
            found = complaint(state, op)
            assert (found[0] if found else None) == code, (state, op)
    too_early = complaint(SessionState.CONNECTED, "call")
    assert too_early == (EARLY, "send `identify` before `call`")
    too_early = complaint(SessionState.IDENTIFYING, "call")
    assert too_early == (EARLY, "wait for `ready` before `call`")
