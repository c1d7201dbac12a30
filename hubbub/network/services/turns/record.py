"""The record of a turn, as it is told."""

from __future__ import annotations

from datetime import UTC, datetime

from hubbub.network.stored import NO_PROMPTS, Prompts, StoredTurn
from hubbub.protocol.turns import Step, Turn, TurnEnd, TurnStart

__all__ = ["turn_record"]


def turn_record(stored: StoredTurn, prompts: Prompts = NO_PROMPTS) -> Turn:
    """What the store has of it."""
    return Turn(
        start=TurnStart.model_validate_json(stored.start),
        agent=stored.agent,
        started_at=_time(stored.started_at),
        attempts=stored.attempts,
        system_prompt=prompts.system,
        prompt=prompts.user,
        steps=tuple(Step.model_validate_json(step) for step in stored.steps),
        end=TurnEnd.model_validate_json(stored.end) if stored.end is not None else None,
        ended_at=_time(stored.ended_at) if stored.ended_at is not None else None,
        sent=tuple(f"m{seq}" for seq in stored.sent),
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
