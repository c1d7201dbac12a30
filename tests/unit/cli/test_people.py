"""`who`, `threads`, `send`, `status` against a running network."""

from __future__ import annotations

import pytest

from hubbub.cli.people import _message
from hubbub.errors import UserError
from tests.unit.cli.conftest import Command


def test_who_shows_everybody(town: str, hubbub: Command) -> None:
    ran = hubbub("who")
    assert ran.code == 0
    assert [line.split() for line in ran.out.splitlines()] == [
        ["NAME", "KIND", "ABOUT"],
        ["ann", "human", "away", "The", "mayor"],
    ]


@pytest.mark.behaviour("U-3")
def test_who_as_json(town: str, hubbub: Command) -> None:
    card = {"description": "The mayor", "skills": []}
    assert hubbub("who", "--json").json() == [
        {"id": "ann", "kind": "human", "present": False, "down": None, "card": card}
    ]


def test_a_message_is_sent_as_the_networks_person(town: str, hubbub: Command) -> None:
    assert hubbub("send", "--as", "bob", "--broadcast", "I am bob").code == 0
    ran = hubbub("send", "bob", "hello", "there")
    assert (ran.code, ran.out) == (
        0,
        "m2 sent as ann in @bob; away, will get it later: bob\n",
    )


def test_what_was_sent_is_json_too(town: str, hubbub: Command) -> None:
    sent = hubbub("send", "--channel", "#general", "hi", "@nobody", "--json").json()
    assert isinstance(sent, dict)
    assert (sent["thread_id"], sent["unresolved"]) == ("channel.general", ["nobody"])


def test_a_name_that_belongs_to_nobody_is_told(town: str, hubbub: Command) -> None:
    assert "; nobody is called nobody" in hubbub("send", "-c", "general", "hi @nobody").out


def test_threads_are_those_of_the_person(town: str, hubbub: Command) -> None:
    hubbub("send", "--as", "bob", "-c", "general", "first")
    hubbub("send", "bob", "psst")
    ran = hubbub("threads")
    assert [line.split()[0] for line in ran.out.splitlines()] == [
        "THREAD",
        "@bob",
        "#general",
    ]
    mine = hubbub("threads", "--as", "bob", "--json").json()
    assert isinstance(mine, list)
    assert [thread["id"] for thread in mine if isinstance(thread, dict)] == [
        "dm.ann.bob",
        "channel.general",
    ]


def test_reading_makes_nobody_a_participant(town: str, hubbub: Command) -> None:
    ran = hubbub("threads", "--as", "anm")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "hubbub: there is no participant 'anm'; did you mean ann?\n"
    assert "anm" not in hubbub("who").out


def test_a_group_is_written_with_commas(town: str, hubbub: Command) -> None:
    for name in ("bob", "eve"):
        hubbub("send", "--as", name, "--broadcast", "hi")
    sent = hubbub("send", "bob,eve", "hello both", "--json").json()
    assert isinstance(sent, dict)
    assert sent["thread_id"] == "dm.ann.bob.eve"


def test_status_counts(town: str, hubbub: Command) -> None:
    hubbub("send", "--broadcast", "one")
    status = hubbub("status", "--json").json()
    assert isinstance(status, dict)
    assert (status["network"], status["head"], status["channels"]) == ("town", 1, 1)
    assert "head" in hubbub("status").out


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        (("send", "nobody", "hi"), 2, "nobody"),
        (("send", "-c", "generl", "hi"), 2, "generl"),
        (("send", "ann"), 2, "send needs a recipient and a text"),
        (("send", "--as", "hub", "ann", "hi"), 2, "reserved"),
        (("send", "ann", "hi"), 2, "nobody sends messages to itself"),
        (("who", "--address", "127.0.0.1:9"), 1, "no network answers at ws://127.0.0.1:9"),
        (("who", "--address", "elsewhere"), 2, "elsewhere"),
        (("send", "--as", "a b", "ann", "hi"), 2, "'a b' cannot be a name"),
        (("threads", "--as", "a b"), 2, "'a b' cannot be a name"),
        (("send", "ann", "  "), 2, "there is nothing in this message"),
        (("send", "-b", " \n"), 2, "there is nothing in this message"),
        (("send", "anm", "hi"), 2, "did you mean ann?"),
    ],
)
def test_a_failure_is_one_sentence_with_its_exit_code(
    town: str, hubbub: Command, args: tuple[str, ...], code: int, expected: str
) -> None:
    ran = hubbub(*args)
    assert (ran.code, ran.out) == (code, "")
    assert expected in ran.err
    assert ran.err.count("\n") == 1


def test_without_a_network_the_way_to_one_is_told(hubbub: Command) -> None:
    ran = hubbub("who")
    assert ran.code == 2
    assert "hubbub up" in ran.err


def test_a_network_is_found_by_name_and_address(town: str, hubbub: Command) -> None:
    place = town.removeprefix("ws://")
    for address in ("town", town, place, f"http://{place}/", f"HTTP://{place}/x?y#z"):
        assert hubbub("who", "--address", address).code == 0


@pytest.mark.parametrize(
    ("words", "channel", "broadcast", "expected"),
    [
        (["bob", "hi"], None, False, ("send_text_message", {"to": "bob", "text": "hi"})),
        (["@bob", "a", "b"], None, False, ("send_text_message", {"to": "@bob", "text": "a b"})),
        (["a", "b"], "desk", False, ("post_to_channel", {"channel": "desk", "text": "a b"})),
        (["a"], None, True, ("broadcast_text_message", {"text": "a"})),
    ],
)
def test_words_are_a_recipient_and_a_text(
    words: list[str], channel: str | None, broadcast: bool, expected: tuple[str, dict[str, str]]
) -> None:
    assert _message(words, channel, broadcast) == expected


def test_a_message_goes_one_way() -> None:
    with pytest.raises(UserError, match="not both"):
        _message(["a"], "desk", True)
