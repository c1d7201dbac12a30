"""`turns`, `turn`: what agents did."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hubbub.agents.turn.chat import told_changes
from hubbub.cli.chat.text import visible
from hubbub.cli.control.words import dollars, took_words
from hubbub.cli.joining import AddressOption, Target, TokenOption, ask, check_known, run_async
from hubbub.cli.output import JsonFlag, clock_time, emit_json, table
from hubbub.protocol.operations import Turns, TurnSummary
from hubbub.protocol.turns import Step, ToolCallRecord, Turn, TurnEnd, Window

__all__ = ["register"]

_CUT = 2000
"""Characters of a prompt or result that are shown without --full."""


def register(app: typer.Typer) -> None:
    for command in (turns, turn):
        app.command()(command)


def turns(
    agent: Annotated[str | None, typer.Option("--agent", help="Only those of this agent.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 20,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """List the latest turns of agents, newest first."""
    target = Target(address, token)
    if agent is not None:
        run_async(check_known(target, agent, "agent"))
    work = ask(target, "list_turns", agent=agent, limit=limit)
    found = Turns.model_validate(run_async(work))
    if as_json:
        emit_json(found.turns)
        return
    head = ("TURN", "STARTED", "TOOK", "OUTCOME", "STEPS", "TOKENS", "COST", "MODEL", "")
    table(head, map(_row, found.turns))


def _row(turn: TurnSummary) -> tuple[str, ...]:
    return (
        turn.id,
        clock_time(turn.started_at),
        took_words(turn.duration_ms) if turn.duration_ms is not None else "",
        turn.outcome or ("parked" if turn.waits_for else "running"),
        str(turn.steps),
        f"{turn.tokens_in}+{turn.tokens_out}",
        _cost(turn.cost_usd).strip(),
        turn.model or "",
        _asked(turn) or turn.reason[:60],
    )


def _asked(turn: TurnSummary) -> str:
    """Of a parked turn: what it waits for."""
    return f"waits for approval {', '.join(turn.waits_for)}" if turn.waits_for else ""


def turn(
    id: Annotated[str, typer.Argument(help="The turn, for example editor-m42.")],
    full: Annotated[bool, typer.Option("--full", help="Do not cut long texts.")] = False,
    address: AddressOption = None,
    token: TokenOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show one turn: its prompt, steps, tool calls and results, and its outcome."""
    found = Turn.model_validate(run_async(ask(Target(address, token), "read_turn", id=id)))
    if as_json:
        emit_json(found)
        return
    for line in _lines(found):
        shown = line if full or len(line) <= _CUT else f"{line[:_CUT]}… (--full shows all)"
        typer.echo(visible(shown))


def _lines(turn: Turn) -> list[str]:
    from hubbub.agents.turn.recording import step_names

    start = turn.start
    outcome = _outcome(turn.end) if turn.end else "running"
    lines = [
        f"turn      {start.id}  by {turn.agent}  in {start.thread_id}",
        f"woken by  {', '.join(start.messages)}",
        *([f"goes on   with {start.continues}"] if start.continues else []),
        f"started   {turn.started_at.astimezone():%Y-%m-%d %H:%M:%S}  attempts {turn.attempts}",
        f"model     {start.model or '-'}  tokens {turn.tokens_in}+{turn.tokens_out}"
        f"{_cost(turn.cost_usd)}",
        f"dialect   {_dialect(turn)}",
        f"prompt    {start.prompt_id or '-'}  {', '.join(start.components)}".rstrip(),
        f"tools     {', '.join(start.tools) or '-'}",
        f"outcome   {outcome}",
        f"sent      {', '.join(turn.sent) or 'nothing'}",
    ]
    if turn.end and turn.end.text:
        lines += ["", "--- text that was not published", turn.end.text]
    for title, text in (("system prompt", start.system_prompt), ("prompt", start.prompt)):
        if text:
            lines += ["", f"--- {title}", text]
    names = step_names(turn.steps)
    for step in turn.steps:
        lines += ["", *_step(step, names.get(step.n, str(step.n)))]
    if turn.end:
        lines += [f"note: {note}" for note in turn.end.notes]
    return lines


def _dialect(turn: Turn) -> str:
    """How the model called tools, and from which step on if that changed."""
    changes = (f", {step.dialect} from step {step.n} on" for step in turn.steps if step.dialect)
    return f"{turn.start.dialect or '-'}{''.join(changes)}"


def _outcome(end: TurnEnd) -> str:
    return f"{end.outcome}: {end.reason}" if end.reason else end.outcome


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
        result = call.result if call.result is not None else "has not run"
        lines.append(f"  → {call.error + ': ' if call.error else ''}{result}")
    return lines


def _changes(call: ToolCallRecord) -> list[str]:
    """What a person has changed of the call, and what it ran with then."""
    if call.changed is None:
        return []
    ran = json.dumps(call.ran_with, ensure_ascii=False)
    return [f"  {told_changes(call)}", f"  ran with {ran}"]


def _window(window: Window) -> str:
    """What the question was made of, and what of it had to be left out."""
    used = sum(layer.tokens for layer in window.layers)
    layers = ", ".join(
        f"{layer.name} {layer.tokens}" + (f" ({layer.cut} cut)" if layer.cut else "")
        for layer in window.layers
        if layer.tokens or layer.cut
    )
    counted = "counted" if window.exact else "estimated"
    if window.size is None:
        return f"window    not known, nothing is cut: {used} tokens, {counted}: {layers}"
    room = f"{used} of {window.size} tokens, {window.reserve} kept for the answer"
    return f"window    {room}, {counted}: {layers}"


def _times(at_ms: float | None, duration_ms: float | None) -> str:
    """How long it took, and how long after the turn's start it began, as far as that is known."""
    took = f"  {took_words(duration_ms)}" if duration_ms is not None else ""
    return took + (f"  at {at_ms / 1000:.1f} s" if at_ms is not None else "")


def _cost(usd: float | None) -> str:
    """`  $0.0042`, to two digits that count; nothing where it is not known."""
    return "" if usd is None else f"  {dollars(usd)}"
