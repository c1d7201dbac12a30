"""`record`, `replay` and `branch`: record a network's turns, replay them, or try alternatives."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import JsonValue

from hubbub.cli.connection import AddressOption, NetworkTarget, TokenOption, joined, run_async
from hubbub.cli.output import DEFAULT_CONFIG, ConfigOption, JsonFlag, console, counted, emit_json
from hubbub.config.problems import nearest, shown_path
from hubbub.errors import UserError
from hubbub.ids import parse_interaction_id, parse_message_id
from hubbub.people.text import visible
from hubbub.protocol.agents import Branched
from hubbub.protocol.frames import Cursor
from hubbub.protocol.messages import Message

if TYPE_CHECKING:
    from hubbub.lab.networks import NetworkRun
    from hubbub.lab.recordings import Recording

__all__ = ["register"]

BEFORE = 5000
"""Positions of the log that are searched for earlier messages."""


def register(app: typer.Typer, word: str) -> None:
    commands: dict[str, Callable[..., None]] = {
        "record": record, "replay": replay, "branch": branch,
    }  # fmt: skip
    app.command(word)(commands[word])


def record(
    interactions: Annotated[
        list[str], typer.Argument(help="Interactions (i42), or messages that opened them (m42).")
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write.")] = None,
    case: Annotated[
        Path | None,
        typer.Option("--case", help="Add a test case to this file; - prints it."),
    ] = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Record interactions of a running network with all their turns: prompts, model answers, tool
    results."""
    from hubbub.lab.cases import add_case, case_text

    if (out is None) == (case is None):
        raise UserError("record takes --out FILE, or --case FILE for a case of `hubbub test`")
    recording = run_async(_record(NetworkTarget(address, token), interactions))
    if case == Path("-"):
        typer.echo(f"cases:\n{case_text(recording)}", nl=False)
        return
    written = out or case
    assert written is not None
    try:
        if out is not None:
            out.write_text(recording.text() + "\n", encoding="utf-8")
        else:
            add_case(written, recording)
    except OSError as exc:
        raise UserError(f"cannot write {shown_path(written)}: {exc.strerror}") from exc
    messages = counted(len(recording.messages), "message", "messages")
    turns = counted(len(recording.turns), "turn", "turns")
    typer.echo(f"{shown_path(written)}: {messages}, {turns}")


async def _record(target: NetworkTarget, names: list[str]) -> Recording:
    from hubbub.lab.recordings import record as recorded

    async with joined(target) as client:
        epoch, interactions = client.hello.epoch, list[str]()
        for name in names:
            if parse_message_id(name) is not None:
                message = Message.model_validate(await client.call("read_message", id=name))
                name = message.interaction_id
            interactions.append(name)
    opened = [parse_interaction_id(name) or 0 for name in interactions]
    start = Cursor(epoch=epoch, seq=max(0, min(opened) - BEFORE))
    async with joined(target, observe=True, cursor=start) as client:
        return await recorded(client, interactions)


