"""What the full-screen client knows, and the list of threads and the open thread made of it."""

from __future__ import annotations

from datetime import UTC, date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.cli.chat.thread import KEPT
from hubbub.cli.full.delivery import NAMED, delivery, readers
from hubbub.cli.full.groups import REPLIES, Heading, Row, groups, neighbour
from hubbub.cli.full.lists import row_line
from hubbub.cli.full.outbox import Outbox, Sending
from hubbub.cli.full.state import Draft, State
from hubbub.cli.full.timeline import (
    TOGETHER,
    Beginning,
    Block,
    DayLine,
    Earlier,
    NewLine,
    Pending,
    Post,
    key,
    timeline,
)
from hubbub.client import Disconnected
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Amendment, Channel, Message, Quote
from hubbub.protocol.operations import ThreadPage
from tests.examples import examples
from tests.unit.cli.chatting import (
    NOON,
    arrive,
    event,
    person,
    ready,
    result,
    said,
    signal,
    state_of,
    thread,
)

GENERAL, DM = "channel.general", "dm.ann.bob"
QUOTE = Quote(message_id="m1", text="x")


def sending(cid: str = "c1", thread: str = GENERAL) -> Sending:
    return Sending(cid, thread, "mine")


def unread(state: State, thread: str = GENERAL) -> tuple[int, int]:
    found = state.thread(thread)
    return found.unread, found.unread_mentions


def test_messages_are_unread_until_their_thread_has_been_read() -> None:
    state = state_of(thread(said(1, tseq=1)))
    arrive(state, said(2, tseq=2), said(3, tseq=3, mentions=("ann",)))
    for who, data in (("ann", None), ("ann", {"upto": "x"}), ("ann", [3]), ("bob", {"upto": 3})):
        state.apply(signal("read", data, who, GENERAL), 0)
        assert unread(state) == (2, 1), "it says nothing of ann"
    state.apply(signal("read", {"upto": 3}, "ann", GENERAL), 0)
    assert unread(state) == (0, 0)
    arrive(state, said(4, tseq=4), said(5, tseq=5, sender="ann"))
    assert unread(state) == (0, 0), "who speaks in a thread has read it"
    told = state_of(thread(said(8, tseq=5), said(9, tseq=6, mentions=("ann",)), read=2))
    assert unread(told) == (4, 1)
    told.mentioned([said(4, tseq=4, mentions=("ann",)), said(2, thread="mod.unknown")])
    assert unread(told) == (4, 2), "mentions further back are counted too"
    assert "mod.unknown" not in told.threads


def test_a_thread_opens_where_the_new_begins_and_until_all_there_is_has_come() -> None:
    state = state_of(thread(said(9, tseq=9), read=4))
    assert state.new_from == 4
    state.open("broadcast")
    assert state.new_from is None
    state.opened(GENERAL)  # which somebody has left already
    assert state.opening
    state.opened("broadcast")
    assert not state.opening


def test_a_thread_that_was_read_far_back_is_forgotten_but_for_its_end() -> None:
    state = state_of()
    pages = [said(n, tseq=n) for n in range(1, 2 * KEPT)]
    state.learn(ThreadPage(thread_id=GENERAL, messages=tuple(pages), more=False))
    general = state.thread(GENERAL)
    state.open(GENERAL)
    assert (len(general.messages), general.more) == (2 * KEPT - 1, False)
    state.open("broadcast")
    assert list(general.messages) == list(range(KEPT, 2 * KEPT))
    assert general.more


def test_a_channel_one_is_brought_into_is_ones_own_and_one_that_is_left_is_closed() -> None:
    state = arrive(state_of(), said(1, thread="channel.desk.t4", tseq=1))
    assert state.channels["desk"].joined
    state.parted("general")
    assert state.current == "broadcast"
    assert GENERAL not in state.threads


# The connection -----------------------------------------------------------------------------------


def test_a_lost_connection_says_why_and_when_the_next_attempt_is() -> None:
    state = state_of()
    assert state.connection.words(0) == ""
    state.apply(Disconnected(1006, "", 5.0), 10.0)
    assert state.connection.words(11.2) == "not connected (closed with 1006), trying again in 4 s"
    assert state.connection.words(15.0) == "not connected (closed with 1006), trying again"
    state.apply(ready(resumed=True), 16.0)
    assert state.connection.words(16.0) == ""
    state.connection.lost, state.connection.over = "revoked", True
    assert state.connection.words(0) == "the hub closed the connection: revoked"


