from __future__ import annotations

from archive import Hit, readable
from librarian import Librarian, render

from tests.unit.configs.conftest import Village


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
    assert answer == "I found nothing about “what does the zoo cost for ann”."


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
    assert (await ann.asks("librarian", "1024")).startswith("I found nothing")


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
    assert render("x", hits) == "I found:\n1. one [a.md]\n2. two [b.md]"
