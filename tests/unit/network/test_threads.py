from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.threads import Thread, Threads
from tests.unit.protocol.drafts import thread_names


def test_a_thread_is_made_once_and_its_root_with_it() -> None:
    threads = Threads()
    made = threads.ensure("dm.ann.bob")
    assert threads.ensure("dm.ann.bob") is threads.get("dm.ann.bob") is made
    assert threads.by_no(made.no) is made
    assert (made.tseq, made.last_seq, made.stored) == (0, 0, False)
    reply = threads.ensure("channel.general.t5.t9")
    root = threads.get("channel.general")
    assert root is not None
    assert (reply.scope, root.scope, reply.type) == (root.no, root.no, "channel")
    for name in ("channel.t5", "mod.t5"):  # called like a reply
        alone = threads.ensure(name)
        assert alone.scope == alone.no
    assert len(threads) == 5
    direct = Thread(1, "dm.ann.bob.t4", None, stored=False)
    assert direct.members == {"ann", "bob"}
    assert direct.type == "direct"
    assert repr(direct) == "Thread('dm.ann.bob.t4', tseq=0)"


@pytest.mark.behaviour("S-12")
@given(st.sets(st.integers(1, 30), min_size=1), st.lists(thread_names(), max_size=6, unique=True))
def test_numbers_are_never_given_twice_though_some_threads_were_never_stored(
    stored: set[int], made: list[str]
) -> None:
    """A refused message leaves a thread in memory that no restart brings back."""
    threads = Threads()
    for no in stored:
        thread = threads.restore(no, f"channel.c{no}", 12, 99)
        assert (thread.tseq, thread.last_seq, thread.stored) == (12, 99, True)
    fresh = [threads.ensure(name).no for name in made if threads.get(name) is None]
    assert not set(fresh) & stored
    assert len(set(fresh)) == len(fresh)
    assert all(threads.by_no(no).no == no for no in fresh)
