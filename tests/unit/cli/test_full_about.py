"""Details in the full-screen client: people, threads, messages, turns, and the lines around."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest

from hubbub.cli.full.about import doing, message_card, participant_card, thread_card
from hubbub.cli.full.lists import person_line
from hubbub.cli.full.outbox import Sending
from hubbub.cli.full.state import State
from hubbub.cli.full.status import header, status
from hubbub.cli.full.turn import MOST, turn_card, turn_of
from hubbub.client import Disconnected
from hubbub.protocol.messages import Card, Channel, Participant
from hubbub.protocol.operations import Receipt, Receipts
from hubbub.protocol.turns import ChangedCall, Step, ToolCallRecord, Turn, TurnEnd, TurnStart
from tests.unit.cli.chatting import NOON, arrive, person, ready, said, signal, state_of, thread


def activity(state: State, data: object, at: float, thread: str | None = "channel.general") -> None:
    state.apply(signal("activity", data, "bob", thread), at)


def facts(text: str) -> dict[str, str]:
    """The lines of a card that have a name and a value."""
    pairs = (line.split("  ", 1) for line in text.split("\n") if "  " in line.strip())
    return {name.strip(): value.strip() for name, value in pairs}


# What somebody does -------------------------------------------------------------------------------


def test_what_an_agent_does_is_told_with_its_time() -> None:
    state = state_of()
    bob = state.participants["bob"]
    assert doing(state, bob, 0) == "idle"
    activity(state, {"state": "thinking"}, 10)
    assert doing(state, bob, 11) == "thinking"
    activity(state, {"state": "thinking"}, 15)
    assert doing(state, bob, 22) == "thinking 12 s"
    activity(state, {"state": "calling", "tool": "search"}, 22)
    assert doing(state, bob, 22) == "calling search"
    assert doing(state, bob, 22 + 300) == "calling search 5 min"
    activity(state, {"state": "idle"}, 400)
    assert doing(state, bob, 400) == "idle"


def test_what_the_hub_tells_again_is_as_old_as_it_says() -> None:
    state = state_of()
    told = signal("activity", {"state": "thinking"}, "bob", "channel.general")
    state.apply(told.model_copy(update={"age_s": 30.0}), 100)
    assert doing(state, state.participants["bob"], 101) == "thinking 31 s"


def test_an_agent_that_works_where_nobody_may_look_works() -> None:
    state = state_of()
    activity(state, {"state": "working"}, 0, thread=None)
    assert doing(state, state.participants["bob"], 0) == "working"
    activity(state, {"state": "thinking"}, 1)
    assert doing(state, state.participants["bob"], 1) == "thinking"
    activity(state, {"state": "idle"}, 2, thread=None)
    assert doing(state, state.participants["bob"], 2) == "idle"


def test_people_who_are_just_here_do_nothing() -> None:
    state = state_of()
    assert doing(state, person("eve", "human"), 0) == ""
    assert doing(state, person("eve", "human", present=False), 0) == "away"


def test_a_line_in_the_list_of_people() -> None:
    state = state_of()
    activity(state, "thinking", 0)
    assert person_line(state, "bob", 5).plain == "● bob  thinking 5 s"
    assert person_line(state, "ann", 5).plain == "● ann (you)"
    state.apply(signal("presence", {"offline": ["bob"]}), 6)
    assert person_line(state, "bob", 6).plain == "○ bob"


# Cards --------------------------------------------------------------------------------------------


def test_a_participants_card() -> None:
    state = state_of()
    card = Card(description="knows\x1b all", skills=("facts", "search"))
    state.participants["bob"] = Participant(id="bob", kind="agent", present=True, card=card)
    text = participant_card(state, "bob", 0).plain
    assert facts(text) == {
        "kind": "agent",
        "here": "yes",
        "doing": "idle",
        "skills": "facts, search",
    }
    assert text.endswith("knows<U+001B> all")
    assert "human (you)" in participant_card(state, "ann", 0).plain
    assert facts(participant_card(state, "nobody", 0).plain) == {"known": "no"}


def test_a_threads_card() -> None:
    state = State("ann")
    channel = Channel(name="general", joined=True, description="all", members=("ann", "bob"))
    state.apply(ready(thread(said(3, tseq=3), read=1), channels=(channel,)), 0)
    assert facts(thread_card(state, "channel.general").plain) == {
        "id": "channel.general",
        "messages": "3",
        "unread": "2",
        "about": "all",
        "with": "bob",
    }


def receipt(name: str, **more: object) -> Receipt:
    told = {"participant": name, "kind": "agent", "present": True, "delivered": True}
    told |= {"woken": False, "reason": "x", "explanation": "not mentioned"}
    return Receipt.model_validate({**told, **more})


def test_a_messages_card_says_what_has_become_of_it() -> None:
    message = said(4, "look\x07", sender="ann", kind="human", mentions=("bob",))
    receipts = Receipts(
        message_id="m4",
        thread_id="channel.general",
        more=False,
        receipts=(
            receipt(
                "bob",
                woken=True,
                explanation="mentioned",
                turn="bob-m4",
                state="ended",
                step=1,
                answer="answered",
            ),
            receipt("eve", delivered=False),
            receipt("dan", kind="human", read=True),
            receipt("fay", kind="human", read=False),
        ),
    )
    text = message_card(state_of(), message, receipts, UTC).plain
    assert facts(text) == {
        "from": "ann (human)",
        "in": "#general, no. 4",
        "sent": "2026-03-04 12:04:00",
        "state": "✓",
        "mentions": "bob",
        "set off by": "i4",
        "hop": "0",
        "bob": "delivered; woken (x): mentioned; turn bob-m4 ended; in its prompt at step 1; "
        "it answered",
        "eve": "not there yet; not woken (x): not mentioned",
        "dan": "read",
        "fay": "delivered",
    }
    assert "look<U+0007>" in text
    assert "readers" not in message_card(state_of(), message).plain


# Turns --------------------------------------------------------------------------------------------


def test_a_message_names_the_turn_that_sent_it() -> None:
    def caused(cause: str | None) -> str | None:
        return turn_of(said(9).model_copy(update={"cause_id": cause}))

    assert caused("bob-m4") == "bob-m4"
    assert [caused(other) for other in (None, "m4", "eve-m4", "bob")] == [None] * 4


def turn(**more: object) -> Turn:
    start = TurnStart(
        id="bob-m4",
        thread_id="dm.ann.bob",
        messages=("m4",),
        model="small",
        prompt="<conversation/>",
        system_prompt="You add.",
    )
    calls = (
        ToolCallRecord(id="1", name="add", arguments={"a": 1}, result="3\x1b", duration_ms=2.0),
        ToolCallRecord(id="2", name="nope", arguments="{", error="unknown_tool", result="no such"),
        ToolCallRecord(id="3", name="wait", arguments={}),
    )
    steps = (
        Step(n=1, text="let me", calls=calls, tokens_in=10, tokens_out=2, duration_ms=100.0),
        Step(n=2, tokens_in=12, tokens_out=1, duration_ms=50.0, cost_usd=0.01),
    )
    told = {"start": start, "agent": "bob", "started_at": NOON, "steps": steps}
    ended = {
        "end": TurnEnd(id="bob-m4", outcome="finished", reason="done"),
        "ended_at": NOON + timedelta(seconds=1.5),
        "sent": ("m5",),
    }
    return Turn.model_validate({**told, **ended, **more})


def test_a_turn_is_shown_with_all_that_it_did() -> None:
    text = turn_card(turn(), UTC).plain
    found = facts(text)
    assert {name: found[name] for name in ("agent", "model", "took", "outcome", "reason")} == {
        "agent": "bob",
        "model": "small",
        "took": "1.5 s",
        "outcome": "finished",
        "reason": "done",
    }
    assert found["tokens"] == "22 in, 3 out"
    assert found["cost"] == "0.0100 USD"
    assert found["sent"] == "m5"
    assert "attempts" not in found
    assert f"step 1  {'█' * 16} 100 ms  10+2 tokens\nlet me" in text
    assert f"step 2  {'█' * 8} 50 ms" in text
    assert 'add {"a": 1} 2 ms\n  → 3<U+001B>' in text
    assert "✗ unknown_tool: no such" in text
    assert "wait {}\n  → has not run" in text
    assert text.endswith("prompt\n<conversation/>\n\nsystem prompt\nYou add.")


def test_a_turn_shows_what_a_person_has_changed_of_a_call() -> None:
    changed = ChangedCall(by="ann", arguments={"a": 2}, names=("a",))
    call = ToolCallRecord(id="c", name="add", arguments={"a": 1}, result="2", changed=changed)
    text = turn_card(turn(steps=(Step(n=1, calls=(call,)),)), UTC).plain
    assert 'add {"a": 1}\n  approved by ann with changes: a: 1 -> 2\n  → 2' in text


def test_a_turn_that_runs_has_no_outcome_yet() -> None:
    found = facts(turn_card(turn(end=None, ended_at=None, sent=(), attempts=2), UTC).plain)
    assert (found["took"], found["outcome"], found["sent"]) == ("runs", "runs", "nothing")
    assert found["attempts"] == "2"


def test_text_that_was_not_published_is_told() -> None:
    end = TurnEnd(id="bob-m4", outcome="no_action", text="hm")
    assert "not published\nhm" in turn_card(turn(end=end), UTC).plain


def test_long_results_are_cut() -> None:
    call = ToolCallRecord(id="1", name="read", arguments={}, result="x" * 5000)
    text = turn_card(turn(steps=(Step(n=1, calls=(call,)),)), UTC).plain
    assert max(map(len, text.split("\n"))) <= MOST + 10


# The lines above and below ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "says"),
    [
        ("broadcast", "broadcast"),
        ("dm.ann.bob", "@bob"),
        ("channel.general", "#general  all of us  with bob"),
        ("channel.general.t4", "#general › m4  all of us  with bob"),
    ],
)
def test_the_header_says_where_one_is(current: str, says: str) -> None:
    state = State("ann")
    channel = Channel(name="general", joined=True, description="all of us", members=("ann", "bob"))
    state.apply(ready(channels=(channel,)), 0)
    state.open(current)
    assert header(state).plain == says


def test_the_header_counts_many_readers() -> None:
    state = State("ann")
    members = tuple(f"p{n}" for n in range(9))
    channel = Channel(name="general", joined=True, members=("ann", *members))
    state.apply(ready(channels=(channel,)), 0)
    state.open("channel.general")
    assert header(state).plain == "#general  with 9 others"


def test_the_status_line_says_what_matters_now() -> None:
    state = state_of()
    state.network = "town"
    assert status(state, 0).plain == "town as ann  F1 help  F4 stop  Ctrl-K go to"
    arrive(state, said(1, thread="dm.ann.bob", tseq=1, mentions=("ann",)))
    state.outbox.add(Sending("c", "broadcast", "x"))
    activity(state, "thinking", 0)
    activity(state, "reading", 0, thread="broadcast")
    assert "  1 to send  1 unread, 1 mention of you  bob is " in status(state, 0).plain
    state.apply(Disconnected(1006, "refused", 9.0), 0)
    assert "  not connected (refused), trying again in 9 s  1 to send" in status(state, 0).plain
