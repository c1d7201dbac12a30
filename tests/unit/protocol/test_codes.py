from __future__ import annotations

import pytest

from hubbub.protocol.codes import CloseCode, ErrorCode, may_reconnect

pytestmark = pytest.mark.behaviour("P-20")


def test_the_range_of_a_close_code_is_the_verdict() -> None:
    for code in list(CloseCode):
        assert 4000 <= code <= 4999
        assert may_reconnect(code) == (code < 4500)


def test_close_codes_are_those_of_the_protocol() -> None:
    cases: list[tuple[str, int]] = [
        ("INTERNAL", 4001),
        ("SLOW", 4002),
        ("HEARTBEAT", 4003),
        ("STATE_LOST", 4004),
        ("RATE", 4005),
        ("DRAIN", 4006),
        ("AUTH", 4500),
        ("BAD_FRAME", 4501),
        ("VERSION", 4502),
        ("REPLACED", 4503),
        ("REVOKED", 4504),
    ]
    for name, code in cases:
        assert CloseCode[name] == code


def test_the_list_above_is_complete() -> None:
    assert len(CloseCode) == 11


def test_ends_that_are_no_verdict_say_come_back() -> None:
    for code in (1000, 1001, 1006, 1011, 1012):
        assert may_reconnect(code)


def test_a_frame_that_was_too_large_would_be_too_large_again() -> None:
    assert not may_reconnect(1009)


def test_error_codes_are_words_that_programs_compare() -> None:
    for code in ErrorCode:
        assert code.value == code.name.lower()
        assert f"{code}" == code.value
