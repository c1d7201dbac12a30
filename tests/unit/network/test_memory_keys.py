"""The keys of a participant, including those still being stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.marks import MemoryKeys
from hubbub.network.stored import StoredKey


def test_an_announced_key_counts_unless_it_is_withdrawn() -> None:
    keys = MemoryKeys([StoredKey("ann", "a"), StoredKey("ann", "b"), StoredKey("bob", "a")])
    before = keys.of("ann")
    assert (before, keys.of("bob"), keys.of("carol")) == ({"a", "b"}, {"a"}, set())
    keys.announce("ann", "c", True)
    keys.announce("ann", "a", False)
    assert (before, keys.of("ann")) == ({"a", "b"}, {"b", "c"}), "an earlier result does not change"
    keys.withdraw("ann", "a", False)
    keys.announce("ann", "c", False)
    keys.put("ann", "c", True)
    keys.withdraw("ann", "c", True)
    assert keys.of("ann") == {"a", "b"}, "the last announcement is still pending"
    keys.put("ann", "c", False)
    keys.withdraw("ann", "c", False)
    assert keys.of("ann") == {"a", "b"}


CHANGES = st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=12)


@given(CHANGES)
def test_the_keys_finally_equal_those_in_the_store(changes: list[tuple[str, bool, bool]]) -> None:
    keys, stored = MemoryKeys(), set[str]()
    for key, exists, _ in changes:
        keys.announce("ann", key, exists)
    for key, exists, succeeds in changes:
        if succeeds:
            keys.put("ann", key, exists)
            (stored.add if exists else stored.discard)(key)
        keys.withdraw("ann", key, exists)
    assert keys.of("ann") == stored
