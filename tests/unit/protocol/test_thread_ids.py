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
def test_what_a_member_is_shown_leads_back_to_the_thread(thread: str) -> None:
    for reader in members_of(thread) or ("ann",):
        assert canonical(relative(thread, reader), reader) == thread


@given(thread_names())
def test_a_canonical_id_means_itself_to_everybody(thread: str) -> None:
    for reader in (*members_of(thread), "somebody-else"):
        assert canonical(thread, reader) == thread


@given(thread_names())
def test_every_part_of_a_canonical_id_is_a_token_without_dots_or_blanks(thread: str) -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", part) for part in thread.split("."))


@given(thread_names(depth=4), st.integers(1, 10**9))
def test_a_reply_thread_hangs_one_level_under_its_parent(thread: str, seq: int) -> None:
    under = reply_thread(thread, seq)
    assert parent(under) == thread
    assert depth(under) == depth(thread) + 1
    assert root(under) == root(thread)
    assert kind_of(under) == kind_of(thread)
    assert members_of(under) == members_of(thread)


@given(thread_names(depth=4), st.integers(1, 10**9))
def test_a_thread_is_within_itself_and_all_that_it_hangs_in(thread: str, seq: int) -> None:
    under = reply_thread(reply_thread(thread, seq), seq)
    assert within(thread, thread)
    assert within(under, thread)
    assert within(under, root(thread))
    assert not within(thread, under)
    assert not within(under, reply_thread(thread, seq + 1))


@given(thread_names())
def test_the_root_has_no_parent_and_depth_nought(thread: str) -> None:
    top = root(thread)
    assert parent(top) is None
    assert depth(top) == 0
    assert thread.startswith(top)


@given(
    st.sets(participants(), min_size=2, max_size=MAX_GROUP).flatmap(
        lambda members: st.permutations(sorted(members))
    )
)
def test_a_conversation_has_one_id_however_its_members_are_listed(members: list[str]) -> None:
    assert direct(members) == direct(sorted(members))
    assert canonical("dm." + ".".join(members), members[0]) == direct(members)
    assert members_of(direct(members)) == tuple(sorted(members))


@given(st.text(max_size=40), participants())
def test_any_text_is_a_canonical_id_or_none_and_never_an_error(text: str, reader: str) -> None:
    found = canonical(text, reader)
    if found is not None:
        assert canonical(found, reader) == found
        assert kind_of(found) in ("direct", "channel", "broadcast", "mod")


def test_relative_ids_are_read_from_the_readers_place() -> None:
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
    ]
    for shown, meant in cases:
        assert canonical(shown, "alice") == meant


def test_what_is_no_thread_id_means_none() -> None:
    cases: list[str] = [
        "",
        "bob",
        "direct_",
        "direct_alice",  # a conversation with oneself
        "direct_bob+",
        "direct_a b",
        "dm.alice",
        "dm.alice.alice",
        "dm.alice.alice.t5",
        "dm.alice.t5",  # nobody is called t5
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


def test_members_in_another_order_mean_the_same_thread() -> None:
    assert canonical("dm.bob.alice", "alice") == "dm.alice.bob"
    assert canonical("dm.carol.alice.bob.t9", "bob") == "dm.alice.bob.carol.t9"


def test_a_channel_that_looks_like_a_reply_is_a_channel() -> None:
    assert parent(channel("t5")) is None
    assert root("channel.t5.t6") == "channel.t5"
    assert relative("channel.t5.t6", "ann") == "channel_t5.t6"


def test_a_group_of_eight_has_a_name_for_each_of_them() -> None:
    members = [f"agent-{number}" for number in range(MAX_GROUP)]
    shown = relative(direct(members), "agent-3")
    assert shown.count("+") == MAX_GROUP - 2
    assert "agent-3" not in shown


def test_ids_are_letters_digits_dash_and_underscore_up_to_64() -> None:
    cases: list[str] = ["a", "A_b-9", "x" * 64, "-", "42"]
    for name in cases:
        assert is_id(name)
        assert is_participant_id(name)


def test_anything_else_is_no_id() -> None:
    cases: list[str] = ["", "a b", "a.b", "ä", "x" * 65, "a\n", "a+b", "@ann", "a\0"]
    for name in cases:
        assert not is_id(name)
        assert not is_participant_id(name)


def test_reserved_names_and_names_like_replies_are_nobodys() -> None:
    cases: list[str] = [*sorted(RESERVED_IDS), "t5", "t123456"]
    for name in cases:
        assert is_id(name)
        assert not is_participant_id(name)


def test_names_that_read_like_threads_are_nobodys() -> None:
    for name in ("direct_bob", "channel_general", "mod_tasks", "direct_"):
        assert is_id(name)
        assert not is_participant_id(name)
        assert not is_channel_name(name)


def test_a_channel_may_have_any_other_name() -> None:
    for name in ("general", "t5", "directions", "channel", "mod-x"):
        assert is_channel_name(name)


def test_names_that_only_begin_like_a_reply_are_fine() -> None:
    for name in ("t", "t0", "tom", "t5x", "T5"):
        assert is_participant_id(name)


def test_only_direct_threads_carry_their_members() -> None:
    assert members_of("channel.general.t3") == ()
    assert members_of(thread_ids.BROADCAST) == ()
