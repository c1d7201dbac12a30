"""A turn of an agent for the panel on the right: what it saw, did and spent. Pure."""

from __future__ import annotations

import json
from datetime import tzinfo

from rich.style import Style
from rich.text import Text

from hubbub.agents.turn.changes import told_changes
from hubbub.cli.chat.text import clip, one_line, visible
from hubbub.cli.full.about import facts
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step, ToolCallRecord, Turn

__all__ = ["turn_card", "turn_of"]

MOST = 600
"""Columns of an argument, result or text."""
BAR = 16
"""Columns of the longest bar."""
_QUIET = Style(color="#878787")
_BAD = Style(color="#d75f5f")


def turn_of(message: Message) -> str | None:
    """The id of the turn that sent a message; None if no turn did."""
    cause = message.cause_id or ""
    return cause if cause.startswith(f"{message.sender_id}-m") else None


def turn_card(turn: Turn, zone: tzinfo | None = None) -> Text:
    """The whole record, long texts cut."""
    start, end = turn.start, turn.end
    took = (turn.ended_at - turn.started_at).total_seconds() if turn.ended_at else None
    rows = [
        ("agent", turn.agent),
        ("in", start.thread_id),
        ("woken by", ", ".join(start.messages)),
        ("model", start.model or ""),
        ("started", f"{turn.started_at.astimezone(zone):%Y-%m-%d %H:%M:%S}"),
        ("took", f"{took:.1f} s" if took is not None else "runs"),
        ("attempts", str(turn.attempts) if turn.attempts > 1 else ""),
        ("tokens", f"{turn.tokens_in} in, {turn.tokens_out} out"),
        ("cost", f"{turn.cost_usd:.4f} USD" if turn.cost_usd is not None else ""),
        ("outcome", end.outcome if end else "runs"),
        ("reason", end.reason if end else ""),
        ("sent", ", ".join(turn.sent) or "nothing"),
    ]
    card = facts(f"turn {start.id}", rows)
    longest = max((step.duration_ms or 0 for step in turn.steps), default=0)
    for step in turn.steps:
        _add_step(card, step, longest)
    if end and end.text:
        card.append("\n\nnot published", style=_QUIET).append(f"\n{_cut(end.text)}")
    for title, text in (("prompt", start.prompt), ("system prompt", start.system_prompt)):
        if text:
            card.append(f"\n\n{title}", style="bold").append(f"\n{visible(text)}")
    return card


def _add_step(card: Text, step: Step, longest: float) -> None:
    card.append(f"\n\nstep {step.n}", style="bold")
    if step.duration_ms is not None:
        bar = "█" * max(1, round(BAR * step.duration_ms / longest)) if longest else ""
        card.append(f"  {bar} {step.duration_ms:.0f} ms", style=_QUIET)
    card.append(f"  {step.tokens_in}+{step.tokens_out} tokens", style=_QUIET)
    if step.text:
        card.append(f"\n{_cut(step.text)}")
    for call in step.calls:
        _add_call(card, call)


def _add_call(card: Text, call: ToolCallRecord) -> None:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    card.append(f"\n{one_line(call.name)}", style="bold").append(f" {_cut(arguments)}")
    if call.duration_ms is not None:
        card.append(f" {call.duration_ms:.0f} ms", style=_QUIET)
    if call.changed is not None:
        card.append(f"\n  {_cut(told_changes(call))}")
    if call.error is not None:
        card.append(f"\n  ✗ {one_line(call.error)}: {_cut(call.result or '')}", style=_BAD)
    else:
        card.append(f"\n  → {_cut(call.result) if call.result is not None else 'has not run'}")


def _cut(text: str) -> str:
    return clip(visible(text), MOST)
