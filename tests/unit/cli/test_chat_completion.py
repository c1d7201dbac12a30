"""Completions while typing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.chat.completion import candidates
from hubbub.cli.chat.session import Session
from hubbub.protocol.messages import Channel
from tests.unit.cli.chatting import begun, event, person, ready, said, thread


@pytest.fixture
def session() -> Session:
    session = Session("ann")
    people = (
        person("ann", "human"),
        person("calculator", about="adds numbers"),
        person("concierge"),
        person("amy", "human", present=False),
    )
    channels = (Channel(name="general", joined=True), Channel(name="desk", description="work"))
    spoken = thread(said(1, "first"), said(2, "second"))
    session.begin(ready(spoken, people=people, channels=channels))
    session.open("channel.general")
    return session


@pytest.mark.parametrize(
    ("before", "texts"),
    [
        ("/q", ["quit", "queue", "requests"]),
        ("/jo", ["join"]),
        ("@ca", ["calculator"]),
        ("hello @con", ["concierge"]),
        ("(@con", ["concierge"]),
        ("@", ["calculator", "concierge", "amy"]),
        ("@ator", ["calculator"]),
        ("mail@con", []),
        ("@con ", []),
        ("@@con", []),
        ("plain text", []),
        ("", []),
        ("/dm c", ["calculator", "concierge"]),
        ("/dm @calc", ["calculator"]),
        ("/dm calculator,c", ["concierge"]),
        ("/dm calculator hi @con", ["concierge"]),
        ("/channel ", ["general"]),
        ("/join ", ["desk"]),
        ("/join #de", ["desk"]),
        ("/leave g", ["general"]),
        ("/reply ", ["m2", "m1"]),
        ("/reply m2 see @am", ["amy"]),
        ("/open gen", ["#general"]),
        ("/dm calculator ,c", ["concierge"]),
        ("/open ", ["#general", "broadcast"]),
        ("/who ", []),
        ("/nonsense x", []),
    ],
)
def test_what_could_come_next(session: Session, before: str, texts: list[str]) -> None:
    assert [found.text for found in candidates(before, session)] == texts


def test_all_commands_are_offered_after_a_slash(session: Session) -> None:
    assert {"threads", "open", "dm", "who", "help", "quit"} <= {
        found.text for found in candidates("/", session)
    }


def test_what_begins_so_comes_before_what_contains_it(session: Session) -> None:
    found = [found.text for found in candidates("/re", session)]
    assert found == ["reply", "resume", "requests", "threads", "create", "more", "breaker"]


def test_a_candidate_says_what_it_is(session: Session) -> None:
    about = {found.text: found.about for found in candidates("@", session)}
    assert about == {"calculator": "adds numbers", "concierge": "agent", "amy": "(away) human"}


def test_unread_threads_say_so(session: Session) -> None:
    session.take(event(said(3, "psst", thread="dm.amy.ann", tseq=1)))
    (found,) = [f for f in candidates("/open ", session) if f.text == "@amy"]
    assert found.about == "1 new psst"


def test_what_others_wrote_is_harmless_as_a_completion() -> None:
    session = begun(thread(said(1, "\x1b]0;title\x07")))
    assert candidates("/reply ", session)[0].about == "bob: <U+001B>]0;title<U+0007>"


@given(st.text(max_size=40))
def test_a_candidate_replaces_only_what_stands_before_the_cursor(before: str) -> None:
    for found in candidates(before, begun(thread(said(1)))):
        assert 0 <= found.replaces <= len(before)


@given(st.sampled_from(["/", "/open ", "/dm ", "/join ", "@", "x @", "/dm bob,"]), st.data())
def test_choosing_a_candidate_leaves_it_as_the_only_match_or_a_prefix(
    start: str, data: st.DataObject
) -> None:
    session = begun(thread(said(1)))
    found = data.draw(st.sampled_from(candidates(start, session)))
    line = start[: len(start) - found.replaces] + found.text
    assert found.text in [again.text for again in candidates(line, session)]
