"""Answers of the models of roles, and the roles of recorded turns."""

from __future__ import annotations

from pydantic import JsonValue

from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import ScriptedAnswer
from tests.interaction.agent_harness import call, says

__all__ = ["BOTH", "judge", "plan", "roles", "route"]

BOTH: list[JsonValue] = [
    {"id": 1, "goal": "price of the lamp", "executor": "price_of",
     "arguments": {"article": "lamp"}},
    {"id": 2, "goal": "price of the clock", "executor": "price_of",
     "arguments": {"article": "clock"}},
    {"id": 3, "goal": "add them", "executor": "total_of",
     "arguments": {"prices": ["$step_1_result", "$step_2_result"],
                   "note": " (lamp $step_1_result)"}},
]  # fmt: skip


def route(target: str, confidence: float = 0.9, **more: JsonValue) -> ScriptedAnswer:
    return says(call("route", target=target, confidence=confidence, **more))


def plan(steps: list[JsonValue]) -> ScriptedAnswer:
    return says(call("submit_plan", steps=steps))


def judge(verdict: str, score: int = 4, why: str = "because", **more: JsonValue) -> ScriptedAnswer:
    return says(call("judge", verdict=verdict, scores=scores(score), reasoning=why, **more))


def scores(score: int) -> dict[str, JsonValue]:
    """The same score for each criterion."""
    return dict.fromkeys(("completeness", "correctness", "format"), score)


def roles(turn: Turn) -> list[str]:
    """The role of each step, or the runtime's own action."""
    return [step.role or str(step.made) for step in turn.steps]
