from __future__ import annotations

import pytest

from hubbub.protocol.codes import CloseCode, ErrorCode, may_reconnect

pytestmark = pytest.mark.behaviour("P-20")

CODES = {
    **{"INTERNAL": 4001, "SLOW": 4002, "HEARTBEAT": 4003, "STATE_LOST": 4004, "RATE": 4005},
    **{"DRAIN": 4006, "AUTH": 4500, "BAD_FRAME": 4501, "VERSION": 4502, "REPLACED": 4503},
    "REVOKED": 4504,
}


def test_close_codes_are_those_of_the_protocol_and_their_range_is_the_verdict() -> None:
    assert {code.name: code.value for code in CloseCode} == CODES
    for code in CloseCode:
        assert may_reconnect(code) == (code < 4500)
    for ending in (1000, 1001, 1006, 1011, 1012):
        assert may_reconnect(ending), "ends that are no verdict say come back"
    assert not may_reconnect(1009), "what was too large would be so again"


def test_error_codes_are_words_that_programs_compare() -> None:
    for code in ErrorCode:
        assert f"{code}" == code.value == code.name.lower()
