from __future__ import annotations

import pytest
from concierge import Concierge, best_match, introductions, value_in, welcome
from librarian import Librarian

from hubbub.protocol.messages import Card, Participant
from tests.unit.configs.conftest import Village
from tests.unit.configs.people import PATIENCE_S

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
        ("hello", "Hello, ann! You can ask:\n- calculator: "),
        ("who is here?", "I am concierge; besides you and me there are:"),
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
    assert answer.startswith("I have no answer: librarian says: I don't know that; I know about: ")
    assert answer.endswith("“Who is here?” tells who can do what.")


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
    assert await ann.asks("concierge", "who is here?") == "There is nobody here besides you and me."
    assert "calculator, away at the moment" in await ann.asks("concierge", "help")
    assert "calculator, away at the moment" in await ann.asks("concierge", "who can calculate?")


async def test_who_is_still_starting_is_waited_for(empty_village: Village) -> None:
    ann = await empty_village.person("ann")
    await empty_village.starts("concierge", Concierge(away_s=PATIENCE_S))
    await ann.tells("concierge", "what is the height of K2?")
    await empty_village.written("dm.concierge.librarian")
    await empty_village.starts("librarian", Librarian())
    answer = await ann.hears("concierge", lambda m: m.type == "direct")
    assert answer.text.startswith("librarian says: The height of K2 is 8,611 m.")


async def test_an_answer_that_comes_too_late_starts_no_conversation(
    lonely_concierge: Village,
) -> None:
    ann = await lonely_concierge.person("ann")
    late = await lonely_concierge.person("late", "agent")
    for text in ("The planet of Titan is Saturn. [moons.md]", "The height of K2 is 8,611 m."):
        await late.tells("concierge", text)
    await late.tells("concierge", "I don't know that; I know about: the height of K2.")
    await ann.asks("concierge", "help")
    assert [m.sender_id for m in late.heard] == []


async def test_an_agent_gets_results_but_no_small_talk(village: Village) -> None:
    parrot = await village.person("parrot", "agent")
    for text in ("hello", "sing a shanty"):
        await parrot.tells("concierge", text)
    assert (await parrot.asks("concierge", "twice the height of K2")).startswith("17,222 m")


async def test_introductions_in_a_channel_wake_nobody(village: Village) -> None:
    ann = await village.person("ann")
    await ann.posts("general", "@concierge who is here?")
    introduction = await ann.hears("concierge", lambda m: m.type == "channel")
    assert "calculator: Calculates" in introduction.text
    assert introduction.mentions == ()


async def test_a_broadcast_is_answered_if_several_must_work_together(village: Village) -> None:
    ann = await village.person("ann")
    await ann.broadcasts("I like tea")
    await ann.broadcasts("what is twice the height of K2?")
    answer = await ann.hears("concierge", lambda m: m.seq > 2)
    assert answer.text.startswith("17,222 m")


@pytest.mark.parametrize("hello", ["hello all", "Hi everyone!", "is anybody here?", "help"])
async def test_who_greets_everybody_is_told_what_there_is_and_how_to_ask(
    village: Village, hello: str
) -> None:
    ann = await village.person("ann")
    await village.person("sailor", "agent", Card(description="Sings shanties"))
    await ann.broadcasts(hello)
    answer = await ann.hears("concierge", lambda m: m.seq > 2)
    lines = answer.text.splitlines()
    assert lines[0] == "Hello, ann! You can ask:"
    assert lines[1] == "- calculator: Calculates and converts units (arithmetic, unit conversion)"
    assert "- sailor: Sings shanties" in lines
    assert lines[-1].startswith("Write to one of us directly, or mention us here")
    assert answer.mentions == (), "it wakes nobody"


async def test_what_is_said_to_everybody_about_others_is_not_answered(village: Village) -> None:
    ann = await village.person("ann")
    await village.person("sailor", "agent")
    await ann.broadcasts("@sailor hello")
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
        ("I don't know that; I know about: what people said here.", None),
    ],
)
def test_a_value_is_read_out_of_an_answer(answer: str, value: str | None) -> None:
    assert value_in(answer) == value


