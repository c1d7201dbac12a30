"""The small parts: acknowledgements, questions, scopes, the package itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub
from hubbub.agents.python.link import PendingQuestions, is_answer
from hubbub.agents.runner import AckWindow
from tests.unit.agents.builders import message


@given(st.permutations(range(1, 9)))
def test_nothing_open_is_ever_acknowledged(order: list[int]) -> None:
    window = AckWindow()
    open_ = set(order)
    for seq in sorted(order):
        window.add(seq)
    for seq in order:
        open_.discard(seq)
        upto = window.mark_done(seq)
        assert all(left > upto for left in open_)
    assert upto == 8


DM = "dm.bot.calc"


def test_a_message_answers_what_caused_it_what_it_stands_under_or_quotes() -> None:
    for cause, yes in [
        ("m5", True), ("calc-m5", True), ("calc-m6", False), ("other-m5", False), (None, False),
    ]:  # fmt: skip
        assert is_answer(message(9, "calc", cause=cause, kind="agent"), 5, DM) is yes
    said = message(9, "calc", cause="calc-m4", reply_to="m5", kind="agent")
    assert is_answer(said, 5, DM)
    assert is_answer(message(9, "calc", cause="calc-m4", quote="m5"), 5, DM)
    assert not is_answer(message(9, "calc", cause="calc-m5", quote="m4"), 5, DM)
    assert is_answer(message(9, "ann", thread="dm.ann.bot"), 5, "dm.ann.bot")
    assert not is_answer(message(9, "ann", thread="channel.desk"), 5, "dm.ann.bot")
    assert not is_answer(message(9, "ann", cause="m4"), 5, "dm.ann.bot")


async def test_the_answer_goes_to_the_one_who_asked_and_no_other_message() -> None:
    asks = PendingQuestions()
    ask = asks.begin("calc")
    ask.set_position(5, DM)
    said = message(9, "calc", cause="calc-m5")
    verdict = asks.claim(said)
    assert verdict is not None
    assert await verdict
    assert await ask.answer is said
    assert asks.claim(message(10, "calc", cause="calc-m5")) is None
    asks = PendingQuestions()
    ask = asks.begin("calc")
    ask.set_position(5, DM)
    assert asks.claim(message(9, "calc", cause="calc-m4")) is None
    assert asks.claim(message(9, "alice", cause="m5")) is None
    asks.end(ask)
    assert ask.answer.cancelled()
    assert asks.claim(message(9, "calc", cause="calc-m5")) is None


async def test_what_comes_before_the_question_has_a_place_is_judged_later() -> None:
    asks = PendingQuestions()
    ask = asks.begin("calc")
    other, right = message(8, "calc", cause="calc-m1"), message(9, "calc", cause="calc-m5")
    verdicts = [asks.claim(other), asks.claim(right)]
    ask.set_position(5, DM)
    assert [v is not None and v.result() for v in verdicts] == [False, True]
    assert await ask.answer is right
    asks = PendingQuestions()
    ask = asks.begin("calc")
    verdict = asks.claim(message(9, "calc", cause="calc-m5"))
    asks.end(ask)
    assert verdict is not None
    assert not await verdict


def test_what_agents_are_made_of_is_importable_from_the_top() -> None:
    for name in hubbub.__all__:
        assert getattr(hubbub, name) is not None
        assert name in dir(hubbub)


@pytest.mark.slow
def test_importing_a_part_loads_nothing_heavy_that_it_does_not_need() -> None:
    for module, unwanted in (
        ("hubbub.client", "jinja2 openai hubbub.agents yaml"),
        ("hubbub.agents.launch", "openai jsonschema"),
        ("hubbub.embed.network", "openai jsonschema prometheus_client"),
    ):
        code = f"import sys, {module}; print(sys.modules.keys() & set('{unwanted}'.split()))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert done.stdout.strip() == b"set()"
