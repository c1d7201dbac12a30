"""The inbox: threads, and wakes collected into turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubbub.agents.inbox import (
    MAX_INCOMING,
    MAX_THREAD_MESSAGES,
    MAX_THREADS,
    Inbox,
    StillOpenWakes,
    TurnPlan,
)
from hubbub.protocol.messages import Message, SenderKind
from tests.unit.agents.builders import ME, event, message, pending, ready


def texts(inbox: Inbox, thread_id: str) -> list[object]:
    thread = inbox.thread(thread_id)
    return [m.content for m in thread.messages] if thread else []


def begun(*messages: Message, concurrency: int = 4, ignore: tuple[str, ...] = ()) -> Inbox:
    inbox = Inbox(ME, concurrency=concurrency, ignore_senders=ignore)
    inbox.begin(ready(max((m.seq for m in messages), default=0), *messages))
    return inbox


def seqs(plan: TurnPlan) -> list[int]:
    return [m.seq for m in plan.incoming]


def busy() -> Inbox:
    """An inbox with a running turn in alice's thread."""
    inbox = begun()
    inbox.receive(event(message(1)))
    inbox.next_turns()
    return inbox


def test_events_extend_threads_in_order_of_activity_and_duplicates_change_nothing() -> None:
    inbox = begun(message(1, "alice"), message(2, "bob"))
    before = {t.id: t for t in inbox.threads}
    assert list(before) == ["dm.bob.bot", "dm.alice.bot"]
    sent = event(message(3, "alice", "more"))
    assert [inbox.receive(sent), inbox.receive(sent)] == ["queued", "duplicate"]
    after = {t.id: t for t in inbox.threads}
    assert list(after) == ["dm.alice.bot", "dm.bob.bot"]
    assert texts(inbox, "dm.alice.bot") == ["hello", "more"]
    assert after["dm.bob.bot"] is before["dm.bob.bot"], "an unchanged thread is the same object"
    assert len(before["dm.alice.bot"].messages) == 1
    assert seqs(inbox.next_turns()[0]) == [3]


def test_only_the_latest_messages_and_threads_are_retained() -> None:
    inbox = begun()
    for seq in range(1, MAX_THREAD_MESSAGES + 6):
        inbox.receive(event(message(seq, content=str(seq)), wakes=False))
    assert texts(inbox, "dm.alice.bot") == [str(n) for n in range(6, MAX_THREAD_MESSAGES + 6)]
    inbox = begun()
    for seq in range(1, MAX_THREADS + 3):
        inbox.note(message(seq, f"p{seq}"))
    assert inbox.thread("dm.bot.p2") is None
    assert inbox.thread("dm.bot.p3") is not None


@pytest.mark.behaviour("A-11")
def test_no_more_turns_run_than_the_concurrency_allows() -> None:
    inbox = begun(concurrency=2)
    for seq, name in enumerate(["ann", "ben", "cat"], 1):
        inbox.receive(event(message(seq, name)))
    assert len(inbox.next_turns()) == 2
    inbox.ended("dm.bot.unknown")
    assert inbox.next_turns() == []
    inbox.ended("dm.ann.bot")
    assert [p.thread_id for p in inbox.next_turns()] == ["dm.bot.cat"]


@pytest.mark.behaviour("W-8")
def test_people_go_before_agents_and_otherwise_the_longest_waiting_goes_first() -> None:
    inbox = begun(concurrency=1)
    inbox.receive(event(message(1, "first", kind="agent")))
    inbox.receive(event(message(2, "second", kind="agent")))
    inbox.receive(event(message(3, "ann", kind="human")))
    order = []
    for _ in range(3):
        (plan,) = inbox.next_turns()
        order.append(plan.incoming[0].sender_id)
        inbox.ended(plan.thread_id)
    assert order == ["ann", "first", "second"]


def test_a_turn_is_named_after_the_lowest_hop_and_owes_a_reply_if_any_message_does() -> None:
    inbox = begun()
    inbox.receive(event(message(1), reply="optional"))
    assert not inbox.next_turns()[0].reply_required
    for seq, hop, reply in ((2, 3, "optional"), (3, 1, "required"), (4, 1, "optional")):
        inbox.receive(event(message(seq, hop=hop), reply=reply))
    inbox.ended("dm.alice.bot")
    (plan,) = inbox.next_turns()
    assert (plan.id, plan.reply_required) == ("bot-m3", True)


@pytest.mark.behaviour("A-14")
def test_ignored_senders_start_no_turn_but_appear_in_the_thread() -> None:
    inbox = begun(ignore=("spam",))
    assert inbox.receive(event(message(1, "spam"))) == "ignored"
    assert inbox.next_turns() == []
    assert texts(inbox, "dm.bot.spam") == ["hello"]
    waiting = (pending(message(1, "spam")), pending(message(2)))
    assert inbox.begin(ready(2, pending=waiting)) == [waiting[0]], "ignored wakes are returned"
    assert [p.id for p in inbox.next_turns()] == ["bot-m2"]


def test_a_claimed_wake_starts_no_turn_until_it_is_requeued() -> None:
    inbox = begun()
    first = event(message(1))
    assert first.wake is not None
    assert inbox.receive(first, claimed=True) == "noted"
    assert inbox.next_turns() == []
    inbox.requeue(first.message, first.wake)
    assert [p.id for p in inbox.next_turns()] == ["bot-m1"]
    for started, starts in ((None, []), ("bot-m1", ["bot-m1"])):
        inbox = Inbox(ME)
        waiting = (pending(message(1), started=started),)
        inbox.begin(ready(1, pending=waiting), lambda message, wake: True)
        assert [p.id for p in inbox.next_turns()] == starts, "a started turn continues"


