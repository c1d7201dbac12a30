"""What a client in charge knows from signals, and what it tells of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import BaseModel

from hubbub.cli.chat.session import Session
from hubbub.protocol.control import Approval, BreakerState, Overheard, Stopped, Takeover
from hubbub.protocol.messages import RequestMark
from tests.unit.cli.chatting import (
    NOON,
    approval,
    begun,
    event,
    latched,
    ready,
    said,
    shown,
    signal,
    stopped,
    takeover,
)


def dumped(values: Sequence[BaseModel]) -> list[object]:
    return [value.model_dump(mode="json") for value in values]


def asks(session: Session, told: Approval) -> list[str]:
    data = told.model_dump(mode="json", by_alias=True)
    return shown(session.told(signal("approval", data)))


def stops(
    session: Session, found: Sequence[Stopped], broken: Sequence[BreakerState] = ()
) -> list[str]:
    data = {"stops": dumped(found), "latched": dumped(broken)}
    return shown(session.told(signal("stops", data)))


def held(session: Session, *takeovers: Takeover) -> list[str]:
    return shown(session.told(signal("takeovers", {"takeovers": dumped(takeovers)})))


@pytest.mark.behaviour("H-128")
def test_an_approval_is_told_once_with_what_to_type_and_then_how_it_was_decided() -> None:
    session = begun()
    lines = asks(session, approval(reason="it is gone then", description="Deletes\nit"))
    assert lines[:4] == [
        "bob asks to run delete_file in #general",
        "   Deletes it",
        "   because: it is gone then",
        '   path: "a.txt"',
    ]
    assert lines[4].startswith("   /approve a1 or /deny a1 <reason>; no word by ")
    assert asks(session, approval()) == []
    assert session.charge.status() == [("unread", "1 to approve")]
    done = approval(state="denied", decided_by="eve", verdict="no\x07")
    assert asks(session, done) == ["delete_file of bob (a1) is denied by eve: no<U+0007>"]
    assert session.charge.status() == []
    assert asks(session, done) == []


def test_who_may_not_decide_is_told_who_does() -> None:
    lines = asks(begun(), approval(may_decide=False, approvers=("eve",)))
    assert lines[-1] == "   a1: eve decides"
    assert not any("/approve" in line for line in lines)


def test_an_approval_that_runs_was_approved_perhaps_with_other_arguments() -> None:
    session = begun()
    asks(session, approval())
    done = approval(state="started", decided_by="ann", final={"path": "b.txt"})
    assert asks(session, done) == [
        "delete_file of bob (a1) is approved by ann with other arguments"
    ]


@pytest.mark.behaviour("H-129")
def test_stops_latches_and_what_goes_on_again_are_told_once() -> None:
    session = begun()
    found = [stopped("agent", "bob"), stopped("thread", "channel.general"), stopped("all")]
    assert stops(session, found, [latched("channel.desk")]) == [
        "eve has stopped bob: too loud; /resume agent bob lets it go on",
        "eve has stopped #general: too loud; /resume thread #general lets it go on",
        "eve has stopped everything: too loud; /resume all lets it go on",
        "#desk is latched: 61 turns began in 60 s; /breaker release #desk lets it go on",
    ]
    assert stops(session, found, [latched("channel.desk")]) == []
    assert ("lost", "everything is stopped, 1 latched") in session.charge.status()
    assert stops(session, found[:1]) == [
        "#general may go on",
        "everything may go on",
        "#desk is released",
    ]
    assert session.charge.status() == [("lost", "1 stopped")]


def test_what_this_person_has_stopped_is_no_news_here() -> None:
    session = begun()
    assert stops(session, [stopped("agent", "bob", by="ann")]) == []
    assert session.charge.status() == [("lost", "1 stopped")]
    assert held(session, takeover("bob", "ann")) == []


def test_after_a_reconnection_only_what_is_new_is_told() -> None:
    session = begun()
    stops(session, [stopped("agent", "bob")])
    held(session, takeover("bob", "eve"))
    asks(session, approval())
    session.begin(ready(resumed=True))
    assert session.charge.status() == []
    assert asks(session, approval()) == []
    assert held(session, takeover("bob", "eve")) == []
    assert stops(session, [stopped("agent", "bob"), stopped("agent", "concierge")]) == [
        "eve has stopped concierge: too loud; /resume agent concierge lets it go on"
    ]
    assert ("unread", "1 to approve") in session.charge.status()


def test_who_speaks_for_whom_is_told_and_when_that_is_over() -> None:
    session = begun()
    assert held(session, takeover("bob", "eve"))[0].startswith("eve speaks for bob until ")
    assert session.charge.status() == [("unread", "eve speaks for bob")]
    assert held(session) == ["bob speaks for itself again"]


@pytest.mark.behaviour("H-130")
def test_what_reaches_an_agent_that_one_speaks_for_is_shown_once() -> None:
    session = begun()
    held(session, takeover("bob", "ann"))
    heard = Overheard(agent="bob", message=said(9, "psst", sender="eve", thread="dm.bob.eve"))
    lines = shown(session.told(signal("overheard", heard.model_dump(mode="json"))))
    assert lines == [
        "12:09 m9 [bob hears @bob,@eve] eve: psst",
        "to answer there: /open dm.bob.eve, then /as bob <text>",
    ]
    assert session.told(signal("overheard", heard.model_dump(mode="json"))) == []
    session.open("dm.bob.eve")
    more = Overheard(agent="bob", message=said(10, "well?", sender="eve", thread="dm.bob.eve"))
    lines = shown(session.told(signal("overheard", more.model_dump(mode="json"))))
    assert lines == ["12:10 m10 eve: well?"]


def test_what_one_hears_anyway_is_not_told_as_overheard() -> None:
    session = begun()
    for thread in ("channel.general", "broadcast", "dm.ann.bob"):
        heard = Overheard(agent="bob", message=said(9, thread=thread, sender="eve"))
        assert session.told(signal("overheard", heard.model_dump(mode="json"))) == []


@pytest.mark.behaviour("H-131")
@pytest.mark.parametrize(
    ("marks", "line"),
    [
        ({"spoken_by": "ann"}, "12:01 m1 [ann as bob]: hi"),
        ({"outside": True}, "12:01 m1 bob [outside]: hi"),
        ({"mode": "interrupt"}, "12:01 m1 bob [interrupt]: hi"),
        (
            {"request": RequestMark(id="", kind="task", deadline=NOON)},
            "12:01 m1 bob [task until 12:00]: hi",
        ),
        ({"request": RequestMark(id="m7", kind="result")}, "12:01 m1 bob [result of m7]: hi"),
        (
            {"request": RequestMark(id="m7", kind="failed", outcome="timeout"), "outside": True},
            "12:01 m1 bob [outside] [m7 failed: timeout]: hi",
        ),
    ],
)
def test_messages_say_who_speaks_what_is_from_outside_and_what_is_asked(
    marks: dict[str, object], line: str
) -> None:
    message = said(1).model_copy(update=marks)
    assert shown(begun().take(event(message))) == [line]
    elsewhere = message.model_copy(update={"thread_id": "dm.ann.bob"})
    expected = line.replace("m1 ", "m1 [@bob] ", 1)
    assert shown(begun().take(event(elsewhere))) == [expected]
