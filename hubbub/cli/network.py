"""`network check | schema | doctor | backup | restore | migrate`: administer your own network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.connection import run_async
from hubbub.cli.output import (
    DEFAULT_CONFIG,
    ConfigArgument,
    ConfigOption,
    JsonFlag,
    console,
    counted,
    emit_json,
)
from hubbub.config.problems import ConfigProblems
from hubbub.errors import ConfigError

if TYPE_CHECKING:
    from hubbub.app.doctor import Diagnosis

__all__ = ["register"]

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}


def register(group: typer.Typer, word: str) -> None:
    for command in (check, schema, doctor, backup, restore, migrate):
        group.command()(command)


def check(config: ConfigArgument = DEFAULT_CONFIG, as_json: JsonFlag = False) -> None:
    """Validate a network's YAML file. Reports problems with line numbers and suggestions."""
    from hubbub.app.preflight import load_valid

    try:
        loaded = load_valid(config)
    except ConfigError as error:
        if not as_json:
            raise
        problems = error.problems if isinstance(error, ConfigProblems) else [error]
        emit_json([{"path": str(p.path), "line": p.line, "message": p.message} for p in problems])
        raise typer.Exit(2) from None
    if as_json:
        emit_json([])
        return
    file = loaded.file
    counts = (
        counted(len(file.agents), "agent", "agents"),
        counted(len(file.humans), "person", "people"),
        counted(len(file.channels), "channel", "channels"),
        counted(len(file.mods), "mod", "mods"),
    )
    typer.echo(f"{config}: valid; network '{file.network.name}' with {', '.join(counts)}")


def schema() -> None:
    """Print the JSON Schema of the YAML file, for editors."""
    from hubbub.config.models import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))


def doctor(
    config: Annotated[
        Path | None,
        typer.Argument(help="The network's YAML file.", show_default="hubbub.yaml, if present"),
    ] = None,
    log: Annotated[
        bool, typer.Option("--log", help="Check that every message in the log is intact instead.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check Python, port, database, tokens and models. Calls each model once."""
    from hubbub.app.doctor import diagnose, diagnose_log

    path = config or (DEFAULT_CONFIG if DEFAULT_CONFIG.exists() else None)
    diagnosis = diagnose_log(path or DEFAULT_CONFIG) if log else run_async(diagnose(path))
    if as_json:
        emit_json(
            {
                "healthy": diagnosis.healthy,
                "findings": [vars(finding) for finding in diagnosis.findings],
                "models": [vars(proposal) for proposal in diagnosis.proposals],
            }
        )
    else:
        _show(diagnosis)
    if not diagnosis.healthy:
        raise typer.Exit(1)


def _show(diagnosis: Diagnosis) -> None:
    from rich.text import Text

    from hubbub.app.providers import models_section

    screen = console()
    for finding in diagnosis.findings:
        mark, style = _MARKS[finding.verdict]
        line = Text(f"{mark} ", style=style)
        line.append(f"{finding.what:<10} ", style="bold")
        line.append(finding.text)
        screen.print(line)
    if diagnosis.proposals:
        screen.print("\nAvailable models; to use them, add this to the network's YAML:\n")
        screen.print(models_section(diagnosis.proposals))


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonFlag = False,
) -> None:
    """Copy a network's store and attachments to a file. The network can be running."""
    from hubbub.network.store.backups import back_up

    _copied(file, back_up(_store(config), file.absolute()), "backed up", as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="A backup by `hubbub network backup`.")],
    config: ConfigOption = DEFAULT_CONFIG,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing store.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Restore a network's store from a backup; the network must be stopped."""
    from hubbub.network.store.backups import restore as put_back

    _copied(file, put_back(_store(config), file.absolute(), replace=replace), "restored", as_json)


def migrate(
    source: Annotated[str, typer.Argument(help="The store to copy: sqlite:FILE.")],
    target: Annotated[str, typer.Argument(help="An empty database: postgresql://USER@HOST/NAME.")],
    as_json: JsonFlag = False,
) -> None:
    """Copy a stopped network from SQLite to Postgres. Run it again to resume after an interruption.

    Every message is checked on both sides. Set `store` to the target afterwards.
    """
    from rich.console import Console
    from rich.progress import Progress

    from hubbub.network.store.location import cluster_extra

    with cluster_extra():
        from hubbub.network.store.postgres.transfer import transfer
    with Progress(console=Console(stderr=True), disable=as_json) as progress:
        task = progress.add_task("messages")
        count = transfer(
            source, target, lambda done, total: progress.update(task, completed=done, total=total)
        )
    _copied(Path(source), count, "copied and checked", as_json)


def _store(config: Path) -> str:
    from hubbub.config.loader import load

    return load(config).file.network.store


def _copied(file: Path, messages: int, what: str, as_json: bool) -> None:
    if as_json:
        emit_json({"file": str(file), "messages": messages})
    else:
        typer.echo(f"{what}: {messages} messages, {file}")
