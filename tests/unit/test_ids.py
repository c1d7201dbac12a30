from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub import ids
from tests.unit.protocol.drafts import participants

SEQS = st.integers(1, 10**18 - 1)


@given(SEQS)
def test_a_position_names_its_message_and_interaction_both_ways(seq: int) -> None:
    assert ids.parse_message_id(ids.message_id(seq)) == seq
    assert ids.parse_interaction_id(ids.interaction_id(seq)) == seq
    assert ids.parse_interaction_id(ids.message_id(seq)) is None
    assert ids.parse_message_id(ids.interaction_id(seq)) is None


@pytest.mark.parametrize(
    "text", ["", "m", "m0", "m01", "m-1", "m1 ", "m1\n", "M1", "1", "m" + "9" * 19, "m١"]
)
def test_what_only_looks_like_a_message_id_is_none(text: str) -> None:
    assert ids.parse_message_id(text) is None


@given(participants(), SEQS)
def test_a_turn_is_named_after_its_agent_and_message(agent: str, seq: int) -> None:
    assert ids.turn_id(agent, seq) == f"{agent}-m{seq}"


def test_the_write_of_a_repeated_turn_has_the_same_id() -> None:
    first = ids.write_id("calc-m5", 2, 1)
    assert first == ids.write_id("calc-m5", 2, 1)
    others = {ids.write_id("calc-m5", 2, 0), ids.write_id("calc-m5", 1, 1), ids.write_id("x", 2, 1)}
    assert first not in others
    assert len(others) == 3


def test_fresh_ulids_differ_and_have_26_characters() -> None:
    made = {ids.new_ulid() for _ in range(100)}
    assert len(made) == 100
    assert {len(ulid) for ulid in made} == {26}
