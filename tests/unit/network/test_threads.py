from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.threads import Members, Thread, Threads
from tests.unit.protocol.drafts import thread_names


def test_a_thread_is_made_once() -> None:
    threads = Threads()
    made = threads.ensure("dm.ann.bob")
    assert threads.ensure("dm.ann.bob") is made
    assert threads.get("dm.ann.bob") is made
    assert threads.by_no(made.no) is made
    assert (made.tseq, made.last_seq, made.stored) == (0, 0, False)


def test_the_root_of_a_reply_thread_is_made_with_it() -> None:
    threads = Threads()
    reply = threads.ensure("channel.general.t5.t9")
    root = threads.get("channel.general")
    assert root is not None
    assert reply.scope == root.no == root.scope
    assert reply.type == "channel"


def test_a_channel_called_like_a_reply_is_a_thread_of_its_own() -> None:
    for name in ("channel.t5", "mod.t5"):
        threads = Threads()
        thread = threads.ensure(name)
        assert thread.scope == thread.no
        assert len(threads) == 1


@given(st.lists(thread_names(), max_size=12))
def test_numbers_are_never_given_twice(made: list[str]) -> None:
    threads = Threads()
    numbers = [threads.ensure(name).no for name in dict.fromkeys(made)]
    assert len(set(numbers)) == len(numbers)
    assert all(threads.by_no(no).no == no for no in numbers)


@pytest.mark.behaviour("S-12")
@given(st.sets(st.integers(1, 30), min_size=1))
def test_numbers_stay_unique_when_some_threads_were_never_stored(stored: set[int]) -> None:
    """A refused message leaves a thread in memory that no restart brings back."""
    threads = Threads()
    for no in stored:
        threads.restore(no, f"channel.c{no}", 0, 0)
    fresh = [threads.ensure(f"dm.ann.bob{n}").no for n in range(3)]
    assert not set(fresh) & stored
    assert len(set(fresh)) == 3


def test_a_restored_thread_goes_on_where_it_stood() -> None:
    threads = Threads()
    thread = threads.restore(7, "dm.ann.bob", 12, 99)
    assert (thread.tseq, thread.last_seq, thread.stored) == (12, 99, True)
    assert threads.ensure("dm.ann.carol").no == 8


def test_a_participant_sees_its_conversations_and_its_scopes() -> None:
    threads = Threads()
    general = threads.ensure("channel.general")
    for name in ("channel.general.t1", "dm.ann.bob", "dm.bob.carol", "channel.desk", "broadcast"):
        threads.ensure(name)
    seen = {thread.id for thread in threads.visible("ann", {general.no})}
    assert seen == {"dm.ann.bob", "channel.general", "channel.general.t1"}


def test_direct_threads_have_members_and_no_scope() -> None:
    thread = Thread(1, "dm.ann.bob.t4", None, stored=False)
    assert thread.members == {"ann", "bob"}
    assert thread.type == "direct"
    assert repr(thread) == "Thread('dm.ann.bob.t4', tseq=0)"


def test_joining_again_keeps_the_first_membership() -> None:
    members = Members()
    members.join("ann", 1, 5)
    members.join("ann", 1, 9)
    assert members.since("ann", 1) == 5
    assert members.of(1) == {"ann"}
    assert members.scopes("ann") == {1}


def test_who_leaves_is_a_member_no_more() -> None:
    members = Members()
    members.join("ann", 1, 5)
    members.join("bob", 1, 5)
    members.leave("ann", 1)
    members.leave("ann", 1)
    members.leave("carol", 7)
    assert members.of(1) == {"bob"}
    assert members.since("ann", 1) is None
    assert members.scopes("ann") == set()


def test_a_scope_that_nobody_joined_is_empty() -> None:
    assert Members().of(3) == set()
    assert Members().scopes("ann") == set()
