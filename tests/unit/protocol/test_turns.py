"""The record of a turn: what it adds up to, and what older records look like."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from hubbub.protocol.turns import Step, ToolCallRecord, Turn, TurnStart


def turn(*costs: float | None) -> Turn:
    return Turn(
        start=TurnStart(id="bot-m1", thread_id="dm.ann.bot", messages=("m1",)),
        agent="bot",
        started_at=datetime(2026, 1, 2, tzinfo=UTC),
        steps=tuple(Step(n=n, cost_usd=cost, tokens_in=5) for n, cost in enumerate(costs, 1)),
    )


def test_records_of_a_version_without_cost_and_offsets_are_read() -> None:
    step = Step.model_validate_json(
        '{"n": 1, "calls": [{"id": "c", "name": "add", "arguments": {}, "duration_ms": 3.5}]}'
    )
    assert (step.cost_usd, step.at_ms) == (None, None)
    assert (step.calls[0].at_ms, step.calls[0].duration_ms) == (None, 3.5)


def test_a_cost_or_an_offset_that_cannot_be_is_refused() -> None:
    for field in ("cost_usd", "at_ms"):
        for wrong in (-0.001, float("inf"), float("nan")):
            with pytest.raises(ValidationError):
                Step.model_validate({"n": 1, field: wrong})
    with pytest.raises(ValidationError):
        ToolCallRecord(id="c", name="add", arguments={}, at_ms=-1.0)