def replay(
    file: Annotated[Path, typer.Argument(help="A recording by `hubbub record`.")],
    config: ConfigOption = DEFAULT_CONFIG,
    prompt: Annotated[
        list[str] | None,
        typer.Option("--prompt", help="AGENT=FILE: replace the agent's prompt with this text."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Use this model of the config for all agents."),
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option(
            "--code", help="A folder with another copy of the config and its Python code."
        ),
    ] = None,
) -> None:
    """Replay a recording against the network of a config, in this process. Models and tools answer
    as recorded; the replay ends at the first step that differs, with exit code 1. With another
    prompt or model, models are called wherever the recording has no answer."""
    from hubbub.app.preflight import load_valid
    from hubbub.app.process import run_loop
    from hubbub.lab.branches import with_change, with_model
    from hubbub.lab.networks import NetworkRun, replayed
    from hubbub.lab.recordings import Tape, read_recording

    loaded = load_valid(config if code is None else code / config.name)
    recording = read_recording(file)
    changed = _pairs("--prompt AGENT=FILE", prompt)
    for agent, path in changed:
        loaded = with_change(loaded, agent, "instruction", _text_of(path))
    if model is not None and model not in loaded.file.models:
        raise UserError(f"there is no model '{model}'{nearest(model, loaded.file.models)}")
    if model is not None:
        loaded = with_model(loaded, model)
    run = NetworkRun(
        loaded, tape=Tape(recording), live=bool(prompt or model), ignore_tape=bool(model)
    )
    differs = run_loop(replayed(run, recording, dict(changed)))
    if differs is None:
        turns = counted(len(recording.turns), "turn", "turns")
        typer.echo(f"{shown_path(file)}: {turns}, all as recorded")
        return
    typer.echo(str(differs))
    raise typer.Exit(1)


def _pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    """The names and values of an option, which is named with its form. Raises `UserError`."""
    pairs = [each.partition("=") for each in given or ()]
    for name, equals, value in pairs:
        if not name or not equals:
            raise UserError(f"{option}: there is no = in {name + value!r}")
    return [(name, value) for name, _, value in pairs]


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as exc:
        raise UserError(f"--prompt: cannot read {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise UserError(f"--prompt: {path} is not a text in UTF-8") from exc


# Branches -----------------------------------------------------------------------------------------


def branch(
    message: Annotated[str, typer.Argument(help="The message at which to branch: m42.")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--with", "-w", help="AGENT.KEY=VALUE: change this key of an agent's config."),
    ] = None,
    results: Annotated[
        list[str] | None, typer.Option("--result", help="TOOL=TEXT: the result of a tool.")
    ] = None,
    stay: Annotated[
        bool,
        typer.Option("--stay", help="Serve the branch afterwards, for the page and `hubbub chat`."),
    ] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonFlag = False,
) -> None:
    """Branch a network at one of its messages: continue from there with another instruction, model
    or tools for an agent, and compare the outcome with the original.

    The network itself is only read, and can be running. A branch has no outside effects: tools that
    reach out return their recorded results, or those that you pass. Without --with, all models are
    called again.
    """
    from hubbub.app.preflight import load_valid
    from hubbub.app.process import run_loop
    from hubbub.lab.branches import with_change
    from hubbub.lab.networks import NetworkRun

    seq, loaded = parse_message_id(message), load_valid(config)
    if seq is None:
        raise UserError(f"{message!r} is not the id of a message, such as m42")
    for named, value in _pairs("--with AGENT.KEY=VALUE", changes):
        agent, _, key = named.rpartition(".")
        loaded = with_change(loaded, agent, key, _value(value))
    given = dict(_pairs("--result TOOL=TEXT", results))
    run = NetworkRun(
        loaded, results=dict[str, JsonValue](given), live=True, ignore_tape=not changes
    )
    if sys.stdin.isatty():
        run.ask = _ask
    outcome = run_loop(_branched(run, seq, stay=stay, as_json=as_json))
    if outcome.lacking is not None:
        raise typer.Exit(1)


async def _branched(run: NetworkRun, seq: int, *, stay: bool, as_json: bool) -> Branched:
    from hubbub.lab.branches import beginning, branched, served

    at = await beginning(run.loaded, seq)
    async with branched(run, at) as (hub, outcome):
        if as_json:
            emit_json(outcome)
        else:
            _print(outcome)
        if stay:
            async with served(hub) as url:
                typer.echo(f"\nthe branch is at {url} until Ctrl-C, and is deleted then")
                await asyncio.Event().wait()
    return outcome


async def _ask(tool: str, arguments: Mapping[str, JsonValue]) -> str | None:
    """The result of a call, typed at the terminal."""
    prompt = f"{tool} {json.dumps(arguments, ensure_ascii=False)} is not executed; enter its result"
    result: str = await asyncio.to_thread(typer.prompt, visible(prompt), default="", err=True)
    return result or None


def _value(text: str) -> JsonValue:
    """A list, map, number, boolean or null as in YAML; anything else is plain text."""
    import yaml

    try:
        value: JsonValue = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if text[:1] in ("[", "{") or not isinstance(value, dict | list | str) else text


def _print(outcome: Branched) -> None:
    from rich.table import Table
    from rich.text import Text

    sides = (outcome.then, outcome.now)
    figures = Table("", "original", "branch", box=None, pad_edge=False)
    figures.add_row("messages", *(str(side.messages) for side in sides))
    figures.add_row("turns", *(str(side.turns) for side in sides))
    figures.add_row("tokens", *(f"{side.tokens_in} in, {side.tokens_out} out" for side in sides))
    figures.add_row("cost", *(_dollars(side.cost_usd) for side in sides))
    figures.add_row("time", *(f"{side.seconds:.1f} s" for side in sides))
    screen = console()
    screen.print(f"from {outcome.message} on")
    screen.print(figures)
    for title, side in zip(("original", "branch"), sides, strict=True):
        screen.print(f"\n{title}")
        for each in side.said:
            screen.print(Text(f"  {visible(f'{each.sender} in {each.thread_id}: {each.text}')}"))
    if outcome.lacking is not None:
        tool, arguments = outcome.lacking.tool, outcome.lacking.arguments
        call = f"{tool} {json.dumps(arguments, ensure_ascii=False)}"
        hint = f"{call} has no recorded result: pass one with --result {tool}=TEXT"
        screen.print(Text(f"\n{visible(hint)}"))


def _dollars(cost: float | None) -> str:
    return "-" if cost is None else f"${cost:.4f}"
