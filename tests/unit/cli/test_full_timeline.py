"""The open thread from top to bottom, and how far one's own messages have come."""

from __future__ import annotations

from datetime import UTC, date, timedelta

import pytest

from hubbub.cli.full.delivery import delivery, readers
from hubbub.cli.full.outbox import Sending
from hubbub.cli.full.state import State
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
from hubbub.protocol.messages import Amendment, Channel, Message
from hubbub.protocol.operations import ThreadPage
from tests.unit.cli.chatting import NOON, arrive, person, ready, said, signal, state_of, thread


def kinds(blocks: list[Block]) -> list[str]:
    """`Post` as its message's id, the others by their names."""
    return [b.message.id if isinstance(b, Post) else type(b).__name__ for b in blocks]


def posts(state: State) -> list[Post]:
    return [block for block in timeline(state, UTC) if isinstance(block, Post)]


def test_an_empty_thread_is_at_its_beginning() -> None:
    assert timeline(state_of(), UTC) == [Beginning("#general")]


def test_a_reply_thread_begins_with_what_it_is_about() -> None:
    state = state_of(thread(said(7, "shall we?", tseq=1)))
    for thread_id, above in (("channel.general.t7", "bob: shall we?"), ("broadcast.t3", "")):
        state.open(thread_id)
        assert timeline(state, UTC) == [Beginning(state.shown(thread_id), above)]


def test_days_stand_between_messages() -> None:
    late = said(2, tseq=2, at=NOON + timedelta(days=1))
    blocks = timeline(state_of(thread(said(1, tseq=1), late)), UTC)
    assert kinds(blocks) == ["Beginning", "DayLine", "m1", "DayLine", "m2"]
    assert [b.day for b in blocks if isinstance(b, DayLine)] == [
        date(2026, 3, 4),
        date(2026, 3, 5),
    ]


def test_older_messages_at_the_hub_are_pointed_out() -> None:
    state = state_of(thread(said(40, tseq=4)))
    assert kinds(timeline(state, UTC))[0] == "Earlier"
    page = ThreadPage(
        thread_id="channel.general",
        messages=tuple(said(30 + n, tseq=n) for n in (1, 2, 3)),
        more=False,
    )
    state.learn(page)
    assert kinds(timeline(state, UTC))[0] == "Beginning"


def test_a_line_stands_where_the_new_begins() -> None:
    state = state_of(thread(*[said(n, tseq=n) for n in (1, 2, 3)], read=1))
    assert kinds(timeline(state, UTC)) == ["Beginning", "DayLine", "m1", "NewLine", "m2", "m3"]
    state.thread("channel.general").read = 3
    assert "NewLine" in kinds(timeline(state, UTC))  # until the thread is opened again
    state.open("channel.general")
    assert "NewLine" not in kinds(timeline(state, UTC))


def test_ones_own_message_is_not_announced_as_new() -> None:
    state = state_of(thread(said(1, tseq=1), read=0))
    state.new_from = 1
    arrive(state, said(2, tseq=2, sender="ann"))
    assert "NewLine" not in kinds(timeline(state, UTC))


def test_messages_of_one_sender_go_together_for_a_while() -> None:
    state = arrive(
        state_of(),
        said(1, tseq=1, at=NOON),
        said(2, tseq=2, at=NOON + timedelta(seconds=30)),
        said(3, tseq=3, at=NOON + timedelta(seconds=40), sender="eve"),
        said(4, tseq=4, at=NOON + timedelta(seconds=40) + TOGETHER, sender="eve"),
    )
    assert [post.together for post in posts(state)] == [False, True, False, False]


def test_what_is_on_its_way_stands_at_the_end() -> None:
    state = state_of(thread(said(1, tseq=1)))
    state.outbox.add(Sending("c1", "channel.general", "mine"))
    state.outbox.add(Sending("c2", "broadcast", "elsewhere"))
    assert kinds(timeline(state, UTC))[-2:] == ["m1", "Pending"]


def test_replies_are_counted_at_their_message() -> None:
    state = state_of(thread(said(1, tseq=1), said(2, tseq=2)))
    arrive(state, said(5, thread="channel.general.t1", tseq=1))
    first, second = posts(state)
    assert (first.replies, first.new_replies) == (1, 1)
    assert second.replies == 0


def test_mentions_of_the_reader_are_marked() -> None:
    state = arrive(
        state_of(), said(1, tseq=1, mentions=("ann",)), said(2, tseq=2, mentions=("bob",))
    )
    assert [post.mentions_me for post in posts(state)] == [True, False]


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


# Delivery -----------------------------------------------------------------------------------------


def mine(thread: str) -> Message:
    return said(9, sender="ann", kind="human", thread=thread, tseq=1)


def with_people(*names: str, away: tuple[str, ...] = ()) -> State:
    """A network of these people, who are all in #general."""
    state = State("ann")
    people = tuple(person(name, present=name not in away) for name in ("ann", *names))
    channel = Channel(name="general", joined=True, members=("ann", *names))
    state.apply(ready(people=people, channels=(channel,)), 0)
    return state


@pytest.mark.parametrize(
    ("thread", "names"),
    [
        ("dm.ann.bob", ("bob",)),
        ("dm.ann.bob.eve.t5", ("bob", "eve")),
        ("channel.general", ("bob", "eve")),
        ("channel.general.t1", ("bob", "eve")),
        ("channel.unknown", ()),
        ("broadcast", ("bob", "eve")),
    ],
)
def test_who_reads_a_thread(thread: str, names: tuple[str, ...]) -> None:
    assert readers(with_people("bob", "eve"), thread) == names


def test_a_message_is_stored_until_somebody_has_it() -> None:
    state = with_people("bob", "eve")
    assert delivery(state, mine("channel.general")) == "✓"
    state.apply(signal("delivered", {"bob": 8}), 0)
    assert delivery(state, mine("channel.general")) == "✓"
    state.apply(signal("delivered", {"bob": 9}), 0)
    assert delivery(state, mine("channel.general")) == "✓✓ bob"
    state.apply(signal("delivered", {"eve": 12}), 0)
    assert delivery(state, mine("channel.general")) == "✓✓ bob, eve"


def test_many_who_have_it_are_counted() -> None:
    names = [f"p{n}" for n in range(6)]
    state = with_people(*names)
    state.apply(signal("delivered", dict.fromkeys(names[:5], 9)), 0)
    assert delivery(state, mine("channel.general")) == "✓✓ 5 of 6"


def test_a_direct_message_waits_for_who_is_away() -> None:
    state = with_people("bob", "eve", away=("bob",))
    assert delivery(state, mine("dm.ann.bob")) == "✓ waits for bob"
    assert delivery(state, mine("dm.ann.eve")) == "✓"
    assert delivery(state, mine("channel.general")) == "✓"


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
