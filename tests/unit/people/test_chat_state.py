"""What both clients of a person know, and what the line-based one shows of it."""

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
    begun,
    event,
    person,
    ready,
    result,
    said,
    shown,
    signal,
    thread,
)

GENERAL, DM = "channel.general", "dm.ann.bob"


# What others are doing ----------------------------------------------------------------------------


def doing(*signals: Signal) -> CurrentActivities:
    activities = CurrentActivities()
    for n, heard in enumerate(signals):
        activities.take(heard, n)
    return activities


def activity(data: JsonValue, thread: str | None = "broadcast") -> Signal:
    return Signal(type="activity", sender="calc", thread_id=thread, data=data)


def test_an_activity_becomes_a_short_sentence_until_it_says_that_it_is_over() -> None:
    cases: tuple[tuple[JsonValue, str], ...] = (
        ("thinking", "calc is thinking"),
        ({"state": "thinking"}, "calc is thinking"),
        ({"state": "calling", "tool": "read_thread"}, "calc is calling read_thread"),
        ({"percent": 3}, "calc is thinking"),
        (True, "calc is thinking"),
        ("evil\x1b[2J", "calc is evil<U+001B>[2J"),
    )
    for data, says in cases:
        assert doing(activity(data)).now(0) == [says]
    assert len(doing(activity("x" * 500)).now(0)[0]) < 60
    ends: tuple[JsonValue, ...] = ("idle", "done", "", None, False, {"state": "finished"})
    for over in ends:
        assert doing(activity("thinking"), activity(over)).now(1) == []
    typing = Signal(type="typing", sender="bob", data=True)
    found = doing(typing, Signal(type="partial", sender="eve", data="text"))
    assert found.now(0) == ["bob is typing"]
    assert found.now(TYPING_S + 1) == []
    assert doing(typing, typing.model_copy(update={"data": False})).now(0) == []


def test_an_activity_that_nobody_confirms_grows_old() -> None:
    activities = doing(activity("thinking"))
    assert activities.now(LASTS_S - 1) == ["calc is thinking"]
    activities.take(activity("thinking"), LASTS_S - 1)
    assert activities.now(LASTS_S + 1) == ["calc is thinking"]
    assert activities.now(2 * LASTS_S - 1) == []
    activities = doing()
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


def test_somebody_who_works_in_several_threads_is_named_once_and_for_what_is_known() -> None:
    here, there = activity("thinking"), activity("thinking", DM)
    activities = doing(here, there)
    assert activities.now(1) == ["calc is thinking"]
    activities.over("calc", "broadcast")
    assert activities.now(1) == ["calc is thinking"]
    activities.over("calc", DM)
    assert activities.now(1) == []
    assert doing(here, there, activity({"state": "idle"}, None)).now(2) == []
    activities = doing(here, activity({"state": "working"}, None))
    assert activities.now(1) == ["calc is thinking"]
    assert set(activities.in_thread("broadcast", 1)) == {"calc"}
    assert activities.in_thread(DM, 1) == {}
    activities.over("calc", "broadcast")
    assert activities.now(1) == ["calc is working"]


# What is known ------------------------------------------------------------------------------------


def known() -> ClientState:
    found = ClientState("ann")
    found.know(ready(thread(said(3, tseq=3), read=1)))
    return found


def test_the_first_connection_and_one_that_did_not_resume_are_fresh_starts() -> None:
    found = ClientState("ann")
    assert found.know(ready(resumed=True))  # nothing is known that could go on
    assert not found.know(ready(resumed=True))
    assert found.know(ready())
    assert set(known().threads) == {"broadcast", GENERAL}


def test_a_message_is_new_once_and_found_by_its_position() -> None:
    found = known()
    assert found.note(said(4, tseq=4))
    assert not found.note(said(4, tseq=4))
    assert found.thread(GENERAL).head == 4
    third = found.message(3)
    assert third is not None
    assert third.id == "m3"
    assert found.message(9) is None
    for place in ("1", "m9"):
        with pytest.raises(UserError, match="there is no"):
            found.find(place)
    found.note(said(5, tseq=5, sender="ann", mentions=("ann",)))  # of oneself
    found.note(said(6, tseq=6, sender="bob", mentions=("bob",)))
    assert found.thread(GENERAL).mentions == set()


def test_unread_is_what_stands_beyond_the_mark() -> None:
    thread = ClientThread("broadcast", head=7, read=3, mentions={2, 5, 6})
    assert (thread.unread, thread.unread_mentions, thread.mentioned) == (4, 2, True)
    thread.read = 7
    assert (thread.unread, thread.unread_mentions, thread.mentioned) == (0, 0, False)
    thread.read = 9  # the hub knows more than what has arrived
    assert thread.unread == 0


