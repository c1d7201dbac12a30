"""The state shared by both clients of a person: activities, threads and channels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.people.state import (
    KEPT,
    LASTS_S,
    TYPING_S,
    ClientState,
    ClientThread,
    CurrentActivities,
)
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Channel
from hubbub.protocol.operations import ThreadPage
from tests.unit.people.chatting import posted, ready, thread

GENERAL, DM = "channel.general", "dm.ann.bob"


# Activities ---------------------------------------------------------------------------------------


def activities_after(*signals: Signal) -> CurrentActivities:
    activities = CurrentActivities()
    for n, each in enumerate(signals):
        activities.take(each, n)
    return activities


def activity(data: JsonValue, thread: str | None = "broadcast") -> Signal:
    return Signal(type="activity", sender="calc", thread_id=thread, data=data)


def test_an_activity_is_a_short_sentence_until_it_ends() -> None:
    cases: tuple[tuple[JsonValue, str], ...] = (
        ("thinking", "calc is thinking"),
        ({"state": "thinking"}, "calc is thinking"),
        ({"state": "calling", "tool": "read_thread"}, "calc is calling read_thread"),
        ({"state": "waiting", "for": "bob"}, "calc is waiting for bob"),
        ({"percent": 3}, "calc is thinking"),
        (True, "calc is thinking"),
        ("evil\x1b[2J", "calc is evil<U+001B>[2J"),
    )
    for data, sentence in cases:
        assert activities_after(activity(data)).now(0) == [sentence]
    assert len(activities_after(activity("x" * 500)).now(0)[0]) < 60
    ends: tuple[JsonValue, ...] = ("idle", "done", "", None, False, {"state": "finished"})
    for end in ends:
        assert activities_after(activity("thinking"), activity(end)).now(1) == []
    parked = activity({"state": "waiting", "for": "approval"})
    elsewhere = activity("thinking", "channel.desk")
    still = activities_after(elsewhere, parked, activity({"state": "idle"}, None))
    assert still.now(1) == ["calc is waiting for approval"], "it works nowhere"
    typing = Signal(type="typing", sender="bob", data=True)
    activities = activities_after(typing, Signal(type="partial", sender="eve", data="text"))
    assert activities.now(0) == ["bob is typing"]
    assert activities.now(TYPING_S + 1) == []
    assert activities_after(typing, typing.model_copy(update={"data": False})).now(0) == []


def test_an_unconfirmed_activity_expires() -> None:
    activities = activities_after(activity("thinking"))
    assert activities.now(LASTS_S - 1) == ["calc is thinking"]
    activities.take(activity("thinking"), LASTS_S - 1)
    assert activities.now(LASTS_S + 1) == ["calc is thinking"]
    assert activities.now(2 * LASTS_S - 1) == []
    activities = activities_after()
    for data, at, since in (
        ("thinking", 10, 10),
        ("thinking", 15, 10),
        ({"state": "calling", "tool": "add"}, 16, 16),
    ):
        activities.take(activity(data), at)  # type: ignore[arg-type]
        assert activities.by_sender(at)["calc"].since == since
    activities.take(activity("thinking").model_copy(update={"age_s": 6.0}), 20)
    assert activities.by_sender(20)["calc"].since == 14
    activities.clear()
    assert activities.now(20) == []


def test_a_participant_active_in_several_threads_is_listed_once() -> None:
    public, private = activity("thinking"), activity("thinking", DM)
    activities = activities_after(public, private)
    assert activities.now(1) == ["calc is thinking"]
    activities.over("calc", "broadcast")
    assert activities.now(1) == ["calc is thinking"]
    activities.over("calc", DM)
    assert activities.now(1) == []
    assert activities_after(public, private, activity({"state": "idle"}, None)).now(2) == []
    activities = activities_after(public, activity({"state": "working"}, None))
    assert activities.now(1) == ["calc is thinking"]
    activities.over("calc", "broadcast")
    assert activities.now(1) == ["calc is working"]


# Client state -------------------------------------------------------------------------------------


def client_state() -> ClientState:
    state = ClientState("ann")
    state.know(ready(thread(posted(3, tseq=3), read=1)))
    return state


def test_a_connection_that_does_not_resume_is_a_fresh_start() -> None:
    state = ClientState("ann")
    assert state.know(ready(resumed=True))  # there is no state to resume
    assert not state.know(ready(resumed=True))
    assert state.know(ready())
    assert set(client_state().threads) == {"broadcast", GENERAL}


def test_a_message_is_new_once_and_is_found_by_its_position() -> None:
    state = client_state()
    assert state.note(posted(4, tseq=4))
    assert not state.note(posted(4, tseq=4))
    assert state.thread(GENERAL).head == 4
    third = state.message(3)
    assert third is not None
    assert third.id == "m3"
    assert state.message(9) is None
    for place in ("1", "m9"):
        with pytest.raises(UserError, match="there is no"):
            state.find(place)
    state.note(posted(5, tseq=5, sender="ann", mentions=("ann",)))  # by herself
    state.note(posted(6, tseq=6, sender="bob", mentions=("bob",)))
    assert state.thread(GENERAL).mentions == set()


def test_a_thread_with_the_hub_or_with_an_imported_name_is_found_by_its_label() -> None:
    state = client_state()
    for direct in ("dm.ann.hub", "dm.ann.gone"):
        with pytest.raises(UserError):
            state.find(state.shown(direct))
        state.thread(direct)
        assert state.find(state.shown(direct)) == direct


def test_messages_beyond_the_read_mark_are_unread() -> None:
    thread = ClientThread("broadcast", head=7, read=3, mentions={2, 5, 6})
    assert (thread.unread, thread.unread_mentions, thread.mentioned) == (4, 2, True)
    thread.read = 7
    assert (thread.unread, thread.unread_mentions, thread.mentioned) == (0, 0, False)
    thread.read = 9  # the hub is ahead of the client
    assert thread.unread == 0


def test_the_first_message_in_a_reply_thread_is_sent_as_a_reply() -> None:
    for thread_id, operation, where in (
        (DM, "send_text_message", {"to": DM}),
        ("broadcast", "send_text_message", {"to": "broadcast"}),
        ("channel.general.t3", "reply", {"message_id": "m3"}),
        ("channel.general.t3.t12", "reply", {"message_id": "m12"}),
    ):
        state = client_state()
        assert state.way_to(thread_id) == (operation, where)
        state.note(posted(20, thread=thread_id, tseq=1))
        assert state.way_to(thread_id) == ("send_text_message", {"to": thread_id})


def test_the_oldest_page_tells_whether_there_is_more() -> None:
    state = client_state()
    general = state.thread(GENERAL)
    for seq, more, messages, still_more in (
        (2, True, [2, 3], True),
        (3, True, [2, 3], True),
        (1, False, [1, 2, 3], False),
        (3, True, [1, 2, 3], False),  # older than the newest
    ):
        page = ThreadPage(thread_id=GENERAL, messages=(posted(seq, tseq=seq),), more=more)
        state.learn(page)
        assert (list(general.messages), general.more) == (messages, still_more)


@given(st.lists(st.integers(1, 2 * KEPT), unique=True, max_size=60))
def test_messages_are_ordered_regardless_of_their_arrival(numbers: list[int]) -> None:
    thread = ClientThread("broadcast")
    for n in numbers:
        thread.append(posted(n, thread="broadcast", tseq=n))
    assert list(thread.messages) == sorted(numbers)
    assert thread.oldest == min(numbers, default=0)
    assert thread.head == max(numbers, default=0)
    assert (thread.last.seq if thread.last else 0) == thread.head


# Channels -----------------------------------------------------------------------------------------


def channel_signal(name: str, *members: str, description: str = "") -> Signal:
    data: JsonValue = {"name": name, "description": description, "members": [*members]}
    return Signal(type="channel", sender="hub", data=data)


def test_other_channels_are_listed_and_joined_ones_are_threads() -> None:
    state = client_state()
    state.hear(channel_signal("plans", "bob", "bot", description="What is next"), 0.0)
    expected = Channel(name="plans", description="What is next", members=("bob", "bot"))
    assert state.channels["plans"] == expected
    assert "channel.plans" not in state.threads
    with pytest.raises(UserError, match="/join plans"):
        state.channel("plans")
    state.hear(channel_signal("plans", "ann", "bob"), 0.0)
    assert state.channel("plans") == "channel.plans"
    assert "channel.plans" in state.threads
    state.hear(channel_signal("general", "ann", "carol"), 0.0)
    assert state.channels["general"].members == ("ann", "carol")
    assert state.message(3) is not None, "the thread keeps its messages"
    state.note(posted(9, thread="channel.desk", tseq=1))
    state.note(posted(10, thread="channel.brand-new.t9", tseq=1))
    assert state.channels["desk"].joined
    assert state.channels["desk"].description == "work"
    assert state.channel("brand-new") == "channel.brand-new"
    state.note(posted(11, thread="channel.general.t3", tseq=1))
    state.hear(channel_signal("general", "bob"), 0.0)  # left in another window
    state.parted("unheard-of")
    assert not state.channels["general"].joined
    assert not any(name.startswith(GENERAL) for name in state.threads)
    with pytest.raises(UserError, match="/join general first"):
        state.channel("general")


names = st.sampled_from(["general", "desk", "attic"])


@given(st.lists(st.tuples(names, st.sets(st.sampled_from(["ann", "bob"]))), max_size=20))
def test_ready_with_later_signals_equals_a_fresh_ready(
    changes: list[tuple[str, set[str]]],
) -> None:
    channels = {"general": Channel(name="general", members=("ann",), joined=True)}
    state, fresh = ClientState("ann"), ClientState("ann")
    state.know(ready(channels=tuple(channels.values())))
    for name, who in changes:
        state.hear(channel_signal(name, *sorted(who)), 0.0)
        channels[name] = Channel(name=name, members=tuple(sorted(who)), joined="ann" in who)
    fresh.know(ready(channels=tuple(channels.values())))
    assert state.channels == fresh.channels
    assert set(state.threads) == set(fresh.threads)