def test_a_resume_keeps_messages_drafts_and_what_is_under_way() -> None:
    state = arrive(state_of(thread(said(1, tseq=1))), said(2, tseq=2), said(3, tseq=3))
    for draft, kept in ((Draft("a"), 1), (Draft(" \n"), 0), (Draft("", QUOTE), 1), (Draft(), 0)):
        state.draft("broadcast", draft)
        assert len(state.drafts) == kept, "empty drafts are forgotten"
    state.draft("broadcast", Draft("half a"))
    state.outbox.add(sending())
    state.apply(Disconnected(4001, "x", 1.0), 0)
    state.apply(ready(thread(said(3, tseq=3), read=2), resumed=True), 1)
    assert list(state.thread(GENERAL).messages) == [1, 2, 3]
    assert unread(state) == (1, 0), "another window has read meanwhile"
    assert state.outbox.under_way == 1
    state.open(DM)
    state.apply(ready(thread(said(1, "anew", tseq=1))), 1)  # and a fresh start keeps drafts only
    assert state.current == "broadcast"
    assert state.thread(GENERAL).messages[1].text == "anew"
    assert state.drafts == {"broadcast": Draft("half a")}


# What is said -------------------------------------------------------------------------------------


def test_what_was_said_stands_there_once_whether_answer_or_event_comes_first() -> None:
    state = state_of()
    mine = Sending("c1", GENERAL, "mine")
    state.outbox.add(mine)
    assert state.outbox.of(GENERAL) == [mine]
    state.sent(mine, result(4, GENERAL, 1, "mine"))
    assert list(state.outbox) == []
    (message,) = state.thread(GENERAL).messages.values()
    assert (message.id, message.text) == ("m4", "mine")
    assert unread(state) == (0, 0)
    state = state_of()
    for cid in ("c1", "c2"):
        state.outbox.add(sending(cid))
    arrive(state, said(4, "mine", sender="ann", tseq=1))
    assert [s.cid for s in state.outbox] == ["c2"]
    state.sent(sending("c1"), result(4, GENERAL, 1))
    assert list(state.thread(GENERAL).messages) == [1]
    assert [s.cid for s in state.outbox] == ["c2"]


def test_a_refusal_stays_until_it_is_given_up() -> None:
    outbox = Outbox()
    outbox.add(sending("c1"))
    outbox.add(sending("c2", thread="broadcast"))
    outbox.refused("c1", "too long")
    outbox.refused("unheard_of", "x")
    assert (outbox.under_way, outbox.of(GENERAL)[0].failed) == (1, "too long")
    outbox.seen(said(4, "mine", sender="ann"))  # what was refused is in no log
    assert len(list(outbox)) == 2
    outbox.done("c1")
    assert [s.cid for s in outbox] == ["c2"]


# The state of a fresh client ----------------------------------------------------------------------

PLACES = [GENERAL, DM, "broadcast", "channel.general.t3"]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(PLACES), st.sampled_from(["bob", "ann"])),
        st.tuples(st.sampled_from(["read", "unread"]), st.sampled_from(PLACES), st.just("")),
    ),
    max_size=30,
)


class Hub:
    """What a hub would tell, as far as it matters here."""

    def __init__(self) -> None:
        self.threads: dict[str, list[Message]] = {}
        self.read: dict[str, int] = {}

    def ready(self) -> Ready:
        told = [thread(*said[-4:], read=self.read[name]) for name, said in self.threads.items()]
        return ready(*told)

    def step(self, seq: int, what: str, place: str, who: str, state: State) -> None:
        messages = self.threads.get(place, [])
        if what == "say":
            mentions = ("ann",) if who == "bob" and seq % 3 == 0 else ()
            message = said(seq, thread=place, tseq=len(messages) + 1, sender=who, mentions=mentions)
            self.threads.setdefault(place, []).append(message)
            self.read.setdefault(place, 0)
            if who == "ann":
                self.read[place] = message.tseq
            state.apply(event(message), 0)
        elif messages:
            upto = len(messages) if what == "read" else len(messages) - 1
            self.read[place] = upto
            state.apply(signal("read", {"upto": upto}, "ann", place), 0)