def test_the_first_word_in_a_reply_thread_is_a_reply() -> None:
    for thread_id, operation, where in (
        (DM, "send_text_message", {"to": DM}),
        ("broadcast", "send_text_message", {"to": "broadcast"}),
        ("channel.general.t3", "reply", {"message_id": "m3"}),
        ("channel.general.t3.t12", "reply", {"message_id": "m12"}),
    ):
        found = known()
        assert found.way_to(thread_id) == (operation, where)
        found.note(said(20, thread=thread_id, tseq=1))
        assert found.way_to(thread_id) == ("send_text_message", {"to": thread_id})


def presence(data: object) -> Signal:
    return Signal.model_validate({"type": "presence", "sender": "hub", "data": data})


def test_who_comes_is_known_from_then_on_and_who_goes_is_away() -> None:
    session = begun()
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


def test_a_page_that_reaches_further_back_says_whether_there_is_more() -> None:
    found = known()
    general = found.thread(GENERAL)
    for seq, more, messages, still_more in (
        (2, True, [2, 3], True),
        (3, True, [2, 3], True),
        (1, False, [1, 2, 3], False),
        (3, True, [1, 2, 3], False),  # of what stands before the newest
    ):
        page = ThreadPage(thread_id=GENERAL, messages=(said(seq, tseq=seq),), more=more)
        found.learn(page)
        assert (list(general.messages), general.more) == (messages, still_more)


@given(st.lists(st.integers(1, 2 * KEPT), unique=True, max_size=60))
def test_messages_stand_in_order_however_they_came(numbers: list[int]) -> None:
    thread = ClientThread("broadcast")
    for n in numbers:
        thread.append(said(n, thread="broadcast", tseq=n))
    assert list(thread.messages) == sorted(numbers)
    assert thread.oldest == min(numbers, default=0)
    assert thread.head == max(numbers, default=0)
    assert (thread.last.seq if thread.last else 0) == thread.head


# Channels -----------------------------------------------------------------------------------------


def told(name: str, *members: str, description: str = "") -> Signal:
    data: JsonValue = {"name": name, "description": description, "members": [*members]}
    return Signal(type="channel", sender="hub", data=data)


def test_channels_of_others_are_known_and_those_one_is_in_are_threads() -> None:
    found = known()
    found.hear(told("plans", "bob", "bot", description="What is next"), 0.0)
    expected = Channel(name="plans", description="What is next", members=("bob", "bot"))
    assert found.channels["plans"] == expected
    assert "channel.plans" not in found.threads
    with pytest.raises(UserError, match="/join plans"):
        found.channel("plans")
    found.hear(told("plans", "ann", "bob"), 0.0)
    assert found.channel("plans") == "channel.plans"
    assert "channel.plans" in found.threads
    found.hear(told("general", "ann", "carol"), 0.0)
    assert found.channels["general"].members == ("ann", "carol")
    assert found.message(3) is not None, "what is known of the thread stays"
    found.note(said(9, thread="channel.desk", tseq=1))
    found.note(said(10, thread="channel.brand-new.t9", tseq=1))
    assert found.channels["desk"].joined
    assert found.channels["desk"].description == "work"
    assert found.channel("brand-new") == "channel.brand-new"
    found.note(said(11, thread="channel.general.t3", tseq=1))
    found.hear(told("general", "bob"), 0.0)  # left in another window
    found.parted("unheard-of")
    assert not found.channels["general"].joined
    assert not any(name.startswith(GENERAL) for name in found.threads)
    with pytest.raises(UserError, match="/join general first"):
        found.channel("general")


names = st.sampled_from(["general", "desk", "attic"])


@given(st.lists(st.tuples(names, st.sets(st.sampled_from(["ann", "bob"]))), max_size=20))
def test_ready_with_the_news_after_it_is_what_a_fresh_ready_tells(
    news: list[tuple[str, set[str]]],
) -> None:
    channels = {"general": Channel(name="general", members=("ann",), joined=True)}
    found, fresh = ClientState("ann"), ClientState("ann")
    found.know(ready(channels=tuple(channels.values())))
    for name, who in news:
        found.hear(told(name, *sorted(who)), 0.0)
        channels[name] = Channel(name=name, members=tuple(sorted(who)), joined="ann" in who)
    fresh.know(ready(channels=tuple(channels.values())))
    assert found.channels == fresh.channels
    assert set(found.threads) == set(fresh.threads)


