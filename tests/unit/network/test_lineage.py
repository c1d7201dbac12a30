from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.network.lineage import Ancestor, Recent, descend, opening
from hubbub.protocol.codes import ErrorCode

pytestmark = pytest.mark.behaviour("W-11")


def ancestor(hop: int, limit: int = 8) -> Ancestor:
    return Ancestor(1, "ann", "i7", hop, limit)


def test_a_person_opens_an_interaction_with_all_hops() -> None:
    assert opening(True, 8) == (None, 0, 8)


def test_an_agent_that_speaks_up_by_itself_has_half_the_hops() -> None:
    cases: list[tuple[int, int]] = [(8, 4), (7, 3), (2, 1), (1, 1)]
    for hops, half in cases:
        assert opening(False, hops) == (None, 0, half)


def test_a_caused_message_is_one_hop_further_in_the_same_interaction() -> None:
    assert descend(ancestor(3)) == ("i7", 4, 8)


def test_the_last_hop_is_at_the_limit_and_causes_nothing_more() -> None:
    last = descend(ancestor(7))
    assert last.at_limit
    assert not descend(ancestor(6)).at_limit
    with pytest.raises(OperationError) as caught:
        descend(ancestor(last.hop))
    assert caught.value.code == ErrorCode.HOP_LIMIT
    assert caught.value.details == {"interaction_id": "i7", "hops": 8}


@given(st.integers(1, 50), st.booleans())
def test_every_chain_of_causes_ends_at_its_limit(hops: int, human: bool) -> None:
    lineage = opening(human, hops)
    for expected in range(1, lineage.hop_limit + 1):
        lineage = descend(Ancestor(1, "a", "i1", lineage.hop, lineage.hop_limit))
        assert lineage.hop == expected
    assert lineage.at_limit
    with pytest.raises(OperationError):
        descend(Ancestor(1, "a", "i1", lineage.hop, lineage.hop_limit))


def test_recent_ancestors_are_found_and_old_ones_forgotten() -> None:
    recent = Recent(size=3)
    for seq in range(1, 6):
        recent.add(seq, 1, "ann", "i7", seq, 8)
    assert [recent.get(seq) for seq in (1, 2)] == [None, None]
    assert [recent.get(seq) for seq in (3, 4, 5)] == [ancestor(3), ancestor(4), ancestor(5)]
    assert recent.get(6) is None
    assert recent.get(0) is None


def test_a_message_that_opened_an_interaction_gave_it_its_name() -> None:
    recent = Recent(size=3)
    recent.add(5, 1, "ann", None, 0, 8)
    assert recent.get(5) == Ancestor(1, "ann", "i5", 0, 8)
