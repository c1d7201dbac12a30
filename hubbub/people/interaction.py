"""An interaction as a tree of causes: read from the hub, drawn with rich."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from hubbub.errors import OperationError
from hubbub.people.client import PersonClient
from hubbub.people.figures import budget_line, is_held_back, sums_text, turn_text
from hubbub.people.messages import colour_of, marks, speaker, where
from hubbub.people.text import clip, one_line
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import (
    Envelope,
    InteractionPage,
    InteractionWake,
    Receipt,
    Receipts,
    TurnSummary,
)
from hubbub.protocol.spending import BudgetState, Sums

__all__ = ["InteractionView", "drawn", "lines_of", "read_whole"]

MOST_CHECKED = 50
"""Messages that are checked for agents they did not wake."""
PAGES = 20
"""Pages that are read at most."""

MOST = 80
"""Columns of a message in the tree."""


@dataclass
class InteractionView:
    """An interaction, combined from all pages of the hub's answer."""

    id: str
    messages: list[Message] = field(default_factory=list)
    envelopes: list[Envelope] = field(default_factory=list)
    wakes: list[InteractionWake] = field(default_factory=list)
    turns: dict[str, TurnSummary] = field(default_factory=dict)
    hidden: int = 0
    more: bool = True
    """Whether the log continues after the last page."""
    prevented: dict[str, list[Receipt]] = field(default_factory=dict)
    """Wakes that a limit or a person prevented, by message."""
    budget: BudgetState | None = None
    """None: this person may not see it."""

    def add(self, page: InteractionPage) -> None:
        self.messages += page.messages
        self.envelopes += page.envelopes
        self.wakes += page.wakes
        self.turns |= {turn.id: turn for turn in page.turns}
        self.hidden += page.hidden
        self.more = page.more

    def as_page(self) -> InteractionPage:
        """Everything as a single page."""
        return InteractionPage(
            id=self.id,
            messages=tuple(self.messages),
            hidden=self.hidden,
            envelopes=tuple(self.envelopes),
            wakes=tuple(self.wakes),
            turns=tuple(self.turns.values()),
            upto=max((entry.seq for entry in self.entries()), default=0),
            more=self.more,
        )

    def unwoken(self) -> list[str]:
        """Readable messages that name a participant they did not wake."""
        woken = {(wake.message_id, wake.agent) for wake in self.wakes}
        return [
            message.id
            for message in self.messages
            if message.sender_kind != "system"
            and any(
                (message.id, name) not in woken
                for name in {*message.recipients, *message.mentions} - {message.sender_id}
            )
        ]

    def entries(self) -> list[Message | Envelope]:
        """Messages, and envelopes of unreadable ones, in log order."""
        return sorted([*self.messages, *self.envelopes], key=lambda entry: entry.seq)


async def read_whole(person: PersonClient, id: str) -> InteractionView:
    """All pages of an interaction, prevented wakes, and the budget if this person may see it."""
    whole, after = InteractionView(id), None
    for _ in range(PAGES):
        page = await person.ask(InteractionPage, "read_interaction", id=id, after=after)
        whole.add(page)
        after = page.upto
        if not page.more:
            break
    for message in whole.unwoken()[:MOST_CHECKED]:
        receipts = (await person.ask(Receipts, "read_receipts", id=message)).receipts
        if prevented := [r for r in receipts if not r.woken and is_held_back(r.reason)]:
            whole.prevented[message] = prevented
    try:
        whole.budget = await person.ask(BudgetState, "read_budget", interaction=id)
    except OperationError as exc:
        if exc.code not in (ErrorCode.FORBIDDEN, ErrorCode.UNKNOWN_INTERACTION):
            raise
    return whole


def drawn(whole: InteractionView) -> Tree:
    """The tree: messages, under them the turns they started, under these the messages they sent."""
    title = Text(f"interaction {whole.id}", style="bold")
    if whole.budget is not None:
        title.append(f"  opened by {whole.budget.opened_by}, {sums_text(whole.budget.sums)}")
        title.append("" if whole.budget.active else ", ended", style="dim")
    elif whole.turns:
        title.append(f"  {sums_text(_sums(list(whole.turns.values())))}")
    root = Tree(title)
    _Branches(whole).grow(root)
    if whole.hidden > len(whole.envelopes):
        root.add(Text(f"{whole.hidden - len(whole.envelopes)} messages of others", style="dim"))
    if whole.more:
        root.add(Text("continues further down the log", style="dim"))
    for line in _budget(whole.budget):
        root.add(line)
    return root


