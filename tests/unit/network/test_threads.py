from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.threads import Thread, Threads
from tests.unit.protocol.drafts import thread_names


def test_a_thread_is_created_once_together_with_its_root() -> None:
    threads = Threads()
    thread = threads.ensure("dm.ann.bob")
    assert threads.ensure("dm.ann.bob") is threads.get("dm.ann.bob") is thread
    assert threads.by_no(thread.no) is thread
    assert (thread.tseq, thread.last_seq, thread.stored) == (0, 0, False)
    reply = threads.ensure("channel.general.t5.t9")
    root = threads.get("channel.general")
    assert root is not None
    assert (reply.scope, root.scope, reply.type) == (root.no, root.no, "channel")
    for name in ("channel.t5", "mod.t5"):  # named like a reply
        alone = threads.ensure(name)
        assert alone.scope == alone.no
    assert len(threads) == 5
    direct = Thread(1, "dm.ann.bob.t4", None, stored=False)
    assert direct.members == {"ann", "bob"}
    assert direct.type == "direct"
    assert repr(direct) == "Thread('dm.ann.bob.t4', tseq=0)"


@pytest.mark.behaviour("S-12")
@given(st.sets(st.integers(1, 30), min_size=1), st.lists(thread_names(), max_size=6, unique=True))
def test_thread_numbers_are_unique_even_after_unstored_threads(
    stored: set[int], names: list[str]
) -> None:
    """A refused message leaves a thread in memory that a restart does not restore."""
    threads = Threads()
    for no in stored:
        thread = threads.restore(no, f"channel.c{no}", 12, 99)
        assert (thread.tseq, thread.last_seq, thread.stored) == (12, 99, True)
    fresh = [threads.ensure(name).no for name in names if threads.get(name) is None]
    assert not set(fresh) & stored
    assert len(set(fresh)) == len(fresh)
    assert all(threads.by_no(no).no == no for no in fresh)
