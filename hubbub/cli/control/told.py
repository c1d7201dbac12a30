"""What came of it, in words and as data. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

from hubbub.cli.chat.text import clip, one_line
from hubbub.cli.control import story as stories
from hubbub.cli.control.state import (
    approval_words,
    breaker_words,
    decided_words,
    stopped_words,
    takeover_words,
)
from hubbub.cli.control.words import (
    Typed,
    aligned,
    dollars,
    left_words,
    moment,
    sums_words,
    thousands,
)
from hubbub.protocol.control import Approval, Approvals, Breakers, Requests, Stops, Takeovers
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Receipts, WakeExplanation
from hubbub.protocol.spending import Spending, SpendingRow

if TYPE_CHECKING:
    from rich.tree import Tree

    from hubbub.cli.control.tree import Whole

__all__ = [
    "Answer",
    "approvals",
    "breakers",
    "decided",
    "explained",
    "good",
    "interaction",
    "requests",
    "spending",
    "stops",
    "story",
]

TASK = 60
"""Columns of what a request asks for."""
Shown = Callable[[str], str]


@dataclass(frozen=True)
class Answer:
    """What came of a deed: for programs, and as lines for people."""

    value: BaseModel | Sequence[BaseModel] | Mapping[str, object]
    lines: Sequence[str]
    """Safe to show."""
    good: bool = False
    """Whether something has been done, not only told."""
    rows: bool = False
    """Whether the lines stand under each other, and are cut rather than wrapped."""
    tree: Tree | None = None
    """The lines again, in colour, where they are a tree."""


def good(value: BaseModel | Mapping[str, object], line: str, *, heard: bool = False) -> Answer:
    """Something has been done; `heard`: a signal tells this person so anyway."""
    return Answer(value, [] if heard else [line], good=True)


def decided(approval: Approval, *, heard: bool) -> Answer:
    return good(approval, decided_words(approval), heard=heard)


def stops(
    stopped: Stops, latched: Breakers, held: Takeovers, me: str, shown: Shown, typed: Typed
) -> Answer:
    """All that keeps agents from working."""
    lines = [stopped_words(stop, shown, typed) for stop in stopped.stops]
    lines += [breaker_words(breaker, shown, typed) for breaker in latched.latched]
    lines += [takeover_words(takeover, me, typed) for takeover in held.takeovers]
    value = {
        "stops": stopped.stops,
        "latched": latched.latched,
        "takeovers": held.takeovers,
    }
    return Answer(value, lines or ["nothing is stopped, latched or taken over"])


def breakers(found: Breakers, shown: Shown, typed: Typed) -> Answer:
    lines = [breaker_words(latched, shown, typed) for latched in found.latched]
    return Answer(found.latched, lines or ["nothing is latched"])


def approvals(found: Approvals, shown: Shown, typed: Typed) -> Answer:
    """Those that wait with everything that is needed to decide; the others in a line each."""
    lines: list[str] = []
    for approval in found.approvals:
        if approval.state == "pending":
            lines += approval_words(approval, shown, typed)
        else:
            lines.append(decided_words(approval))
    if found.more:
        lines.append("and older ones")
    return Answer(found.approvals, lines or ["nothing waits for an approval"])


def requests(found: Requests, shown: Shown) -> Answer:
    rows = [
        (
            each.id,
            f"{each.requester} → {each.worker}",
            f"failed: {each.outcome}" if each.state == "failed" and each.outcome else each.state,
            moment(each.deadline),
            shown(each.thread_id),
            clip(one_line(each.task), TASK),
        )
        for each in found.requests
    ]
    head = ("REQUEST", "WHO", "STATE", "DEADLINE", "THREAD", "TASK")
    return Answer(found.requests, aligned(head, rows) if rows else ["no requests"], rows=True)


def spending(spent: Spending, shown: Shown) -> Answer:
    """A row for each day, agent and thread, the sum, and the day's limits."""
    head = ("DAY", "AGENT", "THREAD", "TURNS", "WAKES", "TOKENS", "COST")
    rows = [_spent(row, shown) for row in spent.rows]
    lines = aligned(head, rows) if rows else []
    lines.append(f"together: {sums_words(spent.total)}")
    return Answer(spent, [*lines, *map(left_words, spent.today)], rows=True)


def _spent(row: SpendingRow, shown: Shown) -> tuple[str, ...]:
    sums = row.sums
    return (
        row.day,
        row.agent,
        shown(row.thread_id),
        str(sums.turns),
        str(sums.wakes),
        f"{thousands(sums.tokens_in)}+{thousands(sums.tokens_out)}",
        dollars(sums.usd) if sums.usd else "",
    )


def story(message: Message | None, receipts: Receipts) -> Answer:
    """What has become of a message with everybody."""
    return Answer(receipts, stories.story(message, receipts))


def explained(found: WakeExplanation, receipts: Receipts | None) -> Answer:
    """Why a message woke an agent or did not, and what has become of it there."""
    verdict = "woke" if found.woken else "did not wake"
    lines = [f"{found.message_id} {verdict} {found.agent} ({found.reason}): {found.explanation}"]
    if found.wake is not None:
        lines.append(f"turn {found.wake.turn}: {found.state}, reply {found.wake.reply}")
    told = receipts.receipts if receipts is not None else ()
    own = [receipt for receipt in told if receipt.participant == found.agent]
    lines += [stories.receipt_words(receipt, why=False) for receipt in own]
    return Answer(found, list(map(one_line, lines)))


def interaction(whole: Whole) -> Answer:
    """Who caused what, and the budget."""
    from hubbub.cli.control.tree import drawn, lines_of

    tree = drawn(whole)
    value = {"interaction": whole.as_page(), "budget": whole.budget}
    return Answer(value, lines_of(tree), rows=True, tree=tree)
