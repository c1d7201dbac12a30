"""Turns of agents: their record, causes and cost."""

from __future__ import annotations

import json
from typing import Any

from pydantic import JsonValue

from hubbub.errors import OperationError, UserError
from hubbub.ids import parse_interaction_id, parse_message_id
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.figures import (
    dollars,
    duration_text,
    moment,
    remaining_text,
    sums_text,
    thousands,
)
from hubbub.people.parameters import Parameter
from hubbub.people.shown import CommandResult, NoteLine, notes, paged, table
from hubbub.people.text import clip, visible
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Turns, TurnSummary
from hubbub.protocol.spending import Spending, SpendingRow
from hubbub.protocol.turns import Step, ToolCallRecord, Turn, Window

__all__ = ["COMMANDS"]

CUT = 2000
"""Characters shown of a prompt or result without --full."""
REASON = 60
"""Columns of a turn's reason in a list."""


def listed(answer: Turns, person: PersonClient) -> list[NoteLine]:
    if not answer.turns:
        return [NoteLine("no turns")]
    head = ("TURN", "STARTED", "TOOK", "OUTCOME", "STEPS", "TOKENS", "COST", "MODEL", "")
    lines = table(head, map(_row, answer.turns))
    return paged(lines, answer.more, f"there are earlier ones: --before {answer.turns[-1].id}")


def _row(turn: TurnSummary) -> tuple[str, ...]:
    waits = f"waits for approval {', '.join(turn.waits_for)}" if turn.waits_for else ""
    return (
        turn.id,
        moment(turn.started_at),
        duration_text(turn.duration_ms) if turn.duration_ms is not None else "",
        turn.outcome or ("parked" if waits else "running"),
        str(turn.steps),
        f"{turn.tokens_in}+{turn.tokens_out}",
        _cost(turn.cost_usd).strip(),
        turn.model or "",
        waits or clip(turn.reason, REASON),
    )


# One turn -----------------------------------------------------------------------------------------


async def show(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """The record of a turn."""
    value = await person.call("read_turn", id=given["id"])
    lines = _lines(Turn.model_validate(value))
    if not given.get("full"):
        lines = [s if len(s) <= CUT else f"{s[:CUT]}… (--full shows all)" for s in lines]
    return CommandResult(value, notes(map(visible, lines), "plain"))


def _lines(turn: Turn) -> list[str]:
    from hubbub.agents.turn.steps import step_names

    start, end = turn.start, turn.end
    changes = (f", {step.dialect} from step {step.n} on" for step in turn.steps if step.dialect)
    outcome = "running" if end is None else end.outcome + (f": {end.reason}" if end.reason else "")
    lines = [
        f"turn      {start.id}  by {turn.agent}  in {start.thread_id}",
        f"woken by  {', '.join(start.messages)}",
        *([f"continues {start.continues}"] if start.continues else []),
        f"started   {turn.started_at.astimezone():%Y-%m-%d %H:%M:%S}  attempts {turn.attempts}",
        f"model     {start.model or '-'}  tokens {turn.tokens_in}+{turn.tokens_out}"
        f"{_cost(turn.cost_usd)}",
        f"dialect   {start.dialect or '-'}{''.join(changes)}",
        f"prompt    {start.prompt_id or '-'}  {', '.join(start.components)}".rstrip(),
        f"tools     {', '.join(start.tools) or '-'}",
        f"outcome   {outcome}",
        f"sent      {', '.join(turn.sent) or 'nothing'}",
    ]
    if end and end.text:
        lines += ["", "--- unpublished text", end.text]
    for title, text in (("system prompt", turn.system_prompt), ("prompt", turn.prompt)):
        if text:
            lines += ["", f"--- {title}", text]
    names = step_names(turn.steps)
    for step in turn.steps:
        lines += ["", *_step(step, names.get(step.n, str(step.n)))]
    return lines + [f"note: {note}" for note in end.notes] if end else lines


def _step(step: Step, name: str) -> list[str]:
    tokens = f"tokens {step.tokens_in}+{step.tokens_out}{_cost(step.cost_usd)}"
    lines = [f"--- step {name}{_times(step.at_ms, step.duration_ms)}  {tokens}"]
    if step.window is not None:
        lines.append(_window(step.window))
    lines += [f"steered by {s.message}: {s.text}" for s in step.steered]
    lines += [f"note: {note}" for note in step.remarks]
    if step.reasoning:
        lines.append(f"thought: {step.reasoning}")
    if step.text:
        lines.append(step.text)
    if step.wait != "all":
        lines.append(f"waits for {step.wait} of its calls")
    for call in step.calls:
        times = _times(call.at_ms, call.duration_ms)
        times += f"  attempt {call.attempts}" if call.attempts > 1 else ""
        lines.append(f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)}){times}")
        lines += _changes(call)
        result = call.result if call.result is not None else "not run"
        lines.append(f"  → {call.error + ': ' if call.error else ''}{result}")
    return lines