def counts(state: State) -> dict[str, tuple[int, int, int]]:
    return {t.id: (t.head, t.read, t.last_seq) for t in state.threads.values() if t.head}


@pytest.mark.behaviour("P-19")
@settings(max_examples=examples(80))
@given(steps=steps, data=st.data())
def test_what_arrives_after_a_snapshot_gives_the_state_of_a_fresh_one(
    steps: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(steps)), label="where the client joined")
    hub, nobody, lived = Hub(), State("ann"), State("ann")
    nobody.apply(ready(), 0)
    for seq, step in enumerate(steps[:cut], 1):
        hub.step(seq, *step, nobody)
    lived.apply(hub.ready(), 0)
    for seq, step in enumerate(steps[cut:], cut + 1):
        hub.step(seq, *step, lived)
    fresh = State("ann")
    fresh.apply(hub.ready(), 0)
    assert counts(lived) == counts(fresh)
    for name, told in fresh.threads.items():
        assert told.messages.items() <= lived.thread(name).messages.items()
        assert told.unread == lived.thread(name).unread


# The open thread ----------------------------------------------------------------------------------


def blocks(state: State) -> str:
    """`Post` as its message's id, the others by their names."""
    found = timeline(state, UTC)
    return " ".join(b.message.id if isinstance(b, Post) else type(b).__name__ for b in found)


def posts(state: State) -> list[Post]:
    return [block for block in timeline(state, UTC) if isinstance(block, Post)]


def test_a_thread_is_shown_from_its_beginning_with_days_news_and_what_is_on_its_way() -> None:
    assert timeline(state_of(), UTC) == [Beginning("#general")]
    late = said(2, tseq=2, at=NOON + timedelta(days=1))
    state = state_of(thread(said(1, tseq=1), late))
    assert blocks(state) == "Beginning DayLine m1 DayLine m2"
    days = [b.day for b in timeline(state, UTC) if isinstance(b, DayLine)]
    assert days == [date(2026, 3, 4), date(2026, 3, 5)]
    state = state_of(thread(*[said(n, tseq=n) for n in (1, 2, 3)], read=1))
    state.outbox.add(sending("c1"))
    state.outbox.add(sending("c2", thread="broadcast"))
    assert blocks(state) == "Beginning DayLine m1 NewLine m2 m3 Pending"
    state.thread(GENERAL).read = 3
    assert "NewLine" in blocks(state), "until the thread is opened again"
    state.open(GENERAL)
    assert "NewLine" not in blocks(state)
    state = state_of(thread(said(1, tseq=1), read=0))
    state.new_from = 1
    assert "NewLine" not in blocks(arrive(state, said(2, tseq=2, sender="ann")))
    state = state_of(thread(said(40, tseq=4)))
    assert blocks(state).startswith("Earlier ")
    page = tuple(said(30 + n, tseq=n) for n in (1, 2, 3))
    state.learn(ThreadPage(thread_id=GENERAL, messages=page, more=False))
    assert blocks(state).startswith("Beginning ")
    state = state_of(thread(said(7, "shall we?", tseq=1)))
    for thread_id, above in (("channel.general.t7", "bob: shall we?"), ("broadcast.t3", "")):
        state.open(thread_id)
        assert timeline(state, UTC) == [Beginning(state.shown(thread_id), above)]


def test_messages_of_one_sender_go_together_for_a_while_with_marks_of_their_own() -> None:
    state = arrive(
        state_of(),
        said(1, tseq=1, at=NOON, mentions=("ann",)),
        said(2, tseq=2, at=NOON + timedelta(seconds=30), mentions=("bob",)),
        said(3, tseq=3, at=NOON + timedelta(seconds=40), sender="eve"),
        said(4, tseq=4, at=NOON + timedelta(seconds=40) + TOGETHER, sender="eve"),
        said(5, thread="channel.general.t1", tseq=1),
    )
    found = posts(state)
    assert [post.together for post in found] == [False, True, False, False]
    assert [post.mentions_me for post in found] == [True, False, False, False]
    assert [(post.replies, post.new_replies) for post in found[:2]] == [(1, 1), (0, 0)]


