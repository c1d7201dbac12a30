"""Numbers, codes and commands as text for people. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from math import floor, log10
from typing import TYPE_CHECKING

from hubbub.people.text import counted, one_line
from hubbub.wording import did_you_mean

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
    "duration_text",
    "is_held_back",
    "moment",
    "outcome_text",
    "remaining_text",
    "sentence",
    "size_text",
    "span_text",
    "sums_text",
    "thousands",
    "turn_text",
    "unresolved_notes",
]

BAR = 16
"""Columns of a bar."""

OUTCOMES = {
    "finished": "finished",
    "no_action": "gave no usable answer",
    "max_steps": "reached its limit",
    "timeout": "ran out of time",
    "loop_detected": "repeated itself and was stopped",
    "cancelled": "was stopped",
    "model_error": "got no answer from its model",
    "handler_error": "failed in its handler",
    "budget_exhausted": "exhausted its budget",
}
"""How a turn ended, after the name of its agent."""


class CommandSyntax:
    """The syntax of commands in the shell (`hubbub tasks list`) or a chat (`/tasks list`)."""

    def __init__(self, before: str, shorten: Callable[[str], str] | None = None):
        """`shorten` abbreviates a command for a chat; None: a shell."""
        self._before, self._shorten = before, shorten

    @property
    def shell(self) -> bool:
        return self._shorten is None

    def __call__(self, command: str) -> str:
        return self._before + (command if self._shorten is None else self._shorten(command))

    def name(self, name: str) -> str:
        """A name as typed here: quoted in a shell, where `#general` would be a comment."""
        return shlex.quote(name) if self.shell else name


SHELL = CommandSyntax("hubbub ")


# Amounts ------------------------------------------------------------------------------------------


def dollars(usd: float) -> str:
    """`$0.0042`, to two significant digits."""
    digits = 1 - floor(log10(usd)) if 0 < usd < 1 else 2
    return f"${usd:.{digits}f}"


def thousands(count: float) -> str:
    """`999`, `12.3k`, `1.5M`."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if count >= size * 9.9995:
            return f"{count / size:.1f}".removesuffix(".0") + letter
    return f"{count:.0f}"


def span_text(seconds: float) -> str:
    """`8 s`, `12 min`, `3 h`, `2 d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def duration_text(milliseconds: float) -> str:
    """`7 ms`, `1.3 s`."""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"


def amount(limit: LimitName, value: float) -> str:
    """A value in the unit of its limit."""
    if limit == "usd":
        return dollars(value)
    if limit == "wall_clock":
        return span_text(value)
    return thousands(value) if limit == "tokens" else f"{value:.0f}"


def bar(used: float, of: float) -> str:
    """`████░░░░`; each nonzero part gets at least one block."""
    share = min(1.0, used / of) if of > 0 else 1.0
    full = min(BAR, max(1 if used > 0 else 0, round(share * BAR)))
    full = min(full, BAR - 1) if share < 1 else full
    return "█" * full + "░" * (BAR - full)


def budget_line(limit: LimitName, used: float, of: float, *, reached: bool = False) -> str:
    """`wakes       ████░░░░  4 of 8`."""
    past = "  reached" if reached or used >= of else ""
    shown = f"{amount(limit, used)} of {amount(limit, of)}"
    return f"{limit.replace('_', ' '):<10}  {bar(used, of)}  {shown}{past}"


def remaining_text(left: RemainingBudget) -> str:
    """A day's limit: its owner, then `budget_line`."""
    whose = "today" if left.whose == "network" else f"today, {left.whose}"
    return f"{whose:<14}  {budget_line(left.limit, left.used, left.of)}"


def sums_text(sums: Sums) -> str:
    """`3 turns, 12k tokens, $0.04`."""
    turns = counted(sums.turns, "turn", "turns")
    tokens = f"{thousands(sums.tokens_in + sums.tokens_out)} tokens"
    return ", ".join([turns, tokens, *([dollars(sums.usd)] if sums.usd else [])])


def moment(at: datetime) -> str:
    """The time of day, with the date if it is more than half a day away."""
    local = at.astimezone()
    near = abs(local - datetime.now(UTC)) < timedelta(hours=12)
    return f"{local:%H:%M}" if near else f"{local:%d %b %H:%M}"


