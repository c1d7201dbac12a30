from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.network.trace_context import Ancestor, Recent, descend, opening
from hubbub.protocol.codes import ErrorCode

pytestmark = pytest.mark.behaviour("W-11")


def ancestor(hop: int, limit: int = 8) -> Ancestor:
    return Ancestor(1, "ann", "i7", hop, limit)


def test_a_person_opens_an_interaction_with_all_hops_and_an_agent_with_half() -> None:
    assert opening(True, 8) == (None, 0, 8)
    for hops, half in ((8, 4), (7, 3), (2, 1), (1, 1)):
        assert opening(False, hops) == (None, 0, half)


@given(st.integers(1, 50), st.booleans())
def test_every_chain_of_causes_ends_at_its_limit(hops: int, human: bool) -> None:
    context = opening(human, hops)
    for expected in range(1, context.hop_limit + 1):
        assert not context.at_limit
        context = descend(Ancestor(1, "a", "i1", context.hop, context.hop_limit))
        assert (context.interaction, context.hop) == ("i1", expected)
    assert context.at_limit
    with pytest.raises(OperationError) as caught:
        descend(Ancestor(1, "a", "i1", context.hop, context.hop_limit))
    assert caught.value.code == ErrorCode.HOP_LIMIT
    assert caught.value.details == {"interaction_id": "i1", "hops": context.hop_limit}


def test_recent_ancestors_are_found_and_old_ones_forgotten() -> None:
    recent = Recent(size=3)
    recent.add((seq, 1, "ann", "i7", seq, 8, False) for seq in range(1, 6))
    assert [recent.get(seq) for seq in (0, 1, 2, 6)] == [None] * 4
    assert [recent.get(seq) for seq in (3, 4, 5)] == [ancestor(3), ancestor(4), ancestor(5)]
    recent.add([(6, 1, "ann", None, 0, 8, False)])
    assert recent.get(6) == Ancestor(1, "ann", "i6", 0, 8), "it gave the interaction its name"