def test_a_block_has_another_key_when_it_looks_different() -> None:
    post = Post(said(1), together=False)
    others: list[Block] = [
        Post(said(1), together=True),
        Post(said(1), False, "✓✓ bob"),
        Post(said(1), False, replies=1),
        Post(said(1), False, replies=1, new_replies=1),
        Post(said(2), False),
        Beginning("#a"),
        Beginning("#b"),
        Earlier(),
        NewLine(),
        DayLine(date(2026, 3, 4)),
        Pending(Sending("c", "t", "x")),
        Pending(Sending("c", "t", "x", failed="no")),
    ]
    assert len({key(block) for block in [post, *others]}) == len(others) + 1
    assert key(post) == key(Post(said(1), together=False))


@pytest.mark.behaviour("M-101")
def test_an_edit_has_no_place_of_its_own_and_shows_in_what_it_changes() -> None:
    edit, gone = (
        said(n, text, tseq=n).model_copy(
            update={"amends": Amendment(message_id=f"m{of}", kind=kind)}
        )
        for n, text, of, kind in ((3, "yes", 1, "edited"), (4, "", 2, "deleted"))
    )
    state = state_of(thread(said(1, "yse", tseq=1), said(2, "oops", tseq=2), edit, gone))
    shown = [(post.message.content, post.message.amended) for post in posts(state)]
    assert shown == [("yes", "edited"), ("", "deleted")]


# Delivery -----------------------------------------------------------------------------------------


def with_people(*names: str, away: tuple[str, ...] = ()) -> State:
    """A network of these people, who are all in #general."""
    state = State("ann")
    people = tuple(person(name, present=name not in away) for name in ("ann", *names))
    channel = Channel(name="general", joined=True, members=("ann", *names))
    state.apply(ready(people=people, channels=(channel,)), 0)
    return state


def come(state: State, thread: str = GENERAL) -> str:
    """How far ann's message has come."""
    return delivery(state, said(9, sender="ann", kind="human", thread=thread, tseq=1))


def test_a_message_is_stored_until_somebody_has_it() -> None:
    state = with_people("bob", "eve")
    for data, shown in (
        (None, "✓"), ({"bob": 8}, "✓"), ({"bob": 9}, "✓✓ bob"), ({"bob": 3}, "✓✓ bob"),
        ({"bob": "x"}, "✓✓ bob"), ([1], "✓✓ bob"), ({"eve": 12}, "✓✓ bob, eve"),
    ):  # fmt: skip
        state.apply(signal("delivered", data), 0)
        assert come(state) == shown
    names = [f"p{n}" for n in range(6)]
    state = with_people(*names)
    state.apply(signal("delivered", dict.fromkeys(names[:5], 9)), 0)
    assert come(state) == "✓✓ 5 of 6"
    state = with_people(*names)
    state.apply(signal("delivered", dict.fromkeys(names[:NAMED], 9)), 0)
    assert come(state) == f"✓✓ {', '.join(names[:NAMED])}"
    state = with_people("bob", "eve", away=("bob",))
    waiting = [come(state, place) for place in (DM, "dm.ann.eve", GENERAL)]
    assert waiting == ["✓ waits for bob", "✓", "✓"]


def test_who_reads_a_thread() -> None:
    for place, names in (
        (DM, ("bob",)),
        ("dm.ann.bob.eve.t5", ("bob", "eve")),
        (GENERAL, ("bob", "eve")),
        ("channel.general.t1", ("bob", "eve")),
        ("channel.unknown", ()),
        ("broadcast", ("bob", "eve")),
    ):
        assert readers(with_people("bob", "eve"), place) == names


# The list of threads ------------------------------------------------------------------------------


def listed(state: State) -> list[str]:
    """The list as text, the groups in brackets, the open thread with a star."""
    return [
        f"[{row.title}]"
        if isinstance(row, Heading)
        else ("*" if row.current else " ") + row_line(row).plain
        for row in groups(state)
    ]


def rows(state: State) -> list[Row]:
    return [row for row in groups(state) if isinstance(row, Row)]


