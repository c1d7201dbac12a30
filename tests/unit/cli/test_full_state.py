"""What the full-screen client knows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.cli.chat.thread import KEPT
from hubbub.cli.full.outbox import Outbox, Sending
from hubbub.cli.full.state import Draft, State
from hubbub.client import Disconnected
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message, Quote
from hubbub.protocol.operations import ThreadPage
from tests.examples import examples
from tests.unit.cli.chatting import (
    NOON,
    arrive,
    event,
    ready,
    result,
    said,
    signal,
    state_of,
    thread,
)


def sending(cid: str = "c1", text: str = "mine", thread: str = "channel.general") -> Sending:
    return Sending(cid, thread, text)


def test_messages_are_unread_until_their_thread_has_been_read() -> None:
    state = state_of(thread(said(1, tseq=1)))
    arrive(state, said(2, tseq=2), said(3, tseq=3, mentions=("ann",)))
    general = state.thread("channel.general")
    assert (general.unread, general.unread_mentions) == (2, 1)
    state.apply(signal("read", {"upto": 3}, "ann", "channel.general"), 0)
    assert (general.unread, general.unread_mentions) == (0, 0)


def test_what_the_hub_says_is_unread_is_unread_at_once() -> None:
    state = state_of(thread(said(8, tseq=5), said(9, tseq=6, mentions=("ann",)), read=2))
    assert state.thread("channel.general").unread == 4
    assert state.thread("channel.general").unread_mentions == 1


@pytest.mark.parametrize("data", [None, {}, {"upto": "x"}, [3]])
def test_a_read_signal_that_says_nothing_changes_nothing(data: object) -> None:
    state = arrive(state_of(), said(1, tseq=1))
    state.apply(signal("read", data, "ann", "channel.general"), 0)
    state.apply(signal("read", {"upto": 1}, "bob", "channel.general"), 0)
    assert state.thread("channel.general").unread == 1


def test_who_speaks_in_a_thread_has_read_it() -> None:
    state = arrive(state_of(), said(1, tseq=1), said(2, tseq=2, sender="ann"))
    assert state.thread("channel.general").unread == 0


def test_mentions_further_back_are_counted_too() -> None:
    state = state_of(thread(said(9, tseq=30), read=3))
    state.mentioned([said(4, tseq=4, mentions=("ann",)), said(2, thread="mod.unknown")])
    assert state.thread("channel.general").unread_mentions == 1
    assert "mod.unknown" not in state.threads


def test_opening_remembers_where_the_new_begins() -> None:
    state = state_of(thread(said(9, tseq=9), read=4))
    assert state.new_from == 4
    state.open("broadcast")
    assert state.new_from is None


def test_a_thread_is_opening_until_what_there_is_of_it_has_come() -> None:
    state = state_of(current="broadcast")
    assert state.opening
    state.opened("channel.general")  # which somebody has left already
    assert state.opening
    state.opened("broadcast")
    assert not state.opening


def test_a_thread_that_was_read_far_back_is_forgotten_but_for_its_end() -> None:
    state = state_of()
    pages = [said(n, tseq=n) for n in range(1, 2 * KEPT)]
    state.learn(ThreadPage(thread_id="channel.general", messages=tuple(pages), more=False))
    general = state.thread("channel.general")
    state.open("channel.general")
    assert (len(general.messages), general.more) == (2 * KEPT - 1, False)
    state.open("broadcast")
    assert list(general.messages) == list(range(KEPT, 2 * KEPT))
    assert general.more


def test_a_message_of_a_channel_that_somebody_has_brought_ann_into_makes_it_hers() -> None:
    state = arrive(state_of(), said(1, thread="channel.desk.t4", tseq=1))
    assert state.channels["desk"].joined


def test_leaving_the_open_channel_opens_the_broadcast_thread() -> None:
    state = state_of()
    state.parted("general")
    assert state.current == "broadcast"
    assert "channel.general" not in state.threads


# The connection -----------------------------------------------------------------------------------


def test_a_lost_connection_says_why_and_when_the_next_attempt_is() -> None:
    state = state_of()
    assert state.connection.words(0) == ""
    state.apply(Disconnected(1006, "", 5.0), 10.0)
    assert state.connection.words(11.2) == "not connected (closed with 1006), trying again in 4 s"
    assert state.connection.words(15.0) == "not connected (closed with 1006), trying again"
    state.apply(ready(resumed=True), 16.0)
    assert state.connection.words(16.0) == ""


def test_a_connection_that_is_over_says_so() -> None:
    state = state_of()
    state.connection.lost, state.connection.over = "revoked", True
    assert state.connection.words(0) == "the hub closed the connection: revoked"


def test_a_resume_keeps_messages_drafts_and_what_is_under_way() -> None:
    state = state_of(thread(said(1, tseq=1)))
    state.draft("broadcast", Draft("half a"))
    state.outbox.add(sending())
    state.apply(Disconnected(4001, "x", 1.0), 0)
    state.apply(ready(thread(said(1, tseq=1), read=1), resumed=True), 1)
    assert list(state.thread("channel.general").messages) == [1]
    assert state.drafts == {"broadcast": Draft("half a")}
    assert state.outbox.under_way == 1


def test_a_resume_takes_over_what_another_window_has_read_meanwhile() -> None:
    state = arrive(state_of(thread(said(1, tseq=1))), said(2, tseq=2), said(3, tseq=3))
    state.apply(ready(thread(said(3, tseq=3), read=2), resumed=True), 1)
    assert state.thread("channel.general").unread == 1


def test_a_fresh_start_forgets_what_was_known_but_not_what_was_written() -> None:
    state = state_of(thread(said(1, tseq=1)), current="channel.general")
    state.draft("broadcast", Draft("half a"))
    state.open("dm.ann.bob")
    state.apply(ready(thread(said(1, "anew", tseq=1))), 1)
    assert state.current == "broadcast"
    assert state.thread("channel.general").messages[1].text == "anew"
    assert state.drafts == {"broadcast": Draft("half a")}


# Drafts -------------------------------------------------------------------------------------------


def test_empty_drafts_are_forgotten() -> None:
    state = state_of()
    quote = Quote(message_id="m1", text="x")
    for draft, kept in ((Draft("a"), 1), (Draft(" \n"), 0), (Draft("", quote), 1), (Draft(), 0)):
        state.draft("broadcast", draft)
        assert len(state.drafts) == kept


# What is said -------------------------------------------------------------------------------------


def test_an_answer_puts_what_was_said_into_the_thread() -> None:
    state = state_of()
    quote = Quote(message_id="m1", text="x")
    mine = Sending("c1", "channel.general", "mine", quote)
    state.outbox.add(mine)
    assert state.outbox.of("channel.general") == [mine]
    state.sent(mine, result(4, "channel.general", 1), NOON)
    assert list(state.outbox) == []
    (message,) = state.thread("channel.general").messages.values()
    assert (message.id, message.text, message.quote) == ("m4", "mine", quote)
    assert state.thread("channel.general").unread == 0


def test_an_event_before_its_answer_stands_there_once() -> None:
    state = state_of()
    for cid in ("c1", "c2"):
        state.outbox.add(sending(cid))
    arrive(state, said(4, "mine", sender="ann", tseq=1))
    assert [s.cid for s in state.outbox] == ["c2"]
    state.sent(sending("c1"), result(4, "channel.general", 1), NOON)
    assert list(state.thread("channel.general").messages) == [1]
    assert [s.cid for s in state.outbox] == ["c2"]


def test_a_refusal_stays_until_it_is_given_up() -> None:
    outbox = Outbox()
    outbox.add(sending("c1"))
    outbox.add(sending("c2", thread="broadcast"))
    outbox.refused("c1", "too long")
    outbox.refused("unheard_of", "x")
    assert (outbox.under_way, outbox.of("channel.general")[0].failed) == (1, "too long")
    outbox.seen(said(4, "mine", sender="ann"))  # what was refused is in no log
    assert len(list(outbox)) == 2
    outbox.done("c1")
    assert [s.cid for s in outbox] == ["c2"]


def test_delivery_only_goes_forward() -> None:
    state = state_of()
    for data in ({"bob": 5}, {"bob": 3}, None, {"bob": "x"}, [1]):
        state.apply(signal("delivered", data), 0)
    assert state.delivered.has("bob", 5)
    assert not state.delivered.has("bob", 6)
    assert not state.delivered.has("eve", 1)


# The state of a fresh client ----------------------------------------------------------------------

PLACES = ["channel.general", "dm.ann.bob", "broadcast", "channel.general.t3"]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(PLACES), st.sampled_from(["bob", "ann"])),
        st.tuples(st.just("read"), st.sampled_from(PLACES), st.just("")),
        st.tuples(st.just("unread"), st.sampled_from(PLACES), st.just("")),
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
@settings(max_examples=examples(150))
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