def test_a_welcome_is_short_however_many_agents_there_are() -> None:
    crowd = [
        Participant(id=f"a{n}", kind="agent", present=True, card=Card(description=f"Does {n}"))
        for n in range(30)
    ]
    lines = welcome("me", "ann", crowd).splitlines()
    assert len(lines) == 16
    assert "- 18 more" in lines
    assert welcome("me", "ann", []) == "Hello, ann! I am me, and no other agent is here yet."


def person(name: str, description: str, *skills: str, present: bool = True) -> Participant:
    card = Card(description=description, skills=skills)
    return Participant(id=name, kind="human", present=present, card=card)


def test_the_card_with_most_of_the_words_matches_best() -> None:
    lawyer, cook = person("ann", "Knows contracts", "law"), person("ben", "Cooks", "soup")
    assert best_match("who knows about contracts and law?", [cook, lawyer]) is lawyer
    assert best_match("dancing", [cook, lawyer]) is None
    assert best_match("anything", []) is None


def test_introductions_say_who_is_away() -> None:
    ann = person("ann", "Cooks", "soup", present=False)
    text = introductions("concierge", "who can cook soup?", [ann])
    assert text.endswith("\n  ann, away at the moment: Cooks (soup)")
    assert "ann" not in introductions("concierge", "", [ann, person("ben", "Sings")])


async def test_the_asker_is_not_introduced_to_themselves(village: Village) -> None:
    ann, _ = await village.person("ann"), await village.person("ben")
    answer = await ann.asks("concierge", "who is here?")
    assert "ben: a human" in answer
    assert "ann" not in answer


async def test_a_second_start_is_one_short_line(empty_village: Village) -> None:
    ann = await empty_village.person("ann")
    for n in range(3):
        await empty_village.starts("concierge", Concierge())
        greeting = await ann.hears("concierge")
        assert (greeting.text == "concierge is here again.") is (n > 0)
        empty_village.running["concierge"].cancel()


async def test_a_broadcast_to_somebody_else_is_theirs(village: Village) -> None:
    ann = await village.person("ann")
    await ann.broadcasts("@librarian what is the diameter of Mars?")
    await ann.broadcasts("@librarian what is 2 + 2?")
    for _ in range(2):
        await ann.hears("librarian")
    await ann.asks("concierge", "hello")
    await ann.asks("calculator", "1 + 1")
    said = [m.sender_id for m in ann.heard if m.type == "broadcast" and m.hop]
    assert said == ["librarian", "librarian"]


async def test_a_feat_of_one_sentence_needs_three_agents(village: Village) -> None:
    ann = await village.person("ann")
    await ann.broadcasts("@concierge how tall is mount everest in feet")
    answer = await ann.hears("concierge", lambda m: m.hop > 0)
    assert answer.text.startswith("≈ 29,031")
    assert "librarian: The height of Mount Everest is 8,848.86 m." in answer.text


async def test_thanks_are_acknowledged_by_all(village: Village) -> None:
    ann = await village.person("ann")
    for agent in ("concierge", "librarian", "calculator"):
        assert await ann.asks(agent, "thank you!") == "You are welcome."


async def test_agents_in_a_group_do_not_talk_to_each_other(village: Village) -> None:
    ann = await village.person("ann")
    group = ["concierge", "librarian", "calculator"]
    await ann.client.call("send_text_message", to=group, text="hello you three")
    for agent in group:
        heard = await ann.hears(agent, lambda m: len(m.recipients) > 1)
        assert (heard.hop, "I have no answer" in heard.text) == (1, False)
        await ann.asks(agent, "hello")  # by then it has read what the others answered
    assert [m.sender_id for m in ann.heard if len(m.recipients) > 1 and m.hop > 1] == []
