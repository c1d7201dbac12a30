"""The list of threads in the full-screen client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.full.groups import REPLIES, Heading, Row, groups, neighbour
from hubbub.cli.full.lists import row_line
from hubbub.cli.full.state import Draft, State
from hubbub.protocol.messages import Channel, Message
from tests.unit.cli.chatting import arrive, ready, said, state_of, thread


def shown(state: State) -> list[str]:
    """The list as text, the groups in brackets, the open thread with a star."""
    lines = []
    for row in groups(state):
        if isinstance(row, Heading):
            lines.append(f"[{row.title}]")
        else:
            lines.append(("*" if row.current else " ") + row_line(row).plain)
    return lines


def test_threads_stand_in_groups() -> None:
    state = state_of(
        thread(said(3, thread="dm.ann.bob", tseq=1)),
        thread(said(5, thread="dm.ann.concierge", tseq=1)),
        thread(said(4, thread="mod.tasks", tseq=1)),
    )
    assert shown(state) == [
        "[Network]",
        " broadcast",
        " mod_tasks",
        "[Channels]",
        "*#general",
        "[Direct]",
        " ● @concierge",
        " ● @bob",
    ]


def test_channels_are_sorted_by_name_and_conversations_by_the_last_word() -> None:
    state = State("ann")
    channels = tuple(Channel(name=name, joined=True) for name in ("zoo", "art"))
    state.apply(ready(channels=channels), 0)
    arrive(state, said(1, thread="channel.zoo", tseq=1))
    rows = [row.label for row in groups(state) if isinstance(row, Row)]
    assert rows == ["broadcast", "#art", "#zoo"]


def test_unread_messages_and_mentions_are_counted() -> None:
    state = state_of(current="broadcast")
    arrive(state, said(1, tseq=1), said(2, tseq=2, mentions=("ann",)))
    assert shown(state)[3] == " #general @1 2"


def test_drafts_are_marked_elsewhere_only() -> None:
    state = state_of(current="broadcast")
    state.draft("channel.general", Draft("x"))
    state.draft("broadcast", Draft("y"))
    assert shown(state)[1] == "*broadcast"
    assert shown(state)[3] == " #general ✎"


def test_replies_stand_under_their_parents_with_what_they_are_about() -> None:
    state = state_of(thread(said(7, "shall we?", tseq=1)))
    arrive(state, said(8, thread="channel.general.t7", tseq=1))
    arrive(state, said(9, thread="channel.general.t7.t8", tseq=1))
    assert shown(state)[3:] == ["*#general", "   ↳ m7 shall we? 1", "     ↳ m8 hi 1"]


def test_a_reply_thread_whose_parent_is_not_known_stands_under_its_channel() -> None:
    state = arrive(state_of(), said(9, thread="channel.desk.t5", tseq=1))
    assert shown(state)[3:] == [" #desk", "   ↳ m5 1", "*#general"]


def test_old_reply_threads_are_left_out_unless_something_in_them_is_new_or_open() -> None:
    def replies(read: int) -> State:
        names = [f"channel.general.t{n}" for n in range(1, REPLIES + 4)]
        told = [thread(said(50 + n, thread=name, tseq=1)) for n, name in enumerate(names)]
        told[0] = thread(said(50, thread=names[0], tseq=1), read=read)
        return state_of(*told)

    listed = [row.thread_id for row in groups(replies(1)) if isinstance(row, Row) and row.depth]
    assert len(listed) == REPLIES
    assert "channel.general.t1" not in listed
    assert any("m1 1" in line for line in shown(replies(0)))
    state = replies(1)
    state.open("channel.general.t1")
    assert any("m1" in line and line.startswith("*") for line in shown(state))


def test_the_open_thread_is_listed_though_nobody_has_spoken_in_it() -> None:
    assert shown(state_of(current="dm.ann.bob"))[-1] == "*● @bob"
    assert shown(state_of(current="channel.general.t4"))[-1] == "*  ↳ m4"


def test_groups_of_people_say_nothing_of_presence() -> None:
    state = state_of(thread(said(1, thread="dm.ann.bob.concierge", tseq=1)))
    assert shown(state)[-1] == " @bob,@concierge"


def test_names_of_others_are_made_safe() -> None:
    state = state_of(thread(said(7, "\x1b[31mred", tseq=1)))
    arrive(state, said(8, thread="channel.general.t7", tseq=1))
    assert "<U+001B>" in shown(state)[-1]


ROWS: list[Heading | Row] = [
    Heading("a"),
    Row("t1", "1"),
    Row("t2", "2", unread=1),
    Heading("b"),
    Row("t3", "3"),
]


@pytest.mark.parametrize(
    ("current", "step", "unread", "found"),
    [
        ("t1", 1, False, "t2"),
        ("t3", 1, False, "t1"),
        ("t1", -1, False, "t3"),
        ("t3", 1, True, "t2"),
        ("t3", -1, True, "t2"),
        ("t2", 1, True, None),
        ("elsewhere", 1, False, "t2"),
    ],
)
def test_neighbours_go_round(current: str, step: int, unread: bool, found: str | None) -> None:
    assert neighbour(ROWS, current, step, unread=unread) == found


def test_a_single_thread_has_no_neighbour() -> None:
    assert neighbour([Row("t1", "1")], "t1", 1) is None
    assert neighbour([], "t1", -1) is None


PLACES = ["channel.general", "channel.general.t1", "channel.general.t1.t2", "dm.ann.bob",
          "dm.ann.bob.t9", "broadcast", "broadcast.t3", "mod.tasks", "channel.desk.t4"]  # fmt: skip


@given(st.lists(st.sampled_from(PLACES), unique=True), st.sampled_from(PLACES))
def test_every_thread_with_something_new_is_listed_once(places: list[str], current: str) -> None:
    messages: list[Message] = [said(n, thread=place, tseq=1) for n, place in enumerate(places, 10)]
    state = arrive(state_of(current=current), *messages)
    listed = [row.thread_id for row in groups(state) if isinstance(row, Row)]
    assert len(listed) == len(set(listed))
    assert {*places, current} <= set(listed)
    assert [row.thread_id for row in groups(state) if isinstance(row, Row) and row.current] == [
        current
    ]
