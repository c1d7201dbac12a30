"""What both clients of a person know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.cli.chat.known import Known
from hubbub.cli.chat.thread import KEPT, Thread
from hubbub.errors import UserError
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Channel
from hubbub.protocol.operations import ThreadPage
from tests.unit.cli.chatting import NOON, person, ready, result, said, thread


def known() -> Known:
    found = Known("ann")
    found.know(ready(thread(said(3, tseq=3), read=1)))
    return found


def test_the_first_connection_and_one_that_did_not_resume_are_fresh_starts() -> None:
    found = Known("ann")
    assert found.know(ready(resumed=True))  # nothing is known that could go on
    assert not found.know(ready(resumed=True))
    assert found.know(ready())


def test_channels_of_which_nothing_is_known_but_the_name_are_threads_too() -> None:
    assert set(known().threads) == {"broadcast", "channel.general"}


def test_a_message_is_new_once() -> None:
    found = known()
    assert found.note(said(4, tseq=4))
    assert not found.note(said(4, tseq=4))
    assert found.thread("channel.general").head == 4


def test_unread_is_what_stands_beyond_the_mark() -> None:
    thread = Thread("broadcast", head=7, read=3, mentions={2, 5, 6})
    assert (thread.unread, thread.unread_mentions, thread.mentioned) == (4, 2, True)
    thread.read = 7
    assert (thread.unread, thread.unread_mentions, thread.mentioned) == (0, 0, False)
    thread.read = 9  # the hub knows more than what has arrived
    assert thread.unread == 0


def test_ones_own_mention_of_oneself_is_none() -> None:
    found = known()
    found.note(said(4, tseq=4, sender="ann", mentions=("ann",)))
    found.note(said(5, tseq=5, sender="bob", mentions=("bob",)))
    assert found.thread("channel.general").mentions == set()


def test_what_one_has_said_is_a_message_of_ones_own() -> None:
    message = known().own("hello", result(9, "dm.ann.bob", 2), NOON)
    assert (message.id, message.tseq, message.type, message.text) == ("m9", 2, "direct", "hello")
    assert (message.sender_id, message.sender_kind, message.hop) == ("ann", "human", 0)


def test_a_message_is_found_by_its_position_in_the_log() -> None:
    found = known().message(3)
    assert found is not None
    assert found.id == "m3"
    assert known().message(4) is None


@pytest.mark.parametrize(
    ("thread_id", "operation", "where"),
    [
        ("dm.ann.bob", "send_text_message", {"to": "dm.ann.bob"}),
        ("broadcast", "send_text_message", {"to": "broadcast"}),
        ("channel.general.t3", "reply", {"message_id": "m3"}),
        ("channel.general.t3.t12", "reply", {"message_id": "m12"}),
    ],
)
def test_the_first_word_in_a_reply_thread_is_a_reply(
    thread_id: str, operation: str, where: dict[str, str]
) -> None:
    found = known()
    assert found.way_to(thread_id) == (operation, where)
    found.note(said(20, thread=thread_id, tseq=1))
    assert found.way_to(thread_id) == ("send_text_message", {"to": thread_id})


def test_a_message_of_a_channel_says_that_one_is_in_it() -> None:
    found = known()
    found.note(said(9, thread="channel.desk", tseq=1))
    found.note(said(10, thread="channel.brand-new.t9", tseq=1))
    assert found.channels["desk"].joined
    assert found.channels["desk"].description == "work"  # what was known of it stays
    assert found.channel("brand-new") == "channel.brand-new"


def test_leaving_forgets_the_channel_and_all_that_hangs_in_it() -> None:
    found = known()
    found.note(said(9, thread="channel.general.t3", tseq=1))
    found.parted("general")
    found.parted("unheard-of")
    assert set(found.threads) == {"broadcast"}
    with pytest.raises(UserError, match="/join general first"):
        found.channel("general")


def test_who_comes_is_known_from_then_on_and_who_goes_is_away() -> None:
    found = known()
    eve = person("eve").model_dump(mode="json")
    data = {"online": [eve], "offline": ["bob", "nobody"]}
    found.hear(Signal(type="presence", sender="hub", data=data), 0)
    assert found.participants["eve"].present
    assert not found.participants["bob"].present
    assert "nobody" not in found.participants


@pytest.mark.parametrize("data", [None, "x", [], {"online": 3, "offline": {}}])
def test_a_presence_signal_that_says_nothing_changes_nothing(data: object) -> None:
    found = known()
    before = dict(found.participants)
    found.hear(Signal.model_validate({"type": "presence", "sender": "hub", "data": data}), 0)
    assert found.participants == before


def test_numbers_are_no_threads_where_there_is_no_list() -> None:
    with pytest.raises(UserError, match="no thread '1'"):
        known().find("1")


def test_a_page_that_reaches_further_back_says_whether_there_is_more() -> None:
    found = known()
    general = found.thread("channel.general")
    older = (said(2, tseq=2),)
    found.learn(ThreadPage(thread_id="channel.general", messages=older, more=True))
    assert (list(general.messages), general.more) == ([2, 3], True)
    newest = (said(3, tseq=3),)
    found.learn(ThreadPage(thread_id="channel.general", messages=newest, more=True))
    first = (said(1, tseq=1),)
    found.learn(ThreadPage(thread_id="channel.general", messages=first, more=False))
    assert (list(general.messages), general.more) == ([1, 2, 3], False)
    found.learn(ThreadPage(thread_id="channel.general", messages=newest, more=True))
    assert not general.more  # of what stands before the newest


@given(st.lists(st.integers(1, 2 * KEPT), unique=True, max_size=60))
def test_messages_stand_in_order_however_they_came(numbers: list[int]) -> None:
    thread = Thread("broadcast")
    for n in numbers:
        thread.append(said(n, thread="broadcast", tseq=n))
    assert list(thread.messages) == sorted(numbers)
    assert thread.oldest == min(numbers, default=0)
    assert thread.head == max(numbers, default=0)
    assert (thread.last.seq if thread.last else 0) == thread.head


def told(name: str, *members: str, description: str = "") -> Signal:
    data: JsonValue = {"name": name, "description": description, "members": [*members]}
    return Signal(type="channel", sender="hub", data=data)


def test_a_channel_that_others_have_made_is_known_and_not_joined() -> None:
    found = known()
    found.hear(told("plans", "bob", "bot", description="What is next"), 0.0)
    expected = Channel(name="plans", description="What is next", members=("bob", "bot"))
    assert found.channels["plans"] == expected
    assert "channel.plans" not in found.threads
    with pytest.raises(UserError, match="/join plans"):
        found.channel("plans")


def test_a_channel_that_one_was_taken_into_is_a_thread_of_ones_own() -> None:
    found = known()
    found.hear(told("plans", "ann", "bob"), 0.0)
    assert found.channel("plans") == "channel.plans"
    assert "channel.plans" in found.threads


def test_who_is_told_of_new_members_keeps_what_it_knows_of_the_thread() -> None:
    found = known()
    found.hear(told("general", "ann", "carol"), 0.0)
    assert found.channels["general"].members == ("ann", "carol")
    assert found.message(3) is not None


def test_a_channel_left_in_another_window_is_left_here() -> None:
    found = known()
    found.hear(told("general", "bob"), 0.0)
    assert not found.channels["general"].joined
    assert "channel.general" not in found.threads


names = st.sampled_from(["general", "desk", "attic"])


@given(st.lists(st.tuples(names, st.sets(st.sampled_from(["ann", "bob"]))), max_size=20))
def test_ready_with_the_news_after_it_is_what_a_fresh_ready_tells(
    news: list[tuple[str, set[str]]],
) -> None:
    channels = {"general": Channel(name="general", members=("ann",), joined=True)}
    found, fresh = Known("ann"), Known("ann")
    found.know(ready(channels=tuple(channels.values())))
    for name, who in news:
        found.hear(told(name, *sorted(who)), 0.0)
        channels[name] = Channel(name=name, members=tuple(sorted(who)), joined="ann" in who)
    fresh.know(ready(channels=tuple(channels.values())))
    assert found.channels == fresh.channels
    assert set(found.threads) == set(fresh.threads)


@given(st.lists(st.tuples(st.sampled_from(["join", "leave", "hear"]), names), max_size=20))
def test_one_is_in_the_channels_that_one_joined_last(steps: list[tuple[str, str]]) -> None:
    found = Known("ann")
    found.know(ready(channels=(Channel(name="general", joined=True), Channel(name="desk"))))
    joined = {"general"}
    for seq, (what, name) in enumerate(steps, 1):
        if what == "leave":
            found.parted(name)
            joined.discard(name)
        else:
            joined.add(name)
            if what == "join":
                found.joined(name)
            else:
                found.note(said(seq, thread=thread_ids.channel(name)))
    assert {name for name, channel in found.channels.items() if channel.joined} == joined
