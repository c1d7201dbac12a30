"""The parts of the page about wakes: the tables that the hub decides by."""

from __future__ import annotations

from collections.abc import Iterator

from generating.models import fields
from generating.tables import table
from hubbub.config import budgets
from hubbub.network.wakes import RULES, SENTENCES, SUPPRESSIONS, Reason, WakeContext, WakeRule

__all__ = ["wakes_parts"]

WAKING = (
    Reason.DIRECT,
    Reason.MENTION,
    Reason.LAST_SPEAKER,
    Reason.BROADCAST,
    Reason.RESULT,
    Reason.TIMER,
)
DEFAULT_POLICY = "humans"


def wakes_parts() -> dict[str, str]:
    others = [reason for reason in Reason if reason not in SUPPRESSIONS and reason not in WAKING]
    return {
        "wake_rules": table(("message", "from", "wakes", "reply"), list(_rules())),
        "wake_reasons": table(("code", "the message wakes, because"), _meanings(WAKING)),
        "wake_limits": table(
            ("code", "the message does not wake, because", "comes from"),
            [
                (f"`{code}`", SENTENCES[code], f"`{origin}`")
                for code, origin in SUPPRESSIONS.items()
            ],
        ),
        "wake_absences": table(("code", "the message does not wake, because"), _meanings(others)),
        "wake_budgets": fields(budgets.Budgets),
        "wake_loop_limit": fields(budgets.LoopLimitConfig),
        "wake_breaker": fields(budgets.BreakerConfig),
    }


def _meanings(reasons: tuple[Reason, ...] | list[Reason]) -> list[tuple[str, str]]:
    return [(f"`{reason}`", SENTENCES[reason]) for reason in reasons]


def _rules() -> Iterator[tuple[str, str, str, str]]:
    for rule in RULES:
        yield _place(rule), _speaker(rule), rule.targets, _reply(rule)


def _place(rule: WakeRule) -> str:
    if rule.place is not WakeContext.BROADCAST:
        return rule.place
    default = ", the default" if rule.policy == DEFAULT_POLICY else ""
    return f"broadcast (`{rule.policy}`{default})"


def _speaker(rule: WakeRule) -> str:
    if rule.by_person is None:
        return "anybody"
    return "a person" if rule.by_person else "an agent or a service"


def _reply(rule: WakeRule) -> str:
    if rule.mentioned:
        return f"{rule.reply}; {rule.mentioned} of those it mentions"
    return rule.reply or ""