@pytest.mark.behaviour("H-83")
def test_a_parked_turn_resumes_unchanged_before_newer_messages() -> None:
    inbox = begun()
    inbox.receive(event(message(1)))
    (first,) = inbox.next_turns()
    inbox.ended(first.thread_id)
    inbox.receive(event(message(3), reply="optional"))
    inbox.resume(first)
    (again,) = inbox.next_turns()
    assert again == replace(first, resumed=True, was_parked=True)
    inbox.ended(again.thread_id)
    (next_one,) = inbox.next_turns()
    assert seqs(next_one) == [3]
    assert (next_one.resumed, next_one.was_parked) == (False, False)


def test_a_message_that_steers_a_running_turn_starts_none_of_its_own() -> None:
    inbox = busy()
    inbox.receive(event(message(2, kind="agent")))
    inbox.receive(event(message(3)))
    inbox.receive(event(message(4, "bob")))
    steering = inbox.steering("dm.alice.bot")
    assert [woken.message.seq for woken in steering] == [3]
    assert inbox.steering("dm.alice.bot") == steering, "reading it changes nothing"
    inbox.accept_steering("dm.alice.bot", steering)
    assert inbox.steering("dm.alice.bot") == []
    assert inbox.steering("dm.bob.bot") == [], "no turn runs there"
    assert inbox.steering("dm.bot.unknown") == []
    inbox.accept_steering("dm.bot.unknown", [])
    inbox.ended("dm.alice.bot")
    plans = {plan.thread_id: plan for plan in inbox.next_turns()}
    assert seqs(plans["dm.alice.bot"]) == [2]


def test_a_plan_can_leave_out_the_messages_that_steered_it() -> None:
    both = (pending(message(1), "bot-m1"), pending(message(2), "bot-m1"))
    inbox = Inbox(ME)
    inbox.begin(ready(2, pending=both))
    (plan,) = inbox.next_turns()
    assert seqs(plan.without({"m2"})) == [1]
    assert plan.without({"m2"}).reasons == ("direct",)
    assert plan.without({"m1", "m2"}) == plan, "a turn has at least one message"


@pytest.mark.behaviour("W-8")
def test_at_most_twenty_messages_are_shown_preferring_people_and_the_newest() -> None:
    cases: list[tuple[list[SenderKind], list[int]]] = [
        (["agent"] * MAX_INCOMING, [*range(2, MAX_INCOMING + 2)]),
        (["agent"] * 25, [*range(7, 27)]),
        (["human", *["agent"] * 30], [2, *range(14, 33)]),  # type: ignore[list-item]
    ]
    for kinds, shown in cases:
        inbox = busy()
        for seq, kind in enumerate(kinds, 2):
            inbox.receive(event(message(seq, kind, kind=kind, thread="channel.desk")))
        (plan,) = inbox.next_turns()
        assert plan.omitted == max(0, len(kinds) - MAX_INCOMING)
        assert len(plan.incoming) == len(kinds)
        assert [m.seq for m in plan.shown] == shown


@pytest.mark.behaviour("W-7", "T-2")
def test_a_started_turn_is_restored_exactly_and_the_rest_forms_one_turn() -> None:
    inbox = Inbox(ME)
    waiting = (
        pending(message(1, hop=2), started="bot-m1"), pending(message(2, hop=0), started="bot-m1"),
        pending(message(3)), pending(message(4)),
    )  # fmt: skip
    inbox.begin(ready(5, pending=waiting))
    (plan,) = inbox.next_turns()
    assert (plan.id, plan.resumed, seqs(plan)) == ("bot-m1", True, [1, 2])
    inbox.receive(event(message(6)))
    inbox.ended(plan.thread_id)
    (rest,) = inbox.next_turns()
    assert (rest.id, rest.resumed, seqs(rest)) == ("bot-m3", False, [3, 4, 6])


def test_dropped_turns_neither_begin_nor_resume() -> None:
    inbox = begun()
    inbox.receive(event(message(1)))
    inbox.receive(event(message(2, "bob")))
    inbox.drop({"bot-m1"})
    assert [p.id for p in inbox.next_turns()] == ["bot-m2"]
    assert inbox.waiting("dm.alice.bot") == 0
    inbox = Inbox(ME)
    inbox.begin(ready(2, pending=(pending(message(1), "bot-m1"), pending(message(2)))))
    inbox.drop({"bot-m1"})
    (plan,) = inbox.next_turns()
    assert (seqs(plan), plan.resumed) == ([2], False)


def test_after_a_reconnect_only_pending_and_newer_wakes_are_retained() -> None:
    inbox = begun()
    for seq, sender in ((1, "alice"), (2, "bob"), (3, "carol")):
        inbox.receive(event(message(seq, sender)))
    inbox.retain(StillOpenWakes({"m1"}, 2))
    assert [p.id for p in inbox.next_turns()] == ["bot-m1", "bot-m3"]
    inbox = Inbox(ME)
    both = (pending(message(1), "bot-m1"), pending(message(2), "bot-m1"))
    inbox.begin(ready(2, pending=both))
    inbox.retain(StillOpenWakes({"m2"}, 2))
    assert [p.id for p in inbox.next_turns()] == ["bot-m1"], "one of its messages is still pending"
