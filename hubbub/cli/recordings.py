"""`record` and `replay`: interactions of a network as files, played to it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.connection import AddressOption, NetworkTarget, TokenOption, joined, run_async
from hubbub.cli.output import DEFAULT_CONFIG, counted
from hubbub.config.problems import nearest, shown_path
from hubbub.errors import UserError
from hubbub.ids import parse_interaction_id, parse_message_id
from hubbub.protocol.frames import Cursor
from hubbub.protocol.messages import Message

if TYPE_CHECKING:
    from hubbub.config.loader import LoadedConfig
    from hubbub.lab.recordings import Recording

__all__ = ["register"]

BEFORE = 5000
"""Positions of the log that are looked through for what was said before."""


def register(app: typer.Typer, word: str) -> None:
    app.command(word)(record if word == "record" else replay)


def record(
    interactions: Annotated[
        list[str], typer.Argument(help="What a message set in motion: i42, or the message: m42.")
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write.")] = None,
    case: Annotated[
        Path | None, typer.Option("--case", help="Add it to this file of cases, for hubbub test.")
    ] = None,
    address: AddressOption = None,
    token: TokenOption = None,
) -> None:
    """Record interactions of a running network with all their turns: prompts, answers of models,
    results of tools."""
    from hubbub.lab.cases import add_case

    if (out is None) == (case is None):
        raise UserError("say where to: --out FILE, or --case FILE for a case of `hubbub test`")
    recording = run_async(_record(NetworkTarget(address, token), interactions))
    written = out or case
    assert written is not None
    try:
        if out is not None:
            out.write_text(recording.text() + "\n", encoding="utf-8")
        else:
            add_case(written, recording)
    except OSError as exc:
        raise UserError(f"{shown_path(written)} cannot be written: {exc.strerror}") from exc
    messages = counted(len(recording.messages), "message", "messages")
    turns = counted(len(recording.turns), "turn", "turns")
    typer.echo(f"{shown_path(written)}: {messages}, {turns}")


async def _record(target: NetworkTarget, said: list[str]) -> Recording:
    from hubbub.lab.recordings import record as recorded

    async with joined(target) as client:
        epoch, interactions = client.hello.epoch, list[str]()
        for name in said:
            if parse_message_id(name) is not None:
                message = Message.model_validate(await client.call("read_message", id=name))
                name = message.interaction_id
            interactions.append(name)
    opened = [parse_interaction_id(name) or 0 for name in interactions]
    start = Cursor(epoch=epoch, seq=max(0, min(opened) - BEFORE))
    async with joined(target, observe=True, cursor=start) as client:
        return await recorded(client, interactions)


def replay(
    file: Annotated[Path, typer.Argument(help="What `hubbub record` has written.")],
    config: Annotated[
        Path, typer.Option("--config", "-c", help="The network's YAML file.")
    ] = DEFAULT_CONFIG,
    prompt: Annotated[
        list[str] | None,
        typer.Option("--prompt", help="AGENT=FILE: this text in place of the agent's prompt."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A model of the config, for all agents.")
    ] = None,
) -> None:
    """Play a recording to the network of a config, in this process. Models and tools answer as they
    did; it ends at the first step that differs, with exit code 1. With another prompt or model,
    models are asked wherever the recording has no answer."""
    from hubbub.app.preflight import load_valid
    from hubbub.app.process import run_loop
    from hubbub.lab.networks import NetworkRun, replayed, with_model
    from hubbub.lab.recordings import Tape, read_recording

    loaded, recording = load_valid(config), read_recording(file)
    changed = {each.partition("=")[0] for each in prompt or ()}
    for each in prompt or ():
        loaded = _with_prompt(loaded, each)
    if model is not None and model not in loaded.file.models:
        raise UserError(f"there is no model '{model}'{nearest(model, loaded.file.models)}")
    if model is not None:
        loaded = with_model(loaded, model)
    run = NetworkRun(loaded, tape=Tape(recording), live=bool(prompt or model), anew=bool(model))
    differs = run_loop(replayed(run, recording, changed))
    if differs is None:
        turns = counted(len(recording.turns), "turn", "turns")
        typer.echo(f"{shown_path(file)}: {turns}, all as recorded")
        return
    typer.echo(str(differs))
    raise typer.Exit(1)


def _with_prompt(loaded: LoadedConfig, said: str) -> LoadedConfig:
    name, _, path = said.partition("=")
    if name not in loaded.file.agents:
        raise UserError(f"--prompt: there is no agent '{name}'{nearest(name, loaded.file.agents)}")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as exc:
        raise UserError(f"--prompt: {path} cannot be read: {exc.strerror}") from exc
    changed = loaded.file.agent(name).model_copy(update={"instruction": text, "prompt": None})
    agents = {**loaded.file.agents, name: changed}
    return replace(loaded, file=loaded.file.model_copy(update={"agents": agents}))