def _changes(call: ToolCallRecord) -> list[str]:
    """A person's changes to the call's arguments, and the arguments it ran with."""
    from hubbub.agents.turn.chat import describe_changes

    if call.changed is None:
        return []
    return [
        f"  {describe_changes(call)}",
        f"  ran with {json.dumps(call.ran_with, ensure_ascii=False)}",
    ]


def _window(window: Window) -> str:
    """The layers of the prompt, and what was cut to fit the window."""
    used = sum(layer.tokens for layer in window.layers)
    layers = ", ".join(
        f"{layer.name} {layer.tokens}" + (f" ({layer.cut} cut)" if layer.cut else "")
        for layer in window.layers
        if layer.tokens or layer.cut
    )
    how = "counted" if window.exact else "estimated"
    if window.size is None:
        return f"window    size unknown, nothing cut: {used} tokens, {how}: {layers}"
    room = f"{used} of {window.size} tokens, {window.reserve} reserved for the answer"
    return f"window    {room}, {how}: {layers}"


def _times(at_ms: float | None, duration_ms: float | None) -> str:
    """The duration, and the offset from the turn's start, if known."""
    took = f"  {duration_text(duration_ms)}" if duration_ms is not None else ""
    return took + (f"  at {at_ms / 1000:.1f} s" if at_ms is not None else "")


def _cost(usd: float | None) -> str:
    """`  $0.0042`, to two significant digits; empty if unknown."""
    return "" if usd is None else f"  {dollars(usd)}"


# Spending -----------------------------------------------------------------------------------------


def spending(spent: Spending, person: PersonClient) -> list[NoteLine]:
    """A row for each day, agent and thread, the sum, and the day's limits."""
    head = ("DAY", "AGENT", "THREAD", "TURNS", "WAKES", "TOKENS", "COST")
    lines = table(head, (_spent(row, person) for row in spent.rows)) if spent.rows else []
    lines.append(NoteLine(f"total: {sums_text(spent.total)}", "plain"))
    return [*lines, *notes(map(remaining_text, spent.today), "plain")]


def _spent(row: SpendingRow, person: PersonClient) -> tuple[str, ...]:
    sums = row.sums
    return (
        row.day,
        row.agent,
        person.shown(row.thread_id),
        str(sums.turns),
        str(sums.wakes),
        f"{thousands(sums.tokens_in)}+{thousands(sums.tokens_out)}",
        dollars(sums.usd) if sums.usd else "",
    )


# Interactions -------------------------------------------------------------------------------------


async def interaction(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """An interaction as a tree, with its budget."""
    from hubbub.people.interaction import drawn, lines_of, read_whole  # imports rich

    whole = await read_whole(person, await _interaction_id(person, given.get("id")))
    tree = drawn(whole)
    budget = None if whole.budget is None else whole.budget.model_dump(mode="json")
    value: JsonValue = {"interaction": whole.as_page().model_dump(mode="json"), "budget": budget}
    return CommandResult(
        value, [NoteLine(line, "plain", cut=True) for line in lines_of(tree)], tree
    )


async def _interaction_id(person: PersonClient, name: str | None) -> str:
    """The interaction with this id, or of this message; by default the latest in this thread."""
    if name is not None:
        if parse_interaction_id(name) is not None:
            return name
        if parse_message_id(name) is None:
            raise UserError(f"{name!r} is neither an interaction (i42) nor a message (m42)")
    else:
        last = person.state.thread(person.state.current).last if person.here else None
        if last is None:
            raise UserError("name an interaction (i42) or one of its messages (m42)")
        name = last.id
    # The person's own messages are noted before the hub delivers them.
    try:
        return (await person.ask(Message, "read_message", id=name)).interaction_id
    except OperationError as exc:
        if exc.code != ErrorCode.UNKNOWN_MESSAGE:
            raise
        raise UserError(exc.message) from exc


COMMANDS = (
    Command("turns list", "list_turns", listed, operator=True,
            about="List the latest turns of agents, newest first."),
    Command("turns show", "read_turn", do=show, operator=True, more=(
                Parameter("full", "Show long texts in full.", "flag"),),
            about="Show a turn: prompt, steps, tool calls with results, and outcome."),
    Command("turns interaction", "read_interaction", do=interaction, operator=True, order=("id?",),
            without=("after",),
            about="Draw an interaction as a tree: messages, wakes, turns, cost and budget."),
    Command("turns requests", "list_requests", operator=True, columns=(
        "request=id", "from=requester", "to=worker", "state", "outcome", "deadline", "thread_id",
        "task"),
            about="List the requests that agents made of each other."),
    Command("turns spending", "read_spending", spending, operator=True,
            about="Show what agents spent: turns, tokens, money; and what is left for today."),
)  # fmt: skip
