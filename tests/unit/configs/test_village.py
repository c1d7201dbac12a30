"""The agents of the quickstart answer in its network."""

from __future__ import annotations

import pytest
from archive import Hit, readable
from concierge import Concierge
from librarian import Librarian, render

from hubbub.protocol.messages import Card
from tests.unit.configs.conftest import Village
from tests.unit.configs.people import PATIENCE_S, Person

UNKNOWN = "I don't know that; I know about: "
JUPITER_AND_SATURN = (
    "how many kilometres is the diameter of Jupiter plus the diameter of Saturn, in miles?"
)


async def in_general(person: Person, agent: str, text: str) -> str:
    """Mention the agent in the channel and return the text of its answer."""
    await person.posts("general", f"@{agent} {text}")
    return (await person.hears(agent, lambda m: m.type == "channel")).text


# Calculator and concierge -----------------------------------------------------------------------


async def test_agents_answer_in_direct_messages_channels_and_broadcasts(village: Village) -> None:
    ann = await village.person("ann")
    assert await ann.asks("calculator", "6 * 7") == "6 * 7 = 42"
    assert await in_general(ann, "calculator", "what is 72 F in C?") == "72 F in C ≈ 22.222222 °C"
    await ann.broadcasts("good morning, I have 3 questions")
    await ann.broadcasts("what is 2^10?")
    assert (await ann.hears("calculator")).text == "2^10 = 1024"
    await ann.broadcasts("what is twice the height of K2?")
    assert (await ann.hears("concierge", lambda m: m.hop > 0)).text.startswith("17,222 m")
    await ann.broadcasts("@concierge how tall is mount everest in feet")
    answer = await ann.hears("concierge", lambda m: m.hop > 0)
    assert answer.text.startswith("≈ 29,031")
    assert "librarian: The height of Mount Everest is 8,848.86 m." in answer.text


async def test_the_concierge_combines_answers_of_other_agents_and_shows_its_steps(
    village: Village,
) -> None:
    ann = await village.person("ann")
    lines = (await in_general(ann, "concierge", JUPITER_AND_SATURN)).splitlines()
    assert lines[0] == "≈ 163,743.74 miles"
    assert lines[2].startswith("- librarian: The diameter of Jupiter is 142,984 km.")
    assert lines[3].startswith("- librarian: The diameter of Saturn is 120,536 km.")
    assert lines[4].startswith("- calculator: (142,984 km) + (120,536 km) in miles ≈ 163,743.74")
    for question, start in {
        "what is the height of K2?": "librarian says: The height of K2 is 8,611 m.",
        "the height of K2 in feet": "≈ 28,251.312 feet",
        "how many times larger is the mass of Jupiter than the mass of Earth?": "≈ 317.922948",
        "how much larger is the radius of Titan than the radius of Io": "753.2 km",
        "20% of the length of the Nile": "1330 km",
        "the distance of Mars from the Sun divided by the speed of light in minutes": "≈ 12.67",
        "the average of the height of K2, the height of Denali and 5,000 m": "≈ 6600.3333 m",
        "what is 6 * 7?": "calculator says: 6 * 7 = 42",
        "who discovered Pluto?": "librarian says: Pluto was discovered in 1930",
        "who can calculate?": "This may help:\n- calculator: Calculates and converts units",
        "hello": "Hello, ann! You can ask:\n- calculator: ",
        "who is here?": "I am concierge; besides you and me there are:",
        "the diameter of Nibiru plus the diameter of Mars in km": "I have no answer: librarian has "
        "no number for “the diameter of Nibiru”",
        "sing a shanty about whales": f"I have no answer: librarian says: {UNKNOWN}",
        "the diameter of Mars plus the mass of Mars": "I have no answer: calculator could not do "
        "the sum",
        "thank you!": "You are welcome.",
    }.items():
        assert (await ann.asks("concierge", question)).startswith(start), question
    parrot = await village.person("parrot", "agent")  # an agent gets results but no small talk
    for text in ("hello", "sing a shanty"):
        await parrot.tells("concierge", text)
    assert (await parrot.asks("concierge", "twice the height of K2")).startswith("17,222 m")


