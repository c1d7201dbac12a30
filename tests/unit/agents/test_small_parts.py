"""The small parts: acknowledgements, questions, scopes, the package itself."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub
from hubbub.agents.acks import AckWindow
from hubbub.agents.python.asks import Asks, answers
from hubbub.agents.python.scope import Scope, current_scope, entered
from tests.unit.agents.builders import message


class TestAckWindow:
    def test_what_is_done_in_order_is_acknowledged_at_once(self) -> None:
        window = AckWindow()
        window.opened(3)
        assert window.done(3) == 3

    def test_an_open_event_holds_back_those_behind_it(self) -> None:
        window = AckWindow()
        for seq in (3, 5, 8):
            window.opened(seq)
        assert window.done(5) == 2
        assert window.done(3) == 7
        assert window.done(8) == 8

    @given(st.permutations(range(1, 9)))
    def test_nothing_open_is_ever_acknowledged(self, order: list[int]) -> None:
        window = AckWindow()
        open_ = set(order)
        for seq in sorted(order):
            window.opened(seq)
        for seq in order:
            open_.discard(seq)
            upto = window.done(seq)
            assert all(left > upto for left in open_)
        assert upto == 8

    def test_a_position_that_was_never_opened_changes_nothing(self) -> None:
        window = AckWindow()
        window.opened(4)
        assert window.done(2) == 3


DM = "dm.bot.calc"


class TestAnswers:
    @pytest.mark.parametrize(
        ("cause", "yes"),
        [("m5", True), ("calc-m5", True), ("calc-m6", False), ("other-m5", False), (None, False)],
    )
    def test_a_message_answers_what_caused_it(self, cause: str | None, yes: bool) -> None:
        assert answers(message(9, "calc", cause=cause, kind="agent"), 5, DM) is yes

    def test_a_reply_answers_what_it_stands_under(self) -> None:
        said = message(9, "calc", cause="calc-m4", reply_to="m5", kind="agent")
        assert answers(said, 5, DM)

    def test_a_quote_decides_which_of_several_messages_is_meant(self) -> None:
        assert answers(message(9, "calc", cause="calc-m4", quote="m5"), 5, DM)
        assert not answers(message(9, "calc", cause="calc-m5", quote="m4"), 5, DM)

    def test_what_a_person_says_next_in_the_thread_is_the_answer(self) -> None:
        assert answers(message(9, "ann", thread="dm.ann.bot"), 5, "dm.ann.bot")
        assert not answers(message(9, "ann", thread="channel.desk"), 5, "dm.ann.bot")
        assert not answers(message(9, "ann", cause="m4"), 5, "dm.ann.bot")


class TestAsks:
    async def test_the_answer_goes_to_the_one_who_asked(self) -> None:
        asks = Asks()
        ask = asks.begin("calc")
        ask.numbered(5, DM)
        said = message(9, "calc", cause="calc-m5")
        verdict = asks.claim(said)
        assert verdict is not None
        assert await verdict
        assert await ask.answer is said
        assert asks.claim(message(10, "calc", cause="calc-m5")) is None

    async def test_other_messages_are_nobodys_answer(self) -> None:
        asks = Asks()
        ask = asks.begin("calc")
        ask.numbered(5, DM)
        assert asks.claim(message(9, "calc", cause="calc-m4")) is None
        assert asks.claim(message(9, "alice", cause="m5")) is None
        asks.end(ask)
        assert ask.answer.cancelled()
        assert asks.claim(message(9, "calc", cause="calc-m5")) is None

    async def test_what_comes_before_the_question_has_a_place_is_judged_later(self) -> None:
        asks = Asks()
        ask = asks.begin("calc")
        other, right = message(8, "calc", cause="calc-m1"), message(9, "calc", cause="calc-m5")
        verdicts = [asks.claim(other), asks.claim(right)]
        ask.numbered(5, DM)
        assert [v is not None and v.result() for v in verdicts] == [False, True]
        assert await ask.answer is right

    async def test_an_early_message_is_let_go_when_the_question_could_not_be_asked(self) -> None:
        asks = Asks()
        ask = asks.begin("calc")
        verdict = asks.claim(message(9, "calc", cause="calc-m5"))
        asks.end(ask)
        assert verdict is not None
        assert not await verdict


class TestScope:
    def test_cids_count_up_and_are_the_same_in_a_repeated_run(self) -> None:
        first, again = Scope("bot-m1"), Scope("bot-m1")
        cids = [first.next_cid() for _ in range(3)]
        assert len(set(cids)) == 3
        assert [again.next_cid() for _ in range(3)] == cids
        assert Scope("bot-m1", 2).next_cid() not in cids
        assert Scope("bot-m2").next_cid() not in cids

    async def test_a_scope_reaches_into_tasks_and_ends_with_its_block(self) -> None:
        async def look() -> Scope | None:
            return current_scope()

        with entered(Scope("bot-m1")) as scope:
            assert await asyncio.create_task(look()) is scope
        assert current_scope() is None


class TestPackage:
    @pytest.mark.parametrize("name", hubbub.__all__)
    def test_what_agents_are_made_of_is_importable_from_the_top(self, name: str) -> None:
        assert getattr(hubbub, name) is not None
        assert name in dir(hubbub)

    def test_another_name_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError, match="no attribute 'Agnet'"):
            getattr(importlib.import_module("hubbub"), "Agnet")  # noqa: B009 - that is the test

    @pytest.mark.slow
    def test_importing_the_client_loads_nothing_of_agents_or_models(self) -> None:
        code = (
            "import sys, hubbub.client\n"
            "print([m for m in ('jinja2', 'openai', 'hubbub.agents', 'yaml') if m in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]"

    @pytest.mark.slow
    def test_importing_agents_does_not_load_the_models_library(self) -> None:
        code = "import sys, hubbub.agents.launch\nprint('openai' in sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "False"
