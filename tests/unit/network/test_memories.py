"""Which keys a participant will have when everything announced is stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.state import MemoryKeys

CHANGES = st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=12)


@given(CHANGES)
def test_in_the_end_there_is_what_the_store_has(changes: list[tuple[str, bool, bool]]) -> None:
    keys, stored = MemoryKeys(), set[str]()
    for key, there, _ in changes:
        keys.announce("ann", key, there)
    for key, there, kept in changes:
        if kept:
            keys.put("ann", key, there)
            (stored.add if there else stored.discard)(key)
        keys.withdraw("ann", key, there)
    assert keys.of("ann") == stored
