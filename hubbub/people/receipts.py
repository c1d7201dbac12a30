"""The whole story of one message, from its receipts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from hubbub.people.figures import outcome_words
from hubbub.people.messages import marks, speaker, where
from hubbub.people.text import clip, one_line
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Receipt, Receipts

__all__ = ["receipt_words", "story"]

MOST = 200
"""Columns of the message itself."""
_ANSWERS = {
    "answered": "it answered",
    "declined": "it said that it would not answer",
    "silent": "it ended without a word",
}


def receipt_words(receipt: Receipt, *, why: bool = True) -> str:
    """`delivered; woken (mention): it mentions the agent; turn editor-m4 runs; it answered`.

    Without `why`: what stands beside it says whether it was woken, and by which turn.
    """
    there = receipt.delivered or receipt.step is not None
    got = "read" if receipt.read else "delivered" if there else "not there yet"
    away = "" if receipt.present or there else " (away)"
    parts = [got + away]
    if receipt.kind == "agent" and why:
        verb = "woken" if receipt.woken else "not woken"
        parts.append(f"{verb} ({receipt.reason}): {receipt.explanation}")
    if receipt.turn is not None and why:
        how = f": {outcome_words(receipt.outcome)}" if receipt.outcome else ""
        state = {"pending": "is to begin", "running": "runs"}.get(receipt.state or "", "ended")
        parts.append(f"turn {receipt.turn} {state}{how}")
    if receipt.step is not None:
        parts.append(f"in its prompt at step {receipt.step}")
    elif receipt.turn is not None:
        parts.append("in no prompt yet")
    if receipt.answer is not None:
        parts.append(_ANSWERS[receipt.answer])
    return one_line("; ".join(parts))


def story(message: Message | None, receipts: Receipts, zone: tzinfo | None = None) -> Sequence[str]:
    """What the message is, and what has become of it with each of its readers."""
    lines = [] if message is None else _head(message, zone)
    width = max((len(each.participant) for each in receipts.receipts), default=0)
    lines += [f"  {r.participant:<{width}}  {receipt_words(r)}" for r in receipts.receipts]
    if not receipts.receipts:
        lines.append("  nobody else reads this thread")
    if receipts.more:
        lines.append("  and others")
    return lines


def _head(message: Message, zone: tzinfo | None) -> list[str]:
    sent = message.sent_at.astimezone(zone)
    head = f"{message.id}  {speaker(message)} {where(message)}"
    because = f", because of {message.cause_id}" if message.cause_id else ""
    return [
        " ".join(part for part in (head, marks(message, zone)) if part),
        f"  {clip(one_line(message.text), MOST)}",
        f"  stored {sent:%Y-%m-%d %H:%M:%S}, no. {message.tseq} of its thread; "
        f"interaction {message.interaction_id}, hop {message.hop}{because}",
    ]
