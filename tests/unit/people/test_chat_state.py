"""The state shared by both clients of a person, and what the line-based one shows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.people.chat.session import HISTORY, ChatSession
from hubbub.people.shown import DayHeading, MessageLine, NoteLine, OtherThreadLine
from hubbub.people.state import (
    KEPT,
    LASTS_S,
    TYPING_S,
    ClientState,
    ClientThread,
    CurrentActivities,
)
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Channel, Message
from hubbub.protocol.operations import ThreadPage
from tests.examples import examples
from tests.unit.people.chatting import (
    NOON,
    event,
    new_session,
    person,
    posted,
    ready,
    result,
    shown,
    signal,
    thread,
)

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
    assert set(activities.in_thread("broadcast", 1)) == {"calc"}
    assert activities.in_thread(DM, 1) == {}
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


def presence(data: object) -> Signal:
    return Signal.model_validate({"type": "presence", "sender": "hub", "data": data})


def test_presence_adds_newcomers_and_marks_leavers_as_away() -> None:
    session = new_session()
    eve = person("eve", about="new").model_dump(mode="json")
    session.hear(presence({"online": [eve], "offline": ["bob", "unheard_of"]}), 0)
    assert session.participants["eve"].card.description == "new"
    assert session.participants["eve"].present
    assert not session.participants["bob"].present
    assert "unheard_of" not in session.participants
    assert session.direct(["eve"]) == "dm.ann.eve"
    before = dict(session.participants)
    strange: tuple[object, ...] = (None, "x", [], {"online": 3, "offline": {}})
    for data in strange:
        session.hear(presence(data), 0)
    assert session.participants == before


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
def test_messages_are_ordered_whatever_order_they_arrive_in(numbers: list[int]) -> None:
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


def test_leaving_the_current_channel_opens_the_broadcast_thread() -> None:
    session = new_session(thread(posted(1)), thread(posted(2, thread="channel.general.t1")))
    session.joined("desk")
    session.open("channel.general.t1")
    assert shown(session.left("desk")) == ["you left desk"]
    assert session.current == "channel.general.t1"
    assert shown(session.left("general")) == ["you left general", "── broadcast ──"]
    assert session.current == "broadcast"
    assert list(session.threads) == ["broadcast"]


# Shown lines --------------------------------------------------------------------------------------


def test_a_session_starts_in_the_broadcast_with_a_hint_until_the_first_message() -> None:
    session = ChatSession("ann")
    session.begin(ready(thread(posted(9, thread=DM))))
    assert session.current == "broadcast"
    for people, hint in (
        (None, "@concierge"),
        ((person("zed"), person("amy", present=False)), "/dm zed"),
        ((person("ann", "human"),), "no agent is online"),
    ):
        session = ChatSession("ann")
        session.begin(ready(people=people))
        line = session.hint()
        assert line is not None
        assert hint in shown([line])[0]
    assert new_session(thread(posted(1, sender="ann"))).hint() is None


@pytest.mark.behaviour("U-1")
def test_opening_a_thread_shows_its_heading_and_last_messages_by_day() -> None:
    messages = [posted(n, f"text {n}") for n in range(1, HISTORY + 6)]
    next_day = posted(HISTORY + 6, at=NOON + timedelta(days=1))
    session = new_session(thread(*messages, next_day))
    lines = session.open(GENERAL)
    assert shown(lines)[0] == "── #general ──"
    assert [type(line) for line in lines[1:]] == [
        *[MessageLine] * (HISTORY - 1),
        DayHeading,
        MessageLine,
    ]
    assert shown(lines)[1].endswith("text 7")


def test_an_event_is_shown_once_in_its_open_thread_and_announced_in_others() -> None:
    session = new_session(thread(posted(40), posted(41)), head=41)
    assert session.take(event(posted(39, "missed while away"))) == []
    assert "missed while away" in shown(session.older())[0]
    assert shown(session.take(event(posted(42, "hello")))) == ["12:42 m42 bob: hello"]
    assert session.unread == []
    lines = session.take(event(posted(43, "psst", thread=DM, tseq=1)))
    assert [type(line) for line in lines] == [OtherThreadLine]
    session.take(event(posted(44, thread=DM, tseq=2, mentions=("ann",))))
    session.take(event(posted(45, "@ann", thread="broadcast", tseq=1, mentions=("ann",))))
    assert session.unread == ["broadcast 1!", "@bob 2!"]
    session.open(DM)
    assert session.unread == ["broadcast 1!"]
    assert isinstance(session.take(event(posted(46, thread=DM, tseq=3)))[0], MessageLine)
    session.switch("broadcast")
    assert session.take(event(posted(47, "early", thread="broadcast", tseq=2))) == []
    assert shown(session.open("broadcast"))[-1].endswith("bob: early")
    assert session.unread == []
    elsewhere = posted(48, sender="ann", thread=DM, tseq=4)  # from another window
    assert session.take(event(elsewhere)) == []
    assert session.unread == []


def test_missed_messages_are_one_line_before_the_first_new_one() -> None:
    session = new_session(head=3)
    for seq, place in ((1, DM), (2, "broadcast"), (3, DM)):
        assert session.take(event(posted(seq, thread=place, mentions=("ann",) * (seq == 2)))) == []
    assert shown(session.missed()) == ["while you were away: @bob 2, broadcast 1!"]
    assert session.missed() == []
    for opened, kinds in ((False, [NoteLine, OtherThreadLine]), (True, [OtherThreadLine])):
        session = new_session(head=1)
        session.take(event(posted(1, thread=DM)))
        if opened:
            session.open(DM)
        lines = session.take(event(posted(2, thread="broadcast")))
        assert [type(line) for line in lines] == kinds


def test_an_own_message_is_shown_once_whether_result_or_event_comes_first() -> None:
    mine = posted(4, "mine", sender="ann", kind="human")
    answer = result(4, GENERAL, 4, "mine")
    session = new_session()
    assert shown(session.sent(answer)) == ["12:00 m4 ann: mine ✓"]
    assert session.take(event(mine)) == []
    session = new_session()
    assert len(session.take(event(mine))) == 1
    assert session.sent(answer) == []


def test_a_sent_message_shows_its_thread_unknown_names_and_absentees_once() -> None:
    lines = new_session().sent(result(9, "channel.general.t4", 1, "under it"))
    assert shown(lines) == ["12:00 m9 [#general › m4] ann: under it ✓"]
    answer = result(9, GENERAL, 1, absent=("bob", "eve"), unresolved=("bbo",))
    assert shown(new_session().sent(answer))[1:] == [
        "bob, eve are away; the message waits",
        "there is no participant @bbo; did you mean bob?",
    ]
    answer = result(9, GENERAL, 1, unresolved=("bbo", "x"))
    assert shown(new_session().sent(answer))[1:] == ["there is no participant @bbo, @x"]
    session = new_session()
    away = [
        "away" in " ".join(shown(session.sent(result(seq, DM, seq, absent=absent))))
        for seq, absent in enumerate([("bob",), ("bob",), (), ("bob",)], 1)
    ]
    assert away == [True, False, False, True]


def test_a_reconnection_keeps_the_state_and_a_fresh_start_replaces_it() -> None:
    session = new_session(thread(posted(1)))
    session.take(event(posted(2, thread=DM, tseq=1)))
    assert shown(session.begin(ready(resumed=True))) == ["reconnected"]
    assert session.unread == ["@bob 1"]
    lines = shown(session.begin(ready(thread(posted(1, "again")))))
    assert lines[0].startswith("reconnected; the network has restarted")
    assert lines[-1].endswith("again")
    assert session.unread == []


def test_a_long_thread_drops_its_oldest_messages() -> None:
    session = new_session()
    for n in range(1, KEPT + 11):
        session.take(event(posted(n)))
    general = session.thread(GENERAL)
    assert (len(general.messages), general.oldest, general.more) == (KEPT, 11, True)


def test_threads_are_listed_with_numbers_to_open_and_unread_counts() -> None:
    session = new_session(thread(posted(9, "last", thread=DM)), thread(posted(3)))
    assert session.find("1") == DM, "even before the list was shown"
    session.take(event(posted(10, "new", mentions=("ann",))))
    assert [line.split()[:3] for line in shown(session.lists())] == [
        ["*", "1", "#general"],
        ["2", "@bob", "bob:"],
        ["3", "broadcast", "empty"],
    ]
    assert session.find("2") == DM
    session.take(event(posted(11, "psst", thread=DM, tseq=10)))
    assert not any("!" in line for line in shown(session.lists()))
    loud = posted(12, "@ann " + "long " * 100, thread="broadcast", tseq=1, mentions=("ann",))
    session.take(event(loud))
    first, second, _, legend = shown(session.lists())
    assert "broadcast   1 new!" in first
    assert first.endswith("…")
    assert "\n" not in first
    assert "@bob         1 new  bob: psst" in second
    assert legend == "! marks threads that mention you; /open <n> opens one"


def test_threads_and_people_are_found_or_refused_in_one_sentence() -> None:
    session = new_session(thread(posted(7)))
    for name in ("broadcast", "channel.general.t5", "dm.ann.bob.concierge", "dm.ann.bob.t5.t7"):
        assert session.find(session.shown(name)) == name
    assert session.find("m7") == "channel.general.t7"
    assert session.direct(["concierge", "bob"]) == "dm.ann.bob.concierge"
    assert session.direct(["bob", "ann"]) == DM
    wrong = {
        "0": "1 to 2",
        "17": "1 to 2",
        "conceirge": "did you mean concierge?",
        "#bob": "no channel",
        "@general": "no participant",
        "desk": "/join desk first",
        "m8": "there is no message m8",
        "\x1b[31m": "no thread '<U+001B>[31m'",
    }
    for target, reason in wrong.items():
        with pytest.raises(UserError) as caught:
            session.find(target)
        assert reason in str(caught.value)
    for names, reason in (
        (["bbo"], r"did you mean bob\?"),
        (["ann"], "another participant"),
        (["p"] * 3, "there is no participant"),
    ):
        with pytest.raises(UserError, match=reason):
            session.direct(names)
    with pytest.raises(UserError, match="did you mean general"):
        session.channel("genral")
    session = ChatSession("ann")
    session.begin(ready(people=tuple(person(f"p{n}") for n in range(9))))
    session.direct([f"p{n}" for n in range(7)])
    with pytest.raises(UserError, match="at most 8"):
        session.direct([f"p{n}" for n in range(8)])


def test_an_activity_ends_when_its_sender_posts_or_leaves() -> None:
    session = new_session()
    for name in ("bob", "concierge"):
        session.hear(signal("activity", "thinking", name, GENERAL), 0)
    session.hear(Signal(type="typing", sender="ann"), 0)  # her own is ignored
    assert session.activities.now(1) == ["bob is thinking", "concierge is thinking"]
    session.take(event(posted(1)))
    assert session.activities.now(1) == ["concierge is thinking"]
    session.hear(presence({"offline": ["concierge"]}), 1)
    assert session.activities.now(1) == []


threads = st.sampled_from([GENERAL, DM, "broadcast", "channel.general.t3"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), threads, st.sampled_from(["bob", "ann"]), st.booleans()),
        st.tuples(st.just("open"), threads, st.just(""), st.just(False)),
    ),
    max_size=40,
)


@pytest.mark.behaviour("U-1")
@settings(max_examples=examples(100))
@given(steps)
def test_unread_counts_are_messages_since_the_thread_was_last_open(
    steps: list[tuple[str, str, str, bool]],
) -> None:
    session = new_session()
    expected: dict[str, int] = {}
    heads: dict[str, int] = {}
    open_now = session.current
    lines = 0
    for seq, (action, where, who, twice) in enumerate(steps, 1):
        if action == "open":
            session.open(where)
            open_now = where
            expected.pop(where, None)
            continue
        heads[where] = heads.get(where, 0) + 1
        message = posted(seq, sender=who, thread=where, tseq=heads[where])
        for _ in range(1 + twice):  # a repeated event counts once
            lines += len(session.take(event(message)))
        if who == "ann":
            expected.pop(where, None)  # a sender has read the thread
        elif where != open_now:
            expected[where] = expected.get(where, 0) + 1
    assert {t.id: t.unread for t in session.threads.values() if t.unread} == expected
    assert lines <= len([step for step in steps if step[0] == "say"])


@pytest.mark.behaviour("P-19")
@settings(max_examples=examples(50))
@given(st.lists(threads, max_size=30), st.data())
def test_events_applied_to_an_old_state_give_the_freshly_fetched_state(
    places: list[str], data: st.DataObject
) -> None:
    log, counts = [], dict.fromkeys(places, 0)
    for seq, place in enumerate(places, 1):
        counts[place] += 1
        log.append(posted(seq, f"text {seq}", thread=place, tseq=counts[place]))
    cut = data.draw(st.integers(0, len(log)), label="where the client joined")

    def joined_after(log: list[Message]) -> ChatSession:
        by_thread = [[m for m in log if m.thread_id == place] for place in counts]
        session = ChatSession("ann")
        session.begin(ready(*[thread(*messages) for messages in by_thread if messages], head=cut))
        return session

    updated, fetched = joined_after(log[:cut]), joined_after(log)
    for message in log[cut:]:
        updated.take(event(message))
    for name, expected in fetched.threads.items():
        assert updated.thread(name).messages == expected.messages
        assert updated.thread(name).last_seq == expected.last_seq
        assert shown(updated.open(name)) == shown(fetched.open(name))
