"""Amounts, bars, codes and trees in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.control.tree import Whole, drawn, lines_of
from hubbub.cli.control.words import (
    BAR,
    CHAT,
    OUTCOMES,
    SHELL,
    aligned,
    bar,
    budget_line,
    kept_back,
    moment,
    outcome_words,
    sentence,
    span_words,
    thousands,
    took_words,
)
from hubbub.network.wakes import Reason
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Envelope, InteractionWake, Receipt, SendResult, TurnSummary
from hubbub.protocol.spending import BudgetState, Sums
from hubbub.protocol.turns import Outcome
from tests.unit.cli.chatting import NOON, said


def test_every_outcome_of_a_turn_has_its_words() -> None:
    assert set(get_args(Outcome)) <= set(OUTCOMES)
    assert outcome_words(None) == "at work"
    assert outcome_words("budget_exhausted", "usd") == "has used up its budget: usd"
    assert outcome_words("of_a_newer_hub") == "of a newer hub"


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0"), (999, "999"), (9999, "9999"), (12_345, "12.3k"), (200_000, "200k"), (1.5e7, "15M")],
)
def test_large_numbers_are_short(count: float, words: str) -> None:
    assert thousands(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(8, "8 s"), (119, "119 s"), (720, "12 min"), (10_800, "3 h"), (200_000, "2 d")],
)
def test_times_are_in_the_unit_that_fits(seconds: float, words: str) -> None:
    assert span_words(seconds) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0, "0 ms"), (7.4, "7 ms"), (999.4, "999 ms"), (999.6, "1.0 s"), (28_304, "28.3 s")],
)
def test_what_took_less_than_a_second_is_told_in_milliseconds(
    milliseconds: float, words: str
) -> None:
    assert took_words(milliseconds) == words


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_a_bar_is_full_only_when_the_limit_is_reached(used: float, of: float) -> None:
    drawn = bar(used, of)
    assert len(drawn) == BAR
    assert ("░" not in drawn) == (used >= of)
    if used > 0:
        assert drawn[0] == "█"


def test_a_limit_that_is_reached_says_so() -> None:
    assert budget_line("fan_out", 2, 8).startswith("fan out     ████░")
    assert budget_line("usd", 0.5, 0.5).endswith("$0.50 of $0.50  reached")
    assert budget_line("wakes", 3, 8, reached=True).endswith("3 of 8  reached")


def test_a_moment_of_another_day_has_its_date() -> None:
    now = datetime.now(UTC)
    assert moment(now - timedelta(days=40), UTC).startswith(f"{now - timedelta(days=40):%d %b}")
    assert moment(now, UTC) in (f"{now:%H:%M}", f"{now:%d %b %H:%M}")


@pytest.mark.behaviour("H-132")
def test_who_sends_is_told_whom_it_does_not_wake_why_and_what_to_do() -> None:
    result = SendResult(
        id="m1",
        seq=1,
        thread_id="channel.general",
        tseq=1,
        queued={"bob": 3, "eve": 1},
        not_woken={"dan": "stopped", "fay": "daily_agent", "hal": "of_a_mod"},
    )
    assert kept_back(result, CHAT) == [
        f"dan was not woken: {sentence('stopped')} (stopped); /stops lists what is stopped, "
        "/resume lifts it",
        f"fay was not woken: {sentence('daily_agent')} (daily_agent); /spending shows the day's; "
        "it goes on tomorrow (UTC)",
        "hal was not woken: of_a_mod (of_a_mod)",
        "bob is busy: 2 before this one",
    ]
    assert "hubbub resume lifts it" in kept_back(result, SHELL)[0]


@pytest.mark.parametrize("code", list(Reason))
def test_every_code_has_a_sentence(code: Reason) -> None:
    assert sentence(code) != code


def test_commands_are_typed_as_they_are_there() -> None:
    assert SHELL("hand-back bob") == "hubbub hand-back bob"
    assert CHAT("hand-back bob") == "/handback bob"
    assert (SHELL.name("#desk"), CHAT.name("#desk")) == ("'#desk'", "#desk")


def test_columns_stand_under_each_other_and_are_safe() -> None:
    assert aligned(("A", "B"), [("x", "y\n\x1b"), ("wide", "日")]) == [
        "A     B",
        "x     y <U+001B>",
        "wide  日",
    ]


# Trees --------------------------------------------------------------------------------------------


def entry(seq: int, sender: str, text: str, cause: str | None = None, to: str = "bob") -> Message:
    message = said(seq, text, sender=sender, thread=f"dm.{'.'.join(sorted((sender, to)))}")
    return message.model_copy(update={"cause_id": cause, "interaction_id": "i1"})


def wake(seq: int, agent: str, turn: str) -> InteractionWake:
    return InteractionWake(
        message_id=f"m{seq}", agent=agent, reason="direct", reply="required", turn=turn,
        state="ended",
    )  # fmt: skip


def turn(id: str, agent: str, **more: object) -> TurnSummary:
    told: dict[str, object] = {"id": id, "agent": agent, "thread_id": "x", "started_at": NOON}
    return TurnSummary.model_validate({**told, **more})


def tree(whole: Whole) -> list[str]:
    return lines_of(drawn(whole))


@pytest.mark.behaviour("H-120")
def test_a_tree_has_what_was_said_under_the_turn_that_said_it() -> None:
    whole = Whole("i1", more=False)
    whole.messages = [
        entry(1, "ann", "go"),
        entry(2, "bob", "help", "bob-m1", to="eve"),
        entry(3, "eve", "no", "m2", to="bob"),
        entry(4, "ann", "and that", "m1"),
    ]
    whole.wakes = [wake(1, "bob", "bob-m1"), wake(4, "bob", "bob-m1"), wake(2, "eve", "eve-m2")]
    whole.turns = {
        "bob-m1": turn("bob-m1", "bob", outcome="finished", steps=2, tokens_in=9, cost_usd=0.5),
        "eve-m2": turn("eve-m2", "eve", waits_for=("a1",), steps=1),
    }
    assert tree(whole) == [
        "interaction i1  2 turns, 9 tokens, $0.50",
        "└── m1 ann → bob  go",
        "    ├── ▸ bob  finished  2 steps  9 tokens  $0.50  bob-m1",
        "    │   └── m2 bob → eve  help",
        "    │       ├── ▸ eve  waits for approval a1  1 step  eve-m2",
        "    │       └── m3 eve → bob  no",
        "    └── m4 ann → bob  and that",
        "        └── ▸ bob  in turn bob-m1, above",
    ]


def test_a_tree_says_who_was_kept_asleep_and_what_is_not_for_the_reader() -> None:
    whole = Whole("i1", more=True, hidden=3)
    whole.messages = [entry(1, "ann", "go\x07\nnow")]
    whole.envelopes = [
        Envelope(id="m2", seq=2, thread_id="dm.bob.eve", sender_id="bob", sender_kind="agent",
                 type="direct", recipients=("eve",), cause_id="m1", hop=1, sent_at=NOON)
    ]  # fmt: skip
    kept = Receipt(participant="bob", kind="agent", present=True, delivered=True, woken=False,
                   reason="stopped", explanation="a person has stopped it")  # fmt: skip
    whole.kept = {"m1": [kept]}
    assert tree(whole)[1:] == [
        "├── m1 ann → bob  go<U+0007> now",
        "│   ├── ▹ bob  not woken: a person has stopped it",
        "│   └── m2 bob → eve  (not for you)",
        "├── 2 messages of others",
        "└── it goes on further down the log",
    ]


def test_a_tree_ends_with_the_budget() -> None:
    whole = Whole("i1", more=False)
    whole.messages = [entry(1, "ann", "go")]
    whole.budget = BudgetState(
        interaction="i1", opened_by="ann", opened_at=NOON, limits={"wakes": 2, "fan_out": 8},
        used={"wakes": 2}, reached=("wakes", "fan_out"), sums=Sums(turns=1, usd=0.5), active=False,
    )  # fmt: skip
    lines = tree(whole)
    assert lines[0] == "interaction i1  opened by ann, 1 turn, 0 tokens, $0.50, over"
    assert lines[2] == f"├── wakes       {'█' * BAR}  2 of 2  reached"
    assert lines[3] == "└── fan out reached"
