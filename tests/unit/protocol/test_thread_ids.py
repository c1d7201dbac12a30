from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.protocol import thread_ids
from hubbub.protocol.thread_ids import (
    MAX_GROUP,
    RESERVED_IDS,
    canonical,
    channel,
    depth,
    direct,
    is_channel_name,
    is_id,
    is_participant_id,
    kind_of,
    members_of,
    parent,
    relative,
    reply_thread,
    root,
    within,
)
from tests.unit.protocol.drafts import participants, thread_names

pytestmark = pytest.mark.behaviour("P-10")


@given(thread_names())
def test_canonical_ids_are_stable_and_relative_ids_convert_back(
    thread: str,
) -> None:
    for reader in (*members_of(thread), "somebody-else"):
        assert canonical(thread, reader) == thread
    for reader in members_of(thread) or ("ann",):
        assert canonical(relative(thread, reader), reader) == thread
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", part) for part in thread.split("."))
    top = root(thread)
    assert (parent(top), depth(top), thread.startswith(top)) == (None, 0, True)


@given(thread_names(depth=3), st.integers(1, 10**9))
def test_a_reply_thread_is_one_level_below_its_parent(thread: str, seq: int) -> None:
    under = reply_thread(thread, seq)
    assert (parent(under), depth(under)) == (thread, depth(thread) + 1)
    for same in (root, kind_of, members_of):
        assert same(under) == same(thread)
    deeper = reply_thread(under, seq)
    assert within(thread, thread)
    assert within(deeper, thread)
    assert within(deeper, root(thread))
    assert not within(thread, under)
    assert not within(deeper, reply_thread(thread, seq + 1))


@given(
    st.sets(participants(), min_size=2, max_size=MAX_GROUP).flatmap(
        lambda members: st.permutations(sorted(members))
    )
)
def test_a_direct_thread_has_one_id_for_any_order_of_members(members: list[str]) -> None:
    assert direct(members) == direct(sorted(members))
    assert canonical("dm." + ".".join(members), members[0]) == direct(members)
    assert members_of(direct(members)) == tuple(sorted(members))


@given(st.text(max_size=40), participants())
def test_any_text_converts_to_a_canonical_id_or_none(text: str, reader: str) -> None:
    thread = canonical(text, reader)
    if thread is not None:
        assert canonical(thread, reader) == thread
        assert kind_of(thread) in ("direct", "channel", "broadcast", "mod")


def test_relative_ids_are_resolved_for_their_reader() -> None:
    cases: list[tuple[str, str]] = [
        ("direct_bob", "dm.alice.bob"),
        ("direct_alice+bob", "dm.alice.bob"),
        ("direct_carol+bob", "dm.alice.bob.carol"),
        ("channel_general", "channel.general"),
        ("channel_general.t42", "channel.general.t42"),
        ("broadcast", "broadcast"),
        ("broadcast.t1.t2", "broadcast.t1.t2"),
        ("mod_tasks", "mod.tasks"),
        ("direct_bob.t7", "dm.alice.bob.t7"),
        ("channel_t5", "channel.t5"),
        ("channel.t5.t6", "channel.t5.t6"),
        ("dm.bob.alice", "dm.alice.bob"),
        ("dm.carol.alice.bob.t9", "dm.alice.bob.carol.t9"),
    ]
    for shown, expected in cases:
        assert canonical(shown, "alice") == expected


def test_an_invalid_thread_id_is_none() -> None:
    cases: list[str] = [
        "",
        "bob",
        "direct_",
        "direct_alice",  # only the reader
        "direct_bob+",
        "direct_a b",
        "dm.alice",
        "dm.alice.alice",
        "dm.alice.alice.t5",
        "dm.alice.t5",  # t5 is a reply, not a participant
        "direct_t5",
        "dm." + ".".join("abcdefghi"),
        "direct_" + "+".join("abcdefgh"),  # nine with alice
        "channel_general+random",
        "channel.",
        "channel",
        "channel.general.t0",
        "channel.general.t05",
        "channel.general.x",
        "broadcast.5",
        "mod",
        "group.x",
        "broadcast\n",
        "channel.général",
        "channel." + "x" * 65,
    ]
    for text in cases:
        assert canonical(text, "alice") is None


def test_ids_are_up_to_64_letters_digits_dashes_and_underscores() -> None:
    for name in ("a", "A_b-9", "x" * 64, "-", "42", "t", "t0", "tom", "t5x", "T5"):
        assert is_id(name)
        assert is_participant_id(name)
    for name in ("", "a b", "a.b", "ä", "x" * 65, "a\n", "a+b", "@ann", "a\0"):
        assert not is_id(name)
        assert not is_participant_id(name)


def test_reserved_names_are_not_participant_ids() -> None:
    threads = ("direct_bob", "channel_general", "mod_tasks", "direct_")
    for name in (*sorted(RESERVED_IDS), "t5", "t123456", *threads):
        assert is_id(name)
        assert not is_participant_id(name)
    assert not any(is_channel_name(name) for name in threads)
    for name in ("general", "t5", "directions", "channel", "mod-x"):
        assert is_channel_name(name)


def test_reply_like_channels_and_large_groups_keep_their_names() -> None:
    assert parent(channel("t5")) is None
    assert root("channel.t5.t6") == "channel.t5"
    assert relative("channel.t5.t6", "ann") == "channel_t5.t6"
    members = [f"agent-{number}" for number in range(MAX_GROUP)]
    shown = relative(direct(members), "agent-3")
    assert (shown.count("+"), "agent-3" in shown) == (MAX_GROUP - 2, False)
    assert members_of("channel.general.t3") == members_of(thread_ids.BROADCAST) == ()
