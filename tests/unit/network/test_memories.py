"""Which keys a participant will have when everything announced is stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.marks import MemoryKeys
from hubbub.network.stored import StoredKey


def test_an_announced_key_counts_at_once_unless_it_could_not_be_stored() -> None:
    keys = MemoryKeys([StoredKey("ann", "a"), StoredKey("ann", "b"), StoredKey("bob", "a")])
    before = keys.of("ann")
    assert (before, keys.of("bob"), keys.of("carol")) == ({"a", "b"}, {"a"}, set())
    keys.announce("ann", "c", True)
    keys.announce("ann", "a", False)
    assert (before, keys.of("ann")) == ({"a", "b"}, {"b", "c"}), "what was given does not change"
    keys.withdraw("ann", "a", False)
    keys.announce("ann", "c", False)
    keys.put("ann", "c", True)
    keys.withdraw("ann", "c", True)
    assert keys.of("ann") == {"a", "b"}, "what was announced last is still on its way"
    keys.put("ann", "c", False)
    keys.withdraw("ann", "c", False)
    assert keys.of("ann") == {"a", "b"}


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