def test_threads_stand_in_groups_with_what_is_new_and_drafts() -> None:
    state = state_of(
        thread(said(3, thread=DM, tseq=1)),
        thread(said(5, thread="dm.ann.concierge", tseq=1)),
        thread(said(4, thread="mod.tasks", tseq=1)),
        thread(said(2, thread="dm.ann.bob.concierge", tseq=1)),
        current="broadcast",
    )
    arrive(state, said(6, tseq=1), said(7, tseq=2, mentions=("ann",)))
    state.draft(GENERAL, Draft("x"))
    state.draft("broadcast", Draft("y"))
    assert listed(state) == [
        "[Network]",
        "*broadcast",
        " mod_tasks",
        "[Channels]",
        " #general ✎ @1 2",
        "[Direct]",
        " ● @concierge",
        " ● @bob",
        " @bob,@concierge",
    ]
    state = State("ann")
    channels = tuple(Channel(name=name, joined=True) for name in ("zoo", "art"))
    state.apply(ready(channels=channels), 0)
    arrive(state, said(1, thread="channel.zoo", tseq=1))
    assert [row.label for row in rows(state)] == ["broadcast", "#art", "#zoo"]


def test_replies_stand_under_their_parents_with_what_they_are_about() -> None:
    state = state_of(thread(said(7, "shall \x1b[31mwe?", tseq=1)))
    arrive(state, said(8, thread="channel.general.t7", tseq=1))
    arrive(state, said(9, thread="channel.general.t7.t8", tseq=1))
    assert listed(state)[3:] == [
        "*#general",
        "   ↳ m7 shall <U+001B>[31mwe? 1",
        "     ↳ m8 hi 1",
    ]
    state = arrive(state_of(), said(9, thread="channel.desk.t5", tseq=1))
    assert listed(state)[3:] == [" #desk", "   ↳ m5 1", "*#general"], "the parent is not known"
    assert listed(state_of(current=DM))[-1] == "*● @bob", "though nobody has spoken in it"
    assert listed(state_of(current="channel.general.t4"))[-1] == "*  ↳ m4"


def test_old_reply_threads_are_left_out_unless_something_in_them_is_new_or_open() -> None:
    def replies(read: int) -> State:
        names = [f"channel.general.t{n}" for n in range(1, REPLIES + 4)]
        told = [thread(said(50 + n, thread=name, tseq=1)) for n, name in enumerate(names)]
        told[0] = thread(said(50, thread=names[0], tseq=1), read=read)
        return state_of(*told)

    state = replies(1)
    found = [row.thread_id for row in rows(state) if row.depth]
    assert len(found) == REPLIES
    assert "channel.general.t1" not in found
    assert any("m1 1" in line for line in listed(replies(0)))
    state.open("channel.general.t1")
    assert any("m1" in line and line.startswith("*") for line in listed(state))


def test_neighbours_go_round() -> None:
    found: list[Heading | Row] = [
        Heading("a"), Row("t1", "1"), Row("t2", "2", unread=1), Heading("b"), Row("t3", "3"),
    ]  # fmt: skip
    for current, step, unread, next_one in (
        ("t1", 1, False, "t2"), ("t3", 1, False, "t1"), ("t1", -1, False, "t3"),
        ("t3", 1, True, "t2"), ("t3", -1, True, "t2"), ("t2", 1, True, None),
        ("elsewhere", 1, False, "t2"),
    ):  # fmt: skip
        assert neighbour(found, current, step, unread=unread) == next_one
    assert neighbour([Row("t1", "1")], "t1", 1) is None
    assert neighbour([], "t1", -1) is None


ANYWHERE = [*PLACES, "channel.general.t1.t2", "dm.ann.bob.t9", "broadcast.t3", "mod.tasks",
            "channel.desk.t4"]  # fmt: skip


@given(st.lists(st.sampled_from(ANYWHERE), unique=True), st.sampled_from(ANYWHERE))
def test_every_thread_with_something_new_is_listed_once(places: list[str], current: str) -> None:
    messages = [said(n, thread=place, tseq=1) for n, place in enumerate(places, 10)]
    state = arrive(state_of(current=current), *messages)
    found = [row.thread_id for row in rows(state)]
    assert len(found) == len(set(found))
    assert {*places, current} <= set(found)
    assert [row.thread_id for row in rows(state) if row.current] == [current]