async def test_a_greeting_is_answered_with_the_present_agents_without_waking_them(
    village: Village,
) -> None:
    ann = await village.person("ann")
    await village.person("sailor", "agent", Card(description="Sings shanties"))
    for hello in ("hello all", "Hi everyone!", "is anybody here?", "help"):
        await ann.broadcasts(hello)
        answer = await ann.hears("concierge", lambda m: m.hop > 0)
        lines = answer.text.splitlines()
        assert lines[0] == "Hello, ann! You can ask:"
        calculator = "- calculator: Calculates and converts units (arithmetic, unit conversion)"
        assert (lines[1], "- sailor: Sings shanties" in lines) == (calculator, True)
        assert lines[-1].startswith("Write to one of us directly, or mention us here")
        assert answer.mentions == ()
    await ann.posts("general", "@concierge who is here?")
    answer = await ann.hears("concierge", lambda m: m.type == "channel")
    assert ("calculator: Calculates" in answer.text, answer.mentions) == (True, ())
    zoe = await village.person("zoe", "human", Card(name="Zoë Ü"))
    assert (await zoe.asks("concierge", "hello")).startswith("Hello, Zoë Ü! You can ask:")
    await village.person("ben")
    present = await ann.asks("concierge", "who is here?")
    assert ("ben: a human" in present, "ann" in present) == (True, False)


async def test_messages_for_others_or_for_no_agent_get_no_answer(village: Village) -> None:
    ann = await village.person("ann")
    await village.person("sailor", "agent")
    for text in ("I like tea", "@sailor hello", "@librarian what is the diameter of Mars?"):
        await ann.broadcasts(text)
    await ann.broadcasts("@librarian what is 2 + 2?")
    for _ in range(2):
        await ann.hears("librarian")
    await ann.asks("concierge", "hello")
    await ann.asks("calculator", "1 + 1")
    senders = [m.sender_id for m in ann.heard if m.type == "broadcast" and m.hop]
    assert senders == ["librarian", "librarian"]
    group = ["concierge", "librarian", "calculator"]
    await ann.client.call("send_text_message", to=group, text="hello you three")
    for agent in group:
        answer = await ann.hears(agent, lambda m: len(m.recipients) > 1)
        assert (answer.hop, "I have no answer" in answer.text) == (1, False)
        await ann.asks(agent, "hello")  # by then it has read the answers of the others
        assert await ann.asks(agent, "thank you!") == "You are welcome."
    assert [m.sender_id for m in ann.heard if len(m.recipients) > 1 and m.hop > 1] == []


async def test_the_concierge_greets_once_and_waits_for_an_agent_that_is_still_starting(
    empty_village: Village,
) -> None:
    ann = await empty_village.person("ann")
    await empty_village.start("concierge", Concierge())
    greeting = await ann.hears("concierge")
    assert (greeting.type, "Ask me who can do what" in greeting.text) == ("broadcast", True)
    empty_village.running["concierge"].cancel()
    await empty_village.start("concierge", Concierge(away_s=PATIENCE_S))
    assert (await ann.hears("concierge")).text == "concierge is here again."
    await ann.tells("concierge", "what is the height of K2?")
    await empty_village.thread_exists("dm.concierge.librarian")
    await empty_village.start("librarian", Librarian())
    answer = await ann.hears("concierge", lambda m: m.type == "direct")
    assert answer.text.startswith("librarian says: The height of K2 is 8,611 m.")


async def test_the_concierge_names_the_agents_that_are_away(lonely_concierge: Village) -> None:
    ann = await lonely_concierge.person("ann")
    for question, answer in {
        JUPITER_AND_SATURN: "librarian, who could help, is not here at the moment.",
        "what is 6 * 7?": "calculator, who could help, is not here at the moment.",
        "who is here?": "There is nobody here besides you and me.",
        "help": "calculator, away at the moment",
        "who can calculate?": "calculator, away at the moment",
    }.items():
        assert answer in await ann.asks("concierge", question)


async def test_the_concierge_ignores_late_answers(lonely_concierge: Village) -> None:
    ann = await lonely_concierge.person("ann")
    late = await lonely_concierge.person("late", "agent")
    for text in ("The planet of Titan is Saturn. [moons.md]", "The height of K2 is 8,611 m."):
        await late.tells("concierge", text)
    await late.tells("concierge", "I don't know that; I know about: the height of K2.")
    await ann.asks("concierge", "help")
    assert [m.sender_id for m in late.heard] == []


# Librarian --------------------------------------------------------------------------------------


