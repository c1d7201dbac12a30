"""The state of a chat."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.cli.chat.lines import Day, Elsewhere, Note, Said
from hubbub.cli.chat.session import HISTORY, Session
from hubbub.cli.chat.thread import KEPT
from hubbub.errors import UserError
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import ThreadPage
from tests.examples import examples
from tests.unit.cli.chatting import NOON, begun, event, person, ready, result, said, shown, thread


@pytest.mark.parametrize("place", ["channel.general", "channel.general.t1", "dm.ann.bob"])
def test_everybody_starts_where_everybody_is(place: str) -> None:
    session = Session("ann")
    session.begin(ready(thread(said(9, thread=place))))
    assert session.current == "broadcast"


def test_a_newcomer_is_told_how_to_ask_an_agent() -> None:
    hint = begun().hint()
    assert hint is not None
    assert "@concierge" in shown([hint])[0]


def test_the_hint_names_an_agent_that_is_here() -> None:
    session = Session("ann")
    session.begin(ready(people=(person("zed"), person("amy", present=False))))
    assert "/dm zed" in shown([h for h in [session.hint()] if h])[0]


def test_without_an_agent_the_hint_says_so() -> None:
    session = Session("ann")
    session.begin(ready(people=(person("ann", "human"),)))
    assert "no agent is here" in shown([h for h in [session.hint()] if h])[0]


def test_one_who_has_spoken_needs_no_hint() -> None:
    assert begun(thread(said(1, sender="ann"))).hint() is None


@pytest.mark.behaviour("U-1")
def test_opening_shows_the_header_and_the_last_messages_in_order() -> None:
    session = begun(thread(*[said(n, f"text {n}") for n in range(1, HISTORY + 6)]))
    lines = shown(session.open("channel.general"))
    assert lines[0] == "── #general ──"
    assert len(lines) == 1 + HISTORY
    assert lines[1].endswith("text 6")
    assert lines[-1].endswith(f"text {HISTORY + 5}")


def test_a_new_day_is_announced_between_messages() -> None:
    late = said(2, at=NOON + timedelta(days=1))
    session = begun(thread(said(1), late))
    kinds = [type(line) for line in session.open("channel.general")[1:]]
    assert kinds == [Said, Day, Said]


def test_a_message_of_the_current_thread_is_shown() -> None:
    session = begun()
    assert shown(session.take(event(said(1, "hello")))) == ["12:01 m1 bob: hello"]
    assert session.unread == []


def test_what_arrives_before_a_thread_is_open_is_shown_by_opening_it() -> None:
    session = begun()
    session.switch("dm.ann.bob")
    assert session.take(event(said(1, "early", thread="dm.ann.bob"))) == []
    assert shown(session.open("dm.ann.bob"))[1:] == ["12:01 m1 bob: early"]
    assert session.unread == []


def test_what_arrives_late_but_stands_before_what_is_shown_is_not_shown_out_of_order() -> None:
    session = begun(thread(said(40), said(41)), head=41)
    assert session.take(event(said(39, "missed while away"))) == []
    assert "missed while away" in shown(session.older())[0]


def test_a_message_elsewhere_is_announced_and_counted() -> None:
    session = begun()
    lines = session.take(event(said(1, "psst", thread="dm.ann.bob")))
    assert [type(line) for line in lines] == [Elsewhere]
    session.take(event(said(2, thread="dm.ann.bob")))
    session.take(event(said(3, "@ann", thread="broadcast", tseq=1, mentions=("ann",))))
    assert session.unread == ["broadcast 1!", "@bob 2"]


def test_opening_a_thread_reads_it() -> None:
    session = begun()
    session.take(event(said(1, thread="dm.ann.bob", mentions=("ann",))))
    session.open("dm.ann.bob")
    assert session.unread == []
    assert isinstance(session.take(event(said(2, thread="dm.ann.bob")))[0], Said)


def test_what_was_missed_is_one_line_and_not_one_each() -> None:
    session = begun(head=3)
    assert session.take(event(said(1, thread="dm.ann.bob"))) == []
    assert session.take(event(said(2, thread="broadcast", mentions=("ann",)))) == []
    assert session.take(event(said(3, thread="dm.ann.bob"))) == []
    assert shown(session.missed()) == ["while you were away: @bob 2, broadcast 1!"]
    assert session.missed() == []


def test_what_was_missed_is_said_before_the_first_news() -> None:
    session = begun(head=1)
    session.take(event(said(1, thread="dm.ann.bob")))
    lines = session.take(event(said(2, thread="broadcast")))
    assert [type(line) for line in lines] == [Note, Elsewhere]


def test_a_thread_that_was_opened_meanwhile_was_not_missed() -> None:
    session = begun(head=1)
    session.take(event(said(1, thread="dm.ann.bob")))
    session.open("dm.ann.bob")
    assert session.missed() == []


def test_ones_own_message_is_shown_once_whichever_comes_first() -> None:
    mine = said(4, "mine", sender="ann", kind="human")
    answer = result(4, "channel.general", 4)
    session = begun()
    assert shown(session.sent("mine", answer, NOON)) == ["12:00 m4 ann: mine ✓"]
    assert session.take(event(mine)) == []
    session = begun()
    assert len(session.take(event(mine))) == 1
    assert session.sent("mine", answer, NOON) == []


def test_ones_own_message_from_another_window_is_not_unread() -> None:
    session = begun()
    assert session.take(event(said(1, sender="ann", thread="dm.ann.bob"))) == []
    assert session.unread == []


def test_a_message_into_another_thread_is_announced_as_sent() -> None:
    lines = begun().sent("under it", result(9, "channel.general.t4", 1), NOON)
    assert shown(lines) == ["12:00 m9 [#general › m4] ann: under it ✓"]


def test_a_message_to_somebody_who_is_away_says_that_it_waits() -> None:
    lines = begun().sent("x", result(9, "channel.general", 1, absent=("bob", "eve")), NOON)
    assert shown(lines)[1] == "bob, eve are away; the message waits"


def test_that_somebody_is_away_is_said_once_until_it_changes() -> None:
    session = begun()
    told = [
        "away"
        in " ".join(shown(session.sent("x", result(seq, "dm.ann.bob", seq, absent=absent), NOON)))
        for seq, absent in enumerate([("bob",), ("bob",), (), ("bob",)], 1)
    ]
    assert told == [True, False, False, True]


def test_a_mention_of_nobody_is_pointed_out() -> None:
    lines = begun().sent("x", result(9, "channel.general", 1, unresolved=("bbo",)), NOON)
    assert shown(lines)[1] == "nobody here is called @bbo"


def test_a_reconnection_that_resumed_keeps_everything() -> None:
    session = begun(thread(said(1)))
    session.take(event(said(2, thread="dm.ann.bob", tseq=1)))
    assert shown(session.begin(ready(resumed=True))) == ["connected again"]
    assert session.unread == ["@bob 1"]


def test_a_fresh_start_forgets_and_shows_the_thread_anew() -> None:
    session = begun(thread(said(1)))
    session.take(event(said(2, thread="dm.ann.bob")))
    lines = shown(session.begin(ready(thread(said(1, "again")))))
    assert lines[0].startswith("connected again; the network has started anew")
    assert lines[-1].endswith("again")
    assert session.unread == []


def test_older_messages_come_page_by_page() -> None:
    session = begun(thread(*[said(n) for n in range(31, 41)]))
    session.learn(ThreadPage(thread_id="channel.general", messages=(), more=True))
    session.open("channel.general")
    page = tuple(said(n) for n in range(1, 31))
    session.learn(ThreadPage(thread_id="channel.general", messages=page, more=False))
    older = shown(session.older())
    assert older[0].startswith("12:11 m11 ")
    assert older[-2].startswith("12:30 m30 ")
    assert shown(session.older())[0].startswith("12:01 m1 ")
    assert shown(session.older()) == ["that was the beginning of this thread"]
    assert not session.thread("channel.general").more


def test_messages_that_were_shown_as_they_came_are_not_older() -> None:
    session = begun()
    session.open("channel.general")
    session.take(event(said(1)))
    assert shown(session.older()) == ["that was the beginning of this thread"]


def test_a_long_thread_forgets_its_beginning() -> None:
    session = begun()
    for n in range(1, KEPT + 11):
        session.take(event(said(n)))
    kept = session.thread("channel.general")
    assert len(kept.messages) == KEPT
    assert kept.oldest == 11
    assert kept.more


def test_the_list_of_threads_has_numbers_that_open_takes() -> None:
    session = begun(thread(said(9, "last", thread="dm.ann.bob")), thread(said(3)))
    session.take(event(said(10, "new", mentions=("ann",))))
    lines = shown(session.lists())
    assert [line.split()[:3] for line in lines] == [
        ["*", "1", "#general"],
        ["2", "@bob", "bob:"],
        ["3", "broadcast", "nothing"],
    ]
    assert session.find("2") == "dm.ann.bob"


def test_the_list_says_what_is_new_and_what_its_mark_means() -> None:
    session = begun()
    session.take(event(said(9, "psst", thread="dm.ann.bob", tseq=1)))
    assert not any("!" in line for line in shown(session.lists()))
    loud = said(10, "@ann " + "long " * 100, thread="broadcast", tseq=1, mentions=("ann",))
    session.take(event(loud))
    first, second, _, legend = shown(session.lists())
    assert "broadcast   1 new!" in first
    assert first.endswith("…")
    assert "\n" not in first
    assert "@bob         1 new  bob: psst" in second
    assert legend == "! somebody mentioned you there; /open <n> opens a thread"


def test_numbers_work_without_having_asked_for_the_list() -> None:
    assert begun(thread(said(9, thread="dm.ann.bob"))).find("1") == "dm.ann.bob"


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("channel_general", "channel.general"),
        ("channel.general", "channel.general"),
        ("general", "channel.general"),
        ("#general", "channel.general"),
        ("broadcast", "broadcast"),
        ("bob", "dm.ann.bob"),
        ("@bob", "dm.ann.bob"),
        ("direct_bob", "dm.ann.bob"),
        ("channel_general.t5", "channel.general.t5"),
    ],
)
def test_a_thread_is_found_by_all_its_names(target: str, found: str) -> None:
    assert begun().find(target) == found


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("0", "1 to 2"),
        ("17", "1 to 2"),
        ("conceirge", "did you mean concierge?"),
        ("direct_nobody", "no thread"),
        ("#bob", "no thread"),
        ("@general", "no thread"),
        ("desk", "/join desk first"),
        ("\x1b[31m", "no thread '<U+001B>[31m'"),
    ],
)
def test_what_is_no_thread_gets_one_sentence(target: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        begun().find(target)
    assert says in str(caught.value)


def test_a_message_names_the_thread_of_its_replies() -> None:
    session = begun(thread(said(7)))
    assert session.find("m7") == "channel.general.t7"
    with pytest.raises(UserError, match="there is no message m8"):
        session.find("m8")


def test_every_thread_is_found_by_what_it_is_shown_as() -> None:
    session = begun()
    for name in ("broadcast", "channel.general.t5", "dm.ann.bob.concierge", "dm.ann.bob.t5.t7"):
        assert session.find(session.shown(name)) == name


def test_a_group_is_its_members_and_oneself() -> None:
    session = begun()
    assert session.direct(["concierge", "bob"]) == "dm.ann.bob.concierge"
    assert session.direct(["bob", "ann"]) == "dm.ann.bob"


@pytest.mark.parametrize(
    ("names", "says"),
    [(["bbo"], "did you mean bob?"), (["ann"], "somebody else"), (["p"] * 3, "nobody")],
)
def test_who_cannot_be_talked_to_gets_one_sentence(names: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says.replace("?", r"\?")):
        begun().direct(names)


def test_a_group_has_at_most_eight_members() -> None:
    session = Session("ann")
    session.begin(ready(people=tuple(person(f"p{n}") for n in range(9))))
    session.direct([f"p{n}" for n in range(7)])
    with pytest.raises(UserError, match="at most 8"):
        session.direct([f"p{n}" for n in range(8)])


def test_a_channel_must_exist_and_be_joined() -> None:
    session = begun()
    with pytest.raises(UserError, match="did you mean general"):
        session.channel("genral")
    with pytest.raises(UserError, match="/join desk"):
        session.channel("desk")
    session.joined("desk")
    assert session.channel("desk") == "channel.desk"
    session.joined("brand-new")
    assert session.channel("brand-new") == "channel.brand-new"


def test_leaving_the_current_channel_opens_the_broadcast_thread() -> None:
    session = begun(thread(said(1)), thread(said(2, thread="channel.general.t1")))
    session.open("channel.general.t1")
    assert shown(session.left("general")) == ["you left general", "── broadcast ──"]
    assert session.current == "broadcast"
    assert list(session.threads) == ["broadcast"]
    with pytest.raises(UserError, match="/join general"):
        session.channel("general")


def test_leaving_another_channel_changes_nothing_here() -> None:
    session = begun()
    session.joined("desk")
    assert shown(session.left("desk")) == ["you left desk"]
    assert session.current == "channel.general"


def test_people_are_listed_with_those_who_are_here_first() -> None:
    session = Session("ann")
    session.begin(
        ready(people=(person("zed", present=False), person("bob", about="adds\x1b"), person("ann")))
    )
    lines = shown(session.people())
    assert [line.split()[:2] for line in lines] == [["●", "ann"], ["●", "bob"], ["○", "zed"]]
    assert "(you)" in lines[0]
    assert "adds<U+001B>" in lines[1]


def test_presence_signals_keep_the_list_of_people_right() -> None:
    session = begun()
    eve = person("eve", about="new").model_dump(mode="json")
    data = {"online": [eve], "offline": ["bob", "unheard_of"]}
    session.hear(Signal(type="presence", sender="hub", data=data), 0)
    assert session.participants["eve"].card.description == "new"
    assert not session.participants["bob"].present
    assert session.direct(["eve"]) == "dm.ann.eve"


def test_an_activity_ends_when_its_sender_speaks_or_leaves() -> None:
    session = begun()
    for name in ("bob", "concierge"):
        signal = Signal(type="activity", sender=name, thread_id="channel.general", data="thinking")
        session.hear(signal, 0)
    assert session.activities.now(1) == ["bob is thinking", "concierge is thinking"]
    session.take(event(said(1)))
    assert session.activities.now(1) == ["concierge is thinking"]
    session.hear(Signal(type="presence", sender="hub", data={"offline": ["concierge"]}), 1)
    assert session.activities.now(1) == []


def test_ones_own_signals_are_no_news() -> None:
    session = begun()
    session.hear(Signal(type="typing", sender="ann"), 0)
    assert session.activities.now(0) == []


threads = st.sampled_from(["channel.general", "dm.ann.bob", "broadcast", "channel.general.t3"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), threads, st.sampled_from(["bob", "ann"]), st.booleans()),
        st.tuples(st.just("open"), threads, st.just(""), st.just(False)),
    ),
    max_size=40,
)


@pytest.mark.behaviour("U-1")
@settings(max_examples=examples(150))
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
    spoken = [step for step in steps if step[0] == "say"]
    assert lines <= len(spoken)


@pytest.mark.behaviour("P-19")
@settings(max_examples=examples(100))
@given(st.lists(threads, max_size=30), st.data())
def test_events_applied_to_an_old_state_give_the_freshly_fetched_state(
    places: list[str], data: st.DataObject
) -> None:
    log, counts = [], dict.fromkeys(places, 0)
    for seq, place in enumerate(places, 1):
        counts[place] += 1
        log.append(said(seq, f"text {seq}", thread=place, tseq=counts[place]))
    cut = data.draw(st.integers(0, len(log)), label="where the client joined")

    def joined_after(known: list[Message]) -> Session:
        found = [[m for m in known if m.thread_id == place] for place in counts]
        session = Session("ann", UTC)
        session.begin(ready(*[thread(*messages) for messages in found if messages], head=cut))
        return session

    lived, fetched = joined_after(log[:cut]), joined_after(log)
    for message in log[cut:]:
        lived.take(event(message))
    for name, known in fetched.threads.items():
        assert lived.thread(name).messages == known.messages
        assert lived.thread(name).last_seq == known.last_seq
        assert shown(lived.open(name)) == shown(fetched.open(name))
