from __future__ import annotations

import pytest
from concierge import Concierge, best_match, introductions, value_in

from hubbub.protocol.messages import Card, Participant
from tests.unit.configs.conftest import Village

JUPITER_AND_SATURN = (
    "how many kilometres is the diameter of Jupiter plus the diameter of Saturn, in miles?"
)


async def test_it_greets_everybody_when_it_starts(empty_village: Village) -> None:
    ann = await empty_village.person("ann")
    await empty_village.starts("concierge", Concierge())
    greeting = await ann.hears("concierge")
    assert greeting.type == "broadcast"
    assert "Ask me who can do what" in greeting.text


async def test_two_agents_answer_together_and_the_way_is_shown(village: Village) -> None:
    ann = await village.person("ann")
    await ann.posts("general", f"@concierge {JUPITER_AND_SATURN}")
    answer = await ann.hears("concierge", lambda m: m.type == "channel")
    lines = answer.text.splitlines()
    assert lines[0] == "≈ 163,743.74 miles"
    assert lines[2].startswith("  librarian: The diameter of Jupiter is 142,984 km.")
    assert lines[3].startswith("  librarian: The diameter of Saturn is 120,536 km.")
    assert lines[4].startswith("  calculator: (142,984 km) + (120,536 km) in miles ≈ 163,743.74")


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ("what is the height of K2?", "librarian says: The height of K2 is 8,611 m."),
        ("the height of K2 in feet", "≈ 28,251.312 feet"),
        ("how many times larger is the mass of Jupiter than the mass of Earth?", "≈ 317.922948"),
        ("how much larger is the radius of Titan than the radius of Io", "753.2 km"),
        ("20% of the length of the Nile", "1330 km"),
        ("the distance of Mars from the Sun divided by the speed of light in minutes", "≈ 12.67"),
        ("the average of the height of K2, the height of Denali and 5,000 m", "≈ 6600.3333 m"),
        ("what is 6 * 7?", "calculator says: 6 * 7 = 42"),
        ("who discovered Pluto?", "librarian says: Pluto was discovered in 1930"),
        ("who can calculate?", "This may help:\n  calculator: Calculates and converts units"),
        ("hello", "I am concierge; besides you and me there are:"),
    ],
)
async def test_questions_find_those_who_can_answer(
    village: Village, question: str, start: str
) -> None:
    ann = await village.person("ann")
    assert (await ann.asks("concierge", question)).startswith(start)


async def test_it_says_so_when_nobody_can_help(village: Village) -> None:
    ann = await village.person("ann")
    answer = await ann.asks("concierge", "the diameter of Nibiru plus the diameter of Mars in km")
    assert answer.startswith(
        "I have no answer: librarian has no number for “the diameter of Nibiru”"
    )
    answer = await ann.asks("concierge", "sing a shanty about whales")
    assert answer.startswith("I have no answer: librarian found nothing.")
    assert "calculator: Calculates" in answer


async def test_a_sum_that_makes_no_sense_is_passed_on_as_such(village: Village) -> None:
    ann = await village.person("ann")
    answer = await ann.asks("concierge", "the diameter of Mars plus the mass of Mars")
    assert "calculator could not do the sum" in answer
    assert "a mass cannot be added to a length" in answer


async def test_without_the_others_it_is_honest(lonely_concierge: Village) -> None:
    ann = await lonely_concierge.person("ann")
    answer = await ann.asks("concierge", JUPITER_AND_SATURN)
    assert answer == "I have no answer: librarian, who could help, is not here at the moment."
    answer = await ann.asks("concierge", "what is 6 * 7?")
    assert answer == "I have no answer: calculator, who could help, is not here at the moment."
    assert "calculator, away at the moment" in await ann.asks("concierge", "help")


async def test_an_agent_gets_results_but_no_small_talk(village: Village) -> None:
    parrot = await village.person("parrot", "agent")
    for text in ("hello", "who is here?", "sing a shanty"):
        await parrot.tells("concierge", text)
    assert (await parrot.asks("concierge", "twice the height of K2")).startswith("17,222 m")


async def test_introductions_in_a_channel_wake_nobody(village: Village) -> None:
    ann = await village.person("ann")
    await ann.posts("general", "@concierge who is here?")
    introduction = await ann.hears("concierge", lambda m: m.type == "channel")
    assert "calculator: Calculates" in introduction.text
    assert introduction.mentions == ()


async def test_a_broadcast_is_answered_only_if_several_must_work_together(village: Village) -> None:
    ann = await village.person("ann")
    await ann.broadcasts("hello everybody")
    await ann.broadcasts("what is twice the height of K2?")
    answer = await ann.hears("concierge", lambda m: m.seq > 2)
    assert answer.text.startswith("17,222 m")


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("The diameter of Jupiter is 142,984 km. [planets.md › Planets]", "142,984 km"),
        ("The gravity of Mars is 3.7 m/s². [x]", "3.7 m/s²"),
        ("It is ≈ 3.5 km", "3.5 km"),
        ("The temperature is -40 °C.", "-40 °C"),
        ("The planet of Titan is Saturn. [x]", None),
        ("I found nothing about “x is y”.", None),
    ],
)
def test_a_value_is_read_out_of_an_answer(answer: str, value: str | None) -> None:
    assert value_in(answer) == value


def person(name: str, description: str, *skills: str, present: bool = True) -> Participant:
    card = Card(description=description, skills=skills)
    return Participant(id=name, kind="human", present=present, card=card)


def test_the_card_with_most_of_the_words_matches_best() -> None:
    lawyer, cook = person("ann", "Knows contracts", "law"), person("ben", "Cooks", "soup")
    assert best_match("who knows about contracts and law?", [cook, lawyer]) is lawyer
    assert best_match("dancing", [cook, lawyer]) is None
    assert best_match("anything", []) is None


def test_introductions_say_who_is_away() -> None:
    text = introductions("concierge", "", [person("ann", "Cooks", "soup", present=False)])
    assert text.endswith("\n  ann, away at the moment: Cooks (soup)")