def test_leaving_the_current_channel_opens_the_broadcast_thread() -> None:
    session = begun(thread(said(1)), thread(said(2, thread="channel.general.t1")))
    session.joined("desk")
    session.open("channel.general.t1")
    assert shown(session.left("desk")) == ["you left desk"]
    assert session.current == "channel.general.t1"
    assert shown(session.left("general")) == ["you left general", "── broadcast ──"]
    assert session.current == "broadcast"
    assert list(session.threads) == ["broadcast"]


# What is shown ------------------------------------------------------------------------------------


def test_everybody_starts_where_everybody_is_with_a_hint_until_one_has_spoken() -> None:
    session = ChatSession("ann")
    session.begin(ready(thread(said(9, thread=DM))))
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
    assert begun(thread(said(1, sender="ann"))).hint() is None


@pytest.mark.behaviour("U-1")
def test_opening_shows_the_header_and_the_last_messages_with_their_days() -> None:
    spoken = [said(n, f"text {n}") for n in range(1, HISTORY + 6)]
    late = said(HISTORY + 6, at=NOON + timedelta(days=1))
    session = begun(thread(*spoken, late))
    lines = session.open(GENERAL)
    assert shown(lines)[0] == "── #general ──"
    assert [type(line) for line in lines[1:]] == [
        *[MessageLine] * (HISTORY - 1),
        DayHeading,
        MessageLine,
    ]
    assert shown(lines)[1].endswith("text 7")


def test_what_comes_is_shown_here_once_and_in_order_and_announced_elsewhere() -> None:
    session = begun(thread(said(40), said(41)), head=41)
    assert session.take(event(said(39, "missed while away"))) == []
    assert "missed while away" in shown(session.older())[0]
    assert shown(session.take(event(said(42, "hello")))) == ["12:42 m42 bob: hello"]
    assert session.unread == []
    lines = session.take(event(said(43, "psst", thread=DM, tseq=1)))
    assert [type(line) for line in lines] == [OtherThreadLine]
    session.take(event(said(44, thread=DM, tseq=2, mentions=("ann",))))
    session.take(event(said(45, "@ann", thread="broadcast", tseq=1, mentions=("ann",))))
    assert session.unread == ["broadcast 1!", "@bob 2!"]
    session.open(DM)
    assert session.unread == ["broadcast 1!"]
    assert isinstance(session.take(event(said(46, thread=DM, tseq=3)))[0], MessageLine)
    session.switch("broadcast")
    assert session.take(event(said(47, "early", thread="broadcast", tseq=2))) == []
    assert shown(session.open("broadcast"))[-1].endswith("bob: early")
    assert session.unread == []
    elsewhere = said(48, sender="ann", thread=DM, tseq=4)  # from another window
    assert session.take(event(elsewhere)) == []
    assert session.unread == []


def test_what_was_missed_is_one_line_before_the_first_news() -> None:
    session = begun(head=3)
    for seq, place in ((1, DM), (2, "broadcast"), (3, DM)):
        assert session.take(event(said(seq, thread=place, mentions=("ann",) * (seq == 2)))) == []
    assert shown(session.missed()) == ["while you were away: @bob 2, broadcast 1!"]
    assert session.missed() == []
    for opened, kinds in ((False, [NoteLine, OtherThreadLine]), (True, [OtherThreadLine])):
        session = begun(head=1)
        session.take(event(said(1, thread=DM)))
        if opened:
            session.open(DM)
        lines = session.take(event(said(2, thread="broadcast")))
        assert [type(line) for line in lines] == kinds


def test_ones_own_message_is_shown_once_whichever_comes_first() -> None:
    mine = said(4, "mine", sender="ann", kind="human")
    answer = result(4, GENERAL, 4, "mine")
    session = begun()
    assert shown(session.sent(answer)) == ["12:00 m4 ann: mine ✓"]
    assert session.take(event(mine)) == []
    session = begun()
    assert len(session.take(event(mine))) == 1
    assert session.sent(answer) == []


def test_what_was_sent_says_where_whom_it_does_not_reach_and_who_is_away_once() -> None:
    lines = begun().sent(result(9, "channel.general.t4", 1, "under it"))
    assert shown(lines) == ["12:00 m9 [#general › m4] ann: under it ✓"]
    answer = result(9, GENERAL, 1, absent=("bob", "eve"), unresolved=("bbo",))
    assert shown(begun().sent(answer))[1:] == [
        "bob, eve are away; the message waits",
        "there is no participant @bbo; did you mean bob?",
    ]
    answer = result(9, GENERAL, 1, unresolved=("bbo", "x"))
    assert shown(begun().sent(answer))[1:] == ["there is no participant @bbo, @x"]
    session = begun()
    away = [
        "away" in " ".join(shown(session.sent(result(seq, DM, seq, absent=absent))))
        for seq, absent in enumerate([("bob",), ("bob",), (), ("bob",)], 1)
    ]
    assert away == [True, False, False, True]


