"""The inbox: threads, and wakes collected into turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubbub.agents.inbox import KEPT_MESSAGES, KEPT_THREADS, MOST_INCOMING, Inbox, StillOpen
from hubbub.protocol.messages import Message, SenderKind
from tests.unit.agents.builders import ME, event, message, pending, ready


def texts(inbox: Inbox, thread: str) -> list[object]:
    found = inbox.thread(thread)
    return [m.content for m in found.messages] if found else []


def begun(*messages: Message, concurrency: int = 4, ignore: tuple[str, ...] = ()) -> Inbox:
    inbox = Inbox(ME, concurrency=concurrency, ignore_senders=ignore)
    inbox.begin(ready(max((m.seq for m in messages), default=0), *messages))
    return inbox


class TestThreads:
    def test_an_event_is_added_to_its_thread(self) -> None:
        inbox = begun(message(1, content="one"))
        inbox.receive(event(message(2, content="two")))
        assert texts(inbox, "dm.alice.bot") == ["one", "two"]

    def test_the_most_recently_active_thread_comes_first(self) -> None:
        inbox = begun(message(1, "alice"), message(2, "bob"))
        assert [t.id for t in inbox.threads] == ["dm.bob.bot", "dm.alice.bot"]
        inbox.receive(event(message(3, "alice")))
        assert [t.id for t in inbox.threads] == ["dm.alice.bot", "dm.bob.bot"]

    def test_a_repeated_event_changes_nothing(self) -> None:
        inbox = begun()
        first = event(message(1))
        assert inbox.receive(first) == "queued"
        assert inbox.receive(first) == "known"
        assert texts(inbox, "dm.alice.bot") == ["hello"]
        assert len(inbox.next_turns()[0].incoming) == 1

    def test_only_the_last_messages_of_a_thread_are_kept(self) -> None:
        inbox = begun()
        for seq in range(1, KEPT_MESSAGES + 6):
            inbox.receive(event(message(seq, content=str(seq)), wakes=False))
        assert texts(inbox, "dm.alice.bot")[0] == "6"
        assert len(texts(inbox, "dm.alice.bot")) == KEPT_MESSAGES

    def test_the_agents_own_message_takes_its_place_even_when_it_is_told_late(self) -> None:
        inbox = begun(message(1, content="ask"))
        inbox.receive(event(message(3, content="later"), wakes=False))
        inbox.receive(event(message(4, "bob"), wakes=False))
        inbox.note(message(2, ME, "mine", thread="dm.alice.bot", kind="agent"))
        assert texts(inbox, "dm.alice.bot") == ["ask", "mine", "later"]
        assert [t.id for t in inbox.threads] == ["dm.bob.bot", "dm.alice.bot"]

    def test_an_own_message_that_the_hub_repeats_is_not_doubled(self) -> None:
        inbox = begun()
        mine = message(2, ME, "mine", thread="dm.alice.bot", kind="agent")
        inbox.note(mine)
        assert inbox.receive(event(mine, wakes=False)) == "noted"
        assert texts(inbox, "dm.alice.bot") == ["mine"]

    def test_the_least_recently_active_threads_are_forgotten_beyond_the_limit(self) -> None:
        inbox = begun()
        for seq in range(1, KEPT_THREADS + 3):
            inbox.note(message(seq, f"p{seq}"))
        assert inbox.thread("dm.bot.p1") is None
        assert inbox.thread("dm.bot.p2") is None
        assert inbox.thread("dm.bot.p3") is not None

    def test_a_changed_thread_is_another_object_and_an_unchanged_one_the_same(self) -> None:
        inbox = begun(message(1, "alice"), message(2, "bob"))
        before = {t.id: t for t in inbox.threads}
        inbox.receive(event(message(3, "alice")))
        after = {t.id: t for t in inbox.threads}
        assert after["dm.bob.bot"] is before["dm.bob.bot"]
        assert len(before["dm.alice.bot"].messages) == 1


class TestTurns:
    def test_a_wake_of_an_idle_agent_starts_at_once(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        (plan,) = inbox.next_turns()
        assert (plan.id, plan.thread_id) == ("bot-m1", "dm.alice.bot")
        assert plan.reply_required
        assert not plan.resumed

    def test_a_message_without_a_wake_starts_nothing(self) -> None:
        inbox = begun()
        assert inbox.receive(event(message(1), wakes=False)) == "noted"
        assert inbox.next_turns() == []

    @pytest.mark.behaviour("W-8")
    def test_what_arrives_during_a_turn_becomes_one_next_turn(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.next_turns()
        for seq in (2, 3, 4):
            inbox.receive(event(message(seq)))
        assert inbox.next_turns() == []
        assert inbox.waiting("dm.alice.bot") == 3
        inbox.ended("dm.alice.bot")
        (plan,) = inbox.next_turns()
        assert [m.seq for m in plan.incoming] == [2, 3, 4]
        assert inbox.waiting("dm.alice.bot") == 0

    @pytest.mark.behaviour("W-8")
    def test_wakes_of_different_threads_are_never_collected(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1, "alice")))
        inbox.receive(event(message(2, "bob")))
        assert [p.thread_id for p in inbox.next_turns()] == ["dm.alice.bot", "dm.bob.bot"]

    @pytest.mark.behaviour("A-11")
    def test_no_more_turns_run_than_the_concurrency_allows(self) -> None:
        inbox = begun(concurrency=2)
        for seq, name in enumerate(["ann", "ben", "cat"], 1):
            inbox.receive(event(message(seq, name)))
        assert len(inbox.next_turns()) == 2
        assert inbox.next_turns() == []
        inbox.ended("dm.ann.bot")
        assert [p.thread_id for p in inbox.next_turns()] == ["dm.bot.cat"]

    @pytest.mark.behaviour("W-8")
    def test_a_person_goes_before_agents_and_otherwise_the_longest_waiting(self) -> None:
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

    def test_the_turn_is_named_by_the_lowest_hop_then_the_oldest(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.next_turns()
        for seq, hop in ((2, 3), (3, 1), (4, 1)):
            inbox.receive(event(message(seq, hop=hop)))
        inbox.ended("dm.alice.bot")
        assert inbox.next_turns()[0].id == "bot-m3"

    def test_one_required_reply_makes_the_turn_owe_one(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1), reply="optional"))
        assert not inbox.next_turns()[0].reply_required
        inbox.receive(event(message(2), reply="optional"))
        inbox.receive(event(message(3), reply="required"))
        inbox.ended("dm.alice.bot")
        assert inbox.next_turns()[0].reply_required

    @pytest.mark.behaviour("A-14")
    def test_ignored_senders_start_no_turn_but_stand_in_the_thread(self) -> None:
        inbox = begun(ignore=("spam",))
        assert inbox.receive(event(message(1, "spam"))) == "ignored"
        assert inbox.next_turns() == []
        assert texts(inbox, "dm.bot.spam") == ["hello"]

    def test_a_claimed_wake_starts_nothing_until_it_is_put_back(self) -> None:
        inbox = begun()
        first = event(message(1))
        assert first.wake is not None
        assert inbox.receive(first, claimed=True) == "noted"
        assert inbox.next_turns() == []
        inbox.put_back(first.message, first.wake)
        assert [p.id for p in inbox.next_turns()] == ["bot-m1"]

    def test_what_people_say_during_a_turn_may_steer_it_and_then_starts_none(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.next_turns()
        inbox.receive(event(message(2, kind="agent")))
        inbox.receive(event(message(3)))
        inbox.receive(event(message(4, "bob")))
        said = inbox.steering("dm.alice.bot")
        assert [woken.message.seq for woken in said] == [3]
        assert inbox.steering("dm.alice.bot") == said, "only looked at"
        inbox.steered("dm.alice.bot", said)
        assert inbox.steering("dm.alice.bot") == []
        inbox.ended("dm.alice.bot")
        plans = {plan.thread_id: plan for plan in inbox.next_turns()}
        assert [m.seq for m in plans["dm.alice.bot"].incoming] == [2]

    def test_only_what_enters_steers_however_much_waits(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.next_turns()
        for seq in range(2, 2 + MOST_INCOMING + 1):
            inbox.receive(event(message(seq)))
        (last,) = inbox.steering("dm.alice.bot", lambda m: m.seq == 2 + MOST_INCOMING)
        assert last.message.seq == 2 + MOST_INCOMING

    def test_a_held_thread_waits_and_others_do_not(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.receive(event(message(2, "bob")))
        held = {"dm.alice.bot"}
        assert [p.thread_id for p in inbox.next_turns(held)] == ["dm.bob.bot"]
        assert [p.thread_id for p in inbox.next_turns()] == ["dm.alice.bot"]

    def test_nothing_steers_where_no_turn_runs(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        assert inbox.steering("dm.alice.bot") == []
        assert inbox.steering("dm.bot.nobody") == []
        inbox.steered("dm.bot.nobody", [])

    def test_what_had_steered_a_turn_before_is_not_what_began_it(self) -> None:
        both = (pending(message(1), "bot-m1"), pending(message(2), "bot-m1"))
        inbox = Inbox(ME)
        inbox.begin(ready(2, pending=both))
        (plan,) = inbox.next_turns()
        assert [m.seq for m in plan.without({"m2"}).incoming] == [1]
        assert plan.without({"m2"}).reasons == ("direct",)
        assert plan.without({"m1", "m2"}) == plan, "a turn is about something"

    @pytest.mark.behaviour("H-83")
    def test_a_turn_that_has_waited_goes_on_as_it_was_before_what_came_since(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        (first,) = inbox.next_turns()
        inbox.ended(first.thread_id)
        inbox.receive(event(message(3), reply="optional"))
        inbox.again(first)
        (again,) = inbox.next_turns()
        assert again == replace(first, resumed=True, waited=True)
        inbox.ended(again.thread_id)
        (next_one,) = inbox.next_turns()
        assert [m.seq for m in next_one.incoming] == [3]
        assert (next_one.resumed, next_one.waited) == (False, False)

    def test_an_unknown_thread_cannot_end_a_turn(self) -> None:
        inbox = begun(concurrency=1)
        inbox.receive(event(message(1)))
        inbox.next_turns()
        inbox.ended("dm.bot.nobody")
        inbox.receive(event(message(2, "bob")))
        assert inbox.next_turns() == []


class TestManyIncoming:
    def plan_of(self, kinds: list[str]) -> list[int]:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.next_turns()
        for seq, kind in enumerate(kinds, 2):
            sender_kind: SenderKind = "human" if kind == "human" else "agent"
            inbox.receive(event(message(seq, kind=sender_kind, thread="channel.desk", sender=kind)))
        (plan,) = inbox.next_turns()
        assert plan.omitted == max(0, len(kinds) - MOST_INCOMING)
        assert len(plan.incoming) == len(kinds)
        return [m.seq for m in plan.shown]

    @pytest.mark.behaviour("W-8")
    def test_up_to_twenty_are_shown_as_they_came(self) -> None:
        assert self.plan_of(["agent"] * MOST_INCOMING) == list(range(2, MOST_INCOMING + 2))

    def test_beyond_twenty_the_newest_are_shown(self) -> None:
        assert self.plan_of(["agent"] * 25) == list(range(7, 27))

    def test_a_persons_message_is_shown_however_old_it_is(self) -> None:
        shown = self.plan_of(["human"] + ["agent"] * 30)
        assert shown[0] == 2
        assert shown[1:] == list(range(14, 33))


class TestReturning:
    @pytest.mark.behaviour("W-7")
    def test_pending_wakes_of_a_thread_become_one_turn(self) -> None:
        inbox = Inbox(ME)
        waiting = tuple(pending(message(seq)) for seq in (1, 2, 3))
        inbox.begin(ready(5, pending=waiting))
        (plan,) = inbox.next_turns()
        assert [m.seq for m in plan.incoming] == [1, 2, 3]
        assert not plan.resumed

    @pytest.mark.behaviour("T-2")
    def test_a_turn_that_had_begun_is_formed_again_exactly(self) -> None:
        inbox = Inbox(ME)
        waiting = (
            pending(message(1, hop=2), started="bot-m1"),
            pending(message(2, hop=0), started="bot-m1"),
            pending(message(3)),
        )
        inbox.begin(ready(5, pending=waiting))
        (plan,) = inbox.next_turns()
        assert (plan.id, plan.resumed) == ("bot-m1", True)
        assert [m.seq for m in plan.incoming] == [1, 2]
        inbox.ended(plan.thread_id)
        (rest,) = inbox.next_turns()
        assert (rest.id, rest.resumed) == ("bot-m3", False)

    def test_what_comes_after_the_return_joins_what_had_accumulated(self) -> None:
        inbox = Inbox(ME)
        inbox.begin(ready(2, pending=(pending(message(1)),)))
        inbox.receive(event(message(3)))
        assert [m.seq for m in inbox.next_turns()[0].incoming] == [1, 3]

    def test_a_resumed_connection_does_not_offer_known_wakes_twice(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.next_turns()
        again = (pending(message(1), started="bot-m1"), pending(message(2)))
        inbox.begin(ready(2, pending=again, resumed=True))
        inbox.ended("dm.alice.bot")
        assert [p.id for p in inbox.next_turns()] == ["bot-m2"]

    def test_a_fresh_start_forgets_threads_and_turns(self) -> None:
        inbox = begun(message(1, "alice"), concurrency=1)
        inbox.receive(event(message(2, "alice")))
        inbox.next_turns()
        inbox.receive(event(message(3, "bob")))
        inbox.begin(ready(0))
        assert list(inbox.threads) == []
        assert inbox.next_turns() == []
        inbox.receive(event(message(1, "carol")))
        assert [p.id for p in inbox.next_turns()] == ["bot-m1"]

    def test_pending_wakes_of_ignored_senders_are_handed_back(self) -> None:
        inbox = Inbox(ME, ignore_senders=["spam"])
        waiting = (pending(message(1, "spam")), pending(message(2)))
        assert inbox.begin(ready(2, pending=waiting)) == [waiting[0]]
        assert [p.id for p in inbox.next_turns()] == ["bot-m2"]

    @pytest.mark.parametrize(("started", "starts"), [(None, []), ("bot-m1", ["bot-m1"])])
    def test_only_wakes_whose_turn_had_not_begun_can_be_claimed(
        self, started: str | None, starts: list[str]
    ) -> None:
        inbox = Inbox(ME)
        waiting = (pending(message(1), started=started),)
        inbox.begin(ready(1, pending=waiting), lambda message, wake: True)
        assert [p.id for p in inbox.next_turns()] == starts


class TestTurnsThatTheHubHasEnded:
    def test_what_waited_for_them_never_begins(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.receive(event(message(2, "bob")))
        inbox.drop({"bot-m1"})
        assert [p.id for p in inbox.next_turns()] == ["bot-m2"]
        assert inbox.waiting("dm.alice.bot") == 0

    def test_one_that_had_begun_before_is_not_taken_up(self) -> None:
        inbox = Inbox(ME)
        both = (pending(message(1), "bot-m1"), pending(message(2)))
        inbox.begin(ready(2, pending=both))
        inbox.drop({"bot-m1"})
        (plan,) = inbox.next_turns()
        assert ([m.seq for m in plan.incoming], plan.resumed) == ([2], False)

    def test_the_thread_of_one_that_runs_stays_taken(self) -> None:
        inbox = begun()
        inbox.receive(event(message(1)))
        inbox.next_turns()
        inbox.receive(event(message(2)))
        inbox.drop({"bot-m1", "bot-m2"})
        inbox.receive(event(message(3)))
        assert inbox.next_turns() == []
        inbox.ended("dm.alice.bot")
        assert [p.id for p in inbox.next_turns()] == ["bot-m3"]

    def test_after_a_return_only_what_is_pending_is_kept_and_what_is_newer(self) -> None:
        inbox = begun()
        for seq, sender in ((1, "alice"), (2, "bob"), (3, "carol")):
            inbox.receive(event(message(seq, sender)))
        inbox.keep(StillOpen({"m2"}, 2))
        assert [p.id for p in inbox.next_turns()] == ["bot-m2", "bot-m3"]

    def test_after_a_return_a_turn_goes_on_if_any_of_its_messages_is_pending(self) -> None:
        inbox = Inbox(ME)
        both = (pending(message(1), "bot-m1"), pending(message(2), "bot-m1"))
        inbox.begin(ready(2, pending=both))
        inbox.keep(StillOpen({"m2"}, 2))
        assert [p.id for p in inbox.next_turns()] == ["bot-m1"]
