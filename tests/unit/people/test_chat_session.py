"""The session of the chat: threads, people and the lines that it shows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.errors import UserError
from hubbub.people.chat.session import HISTORY, ChatSession
from hubbub.people.shown import DayHeading, MessageLine, NoteLine, OtherThreadLine
from hubbub.people.state import KEPT
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Message
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


def test_leaving_the_current_channel_opens_the_broadcast_thread() -> None:
    session = new_session(thread(posted(1)), thread(posted(2, thread="channel.general.t1")))
    session.joined("desk")
    session.open("channel.general.t1")
    assert shown(session.left("desk")) == ["you left desk"]
    assert session.current == "channel.general.t1"
    assert shown(session.left("general")) == ["you left general", "── broadcast ──"]
    assert session.current == "broadcast"
    assert list(session.threads) == ["broadcast"]


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
    answer = result(9, GENERAL, 1, unresolved=("bbo", "bob", "ann", "x"))
    assert shown(new_session().sent(answer))[1:] == [
        "there is no participant @bbo, @x",
        "not in this thread, so not notified: @bob",
    ]
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
