"""Which keys a participant will have when everything announced is stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.memories import MemoryKeys
from hubbub.network.stored import StoredKey


def test_keys_are_each_participants_own() -> None:
    keys = MemoryKeys([StoredKey("ann", "a"), StoredKey("ann", "b"), StoredKey("bob", "a")])
    assert keys.of("ann") == {"a", "b"}
    assert keys.of("bob") == {"a"}
    assert keys.of("carol") == set()


def test_an_announced_key_counts_at_once() -> None:
    keys = MemoryKeys()
    keys.announce("ann", "a", True)
    assert keys.of("ann") == {"a"}
    keys.announce("ann", "a", False)
    assert keys.of("ann") == set()
    keys.settle("ann", "a", True)
    assert keys.of("ann") == set(), "what was announced last is still on its way"
    keys.settle("ann", "a", False)
    assert keys.of("ann") == set()


def test_what_could_not_be_stored_is_as_before() -> None:
    keys = MemoryKeys([StoredKey("ann", "a")])
    keys.announce("ann", "a", False)
    keys.announce("ann", "b", True)
    keys.give_up("ann", "a", False)
    keys.give_up("ann", "b", True)
    assert keys.of("ann") == {"a"}


def test_the_set_that_was_given_does_not_change_with_the_keys() -> None:
    keys = MemoryKeys([StoredKey("ann", "a")])
    before = keys.of("ann")
    keys.announce("ann", "b", True)
    assert before == {"a"}


CHANGES = st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=12)


@given(CHANGES)
def test_in_the_end_there_is_what_the_store_has(changes: list[tuple[str, bool, bool]]) -> None:
    keys, stored = MemoryKeys(), set[str]()
    for key, there, _ in changes:
        keys.announce("ann", key, there)
    for key, there, kept in changes:
        if not kept:
            keys.give_up("ann", key, there)
            continue
        keys.settle("ann", key, there)
        if there:
            stored.add(key)
        else:
            stored.discard(key)
    assert keys.of("ann") == stored