def test_a_reconnection_keeps_what_is_known_and_a_fresh_start_shows_it_anew() -> None:
    session = begun(thread(said(1)))
    session.take(event(said(2, thread=DM, tseq=1)))
    assert shown(session.begin(ready(resumed=True))) == ["reconnected"]
    assert session.unread == ["@bob 1"]
    lines = shown(session.begin(ready(thread(said(1, "again")))))
    assert lines[0].startswith("reconnected; the network has restarted")
    assert lines[-1].endswith("again")
    assert session.unread == []


def test_a_long_thread_forgets_its_beginning() -> None:
    session = begun()
    for n in range(1, KEPT + 11):
        session.take(event(said(n)))
    kept = session.thread(GENERAL)
    assert (len(kept.messages), kept.oldest, kept.more) == (KEPT, 11, True)


def test_threads_are_listed_with_numbers_that_open_takes_and_with_what_is_new() -> None:
    session = begun(thread(said(9, "last", thread=DM)), thread(said(3)))
    assert session.find("1") == DM, "without having asked for the list"
    session.take(event(said(10, "new", mentions=("ann",))))
    assert [line.split()[:3] for line in shown(session.lists())] == [
        ["*", "1", "#general"],
        ["2", "@bob", "bob:"],
        ["3", "broadcast", "empty"],
    ]
    assert session.find("2") == DM
    session.take(event(said(11, "psst", thread=DM, tseq=10)))
    assert not any("!" in line for line in shown(session.lists()))
    loud = said(12, "@ann " + "long " * 100, thread="broadcast", tseq=1, mentions=("ann",))
    session.take(event(loud))
    first, second, _, legend = shown(session.lists())
    assert "broadcast   1 new!" in first
    assert first.endswith("…")
    assert "\n" not in first
    assert "@bob         1 new  bob: psst" in second
    assert legend == "! marks threads that mention you; /open <n> opens one"


def test_threads_and_people_are_found_or_told_in_one_sentence() -> None:
    session = begun(thread(said(7)))
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
    for target, says in wrong.items():
        with pytest.raises(UserError) as caught:
            session.find(target)
        assert says in str(caught.value)
    for names, says in (
        (["bbo"], r"did you mean bob\?"),
        (["ann"], "another participant"),
        (["p"] * 3, "there is no participant"),
    ):
        with pytest.raises(UserError, match=says):
            session.direct(names)
    with pytest.raises(UserError, match="did you mean general"):
        session.channel("genral")
    session = ChatSession("ann")
    session.begin(ready(people=tuple(person(f"p{n}") for n in range(9))))
    session.direct([f"p{n}" for n in range(7)])
    with pytest.raises(UserError, match="at most 8"):
        session.direct([f"p{n}" for n in range(8)])


def test_an_activity_ends_when_its_sender_speaks_or_leaves() -> None:
    session = begun()
    for name in ("bob", "concierge"):
        session.hear(signal("activity", "thinking", name, GENERAL), 0)
    session.hear(Signal(type="typing", sender="ann"), 0)  # one's own are no news
    assert session.activities.now(1) == ["bob is thinking", "concierge is thinking"]
    session.take(event(said(1)))
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
def test_unread_counts_are_what_came_since_a_thread_was_last_open(
    steps: list[tuple[str, str, str, bool]],
) -> None:
    session = begun()
    expected: dict[str, int] = {}
    heads: dict[str, int] = {}
    open_now = session.current
    lines = 0
    for seq, (what, where, who, twice) in enumerate(steps, 1):
        if what == "open":
            session.open(where)
            open_now = where
            expected.pop(where, None)
            continue
        heads[where] = heads.get(where, 0) + 1
        message = said(seq, sender=who, thread=where, tseq=heads[where])
        for _ in range(1 + twice):  # a message that comes twice counts once
            lines += len(session.take(event(message)))
        if who == "ann":
            expected.pop(where, None)  # who speaks in a thread has read it
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
        log.append(said(seq, f"text {seq}", thread=place, tseq=counts[place]))
    cut = data.draw(st.integers(0, len(log)), label="where the client joined")

    def joined_after(known: list[Message]) -> ChatSession:
        found = [[m for m in known if m.thread_id == place] for place in counts]
        session = ChatSession("ann")
        session.begin(ready(*[thread(*messages) for messages in found if messages], head=cut))
        return session

    lived, fetched = joined_after(log[:cut]), joined_after(log)
    for message in log[cut:]:
        lived.take(event(message))
    for name, known in fetched.threads.items():
        assert lived.thread(name).messages == known.messages
        assert lived.thread(name).last_seq == known.last_seq
        assert shown(lived.open(name)) == shown(fetched.open(name))
