"""An agent's answer to a message, derived from the record of its turn."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hubbub.network.services.receipts import WakeAnswer, answer_to
from hubbub.network.stored import StoredTurn
from hubbub.protocol.turns import Outcome, Steering, Step, ToolCallRecord, TurnEnd, TurnStart

pytestmark = pytest.mark.behaviour("H-102")


def turn(
    *steps: Step, woke: Sequence[int] = (4,), sent: Sequence[int] = (), end: Outcome | None = None
) -> StoredTurn:
    start = TurnStart(id="bob-m4", thread_id="dm.ann.bob", messages=tuple(f"m{n}" for n in woke))
    ended = TurnEnd(id="bob-m4", outcome=end).model_dump_json().encode() if end else None
    return StoredTurn(
        id="bob-m4",
        agent="bob",
        started_at=1.0,
        attempts=1,
        start=start.model_dump_json().encode(),
        steps=[step.model_dump_json().encode() for step in steps],
        sent=sent,
        ended_at=2.0 if end else None,
        end=ended,
    )


def steered(n: int, *seqs: int) -> Step:
    return Step(n=n, steered=tuple(Steering(message=f"m{seq}", text="") for seq in seqs))


def called(n: int, name: str, *, result: str | None = "ok", error: str | None = None) -> Step:
    call = ToolCallRecord(id="c", name=name, arguments={}, result=result, error=error)
    return Step(n=n, calls=(call,))


def test_a_waking_message_is_in_the_first_prompt_of_its_turn() -> None:
    assert answer_to(4, turn()) == WakeAnswer(1, None, None)
    assert answer_to(4, turn(sent=(9,))) == WakeAnswer(1, "answered", None)
    assert answer_to(4, turn(sent=(9,), end="finished")) == WakeAnswer(1, "answered", "finished")


def test_a_turn_that_ends_without_a_message_was_silent() -> None:
    assert answer_to(4, turn(Step(n=1), end="max_steps")) == WakeAnswer(1, "silent", "max_steps")


def test_a_steering_message_is_answered_by_a_later_message() -> None:
    steps = (Step(n=1), steered(2, 6, 7), Step(n=3))
    assert answer_to(6, turn(*steps, sent=(5,))) == WakeAnswer(2, None, None)
    assert answer_to(6, turn(*steps, sent=(5,), end="finished")) == WakeAnswer(
        2, "silent", "finished"
    )
    assert answer_to(7, turn(*steps, sent=(5, 8))) == WakeAnswer(2, "answered", None)


def test_a_message_that_is_in_no_prompt_yet_has_no_answer() -> None:
    assert answer_to(6, turn(Step(n=1), sent=(9,))) == WakeAnswer()
    ended = turn(Step(n=1), sent=(9,), end="cancelled")
    assert answer_to(6, ended) == WakeAnswer(None, None, "cancelled")


def test_a_successful_decline_takes_precedence_over_an_answer() -> None:
    done = turn(Step(n=1), called(2, "decline"), sent=(5,), end="finished")
    assert answer_to(4, done) == WakeAnswer(1, "declined", "finished")
    failed = turn(called(1, "decline", error="invalid_arguments"), end="finished")
    assert answer_to(4, failed) == WakeAnswer(1, "silent", "finished")
    undone = turn(called(1, "decline", result=None))
    assert answer_to(4, undone) == WakeAnswer(1, None, None)


def test_a_decline_does_not_apply_to_a_later_steering_message() -> None:
    steps = (called(1, "decline"), steered(2, 6))
    assert answer_to(6, turn(*steps, sent=(5, 9), end="finished")).answer == "answered"
    assert answer_to(4, turn(*steps, sent=(5, 9), end="finished")).answer == "declined"
