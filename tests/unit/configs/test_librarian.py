from __future__ import annotations

import pytest
from archive import Hit, readable
from librarian import Librarian, render, states, tells

from tests.unit.configs.conftest import Village

UNKNOWN = "I don't know that; I know about: "


async def test_a_fact_is_given_with_its_source(village: Village) -> None:
    ann = await village.person("ann")
    answer = await ann.asks("librarian", "What is the diameter of Jupiter?")
    assert answer.startswith("The diameter of Jupiter is 142,984 km. [planets.md › ")


async def test_pages_are_searched_with_snippets_and_sources(village: Village) -> None:
    ann = await village.person("ann")
    answer = await ann.asks("librarian", "who discovered Pluto?")
    assert "1930 by Clyde Tombaugh" in answer
    assert answer.endswith("[planets.md › The dwarf planet Pluto]")


async def test_what_is_not_there_is_said_to_be_missing(village: Village) -> None:
    ann = await village.person("ann")
    answer = await ann.asks("librarian", "what does the zoo cost for @ann?")
    assert answer.startswith("I don't know that; I know about: What Hubbub is · Large moons")


@pytest.mark.parametrize(
    "question",
    [
        *("which is heavier", "how long does light take", "how long does light take from the sun"),
        "how long does light take from the sun to the earth",
        "which is heavier, Mars or Venus",
    ],
)
async def test_an_answer_to_half_of_a_question_is_none(village: Village, question: str) -> None:
    ann = await village.person("ann")
    assert (await ann.asks("librarian", question)).startswith(UNKNOWN)


async def test_a_title_that_is_the_question_comes_first(village: Village) -> None:
    ann = await village.person("ann")
    await ann.posts("general", "@librarian what is hubbub?")
    answer = await ann.hears("librarian")
    assert answer.text.startswith("I found:\n1. Hubbub is a messaging network")


@pytest.mark.parametrize("agent", ["librarian", "concierge"])
@pytest.mark.parametrize("ask", ["ask {} about green elephants", "the green elephants"])
async def test_a_question_is_never_its_own_answer(village: Village, agent: str, ask: str) -> None:
    ann = await village.person("ann")
    for _ in range(2):
        await ann.broadcasts(f"@{agent} " + ask.format(agent))
        answer = await ann.hears(agent, lambda m: m.hop > 0)
        assert UNKNOWN in answer.text
    await ann.posts("general", "who feeds the green elephants")
    assert UNKNOWN in await ann.asks(agent, "who feeds the green elephants?")


async def test_a_question_in_the_words_of_a_statement_does_not_find_itself(
    village: Village,
) -> None:
    ann = await village.person("ann")
    await ann.tells("concierge", "green elephants eat bananas")
    answer = await ann.hears("concierge", lambda m: m.type == "direct")
    assert UNKNOWN in answer.text
    await ann.broadcasts("green elephants eat bananas")
    assert "eat bananas [ann in" in await ann.asks("librarian", "what do green elephants eat?")


async def test_what_a_person_tells_is_noted_and_a_few_words_are_a_question(
    village: Village,
) -> None:
    ann = await village.person("ann")
    assert (await ann.asks("librarian", "My bike is blue.")).startswith("Noted.")
    assert "My bike is blue. [ann in" in await ann.asks("librarian", "what colour is my bike?")
    for _ in range(2):
        assert (await ann.asks("librarian", "green elephants")).startswith(UNKNOWN)
    assert tells("My bike is blue")
    assert not tells("the bike of ann")


async def test_thanks_under_an_answer_are_not_looked_up(village: Village) -> None:
    ann = await village.person("ann")
    await ann.posts("general", "@librarian what is the height of K2?")
    fact = await ann.hears("librarian")
    await ann.client.call("reply", message_id=fact.id, text="thank you")
    assert (await ann.hears("librarian")).text == "You are welcome."


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("The party is on Friday", True),
        ("@ben the party is on Friday", True),
        ("how tall is mount everest in feet", False),
        ("the party is on Friday?", False),
        ("please tell me about the party", False),
        ("hello everybody", False),
        ("ok, thanks a lot!", False),
        ("tulips", False),
        ("", False),
    ],
)
def test_only_statements_are_remembered(text: str, stated: bool) -> None:
    assert states(text) is stated


