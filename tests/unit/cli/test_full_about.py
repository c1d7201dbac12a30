"""Details in the full-screen client: people, threads, messages, turns, and the lines around."""

from __future__ import annotations

from datetime import UTC, timedelta

from syrupy.assertion import SnapshotAssertion

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

GENERAL = "channel.general"


def activity(state: State, data: object, at: float, thread: str | None = GENERAL) -> None:
    state.apply(signal("activity", data, "bob", thread), at)


def test_what_somebody_does_is_told_with_its_time() -> None:
    state = state_of()
    bob = state.participants["bob"]
    assert doing(state, bob, 0) == "idle"
    calling = {"state": "calling", "tool": "search"}
    for data, where, began, now, words in (
        ({"state": "thinking"}, GENERAL, 10, 11, "thinking"),
        ({"state": "thinking"}, GENERAL, 15, 22, "thinking 12 s"),
        (calling, GENERAL, 22, 22, "calling search"),
        (calling, GENERAL, 22, 322, "calling search 5 min"),
        ({"state": "idle"}, GENERAL, 400, 400, "idle"),
        ({"state": "working"}, None, 401, 401, "working"),  # where nobody may look
        ({"state": "thinking"}, GENERAL, 402, 402, "thinking"),
        ({"state": "idle"}, None, 403, 403, "idle"),
    ):
        activity(state, data, began, where)
        assert doing(state, bob, now) == words
    told = signal("activity", {"state": "thinking"}, "bob", GENERAL)
    state.apply(told.model_copy(update={"age_s": 30.0}), 500)
    assert doing(state, bob, 501) == "thinking 31 s", "as old as the hub says"
    assert person_line(state, "bob", 501).plain == "● bob  thinking 31 s"
    assert person_line(state, "ann", 501).plain == "● ann (you)"
    state.apply(signal("presence", {"offline": ["bob"]}), 502)
    assert person_line(state, "bob", 502).plain == "○ bob"
    assert doing(state, person("eve", "human"), 0) == ""
    assert doing(state, person("eve", "human", present=False), 0) == "away"


def receipt(name: str, **more: object) -> Receipt:
    told = {"participant": name, "kind": "agent", "present": True, "delivered": True}
    told |= {"woken": False, "reason": "x", "explanation": "not mentioned"}
    return Receipt.model_validate({**told, **more})


def test_cards_tell_of_people_threads_and_messages(snapshot: SnapshotAssertion) -> None:
    state = State("ann")
    channel = Channel(name="general", joined=True, description="all", members=("ann", "bob"))
    state.apply(ready(thread(said(3, tseq=3), read=1), channels=(channel,)), 0)
    card = Card(description="knows\x1b all", skills=("facts", "search"))
    state.participants["bob"] = Participant(id="bob", kind="agent", present=True, card=card)
    message = said(4, "look\x07", sender="ann", kind="human", mentions=("bob",))
    bob = {"explanation": "mentioned", "turn": "bob-m4", "state": "ended", "answer": "answered"}
    receipts = Receipts(
        message_id="m4",
        thread_id=GENERAL,
        more=False,
        receipts=(
            receipt("bob", woken=True, step=1, **bob),
            receipt("eve", delivered=False),
            receipt("dan", kind="human", read=True),
            receipt("fay", kind="human", read=False),
        ),
    )
    cards = {
        "bob": participant_card(state, "bob", 0),
        "ann": participant_card(state, "ann", 0),
        "nobody": participant_card(state, "nobody", 0),
        "#general": thread_card(state, GENERAL),
        "a message": message_card(state_of(), message, receipts, UTC),
        "of which nothing is known": message_card(state_of(), message, zone=UTC),
    }
    assert {name: card.plain for name, card in cards.items()} == snapshot


# Turns --------------------------------------------------------------------------------------------


def turn(**more: object) -> Turn:
    start = TurnStart(
        id="bob-m4",
        thread_id="dm.ann.bob",
        messages=("m4",),
        model="small",
        prompt="<conversation/>",
        system_prompt="You add.",
    )
    changed = ChangedCall(by="ann", arguments={"a": 2}, names=("a",))
    calls = (
        ToolCallRecord(id="1", name="add", arguments={"a": 1}, result="3\x1b", duration_ms=2.0),
        ToolCallRecord(id="2", name="nope", arguments="{", error="unknown_tool", result="no such"),
        ToolCallRecord(id="3", name="wait", arguments={}),
        ToolCallRecord(id="4", name="add", arguments={"a": 1}, result="2", changed=changed),
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


def test_a_turn_is_shown_with_all_that_it_did(snapshot: SnapshotAssertion) -> None:
    runs = turn(end=None, ended_at=None, sent=(), attempts=2, steps=())
    silent = turn(end=TurnEnd(id="bob-m4", outcome="no_action", text="hm"), steps=())
    cards = {"over": turn(), "running": runs, "without an answer": silent}
    assert {name: turn_card(card, UTC).plain for name, card in cards.items()} == snapshot
    long = ToolCallRecord(id="1", name="read", arguments={}, result="x" * 5000)
    text = turn_card(turn(steps=(Step(n=1, calls=(long,)),)), UTC).plain
    assert max(map(len, text.split("\n"))) <= MOST + 10, "long results are cut"


def test_a_message_names_the_turn_that_sent_it() -> None:
    found = [
        turn_of(said(9).model_copy(update={"cause_id": cause}))
        for cause in ("bob-m4", None, "m4", "eve-m4", "bob")
    ]
    assert found == ["bob-m4", None, None, None, None]


# The lines above and below ------------------------------------------------------------------------


def test_the_header_says_where_one_is_and_with_whom() -> None:
    def headed(current: str, *members: str, about: str = "") -> str:
        state = State("ann")
        channel = Channel(name="general", joined=True, description=about, members=("ann", *members))
        state.apply(ready(channels=(channel,)), 0)
        state.open(current)
        return header(state).plain

    assert headed("broadcast") == "broadcast"
    assert headed("dm.ann.bob") == "@bob"
    assert headed(GENERAL, "bob", about="all of us") == "#general  all of us  with bob"
    assert headed(f"{GENERAL}.t4", "bob") == "#general › m4  with bob"
    assert headed(GENERAL, *(f"p{n}" for n in range(9))) == "#general  with 9 others"


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