async def test_the_librarian_answers_with_facts_and_pages_and_their_source(
    village: Village,
) -> None:
    ann = await village.person("ann")
    answer = await ann.asks("librarian", "What is the diameter of Jupiter?")
    assert answer.startswith("The diameter of Jupiter is 142,984 km. [planets.md › ")
    answer = await ann.asks("librarian", "who discovered Pluto?")
    assert "1930 by Clyde Tombaugh" in answer
    assert answer.endswith("[planets.md › The dwarf planet Pluto]")
    assert "the diameter of Mercury" in await ann.asks("librarian", "help")
    answer = await in_general(ann, "librarian", "what is hubbub?")
    assert answer.startswith("I found:\n1. Hubbub is a messaging network"), "the title matches"
    answer = await ann.asks("librarian", "what does the zoo cost for @ann?")
    assert answer.startswith(f"{UNKNOWN}What Hubbub is · Large moons")
    for partial in (
        *("which is heavier", "how long does light take", "how long does light take from the sun"),
        "how long does light take from the sun to the earth",
        "which is heavier, Mars or Venus",
    ):
        assert (await ann.asks("librarian", partial)).startswith(UNKNOWN), partial
    await ann.posts("general", "@librarian what is the height of K2?")
    fact = await ann.hears("librarian", lambda m: "K2" in m.text)
    await ann.client.call("reply", message_id=fact.id, text="thank you")
    assert (await ann.hears("librarian")).text == "You are welcome."
    hits = [Hit("a.md", "one"), Hit("b.md", "two")]
    assert render(hits, []) == "I found:\n1. one [a.md]\n2. two [b.md]"


@pytest.mark.parametrize("agent", ["librarian", "concierge"])
async def test_a_question_is_never_its_own_answer(village: Village, agent: str) -> None:
    ann = await village.person("ann")
    for ask in (f"ask {agent} about green elephants", "the green elephants"):
        for _ in range(2):
            await ann.broadcasts(f"@{agent} {ask}")
            assert UNKNOWN in (await ann.hears(agent, lambda m: m.hop > 0)).text
    await ann.posts("general", "who feeds the green elephants")
    assert UNKNOWN in await ann.asks(agent, "who feeds the green elephants?")
    assert UNKNOWN in await ann.asks("concierge", "green elephants eat bananas")
    await ann.broadcasts("green elephants eat bananas")
    assert "eat bananas [ann in" in await ann.asks("librarian", "what do green elephants eat?")
    await in_general(ann, "calculator", "2^10")  # statements of agents are not remembered
    assert (await ann.asks("librarian", "1024")).startswith(UNKNOWN)


async def test_statements_of_people_are_remembered_with_their_place_across_a_restart(
    village: Village,
) -> None:
    ann, ben = await village.person("ann"), await village.person("ben")
    assert (await ann.asks("librarian", "My bike is blue.")).startswith("Noted.")
    assert "My bike is blue. [ann in" in await ann.asks("librarian", "what colour is my bike?")
    await ann.posts("general", "The party is on Friday at @calculator.")
    await ben.hears("ann")
    answer = await in_general(ben, "librarian", "when is the party?")
    assert answer.startswith("The party is on Friday at calculator. [ann in channel_general, m")
    await ann.posts("general", "The budget is 40 euros.")
    await ben.posts("general", "The budget is 70 euros.")
    answer = await ann.asks("librarian", "what did ben say about the budget?")
    assert ("70 euros" in answer, "40 euros" in answer) == (True, False)
    await ann.broadcasts("The canteen opens at noon.")
    await ben.hears("ann", lambda m: m.type == "broadcast")
    village.running["librarian"].cancel()
    await village.start("librarian", Librarian())
    for agent in ("librarian", "concierge"):
        assert "opens at noon" in await ben.asks(agent, "when does the canteen open?")
    assert "Friday" in await ann.asks("librarian", "when is the party?")


async def test_private_statements_are_repeated_only_to_their_readers(village: Village) -> None:
    ann, ben = await village.person("ann"), await village.person("ben")
    await ann.asks("librarian", "My locker code is swordfish.")
    assert "swordfish" in await ann.asks("librarian", "what is my locker code?")
    assert "swordfish" not in await ben.asks("librarian", "what is the locker code?")
    assert "swordfish" not in await in_general(ann, "librarian", "what is my locker code?")
    await ann.asks("concierge", "My parking space is nineteen.")  # it forwards this
    assert "nineteen" not in await ben.asks("concierge", "what is the parking space?")
    await ann.client.call("create_channel", name="secret", members=["librarian", "concierge"])
    await ann.posts("secret", "The treasure lies under the oak.")
    assert "oak" in await ann.asks("librarian", "where is the treasure?")
    assert "oak" not in await ben.asks("librarian", "where is the treasure?")
    for person in (ann, ben):  # the concierge forwards answers to anyone
        assert "oak" not in await person.asks("concierge", "where is the treasure?")


def test_threads_are_readable_when_all_recipients_are_members() -> None:
    members = {"channel.a": ["ann", "ben"], "channel.b": ["ann"], "dm.ann.lib": ["ann", "lib"]}
    places = [*members, "channel.unknown"]
    assert readable(places, {"ann"}, members) == ["channel.a", "channel.b", "dm.ann.lib"]
    assert readable(places, {"ann", "ben"}, members) == ["channel.a"]
    assert readable(places, {"eve"}, members) == []
