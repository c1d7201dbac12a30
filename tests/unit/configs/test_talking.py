"""How the agents of the quickstart read questions, small talk and pages."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from calculator import HELP, answer, is_calculation
from concierge import value_in
from hypothesis import given
from hypothesis import strategies as st
from librarian import states, tells
from manners import is_greeting, is_question, is_thanks
from markdown_pages import find_fact, measured, read_folder, read_page
from phrasing import as_calculation, plain_question, split_target
from quantities import calculate
from questions import Plan, make_plan

from hubbub import Message
from hubbub.protocol.messages import SenderKind

KNOWLEDGE = Path(__file__).parents[3] / "configs" / "knowledge"
JUPITER, SATURN = "the diameter of Jupiter", "the diameter of Saturn"


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


# Small talk -------------------------------------------------------------------------------------


def test_questions_thanks_greetings_and_statements_are_told_apart() -> None:
    for text in ("@me how tall is K2", "please tell me about K2", "K2?"):
        assert is_question(text)
    for text in ("K2 is tall", "whatever you want", ""):
        assert not is_question(text)
    for text in ("thank you!", "@me thanks a lot", "ok, great", "Cheers :)"):
        assert (is_thanks(text), is_greeting(text)) == (True, False)
    greetings = ("hello you two", "@me hi", "Hello everybody!", "good morning", "hi, team 👋")
    for text in greetings:
        assert (is_thanks(text), is_greeting(text)) == (False, True)
    for text in ("thank you for the 5 km", "hello, what is 2 + 2?", "the height", "???", ""):
        assert (is_thanks(text), is_greeting(text)) == (False, False)
    for text in ("The party is on Friday", "@ben the party is on Friday"):
        assert states(text)
    for text in (
        *("how tall is mount everest in feet", "the party is on Friday?", "hello everybody"),
        *("please tell me about the party", "ok, thanks a lot!", "tulips", ""),
    ):
        assert not states(text)
    assert tells("My bike is blue")
    assert not tells("the bike of ann")


# Questions --------------------------------------------------------------------------------------


def test_politeness_is_taken_off_and_what_is_left_is_calculated() -> None:
    for text, question in {
        "@calculator what is 2 + 2?": "2 + 2",
        "@calculator, @concierge: 2 + 2": "2 + 2",
        "Hi, could you please tell me what's 20% of 50?": "20% of 50",
        "How much is 3 * 4, please?": "3 * 4",
        "what is 2 + 2 = ?": "2 + 2",
        "5!": "5!",
        "convert 5 miles to km.": "5 miles to km",
        "who is here?": "who is here",
        "  calculate   7  ": "7",
        "please": "please",
        "": "",
    }.items():
        assert plain_question(text) == question
    for text, expression in {
        "how many feet are in a mile?": "1 mile in feet",
        "@calculator how many litres in a cubic metre": "1 cubic metre in litres",
        "convert 5 miles into km": "5 miles in km",
        "what is an hour in seconds": "1 hour in seconds",
        "3 h 20 min in minutes please": "3 h 20 min in minutes",
        "2 + 2": "2 + 2",
    }.items():
        assert as_calculation(text) == expression
    for text, told in {
        "what is 2 + 3 * 4^2?": "2 + 3 * 4^2 = 50",
        "1/3": "1/3 ≈ 0.333333333333",
        "convert 5 miles to km": "5 miles in km = 8.04672 km",
        "how many feet are in a mile?": "1 mile in feet = 5280 feet",
        "hello": HELP,
        "": HELP,
        "42": HELP,
        "2 +* 3": "I cannot calculate that:\n2 +* 3\n   ^ I did not expect '*' here",
        "5 km in kg": "I cannot calculate that:\n5 km in kg\n"
        "     ^ a length cannot be given in kg, a unit of mass",
    }.items():
        assert answer(text) == told
    for text in ("what is 2 + 2?", "5 miles in km"):
        assert is_calculation(text)
    for text in ("I have 3 apples", "it is 2026", "hello", "42", "1,234.5"):
        assert not is_calculation(text)


def test_a_wanted_unit_is_found_at_either_end_and_a_value_in_an_answer() -> None:
    for question, rest, target in (
        ("5 miles in km", "5 miles", "km"),
        ("5 miles, in km", "5 miles", "km"),
        ("60 mph as metres per second", "60 mph", "metres per second"),
        ("100 km/h in mi/h", "100 km/h", "mi/h"),
        ("how many feet are in a mile", "a mile", "feet"),
        ("how many feet is K2's height", "K2's height", "feet"),
        ("how many minutes are there in 3 h 20 min", "3 h 20 min", "minutes"),
        ("how many km is A plus B, in miles", "A plus B", "miles"),
    ):
        assert split_target(question) == (rest, target)
    for question in (
        "how many feet does a mile have",
        "how many agents are here",
        "the height of the tower in Paris",
        "5 ft 11 in",
    ):
        assert split_target(question) == (question, None)
    for text, value in {
        "The diameter of Jupiter is 142,984 km. [planets.md › Planets]": "142,984 km",
        "The gravity of Mars is 3.7 m/s². [x]": "3.7 m/s²",
        "It is ≈ 3.5 km": "3.5 km",
        "The temperature is -40 °C.": "-40 °C",
        "The planet of Titan is Saturn. [x]": None,
        "I don't know that; I know about: what people said here.": None,
    }.items():
        assert value_in(text) == value


def test_a_question_is_taken_apart_into_look_ups_and_a_calculation() -> None:
    for text, expression in {
        f"@concierge how many kilometres is {JUPITER} plus {SATURN}, in miles?": "J + S in miles",
        f"what is {JUPITER}?": "J",
        f"how many miles is {JUPITER}?": "J in miles",
        f"{JUPITER} in feet": "J in feet",
        "Jupiter's diameter divided by 3": "J / 3",
        f"({JUPITER} + {SATURN}) / 2 in miles": "(J + S) / 2 in miles",
        f"what is the sum of {JUPITER} and {SATURN}?": "J + S",
        f"the difference between {JUPITER} and {SATURN}": "abs(J - S)",
        f"the ratio of {JUPITER} to {SATURN}": "J / S",
        f"the average of {JUPITER} and {SATURN}": "mean(J, S)",
        f"the largest of {JUPITER}, 5 km and {SATURN}": "max(J, (5 km), S)",
        f"the product of 2 and {JUPITER}": "2 * J",
        f"how much larger is {SATURN} than {JUPITER}?": "S - J",
        f"how much smaller is {JUPITER} than {SATURN}?": "S - J",
        f"how many times larger is {SATURN} than {JUPITER}?": "S / J",
        f"twice {JUPITER}": "2 * J",
        f"half of {JUPITER}": "1 / 2 * J",
        f"a third of {JUPITER}": "1 / 3 * J",
        f"20% of {JUPITER}": "20% * J",
        f"3 times {JUPITER} minus 100 km": "3 * J - 100 km",
        f"pi times {JUPITER}": "pi * J",
        f"the square root of {JUPITER}": "sqrt(J)",
    }.items():
        plan = make_plan(text)
        assert plan is not None
        found = {JUPITER: "J", SATURN: "S", "Jupiter's diameter": "J"}
        filled = plan.filled([found[name] for name in plan.lookups])
        plain = filled.replace("(J)", "J").replace("(S)", "S")
        assert plain == expression, text
    for text in (
        *("2 + 3", "what is 5 km in miles?", "who can calculate?", "who is here", "hello"),
        *("what is a thread?", "tell me about planets", "the sum of 3", "", "+", "("),
        f"the difference between {JUPITER}, 2 and 3",
    ):
        assert make_plan(text) is None
    assert not Plan(("x",), "{0}").calculates
    assert Plan(("x",), "{0}", "miles").calculates
    assert Plan(("x",), "2 * {0}").calculates


@given(st.text(max_size=200) | st.text("|-# \n`abc(){}0", max_size=200))
def test_any_text_can_be_judged_asked_planned_and_read(text: str) -> None:
    assert not (is_thanks(text) and is_question(text) and "?" not in text)
    assert is_greeting(text) in (True, False)
    assert measured(text)[:3] in (text[:3], "the")
    assert isinstance(as_calculation(text), str)
    plan = make_plan(text)
    assert plan is None or plan.lookups
    page = read_page("x.md", text)
    assert all(p.text.strip() or p.text == "" for p in page.passages)
    assert all(f.subject and f.value for f in page.facts)


# Pages ------------------------------------------------------------------------------------------


def test_a_fact_is_found_only_if_it_is_what_was_asked() -> None:
    facts = read_folder(KNOWLEDGE).facts
    for question, value in {
        "what is the diameter of Jupiter?": "142,984 km",
        "Jupiter's diameter": "142,984 km",
        "the equatorial diameter of jupiter": "142,984 km",
        "radius of Jupiter": "69,911 km",
        "radius of Titan": "2,574.7 km",
        "how far is Mars from the Sun?": "228.0 million km",
        "how high is Mount Everest?": "8,848.86 m",
        "how tall is Everest": "8,848.86 m",
        "the length of the Nile": "6,650 km",
        "how heavy is Earth": "5.97e24 kg",
        "diameter of the Sun": "1,391,400 km",
        "the planet of Titan": "Saturn",
        "the speed of light": "299,792.458 km/s",
        "what planet does Titan belong to": None,
        "the density of Jupiter": None,
        "the mass of the atmosphere of Jupiter": None,
        "the diameter of Nibiru": None,
        "Jupiter": None,
        "": None,
    }.items():
        fact = find_fact(facts, question)
        assert (fact.value if fact else None) == value, question
    for question, meant in {
        "how tall is Mount Everest": "the height of Mount Everest",
        "How heavy is Mars": "the mass of Mars",
    }.items():
        assert measured(question) == meant
    for question in ("how far is Mars from the Sun", "how much larger is A than B"):
        assert measured(question) == question
    for fact in facts:
        found = find_fact(facts, f"the {fact.attribute} of {fact.subject}")
        assert found is not None, fact
        assert (found.subject, found.value) == (fact.subject, fact.value)
    numbers = [fact for fact in facts if fact.value[:1].isdigit()]
    assert len(numbers) > 60
    assert all(calculate(fact.value).value.exact for fact in numbers)
