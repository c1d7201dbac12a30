"""Acknowledgements, questions between agents, and the package's exports and imports."""

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
def test_an_open_event_is_never_acknowledged(order: list[int]) -> None:
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


def test_a_message_answers_its_cause_its_parent_or_its_quote() -> None:
    for cause, expected in [
        ("m5", True), ("calc-m5", True), ("calc-m6", False), ("other-m5", False), (None, False),
    ]:  # fmt: skip
        assert is_answer(message(9, "calc", cause=cause, kind="agent"), 5, DM) is expected
    assert is_answer(message(9, "calc", cause="calc-m4", reply_to="m5", kind="agent"), 5, DM)
    assert is_answer(message(9, "calc", cause="calc-m4", quote="m5"), 5, DM)
    assert not is_answer(message(9, "calc", cause="calc-m5", quote="m4"), 5, DM)
    assert is_answer(message(9, "ann", thread="dm.ann.bot"), 5, "dm.ann.bot")
    assert not is_answer(message(9, "ann", thread="channel.desk"), 5, "dm.ann.bot")
    assert not is_answer(message(9, "ann", cause="m4"), 5, "dm.ann.bot")


async def test_a_question_claims_its_answer_once_and_no_other_message() -> None:
    asks = PendingQuestions()
    ask = asks.begin("calc")
    ask.set_position(5, DM)
    answer = message(9, "calc", cause="calc-m5")
    verdict = asks.claim(answer)
    assert verdict is not None
    assert await verdict
    assert await ask.answer is answer
    assert asks.claim(message(10, "calc", cause="calc-m5")) is None
    asks = PendingQuestions()
    ask = asks.begin("calc")
    ask.set_position(5, DM)
    assert asks.claim(message(9, "calc", cause="calc-m4")) is None
    assert asks.claim(message(9, "alice", cause="m5")) is None
    asks.end(ask)
    assert ask.answer.cancelled()
    assert asks.claim(message(9, "calc", cause="calc-m5")) is None


async def test_messages_before_the_questions_position_is_known_are_judged_later() -> None:
    asks = PendingQuestions()
    ask = asks.begin("calc")
    other, answer = message(8, "calc", cause="calc-m1"), message(9, "calc", cause="calc-m5")
    verdicts = [asks.claim(other), asks.claim(answer)]
    ask.set_position(5, DM)
    assert [v is not None and v.result() for v in verdicts] == [False, True]
    assert await ask.answer is answer
    asks = PendingQuestions()
    ask = asks.begin("calc")
    verdict = asks.claim(message(9, "calc", cause="calc-m5"))
    asks.end(ask)
    assert verdict is not None
    assert not await verdict


def test_every_export_can_be_imported_from_the_package() -> None:
    for name in hubbub.__all__:
        assert getattr(hubbub, name) is not None
        assert name in dir(hubbub)


@pytest.mark.slow
def test_importing_a_part_loads_no_heavy_module_that_it_does_not_need() -> None:
    for module, unwanted in (
        ("hubbub.client", "jinja2 openai hubbub.agents yaml"),
        ("hubbub.agents.launch", "openai jsonschema"),
        ("hubbub.embed.network", "openai jsonschema prometheus_client"),
    ):
        code = f"import sys, {module}; print(sys.modules.keys() & set('{unwanted}'.split()))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert done.stdout.strip() == b"set()"