async def test_help_names_what_the_pages_have(village: Village) -> None:
    ann = await village.person("ann")
    answer = await ann.asks("librarian", "help")
    assert "the diameter of Mercury" in answer


async def test_a_channel_message_is_remembered_and_quoted_with_its_place(village: Village) -> None:
    ann, ben = await village.person("ann"), await village.person("ben")
    await ann.posts("general", "The party is on Friday at @calculator.")
    await ben.hears("ann")
    await ben.posts("general", "@librarian when is the party?")
    answer = await ben.hears("librarian")
    assert answer.text.startswith(
        "The party is on Friday at calculator. [ann in channel_general, m"
    )


async def test_what_one_person_said_is_told_from_what_others_said(village: Village) -> None:
    ann, ben = await village.person("ann"), await village.person("ben")
    await ann.posts("general", "The budget is 40 euros.")
    await ben.posts("general", "The budget is 70 euros.")
    answer = await ann.asks("librarian", "what did ben say about the budget?")
    assert "70 euros" in answer
    assert "40 euros" not in answer


async def test_a_direct_thread_never_reaches_another_person(village: Village) -> None:
    ann, ben = await village.person("ann"), await village.person("ben")
    await ann.asks("librarian", "My locker code is swordfish.")
    assert "swordfish" in await ann.asks("librarian", "what is my locker code?")
    assert "swordfish" not in await ben.asks("librarian", "what is the locker code?")
    await ann.posts("general", "@librarian what is my locker code?")
    assert "swordfish" not in (await ben.hears("librarian", lambda m: m.type == "channel")).text


async def test_what_the_concierge_passes_on_is_not_kept_for_others(village: Village) -> None:
    ann, ben = await village.person("ann"), await village.person("ben")
    await ann.asks("concierge", "My locker code is swordfish.")
    assert "swordfish" not in await ben.asks("concierge", "what is the locker code?")


async def test_a_closed_channel_stays_closed(village: Village) -> None:
    ann, ben = await village.person("ann"), await village.person("ben")
    await ann.client.call("create_channel", name="secret", members=["librarian", "concierge"])
    await ann.posts("secret", "The treasure lies under the oak.")
    assert "oak" in await ann.asks("librarian", "where is the treasure?")
    assert "oak" not in await ben.asks("librarian", "where is the treasure?")
    for person in (ann, ben):  # the concierge may tell anybody what it hears
        assert "oak" not in await person.asks("concierge", "where is the treasure?")


async def test_what_agents_say_is_not_taken_for_something_said(village: Village) -> None:
    ann = await village.person("ann")
    await ann.posts("general", "@calculator 2^10")
    await ann.hears("calculator")
    assert (await ann.asks("librarian", "1024")).startswith(UNKNOWN)


async def test_a_broadcast_is_known_to_everybody(village: Village) -> None:
    ann, ben = await village.person("ann"), await village.person("ben")
    await ann.broadcasts("The canteen opens at noon.")
    await ben.hears("ann")
    assert "opens at noon" in await ben.asks("librarian", "when does the canteen open?")
    assert "opens at noon" in await ben.asks("concierge", "when does the canteen open?")


async def test_history_from_before_a_restart_is_still_known(village: Village) -> None:
    ann = await village.person("ann")
    await ann.posts("general", "The password of the wiki is tulip.")
    await ann.asks("librarian", "help")
    village.running["librarian"].cancel()
    await village.starts("librarian", Librarian())
    assert "tulip" in await ann.asks("librarian", "what is the password of the wiki?")


def test_only_places_that_the_whole_audience_reads_are_searched() -> None:
    members = {"channel.a": ["ann", "ben"], "channel.b": ["ann"], "dm.ann.lib": ["ann", "lib"]}
    places = [*members, "channel.unknown"]
    assert readable(places, {"ann"}, members) == ["channel.a", "channel.b", "dm.ann.lib"]
    assert readable(places, {"ann", "ben"}, members) == ["channel.a"]
    assert readable(places, {"eve"}, members) == []


def test_several_hits_are_numbered() -> None:
    hits = [Hit("a.md", "one"), Hit("b.md", "two")]
    assert render(hits, []) == "I found:\n1. one [a.md]\n2. two [b.md]"
