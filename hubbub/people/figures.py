"""Numbers, codes and what somebody types, in the words that people are shown. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import floor, log10
from typing import TYPE_CHECKING

from hubbub.people.text import counted, one_line

if TYPE_CHECKING:
    from hubbub.protocol.operations import SendResult, TurnSummary
    from hubbub.protocol.spending import LimitName, RemainingBudget, Sums

__all__ = [
    "OUTCOMES",
    "SHELL",
    "CommandSyntax",
    "amount",
    "bar",
    "budget_line",
    "delivery_notes",
    "dollars",
    "holds_back",
    "left_words",
    "moment",
    "outcome_words",
    "sentence",
    "size_words",
    "span_words",
    "sums_words",
    "thousands",
    "took_words",
    "turn_words",
]

BAR = 16
"""Columns of a bar."""

OUTCOMES = {
    "finished": "finished",
    "no_action": "gave no usable answer",
    "max_steps": "ran out of steps",
    "timeout": "ran out of time",
    "loop_detected": "repeated itself and was stopped",
    "cancelled": "was stopped",
    "model_error": "got no answer from its model",
    "handler_error": "failed in its handler",
    "budget_exhausted": "has used up its budget",
}
"""How a turn ended, after the name of its agent."""


class CommandSyntax:
    """How a command is typed where this person is: `hubbub tasks list`, `/tasks list`."""

    def __init__(self, before: str, shorten: Callable[[str], str] | None = None):
        """`shorten`: what a chat leaves out of a command; None: this is a shell."""
        self._before, self._shorten = before, shorten

    @property
    def shell(self) -> bool:
        return self._shorten is None

    def __call__(self, command: str) -> str:
        return self._before + (command if self._shorten is None else self._shorten(command))

    def name(self, name: str) -> str:
        """A name as it is typed here: a shell takes `#general` for a comment."""
        return shlex.quote(name) if self.shell else name


SHELL = CommandSyntax("hubbub ")


# Amounts ------------------------------------------------------------------------------------------


def dollars(usd: float) -> str:
    """`$0.0042`, to two digits that count."""
    digits = 1 - floor(log10(usd)) if 0 < usd < 1 else 2
    return f"${usd:.{digits}f}"


def thousands(count: float) -> str:
    """`999`, `12.3k`, `1.5M`."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if count >= size * 9.9995:
            return f"{count / size:.1f}".removesuffix(".0") + letter
    return f"{count:.0f}"


def span_words(seconds: float) -> str:
    """`8 s`, `12 min`, `3 h`, `2 d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def took_words(milliseconds: float) -> str:
    """`7 ms`, `1.3 s`."""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def amount(limit: LimitName, value: float) -> str:
    """So much of what is limited."""
    if limit == "usd":
        return dollars(value)
    if limit == "wall_clock":
        return span_words(value)
    return thousands(value) if limit == "tokens" else f"{value:.0f}"


def bar(used: float, of: float) -> str:
    """`████░░░░`; at least one block of each that there is any of."""
    share = min(1.0, used / of) if of > 0 else 1.0
    full = min(BAR, max(1 if used > 0 else 0, round(share * BAR)))
    full = min(full, BAR - 1) if share < 1 else full
    return "█" * full + "░" * (BAR - full)


def budget_line(limit: LimitName, used: float, of: float, *, reached: bool = False) -> str:
    """`wakes       ████░░░░  4 of 8`."""
    past = "  reached" if reached or used >= of else ""
    shown = f"{amount(limit, used)} of {amount(limit, of)}"
    return f"{limit.replace('_', ' '):<10}  {bar(used, of)}  {shown}{past}"


def left_words(left: RemainingBudget) -> str:
    """A day's limit as a line: whose it is, then as `budget_line`."""
    whose = "today" if left.whose == "network" else f"today, {left.whose}"
    return f"{whose:<14}  {budget_line(left.limit, left.used, left.of)}"


def sums_words(sums: Sums) -> str:
    """`3 turns, 12k tokens, $0.04`."""
    turns = counted(sums.turns, "turn", "turns")
    tokens = f"{thousands(sums.tokens_in + sums.tokens_out)} tokens"
    return ", ".join([turns, tokens, *([dollars(sums.usd)] if sums.usd else [])])


def moment(at: datetime) -> str:
    """The time of day, with the date if that is more than half a day away."""
    local = at.astimezone()
    near = abs(local - datetime.now(UTC)) < timedelta(hours=12)
    return f"{local:%H:%M}" if near else f"{local:%d %b %H:%M}"


# Codes --------------------------------------------------------------------------------------------


def outcome_words(outcome: str | None, reason: str = "") -> str:
    """How a turn ended, after its agent's name; None: it has not."""
    if outcome is None:
        return "running"
    words = OUTCOMES.get(outcome, outcome.replace("_", " "))
    return f"{words}: {one_line(reason)}" if reason else words


def turn_words(turn: TurnSummary) -> str:
    """`finished  3 steps  12k tokens  $0.04  1.3 s`."""
    parts = [outcome_words(turn.outcome, turn.reason)]
    if turn.waits_for:
        parts = [f"waits for approval {', '.join(turn.waits_for)}"]
    parts.append(counted(turn.steps, "step", "steps"))
    if turn.tokens_in or turn.tokens_out:
        parts.append(f"{thousands(turn.tokens_in + turn.tokens_out)} tokens")
    if turn.cost_usd is not None:
        parts.append(dollars(turn.cost_usd))
    if turn.duration_ms is not None:
        parts.append(took_words(turn.duration_ms))
    return "  ".join(parts)


def sentence(code: str) -> str:
    """The reason of a code; the code itself if it is none of the hub's."""
    from hubbub.network.wakes import SENTENCES, Reason  # it reads the whole config's models

    try:
        return SENTENCES[Reason(code)]
    except ValueError:
        return one_line(code)


def holds_back(code: str) -> bool:
    """Whether a code says that a limit or a person prevented the wake of an agent."""
    kinds = ("budget", "daily", "loop", "stopped", "breaker", "taken", "hop")
    return code.partition("_")[0] in kinds


def _remedy(code: str, typed: CommandSyntax) -> str:
    """What somebody does about a code; empty if there is nothing to be done."""
    match code.partition("_")[0]:
        case "stopped" | "breaker":
            return f"{typed('network stops')} lists what is stopped, {typed('resume')} lifts it"
        case "taken":
            return f"{typed('agents release')} ends that"
        case "budget":
            return "write again to go on"
        case "daily":
            return f"{typed('turns spending')} shows the day's; it goes on tomorrow (UTC)"
        case "loop":
            return "a word of yours to one of them lets them go on"
        case _:
            return ""


def delivery_notes(result: SendResult, typed: CommandSyntax) -> Sequence[str]:
    """What the hub says besides that the message is sent: which agents are not woken and why, where
    other work comes first, and what mods let the sender know."""
    lines = []
    for agent, code in result.not_woken.items():
        remedy = _remedy(code, typed)
        why = f"{sentence(code)} ({one_line(code)})"
        lines.append(f"{agent} was not woken: {why}" + (f"; {remedy}" if remedy else ""))
    for agent, count in result.queued.items():
        if count > 1:
            lines.append(f"{agent} is busy: {count - 1} before this one")
    lines += map(one_line, result.notes)
    return lines


def size_words(size: int) -> str:
    """`812 bytes`, `1.2 kB`, `25.0 MB`."""
    for unit, letters in ((1_000_000, "MB"), (1000, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {letters}"
    return f"{size} byte{'' if size == 1 else 's'}"
