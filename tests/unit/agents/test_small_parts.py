"""The small parts: acknowledgements, questions, scopes, the package itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub
from hubbub.agents.python.link import Asks, answers
from hubbub.agents.python.scope import Scope, current_scope, entered
from hubbub.agents.runner import AckWindow
from tests.unit.agents.builders import message


def test_an_open_event_holds_back_those_behind_it() -> None:
    window = AckWindow()
    window.opened(3)
    assert window.done(3) == 3
    window = AckWindow()
    for seq in (3, 5, 8):
        window.opened(seq)
    assert window.done(5) == 2
    assert window.done(3) == 7
    assert window.done(8) == 8
    window = AckWindow()
    window.opened(4)
    assert window.done(2) == 3


@given(st.permutations(range(1, 9)))
def test_nothing_open_is_ever_acknowledged(order: list[int]) -> None:
    window = AckWindow()
    open_ = set(order)
    for seq in sorted(order):
        window.opened(seq)
    for seq in order:
        open_.discard(seq)
        upto = window.done(seq)
        assert all(left > upto for left in open_)
    assert upto == 8


DM = "dm.bot.calc"


def test_a_message_answers_what_caused_it_what_it_stands_under_or_quotes() -> None:
    for cause, yes in [
        ("m5", True), ("calc-m5", True), ("calc-m6", False), ("other-m5", False), (None, False),
    ]:  # fmt: skip
        assert answers(message(9, "calc", cause=cause, kind="agent"), 5, DM) is yes
    said = message(9, "calc", cause="calc-m4", reply_to="m5", kind="agent")
    assert answers(said, 5, DM)
    assert answers(message(9, "calc", cause="calc-m4", quote="m5"), 5, DM)
    assert not answers(message(9, "calc", cause="calc-m5", quote="m4"), 5, DM)
    assert answers(message(9, "ann", thread="dm.ann.bot"), 5, "dm.ann.bot")
    assert not answers(message(9, "ann", thread="channel.desk"), 5, "dm.ann.bot")
    assert not answers(message(9, "ann", cause="m4"), 5, "dm.ann.bot")


async def test_the_answer_goes_to_the_one_who_asked_and_no_other_message() -> None:
    asks = Asks()
    ask = asks.begin("calc")
    ask.numbered(5, DM)
    said = message(9, "calc", cause="calc-m5")
    verdict = asks.claim(said)
    assert verdict is not None
    assert await verdict
    assert await ask.answer is said
    assert asks.claim(message(10, "calc", cause="calc-m5")) is None
    asks = Asks()
    ask = asks.begin("calc")
    ask.numbered(5, DM)
    assert asks.claim(message(9, "calc", cause="calc-m4")) is None
    assert asks.claim(message(9, "alice", cause="m5")) is None
    asks.end(ask)
    assert ask.answer.cancelled()
    assert asks.claim(message(9, "calc", cause="calc-m5")) is None


async def test_what_comes_before_the_question_has_a_place_is_judged_later() -> None:
    asks = Asks()
    ask = asks.begin("calc")
    other, right = message(8, "calc", cause="calc-m1"), message(9, "calc", cause="calc-m5")
    verdicts = [asks.claim(other), asks.claim(right)]
    ask.numbered(5, DM)
    assert [v is not None and v.result() for v in verdicts] == [False, True]
    assert await ask.answer is right
    asks = Asks()
    ask = asks.begin("calc")
    verdict = asks.claim(message(9, "calc", cause="calc-m5"))
    asks.end(ask)
    assert verdict is not None
    assert not await verdict


def test_cids_count_up_and_are_the_same_in_a_repeated_run() -> None:
    first, again = Scope("bot-m1"), Scope("bot-m1")
    cids = [first.next_cid() for _ in range(3)]
    assert len(set(cids)) == 3
    assert [again.next_cid() for _ in range(3)] == cids
    assert Scope("bot-m1", 2).next_cid() not in cids
    assert Scope("bot-m2").next_cid() not in cids


async def test_a_scope_reaches_into_tasks_and_ends_with_its_block() -> None:
    async def look() -> Scope | None:
        return current_scope()

    with entered(Scope("bot-m1")) as scope:
        assert await asyncio.create_task(look()) is scope
    assert current_scope() is None


def test_what_agents_are_made_of_is_importable_from_the_top() -> None:
    for name in hubbub.__all__:
        assert getattr(hubbub, name) is not None
        assert name in dir(hubbub)


@pytest.mark.slow
def test_importing_a_part_loads_nothing_heavy_that_it_does_not_need() -> None:
    for module, unwanted in (
        ("hubbub.client", "jinja2 openai hubbub.agents yaml"),
        ("hubbub.agents.launch", "openai"),
    ):
        code = f"import sys, {module}; print(sys.modules.keys() & set('{unwanted}'.split()))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert done.stdout.strip() == b"set()"
