from __future__ import annotations

from collections.abc import Iterator

import pytest
from archive import PUBLIC, Archive
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def archive() -> Iterator[Archive]:
    filled = Archive()
    filled.add("p1", PUBLIC, "threads.md", "A thread is an ordered list of messages.", "Threads")
    filled.add("p2", PUBLIC, "agents.md", "An agent wakes when it is mentioned.", "Waking")
    filled.add("m1", "dm.ann.librarian", "ann", "My password is swordfish.", sender="ann")
    filled.add("m2", "channel.desk", "ben", "The budget of the project is 40 euros.", sender="ben")
    filled.add("m3", "channel.desk", "ann", "The budget should be 50 euros.", sender="ann")
    yield filled
    filled.close()


def sources(archive: Archive, question: str, *places: str, sender: str | None = None) -> list[str]:
    return [hit.source for hit in archive.search(question, places, sender)]


def test_a_word_is_found_in_another_form_where_it_may_be_read(archive: Archive) -> None:
    assert sources(archive, "what is a message?") == ["threads.md"]
    assert sources(archive, "waking agents") == ["agents.md"]
    question = "what is the password?"
    assert sources(archive, question, "dm.ann.librarian") == ["ann"]
    assert sources(archive, question, "dm.ben.librarian") == []
    assert sources(archive, question) == []
    assert sources(archive, "project budget", "channel.desk") == ["ben"]
    assert sources(archive, "project budget", "channel.other") == []


def test_too_few_of_the_words_are_no_answer_of_a_message_fewer_are_enough(
    archive: Archive,
) -> None:
    assert sources(archive, "ordered list of blue whales swimming") == []
    assert sources(archive, "the of and") == []
    archive.add("p3", PUBLIC, "bikes.md", "A bike has two wheels.")
    archive.add("m4", "channel.desk", "eve", "My bike is blue.", sender="eve")
    assert sources(archive, "what colour is my bike?", "channel.desk") == ["eve"]


def test_the_title_decides_and_a_snippet_is_the_piece_that_matters(archive: Archive) -> None:
    archive.add("p3", PUBLIC, "long.md", "A hub. " * 9, "Hubs and other things")
    archive.add("p4", PUBLIC, "short.md", "One hub routes what is sent.", "What a hub is")
    assert sources(archive, "what is a hub?") == ["short.md", "long.md"]
    long = "nothing " * 100 + "the treasure lies under the oak " + "nothing " * 100
    archive.add("p5", PUBLIC, "map.md", long)
    [hit] = archive.search("where is the treasure under the oak?", [])
    assert "treasure lies under the oak" in hit.snippet
    assert len(hit.snippet) < 300


@given(st.text(max_size=80) | st.text('"*():^-ANDORNEAR {}', max_size=40))
def test_no_question_is_taken_for_query_syntax(question: str) -> None:
    archive = Archive()
    archive.add("k", "dm.a.b", "a", question + " secret", sender="a")
    assert archive.search(question, []) == []
    archive.search(question, ["dm.a.b"])
    archive.close()