def lines_of(tree: Tree) -> list[str]:
    """The tree as plain lines."""
    console = Console(file=io.StringIO(), width=1000, color_system=None, highlight=False,
                      markup=False, emoji=False, legacy_windows=False)  # fmt: skip
    with console.capture() as captured:
        console.print(tree)
    return [line.rstrip() for line in captured.get().splitlines()]


class _Branches:
    """Builds the branches of the tree."""

    def __init__(self, whole: InteractionView):
        self._whole = whole
        entries = whole.entries()
        ids = {entry.id for entry in entries}
        turns = {wake.turn for wake in whole.wakes} | set(whole.turns)
        self._under: defaultdict[str, list[Message | Envelope]] = defaultdict(list)
        for entry in entries:
            cause = entry.cause_id or ""
            self._under[cause if cause in ids or cause in turns else ""].append(entry)
        self._wakes: defaultdict[str, list[InteractionWake]] = defaultdict(list)
        for wake in whole.wakes:
            self._wakes[wake.message_id].append(wake)
        self._shown: set[str] = set()

    def grow(self, root: Tree) -> None:
        """Add all branches, with an explicit stack: a chain can exceed Python's recursion limit."""
        waiting = [(root, entry) for entry in reversed(self._under[""])]
        while waiting:
            parent, entry = waiting.pop()
            node = parent.add(_entry(entry))
            below: list[tuple[Tree, Message | Envelope]] = []
            for wake in self._wakes[entry.id]:
                branch = node.add(self._turn(wake))
                if wake.turn not in self._shown:
                    self._shown.add(wake.turn)
                    below += [(branch, sent) for sent in self._under[wake.turn]]
            for receipt in self._whole.prevented.get(entry.id, ()):
                node.add(_prevented(receipt))
            below += [(node, reply) for reply in self._under[entry.id]]
            waiting += reversed(below)

    def _turn(self, wake: InteractionWake) -> Text:
        text = Text("▸ ").append(one_line(wake.agent), style=colour_of(wake.agent))
        if wake.turn in self._shown:
            return text.append(f"  in turn {wake.turn}, above", style="dim")
        turn = self._whole.turns.get(wake.turn)
        state = turn_text(turn) if turn is not None else wake.state
        return text.append(f"  {state}").append(f"  {wake.turn}", style="dim")


def _prevented(receipt: Receipt) -> Text:
    text = Text("▹ ").append(one_line(receipt.participant), style=colour_of(receipt.participant))
    return text.append(f"  not woken: {one_line(receipt.explanation)}", style="bold")


def _entry(entry: Message | Envelope) -> Text:
    text = Text(f"{entry.id} ", style="dim")
    colour = "dim" if entry.sender_kind == "system" else colour_of(entry.sender_id)
    if isinstance(entry, Envelope):
        others = ", ".join(entry.recipients) or entry.thread_id
        text.append(one_line(entry.sender_id), style=colour)
        return text.append(f" → {one_line(others)}  (not for you)", style="dim")
    text.append(speaker(entry), style=colour).append(f" {where(entry)}", style="dim")
    if marked := marks(entry):
        text.append(f" {marked}", style="bold")
    return text.append(f"  {clip(one_line(entry.text), MOST)}", style="default")


def _budget(budget: BudgetState | None) -> Iterator[Text]:
    if budget is None:
        return
    for limit, of in budget.limits.items():
        if (used := budget.used.get(limit)) is not None:
            past = limit in budget.reached
            line = budget_line(limit, used, of, reached=past)
            yield Text(line, style="bold red" if past or used >= of else "dim")
    for limit in budget.reached:
        if limit not in budget.used or limit not in budget.limits:
            yield Text(f"{limit.replace('_', ' ')} reached", style="bold red")


def _sums(turns: Sequence[TurnSummary]) -> Sums:
    return Sums(
        turns=len(turns),
        tokens_in=sum(turn.tokens_in for turn in turns),
        tokens_out=sum(turn.tokens_out for turn in turns),
        usd=sum(turn.cost_usd or 0.0 for turn in turns),
    )
