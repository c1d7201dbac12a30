from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import ids


@given(st.integers(1, 10**18 - 1))
def test_positions_convert_to_message_and_interaction_ids_and_back(seq: int) -> None:
    assert ids.parse_message_id(ids.message_id(seq)) == seq
    assert ids.parse_interaction_id(ids.interaction_id(seq)) == seq
    assert ids.parse_interaction_id(ids.message_id(seq)) is None
    assert ids.parse_message_id(ids.interaction_id(seq)) is None


def test_a_malformed_message_id_is_not_parsed() -> None:
    for text in ("", "m", "m0", "m01", "m-1", "m1 ", "m1\n", "M1", "1", "m" + "9" * 19, "m١"):
        assert ids.parse_message_id(text) is None, repr(text)


def test_a_repeated_turn_has_the_same_turn_and_write_ids() -> None:
    assert ids.turn_id("calc", 5) == "calc-m5"
    first = ids.write_id("calc-m5", 2, 1)
    assert first == ids.write_id("calc-m5", 2, 1)
    others = {ids.write_id("calc-m5", 2, 0), ids.write_id("calc-m5", 1, 1), ids.write_id("x", 2, 1)}
    assert first not in others
    assert len(others) == 3


def test_a_ulid_is_milliseconds_and_randomness_in_base_32(monkeypatch: pytest.MonkeyPatch) -> None:
    # The time of the example in the ULID specification, and its digits for all bits.
    monkeypatch.setattr(ids, "time_ns", lambda: 1_469_918_176_385_999_999)
    monkeypatch.setattr(ids, "urandom", lambda size: b"\xff" * size)
    assert ids.new_ulid() == "01ARYZ6S41" + "Z" * 16


def test_new_ulids_are_unique_and_have_26_characters() -> None:
    ulids = {ids.new_ulid() for _ in range(100)}
    assert len(ulids) == 100
    assert {len(ulid) for ulid in ulids} == {26}
