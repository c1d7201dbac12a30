from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import OperationError
from hubbub.network.trace_context import Ancestor, descend, opening
from hubbub.protocol.codes import ErrorCode

pytestmark = pytest.mark.behaviour("W-11")


def test_an_interaction_has_all_hops_for_a_person_and_half_for_an_agent() -> None:
    assert opening(True, 8) == (None, 0, 8)
    for hops, half in ((8, 4), (7, 3), (2, 1), (1, 1)):
        assert opening(False, hops) == (None, 0, half)


@given(st.integers(1, 50), st.booleans())
def test_every_chain_of_causes_ends_at_its_hop_limit(hops: int, human: bool) -> None:
    context = opening(human, hops)
    for expected in range(1, context.hop_limit + 1):
        assert context.hop < context.hop_limit
        context = descend(Ancestor(1, "a", "i1", context.hop, context.hop_limit))
        assert (context.interaction, context.hop) == ("i1", expected)
    assert context.hop == context.hop_limit
    with pytest.raises(OperationError) as caught:
        descend(Ancestor(1, "a", "i1", context.hop, context.hop_limit))
    assert caught.value.code == ErrorCode.HOP_LIMIT
    assert caught.value.details == {"interaction_id": "i1", "hops": context.hop_limit}
