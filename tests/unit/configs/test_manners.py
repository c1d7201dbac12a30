from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manners import for_others, is_greeting, is_question, is_thanks, of_another_agent
from markdown_pages import measured

from hubbub import Message
from hubbub.protocol.messages import SenderKind


def said(
    text: str, *mentions: str, thread: str = "dm.a.b.me", kind: SenderKind = "agent"
) -> Message:
    return Message(
        id="m1",
        seq=1,
        thread_id=thread,
        tseq=1,
        sender_id="a",
        sender_kind=kind,
        type="direct",
        content=text,
        mentions=mentions,
        interaction_id="i1",
        hop=0,
        sent_at=datetime.fromtimestamp(0, UTC),
    )


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("@me how tall is K2", True),
        ("please tell me about K2", True),
        ("K2?", True),
        ("K2 is tall", False),
        ("whatever you want", False),
        ("", False),
    ],
)
def test_a_question_needs_no_question_mark(text: str, asks: bool) -> None:
    assert is_question(text) is asks


@pytest.mark.parametrize("text", ["thank you!", "@me thanks a lot", "ok, great", "Cheers :)"])
def test_thanks_are_known(text: str) -> None:
    assert is_thanks(text)
    assert not is_greeting(text)


@pytest.mark.parametrize(
    "text", ["hello you two", "@me hi", "Hello everybody!", "good morning", "hi, team 👋"]
)
def test_greetings_are_known(text: str) -> None:
    assert is_greeting(text)
    assert not is_thanks(text)


@pytest.mark.parametrize(
    "text", ["thank you for the 5 km", "hello, what is 2 + 2?", "the height", "???", ""]
)
def test_what_says_more_is_no_small_talk(text: str) -> None:
    assert not is_greeting(text)
    assert not is_thanks(text)


def test_agents_in_a_group_are_answered_only_if_they_ask() -> None:
    assert of_another_agent(said("hello"), "me")
    assert of_another_agent(said("what is K2?"), "me")
    assert of_another_agent(said("@me nice", "me"), "me")
    assert not of_another_agent(said("@me what is K2?", "me"), "me")
    assert not of_another_agent(said("hello", kind="human"), "me")
    assert not of_another_agent(said("the height of K2", thread="dm.a.me"), "me")


def test_a_message_that_mentions_others_is_theirs() -> None:
    assert for_others(said("@b hello", "b"), "me")
    assert not for_others(said("@b @me hello", "b", "me"), "me")
    assert not for_others(said("hello"), "me")


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("how tall is Mount Everest", "the height of Mount Everest"),
        ("How heavy is Mars", "the mass of Mars"),
        ("how far is Mars from the Sun", "how far is Mars from the Sun"),
        ("how much larger is A than B", "how much larger is A than B"),
        ("how long does light take", "how long does light take"),
    ],
)
def test_how_tall_asks_for_a_height(question: str, meant: str) -> None:
    assert measured(question) == meant


@given(st.text(max_size=200))
def test_any_text_can_be_judged(text: str) -> None:
    assert not (is_thanks(text) and is_question(text) and "?" not in text)
    assert is_greeting(text) in (True, False)
    assert measured(text)[:3] in (text[:3], "the")
