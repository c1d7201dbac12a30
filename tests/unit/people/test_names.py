"""Names of people and threads as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import UserError
from hubbub.people.names import check_name, default_name, find_thread, label, names_in
from hubbub.protocol import thread_ids

PEOPLE = ("ann", "bob", "carol", "general-smith", "desk")
CHANNELS = ("general", "desk")


def test_a_thread_is_found_by_each_of_its_names() -> None:
    for text, thread in {
        "bob": "dm.ann.bob",
        "@bob": "dm.ann.bob",
        "direct_bob": "dm.ann.bob",
        "dm.ann.bob": "dm.ann.bob",
        "dm.bob.carol": "dm.bob.carol",
        "carol,bob": "dm.ann.bob.carol",
        "@bob, @carol": "dm.ann.bob.carol",
        "ann,bob": "dm.ann.bob",
        "general": "channel.general",
        " #general ": "channel.general",
        "channel_general": "channel.general",
        "desk": "dm.ann.desk",
        "#desk": "channel.desk",
        "broadcast": "broadcast",
        "mod_tasks": "mod.tasks",
        "broadcast.t4": "broadcast.t4",
        "bob.t4": "dm.ann.bob.t4",
        "#general › m4 › m9": "channel.general.t4.t9",
    }.items():
        assert find_thread(text, "ann", PEOPLE, CHANNELS) == thread, text


def test_an_unknown_thread_is_one_sentence_with_the_nearest_name() -> None:
    for text, message in {
        "bbo": "there is no participant or channel 'bbo'; did you mean bob?",
        "#genral": "there is no channel '#genral'; did you mean general?",
        "@bbo": "there is no participant '@bbo'; did you mean bob?",
        "bob,nobody": "there is no thread",
        "direct_nobody": "there is no thread",
        "dm.ann.nobody": "there is no thread",
        "channel_nothing": "there is no thread",
        "#nothing.t4": "there is no channel '#nothing'",
        "": "there is no thread ''",
        "ann": "you cannot send a message to yourself",
        "hub": "hub is the network itself",
        "direct_hub": "hub is the network itself",
    }.items():
        with pytest.raises(UserError) as caught:
            find_thread(text, "ann", PEOPLE, CHANNELS)
        assert str(caught.value).startswith(message), text


def test_a_group_has_at_most_eight_members() -> None:
    people = [f"p{n}" for n in range(8)]
    assert find_thread(",".join(people[:7]), "ann", people, ()).count(".") == 8
    with pytest.raises(UserError):
        find_thread(",".join(people), "ann", people, ())


replies = st.lists(st.integers(1, 10**6), max_size=3)
tops = st.one_of(
    st.just("broadcast"),
    st.sampled_from(CHANNELS).map(thread_ids.channel),
    st.sets(st.sampled_from(PEOPLE), min_size=2).map(thread_ids.direct),
)


@given(tops, replies)
def test_a_thread_is_found_by_its_label_also_one_of_others(top: str, replies: list[int]) -> None:
    thread = top + "".join(f".t{seq}" for seq in replies)
    assert find_thread(label(thread, "ann"), "ann", PEOPLE, CHANNELS) == thread


@given(st.text(max_size=80))
def test_any_text_is_a_thread_or_an_error_of_one_line(text: str) -> None:
    try:
        thread = find_thread(text, "ann", PEOPLE, CHANNELS)
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert thread_ids.canonical(thread, "ann") == thread


def test_names_are_split_and_checked() -> None:
    assert names_in("@bob, carol+bob,,") == ("bob", "carol")
    assert check_name("ann") == "ann"
    for name in ("a b", "", "hub", "operator", "t5", "direct_bob", "x" * 65):
        with pytest.raises(UserError, match="is not a valid name"):
            check_name(name)


def test_the_default_name_is_a_person_of_the_network_or_the_system_user() -> None:
    for humans, user, name in (
        (("ann", "bob"), "root", "ann"),
        ((), "carol", "carol"),
        ((), "Jean Paul", "Jean-Paul"),
        ((), "müller", "m-ller"),
        ((), "operator", "guest"),
        ((), "t5", "guest"),
        ((), "漢字", "guest"),
        ((), "x" * 80, "x" * 64),
    ):
        assert default_name(humans, user) == name
        assert thread_ids.is_participant_id(name)