# Codes --------------------------------------------------------------------------------------------


def outcome_text(outcome: str | None, reason: str = "") -> str:
    """How a turn ended, to follow its agent's name; None: it is running."""
    if outcome is None:
        return "running"
    text = OUTCOMES.get(outcome, outcome.replace("_", " "))
    return f"{text}: {one_line(reason)}" if reason else text


def turn_text(turn: TurnSummary) -> str:
    """`finished  3 steps  12k tokens  $0.04  1.3 s`."""
    parts = [outcome_text(turn.outcome, turn.reason)]
    if turn.waits_for:
        parts = [f"waits for approval {', '.join(turn.waits_for)}"]
    parts.append(counted(turn.steps, "step", "steps"))
    if turn.tokens_in or turn.tokens_out:
        parts.append(f"{thousands(turn.tokens_in + turn.tokens_out)} tokens")
    if turn.cost_usd is not None:
        parts.append(dollars(turn.cost_usd))
    if turn.duration_ms is not None:
        parts.append(duration_text(turn.duration_ms))
    return "  ".join(parts)


def sentence(code: str) -> str:
    """The explanation of a reason code; the code itself if it is not one of the hub's."""
    from hubbub.network.wakes import SENTENCES, Reason  # imports all models of the config

    try:
        return SENTENCES[Reason(code)]
    except ValueError:
        return one_line(code)


def is_held_back(code: str) -> bool:
    """Whether a code means that a limit or a person prevented a wake."""
    kinds = ("budget", "daily", "loop", "stopped", "breaker", "taken", "hop")
    return code.partition("_")[0] in kinds


def _remedy(code: str, typed: CommandSyntax) -> str:
    """What the person can do about a code; empty if nothing."""
    match code.partition("_")[0]:
        case "stopped" | "breaker":
            return f"list stops with `{typed('network stops')}`, resume with `{typed('resume')}`"
        case "taken":
            return f"end that with `{typed('agents release')}`"
        case "budget":
            return "send another message to continue"
        case "daily":
            return f"see `{typed('turns spending')}`; the limit resets at midnight UTC"
        case "loop":
            return "a message from you to one of them lets them continue"
        case _:
            return ""


def delivery_notes(result: SendResult, typed: CommandSyntax) -> Sequence[str]:
    """Notes on a sent message: agents that were not woken and why, busy agents, and notes by
    mods."""
    lines = []
    if result.message.mode is not None and not (result.queued or result.not_woken):
        lines.append("this message woke no agent; mention the one that it is for")
    for agent, code in result.not_woken.items():
        remedy = _remedy(code, typed)
        why = f"{sentence(code)} ({one_line(code)})"
        lines.append(f"{agent} was not woken: {why}" + (f"; {remedy}" if remedy else ""))
    for agent, count in result.queued.items():
        if count > 1:
            lines.append(
                f"{agent} is busy with {counted(count - 1, 'other message', 'other messages')}"
            )
    lines += map(one_line, result.notes)
    return lines


def unresolved_notes(result: SendResult, known: Collection[str]) -> Sequence[str]:
    """Notes on mentions of a sent message that notify nobody. `known` are the participants; a large
    network does not list them."""
    message = result.message
    names = [n for n in result.unresolved if n not in (message.sender_id, message.sent_by)]
    unknown = [name for name in names if known and name not in known]
    lines = []
    if unknown:
        hint = did_you_mean(unknown[0], known) if len(unknown) == 1 else ""
        lines.append(f"there is no participant {_at(unknown)}{hint}")
    if outside := [name for name in names if name not in unknown]:
        lines.append(f"not in this thread, so not notified: {_at(outside)}")
    return lines


def _at(names: Sequence[str]) -> str:
    return ", ".join(f"@{one_line(name)}" for name in names)


def size_text(size: int) -> str:
    """`812 bytes`, `1.2 kB`, `25.0 MB`."""
    for unit, letters in ((1_000_000, "MB"), (1000, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {letters}"
    return f"{size} byte{'' if size == 1 else 's'}"
